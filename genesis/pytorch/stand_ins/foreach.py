"""``torch._foreach_add`` and its like: an op for each tensor of a list. PyTorch's optimizers, and programs that clip or
average many tensors, call them; here they are loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import genesis
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.graph.tensor import Tensor

UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
# what bounds of tensors and of numbers are
BINARY = {"clamp_max": "max", "minimum": "max", "clamp_min": "min", "maximum": "min"}


def _tensors(name: str, what: Any) -> list[Tensor]:
    if not isinstance(what, list | tuple) or not all(isinstance(x, Tensor) for x in what):
        raise ArgumentError(message(name, f"expected a list of tensors, got {type(what).__name__}"))
    if not what:
        raise ShapeError(message(name, "the list must have at least one tensor"))
    return list(what)


def _each(name: str, value: Any, count: int) -> Sequence[Any]:
    """One operand for each tensor: a list as it is, one value for all."""
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise ShapeError(
                message(name, f"the lists must have the same number of elements, got {count} and {len(value)}")
            )
        return value
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(message(name, f"one tensor for all must be 0-d, it has {value.ndim} dimensions"))
    return [value] * count


def _all_of(call: Callable[..., Any], inplace: bool, *lists: Any) -> Any:
    results = tuple([call(*each) for each in zip(*lists, strict=True)])
    return lists[0] if inplace else results


def _unary(name: str, inplace: bool) -> Callable[..., Any]:
    call = getattr(Tensor, name + "_" * inplace)

    def foreach(self: Any) -> Any:
        _tensors(foreach.__name__, self)
        return _all_of(call, inplace, self)

    return foreach


_WORDS = ("scalar", "scalars")  # what PyTorch calls the other operand, if it is one number, or a number for each


def _operand(name: str, other: Any, words: tuple[str, ...], named: dict[str, Any]) -> Any:
    """The other operand, which comes by one of these names if not as ``other``."""
    given = [] if other is None else [other]
    for word, value in named.items():
        if word not in words:
            raise ArgumentError(message(name, f"got an unexpected keyword argument {word!r}"))
        given.append(value)
    if len(given) != 1:
        raise ArgumentError(message(name, f"expected one operand for the tensors, got {len(given)}"))
    return given[0]


def _binary(name: str, inplace: bool) -> Callable[..., Any]:
    call = _bound(BINARY[name], inplace) if name in BINARY else getattr(Tensor, name + "_" * inplace)

    def foreach(self: Any, other: Any = None, **named: Any) -> Any:
        other = _operand(foreach.__name__, other, ("exponent",) if name == "pow" else _WORDS, named)
        if name == "pow" and not isinstance(self, list | tuple):  # one base, many exponents
            self = [genesis.as_tensor(self, dtype=x.dtype) for x in _tensors(foreach.__name__, other)]
        return _all_of(call, inplace, self, _each(foreach.__name__, other, len(_tensors(foreach.__name__, self))))

    return foreach


def _sum(name: str, inplace: bool) -> Callable[..., Any]:
    call = getattr(Tensor, name + "_" * inplace)

    def foreach(self: Any, other: Any = None, *, alpha: Any = 1, **named: Any) -> Any:
        other = _operand(foreach.__name__, other, _WORDS, named)
        others = _each(foreach.__name__, other, len(_tensors(foreach.__name__, self)))
        return _all_of(lambda x, y: call(x, y, alpha=alpha), inplace, self, others)

    return foreach


def _bound(which: str, inplace: bool) -> Callable[..., Any]:
    """The larger or smaller of a tensor and a tensor or number."""
    method = getattr(Tensor, "clamp" + "_" * inplace)
    return lambda x, y: method(x, **{which: y})


def _ternary(name: str, inplace: bool) -> Callable[..., Any]:
    call = getattr(Tensor, name + "_" * inplace)

    def foreach(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        count, value = len(_tensors(foreach.__name__, self)), value if scalars is None else scalars
        if isinstance(value, Tensor):
            value = value.tolist()
        given = [_each(foreach.__name__, x, count) for x in (tensor1, tensor2, value)]
        return _all_of(lambda x, y, z, v: call(x, y, z, value=v), inplace, self, *given)

    return foreach


def _lerp(inplace: bool) -> Callable[..., Any]:
    call = getattr(Tensor, "lerp" + "_" * inplace)

    def foreach(self: Any, tensors1: Any, weight: Any = None, **named: Any) -> Any:
        weight = _operand(foreach.__name__, weight, ("weights",), named)
        count = len(_tensors(foreach.__name__, self))
        return _all_of(call, inplace, self, *[_each(foreach.__name__, x, count) for x in (tensors1, weight)])

    return foreach


def _others() -> dict[str, Callable[..., Any]]:
    """Those that have no in-place form, or nothing else."""

    def norm(self: Any, ord: float = 2, dtype: Any = None) -> Any:
        return tuple([genesis.linalg.vector_norm(x, ord, dtype=dtype) for x in _tensors("_foreach_norm", self)])

    def powsum(self: Any, ord: float = 2, dtype: Any = None) -> Any:
        xs = [x if dtype is None else x.to(dtype) for x in _tensors("_foreach_powsum", self)]  # type: ignore[attr-defined]
        return tuple([(x.abs() ** ord).sum() for x in xs])  # type: ignore[attr-defined]

    def max(self: Any) -> Any:
        return tuple([x.max() for x in _tensors("_foreach_max", self)])  # type: ignore[attr-defined]

    def clone(self: Any, *, memory_format: Any = None) -> Any:
        return tuple([x.clone() for x in _tensors("_foreach_clone", self)])  # type: ignore[attr-defined]

    def mm(self: Any, mat2: Any) -> Any:
        given = _tensors("_foreach_mm", self)
        return tuple([genesis.mm(x, y) for x, y in zip(given, _each("_foreach_mm", mat2, len(given)), strict=True)])

    def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
        for x, y in zip(self, _each("_foreach_copy_", src, len(_tensors("_foreach_copy_", self))), strict=True):
            x.copy_(y)
        return self

    def zero_(self: Any) -> Any:
        for x in _tensors("_foreach_zero_", self):
            x.zero_()  # type: ignore[attr-defined]
        return self

    return {f"_foreach_{f.__name__}": f for f in (norm, powsum, max, clone, mm, copy_, zero_)}


def functions() -> dict[str, Callable[..., Any]]:
    """All of them, by their names in ``torch``.

    >>> import genesis
    >>> functions()["_foreach_mul"]([genesis.ones(2), genesis.ones(1)], [2.0, 3.0])
    (tensor([2., 2.]), tensor([3.]))
    """
    made: dict[str, Callable[..., Any]] = {}
    for inplace in (False, True):
        end = "_" * inplace
        made |= {f"_foreach_{name}{end}": _unary(name, inplace) for name in UNARY}
        made |= {f"_foreach_{name}{end}": _binary(name, inplace) for name in ("mul", "div", "pow", *BINARY)}
        made |= {f"_foreach_{name}{end}": _sum(name, inplace) for name in ("add", "sub")}
        made |= {f"_foreach_{name}{end}": _ternary(name, inplace) for name in ("addcmul", "addcdiv")}
        made[f"_foreach_lerp{end}"] = _lerp(inplace)
    for name, call in made.items():
        call.__name__ = call.__qualname__ = name
    return made | _others()
