"""Anomaly mode: stop where the first bad value is made, forward or backward, and say which line made it."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from genesis.base.errors import AnomalyError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.op import Op
from genesis.core.call.refusal import switch
from genesis.core.graph import engine
from genesis.core.graph.modes import Mode, closed, interception, opened, watchers
from genesis.core.graph.node import Node
from genesis.core.graph.site import LIBRARY
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor

_current: ContextVar[detect_anomaly | None] = ContextVar("genesis_anomaly", default=None)


class detect_anomaly(Mode):
    """Context manager and decorator: an operation or a gradient rule that makes NaN is an error, at once.

    Forward, the error is raised from the line that made the first bad value, with the operation, where in the result it
    is, and the operands there; so the traceback and the debugger stand in the right place. Backward, it names the rule,
    the gradient, and the line of the forward that recorded it, with the calls that led there as a note of the
    exception. Everything runs on the slow path: for looking for a mistake, not for training; that is a warning when the
    mode is made, and an exception in a backward comes with one that shows the calls of its forward (both as in
    PyTorch).

    Args:
        check_nan: look at values at all; without it only the calls are noted, for errors in backward
        check_inf: infinities are bad values, too (masks of attention and logarithms of 0 often make them on purpose)

    Raises (inside):
        RuntimeError: (`AnomalyError`) a bad value

    >>> import genesis
    >>> with genesis.autograd.detect_anomaly():
    ...     genesis.tensor([4.0, -1.0]).sqrt()
    Traceback (most recent call last):
    genesis.base.errors.AnomalyError: sqrt: made nan in 1 of 2 elements, the first at [1]
      input f32[2], -1.0 there
      try: look at the operands on this line; genesis.autograd.detect_anomaly found it
    """

    def __init__(self, check_nan: bool = True, check_inf: bool = False) -> None:
        super().__init__()
        self.check_nan, self.check_inf = (
            switch("detect_anomaly", "check_nan", check_nan),
            switch("detect_anomaly", "check_inf", check_inf),
        )
        if self._warns:
            warnings.warn(
                "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled "
                "for debugging.",
                UserWarning,
                stacklevel=2,
            )

    _warns = True

    def _enter(self) -> Any:
        before = _current.get()
        _switch_to(self)
        return before

    def _leave(self, before: Any) -> None:
        _switch_to(before)

    def _entries(self) -> tuple[tuple[Any, Any], ...]:
        """What stands where while this mode is open."""
        return (interception, self._between), (watchers, self), (engine.around_node, (None, self.check_node))

    def _fresh(self) -> Mode:
        return _Quiet(self.check_nan, self.check_inf)

    # ---- forward

    def _between(self, op: Op, arrays: Sequence[Any], kernel: Callable[[], Any]) -> Any:
        result = kernel()
        if self.check_nan and engine.current() is None:
            for array in result if isinstance(result, tuple | list) else (result,):
                self.check(op.name, array, arrays, list(op.signature.parameters), op.kind.aligned)
        return result

    def check(self, name: str, array: Any, operands: Sequence[Any], names: Sequence[str], elementwise: bool) -> None:
        """Raise an error if an array holds a bad value; elementwise: the operands' elements that went into it are
        known.
        """
        bad = self.bad(array)
        if bad is None:
            return
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        value = array[first]
        came_in = None
        lines: list[tuple[str, object]] = []
        for label, x in _named(names, operands):
            if not isinstance(x, np.ndarray):
                continue
            there = _there(x, first, array.shape) if elementwise else None
            lines.append((label, f"{_spec(x)}{'' if there is None else f', {there} there'}"))
            if came_in is None and self.bad(x) is not None:
                came_in = label
        what = f"{value} in {int(bad.sum())} of {bad.size} elements, the first at {list(first)}"
        if came_in is None:
            problem, hint = (
                f"made {what}",
                "look at the operands on this line; genesis.autograd.detect_anomaly found it",
            )
        else:
            problem, hint = (
                f"{came_in} holds a bad value already, and the result {what}",
                "no operation made it: look at the data, or at the tensor written to",
            )
        raise AnomalyError(message(name, problem, operands=lines, hint=hint))

    def bad(self, array: Any) -> Any:
        """Where an array holds bad values; None where it holds none."""
        if not isinstance(array, np.ndarray) or array.dtype.kind in "biu" or not array.size:
            return None
        numbers = array if array.dtype.kind in "fc" else array.astype(np.float32)
        bad = ~np.isfinite(numbers) if self.check_inf else np.isnan(numbers)
        return bad if bad.any() else None

    # ---- backward

    def check_node(self, node: Node, results: Sequence[Any], incoming: Sequence[Any]) -> None:
        """Raise an error if a rule made a bad gradient."""
        if not self.check_nan:
            return
        for index, g in enumerate(results):
            bad = self.bad(g._array) if isinstance(g, Tensor) else None
            if bad is None:
                continue
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            came_in = any(isinstance(p, Tensor) and self.bad(p._array) is not None for p in incoming)
            what = f"{g._array[first]} in {int(bad.sum())} of {bad.size} elements, the first at {list(first)}"
            lines: list[tuple[str, object]] = [
                ("incoming gradient", p._spec()) for p in incoming if isinstance(p, Tensor)
            ]
            site = node.where()
            if site is not None:
                lines.append(("called at", site))
            told = "the gradient it got was bad already" if came_in else "the gradient it got was good"
            error = AnomalyError(
                message(
                    type(node).__name__,
                    f"the gradient of {node.slot_name(index)} has {what}; {told}",
                    operands=lines,
                    hint="look at the values that the forward had on this line",
                )
            )
            if node._hooks is not None and "calls" in node._hooks.metadata:
                error.add_note(
                    "The forward was called from (most recent call last):\n"
                    + "".join(traceback.format_list(node.metadata["calls"])).rstrip()
                )
            raise error

    def failed(self, node: Node) -> None:
        """Show the calls that led to a node in whose backward an exception was raised."""
        calls = node.metadata.get("calls")
        told = "No forward pass information available. Enable detect anomaly during forward pass for more information."
        if calls:
            told = "Traceback of forward call that caused the error:\n" + "".join(traceback.format_list(calls))
        with suppress(UserWarning):  # where warnings are errors the exception itself is the better one
            warnings.warn(f"Error detected in {node.name()}. {told}", UserWarning, stacklevel=2)

    def new_node(self, node: Node) -> None:
        """Note the calls that lead to a node that is being recorded."""
        node.metadata["calls"] = [f for f in traceback.extract_stack() if not LIBRARY[f.filename]]

    def function_result(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """Look at what a Function returned: it may have computed it with NumPy."""
        if self.check_nan and engine.current() is None:
            arrays = [a._array if isinstance(a, Tensor) else a for a in args]
            for y in tree_flatten(result)[0]:
                if isinstance(y, Tensor):
                    self.check(
                        f"{cls.__name__}.forward",
                        y._array,
                        arrays,
                        list(inspect.signature(cls.forward).parameters)[0 if cls._split else 1 :],
                        False,
                    )


def _switch_to(mode: detect_anomaly | None) -> None:
    """Make this the open mode of the thread: one at a time, wherever other modes were opened between."""
    before = _current.get()
    if before is not None:
        for variable, entry in before._entries():
            closed(variable, entry)
        ACTIVE.pop()
    _current.set(mode)
    if mode is not None:
        ACTIVE.append(mode)
        for variable, entry in mode._entries():
            opened(variable, entry)


def set_detect_anomaly(mode: bool, check_nan: bool = True, check_inf: bool = False) -> detect_anomaly:
    """Switch anomaly mode on or off from here on; the result can be used in a ``with`` to undo it at its end.

    >>> import genesis
    >>> with genesis.autograd.set_detect_anomaly(True):
    ...     genesis.autograd.is_anomaly_enabled()
    True
    >>> genesis.autograd.is_anomaly_enabled()
    False
    """
    return _Switch(mode, check_nan, check_inf)


class _Quiet(detect_anomaly):
    """`detect_anomaly` inside a function that it decorates."""

    _warns = False


class _Switch(_Quiet):
    """`detect_anomaly` that takes effect when it is made; it stays until the end of a ``with``, if there is one."""

    def __init__(self, mode: bool, check_nan: bool, check_inf: bool) -> None:
        super().__init__(check_nan, check_inf)
        self._mode, self._undo = switch("set_detect_anomaly", "mode", mode), _current.get()
        _switch_to(self if self._mode else None)

    def __enter__(self) -> _Switch:
        return self

    def __exit__(self, *_: object) -> None:
        _switch_to(self._undo)

    def _fresh(self) -> Mode:
        return _Switch(self._mode, self.check_nan, self.check_inf)

    def __call__(self, target: Any) -> Any:
        _switch_to(self._undo)  # as a decorator the mode holds inside the function only
        return super().__call__(target)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return _current.get() is not None


def _named(names: Sequence[str], operands: Sequence[Any]) -> list[tuple[str, Any]]:
    labelled: list[tuple[str, Any]] = []
    for index, x in enumerate(operands):
        label = names[index] if index < len(names) else f"operand {index}"
        labelled += (
            [(f"{label}[{i}]", part) for i, part in enumerate(x)] if isinstance(x, list | tuple) else [(label, x)]
        )
    return labelled


def _there(x: np.ndarray[Any, Any], index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The element of an operand that went into an element of the result, if the two broadcast."""
    try:
        return np.broadcast_to(x, shape)[index]
    except ValueError:
        return None


def _spec(x: np.ndarray[Any, Any]) -> str:
    from genesis.arrays.spec import spec_of

    return str(spec_of(x))
