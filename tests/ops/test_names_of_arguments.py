"""Arguments by the names that PyTorch gives them: the same call as by their places."""

from __future__ import annotations

import pytest

import genesis

X = genesis.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "named, placed",
    [
        (lambda: X.reshape(shape=(3, 2)), lambda: X.reshape(3, 2)),
        (lambda: X.view(size=[3, 2]), lambda: X.view(3, 2)),
        (lambda: X.view(dtype=genesis.int32), lambda: X.view(genesis.int32)),
        (lambda: X.permute(dims=(1, 0)), lambda: X.permute(1, 0)),
        (lambda: X[:1].expand(size=(4, -1)), lambda: X[:1].expand(4, -1)),
        (lambda: X[:1].expand((4, -1), implicit=False), lambda: X[:1].expand(4, -1)),
        (lambda: X.repeat(repeats=(2, 1)), lambda: X.repeat(2, 1)),
        (lambda: X.tile(dims=(2,)), lambda: X.tile(2)),
        (lambda: X.sum_to_size(size=(1, 3)), lambda: X.sum_to_size(1, 3)),
        (lambda: X.clone().resize_(size=(3, 2)), lambda: X.clone().resize_(3, 2)),
        (lambda: X.split_with_sizes(split_sizes=[1, 2], dim=1)[1], lambda: X[:, 1:]),
        (lambda: X.max(other=X.flip(0)), lambda: X.max(X.flip(0))),
        (lambda: genesis.min(X, other=X.flip(0)), lambda: X.min(X.flip(0))),
        (lambda: X.pow(exponent=2), lambda: X**2),
        (lambda: genesis.pow(input=X, exponent=X), lambda: X**X),
        (lambda: X.clamp_min(min=2.0), lambda: X.clamp(2.0)),
        (lambda: X.clamp_max(max=2.0), lambda: X.clamp(max=2.0)),
        (lambda: X.heaviside(values=X), lambda: X.heaviside(X)),
        (lambda: X.mv(vec=X[0]), lambda: X @ X[0]),
        (lambda: X[0].dot(tensor=X[1]), lambda: X[0] @ X[1]),
        (lambda: genesis.arange(end=3), lambda: genesis.arange(3)),
        (lambda: genesis.arange(end=3, step=2), lambda: genesis.arange(0, 3, 2)),
        (lambda: genesis.randint(high=1, size=(3,)), lambda: genesis.zeros(3, dtype=genesis.int64)),
        (lambda: genesis.randint_like(X, high=1), lambda: genesis.zeros(2, 3)),
        (lambda: X.clone().random_(to=1), lambda: genesis.zeros(2, 3)),
    ],
)
def test_names_and_places_are_one_call(named, placed):
    assert named().equal(placed()) and named().dtype is placed().dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.reshape(3, 2, shape=(3, 2)),
        lambda: X.reshape(size=(3, 2)),
        lambda: X.permute(dim=(1, 0)),
        lambda: X.pow(other=2),
        lambda: genesis.arange(),
        lambda: genesis.randint(high=3),
        lambda: genesis.randint(size=(3,)),
    ],
)
def test_other_names_are_refused(call):
    with pytest.raises(TypeError):
        call()


def test_gradients_follow():
    x = X.clone().requires_grad_()
    x.pow(exponent=2).permute(dims=(1, 0)).reshape(shape=(6,)).max(other=genesis.zeros(6)).sum().backward()
    assert x.grad.equal(2 * X)
