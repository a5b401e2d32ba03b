"""Sparse matrices in coordinates, beside their dense counterparts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
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
        genesis.equal(x.sum(1).to_dense(), dense.sum(1))
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


# ---- by rows and by columns

RNG = np.random.default_rng(0)


def by_rows(**options):
    return genesis.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], [5.0, 3.0, 2.0], (3, 4), **options)


def test_layouts_turn_into_each_other():
    x = by_rows()
    assert (x.layout, x.is_sparse, x.is_sparse_csr, x.shape) == (genesis.sparse_csr, False, True, (3, 4))
    assert x.t().layout is genesis.sparse_csc and x.t().t().crow_indices().tolist() == [0, 2, 2, 3]
    for y in (x, x.to_sparse(), x.to_sparse_csc(), x.to_dense(), x.to_sparse_csc().to_sparse_csr(), x.clone()):
        z = y.to_sparse_csr()
        assert z.crow_indices().tolist() == [0, 2, 2, 3] and z.col_indices().tolist() == [1, 3, 0]
        z = y.to_sparse_csc()
        assert z.ccol_indices().tolist() == [0, 1, 2, 2, 3] and z.row_indices().tolist() == [2, 0, 0]
        assert z.values().tolist() == [2, 5, 3]
    assert made().to_sparse_csr().values().tolist() == [5, 3, 2]
    assert by_rows().to_sparse(layout=genesis.sparse_csc).layout is genesis.sparse_csc
    assert genesis.equal(copy.deepcopy(x).to_dense(), x.to_dense())
    assert genesis.equal(pickle.loads(pickle.dumps(x)).to_dense(), x.to_dense())
    empty = genesis.zeros(2, 0).to_sparse_csr()
    assert empty.crow_indices().tolist() == [0, 0, 0] and empty._nnz() == 0
    assert repr(by_rows()).endswith("values=tensor([5., 3., 2.]), size=(3, 4), nnz=3, layout=genesis.sparse_csr)")


@pytest.mark.parametrize("turn", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_arithmetic_of_every_layout_is_that_of_the_dense_matrix(turn):
    dense = by_rows().to_dense()
    x = getattr(dense, turn)()
    assert genesis.equal((x @ x.t()).to_dense(), dense @ dense.t()) and (x @ x.t()).layout is x.layout
    assert genesis.equal((x * x).to_dense(), dense * dense) and genesis.equal((x * 2).to_dense(), dense * 2)
    assert genesis.equal((x + x * 2 - x / 4).to_dense(), dense * 2.75) and (x + x).layout is x.layout
    assert genesis.equal(x + genesis.ones(3, 4), dense + 1) and genesis.equal(
        genesis.ones(2, 3) @ x, dense[:2] * 0 + dense.sum(0)
    )
    assert x.sum() == 10 and genesis.equal(x.sum(1).to_dense(), dense.sum(1)) and x.double().dtype is genesis.float64
    b = genesis.tensor(RNG.normal(size=(4, 2)), dtype=genesis.float32)
    assert genesis.equal(genesis.sparse.mm(x, b), x @ b) and genesis.allclose(x @ b, dense @ b)
    assert genesis.allclose(genesis.sparse.addmm(genesis.ones(3, 2), x, b, beta=2, alpha=3), 2 + 3 * (dense @ b))


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (([0, 2, 3], [1, 3, 0], [5.0, 3.0, 2.0], (3, 4)), r"2 rows with columns up to 3 do not fit size \[3, 4\]"),
        (([0, 2, 2, 3], [1, 5, 0], [5.0, 3.0, 2.0], (3, 4)), "columns up to 5 do not fit"),
        (([0, 2, 2, 3], [3, 1, 0], [5.0, 3.0, 2.0], (3, 4)), "the columns of each of the rows must grow"),
        (([0, 2, 2, 3], [1, 1, 0], [5.0, 3.0, 2.0], (3, 4)), "the columns of each of the rows must grow"),
        (([0, 3, 2, 3], [1, 3, 0], [5.0, 3.0, 2.0], (3, 4)), r"must grow from 0 to 3, .* got \[0, 3, 2, 3\]"),
        (([1, 2, 2, 3], [1, 3, 0], [5.0, 3.0, 2.0], (3, 4)), "must grow from 0 to 3"),
        (([0, 2, 2, 3], [1, 3, -1], [5.0, 3.0, 2.0], (3, 4)), "do not fit size"),
        (([0, 2, 2, 3], [1, 3], [5.0, 3.0, 2.0], (3, 4)), r"got shapes \[4\], \[2\], \[3\]"),
    ],
)
def test_what_is_no_matrix_is_refused(args, text):
    with pytest.raises(RuntimeError, match=text):
        genesis.sparse_csr_tensor(*args)


def test_parts_of_other_layouts_are_refused():
    for call, text in [
        (by_rows().indices, "indices: the tensor has the layout genesis.sparse_csr"),
        (by_rows().ccol_indices, "ccol_indices: the tensor has the layout genesis.sparse_csr"),
        (genesis.ones(2).crow_indices, "crow_indices: the tensor has the layout genesis.strided"),
        (made().crow_indices, "crow_indices: the tensor has the layout genesis.sparse_coo"),
        (genesis.ones(2).to_sparse_csr, "a matrix is needed, the tensor has 1 dimensions"),
        (lambda: genesis.sparse.mm(by_rows(), genesis.ones(4, 1), "max"), "reduce must be"),
        (lambda: genesis.sparse.sampled_addmm(by_rows(), genesis.ones(3, 1), genesis.ones(1, 3)), "do not fit"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_products_go_to_values_and_the_dense_matrix(reduce):
    values = genesis.tensor(RNG.normal(size=3), requires_grad=True)
    b = genesis.tensor(RNG.normal(size=(4, 2)), requires_grad=True)

    def product(values, b):
        x = genesis.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], values, (3, 4))
        return genesis.sparse.mm(x, b, reduce)

    assert genesis.autograd.gradcheck(product, (values, b))


def test_gradients_of_functions_of_sparse_matrices():
    values = genesis.tensor(RNG.normal(size=3), requires_grad=True)
    a, b = (genesis.tensor(RNG.normal(size=s), requires_grad=True) for s in ((3, 2), (2, 4)))

    def made_of(values):
        return genesis.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], values, (3, 4))

    check = genesis.autograd.gradcheck
    assert check(lambda v: (made_of(v).t() @ made_of(v)).to_dense(), (values,))
    assert check(lambda v: genesis.sparse.softmax(made_of(v), 1).to_dense(), (values,))
    assert check(lambda v: genesis.sparse.log_softmax(made_of(v).to_sparse(), 0).values(), (values,))
    assert check(lambda v, a, b: genesis.sparse.sampled_addmm(made_of(v), a, b, beta=2.0).values(), (values, a, b))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse")
def test_functions_of_sparse_matrices_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    parts = [0, 2, 2, 3], [1, 3, 0], [5.0, 3.0, 2.0], (3, 4)
    x, its = genesis.sparse_csr_tensor(*parts), torch.sparse_csr_tensor(*parts, check_invariants=True)
    b = RNG.normal(size=(4, 2)).astype(np.float32)
    for reduce in ("sum", "mean", "amax", "amin"):
        expected = torch.sparse.mm(its, torch.tensor(b), reduce).numpy()
        np.testing.assert_allclose(genesis.sparse.mm(x, genesis.tensor(b), reduce).numpy(), expected, rtol=1e-6)
    a = RNG.normal(size=(3, 2)).astype(np.float32)
    expected = torch.sparse.sampled_addmm(its, torch.tensor(a), torch.tensor(b.T.copy()), beta=0.5, alpha=2.0)
    mine = genesis.sparse.sampled_addmm(x, genesis.tensor(a), genesis.tensor(b).t(), beta=0.5, alpha=2.0)
    np.testing.assert_allclose(mine.to_dense().numpy(), expected.to_dense().numpy(), rtol=1e-5)
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1):
            expected = getattr(torch.sparse, name)(its.to_sparse(), dim).to_dense().numpy()
            mine = getattr(genesis.sparse, name)(x.to_sparse(), dim).to_dense()
            np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3), (0, 4), (2, 0)])
def test_diagonals_lie_where_their_offsets_say(shape):
    diagonals, offsets = RNG.normal(size=(3, 5)), [-2, 0, 1]
    expected = np.zeros(shape)
    for row, k in zip(diagonals, offsets, strict=True):
        for j in range(min(5, shape[1])):
            if 0 <= j - k < shape[0]:
                expected[j - k, j] = row[j]
    mine = genesis.sparse.spdiags(genesis.tensor(diagonals), genesis.tensor(offsets), shape, genesis.sparse_csr)
    assert mine.layout is genesis.sparse_csr
    np.testing.assert_array_equal(mine.to_dense().numpy(), expected)
    with pytest.raises(RuntimeError, match=r"3 diagonals with offsets \[0, 0, 1\] do not fit"):
        genesis.sparse.spdiags(genesis.tensor(diagonals), genesis.tensor([0, 0, 1]), shape)
