"""``axis`` and ``keepdims``, as NumPy and PyTorch's functions have them, beside ``dim`` and ``keepdim``."""

from __future__ import annotations

import pytest

import genesis as g

X = g.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
INDEX = g.zeros(1, 3, dtype=g.int64)
CALLS = {
    "cat": ([X, X],), "stack": ([X, X],), "softmax": (X,), "log_softmax": (X,), "cumsum": (X,), "cumprod": (X,), "sort": (X,),
    "argsort": (X,), "median": (X,), "mode": (X,), "unbind": (X,), "unsqueeze": (X,), "squeeze": (X[:1],), "diff": (X,),
    "count_nonzero": (X,), "topk": (X, 1), "chunk": (X, 2), "split": (X, 1), "tensor_split": (X, 2), "quantile": (X, 0.5),
    "kthvalue": (X, 1), "repeat_interleave": (X, 2), "sum": (X,), "mean": (X,), "std": (X,), "argmax": (X,), "max": (X,),
    "unsafe_split": (X, 1), "hash_tensor": (X,), "logsumexp": (X,), "norm": (X,),
}  # fmt: skip


def values(result):
    return [values(r) for r in result] if isinstance(result, tuple | list) else result.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_axis_is_dim(name):
    first, *rest = CALLS[name]
    for dim in (0, -1):
        by_dim = values(getattr(g, name)(first, *rest, dim=dim))
        assert values(getattr(g, name)(first, *rest, axis=dim)) == by_dim
        if isinstance(first, g.Tensor) and name != "split":  # a method of Python's in PyTorch, without the word
            assert values(getattr(first, name)(*rest, axis=dim)) == by_dim


@pytest.mark.parametrize("name", ["sum", "median", "mode", "quantile", "std", "logsumexp", "norm"])
def test_keepdims_is_keepdim(name):
    first, *rest = CALLS[name]
    kept = getattr(g, name)(first, *rest, dim=1, keepdims=True)
    assert values(kept) == values(getattr(first, name)(*rest, dim=1, keepdim=True))


def test_parameters_that_have_no_default_still_have_to_be_given():
    assert g.gather(X, axis=0, index=INDEX).tolist() == X[:1].tolist() == g.gather(X, 0, INDEX).tolist()
    assert X.index_select(axis=1, index=g.tensor([1])).tolist() == [[1.0], [5.0]]
    assert g.select(X, axis=1, index=0).tolist() == X[:, 0].tolist()
    with pytest.raises(TypeError, match=r"^gather\(\) missing 1 required positional argument: 'index'$"):
        g.gather(X, axis=0)
    with pytest.raises(TypeError, match=r"^gather\(\) missing 2 required positional arguments: 'dim' and 'index'$"):
        g.gather(X)
    with pytest.raises(TypeError, match="colour"):
        g.softmax(X, colour=1)


def test_a_tensor_in_a_shape_with_as_many_elements_can_be_written_to():
    row = g.arange(3).expand(1, -1)
    row.copy_(g.tensor([[5, 6, 7]]))
    assert row.tolist() == [[5, 6, 7]] and row._base.tolist() == [5, 6, 7]
    x = g.ones(3, requires_grad=True)
    y = x.clone()
    y.expand(1, 1, 3).mul_(2)
    y.sum().backward()
    assert y.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 2, 2]
    assert g.zeros(0, 3).expand(1, 0, 3).shape == (1, 0, 3)
    for many in (g.ones(1, 3).expand(2, 3), g.ones(3).expand(2, 3), g.ones(()).expand(2)):
        with pytest.raises(RuntimeError, match="clone"):
            many.mul_(2)
