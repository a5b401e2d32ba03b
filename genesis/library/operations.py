"""Operations that users declare."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from genesis import ops
from genesis.arrays.spec import Spec, meta
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, InplaceError, UnsupportedError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call import dispatch
from genesis.core.call.kinds import opaque
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.writes import bump
from genesis.core.functions.function import Function
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.layers.function_rules import VmapInfo
from genesis.library.schemas import parsed

_OPS: dict[str, CustomOp] = {}
_inside: ContextVar[frozenset[str]] = ContextVar("_inside", default=frozenset())  # whose functions around are running


class CustomOp:
    """An operation made by `custom_op`: call it like a function."""

    def __init__(
        self, name: str, function: Callable[..., Any], mutates_args: Sequence[str], device_types: Iterable[str] | None
    ) -> None:
        self.name, self.mutates_args = name, tuple(mutates_args)
        self.signature = inspect.signature(function)
        self._keywords = sum(p.kind is p.KEYWORD_ONLY for p in self.signature.parameters.values())
        self._kernels: dict[str | None, Callable[..., Any]] = (
            dict.fromkeys(device_types, function) if device_types else {None: function}
        )
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._cast: Any = None
        self._around: Callable[..., Any] | None = None  # called in the place of the operation, see `library.impl`
        self.__name__, self.__doc__, self.__wrapped__ = name.rpartition("::")[2], function.__doc__, function
        self._function = self._node()
        self._ops: dict[tuple[int, ...], Op] = {}  # by the places of tensors
        self.op = self._op_of(_tensor_positions(self.signature))

    @property
    def has_fake(self) -> bool:
        """Whether a fake kernel is registered."""
        return self._fake is not None

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is registered."""
        return self._backward is not None

    @property
    def schema(self) -> str:
        """The declaration in one line."""
        return f"{self.name}{self.signature}" + (
            f", writes to {', '.join(self.mutates_args)}" if self.mutates_args else ""
        )

    def __repr__(self) -> str:
        return f"<custom op {self.schema}>"

    # ---- what may be registered

    def register_kernel(self, device_types: str | Sequence[str], function: Callable[..., Any] | None = None) -> Any:
        """What computes on these devices; a decorator without ``function``."""
        if function is None:
            return lambda f: (self.register_kernel(device_types, f), f)[1]
        for kind in [device_types] if isinstance(device_types, str) else device_types:
            self._kernels[kind] = function
        return function

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What gives results of the right shape, dtype and device, without data: called with tensors on the meta
        device.
        """
        self._fake = function
        return function

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The gradient: ``backward(ctx, *grads)``; ``setup_context(ctx, inputs, output)`` keeps what it needs, and is
        called where something needs a gradient.
        """
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, function: Callable[..., Any] | None = None) -> Any:
        """How `vmap` computes all samples at once, ``function(info, in_dims, *args) -> (result, out_dims)``; without one
        it calls the operation for one sample after the other. A decorator without ``function``.
        """
        if function is None:
            return self.register_vmap
        self._function.vmap = staticmethod(function)  # type: ignore[method-assign, assignment]

        def rule(b: Any, *args: Any) -> Any:
            flags = iter(b.batched)
            dims = tuple([0 if i in b.op.tensors and next(flags) else None for i in range(len(args))])
            out, dims_out = function(VmapInfo(b.size, "error"), dims, *args)
            several = isinstance(out, tuple | list)
            rows = [
                y.movedim(d, 0) for y, d in zip(*((out, dims_out) if several else ([out], [dims_out])), strict=True)
            ]
            return tuple(rows) if several else rows[0]

        for op in self._ops.values():
            op.batch = rule
        return function

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Under autocast, floating inputs are converted to this dtype first."""
        self._cast = dtypes.as_np(cast_inputs)
        self._function.amp_policy = cast_inputs

    # ---- a call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._around is not None and self.name not in _inside.get():
            return self._composed(args, kwargs)
        return self._function.apply(*self._bound(args, kwargs))

    @property
    def default(self) -> CustomOp:
        """The operation itself: there are no overloads."""
        return self

    def _composed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function around the operation; where that calls the operation, it is computed."""
        assert self._around is not None
        given, keywords = self._apart(self._bound(args, kwargs))
        token = _inside.set(_inside.get() | {self.name})
        try:
            return self._around(*given, **keywords)
        finally:
            _inside.reset(token)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(message(self.name, str(error), [("schema", self.schema)])) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _node(self) -> type[Function]:
        op = self

        def forward(*inputs: Any) -> Any:
            return op._run(inputs)

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if op._setup is not None and any(ctx.needs_input_grad):
                given, keywords = op._apart(inputs)
                if keywords:
                    op._setup(ctx=ctx, inputs=given, keyword_only_inputs=keywords, output=output)
                else:
                    op._setup(ctx, inputs, output)

        def backward(ctx: Any, *grads: Any) -> Any:
            if op._backward is None:
                raise UnsupportedError(message(op.name, "has no gradient", hint="register one with register_autograd"))
            result = op._backward(ctx, *grads)
            none = (None,) * op._keywords
            return (*(result if isinstance(result, tuple | list) else (result,)), *none) if none else result

        members = {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
        }
        made = type(self.__name__, (Function,), members)
        made._watched = False  # the kernel is not searched for tensors: it is the op's own
        return made

    def _apart(self, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position, and those that are given by their names alone."""
        count = len(inputs) - self._keywords
        return inputs[:count], dict(zip([*self.signature.parameters][count:], inputs[count:], strict=True))

    def _run(self, inputs: tuple[Any, ...]) -> Any:
        tensors = {
            name: t
            for name, value in zip(self.signature.parameters, inputs, strict=True)
            for t in tree_flatten(value)[0]
            if isinstance(t, Tensor)
        }
        if any(isinstance(t._array, Spec) for t in tensors.values()):
            return self._without_data(*inputs)
        if tracer.get() is not None:
            return dispatch.run(self._opaque(inputs), inputs)
        kind = next((t.device.type for t in tensors.values()), "cpu")
        kernel = self._kernels.get(kind, self._kernels.get(None))
        if kernel is None:
            known = ", ".join(str(k) for k in self._kernels)
            problem = f"has no kernel for {kind}" + (f", only for {known}" if known else "")
            raise UnsupportedError(message(self.name, problem, hint=f"register_kernel({kind!r})"))
        before = {name: t._write_count for name, t in tensors.items()}
        given, keywords = self._apart(inputs)
        result = kernel(*given, **keywords)
        for name, t in tensors.items():
            if t._write_count != before[name] and name not in self.mutates_args:
                raise InplaceError(
                    message(self.name, f"wrote to {name}, which mutates_args does not name", [("schema", self.schema)])
                )
            if t._write_count == before[name] and name in self.mutates_args:
                bump(t, self.name)  # by way of NumPy or C, which count no writes
        for y in tree_flatten(result)[0]:
            if isinstance(y, Tensor) and any(y is t for t in tensors.values()):
                raise GraphError(
                    message(
                        self.name,
                        "returned one of its arguments",
                        [("schema", self.schema)],
                        "return a clone(), or nothing if it only writes",
                    )
                )
        return result

    def _without_data(self, *inputs: Any) -> Any:
        if self._fake is None:
            problem = "was called without data and has no fake kernel"
            raise UnsupportedError(message(self.name, problem, hint="register one with register_fake"))
        given, keywords = self._apart(inputs)
        return self._fake(*given, **keywords)

    # ---- in a trace

    def _opaque(self, inputs: tuple[Any, ...]) -> Op:
        """The op that stands for a call in a graph: one node, of which is known what the fake kernel says."""
        if self.mutates_args:
            raise UnsupportedError(
                message(
                    self.name,
                    f"writes to {', '.join(self.mutates_args)}, and a trace would not know of it",
                    [("schema", self.schema)],
                    "return new tensors instead",
                )
            )
        if self._fake is None:
            raise UnsupportedError(
                message(
                    self.name,
                    "is called in a trace and has no fake kernel",
                    [("schema", self.schema)],
                    "register one with register_fake",
                )
            )
        if any(
            isinstance(t, Tensor) for value in inputs if not isinstance(value, Tensor) for t in tree_flatten(value)[0]
        ):
            raise UnsupportedError(
                message(
                    self.name,
                    "takes containers of tensors, which a trace does not",
                    [("schema", self.schema)],
                    "pass the tensors one by one",
                )
            )
        positions = tuple(i for i, value in enumerate(inputs) if isinstance(value, Tensor))
        return self._op_of(positions)

    def _op_of(self, positions: tuple[int, ...]) -> Op:
        """The record of this operation with tensors at these places; calls with others have records of their own."""
        if positions not in self._ops:
            name = self.name if not self._ops else f"{self.name} of arguments {', '.join(map(str, positions))}"
            self._ops[positions] = opaque(name, self.signature, self._on_arrays(positions), self._on_specs(positions), self, positions,
                                       self.__wrapped__.__module__)  # fmt: skip
        return self._ops[positions]

    def _on_arrays(self, positions: tuple[int, ...]) -> Callable[..., Any]:
        def meaning(*args: Any) -> Any:
            result = self._run(tuple([wrap(a) if i in positions else a for i, a in enumerate(args)]))
            return tuple([y.numpy() for y in result]) if isinstance(result, tuple | list) else result.numpy()

        return meaning

    def _on_specs(self, positions: tuple[int, ...]) -> Callable[..., Any]:
        def infer(*args: Any) -> Any:
            result = self._without_data(
                *[wrap(meta(a.shape, a.dtype)) if i in positions else a for i, a in enumerate(args)]
            )
            return (
                [replace(y._array, device=CPU) for y in result]
                if isinstance(result, tuple | list)
                else replace(result._array, device=CPU)
            )

        return infer

    def _forget(self) -> None:
        for op in self._ops.values():
            del REGISTRY[op.name]


def _tensor_positions(signature: inspect.Signature) -> tuple[int, ...]:
    """The parameters that are annotated as tensors; where nothing is annotated, those without a default value."""
    parameters = list(signature.parameters.values())
    said = [i for i, p in enumerate(parameters) if "Tensor" in str(p.annotation)]
    annotated = any(p.annotation is not p.empty for p in parameters)
    return tuple(said) if annotated else tuple(i for i, p in enumerate(parameters) if p.default is p.empty)


def _with_schema(function: Callable[..., Any], schema: str, mutates_args: str | Sequence[str]) -> Callable[..., Any]:
    """A function with the parameters that a schema says."""
    _, signature, written = parsed(schema)
    if sorted(written) != sorted([mutates_args] if isinstance(mutates_args, str) else mutates_args):
        problem = f"mutates_args is {mutates_args!r}, the schema writes to {written}"
        raise ArgumentValueError(message("custom_op", problem, [("schema", schema)]))

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    called.__signature__ = signature  # type: ignore[attr-defined]
    return called


def custom_op(
    name: str,
    function: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Make a function an operation of its own, ``genesis.ops.<namespace>.<name>``; a decorator without ``function``.

    The function may use anything to compute (NumPy, C, Numba). It is one node of the graph that backward walks, and
    with a fake kernel one opaque node of a trace, which calls it at every replay.

    Args:
        name: ``"namespace::name"``
        mutates_args: the parameters it writes to, each call counts as a write to them; writes to others are an error
        device_types: the devices it works on; by default all
        schema: its parameters, as ``"(Tensor x, int n=2) -> Tensor"``; by default the function's
        tags: accepted, without an effect

    Raises:
        ValueError: no namespace, a name that exists, an unknown parameter in ``mutates_args``, or a schema that is not
            understood or writes to others than ``mutates_args``

    >>> import genesis, numpy as np
    >>> @genesis.library.custom_op("example::cube", mutates_args=())
    ... def cube(x: genesis.Tensor) -> genesis.Tensor:
    ...     return genesis.from_numpy(x.detach().numpy() ** 3)
    >>> cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> genesis.ops.example.cube(x).backward(); x.grad
    tensor([12.])
    >>> genesis.library.remove("example::cube")
    """
    if function is None:
        return lambda f: custom_op(name, f, mutates_args=mutates_args, device_types=device_types, schema=schema)
    if schema is not None:
        function = _with_schema(function, schema, mutates_args)
    space, _, short = name.partition("::")
    if not (space.isidentifier() and short.isidentifier()):
        raise ArgumentValueError(
            message("custom_op", f"{name!r} is no name of an operation", hint="use 'namespace::name'")
        )
    module = sys.modules["genesis.ops"]
    if name in _OPS or (hasattr(module, space) and not isinstance(getattr(module, space), SimpleNamespace)):
        raise ArgumentValueError(
            message(
                "custom_op",
                f"{name!r} exists already, or its namespace is a name of Genesis",
                hint="genesis.library.remove(name) undoes a declaration",
            )
        )
    names = [mutates_args] if isinstance(mutates_args, str) else list(mutates_args)
    unknown = [n for n in names if n not in inspect.signature(function).parameters]
    if unknown:
        raise ArgumentValueError(
            message(
                "custom_op",
                f"mutates_args names {unknown[0]!r}, the parameters are "
                f"{', '.join(inspect.signature(function).parameters)}",
            )
        )
    made = _OPS[name] = CustomOp(
        name, function, names, [device_types] if isinstance(device_types, str) else device_types
    )
    if not hasattr(module, space):
        setattr(module, space, SimpleNamespace())
    setattr(getattr(module, space), short, made)
    return made


def remove(name: str) -> None:
    """Undo a `custom_op`.

    Raises:
        ValueError: there is none of that name
    """
    if name not in _OPS:
        raise ArgumentValueError(
            message("remove", f"there is no custom op {name!r}", hint=f"there are {', '.join(_OPS) or 'none'}")
        )
    _OPS.pop(name)._forget()
    space, _, short = name.partition("::")
    delattr(getattr(ops, space), short)
    if not vars(getattr(ops, space)):
        delattr(ops, space)
