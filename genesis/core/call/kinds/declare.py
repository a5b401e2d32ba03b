"""From an op's block to its record: what the declarations of all kinds have in common, and `primitive`, which declares
an op of any.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from genesis.core.call import dispatch, inplace_methods
from genesis.core.call.generated import LateSignature
from genesis.core.call.kind import Kind, kind_named
from genesis.core.call.op import Fail, Op, attach_methods, positional, prepare_record, public_function, register
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor

Rules = Mapping[str, Callable[..., Any]]


def fails(*cases: tuple[Callable[[Any], Any], type[Exception], str]) -> tuple[Fail, ...]:
    """Wrong inputs: ``(lambda t: case(t(3), dim=3), IndexError, "dim 3 is out of range")``."""
    return tuple(Fail(*c) for c in cases)


def primitive(
    kind: Kind | str,
    vjp: Rules | None = None,
    *,
    infer: Callable[..., Any],
    prepare: Callable[..., tuple[Any, ...]] | None = None,
    method: bool = True,
    operators: Iterable[str] = (),
    inplace: bool = False,
    out: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive of a kind, given by itself or by name; the decorated function is its NumPy meaning.

    Annotate tensor parameters ``Array``, ``Array | None``, or (first parameter only) ``Sequence[Array]``.
    ``prepare`` gets the arguments of a call and returns them normalised (it may raise); they are what
    the meaning, `infer` and the rules see.
    """

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(
            meaning.__name__,
            kind_named(kind),
            LateSignature(lambda: meaning),
            meaning,
            infer=infer,
            vjp=vjp or {},
            **options,
        )
        op.kernel = op.meaning = positional(meaning)
        prepare_record(op)
        arguments = "ARGS" if prepare is None else "prepare(*ARGS)"
        body = f"    return run(_op, {arguments})\n"
        if out:
            body = f"    r = run(_op, {arguments})\n    return r if out is None else write_out(_op.name, r, out)\n"
        op.run = dispatch.path_of(op)
        names = {"run": op.run, "prepare": prepare, "write_out": write_out}
        op.call = public_function(op, body, names, "out=None" if out else "")
        return finish(op, operators, inplace, method)

    return declare


def finish(op: Op, operators: Iterable[str] = (), inplace: bool = False, method: bool = True) -> Callable[..., Any]:
    """Name the public function, make it a method and an in-place form, and enter the op in the registry."""
    call = op.call
    call.__name__ = call.__qualname__ = op.name
    call.__module__ = _module()
    call.__doc__ = op.meaning.__doc__
    call.op = op  # type: ignore[attr-defined]
    if method:
        attach_methods(op, call, operators, inplace_methods.inplace_method(op) if inplace else None)
    register(op, call.__module__)
    return call


def _module() -> str:
    """The module whose block is being declared."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(__package__):
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


def alias(name: str, call: Callable[..., Any], *, method: bool = True, inplace: bool = False) -> Callable[..., Any]:
    """Another name of an op (``absolute`` for ``abs``), as function and as method."""
    if method:
        setattr(Tensor, name, call)
    if inplace:
        setattr(Tensor, name + "_", getattr(Tensor, call.op.name + "_"))  # type: ignore[attr-defined]
    return call
