"""Networks that the Trainer of lightning trains."""

import tempfile

import lightning
import torch
from lightning.pytorch import callbacks
from tools import fn
from torch.nn import functional as F
from training import loader, network, state


class Task(lightning.LightningModule):
    def __init__(self, optimizer: str = "AdamW", manual: bool = False) -> None:
        super().__init__()
        self.net, self.kind = network(), optimizer
        self.automatic_optimization = not manual

    def training_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = getattr(torch.optim, self.kind)(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)}


def trained(task: Task, **options: object) -> list[torch.Tensor]:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = callbacks.ModelCheckpoint(folder, monitor="val_loss")
        trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                                    callbacks=[checkpoint], **options)  # fmt: skip
        trainer.fit(task, loader(), loader())
        best = torch.load(checkpoint.best_model_path, weights_only=False)["state_dict"]
    return [*state(task), *best.values(), trainer.callback_metrics["val_loss"], trainer.callback_metrics["loss_epoch"]]


for name, make, options in [
    ("adamw", Task, {}),
    ("sgd", lambda: Task("SGD"), {}),
    ("clipped", Task, {"gradient_clip_val": 0.1}),
    ("accumulated", Task, {"accumulate_grad_batches": 2}),
    ("manual", lambda: Task(manual=True), {}),
]:
    fn(f"lightning_{name}", lambda make=make, options=options: trained(make(), **options))
