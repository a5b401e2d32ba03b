"""Tests of what is registered for an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis import ops
from genesis.autograd.checking.surroundings import check_threads, check_warnings
from genesis.autograd.checking.verify import verify
from genesis.base.errors import GraphError, InplaceError, message
from genesis.base.pytree import tree_flatten
from genesis.core.graph.tensor import Tensor
from genesis.library.operations import CustomOp


def opcheck(op: CustomOp, args: Sequence[Any], kwargs: Any = None, *, raise_exception: bool = True) -> dict[str, str]:
    """Test what is registered for an op on one call: schema, fake kernel, gradient; with warnings as errors, and in
    several threads.

    Returns:
        for each test ``"SUCCESS"``, ``"SKIPPED: why"`` or the error

    Raises:
        RuntimeError: a test failed (with ``raise_exception``)

    >>> import genesis
    >>> op = genesis.library.custom_op("example::double", lambda x: x * 2, mutates_args=())
    >>> op.register_fake(lambda x: genesis.empty_like(x)) and None
    >>> genesis.library.opcheck(op, (genesis.ones(3),))
    {'test_schema': 'SUCCESS', 'test_faketensor': 'SUCCESS', 'test_autograd_registration': 'SKIPPED: no gradient is registered', 'test_warnings': 'SUCCESS', 'test_threads': 'SUCCESS'}
    >>> genesis.library.remove("example::double")
    """
    tests = {"test_schema": _test_schema, "test_faketensor": _test_fake, "test_autograd_registration": _test_autograd,
             "test_warnings": _test_warnings, "test_threads": _test_threads}  # fmt: skip
    outcomes: dict[str, str] = {}
    for name, test in tests.items():
        try:
            outcomes[name] = test(op, tuple(args), dict(kwargs or {})) or "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise GraphError(message("opcheck", f"{name} of {op.name} failed: {error}")) from error
            outcomes[name] = f"{type(error).__name__}: {error}"
    return outcomes


def _copies(args: Any) -> Any:
    return [a.detach().clone() if isinstance(a, Tensor) else a for a in args]


def _test_schema(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Nothing but what is declared is written to, by way of NumPy either."""
    given = op._bound(args, kwargs)
    passed = _copies(given)
    op(*passed)
    for name, before, after in zip(op.signature.parameters, given, passed, strict=True):
        if (
            isinstance(before, Tensor)
            and name not in op.mutates_args
            and not ops.equal(before.detach().nan_to_num(), after.detach().nan_to_num())
        ):
            raise InplaceError(message(op.name, f"wrote to {name}, which mutates_args does not name"))
    return None


def _test_fake(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    if op._fake is None:
        return "SKIPPED: no fake kernel is registered"
    given = op._bound(args, kwargs)
    real = [y for y in tree_flatten(op(*_copies(given)))[0] if isinstance(y, Tensor)]
    fake = [
        y
        for y in tree_flatten(op(*[a.to("meta") if isinstance(a, Tensor) else a for a in given]))[0]
        if isinstance(y, Tensor)
    ]
    for i, (r, f) in enumerate(zip(real, fake, strict=True)):
        if r.shape != f.shape or r.dtype is not f.dtype:
            raise GraphError(
                message(
                    op.name, f"result {i} is {r.dtype}{list(r.shape)}, the fake kernel gives {f.dtype}{list(f.shape)}"
                )
            )
    return None


def _test_autograd(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    if op._backward is None:
        return "SKIPPED: no gradient is registered"
    if op.mutates_args:
        return "SKIPPED: the op writes to its arguments"
    report = verify(op, *args, **kwargs)
    if not report:
        raise GraphError(str(report))
    return None


def _test_warnings(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    check_warnings(op.name, op, args, kwargs)


def _test_threads(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    check_threads(op.name, op, args, kwargs)
