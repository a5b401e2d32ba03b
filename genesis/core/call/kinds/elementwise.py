"""Elementwise ops: each element of the result depends on those of the operands at its position, after broadcasting.

So, of all of them: shapes broadcast, and the engine sums gradients back over what was broadcast; the factor of a
gradient rule is the factor of forward mode; samples are computed together once they have equally many dimensions
behind the hidden one; results are laid out as NumPy lays them out, in the order of the operands' memory; and the
NumPy meaning, run on a symbol, is a scalar expression (`core/call/scalars.py`).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, spec_of
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import DeviceError, DTypeError, ShapeError, message
from genesis.core.call import dispatch, inplace_methods, promotion
from genesis.core.call.fast import binary_path, reversed_path, unary_path
from genesis.core.call.generated import LateSignature
from genesis.core.call.kind import Kind, Rule, called
from genesis.core.call.kinds.declare import Rules, finish
from genesis.core.call.op import Fail, Op, Samples, positional, prepare_record, public_function
from genesis.core.call.strides import strides_of_operands
from genesis.core.graph.tensor import Tensor


class Elementwise(Kind):
    """Element by element, on operands that broadcast."""

    aligned = True

    def infer(self, op: Op, args: Sequence[Any]) -> Any:
        # what follows them in the signature does not matter
        operands = args if op.plain else [args[i] for i in op.tensors]
        return op.infer(*[spec_of(x) if hasattr(x, "shape") else x for x in operands])  # type: ignore[misc]

    def strides(self, op: Op, operands: Sequence[Any], result: Spec) -> tuple[int, ...] | None:
        return strides_of_operands([x for x in operands if isinstance(x, Spec) and len(x.shape)], result)

    def jvp(self, op: Op) -> Rule | None:
        return same_factor if op.holomorphic else None

    def batch(self, op: Op) -> Rule | None:
        return aligned


ELEMENTWISE = Elementwise("elementwise")


@called("same factor")
def same_factor(op: Op, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """The gradient rule of an operand multiplies by the derivative, and so does forward mode."""
    values = (*args, out)
    total = None
    for t, (fn, picks) in zip(tangents, _factors(op), strict=True):
        if t is None or fn is None:
            continue
        part = fn(t, *[values[index]._array.shape if shape else values[index] for index, shape in picks])
        total = part if total is None else total + part
    return total


@functools.cache
def _factors(op: Op) -> list[tuple[Any, list[tuple[int, bool]]]]:
    """For each parameter its gradient rule, and where that finds what it asks for by name: an index, and whether only
    its shape.
    """
    names = [*op.signature.parameters, "out"]
    picked: list[tuple[Any, list[tuple[int, bool]]]] = []
    for name in names[:-1]:
        fn = op.vjp.get(name)
        needs = [] if fn is None else list(inspect.signature(fn).parameters)[1:]
        picked.append(
            (
                fn,
                [
                    (names.index(n), False) if n in names else (names.index(n.removesuffix("_shape")), True)
                    for n in needs
                ],
            )
        )
    return picked


@called("aligned")
def aligned(b: Any, *args: Any) -> Any:
    """Operands get the same number of dimensions behind the hidden one."""
    op = b.op
    tensors = args if op.plain else [args[i] for i in op.tensors]
    ndim = max([x.ndim - flag for x, flag in zip(tensors, b.batched, strict=True) if isinstance(x, Tensor)])
    operands = [
        b.padded(x, flag, ndim) if isinstance(x, Tensor) else x for x, flag in zip(tensors, b.batched, strict=True)
    ]
    kinds = [x._array.dtype for x in operands if isinstance(x, Tensor)]
    wanted = None
    # a sample of no dimensions gives way to others in promotion, a batch of them would not
    if len(kinds) > 1 and any([k is not kinds[0] for k in kinds]):
        wanted = op.infer(*b.specs).dtype
        dtypes_ = promotion.compute_dtypes(op, b.specs)
        operands = [
            x.to(d) if isinstance(x, Tensor) and d is not None and x._array.dtype is not d else x
            for x, d in zip(operands, dtypes_, strict=True)
        ]
    if op.plain:
        out = op.call(*operands) if isinstance(operands[0], Tensor) else b.run(*operands)
        return out if wanted is None or out._array.dtype is wanted else out.to(wanted)
    full = list(args)
    for i, x in zip(op.tensors, operands, strict=True):
        full[i] = x
    out = b.run(*full)
    return out if wanted is None or out._array.dtype is wanted else out.to(wanted)


# ---- shapes, devices and dtypes


def broadcast(name: str, specs: Sequence[Spec]) -> tuple[int, ...]:
    """The common shape of operands, or an error that names the sizes that do not fit."""
    shape: list[int] = []
    for spec in specs:
        mine = list(spec.shape)
        extra = len(mine) - len(shape)
        shape = [1] * extra + shape if extra > 0 else shape
        mine = [1] * -extra + mine if extra < 0 else mine
        for i, (m, n) in enumerate(zip(shape, mine, strict=True)):
            if m != n and 1 not in (m, n):
                raise ShapeError(
                    message(
                        name,
                        f"shapes cannot be broadcast together, sizes {m} and {n} differ in dim {i - len(shape)}",
                        operands=_operands(specs),
                        hint="unsqueeze, expand or transpose one of them",
                    )
                )
            shape[i] = n if m == 1 else m
    return tuple(shape)


def common_device(name: str, specs: Sequence[Spec]) -> Any:
    """The one device of the operands; 0-d CPU tensors go along with any."""
    device = CPU
    for spec in specs:
        if spec.device == CPU and not spec.shape:
            continue
        if spec.device != CPU:
            if device != CPU and device != spec.device:
                raise DeviceError(
                    message(name, f"operands are on {device} and {spec.device}", operands=_operands(specs))
                )
            device = spec.device
    if device != CPU and any(s.device == CPU and s.shape for s in specs):
        raise DeviceError(
            message(
                name, f"operands are on {CPU} and {device}", operands=_operands(specs), hint="move one with .to(device)"
            )
        )
    return device


def _operands(specs: Sequence[Spec]) -> list[tuple[str, Spec]]:
    names = ["input", "other", "third", "fourth"] if len(specs) <= 4 else [str(i) for i in range(len(specs))]
    return list(zip(names, specs, strict=False))


def _infer_elementwise(op: Op) -> Callable[..., Spec]:
    def infer(*operands: Any) -> Spec:
        specs = [x for x in operands if isinstance(x, Spec)]
        check_kinds(op, operands)
        return Spec(broadcast(op.name, specs), result_dtype(op, operands), common_device(op.name, specs))

    return infer


def result_dtype(op: Op, operands: Sequence[Any]) -> Any:
    if callable(op.result):
        return op.result(operands, "result")
    if op.result == "bool":
        return np.dtype(np.bool_)
    dtype = dtypes.result_np_dtype([x for x in operands if x is not None])
    if op.result == "float" and dtype.kind in "biu":
        return dtypes.as_np(dtypes.get_default_dtype())
    return dtype


def check_kinds(op: Op, operands: Sequence[Any]) -> None:
    """Refuse dtypes that the op has no meaning for; ``op.dtypes`` says which kinds it takes."""
    kind = max([dtypes.of_operand(x) for x in operands if x is not None], key=lambda kind: kind.category)
    if "bifc"[kind.category] not in op.dtypes:
        known = {"f": "floating", "c": "complex", "i": "integer", "b": "bool"}
        raise DTypeError(
            message(op.name, f"{kind} is not supported, it takes {', '.join(known[c] for c in op.dtypes)} tensors",
                    operands=_operands([x for x in operands if isinstance(x, Spec)]), hint="convert with .to(dtype)")
        )  # fmt: skip


@functools.cache
def _signature(*names: str) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, annotation="Array") for name in names])


def _elementwise_doc(name: str, doc: str, example: str, op_dtypes: str, result: Any, differentiable: bool) -> str:
    """The documentation that all elementwise ops share, around what an op says of itself."""
    known = {"f": "floating", "c": "complex", "i": "integer", "b": "bool"}
    note = {"float": "; integers give the default floating dtype", "bool": "; the result is bool"}
    kinds = ", ".join(known[c] for c in op_dtypes)
    text = (
        f"{doc}\n\nElement by element, on tensors that broadcast together; {kinds} dtypes{note.get(str(result), '')}."
    )
    if not differentiable:
        text += " Not differentiable: the result never requires grad."
    text += "\n\nRaises:\n    RuntimeError: shapes, dtypes or devices that do not fit\n"
    call, _, answer = example.partition(" -> ")
    call = re.sub(r"\[.*?\](?=, [-\d\[]|$)", lambda m: f"genesis.tensor({m.group()})", call)
    return text + f"\n>>> import genesis\n>>> genesis.{name}({call})\ntensor({answer})\n"


def _record(
    name: str, parameters: tuple[str, ...], meaning: Callable[..., Any], kernel: Any, doc: str, **options: Any
) -> Op:
    """The record of an op of one or two operands, before its public function is made."""
    op = Op(name, ELEMENTWISE, _signature(*parameters), _documented(meaning, doc), **options)
    op.kernel = meaning if kernel is None else kernel
    op.infer, op.run = _infer_elementwise(op), dispatch.elementwise
    prepare_record(op)
    return op


def unary(
    name: str,
    meaning: Callable[..., Any],
    doc: str,
    example: str,
    *,
    vjp: Callable[..., Any] | None = None,
    result: Any = "same",
    dtypes: str = "fcib",
    samples: Samples | None = None,
    fails: tuple[Fail, ...] = (),
    autocast: str = "promote",
    holomorphic: bool = True,
    operators: Iterable[str] = (),
    inplace: bool = True,
    torch_name: str | None = None,
    kernel: Callable[..., Any] | None = None,
    path: str | None = None,
    strides: Callable[..., Any] | None = None,
    keeps_floats: bool = False,
    halves: str = "",
) -> Callable[..., Any]:
    """Declare ``name(input, *, out=None)``, applied to each element.

    ``example`` is ``arguments -> result``, with lists standing for tensors.
    ``result`` says how the result's dtype follows: "same", "float" (integers become the default
    floating dtype) or "bool". ``vjp(g, ...)`` is the gradient, by the names `input` and `out`.
    ``path`` is where an op lives that is not a top-level name, and no method. ``keeps_floats``: where a function says
    how dtypes follow, that floats keep theirs. ``halves="exact"``: the rule gives numbers that it is given, or zeros, so
    that 16-bit floats are none the wider for it.
    """
    rules = {} if vjp is None else {"input": vjp}
    doc = _elementwise_doc(path or name, doc, example, dtypes, result, vjp is not None)
    op = _record(name, ("input",), meaning, kernel, doc, vjp=rules, samples=samples, fails=fails, dtypes=dtypes,
                 autocast=autocast, holomorphic=holomorphic, result=result, torch_name=torch_name, strides=strides,
                 halves=halves)  # fmt: skip
    fast = keeps_floats or result == "same" or result == "float" or result == "bool"
    op.call = unary_path(op) if fast else public_function(
        op, "    return elementwise(_op, ARGS, out)\n", {"elementwise": dispatch.elementwise}, "out=None"
    )  # fmt: skip
    return finish(op, operators, inplace and result != "bool", path is None)


def binary(
    name: str,
    meaning: Callable[..., Any],
    doc: str,
    example: str,
    *,
    vjp: tuple[Callable[..., Any] | None, Callable[..., Any] | None] | None = None,
    result: Any = "same",
    dtypes: str = "fcib",
    samples: Samples | None = None,
    fails: tuple[Fail, ...] = (),
    autocast: str = "promote",
    holomorphic: bool = True,
    operators: Iterable[str] = (),
    reflected: str | None = None,
    commutes: bool = False,
    inplace: bool | None = None,
    inplace_operator: str | None = None,
    weak_scalars: bool | None = None,
    path: str | None = None,
    torch_name: str | None = None,
    kernel: Callable[..., Any] | None = None,
    second: str = "other",
    halves: str = "",
) -> Callable[..., Any]:
    """Declare ``name(input, other, *, out=None)``, applied to pairs of elements after broadcasting.

    ``vjp`` holds one rule for each operand, by the names `input`, `other` and `out`; a rule gives the
    gradient in the result's shape, summing it back over broadcast axes is the engine's work.
    ``second``: the name of ``other`` for callers. ``halves``: as in `unary`. ``weak_scalars``: the kernel may get a Python number as it is (true of ufuncs: the array's dtype wins).
    """
    rules = {} if vjp is None else {n: r for n, r in zip(("input", "other"), vjp, strict=True) if r is not None}
    doc = _elementwise_doc(path or name, doc, example, dtypes, result, vjp is not None)
    op = _record(name, ("input", "other"), meaning, kernel, doc, vjp=rules, samples=samples, fails=fails, dtypes=dtypes,
                 autocast=autocast, holomorphic=holomorphic, result=result, torch_name=torch_name, halves=halves)  # fmt: skip
    weak = isinstance(op.kernel, np.ufunc) if weak_scalars is None else weak_scalars
    op.call = binary_path(op, weak, second)
    call = finish(op, operators, result != "bool" if inplace is None else inplace, path is None)
    if reflected is not None:
        setattr(Tensor, reflected, call.operator if commutes else reversed_path(op, call))  # type: ignore[attr-defined]
    if inplace_operator is not None:
        setattr(Tensor, inplace_operator, inplace_methods.inplace_operator(op, getattr(Tensor, name + "_")))
    return call


def elementwise(
    vjp: Rules | None = None, *, result: Any = "same", dtypes: str = "f", inplace: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an elementwise op of any number of operands; the decorated function is its NumPy meaning."""

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(meaning.__name__, ELEMENTWISE, LateSignature(lambda: meaning), meaning, vjp=vjp or {}, result=result,
                dtypes=dtypes, **options)  # fmt: skip
        op.kernel = op.meaning = positional(meaning)
        op.infer, op.run = op.infer or _infer_elementwise(op), dispatch.elementwise
        prepare_record(op)
        body = "    return elementwise(_op, ARGS, out)\n"
        op.call = public_function(op, body, {"elementwise": dispatch.elementwise}, "out=None")
        return finish(op, (), inplace)

    return declare


def _documented(meaning: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """The meaning with the op's own documentation (NumPy's functions keep theirs)."""

    def documented(*arrays: Any, **options: Any) -> Any:
        return meaning(*arrays, **options)

    documented.__doc__ = doc
    documented.__wrapped__ = meaning  # type: ignore[attr-defined]
    return documented
