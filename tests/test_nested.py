"""Nested tensors, against the same parts one by one, and against PyTorch."""

from __future__ import annotations

import pytest

import genesis
from genesis import nested

F = genesis.nn.functional
SIZES = [2, 4, 1]


def parts(*inner, requires_grad=False):
    genesis.manual_seed(0)
    return [genesis.randn(n, *inner, dtype=genesis.float64).requires_grad_(requires_grad) for n in SIZES]


def same(x, want):
    found = x.unbind() if isinstance(x, nested.NestedTensor) else list(x)
    return len(found) == len(want) and all(
        a.shape == b.shape and genesis.allclose(a, b) for a, b in zip(found, want, strict=True)
    )


def test_facts():
    x = nested.nested_tensor(parts(3))
    assert repr(x).startswith("NestedTensor(size=(3, j, 3), offsets=tensor([0, 2, 6, 7])")
    assert (x.dim(), x.size(0), x.size(2), len(x), x.numel(), x.dtype) == (3, 3, 3, 3, 21, genesis.float64)
    assert x.shape == nested.nested_tensor(parts(3)).shape != nested.nested_tensor(parts(3)[::-1]).shape
    assert (x.is_nested, x.layout, x.values().shape, x.offsets().tolist()) == (
        True,
        genesis.jagged,
        (7, 3),
        [0, 2, 6, 7],
    )
    assert same(x, parts(3)) and same(list(x), parts(3)) and x.lengths() is None
    assert genesis.equal(x[1], parts(3)[1]) and genesis.equal(x[1, 0], parts(3)[1][0])
    assert x[:, :, 1:].shape[2] == 2
    assert genesis.is_tensor(x.values())
    for wrong in (lambda: bool(x), lambda: x[:, 0], lambda: x.nothing):
        with pytest.raises((TypeError, NotImplementedError, AttributeError)):
            wrong()


@pytest.mark.parametrize("f", [
    lambda x: x * 2 + 1, lambda x: -x, lambda x: 1 / (x * x + 1), lambda x: x.sin(), lambda x: genesis.exp(x),
    lambda x: F.relu(x), lambda x: F.gelu(x), lambda x: x > 0, lambda x: genesis.where(x > 0, x, x * 0), lambda x: x.double(),
    lambda x: x.masked_fill(x > 0, 1.0), lambda x: x**2, lambda x: x.clamp(0, 1), lambda x: F.dropout(x, 0.0), lambda x: x - x,
    lambda x: x * genesis.arange(3.0).double(), lambda x: x.sum(-1), lambda x: x.mean(1), lambda x: x.amax(1),
    lambda x: x.sum(1), lambda x: x.sum(1, keepdim=True), lambda x: x.var(1, correction=0), lambda x: x.argmax(2),
    lambda x: genesis.softmax(x, -1), lambda x: F.softmax(x, 1), lambda x: x.cumsum(1), lambda x: x.log_softmax(dim=2),
    lambda x: x @ genesis.ones(3, 2).double(), lambda x: F.linear(x, genesis.ones(2, 3).double(), genesis.ones(2).double()),
    lambda x: F.layer_norm(x, (3,)), lambda x: x.transpose(1, 2), lambda x: x.transpose(1, 2).transpose(-1, -2),
    lambda x: x.unsqueeze(-1), lambda x: x.unsqueeze(1).squeeze(1), lambda x: x.unflatten(2, (3, 1)),
    lambda x: x.unflatten(2, (3, 1)).transpose(1, 2).flatten(1, 1), lambda x: x.chunk(3, -1)[1], lambda x: genesis.cat([x, x], 2),
    lambda x: x / x.norm(dim=2, keepdim=True), lambda x: genesis.sigmoid(x).sum(dim=(1, 2)), lambda x: x.contiguous().clone(),
])  # fmt: skip
def test_as_part_by_part(f):
    own, others = parts(3, requires_grad=True), parts(3, requires_grad=True)
    shapes = {0: lambda part: part[None], 1: lambda result: result[0]}
    want = [shapes[1](f(shapes[0](part))) for part in others]
    result = f(nested.as_nested_tensor(own))
    assert same(result, want)
    if want[0].requires_grad:
        total = sum((w * (i + 1)).sum() for i, w in enumerate(want))
        mine = sum(
            (r * (i + 1)).sum()
            for i, r in enumerate(result.unbind() if isinstance(result, nested.NestedTensor) else result)
        )
        genesis.autograd.backward([total, mine])
        assert all(
            (a.grad is None and b.grad is None) or genesis.allclose(a.grad, b.grad)
            for a, b in zip(own, others, strict=True)
        )


def test_batches_beside_it():
    x, y = nested.nested_tensor(parts(3)), genesis.randn(3, 1, 3, dtype=genesis.float64)
    assert same(x + y, [a + b for a, b in zip(parts(3), y, strict=True)])
    assert same(y * x, [a * b for a, b in zip(parts(3), y, strict=True)])
    w = genesis.randn(3, 3, 2, dtype=genesis.float64)
    assert same(x @ w, [a @ b for a, b in zip(parts(3), w, strict=True)])
    assert same(x.transpose(1, 2) @ x, [a.t() @ a for a in parts(3)])
    with pytest.raises(RuntimeError, match="does not fit"):
        x + genesis.ones(3, 4, 3)
    with pytest.raises(RuntimeError, match="the parts have sizes"):
        x + nested.nested_tensor(parts(3)[::-1])


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (nested.nested_tensor([p * i for p in parts(4)]) for i in (1, 2, 3))
    heads = [x.unflatten(-1, (2, 2)).transpose(1, 2) for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*heads, is_causal=causal)
    want = [F.scaled_dot_product_attention(*[x[i] for x in heads], is_causal=causal) for i in range(3)]
    assert same(out, want)
    assert same(out.transpose(1, 2).flatten(-2), [w.transpose(0, 1).flatten(-2) for w in want])
    assert out.transpose(1, 2).reshape(3, -1, 4).shape == q.shape


def test_a_layer_learns_from_it():
    layer, embedding = genesis.nn.Linear(4, 2), genesis.nn.Embedding(5, 4)
    tokens = nested.nested_tensor([[1, 2, 3], [4]])
    loss = layer(embedding(tokens)).relu().mean(1).sum()
    loss.backward()
    want = sum(layer(embedding(genesis.tensor(row))).relu().mean(0).sum() for row in ([1, 2, 3], [4]))
    assert genesis.allclose(loss, want)
    assert layer.weight.grad.shape == (2, 4) and embedding.weight.grad[0].tolist() == [0] * 4


def test_made_and_taken_apart():
    x = nested.nested_tensor([[1, 2], [3]])
    assert (x.dtype, x.requires_grad) == (genesis.int64, False)
    assert nested.to_padded_tensor(x, -1).tolist() == x.to_padded_tensor(-1).tolist() == [[1, 2], [3, -1]]
    assert x.to_padded_tensor(0, (3, 3)).tolist() == [[1, 2, 0], [3, 0, 0], [0, 0, 0]]
    assert nested.nested_tensor([[1.0], [2.0, 3.0]], requires_grad=True).is_leaf
    y = nested.nested_tensor_from_jagged(genesis.arange(5.0), lengths=genesis.tensor([2, 3]))
    assert same(y, [genesis.tensor([0.0, 1]), genesis.tensor([2.0, 3, 4])])
    y = nested.nested_tensor_from_jagged(genesis.arange(6.0), genesis.tensor([0, 2, 5]))
    assert y.values().tolist() == [0, 1, 2, 3, 4]
    wide = nested.nested_tensor([genesis.ones(3, 2), genesis.ones(3, 5)])
    assert (wide.shape[1], repr(wide.shape[2]), wide.to_padded_tensor(0.0).shape) == (3, "j", (2, 3, 5))
    assert same(nested.narrow(genesis.arange(8).reshape(2, 4), 1, genesis.tensor([0, 1]), genesis.tensor([2, 3])),
                [genesis.tensor([0, 1]), genesis.tensor([5, 6, 7])])  # fmt: skip
    assert same(genesis.cat([x, x]), [genesis.tensor(row) for row in ([1, 2], [3], [1, 2], [3])])
    for wrong in ([genesis.ones(2, 3), genesis.ones(3, 2)], [genesis.ones(2), genesis.ones(2, 2)], [genesis.ones(())]):
        with pytest.raises(RuntimeError, match="differ in more than one size"):
            nested.nested_tensor(wrong)
    with pytest.raises(TypeError, match="differ in dtype"):
        nested.nested_tensor([genesis.ones(2), genesis.ones(1).long()])


@pytest.mark.parametrize("f", [
    lambda x: genesis.linalg.svd(x), lambda x: x.sum(0), lambda x: genesis.stack([x, x]), lambda x: F.conv1d(x, genesis.ones(1, 1, 1)),
    lambda x: x.transpose(0, 1), lambda x: x.flatten(1, 2), lambda x: x.softmax(0), lambda x: x.view(3, 7), lambda x: x.unbind(1),
])  # fmt: skip
def test_what_is_refused(f):
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        f(nested.nested_tensor(parts(3)))
    assert "Error" not in str(caught.value)


@pytest.mark.parity
def test_as_in_torch():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    outcomes = []
    for lib in (torch, genesis):
        x = lib.nested.nested_tensor([lib.arange(3.0), lib.arange(5.0)], layout=lib.jagged, requires_grad=True)
        y = (x * 2 + x.sin()).to_padded_tensor(-1.0)
        w = lib.nested.as_nested_tensor([lib.ones(2, 4), lib.ones(3, 4)], layout=lib.jagged)
        z = lib.nn.functional.layer_norm(w * lib.arange(4.0), (4,)) @ lib.ones(4, 2)
        y.sum().backward()
        picked = lib.nested.masked_select(lib.ones(2, 3), lib.tensor([[True, False, True], [False, True, True]]))
        outcomes.append([
            y.tolist(), x.grad.values().tolist(), z.values().tolist(), z.softmax(-1).unbind()[1].tolist(), z.dim(), x.mean(1).tolist(),
            w.sum(1).tolist(), w.transpose(1, 2).amax(1).unbind()[0].tolist(), picked.offsets().tolist(), w.amax(1).tolist(),
        ])  # fmt: skip
    for theirs, mine in zip(*outcomes, strict=True):
        assert genesis.allclose(genesis.tensor(mine).double(), genesis.tensor(theirs).double(), atol=1e-6)
