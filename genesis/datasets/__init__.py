"""Small real data that comes with the package, for examples, tests and the demo."""

from __future__ import annotations

from genesis.datasets.digits import digits

__all__ = ["digits"]
