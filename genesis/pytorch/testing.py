"""``torch.testing``: tensors compared as PyTorch compares them, and random ones made."""

from __future__ import annotations

import math
import random
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import genesis
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.graph.tensor import Tensor

# PyTorch's own: (relative, absolute) by dtype, zero for others
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
               "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless two tensors, numbers, or sequences and mappings of them are close.

    Close is $|a - e| \\le atol + rtol |e|$; the tolerances are those of the dtype (1.3e-6 and 1e-5 for float32) unless both
    are given.

    Raises:
        AssertionError: other values, shapes, dtypes, devices or keys
        ValueError: one tolerance without the other
        TypeError: something that cannot be compared

    >>> import genesis
    >>> from genesis.pytorch.testing import assert_close
    >>> assert_close(genesis.ones(2) / 3, genesis.full((2,), 0.33333334))
    """
    if (rtol is None) != (atol is None):
        raise ArgumentValueError(
            message("assert_close", "rtol and atol are given together, or neither", hint="give both")
        )
    options = {"rtol": rtol, "atol": atol, "nan": equal_nan, "device": check_device, "dtype": check_dtype,
               "stride": check_stride}  # fmt: skip
    problem = _difference(actual, expected, "", options)
    if problem:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _difference(actual: Any, expected: Any, at: str, options: dict[str, Any]) -> str:
    where = f"{at}: " if at else ""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if set(actual) != set(expected):
            return f"{where}the keys differ: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        pairs = [(actual[key], expected[key], f"{at}[{key!r}]") for key in expected]
    elif _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"{where}the lengths differ: {len(actual)} and {len(expected)}"
        pairs = [(a, e, f"{at}[{i}]") for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _of_tensors(actual, expected, where, options)
    return next((text for a, e, inner in pairs if (text := _difference(a, e, inner, options))), "")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _of_tensors(actual: Any, expected: Any, where: str, options: dict[str, Any]) -> str:
    if actual is None and expected is None:
        return ""
    numbers = (Tensor, np.ndarray, np.generic, int, float, complex)
    if options.get("objects") and not (isinstance(actual, numbers) and isinstance(expected, numbers)):
        return "" if actual == expected else f"{where}{actual!r} is not {expected!r}"
    if not isinstance(actual, numbers) or not isinstance(expected, numbers):
        raise ArgumentError(
            message("assert_close", f"cannot compare {type(actual).__name__} with {type(expected).__name__}")
        )
    loose = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)  # Python's numbers have no dtype
    loose = loose or (
        bool(options.get("objects"))
        and isinstance(expected if isinstance(actual, Tensor) else actual, int | float | complex)
    )
    a, e = (x.detach() if isinstance(x, Tensor) else genesis.as_tensor(np.asarray(x)) for x in (actual, expected))
    if a.shape != e.shape:
        return f"{where}the shapes differ: {list(a.shape)} and {list(e.shape)}"
    for what in ("device", "dtype"):
        if options[what] and not loose and getattr(a, what) != getattr(e, what):
            return f"{where}the {what}s differ: {getattr(a, what)} and {getattr(e, what)}"
    if options["stride"] and a.stride() != e.stride():
        return f"{where}the strides differ: {a.stride()} and {e.stride()}"
    return _of_values(a, e, where, options)


def _of_values(a: Tensor, e: Tensor, where: str, options: dict[str, Any]) -> str:
    kinds = [_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, e)]
    rtol, atol = (options["rtol"], options["atol"]) if options["rtol"] is not None else map(max, *kinds)
    rtol, atol = map(max, (rtol, atol), options.get("least", (0.0, 0.0)))
    common = genesis.promote_types(a.dtype, e.dtype)
    wide = genesis.float64 if common.is_floating_point else genesis.complex128 if common.is_complex else common
    x, y = a.to(wide), e.to(wide)
    wrong = genesis.logical_not(genesis.isclose(x, y, rtol=rtol, atol=atol, equal_nan=options["nan"]))
    count = int(wrong.sum())
    if not count:
        return ""
    far = np.abs(x.numpy()[wrong.numpy()].astype(np.complex128) - y.numpy()[wrong.numpy()].astype(np.complex128))
    share = f"{count} of {a.numel()} elements ({100 * count / a.numel():.1f}%)"
    worst = "" if math.isnan(np.max(far)) else f", by up to {np.max(far):g}"
    return f"{where}the values are not close: {share} differ{worst} (allowed: {atol:g} + {rtol:g} * |expected|)"


SEED = 1234


class TestCase(unittest.TestCase):
    """Tests in which ``assertEqual`` takes tensors, numbers, and sequences and mappings of them, by the tolerances of their
    dtypes, and random numbers begin anew with each test.

    >>> import genesis
    >>> from genesis.pytorch.testing import TestCase
    >>> TestCase().assertEqual({"a": [genesis.ones(2), None]}, {"a": [genesis.ones(2), None]})
    """

    precision, rel_tol = 0.0, 0.0  # the least tolerances, for classes that set them

    def setUp(self) -> None:
        genesis.manual_seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)  # noqa: NPY002

    def assertEqual(  # type: ignore[override]  # noqa: N802, unittest's name
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None,
        equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False, exact_layout: bool = False,
        exact_stride: bool = False, exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Fail unless two values are equal or, if they are floating numbers, close."""
        if (rtol is None) != (atol is None):
            raise ArgumentValueError(message("assertEqual", "rtol and atol are given together, or neither"))
        if isinstance(x, Tensor) and _is_sequence(y):
            y = genesis.as_tensor(y, dtype=x.dtype)
        elif isinstance(y, Tensor) and _is_sequence(x):
            x = genesis.as_tensor(x, dtype=y.dtype)
        options = {"rtol": rtol, "atol": atol, "nan": equal_nan, "device": exact_device, "dtype": exact_dtype,
                   "stride": exact_stride, "objects": True, "least": (self.rel_tol, self.precision)}  # fmt: skip
        problem = _difference(x, y, "", options)
        if problem:
            self.fail(problem if msg is None else msg(problem) if callable(msg) else f"{problem}\n{msg}")

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:  # type: ignore[override]  # noqa: N802
        """Fail if `assertEqual` does not."""
        try:
            self.assertEqual(x, y, **options)
        except AssertionError:
            return
        self.fail(msg or f"{x!r} and {y!r} are equal")


def run_tests(argv: Sequence[str] | None = None) -> None:
    """Run the tests of the program."""
    unittest.main(argv=None if argv is None else list(argv))


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers in [low, high): of all that a small dtype holds, or from -9 to 9.

    >>> import genesis
    >>> from genesis.pytorch.testing import make_tensor
    >>> make_tensor(2, 3, dtype=genesis.float32, low=0, high=1).shape
    genesis.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    kind = dtype.to_real() if dtype.is_complex else dtype
    whole = not kind.is_floating_point
    bottom = (0 if kind is genesis.bool or not kind.is_signed else -9) if low is None else low
    top = (2 if kind is genesis.bool else 10 if whole else 9) if high is None else high
    make = {"device": device}
    drawn = [
        genesis.randint(int(bottom), int(top), sizes, **make).to(kind)
        if whole
        else genesis.rand(sizes, dtype=genesis.float64, **make).mul(top - bottom).add(bottom).to(kind)
        for _ in range(2 if dtype.is_complex else 1)
    ]
    out = genesis.complex(*drawn) if dtype.is_complex else drawn[0]
    if exclude_zero:
        out = genesis.where(out == 0, genesis.ones_like(out), out)
    if noncontiguous and out.numel() > 1:
        out = out.repeat_interleave(2, -1)[..., ::2]
    return out.requires_grad_(requires_grad)
