"""Engines of ignite."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, Recall, RunningAverage
from tools import fn
from training import loader, network, state


def trained() -> list[torch.Tensor]:
    model, criterion = network(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    trainer = create_supervised_trainer(model, optimizer, criterion)
    metrics = {
        "accuracy": Accuracy(),
        "loss": Loss(criterion),
        "precision": Precision(),
        "recall": Recall(),
        "matrix": ConfusionMatrix(2),
    }
    evaluator = create_supervised_evaluator(model, metrics=metrics)
    RunningAverage(output_transform=lambda x: x).attach(trainer, "average")
    schedule = PiecewiseLinear(optimizer, "lr", [(0, 0.0), (4, 0.01), (12, 0.0)])
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(loader()))
    trainer.run(loader(), max_epochs=3)
    said = [torch.as_tensor(value).double() for value in evaluator.state.metrics.values()]
    return [*state(model), *said, torch.tensor(trainer.state.metrics["average"])]


fn("ignite_supervised", trained)
