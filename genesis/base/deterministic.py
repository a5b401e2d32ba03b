"""Whether a program wants the same bits each time where something faster would give others: PyTorch's two switches.

Two things depend on it: the gradient of attention by cuDNN, and which algorithm of cuBLASLt the products of compiled steps
have, the library's first or the fastest. All else is in the same order each time, whatever is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from genesis.base.errors import ArgumentError, ArgumentValueError, message

MODES = {"default": 0, "warn": 1, "error": 2}


@dataclass(slots=True)
class Switches:
    """``algorithms`` and ``warns`` are set by `use_deterministic_algorithms`, ``cudnn`` by ``backends.cudnn.deterministic``."""

    algorithms: bool = False
    warns: bool = False
    cudnn: bool = False

    @property
    def wanted(self) -> bool:
        return self.algorithms or self.cudnn


switches = Switches()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let everything give the same bits each time, on a GPU, too, where attention's gradient is faster without that.

    Gradients of attention by cuDNN in 16 bits are sums in whatever order programs end, until this is on, and large products
    of compiled steps have the algorithm that was the fastest when this machine timed it: kept from then on, but maybe not the
    one of another machine. All else is in the same order each time in any case: nothing is refused, and ``warn_only`` changes
    nothing. A step that `genesis.compile` has recorded stays as it was.

    >>> import genesis
    >>> genesis.use_deterministic_algorithms(True)
    >>> genesis.are_deterministic_algorithms_enabled()
    True
    >>> genesis.use_deterministic_algorithms(False)
    """
    switches.algorithms, switches.warns = bool(mode), bool(mode) and bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on."""
    return switches.algorithms


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was asked for with ``warn_only``."""
    return switches.warns


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by a number or a name: 0 or ``"default"`` is off, 1 or ``"warn"`` and 2 or ``"error"`` are on."""
    if not isinstance(debug_mode, int | str):
        raise ArgumentError(message("set_deterministic_debug_mode", f"expected an int or a str, got {debug_mode!r}"))
    mode = MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in MODES.values():
        known = ", ".join(MODES)
        raise ArgumentValueError(message("set_deterministic_debug_mode", f"{debug_mode!r} is none of {known}, 0, 1, 2"))
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see `set_deterministic_debug_mode`."""
    return MODES["warn" if switches.warns else "error"] if switches.algorithms else 0
