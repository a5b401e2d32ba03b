"""Sparse tensors in coordinates, some with dense dimensions, beside PyTorch's: values, layouts, gradients, refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import genesis

RNG = np.random.default_rng(0)

# of a matrix in coordinates (3, 4), one with slices as values (4, 2), a dense matrix of each size, and the library
CALLS = {
    "abs": lambda m, h, d, e, lib: h.abs(), "square": lambda m, h, d, e, lib: lib.square(m),
    "power": lambda m, h, d, e, lib: h**2, "sin": lambda m, h, d, e, lib: lib.sin(m), "sign": lambda m, h, d, e, lib: m.sign(),
    "relu": lambda m, h, d, e, lib: h.relu(), "expm1": lambda m, h, d, e, lib: m.expm1(), "isnan": lambda m, h, d, e, lib: m.isnan(),
    "tanh_": lambda m, h, d, e, lib: m.clone().coalesce().tanh_(), "neg": lambda m, h, d, e, lib: -h,
    "times 2": lambda m, h, d, e, lib: 2 * h, "times dense": lambda m, h, d, e, lib: h * e, "dense times": lambda m, h, d, e, lib: d * m,
    "times row": lambda m, h, d, e, lib: m * d[0], "times itself": lambda m, h, d, e, lib: m.coalesce() * m.coalesce(),
    "torch.mul": lambda m, h, d, e, lib: lib.mul(m, 3), "by 2": lambda m, h, d, e, lib: h / 2, "by 0-d": lambda m, h, d, e, lib: m / lib.tensor(2.0),
    "floor": lambda m, h, d, e, lib: m // 2, "sum of two": lambda m, h, d, e, lib: h + h * 2, "difference": lambda m, h, d, e, lib: h - h * 3,
    "alpha": lambda m, h, d, e, lib: lib.add(m, m, alpha=-2), "dense +": lambda m, h, d, e, lib: e + h, "dense -": lambda m, h, d, e, lib: d - m,
    "dense alpha": lambda m, h, d, e, lib: lib.add(e, h, alpha=-2.5), "dense.add_": lambda m, h, d, e, lib: e.clone().add_(h),
    "dense.sub_": lambda m, h, d, e, lib: d.clone().sub_(m), "dense.mul_": lambda m, h, d, e, lib: e.clone().mul_(h),
    "add_": lambda m, h, d, e, lib: h.clone().add_(h), "sub_": lambda m, h, d, e, lib: m.clone().sub_(m), "mul_": lambda m, h, d, e, lib: m.clone().mul_(2),
    "div_": lambda m, h, d, e, lib: h.clone().div_(4), "zero_": lambda m, h, d, e, lib: h.clone().zero_(), "copy_": lambda m, h, d, e, lib: h.clone().zero_().copy_(h),
    "norm": lambda m, h, d, e, lib: h.norm(), "norm 3": lambda m, h, d, e, lib: lib.norm(m, 3.0), "sum": lambda m, h, d, e, lib: h.sum(),
    "sum 0": lambda m, h, d, e, lib: h.sum(0), "sum 1": lambda m, h, d, e, lib: h.sum(1), "sum (0, 1)": lambda m, h, d, e, lib: m.sum((0, 1)),
    "sparse.sum": lambda m, h, d, e, lib: lib.sparse.sum(m, 1), "any": lambda m, h, d, e, lib: m.any(), "h[1]": lambda m, h, d, e, lib: h[1],
    "m[0]": lambda m, h, d, e, lib: m[0], "m[-1, 1]": lambda m, h, d, e, lib: m[-1, 1], "m[:, 1]": lambda m, h, d, e, lib: m[:, 1],
    "h[:, 1]": lambda m, h, d, e, lib: h[:, 1], "index_select": lambda m, h, d, e, lib: h.index_select(0, lib.tensor([1, 0, 1])),
    "index_select 1": lambda m, h, d, e, lib: lib.index_select(h, 1, lib.tensor([1, 1])), "narrow_copy": lambda m, h, d, e, lib: m.narrow_copy(1, 1, 2),
    "mask": lambda m, h, d, e, lib: e.sparse_mask(h.coalesce()), "mask of sparse": lambda m, h, d, e, lib: m.sparse_mask(m.coalesce()),
    "permute": lambda m, h, d, e, lib: m.permute(1, 0), "t": lambda m, h, d, e, lib: m.t(),
    "unsqueeze": lambda m, h, d, e, lib: h.unsqueeze(0), "unsqueeze end": lambda m, h, d, e, lib: h.unsqueeze(2), "cat": lambda m, h, d, e, lib: lib.cat([h, h]),
    "cat 1": lambda m, h, d, e, lib: lib.cat([m, m], 1), "stack": lambda m, h, d, e, lib: lib.stack([h, h]), "unbind": lambda m, h, d, e, lib: m.unbind()[0],
    "mm": lambda m, h, d, e, lib: lib.mm(m, e), "mm of dense": lambda m, h, d, e, lib: lib.mm(e.t(), m.t()), "@": lambda m, h, d, e, lib: e.t() @ m.t(),
    "mv": lambda m, h, d, e, lib: lib.mv(m, e[:, 0]), "addmm": lambda m, h, d, e, lib: lib.addmm(d[:, :2], m, e, beta=2, alpha=3),
    "bmm": lambda m, h, d, e, lib: lib.bmm(lib.stack([m, m]), lib.stack([e, e])), "double": lambda m, h, d, e, lib: h.double(), "half": lambda m, h, d, e, lib: m.half(),
    "to": lambda m, h, d, e, lib: m.to(lib.float64), "bool": lambda m, h, d, e, lib: m.bool(), "to_sparse 1": lambda m, h, d, e, lib: d.to_sparse(1),
    "resize": lambda m, h, d, e, lib: m.clone().sparse_resize_((5, 6), 2, 0), "clear": lambda m, h, d, e, lib: m.clone().sparse_resize_and_clear_((5, 6), 1, 1),
    "copy": lambda m, h, d, e, lib: copy.deepcopy(h), "pickle": lambda m, h, d, e, lib: pickle.loads(pickle.dumps(h)), "nan_to_num": lambda m, h, d, e, lib: m.nan_to_num(),
    "empty": lambda m, h, d, e, lib: lib.sparse_coo_tensor((2, 3)), "smallest": lambda m, h, d, e, lib: lib.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 4.0]]),
    "new": lambda m, h, d, e, lib: h.new(h._indices(), h._values() * 2, h.shape), "new without size": lambda m, h, d, e, lib: m.new(m._indices(), m._values()),
    "new of nothing": lambda m, h, d, e, lib: h.new().resize_as_(m), "new of a size": lambda m, h, d, e, lib: m.new(2, 3), "new_zeros": lambda m, h, d, e, lib: h.new_zeros((2, 3)),
    "new_empty": lambda m, h, d, e, lib: m.new_empty(2, 3, dtype=lib.float64), "zeros_like": lambda m, h, d, e, lib: lib.zeros_like(h), "empty_like": lambda m, h, d, e, lib: lib.empty_like(m, dtype=lib.float64),
}  # fmt: skip


def _operands(lib, empty=False):
    rng = np.random.default_rng(1)
    count = 0 if empty else 6
    made = [rng.integers(0, n, size=(1, count)) for n in (3, 4, 4)]
    values, slices, d, e = (rng.normal(size=s) for s in ((count,), (count, 2), (3, 4), (4, 2)))
    m = lib.sparse_coo_tensor(lib.tensor(np.concatenate(made[:2])), lib.tensor(values).float(), (3, 4))
    h = lib.sparse_coo_tensor(lib.tensor(made[2]), lib.tensor(slices).float(), (4, 2))
    return m, h, lib.tensor(d).float(), lib.tensor(e).float(), lib


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_results(name, empty):
    torch = pytest.importorskip("torch")
    mine, theirs = CALLS[name](*_operands(genesis, empty)), CALLS[name](*_operands(torch, empty))
    assert mine.is_sparse == theirs.is_sparse and tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    if mine.is_sparse:
        assert (mine.sparse_dim(), mine.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())
        np.testing.assert_array_equal(mine.coalesce().indices().numpy(), theirs.coalesce().indices().numpy())
        mine, theirs = mine.to_dense(), theirs.to_dense()
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["coalesce", "indices", "values"])
def test_dense_tensors_have_no_coordinates(name):
    torch = pytest.importorskip("torch")
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError):
            getattr(lib.ones(2), name)()
        assert (lib.ones(2, 3).sparse_dim(), lib.ones(2, 3).dense_dim()) == (0, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, h, d, e: m / d, RuntimeError, "divided by one number"),
        (lambda m, h, d, e: m.clone().add_(d), RuntimeError, r"add\(sparse, dense\) is not supported"),
        (lambda m, h, d, e: m.exp(), NotImplementedError, "exp: it is not there for sparse tensors"),
        (lambda m, h, d, e: m[0:2], NotImplementedError, "indexed by numbers and :"),
        (lambda m, h, d, e: h.permute(1, 0), RuntimeError, "the first 1 are sparse"),
        (lambda m, h, d, e: m + h, RuntimeError, "of sparse tensors differ"),
        (lambda m, h, d, e: m.numpy(), RuntimeError, "no elements one after the other"),
        (lambda m, h, d, e: m.clamp(min=1), RuntimeError, "zeros would not stay zeros"),
        (lambda m, h, d, e: m.clone().sparse_resize_((2, 2), 2, 0), RuntimeError, "cannot shrink"),
        (lambda m, h, d, e: d.to_sparse(3), ValueError, "sparse_dim must be from 1 to 2"),
        (lambda m, h, d, e: d.sparse_mask(h), RuntimeError, "shapes"),
        (lambda m, h, d, e: m.select(0, 3), IndexError, "index 3 is out of range for size 3"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(*_operands(genesis)[:4])


def test_gradients_go_to_leaves_values_and_dense_operands():
    values = genesis.tensor(RNG.normal(size=(3, 2)), requires_grad=True)
    dense = genesis.tensor(RNG.normal(size=(4, 2)), requires_grad=True)

    def made(v):
        return genesis.sparse_coo_tensor([[1, 3, 1]], v, (4, 2))

    check = genesis.autograd.gradcheck
    assert check(lambda v: made(v).to_dense(), (values,)) and check(lambda v: made(v).coalesce().values(), (values,))
    assert check(lambda v, d: (d + made(v) * 2) * d, (values, dense))
    assert check(lambda v, d: (made(v) * d).to_dense(), (values, dense))
    assert check(lambda v: (made(v) * made(v * 2)).to_dense(), (values,)) and check(lambda v: made(v).sum(0), (values,))
    leaf = made(values.detach()).requires_grad_()
    (leaf.to_dense() ** 2).sum().backward()
    assert leaf.is_leaf and leaf.grad.is_sparse and genesis.allclose(leaf.grad.to_dense()[3], 2 * values.detach()[1])


# ---- blocks


def _blocks(lib, shape=(6, 8)):
    rng = np.random.default_rng(2)
    dense = lib.tensor(rng.normal(size=shape) * (rng.random(size=shape) < 0.15)).float()
    return dense, dense.to_sparse_bsr((2, 4)), dense.to_sparse_bsc((3, 2))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse")
def test_blocks():
    torch = pytest.importorskip("torch")
    (dense, *mine), (_, *theirs) = _blocks(genesis), _blocks(torch)
    names = (("crow_indices", "col_indices"), ("ccol_indices", "row_indices"))
    for x, y, parts in zip(mine, theirs, names, strict=True):
        assert str(x.layout).split(".")[1] == str(y.layout).split(".")[1] and x._nnz() == y._nnz()
        for part in (*parts, "values"):
            np.testing.assert_array_equal(getattr(x, part)().numpy(), getattr(y, part)().numpy(), err_msg=part)
        made = getattr(genesis, f"sparse_{x.layout.name[-3:]}_tensor")
        again = made(*(getattr(x, part)() for part in (*parts, "values")), x.shape)
        for z in (
            x,
            x.to_sparse(),
            x.t().t(),
            again,
            pickle.loads(pickle.dumps(x)),
            x.to_sparse_csr(),
            x.clone(),
            x * 2 / 2,
        ):
            assert genesis.equal(z.to_dense(), dense)
        b = genesis.tensor(RNG.normal(size=(8, 3))).float()
        assert genesis.allclose(x @ b, dense @ b) and genesis.allclose(genesis.mm(x, b), dense @ b)
        assert genesis.allclose(b.t() @ x.t(), b.t() @ dense.t()) and (x + x).layout is x.layout
        assert genesis.equal((x + x).to_dense(), 2 * dense) and genesis.equal(x.sin().to_dense(), dense.sin())
        assert f"layout={x.layout}" in repr(x) and (x.sparse_dim(), x.dense_dim()) == (y.sparse_dim(), y.dense_dim())
    for layout in (genesis.sparse_csr, genesis.sparse_csc, genesis.sparse_coo):
        assert dense.to_sparse(layout=layout).layout is layout
    assert dense.to_sparse(layout=genesis.sparse_bsr, blocksize=(2, 2)).blocksize == (2, 2)


def test_blocks_that_do_not_fit():
    dense, x, y = _blocks(genesis)
    for call, text in (
        (lambda: dense.to_sparse_bsr((4, 4)), "do not divide"),
        (lambda: x.ccol_indices(), "the tensor has the layout genesis.sparse_bsr"),
        (lambda: y.crow_indices(), "the tensor has the layout genesis.sparse_bsc"),
        (lambda: genesis.sparse_bsr_tensor([0, 1], [0], [1.0]), "values are blocks"),
        (lambda: genesis.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 3)), "do not divide size"),
        (lambda: genesis.sparse_bsr_tensor([0, 2], [0], [[[1.0, 2.0]]], (1, 4)), "must grow from 0 to 1"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()
