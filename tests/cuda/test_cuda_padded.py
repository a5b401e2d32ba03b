"""Products of 16-bit matrices whose rows do not begin at multiples of 16 bytes, by a stand-in of cuBLASLt."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from kernels_of import emulated, same
from library_stand_ins import CublasLt

import genesis
from genesis.cuda.kernels import padded
from genesis.cuda.libraries import loading
from genesis.nn import functional as F


@pytest.fixture
def products(monkeypatch):
    """All products that can gain by copies are large enough."""
    monkeypatch.setattr(padded, "RATES", {**padded.RATES, 2: 1.0, 4: 1.0, 8: 1.0})
    with emulated() as driver:
        lt = CublasLt(driver)
        with loading.standing_in(cublaslt=lt):
            yield lt


def tensors(*shapes, dtype=genesis.bfloat16):
    genesis.manual_seed(1)
    return [genesis.randn(*shape).to(dtype) for shape in shapes]


FORMS = {  # a function, shapes, and the leading dimensions of the left, the right and the result
    "rows": (lambda x, y: x @ y, [(5, 7), (7, 9)], (8, 16, 16)),
    "columns": (lambda x, y: x.t() @ y.t(), [(7, 5), (9, 7)], (8, 8, 16)),
    "all but what it gives": (lambda x, y: x @ y, [(5, 7), (7, 16)], (8, 16, 16)),
    "only what it gives": (lambda x, y: x @ y.t(), [(6, 16), (9, 16)], (16, 16, 16)),
    "a part of more": (lambda x, y: x[:, 1:8] @ y[:, :16], [(5, 16), (7, 24)], (8, 24, 16)),
    "a batch": (lambda x, y: x @ y, [(4, 5, 7), (4, 7, 9)], (8, 16, 16)),
    "a batch that shares one side": (lambda x, y: x @ y, [(5, 7), (4, 7, 9)], (8, 16, 16)),
    "matrices that begin anywhere": (lambda x, y: x[:, 1:] @ y, [(4, 6, 4), (4, 4, 8)], (8, 8, 8)),
    "turned batches": (lambda x, y: x.transpose(1, 2) @ y.transpose(1, 2), [(2, 7, 5), (2, 9, 7)], (8, 8, 16)),
    "a layer with a bias": (F.linear, [(4, 5, 7), (9, 7), (9,)], (8, 8, 16)),
    "wide rows": (F.linear, [(2, 5, 8), (1025, 8)], (8, 8, 1088)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_the_library_multiplies_copies_whose_rows_are_further_apart(name, dtype, products):
    function, shapes, rows = FORMS[name]
    same(function, *tensors(*shapes, dtype=dtype), tolerance=2e-2)
    assert (products.rows, products.aligned) == ([rows], [True])
    there = [t.to("cuda") for t in tensors(*shapes, dtype=dtype)]
    assert function(*there).is_contiguous()


def test_gradients(products):
    def gradients(x, w, b):
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        F.linear(x, w, b).float().square().sum().backward()
        return x.grad, w.grad, b.grad

    same(gradients, *tensors((6, 7), (9, 7), (9,), dtype=genesis.float16), tolerance=5e-2)
    assert products.aligned == [True] * 3


def test_other_dtypes_and_what_begins_at_such_multiples_stay_as_they_are(products):
    x, y = [t.to("cuda") for t in tensors((5, 7), (7, 9), dtype=genesis.float32)]
    _ = x @ y
    x, y = [t.to("cuda") for t in tensors((5, 8), (8, 16))]
    _ = x @ y
    assert products.rows == [(7, 9, 9), (8, 16, 16)]


def described(shape, strides=None):
    """An array as far as its layout goes."""
    strides = (shape[1], 1) if strides is None else strides
    return SimpleNamespace(shape=shape, strides=strides, address=512, dtype=np.dtype(np.float16))


def test_copies_are_made_where_they_gain_more_than_they_take():
    rows, width, classes = 16384, 768, 50257
    logits, turned = described((rows, classes)), described((classes, rows), (1, classes))
    x, w = described((rows, width)), described((classes, width))
    wt = described((width, classes), (1, width))
    assert padded.pays(x, wt, (rows, classes), (0, 0))
    assert padded.pays(logits, w, (rows, width), (0, 0))
    assert padded.pays(turned, x, (classes, width), (0, 0))
    even = described((width, classes + 7), (1, width))
    assert not padded.pays(x, even, (rows, classes + 7), (0, 0))  # nothing to gain
    assert not padded.pays(described((rows, 64)), described((64, classes)), (rows, classes), (0, 0))  # moves as much
    assert not padded.pays(described((128, 256)), described((256, 10)), (128, 10), (0, 0))  # copies take as long
    assert not padded.pays(described((rows, classes)), described((classes, 1)), (rows, 1), (0, 0))
