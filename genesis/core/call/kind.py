"""What a kind of ops is: all that its ops have in common, as one object; `op.kind` is an instance.

A kind says, with methods that are asked by the call path, by the layers of transforms, by traces and by the matrix:

================  ======================================================================================
`differentiable`  whether an op has gradients
`infer`           the specs of an op's results, from its arguments
`strides`         how results without data are laid out
`jvp`             the op's rule of forward mode; None: its gradient rule, transposed
`batch`           the op's rule for many samples at once; None: one sample after the other
================  ======================================================================================

How an op is written in code is not asked of its kind: traced programs are run call by call. What there is for a compiler
to read are the expressions of elementwise ops (`core/call/scalars.py`).

The kinds themselves, and the functions that declare their ops, are in `core/call/kinds/`, a file each.

A rule of forward mode is ``(op, args, tangents, out) -> tangent``: the arguments without tangents, one tensor or None
for each, the result. A rule for samples is ``(b, *args) -> result``: ``b`` is a `Batch` (`core/layers/batches.py`),
those tensors that differ from sample to sample (``b.batched`` says which) have the hidden dimension in front, and so
has the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.arrays.spec import Spec, spec_of

if TYPE_CHECKING:
    from genesis.core.call.op import Op

Rule = Callable[..., Any]
KINDS: dict[str, Kind] = {}


class Kind(str):
    """A kind of ops. It is its name, too: what is printed, and what it is found by in `KINDS`."""

    composed = False  # functions of other ops: everything about them follows from those
    aligned = False  # operands broadcast against each other, element by element; gradients are summed back
    views = False  # the result may share the memory of the first operand
    packed = False  # results are contiguous, whatever order NumPy chooses for them
    linear = False  # results are linear in the operands together
    moves = False  # results may be on another device than the operands
    copies = False  # operands without a gradient are saved as copies: they may be written to before backward
    fused = False  # kernels of composites, which take arrays out of tensors themselves, and other numbers as they are
    draws = False  # random numbers, from a stream that is the first argument
    repeatable = True  # the same arguments give the same results

    def __new__(cls, name: str) -> Kind:
        assert name not in KINDS, f"kind {name!r} is there already"
        KINDS[name] = kind = super().__new__(cls, name)
        return kind

    @property
    def trace(self) -> str:
        """What a trace makes of such an op."""
        return "composed" if self.composed else "view" if self.views else "node"

    def differentiable(self, op: Op) -> bool:
        """Whether an op has gradients."""
        return self.composed or bool(op.vjp)

    def infer(self, op: Op, args: Sequence[Any]) -> Any:
        """The specs of the results, from arguments with arrays or specs for tensors."""
        specs = list(args)
        if op.variadic:
            specs[0] = [spec_of(x) for x in args[0]]
        else:
            for i in op.tensors:
                if args[i] is not None:
                    specs[i] = spec_of(args[i])
        return op.infer(*specs)  # type: ignore[misc]

    def strides(self, op: Op, operands: Sequence[Any], result: Spec) -> tuple[int, ...] | None:
        """The strides of a result without data, in elements; None: contiguous."""
        return None

    def jvp(self, op: Op) -> Rule | None:
        """The op's rule of forward mode, where it has none of its own."""
        return linear if self.linear else None

    def batch(self, op: Op) -> Rule | None:
        """The op's rule for samples, where it has none of its own."""
        return None


class Along(Kind):
    """A kind of ops of one tensor that name its dimensions: many samples are one larger tensor."""

    def batch(self, op: Op) -> Rule | None:
        return shift_dims if dims_of(op) and len(op.tensors) == 1 else None


def kind_named(name: str) -> Kind:
    """The kind of a name; one that nobody declared has no rules: `Kind` says what that means."""
    return KINDS[name] if name in KINDS else Kind(name)


def called(name: str) -> Callable[[Rule], Rule]:
    """Decorate a rule with what the matrix of ops prints of it."""

    def decorate(rule: Rule) -> Rule:
        rule.words = name  # type: ignore[attr-defined]
        return rule

    return decorate


# ---- rules that several kinds have


@called("linear")
def linear(op: Op, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """Linear in all operands together: the op itself, on the tangents."""
    if op.variadic:
        pieces = [
            x._zeros(tuple(x._array.shape), x._array.dtype) if t is None else t
            for x, t in zip(args[0], tangents[0], strict=True)
        ]
        return op.run(op, (pieces, *args[1:]))
    several = len(op.vjp) > 1
    given = [
        t if t is not None else a._zeros(tuple(a._array.shape), a._array.dtype) if several and name in op.vjp else a
        for name, a, t in zip(op.signature.parameters, args, tangents, strict=True)
    ]
    return op.run(op, tuple(given))


@called("multilinear")
def multilinear(op: Op, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """Linear in each operand: a sum over the operands, each in turn replaced by its tangent."""
    total = None
    indices = range(len(args[0])) if op.variadic else op.tensors
    for i in indices:
        t = tangents[0][i] if op.variadic else tangents[i]
        if t is None:
            continue
        changed = ([*args[0][:i], t, *args[0][i + 1 :]], *args[1:]) if op.variadic else (*args[:i], t, *args[i + 1 :])
        part = op.run(op, changed)
        total = part if total is None else total + part
    return total


@called("as it is")
def as_it_is(b: Any, *args: Any) -> Any:
    """For ops that treat leading dimensions alike anyway."""
    return b.run(*args)


_DIMS = ("dim", "dims", "dim0", "dim1", "dim2")


def dims_of(op: Op) -> list[int]:
    """The indices of parameters that name dimensions."""
    return [i for i, name in enumerate(op.signature.parameters) if name in _DIMS]


@called("dims + 1")
def shift_dims(b: Any, x: Any, *args: Any) -> Any:
    """All dimensions that arguments name are one further."""
    ndim = x.ndim - 1
    if not ndim:  # a sample without dimensions: it is given one, and loses it again
        x = x.unsqueeze(1)
    shifted = list(args)
    for i in dims_of(b.op):
        moved = _shift(args[i - 1], max(ndim, 1))
        # all dimensions of a sample that has none
        shifted[i - 1] = (1,) if moved == () and not ndim and b.op.kind.packed else moved
    out = b.run(x, *shifted)
    if ndim:
        return out
    specs = b.op.infer(b.specs[0], *args)
    if isinstance(out, tuple | list):
        return tuple(y.reshape(b.size, *s.shape) for y, s in zip(out, specs, strict=True))
    return out.reshape(b.size, *specs.shape)


def _shift(dim: Any, ndim: int) -> Any:
    if dim is None:
        return tuple(range(1, ndim + 1))
    if hasattr(dim, "__index__"):
        return int(dim) % ndim + 1
    return tuple(int(d) % ndim + 1 for d in dim)
