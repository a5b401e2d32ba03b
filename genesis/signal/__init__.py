"""Signals: `genesis.signal.windows`."""

from __future__ import annotations

from genesis.signal import windows

__all__ = ["windows"]
