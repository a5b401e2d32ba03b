"""How functions of a `DTensor` are computed: operands are made to lie as a rule says, then each rank computes its part.

A rule (`rules`) is asked for each dimension of the mesh by itself. ``(call) -> Answer`` sees how operands lie along it, and says how
they are to lie, and how the result does; None where it knows no way, then all ranks compute the whole. Where a result is
not the same in all ranks, what is the same among the operands has gradients that are terms, which are summed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.call.op import REGISTRY
from genesis.core.graph.modes import no_grad
from genesis.core.graph.parameter import Buffer, Parameter
from genesis.core.graph.tensor import Tensor
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.placements import Placement, Replicate, Shard
from genesis.distributed.sharded import Sharding, own_part

_dtensor = Late("genesis.distributed.tensor.dtensor")
_create = Late("genesis.ops.creation.create")

ALL = Replicate()
RULES: dict[str, Callable[[Call], Answer | None]] = {}  # by the name of a function
EXPANDS = frozenset(("expand", "expand_as", "broadcast_to"))
FILLS = frozenset(("zero_", "fill_", "copy_"))
_LEAVES = Tensor, int, float, complex, str, type(None)


class Answer(NamedTuple):
    """What a rule says."""

    wanted: list[Placement]  # of each operand
    out: Placement
    compute: Callable[..., Any] | None = None  # in place of the function, of this rank's parts
    sizes: bool = False  # the function is told sizes, and the result is a reshape of the operand to this rank's


class Call:
    """A call with tensors of a mesh among its arguments; rules are asked for one dimension of it after the other."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func, self.name = func, func.__name__.strip("_") if func.__name__.startswith("__") else func.__name__
        self.leaves, self.structure = tree_flatten((args, kwargs))
        given = [i for i, x in enumerate(self.leaves) if isinstance(x, Tensor)]
        self.indices = given
        kind = _dtensor.Distributed
        tensors = [
            x.without_rows() if isinstance(x, kind) and x._layout.nested else x
            for x in map(self.leaves.__getitem__, given)
        ]
        self.mesh: DeviceMesh = next(x.device_mesh for x in tensors if isinstance(x, kind))
        self.operands = [self._operand(x) for x in tensors]
        self.lies: list[Placement] = []  # along the dimension of the mesh that is asked about
        self.number = 0
        self._shape: Any = None

    def _operand(self, x: Any) -> Any:
        if isinstance(x, _dtensor.Distributed):
            return x
        kind = _dtensor.Distributed
        same = isinstance(x, Parameter | Buffer) or not x.ndim or not (x.is_floating_point() or x.is_complex())
        if not same:
            text, hint = "a DTensor meets an ordinary tensor", "distribute_tensor(x, mesh, [Replicate()])"
            raise ArgumentError(message(self.name, text, [("tensor", x._spec())], hint))
        return kind.around(x._alias(x._node), self.mesh, [ALL] * self.mesh.ndim, x.shape)

    @property
    def members(self) -> Any:
        """The ranks along the dimension of the mesh that is asked about."""
        return self.mesh.get_group(self.number)

    def ask(self, number: int) -> Answer:
        """What is said of a dimension of the mesh."""
        self.number, self.lies = number, [x.placements[number] for x in self.operands]
        rule = None if all([p.is_replicate() for p in self.lies]) else rule_of(self.name)
        said = None if rule is None else rule(self)
        return Answer([ALL] * len(self.operands), ALL) if said is None else said

    def with_tensors(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """The arguments with others in place of the operands."""
        leaves = list(self.leaves)
        for i, x in zip(self.indices, tensors, strict=True):
            leaves[i] = x
        return tree_unflatten(leaves, self.structure)  # type: ignore[return-value]

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """Arguments by their names in the signature, tensors as operands; those that have another name, too, by one of them."""
        args, kwargs = self.with_tensors(self.operands)
        given = dict(inspect.signature(self.func).bind(*args, **kwargs).arguments)
        for theirs, name in (("axis", "dim"), ("keepdims", "keepdim"), ("order", "dims")):
            if given.get(theirs) is not None:
                given[name] = given[theirs]
        return given

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument; where it is not given, the default."""
        return self.arguments.get(name, default)

    def changed(self, **values: Any) -> Callable[..., Any]:
        """The function of this rank's parts, with other arguments."""
        signature = inspect.signature(self.func)

        def compute(*locals_: Any) -> Any:
            args, kwargs = self.with_tensors(locals_)
            bound = signature.bind(*args, **kwargs)
            bound.arguments.update(values)
            return self.func(*bound.args, **bound.kwargs)

        return compute

    def at(self, operand: Any) -> int:
        """The number of an operand."""
        return next(i for i, x in enumerate(self.operands) if x is operand)

    def everywhere(self, x: Any, dim: int) -> bool:
        """Whether each rank has some of a dimension that is divided: there are functions that take no empty tensors."""
        at = Sharding(x.shape[dim], self.members)
        return at.padded * (self.members.size() - 1) < at.length

    @property
    def results(self) -> Any:
        """The result of the whole, without memory."""
        if self._shape is None:
            with no_grad():
                seen = [_create.empty(tuple(x.shape), dtype=x.dtype, device="meta") for x in self.operands]
                args, kwargs = self.with_tensors(seen)
                self._shape = self.func(*args, **kwargs)
        return self._shape

    def dims(self, given: Any, ndim: int) -> list[int]:
        """Dimensions counted from the front; all where none are named."""
        if given is None or isinstance(given, bool) or (isinstance(given, tuple | list) and not given):  # x.var(False)
            return list(range(ndim))
        several = [given] if isinstance(given, int) else given
        return [d % ndim for d in (several if isinstance(several[0], int) else several[0])]  # x.flip((0, 1))


def computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of tensors of a mesh."""
    if kwargs.get("out") is not None:
        others = {name: value for name, value in kwargs.items() if name != "out"}
        met = any([isinstance(x, _dtensor.Distributed) for x in tree_flatten((args, others))[0]])
        value = computed(func, args, others) if met else func(*args, **others)
        return computed(Tensor.copy_, (kwargs["out"], value), {})  # type: ignore[attr-defined]
    alike = _of_parts_alike(func, args, kwargs)
    if alike is not None:
        return alike[0]
    call = Call(func, args, kwargs)
    if _writes(func.__name__):
        return _written(call)
    answers = _answers(call)
    locals_ = _moved(call, answers)
    compute = next((answer.compute for answer in answers if answer.compute is not None), None)
    if compute is None and all([answer.out.is_replicate() for answer in answers]):
        local_args, local_kwargs = call.with_tensors(locals_)
        return tree_map(
            lambda y: _around(y, call, answers, y) if isinstance(y, Tensor) else y, func(*local_args, **local_kwargs)
        )
    if compute is not None:
        results = compute(*locals_)
    elif any([answer.sizes for answer in answers]):
        results = (
            locals_[0].expand(_own(call, answers)) if call.name in EXPANDS else locals_[0].reshape(_own(call, answers))
        )
    else:
        local_args, local_kwargs = call.with_tensors(locals_)
        results = func(*local_args, **local_kwargs)
    whole = call.results
    if isinstance(results, tuple | list):
        parts = [_around(y, call, answers, w) for y, w in zip(results, whole, strict=True)]
        return tree_unflatten(parts, tree_flatten(results)[1])  # a named tuple stays one
    return _around(results, call, answers, whole)


def _of_parts_alike(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What is computed of elements by themselves, of tensors that all lie in the same way: each rank does so with its own.
    None where it is another call.
    """
    if not _by_element(func.__name__.strip("_") if func.__name__.startswith("__") else func.__name__):
        return None
    leaves, arguments = _flattened(args, kwargs)
    several = [x for x in leaves if isinstance(x, Tensor)]
    at = several[0]._layout
    number = [x for x in several if x._layout is None]  # of which gradients would be terms
    same = at is not None and all([x._layout is None or x._layout == at for x in several])
    if not same or any([x.ndim or x.requires_grad for x in number]) or any([p.is_partial() for p in at.placements]):
        return None
    local = [_dtensor.local_of(x) for x in leaves]
    local_args, local_kwargs = arguments(local)
    out = func(*local_args, **local_kwargs)
    if not _writes(func.__name__):
        if out.__class__ is Tensor:
            return (_dtensor.Distributed.of(out, at),)
        return (tree_map(lambda y: _dtensor.Distributed.of(y, at) if isinstance(y, Tensor) else y, out),)
    return (_wrote(several[0], next(x for x in local if isinstance(x, Tensor))),)


def _flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of arguments, and what makes arguments of others; most are leaves themselves."""
    values = [*args, *kwargs.values()]
    if all([isinstance(x, _LEAVES) for x in values]):
        count = len(args)
        return values, lambda leaves: (leaves[:count], dict(zip(kwargs, leaves[count:], strict=True)))
    leaves, structure = tree_flatten((args, kwargs))
    return leaves, lambda others: tree_unflatten(others, structure)


def _by_element(name: str) -> bool:
    """Whether a function, or a write, computes elements by themselves."""
    return name in FILLS or rule_of(name.rstrip("_")) is pointwise


def _writes(name: str) -> bool:
    if name.startswith("__"):
        return name.startswith(("__i", "__set")) and name not in ("__invert__", "__index__")
    return name.endswith("_")


def _answers(call: Call) -> list[Answer]:
    """What is said of each dimension of the mesh; along one of them at most something else is computed than the function."""
    answers: list[Answer] = []
    for number in range(call.mesh.ndim):
        said = call.ask(number)
        special = said.compute is not None or said.sizes
        again = special and any([each.compute is not None for each in answers])
        answers.append(Answer([ALL] * len(call.operands), ALL) if again else said)
    return answers


def _moved(call: Call, answers: Sequence[Answer]) -> list[Any]:
    """This rank's parts of the operands, lying as they are wanted."""
    parts = []
    for i, x in enumerate(call.operands):
        to = [answer.wanted[i] for answer in answers]
        terms = [not answer.out.is_replicate() and answer.wanted[i].is_replicate() for answer in answers]
        parts.append(x.lying(call.mesh, to, terms))
    return parts


def _around(y: Any, call: Call, answers: Sequence[Answer], whole: Any) -> Any:
    return _dtensor.Distributed.around(y, call.mesh, [answer.out for answer in answers], whole.shape)


def _own(call: Call, answers: Sequence[Answer]) -> list[int]:
    """The shape of this rank's part of the result."""
    shape = list(call.results.shape)
    for number, answer in enumerate(answers):
        if answer.out.is_shard():
            shape[answer.out.dim] = Sharding(shape[answer.out.dim], call.mesh.get_group(number)).rows  # type: ignore[attr-defined]
    return shape


def _written(call: Call) -> Any:
    """A write: of elements by themselves this rank writes its own, of all else the whole is written, and this rank keeps its
    part.
    """
    target, given = call.operands[0], call.leaves[call.indices[0]]
    lies, local = target.placements, given.to_local()
    if _by_element(call.name) and not given._layout.nested and not any([p.is_partial() for p in lies]):
        wanted = []
        for number, placement in enumerate(lies):
            call.number, call.lies = number, [placement, *[x.placements[number] for x in call.operands[1:]]]
            said = pointwise(call, target.shape) if placement.is_shard() else None
            wanted.append(Answer([ALL] * len(call.operands), ALL) if said is None else said)
        args, kwargs = call.with_tensors([local, *_moved(call, wanted)[1:]])
        call.func(*args, **kwargs)
    else:
        whole = target.full_tensor()
        others = [x.lying(call.mesh, [ALL] * call.mesh.ndim) for x in call.operands[1:]]
        args, kwargs = call.with_tensors([whole, *others])
        call.func(*args, **kwargs)
        local.copy_(own_part(whole, given._layout).to_local())  # type: ignore[attr-defined]
    _wrote(given, local)
    return None if call.func.__name__ == "__setitem__" else given


def _wrote(given: Any, local: Any) -> Any:
    """A tensor of the mesh of which this rank's part was written to."""
    given._array, given._node, given._counter = local._array, local._node, local._counter
    return given


def pointwise(call: Call, shape: Any = None) -> Answer | None:
    """Element by element, operands broadcast against each other."""
    shapes = [tuple(x.shape) for x in call.operands]
    out = (
        tuple(call.results.shape if not isinstance(call.results, tuple) else call.results[0].shape)
        if shape is None
        else tuple(shape)
    )
    dim = next(
        (p.dim + len(out) - len(s) for p, s in zip(call.lies, shapes, strict=True)
         if isinstance(p, Shard) and s[p.dim] == out[p.dim + len(out) - len(s)]), None,
    )  # fmt: skip
    if dim is None:
        return None

    def wanted(s: tuple[int, ...]) -> Placement:
        own = dim - (len(out) - len(s))
        return Shard(own) if own >= 0 and s[own] == out[dim] and out[dim] != 1 else ALL

    return Answer([wanted(s) for s in shapes], Shard(dim))


def rule_of(name: str) -> Callable[[Call], Answer | None] | None:
    """The rule of a function, if there is one."""
    if name in RULES:
        return RULES[name]
    op = REGISTRY.get(name)
    return pointwise if op is not None and op.kind.aligned else None
