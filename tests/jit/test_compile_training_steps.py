"""Training steps as programs have them: in few graphs, and each call by the function that was written for its graph."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

CALLS = 12


def trained(make, compiled):
    """What the steps of a program give, and what it says of itself."""
    genesis.manual_seed(0)
    step, state = make()
    run = genesis.compile(step) if compiled else step
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        losses = [run(genesis.randn(8, 4), genesis.randn(8, 1), i).item() for i in range(CALLS)]
    return losses, state(), run


def alike(make, graphs):
    expected, state, _ = trained(make, False)
    losses, now, run = trained(make, True)
    assert losses == pytest.approx(expected, rel=1e-5)
    assert now == pytest.approx(state, rel=1e-5)
    assert "not compiled" not in run.explain() and len(run._recent) == graphs, run.explain()
    assert run._recent[0].renewals == 0  # calls are for it at once
    return run


def numbers(*modules):
    return [p.double().sum().item() for m in modules for p in m.state_dict().values()]


def ordinary(before=lambda i: None, behind=lambda i, loss: None, learning_rate=0.1):
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)

    def step(x, y, i):
        before(i)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        behind(i, loss)
        return loss

    return model, optimizer, step


def test_a_learning_rate_that_the_step_computes_of_its_number():
    def make():
        def rate(i):
            if i < 3:
                return 0.1 * (i + 1) / 4
            return 0.05 * (1.0 + math.cos(math.pi * (i - 3) / 20))

        def set_rate(i):
            for group in optimizer.param_groups:
                group["lr"] = rate(i)

        model, optimizer, step = ordinary(before=set_rate)
        return step, lambda: [*numbers(model), optimizer.param_groups[0]["lr"]]

    alike(make, 2)  # of the first number, and of any


total = count = 0


def test_what_is_added_up_and_counted_in_globals():
    def make():
        global total, count
        total = count = 0

        def add(i, loss):
            global total, count
            total += loss.item() * 8
            count += 8

        model, _, step = ordinary(behind=add)
        return step, lambda: [*numbers(model), total, count]

    alike(make, 2)


def test_averages_of_models():
    def make():
        def average(i, loss):
            ema.update_parameters(model)
            schedule.step()
            if i > 4:
                swa.update_parameters(model)

        model, optimizer, step = ordinary(behind=average)
        ema, swa = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), AveragedModel(model)
        schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=40)
        return step, lambda: [*numbers(model, ema, swa), *schedule.get_last_lr()]

    alike(make, 4)


def test_averages_of_models_behind_a_schedule():
    def make():
        def average(i, loss):
            schedule.step()
            ema.update_parameters(model)

        model, optimizer, step = ordinary(behind=average)
        ema = AveragedModel(model)
        schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        return step, lambda: [*numbers(model, ema), *schedule.get_last_lr()]

    alike(make, 2)


@pytest.mark.filterwarnings("ignore:compile")  # it may run as it is
def test_a_scale_that_is_updated_before_the_next_loss():
    def trained(compiled):
        genesis.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = optim.SGD(model.parameters(), lr=0.05)
        scaler = genesis.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

        def step(x):
            scaler.step(optimizer)
            scaler.update()
            scaler.scale((model(x) * x).mean()).backward()

        scaler.scale(model(genesis.ones(6, 4)).mean()).backward()
        run = genesis.compile(step) if compiled else step
        for k in range(5):
            run(genesis.full((6, 4), k + 1.0))
        return [model.bias.grad.tolist(), model.weight.tolist(), scaler.get_scale()]

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


class Lion(optim.Optimizer):
    """As programs write it (Chen et al. 2023)."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @genesis.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                lr, (b1, b2), state = group["lr"], group["betas"], self.state[p]
                if len(state) == 0:
                    state["mean"] = genesis.zeros_like(p)
                p.data.mul_(1 - lr * group["weight_decay"])
                update = state["mean"].clone().mul_(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(update, alpha=-lr)
                state["mean"].mul_(b2).add_(p.grad, alpha=1 - b2)


class OwnAdam(optim.Adam):
    """Whose steps are this package's: it asks for the learning rate when the step is made."""


@pytest.mark.parametrize("kind", [Lion, OwnAdam])
def test_the_learning_rate_of_a_programs_own_optimizer(kind):
    def make():
        model = nn.Linear(4, 1)
        optimizer = kind([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.02}], lr=0.05)

        def step(x, y, i):
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] *= 0.75
            optimizer.step()
            return loss

        return step, lambda: [*numbers(model), *[group["lr"] for group in optimizer.param_groups]]

    if kind is Lion:
        alike(make, 2)
        return
    expected, state, _ = trained(make, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may be not compiled, and is right
        genesis.manual_seed(0)
        step, now = make()
        run = genesis.compile(step)
        losses = [run(genesis.randn(8, 4), genesis.randn(8, 1), i).item() for i in range(CALLS)]
    assert losses == pytest.approx(expected, rel=1e-5) and now() == pytest.approx(state, rel=1e-5)


def test_the_mode_of_a_model_is_set_and_a_loss_is_returned_as_a_number():
    def make():
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def train(x, y):
            model.train()
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return float(loss)

        @genesis.no_grad()
        def score(x, y):
            model.eval()
            return F.mse_loss(model(x), y).item()

        return model, train, score

    results = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        model, train, score = make()
        if compiled:
            train, score = genesis.compile(train), genesis.compile(score)
        numbers_of = []
        for _ in range(4):
            x, y = genesis.randn(8, 4), genesis.randn(8, 1)
            numbers_of += [train(x, y), model.training, score(x, y), model.training]
        results.append(numbers_of)
    assert results[1] == pytest.approx(results[0], rel=1e-5)
    assert all(type(x) in (float, bool) for x in results[1])
    assert "not compiled" not in train.explain() and "not compiled" not in score.explain()


FUNCTIONS = {
    "a factor": lambda x, i: x * (0.5 * (i + 1)),
    "a cosine": lambda x, i: x * math.cos(i / 10),
    "a full tensor": lambda x, i: genesis.full((3,), i),
    "a tensor": lambda x, i: genesis.tensor(i) + x.long(),
    "a range": lambda x, i: genesis.arange(i),
    "a sum of whole numbers": lambda x, i: x.long() + i,
    "a quotient": lambda x, i: x.long() // i,
    "compared": lambda x, i: x.long() == i,
    "a limit": lambda x, i: x.long().clamp(max=i),
    "an exponent": lambda x, i: x**i,
    "a bit": lambda x, i: x * (1 << i),
    "of a list": lambda x, i: x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0][i],
    "as text": lambda x, i: x * len("a" * i),
    "by its class": lambda x, i: x * (1 if isinstance(i, int) else 2),
    "rounded": lambda x, i: x * round(i / 3),
    "cut": lambda x, i: x[:i],
    "a number of rows": lambda x, i: x.topk(i)[0],
    "shifted": lambda x, i: x.roll(i),
    "chosen": lambda x, i: genesis.where(x > 0, i, 0),
    "filled in": lambda x, i: x.long().masked_fill(x > 0, i),
    "a norm": lambda x, i: x.norm(i),
    "the larger one": lambda x, i: x * max(i, 3),
    "one of some": lambda x, i: x * (i in (1, 2)),
}


@pytest.mark.filterwarnings("ignore:compile. <lambda> is not compiled")
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_whole_numbers_that_are_computed_with(kind):
    """Whatever is done with one: what each call gives is what the function itself would."""
    function, x = FUNCTIONS[kind], genesis.arange(8.0) - 3.5
    fast = genesis.compile(function)
    for i in (1, 2, 3, 4, 5, 2):
        y, expected = fast(x, i), function(x, i)
        assert y.dtype == expected.dtype and y.shape == expected.shape
        genesis.testing.assert_close(y.double(), expected.double())


def test_a_whole_number_is_returned_as_one():
    fast = genesis.compile(lambda x, i: (x * i, i, i * 2))
    for i in (1, 2, 3, 4):
        y, one, two = fast(genesis.ones(2), i)
        assert (y.tolist(), type(one), one, type(two), two) == ([i, i], int, i, int, 2 * i)
    assert len(fast._recent) == 2
