"""Sparse matrices in coordinates, beside their dense counterparts."""

from __future__ import annotations

import pytest

import genesis
from genesis.pytorch import installed


def made(**options):
    return genesis.sparse_coo_tensor([[0, 2, 0, 0], [1, 0, 3, 1]], [1.0, 2.0, 3.0, 4.0], (3, 4), **options)


def test_elements_at_one_coordinate_add_up():
    x = made()
    dense = [[0, 5, 0, 3], [0, 0, 0, 0], [2, 0, 0, 0]]
    assert x.to_dense().tolist() == dense and x._nnz() == 4 and not x.is_coalesced()
    y = x.coalesce()
    assert y.indices().tolist() == [[0, 0, 2], [1, 3, 0]] and y.values().tolist() == [5, 3, 2]
    assert y.to_dense().tolist() == dense and x.to_dense().to_sparse().values().tolist() == [5, 3, 2]
    with pytest.raises(RuntimeError, match="indices: the tensor is not coalesced"):
        x.indices()
    assert genesis.sparse_coo_tensor([[2]], [1.0]).shape == (3,)


def test_products_and_their_gradients():
    values, b = genesis.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), genesis.ones(4, 2, requires_grad=True)
    x = genesis.sparse_coo_tensor([[0, 2, 0, 0], [1, 0, 3, 1]], values, (3, 4))
    weight = genesis.arange(6.0).reshape(3, 2)
    (genesis.spmm(x, b) * weight).sum().backward()
    other_values, other = values.detach().requires_grad_(), b.detach().requires_grad_()
    dense = genesis.zeros(3, 4).index_put(
        (genesis.tensor([0, 2, 0, 0]), genesis.tensor([1, 0, 3, 1])), other_values, accumulate=True
    )
    ((dense @ other) * weight).sum().backward()
    assert genesis.equal(values.grad, other_values.grad) and genesis.equal(b.grad, other.grad)


def test_every_product_is_that_of_the_dense_matrix():
    x, dense = made(), made().to_dense()
    b, vector = genesis.arange(8.0).reshape(4, 2), genesis.arange(4.0)
    assert genesis.equal(x @ b, dense @ b) and genesis.equal(genesis.mm(x, b), dense @ b)
    assert genesis.equal(x @ vector, dense @ vector) and genesis.equal(b.t() @ x.t(), b.t() @ dense.t())
    assert genesis.equal((x @ x.t()).to_dense(), dense @ dense.t()) and genesis.equal((x + x).to_dense(), 2 * dense)
    assert genesis.equal((x * 3).to_dense(), dense * 3) and genesis.equal(genesis.ones(3, 4) + x, dense + 1)
    assert (
        genesis.equal(x.sum(1), dense.sum(1))
        and x.sum() == dense.sum()
        and genesis.equal((-x / 2).to_dense(), -dense / 2)
    )
    with pytest.raises(RuntimeError, match=r"spmm: shapes \[3, 4\] and \[3, 2\] have no product"):
        x @ genesis.ones(3, 2)


def test_wrong_coordinates():
    with pytest.raises(RuntimeError, match=r"coordinates up to \[2, 3\] do not fit size \[2, 4\]"):
        genesis.sparse_coo_tensor([[0, 2], [1, 3]], [1.0, 2.0], (2, 4))
    with pytest.raises(RuntimeError, match=r"indices of shape \[2, 2\] and values of shape \[3\] do not fit"):
        genesis.sparse_coo_tensor([[0, 2], [1, 3]], [1.0, 2.0, 3.0])


def test_a_graph_network_learns():
    with installed() as torch:
        torch.manual_seed(0)
        adjacency = torch.sparse.FloatTensor(
            torch.LongTensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), torch.ones(6) / 2, torch.Size((3, 3))
        )
        weight = torch.nn.Parameter(torch.randn(4, 2))
        features, optimizer = torch.randn(3, 4), torch.optim.Adam([weight], lr=0.1)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            output = torch.spmm(adjacency, torch.mm(features, weight))
            loss = torch.nn.functional.cross_entropy(output, torch.tensor([0, 1, 0]))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 2


def test_gradients_take_only_inputs_as_pytorch_does():
    x = genesis.ones(2, requires_grad=True)
    (g,) = genesis.autograd.grad(
        outputs=(x * x).sum(), inputs=x, create_graph=True, retain_graph=True, only_inputs=True
    )
    assert g.tolist() == [2, 2]
