"""Averages of models over training: stochastic weight averaging (Izmailov et al. 2018), and moving averages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from genesis.base.dtypes import int64
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import expect_function, explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.nn.module import Module
from genesis.ops.creation.outside import tensor
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import whole_number
from genesis.optim.schedules.base import LRScheduler, expect_optimizer, of_groups, one_of
from genesis.optim.schedules.cycles import cosine_between, line_between

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _decay(name: str, decay: Any) -> float:
    if not isinstance(decay, int | float) or isinstance(decay, bool) or not 0.0 <= decay <= 1.0:
        raise ArgumentValueError(message(name, f"decay must be a number in [0, 1], got {decay!r}"))
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A moving average: ``decay`` times the average plus the rest of the parameter.

    >>> import genesis
    >>> get_ema_avg_fn(0.75)(genesis.zeros(1), genesis.ones(1), 3)
    tensor([0.2500])
    """
    _decay("get_ema_avg_fn", decay)
    return no_grad()(lambda averaged, current, count: decay * averaged + (1 - decay) * current)


def get_swa_avg_fn() -> Average:
    """The mean of all.

    >>> import genesis
    >>> get_swa_avg_fn()(genesis.zeros(1), genesis.ones(1), 3)
    tensor([0.2500])
    """
    return no_grad()(lambda averaged, current, count: averaged + (current - averaged) / (count + 1))


def _each(average: Average) -> Averages:
    """An average of tensors, in place, from one of a tensor."""

    @no_grad()
    def of_all(averaged: list[Tensor], current: list[Tensor], count: Any) -> None:
        for a, x in zip(averaged, current, strict=True):
            a.copy_(average(a, x, count))  # type: ignore[attr-defined]

    return of_all


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """`get_ema_avg_fn` for lists of tensors, in place."""
    return _each(get_ema_avg_fn(_decay("get_ema_multi_avg_fn", decay)))


def get_swa_multi_avg_fn() -> Averages:
    """`get_swa_avg_fn` for lists of tensors, in place."""
    return _each(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of those it was shown.

    Args:
        avg_fn: from the average, a parameter and their number so far, the new average; None is the mean
        multi_avg_fn: the same for lists of them, in place
        use_buffers: average buffers, too; otherwise they are copied

    >>> import genesis
    >>> model = genesis.nn.Linear(1, 1, bias=False); averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = genesis.nn.init.constant_(model.weight, value); averaged.update_parameters(model)
    >>> averaged(genesis.ones(1)), averaged.n_averaged
    (tensor([3.], grad_fn=<LinearBackward>), tensor(3))
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Any,  # a module; those that are sequences, too
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError(message("AveragedModel", "avg_fn and multi_avg_fn are both given", hint="one of them"))
        _expect_module("AveragedModel", model)
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        for name, function in (("avg_fn", avg_fn), ("multi_avg_fn", multi_avg_fn)):
            setattr(self, name, function if function is None else expect_function("AveragedModel", name, function))
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take a model into the average; the first one is copied."""
        mine, theirs = self._averaged_of(self.module), self._averaged_of(_expect_module("update_parameters", model))
        theirs = [x.to(a.device) for a, x in zip(mine, theirs, strict=True)]
        active, none_yet = tracer.get(), self.n_averaged == 0
        if none_yet if active is None else active.decide(none_yet):
            _copied(mine, theirs)
        elif mine:
            update = self.multi_avg_fn or _each(self.avg_fn or get_swa_avg_fn())
            update(mine, theirs, self.n_averaged)
        if not self.use_buffers:
            _copied(list(self.module.buffers()), list(model.buffers()))
        self.n_averaged.add_(1)  # type: ignore[attr-defined]

    def _averaged_of(self, model: Module) -> list[Any]:
        parts = itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())
        return [x.detach() for x in parts]


def _copied(to: list[Any], of: list[Any]) -> None:
    for a, x in zip(to, of, strict=True):
        a.copy_(x)


def _expect_module(name: str, model: Any) -> Module:
    if not isinstance(model, Module):
        raise ArgumentError(message(name, f"expected a module, got {type(model).__name__}"))
    return model


@no_grad()
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the statistics of a model's batch normalisations anew, as the mean over all batches.

    Args:
        loader: gives batches, or lists and tuples that begin with one

    >>> import genesis
    >>> model = genesis.nn.BatchNorm1d(1)
    >>> update_bn([genesis.zeros(2, 1), genesis.full((2, 1), 4.0)], model); model.running_mean
    tensor([2.])
    """
    _expect_module("update_bn", model)
    if not isinstance(loader, Iterable):
        raise ArgumentError(message("update_bn", f"expected an iterable of batches, got {type(loader).__name__}"))
    momenta = {m: m.momentum for m in model.modules() if callable(getattr(m, "reset_running_stats", None))}
    if not momenta:
        return
    was_training = model.training
    model.train()
    try:
        for m in momenta:
            m.reset_running_stats()
            m.momentum = None
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    finally:
        for m, momentum in momenta.items():
            m.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From the rate in use to ``swa_lr`` in ``anneal_epochs`` steps, where it stays.

    Args:
        swa_lr: one, or one for each group
        anneal_strategy: "cos" or "linear"

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = SWALR(opt, 0.5, anneal_epochs=2, anneal_strategy="linear"); opt.step(); s.step(); s.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        expect_optimizer("SWALR", optimizer)
        for group, rate in zip(optimizer.param_groups, of_groups("SWALR", "swa_lr", swa_lr, optimizer), strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = one_of("SWALR", "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self.anneal_epochs = whole_number("SWALR", "anneal_epochs", anneal_epochs, 0)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        between = cosine_between if self._anneal_strategy == "cos" else line_between
        before, now = (between(0.0, 1.0, min(1.0, max(0.0, t / max(1, self.anneal_epochs)))) for t in (step - 1, step))
        rates = []
        for group, _ in self._groups():
            target, rate = group["swa_lr"], float(group["lr"])
            start = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        one_of("SWALR.load_state_dict", "anneal_strategy", self._anneal_strategy, ("cos", "linear"))


explain_all(globals())

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
