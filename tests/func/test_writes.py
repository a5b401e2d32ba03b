"""Writes in place inside nested transforms: right, or refused, never a lost tangent."""

from __future__ import annotations

import pytest

import genesis
from genesis.func import jacfwd, jvp


@pytest.mark.parametrize("tracked", [False, True])
def test_a_write_that_would_lose_a_tangent_is_refused(tracked):
    def f(x, y):
        z = x * 1.0
        z[0] = y[1]
        return z * z

    x, y = genesis.tensor([1.0, 2.0, 3.0]), genesis.tensor([4.0, 5.0, 6.0], requires_grad=tracked)
    second = lambda: jvp(jacfwd(f), (x, y), (genesis.ones(3), genesis.ones(3)))[1]  # noqa: E731
    if tracked:
        with pytest.raises(RuntimeError, match="which the write would lose"):
            second()
    else:
        assert second().tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 2]]
