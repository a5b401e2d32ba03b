"""Ranks that have more steps than others: one that has none left calls what the others call until they have none, either.

Before each step the ranks that have one tell how many they are, by an `all_reduce` of ones; those that have joined add
zeros. While the sum is not 0 these call the main hooks, which do the part of a step that the others wait for.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from genesis.base.errors import ArgumentValueError, DistributedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import wrap
from genesis.distributed.reductions import all_reduce

_MANY = 1000  # steps that a rank may be without before it is told


class Config(NamedTuple):
    """What a `Joinable` knows of the context that it is in."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class JoinHook:
    """What a rank that has no step left does for the others; both methods do nothing unless they are overridden."""

    def main_hook(self) -> None:
        """Once for each step of the others: the collective calls of a step, with nothing of one's own."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once, when no rank has a step left; ``is_last_joiner``: this one was among the last that had one."""


class Joinable(ABC):
    """What takes part in `Join`: its hook, its device and its ranks, and `Join.notify_join_context` before its own calls.

    Classes that have these three names take part without being derived from it, as `DistributedDataParallel` does.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook; of the keywords of `Join` it takes those that it knows."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the calls that `Join` makes."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The ranks, which are the same for all that take part."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        names = "join_hook", "join_device", "join_process_group"
        known = all([any([name in base.__dict__ for base in other.__mro__]) for name in names])
        return known if cls is Joinable else NotImplemented


class Join:
    """In here ranks may have different numbers of steps: those that are done first do their part of the others'.

    Args:
        joinables: models and optimizers, in the order of their calls in a step, of one group
        enable: False: nothing happens
        throw_on_early_termination: end the loop in all ranks when the first has no step left
        kwargs: for the hooks; ``divide_by_initial_world_size=False`` of `DistributedDataParallel`: gradients are means over
            the ranks that have a step

    Raises:
        ValueError: no joinables, or of several groups
        RuntimeError: (at the end) ``throw_on_early_termination``, and a rank had fewer steps than others

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> model = genesis.nn.parallel.DistributedDataParallel(genesis.nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for x in genesis.randn(3 + dist.get_rank(), 4, 2):
    ...         model.zero_grad(); model(x).mean().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: Sequence[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ArgumentValueError(message("Join", "there is nothing that joins", hint="Join([model, optimizer])"))
        for each in joinables:
            if not isinstance(each, Joinable):
                text = f"{type(each).__name__} has no join_hook, join_device and join_process_group"
                raise ArgumentValueError(message("Join", text))
        if len({id(each.join_process_group) for each in joinables}) > 1:
            raise ArgumentValueError(message("Join", "they are of several process groups"))
        self._joinables, self._hooks = list(joinables), [each.join_hook(**kwargs) for each in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        self._group = joinables[0].join_process_group

    def __enter__(self) -> None:
        for i, each in enumerate(self._joinables):
            each._join_config = Config(self._enable, self._throw, i == 0)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self._joinables:
            each._join_config = Config()
        if not self._enable or kind is not None:
            return
        rounds = 0
        while _total(0, self._group):
            if self._throw:
                _total(1, self._group)
                text = f"rank {self._group.rank()} has no step left, and others have"
                raise DistributedError(message("Join", text))
            if rounds == _MANY:
                text = f"rank {self._group.rank()} has {_MANY} steps less than others: they go on with fewer ranks"
                warnings.warn(message("Join", text), stacklevel=2)
            for hook in self._hooks:
                hook.main_hook()
            rounds += 1
        for hook in self._hooks:
            hook.post_hook(rounds == 0)

    @staticmethod
    def notify_join_context(joinable: Any) -> Any:
        """Tell that this rank has a step: the first joinable of the context tells it; a `Work`, or None of the others.

        Raises:
            RuntimeError: ``throw_on_early_termination``, and a rank has no step left
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        work = all_reduce(wrap(np.ones(1, np.float32)), group=joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination and _total(0, joinable.join_process_group):
            text = "another rank has no step left, and all end with it"
            raise DistributedError(message("Join", text, hint="throw_on_early_termination=False"))
        return work


def _total(own: int, group: Any) -> int:
    told = wrap(np.full(1, own, np.float32))
    all_reduce(told, group=group)
    return int(told.item())


explain_all(globals())

__all__ = ["Join", "JoinHook", "Joinable"]
