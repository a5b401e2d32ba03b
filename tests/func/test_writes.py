"""Writes in place inside nested transforms: no tangent is lost."""

from __future__ import annotations

import pytest

import genesis
from genesis.func import jacfwd, jvp


def written(x, y):
    z = x * 1.0
    z[0] = y[1]
    return z * z * z


def joined(x, y):
    z = genesis.cat([y[1:2], x[1:]])
    return z * z * z


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_value_that_has_a_tangent_of_an_outer_transform_only(tracked, argnums):
    x, y = genesis.tensor([1.0, 2.0, 3.0]), genesis.tensor([4.0, 5.0, 6.0], requires_grad=tracked)
    tangents = genesis.tensor([1.0, 10.0, 100.0]), genesis.tensor([3.0, 4.0, 5.0])
    results = [jvp(jacfwd(f, argnums=argnums), (x, y), tangents)[1] for f in (written, joined)]
    got, want = [sum(part.sum(0) for part in (r if isinstance(r, tuple) else (r,))) for r in results]
    assert got.tolist() == want.tolist()
    if tracked and argnums != 0:
        weights = genesis.tensor([1.0, 2.0, 3.0])
        assert [genesis.autograd.grad((r * weights).sum(), y)[0].tolist() for r in (got, want)] == [[0, 48, 0]] * 2


def test_a_value_with_more_dims_is_put_into_a_part_inside_vmap():
    def f(x, v):
        x = x.clone()
        x[0] = v
        return x

    x, v = genesis.zeros(3, 2, 4), genesis.arange(12.0).reshape(3, 1, 1, 4)
    found = genesis.func.vmap(f)(x, v)
    assert found[:, 0].tolist() == v[:, 0, 0].tolist() and not found[:, 1].any()
    with pytest.raises(RuntimeError, match="does not fit"):
        genesis.func.vmap(f)(x, genesis.zeros(3, 2, 1, 4))
