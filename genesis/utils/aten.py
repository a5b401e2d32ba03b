"""Operations under the names of PyTorch's dispatcher: ``aten::add.Tensor``, called as the function of that name.

A primitive here that PyTorch has, too, is known by its name there, with the arguments of that; others by
``genesis::name``. `genesis.utils.python_dispatch` shows programs calls in this form.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.base.errors import MissingName, UnsupportedError, message
from genesis.core.call.dispatch import apply
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.subclasses import asked, handled
from genesis.core.graph.tensor import Tensor, wrap

_UNARY = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "ceil",
    "clone",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
_BINARY = {"add": "Tensor", "sub": "Tensor", "mul": "Tensor", "div": "Tensor", "maximum": "default", "minimum": "default",
           "atan2": "default", "fmod": "Tensor", "remainder": "Tensor", "logical_and": "default", "logical_or": "default"}  # fmt: skip
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_REDUCED = {"sum": "dim_IntList", "mean": "dim", "amax": "", "amin": "", "any": "dims", "all": "dims"}


class OpOverload:
    """One form of an operation.

    >>> from genesis.utils.aten import packet
    >>> packet("add").Tensor, packet("add").Tensor.name(), str(packet("relu").default)
    (<OpOverload(op='aten.add', overload='Tensor')>, 'aten::add.Tensor', 'aten.relu.default')
    """

    def __init__(self, of: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname, self.namespace = of, overload, of.namespace
        self.__name__, self.__module__ = f"{of.__name__}.{overload}", f"torch.ops.{of.namespace}"

    def name(self) -> str:
        """The name with its namespace; that of the default form is not said."""
        form = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{form}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pending = PENDING.get()
        if pending is not None and pending.fits(self, args, kwargs):
            return pending.computed()
        return _asked(self, self.overloadpacket._function, args, kwargs)

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op={str(self.overloadpacket)!r}, overload={self._overloadname!r})>"

    def __reduce__(self) -> Any:
        return getattr, (self.overloadpacket, self._overloadname)


class OpOverloadPacket:
    """An operation in all its forms.

    >>> import genesis
    >>> from genesis.utils.aten import packet
    >>> packet("add").Tensor(genesis.ones(2), genesis.ones(2), alpha=3)
    tensor([4., 4.])
    """

    def __init__(self, name: str, function: Callable[..., Any], namespace: str = "aten") -> None:
        self.__name__, self._function, self.namespace = name, function, namespace
        self.__module__ = f"torch.ops.{namespace}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _asked(self, self._function, args, kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = self.__dict__[overload] = OpOverload(self, overload)
        return made

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op={str(self)!r})>"

    def __reduce__(self) -> Any:
        return (packet if self.namespace == "aten" else own), (self.__name__,)


def _asked(called: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call, or what the classes of its arguments make of it: they see the operation."""
    relevant = [x for x in (*args, *kwargs.values()) if asked(x)]
    return handled(called, relevant, args, kwargs) if relevant else function(*args, **kwargs)


def _backward(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(
        message("aten::convolution_backward", "gradients of convolutions are calls of their own here")
    )


def _convolution(*args: Any) -> Tensor:
    return apply(REGISTRY["convolution"], args)  # type: ignore[no-any-return]


_PRIVATE: dict[str, Callable[..., Any]] = {
    "_softmax": lambda x, dim, half_to_float=False: x.softmax(dim),
    "_log_softmax": lambda x, dim, half_to_float=False: x.log_softmax(dim),
    "_to_copy": lambda x, **options: x.to(**options, copy=True),
    "convolution": _convolution,
    "convolution_backward": _backward,
}
_ROOMS = ("genesis", "genesis.nn.functional")


@functools.cache
def packet(name: str) -> OpOverloadPacket:
    """The operation ``aten::name``.

    Raises:
        AttributeError: no function or method has this name

    >>> from genesis.utils.aten import packet
    >>> packet("mm")
    <OpOverloadPacket(op='aten.mm')>
    """
    rooms = [importlib.import_module(room) for room in _ROOMS]
    for owner in (rooms[0], Tensor, *rooms[1:]):
        function = _PRIVATE.get(name) or getattr(owner, name, None)
        if callable(function):
            return OpOverloadPacket(name, function)
    raise MissingName(f"aten::{name} is not in Genesis: no function or method has this name")


@functools.cache
def own(name: str) -> OpOverloadPacket:
    """A primitive that PyTorch has not."""
    return OpOverloadPacket(name, lambda *args: apply(REGISTRY[name], args), "genesis")


# ---- a call of a primitive as one of PyTorch's


@dataclass
class Call:
    """A call: the operation, its arguments as tensors without history, and what computes it as it is."""

    func: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None  # of the result here, where PyTorch's has fewer dimensions
    run: Callable[[], Any] = lambda: None

    def fits(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is this one, with the same arguments."""
        given, known = (*args, *kwargs.values()), (*self.args, *self.kwargs.values())
        return (
            func is self.func and len(given) == len(known) and all([a is b for a, b in zip(given, known, strict=True)])
        )

    def computed(self) -> Any:
        """The result, in PyTorch's form."""
        result = self.run()
        if isinstance(result, tuple | list):
            return tuple([wrap(np.asarray(r)) for r in result])
        array = np.asarray(result)
        return wrap(array if self.shape is None else array.reshape(_flat(self.shape, self.func)))

    def returned(self, result: Any) -> Any:
        """The arrays of a result that a program gave."""
        if isinstance(result, tuple | list):
            return tuple([x._array for x in result])
        array = result._array if isinstance(result, Tensor) else np.asarray(result)
        return array if self.shape is None else array.reshape(self.shape)


def _flat(shape: tuple[int, ...], func: OpOverload) -> tuple[int, ...]:
    kept = 2 if func.overloadpacket.__name__ == "bmm" else 1
    return (math.prod(shape[:-kept]), *shape[-kept:])


PENDING: ContextVar[Call | None] = ContextVar("genesis_dispatched", default=None)  # the call that a mode looks at


def call_of(op: Op, arrays: Sequence[Any]) -> Call:
    """A call of a primitive on arrays, as PyTorch's dispatcher has it.

    >>> import numpy as np
    >>> from genesis.core.call.op import REGISTRY
    >>> from genesis.utils.aten import call_of
    >>> call_of(REGISTRY["sum"], [np.ones((2, 3)), (0,), False, np.dtype("float64")]).func
    <OpOverload(op='aten.sum', overload='dim_IntList')>
    """
    given = tuple([_wrapped(a) for a in arrays])
    made = _FORMS[op.name](op, given) if op.name in _FORMS else None
    return made or Call(own(op.name).default, given)


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return wrap(value)
    if isinstance(value, list) and any([isinstance(x, np.ndarray) for x in value]):
        return [_wrapped(x) for x in value]
    return value


def _aten(name: str, overload: str = "default") -> OpOverload:
    return getattr(packet(name), overload or "default")  # type: ignore[no-any-return]


def _unary(op: Op, args: tuple[Any, ...]) -> Call:
    return Call(_aten(op.name), args)


def _binary(op: Op, args: tuple[Any, ...]) -> Call:
    if op.name == "sub" and not isinstance(args[0], Tensor):
        return Call(_aten("rsub", "Scalar"), (args[1], args[0]))
    return Call(_aten(op.name, _BINARY[op.name]), args)


def _compared(op: Op, args: tuple[Any, ...]) -> Call:
    return Call(_aten(op.name, "Tensor" if isinstance(args[1], Tensor) else "Scalar"), args)


def _power(op: Op, args: tuple[Any, ...]) -> Call:
    kinds = ["Tensor" if isinstance(x, Tensor) else "Scalar" for x in args]
    return Call(_aten("pow", "Scalar" if kinds[0] == "Scalar" else "_".join(kinds)), args)


def _reduced(op: Op, args: tuple[Any, ...]) -> Call:
    x, dim, keepdim, *rest = args
    options = {"dtype": rest[0]} if rest and rest[0] is not None and rest[0] != x._array.dtype else {}
    if len(dim) == x.ndim and not keepdim and op.name in ("sum", "mean", "any", "all"):
        return Call(_aten(op.name), (x,), options)
    return Call(_aten(op.name, _REDUCED[op.name]), (x, list(dim), *[True] * keepdim), options)


def _product(op: Op, args: tuple[Any, ...]) -> Call | None:
    a, b = args
    a = a.mT if op.name == "matmul_tn" else a
    if a.ndim == b.ndim == 2:
        return Call(_aten("mm"), (a, b))
    if a.ndim == b.ndim == 1:
        return Call(_aten("dot"), (a, b))
    if (a.ndim, b.ndim) == (2, 1):
        return Call(_aten("mv"), (a, b))
    shape = (*a.shape[:-1], *b.shape[-1:])
    if b.ndim == 2 and a.ndim > 2:
        return Call(_aten("mm"), (a.reshape(-1, a.shape[-1]), b), shape=shape)
    if a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]:
        flat = [x.reshape(-1, *x.shape[-2:]) for x in (a, b)] if a.ndim > 3 else [a, b]
        return Call(_aten("bmm"), tuple(flat), shape=shape if a.ndim > 3 else None)
    return Call(_aten("matmul"), (a, b))


def _linear(op: Op, args: tuple[Any, ...]) -> Call:
    x, weight, bias = args
    flat = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    factors = (flat, weight.t())
    shape = None if x.ndim == 2 else (*x.shape[:-1], weight.shape[0])
    return (
        Call(_aten("mm"), factors, shape=shape) if bias is None else Call(_aten("addmm"), (bias, *factors), shape=shape)
    )


def _convolved(op: Op, args: tuple[Any, ...]) -> Call:
    return Call(_aten("convolution"), tuple([list(a) if isinstance(a, tuple) else a for a in args]))


def _named(name: str, overload: str = "default", take: int | None = None) -> Callable[[Op, tuple[Any, ...]], Call]:
    def form(op: Op, args: tuple[Any, ...]) -> Call:
        listed = tuple([list(a) if isinstance(a, tuple) else a for a in args[:take]])
        return Call(_aten(name, overload), listed)

    return form


def _softmax(op: Op, args: tuple[Any, ...]) -> Call | None:
    x, dim, dtype = args
    return Call(_aten(f"_{op.name}"), (x, dim, False)) if dtype is None else None


def _position(op: Op, args: tuple[Any, ...]) -> Call | None:
    x, dim, keepdim = args
    return Call(_aten(op.name), (x, *dim, *[True] * keepdim)) if len(dim) == 1 else None


_FORMS: dict[str, Callable[[Op, tuple[Any, ...]], Call | None]] = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY, _binary), **dict.fromkeys(_COMPARED, _compared),
    **dict.fromkeys(_REDUCED, _reduced), "pow": _power, "matmul": _product, "matmul_tn": _product, "linear": _linear,
    "convolution": _convolved, "softmax": _softmax, "log_softmax": _softmax, "narrow": _named("narrow"), "argmax": _position,
    "argmin": _position,
    "reshape": _named("view"), "view_shape": _named("view"), "permute": _named("permute"), "expand": _named("expand"),
    "transpose": _named("transpose", "int"), "cat": _named("cat"), "select_where": _named("where", "self"),
    "convert": lambda op, args: Call(_aten("_to_copy"), args[:1], {"dtype": args[1]}), "tril": _named("tril"),
    "triu": _named("triu"), "cumsum": _named("cumsum", take=2), "clamp_min": _named("clamp_min"), "clamp_max": _named("clamp_max"),
    "constant_pad_nd": _named("constant_pad_nd"), "gather": _named("gather", take=3),
}  # fmt: skip
