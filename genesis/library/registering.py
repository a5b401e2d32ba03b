"""Operations declared by a schema, and what is registered for them one by one, as `torch.library` has it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.library.operations import _OPS, CustomOp, custom_op, remove
from genesis.library.schemas import parsed

# PyTorch's keys, in lower case: for every device, without data, as a composition, around everything else
_EVERYWHERE = {"default", "compositeexplicitautograd", "compositeexplicitautogradnonfunctional"}
_COMPOSED = {"", "compositeimplicitautograd", "autograd", "autogradcpu", "autogradcuda"}


def operation(op: Any) -> CustomOp:
    """The operation of a name, or the one that is given.

    Raises:
        ValueError: there is none of that name
    """
    if isinstance(op, CustomOp):
        return op
    if str(op).removesuffix(".default") not in _OPS:
        problem = f"there is no operation {op!r}"
        raise ArgumentValueError(message("library", problem, hint="define(name, schema), or custom_op"))
    return _OPS[str(op).removesuffix(".default")]


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Declare an operation by its schema; `impl` says how it is computed.

    Args:
        qualname: ``"namespace::name"``, or a `Library`, whose operation ``schema`` names; then this is a decorator of
            what computes it
        lib: where given, the operation goes when that does

    Raises:
        ValueError: a name that exists, or a schema that is not understood

    >>> import genesis
    >>> genesis.library.define("example::scale", "(Tensor x, float k=2.0) -> Tensor")
    >>> @genesis.library.impl("example::scale", "cpu")
    ... def scale(x, k):
    ...     return genesis.from_numpy(x.detach().numpy() * genesis.tensor(k).numpy())
    >>> genesis.ops.example.scale(genesis.ones(2))
    tensor([2., 2.])
    >>> genesis.library.remove("example::scale")
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema)
        return lambda function: (qualname.impl(name, function), function)[1]
    _declare(qualname, schema)
    if lib is not None:
        lib._names.append(qualname)
    return None


def _declare(name: str, schema: str) -> None:
    _, signature, written = parsed(schema)

    def undefined(*args: Any) -> Any:
        raise AssertionError("it is never called")

    undefined.__signature__ = signature  # type: ignore[attr-defined]
    undefined.__doc__ = f"{name}{schema}"
    custom_op(name, undefined, mutates_args=written)._kernels.clear()


def impl(
    qualname: Any, types: str | Sequence[str], func: Callable[..., Any] | str | None = None, *, lib: Any = None
) -> Any:
    """Say what computes an operation on devices of these types; a decorator without ``func``.

    Args:
        types: "cpu", "cuda", "default" for all, or one of PyTorch's keys: "Meta" is `register_fake`, and
            "CompositeImplicitAutograd" and "Autograd" a function that is called in the place of the operation, and is
            differentiated through; where it calls the operation again, that is computed
    """
    if isinstance(qualname, Library):  # impl(lib, "name", "CPU")
        key = func if isinstance(func, str) else qualname.dispatch_key
        return lambda function: (qualname.impl(str(types), function, key), function)[1]
    if func is None:
        return lambda function: (impl(qualname, types, function, lib=lib), function)[1]
    for kind in [types] if isinstance(types, str) else types:
        _register(operation(qualname), kind, func)
    return None


def _register(op: CustomOp, kind: str, function: Any) -> None:
    key = kind.lower()
    if key == "meta":
        op.register_fake(function)
    elif key in _COMPOSED:
        op._around = function
    else:
        op._kernels[None if key in _EVERYWHERE else key] = function


class Library:
    """Operations of one namespace, which are removed when it goes: PyTorch's way to declare several.

    Args:
        ns: the namespace
        kind: "DEF" and "FRAGMENT" to declare operations, "IMPL" to say how declared ones are computed
        dispatch_key: what `impl` registers for unless it says so

    Raises:
        NotImplementedError: the namespace is "aten", that of PyTorch's own operations

    >>> import genesis
    >>> lib = Library("example", "DEF")
    >>> lib.define("triple(Tensor x) -> Tensor")
    'triple'
    >>> lib.impl("triple", lambda x: x * 3)
    >>> genesis.ops.example.triple(genesis.ones(2, requires_grad=True))
    tensor([3., 3.], grad_fn=<MulBackward>)
    >>> lib._destroy()
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ArgumentValueError(message("Library", f"unknown kind {kind!r}", hint='"DEF", "FRAGMENT" or "IMPL"'))
        if ns in ("aten", "prim", "prims", "_"):
            hint = "a namespace of your own, or genesis.devices.attach for a device"
            raise UnsupportedError(message("Library", f"{ns!r} has no operations to be replaced", hint=hint))
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []
        self._destroy = weakref.finalize(self, _removed, self._names)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an operation; its name, which stands in front of the schema's parentheses."""
        if self.kind == "IMPL":
            raise ArgumentValueError(message("Library.define", "a library of the kind IMPL declares nothing"))
        name, _, _ = parsed(schema)
        define(f"{self.ns}::{name}", schema[schema.index("(") :], lib=self)
        return name

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        """Say what computes an operation; without a key it is a composition, and is differentiated through."""
        name = op_name.name if isinstance(op_name, CustomOp) else f"{self.ns}::{str(op_name).rpartition('::')[2]}"
        _register(operation(name), dispatch_key or self.dispatch_key, fn)


def _removed(names: list[str]) -> None:
    for name in names:
        if name in _OPS:
            remove(name)
    names.clear()


@contextmanager
def scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A `Library` whose operations are there inside of a ``with`` block."""
    lib = Library(ns, kind, dispatch_key)
    try:
        yield lib
    finally:
        lib._destroy()


def _registers(name: str) -> Callable[..., Any]:
    def register(op: Any, func: Any = None, /, *, lib: Any = None, **options: Any) -> Any:
        method = getattr(operation(op), name)
        return method(func) if func is not None else lambda f: (method(f), f)[1]

    register.__name__ = register.__qualname__ = name
    register.__doc__ = f"`CustomOp.{name}` of an operation or its name; a decorator without ``func``."
    return register


register_fake = _registers("register_fake")
register_vmap = _registers("register_vmap")


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None) -> None:
    """`CustomOp.register_autograd` of an operation or its name."""
    operation(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """`CustomOp.register_kernel` of an operation or its name; a decorator without ``func``."""
    if device_types is None:
        device_types = "default"
    return impl(operation(op), device_types, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """`CustomOp.register_autocast` of an operation or its name."""
    operation(op).register_autocast(device_type, cast_inputs)
