"""Does a call give what it gives alone where warnings are errors, and while other threads make it, too?

Both checks compare a call with itself: its results, what it leaves in its arguments, the recorded graph, and gradients.
They raise `AssertionError` with a sentence, and serve `testing.opcheck` and `library.opcheck`.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.autograd.gradients import grad
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.modes import no_grad
from genesis.core.graph.node import Node
from genesis.core.graph.tensor import Tensor, wrap

Call = Callable[..., Any]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one call: arrays under their names, the nodes of the graph, and where it failed the error."""

    arrays: Mapping[str, Array]
    nodes: tuple[str, ...] = ()
    error: str = ""


def observed(call: Call, args: Sequence[Any], kwargs: Mapping[str, Any], turn: int = 0) -> Seen:
    """Make a call with copies of its arguments, whose floating elements are moved on by ``turn`` places, and its
    gradients.

    Raises:
        Warning, FloatingPointError: where they are errors
    """
    leaves, structure = tree_flatten((tuple(args), dict(kwargs)))
    leaves = [_copied(v, turn) if isinstance(v, Tensor) else v for v in leaves]
    given, options = tree_unflatten(leaves, structure)
    arrays: dict[str, Array] = {}
    nodes: tuple[str, ...] = ()
    error = ""
    try:
        outs = [y for y in tree_flatten(call(*given, **options))[0] if isinstance(y, Tensor)]
        arrays |= {f"result {i}": y.detach()._array for i, y in enumerate(outs)}
        nodes = tuple(_nodes([y.grad_fn for y in outs]))
        arrays |= _gradients(outs, [v for v in leaves if isinstance(v, Tensor) and v.requires_grad])
    except (Warning, FloatingPointError):
        raise
    except Exception as refused:  # whatever the call refuses with
        error = f"{type(refused).__name__}: {refused}".partition("\n")[0]
    kept = {f"argument {i} after the call": v.detach()._array for i, v in enumerate(leaves) if isinstance(v, Tensor)}
    return Seen({k: a for k, a in (arrays | kept).items() if isinstance(a, np.ndarray)}, nodes, error)


def _copied(t: Tensor, turn: int) -> Tensor:
    if not isinstance(t._array, np.ndarray):
        return t
    floating = t.is_floating_point() or t.is_complex()
    array = np.roll(t._array.reshape(-1), turn).reshape(t._array.shape) if turn and floating else t._array.copy()
    return wrap(array).requires_grad_(t.requires_grad)


def _gradients(outs: list[Tensor], inputs: list[Tensor]) -> dict[str, Array]:
    outs = [y for y in outs if y.requires_grad]
    if not outs or not inputs:
        return {}
    rng = np.random.Generator(np.random.Philox(7))
    seeds = [wrap(np.asarray(rng.uniform(0.5, 1.5, y.shape), y._array.dtype)) for y in outs]
    gradients = grad(outs, inputs, seeds, allow_unused=True)
    return {f"gradient {i}": g.detach()._array for i, g in enumerate(gradients) if g is not None}


def _nodes(roots: Sequence[Node | None]) -> Iterator[str]:
    """The names of the nodes, in the order of a walk."""
    ahead, met = list(roots), set()
    while ahead:
        node = ahead.pop()
        if node is not None and id(node) not in met:
            met.add(id(node))
            yield node.name()
            ahead.extend(edge for edge, _ in node.next_functions)


def difference(seen: Seen, expected: Seen) -> str:
    """What the first difference is, in words; nothing where there is none."""
    if seen.error != expected.error:
        return (
            f"it fails with {seen.error!r}, not {expected.error!r}"
            if expected.error
            else f"it fails with {seen.error!r}"
        )
    for name, a in expected.arrays.items():
        b = seen.arrays.get(name)
        if (
            b is None
            or a.shape != b.shape
            or a.dtype != b.dtype
            or not np.array_equal(a, b, equal_nan=a.dtype.kind not in "iub")
        ):
            return f"{name} is {_short(b)}, not {_short(a)}"
    if seen.nodes != expected.nodes:
        return f"the graph is {' '.join(seen.nodes)}, not {' '.join(expected.nodes)}"
    return "there is more of it" if set(seen.arrays) - set(expected.arrays) else ""


def _short(array: Array | None) -> str:
    return "missing" if array is None else np.array2string(array, threshold=6, separator=", ").replace("\n", "")


# ---- warnings as errors


@contextmanager
def strict_numpy(setting: str) -> Iterator[None]:
    """Warnings are errors, and NumPy is told to give them ("warn"), or to raise ("raise")."""
    with warnings.catch_warnings(), np.errstate(all=setting):  # type: ignore[call-overload]
        warnings.simplefilter("error")
        yield


def check_warnings(name: str, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """With warnings as errors a call gives no warning, and what it gives without: one that is made again after a
    warning has written twice.

    Raises:
        AssertionError: the call warns, or gives something else
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, again = observed(call, args, kwargs), observed(call, args, kwargs)
    for setting in ("warn", "raise"):
        try:
            with strict_numpy(setting):
                seen = observed(call, args, kwargs)
        except (Warning, FloatingPointError) as given:
            words = f"{name}: gives {type(given).__name__}({str(given)!r}) where NumPy is told to {setting}"
            raise AssertionError(
                f"{words}\n  try: compute in `with np.errstate(all='ignore')`, IEEE results are the answer"
            ) from None
        changed = difference(seen, expected)
        assert not changed or difference(again, expected), (
            f"{name}: with warnings as errors {changed}\n  try: do not compute again after a warning"
        )


def check_inplace(name: str, method: str, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """With warnings as errors the in-place form of a function writes what the function gives, once.

    Raises:
        AssertionError: it writes something else, or counts more than one write
    """
    x, *others = args
    options = {k: v for k, v in kwargs.items() if k not in ("out", "inplace")}
    with no_grad(), strict_numpy("warn"):
        try:
            result = call(*args, **options)
            target = x.detach().clone()
            before = target._version
            written = getattr(target, method)(*others, **options)
        except (Warning, FloatingPointError) as given:
            raise AssertionError(f"{name}: {method} gives {type(given).__name__}({str(given)!r})") from None
        except Exception:
            return  # a result of another shape or dtype, or arguments that the op refuses
        expected = Seen({"the tensor": result.to(x.dtype)._array})
    assert written is target, f"{name}: {method} does not return the tensor that it writes to"
    changed = difference(Seen({"the tensor": target._array}), expected)
    assert not changed, (
        f"{name}: after {method}, with warnings as errors, {changed}\n  try: take the warning as given after the "
        "loop, which has written"
    )
    assert target._version == before + 1, f"{name}: {method} counts {target._version - before} writes, not one"


# ---- threads


def at_once(work: Callable[[int], Any], threads: int, repeats: int = 1) -> list[list[Any]]:
    """The results of ``work(k)`` for each k, called ``repeats`` times in a thread of its own, all at once, at a switch
    interval of a microsecond.
    """
    barrier, results = threading.Barrier(threads), [[] for _ in range(threads)]  # type: list[list[Any]]
    failed: list[BaseException] = []

    def run(k: int) -> None:
        try:
            barrier.wait()
            for _ in range(repeats):
                results[k].append(work(k))
        except BaseException as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        started = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if failed:
        raise failed[0]
    return results


def check_threads(
    name: str, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any], threads: int = 4, repeats: int = 3
) -> None:
    """Threads that make the call at once, each with other numbers, get what each gets alone: results, graphs and
    gradients.

    Raises:
        AssertionError: one of them gets something else
    """
    look = lambda k: observed(call, args, kwargs, turn=k)  # noqa: E731
    expected = [look(k) for k in range(threads)]
    if any(difference(look(k), expected[k]) for k in range(threads)):
        return  # draws random numbers
    for k, seen in enumerate(at_once(look, threads, repeats)):
        for one in seen:
            changed = difference(one, expected[k])
            words = f"{name}: while {threads - 1} other threads make the call, too, {changed}"
            assert not changed, (
                f"{words}\n  try: keep what a call needs in its own variables, or on ctx, not on a class or in a global"
            )
