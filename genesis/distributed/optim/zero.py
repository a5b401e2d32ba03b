"""An optimizer of which each rank does a part: the first stage of ZeRO (Rajbhandari et al. 2020).

All ranks have all parameters and, from DistributedDataParallel, the same gradients. Each parameter belongs to one rank,
which alone has its state, takes its step, and sends it to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, DistributedError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.refusal import expect_function, explain_all
from genesis.core.call.writes import bump
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.distributed import pieces
from genesis.distributed.algorithms.join import Config, Join, JoinHook
from genesis.distributed.calls import Work
from genesis.distributed.groups import get_group_rank, group_of
from genesis.distributed.memory import spread
from genesis.distributed.movement import broadcast
from genesis.distributed.nn.ops import broadcast_from
from genesis.distributed.objects import all_gather_object, gather_object
from genesis.optim.hooks import every
from genesis.optim.lbfgs import LBFGS
from genesis.optim.optimizer import Optimizer
from genesis.optim.state import checked, packed

_parts = Late("genesis.distributed.checkpoint.parts")
_ALONE = 2**16  # bytes from which a parameter is sent by itself, from its own memory; smaller ones are sent together


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is divided among the ranks: each keeps that of about $1/n$ of the parameters' elements.

    A step updates this rank's parameters by ``optimizer_class``, then all ranks get them from each other. Gradients must
    be the same in all ranks, as those of `genesis.nn.parallel.DistributedDataParallel` are. A parameter belongs to one
    rank as a whole: the next largest goes to the rank that has least.

    Args:
        params: tensors, or groups (dicts with "params" and options of their own)
        optimizer_class: what updates parameters, one after the other
        process_group: the ranks; all of them by default
        parameters_as_bucket_view: make the parameters of each rank views of one piece of memory, which is sent as it is
        overlap_with_ddp: not supported, the steps of DistributedDataParallel end before this one begins
        defaults: options of ``optimizer_class``

    Raises:
        TypeError: ``optimizer_class`` is not a class of optimizers
        RuntimeError: there is no process group; (in a step) ranks have gradients of different parameters
        NotImplementedError: ``overlap_with_ddp``, or an optimizer that looks at all parameters at once

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group()
    >>> w = genesis.nn.Parameter(genesis.ones(2)); w.sum().backward()
    >>> ZeroRedundancyOptimizer([w], genesis.optim.SGD, lr=0.5).step(); w.detach()
    tensor([0.5000, 0.5000])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        _check_class(optimizer_class)
        if overlap_with_ddp:
            text = "a step cannot begin while DistributedDataParallel still combines gradients"
            raise UnsupportedError(message(_NAME, text, hint="overlap_with_ddp=False"))
        self.process_group, self._join_config = group_of(_NAME, process_group), Config()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._hooks, self._gathered = {}, list[list[Any]]()
        self._owner: dict[int, int] = {}  # which rank a parameter belongs to, by its id
        self._loads = [0] * self.process_group.size()  # elements of each rank
        self._memory: list[Tensor] = []  # where parameters are views: the memory that is sent, and by whom
        self._memory_of: list[int] = []
        self.optim = optimizer_class(params, **defaults)
        self.defaults, self.param_groups, self.state = self.optim.defaults, self.optim.param_groups, self.optim.state
        for group in self.param_groups:
            self._divide(group["params"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, and divide them among the ranks.

        Raises:
            TypeError, ValueError: as the optimizer itself
        """
        self.optim.add_param_group(param_group)
        self._divide(self.param_groups[-1]["params"])

    # ---- whose parameters they are

    def _divide(self, params: Sequence[Tensor]) -> None:
        for p in sorted(params, key=lambda p: -p.numel()):
            rank = self._loads.index(min(self._loads))
            self._owner[id(p)] = rank
            self._loads[rank] += p.numel()
        if self.parameters_as_bucket_view and len(self._loads) > 1:
            for rank, alike in self._by_rank([p for p in params if p.numel()]):
                self._join(rank, alike)

    def _join(self, rank: int, params: Sequence[Tensor]) -> None:
        """Make parameters of one rank and dtype views of one piece of memory."""
        flat = _flat(params)
        begin = 0
        for p in params:
            p.data = wrap(pieces.shaped(pieces.rows(flat, begin, begin + p.numel()), p._array.shape))
            begin += p.numel()
        self._memory.append(wrap(flat))
        self._memory_of.append(rank)

    def _by_rank(self, params: Sequence[Tensor]) -> list[tuple[int, list[Tensor]]]:
        """Parameters of the same rank, dtype and device, in an order that all ranks have."""
        parts: dict[Any, list[Tensor]] = {}
        for p in params:
            parts.setdefault((self._owner[id(p)], p._array.dtype, p.device), []).append(p)
        return [(rank, alike) for (rank, *_), alike in parts.items()]

    def _mine(self, param: Tensor) -> bool:
        return self._owner[id(param)] == self.process_group.rank()

    def _all(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    # ---- a step

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and get those of the others; ``closure`` evaluates the loss again first."""
        told = Join.notify_join_context(self)
        if told is not None:
            told.wait()
        loss = None
        if closure is not None:
            expect_function(f"{_NAME}.step", "closure", closure)
            with enable_grad():
                loss = closure()
        self._step(**kwargs)
        return loss

    def _step(self, **kwargs: Any) -> None:
        changed = [p for p in self._all() if p.requires_grad or p.grad is not None]
        self._gathered.clear()
        with _without_gradients([p for p in changed if not self._mine(p)]):
            self.optim.step(**kwargs)
        if len(self._loads) > 1:
            if tracer.get() is not None:
                self._send_in_a_trace(changed)
            elif self._memory:
                self._send_memory(changed)
            else:
                self._send(changed)

    def _send(self, params: Sequence[Tensor]) -> None:
        """Broadcast parameters from their ranks; all are on their way before the first is waited for."""
        works: list[tuple[Work | None, Any, list[Tensor]]] = []
        for rank, alike in self._by_rank([p for p in params if p.numel()]):
            large = [p for p in alike if p._array.nbytes >= _ALONE and p.is_contiguous()]  # type: ignore[attr-defined]
            for p in large:
                works.append((self._broadcast(p.detach(), rank), None, [p]))
            known = set(map(id, large))
            small = [p for p in alike if id(p) not in known]
            if small:
                flat = _flat(small)
                works.append((self._broadcast(wrap(flat), rank), flat, small))
        for work, flat, together in works:
            if work is not None:
                work.wait()
            if flat is not None and not self._mine(together[0]):
                spread(flat, together)

    def _broadcast(self, x: Tensor, rank: int) -> Work | None:
        return broadcast(x, group=self.process_group, group_src=rank, async_op=True)

    def _send_memory(self, params: Sequence[Tensor]) -> None:
        works = [self._broadcast(x, rank) for x, rank in zip(self._memory, self._memory_of, strict=True)]
        for work in works:
            if work is not None:
                work.wait()
        for p in params:
            if not self._mine(p):
                bump(p, "step")

    def _send_in_a_trace(self, params: Sequence[Tensor]) -> None:
        for p in params:
            p.copy_(broadcast_from(p.detach(), self._owner[id(p)], self.process_group.key))  # type: ignore[attr-defined]

    # ---- ranks that have more steps than others

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank that has no step left does: it updates the parameters that belong to it all the same."""
        return _StepOfOthers(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return self._all()[0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    # ---- saved and loaded

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to one, which may then ask for `state_dict`; all ranks call it.

        Args:
            to: the rank, as it is in the world
        """
        root = get_group_rank(self.process_group, to)
        numbered = enumerate(self._all())
        mine = [[number, packed(self.state[p])] for number, p in numbered if self._mine(p) and p in self.state]
        here = self.process_group.rank() == root
        states: list[Any] | None = [None] * len(self._loads) if here else None
        gather_object(mine, states, group=self.process_group, group_dst=root)
        self._gathered[:] = states or ()

    def state_dict(self) -> dict[str, Any]:
        """State and options of all ranks, as the optimizer itself has them; at the rank that they were brought to.

        Raises:
            RuntimeError: `consolidate_state_dict` was not called since the last step
        """
        if not self._gathered and len(self._loads) > 1:
            text = f"the states of other ranks are not at rank {self.process_group.rank()}"
            raise DistributedError(
                message(f"{_NAME}.state_dict", text, hint="consolidate_state_dict(to=rank) in all ranks")
            )
        for hook in every("state_dict_pre", self._hooks):
            hook(self)
        result = self.optim.state_dict()
        states = {number: state for part in self._gathered for number, state in part if state}
        result["state"] = dict(sorted({**result["state"], **states}.items()))
        for hook in every("state_dict_post", self._hooks):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def state_in_parts(self) -> dict[str, Any]:
        """State and options of all ranks, of which this one has the tensors of its parameters: what snapshots save. All
        ranks call it.
        """
        numbered = enumerate(self._all())
        mine = {number: packed(self.state[p]) for number, p in numbered if self._mine(p) and p in self.state}
        looks = [[number, [[key, _look(v)] for key, v in state.items()]] for number, state in mine.items()]
        said: list[Any] = [None] * len(self._loads)
        all_gather_object(said, looks, self.process_group)
        states = {
            number: {key: _part(mine.get(number, {}).get(key), *look) for key, look in values}
            for number, values in sorted([each for rank in said for each in rank], key=lambda each: each[0])
        }
        return {**self.optim.state_dict(), "state": states}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over this rank's part of a state of all ranks, which all of them give.

        Raises:
            TypeError, ValueError: as the optimizer itself
        """
        for hook in every("load_state_dict_pre", self._hooks):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        order = checked(self.optim, state_dict)
        mine = {number for number, p in zip(order, self._all(), strict=True) if self._mine(p)}
        states = {key: state for key, state in state_dict["state"].items() if int(key) in mine}
        self.optim.load_state_dict({**state_dict, "state": states})
        self.state = self.optim.state
        self._gathered.clear()
        for hook in every("load_state_dict_post", self._hooks):
            hook(self)


_NAME = "ZeroRedundancyOptimizer"


class _StepOfOthers(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    @no_grad()
    def main_hook(self) -> None:
        self.optimizer._step()


def _flat(params: Sequence[Tensor]) -> Any:
    """The elements of parameters one behind the other."""
    return pieces.joined([p.detach().reshape(-1)._array for p in params])  # type: ignore[attr-defined]


def _look(value: Any) -> list[Any]:
    """What other ranks have to know of a value in a state: of a tensor its shape and dtype."""
    return [list(value.shape), value.dtype.name] if isinstance(value, Tensor) else [None, value]


def _part(own: Any, shape: list[int] | None, other: Any) -> Any:
    """The value where it is here, or nothing of a tensor that looks so."""
    if shape is None:
        return other
    return _parts.Part(wrap(np.empty(0, dtypes.as_np(other))) if own is None else own, shape, 0)


def _check_class(given: Any) -> None:
    if not isinstance(given, type) or not issubclass(given, Optimizer):
        text = f"optimizer_class is {given!r}, expected a class of optimizers"
        raise ArgumentError(message(_NAME, text, hint="genesis.optim.Adam"))
    if issubclass(given, LBFGS):
        text = f"{given.__name__} looks at all parameters at once, and a rank has the state of some"
        raise UnsupportedError(message(_NAME, text, hint=f"{given.__name__} itself"))


@contextmanager
def _without_gradients(params: Sequence[Tensor]) -> Iterator[None]:
    """In here these parameters have no gradients, so that an optimizer leaves them as they are."""
    kept = [(p, p.grad) for p in params]
    try:
        for p in params:
            p.grad = None
        yield
    finally:
        for p, grad in kept:
            p.grad = grad


explain_all(globals())
