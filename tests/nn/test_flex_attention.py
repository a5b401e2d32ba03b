"""`flex_attention` against attention written out, and against PyTorch's: scores, masks by blocks, heads, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

SLOPES = [0.5, 0.25]


def causal(b, h, q, kv):
    return q >= kv


def near(b, h, q, kv):
    return (q - kv).abs() < 3


def operands(lib, dtype="float64", heads=2, length=7, other=9):
    rng = np.random.default_rng(0)
    shapes = (2, heads, length, 4), (2, 2, other, 4), (2, 2, other, 3)
    return [lib.tensor(rng.normal(size=s)).to(getattr(lib, dtype)).requires_grad_() for s in shapes]


def mods(lib):
    """Changes of scores: of the place, of tensors that are indexed, and of what is hidden."""
    table = lib.tensor(np.random.default_rng(1).normal(size=(2, 16)))
    slopes = lib.tensor(SLOPES, dtype=lib.float64)
    return {
        "nothing": None,
        "alibi": lambda score, b, h, q, kv: score + slopes[h] * (kv - q),
        "relative": lambda score, b, h, q, kv: score * 2 + table[h, q - kv + 8],
        "hidden": lambda score, b, h, q, kv: lib.where(q + b >= kv, score, -math.inf),
        "soft cap": lambda score, b, h, q, kv: 5 * lib.tanh(score / 5),
    }


def results(lib, flex, name, mask, **options):
    given = [x.detach() for x in operands(lib)]
    return [x.numpy() for x in flex.flex_attention(*given, mods(lib)[name], mask, return_lse=True, **options)]


@pytest.mark.slow  # PyTorch imports its compiler for it
@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", mods(genesis))
@pytest.mark.parametrize("masked", [False, True])
def test_like_pytorch(name, masked, monkeypatch):
    """The values: PyTorch has no gradients of it on the CPU."""
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    monkeypatch.setattr(theirs, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    found = []
    for lib, flex in ((genesis, genesis.nn.attention.flex_attention), (torch, theirs)):
        mask = flex.create_block_mask(flex.or_masks(causal, near), 2, None, 7, 9, "cpu", 2) if masked else None
        found.append(results(lib, flex, name, mask, scale=0.3))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", mods(genesis))
def test_gradients(name):
    mask = create_block_mask(or_masks(causal, near), 2, None, 3, 4, BLOCK_SIZE=2)

    def call(q, k, v):
        out, lse = flex_attention(q, k, v, mods(genesis)[name], mask, return_lse=True)
        return out, genesis.where(lse == -math.inf, 0.0, lse)

    assert genesis.autograd.gradcheck(call, operands(genesis, length=3, other=4), fast_mode=True)


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("size", [2, (3, 4), 16])
@pytest.mark.parametrize("separate", [True, False])
def test_blocks_are_those_of_pytorch(size, separate):
    pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    one, two = (
        flex.create_block_mask(causal, 2, 3, 11, 13, "cpu", size, separate_full_blocks=separate)
        for flex in (genesis.nn.attention.flex_attention, theirs)
    )
    for a, b in ((one, two), (one[1, :, :1], two[1, :, :1]), (one._adjust(6, 7), two._adjust(6, 7))):
        assert (a.shape, a.numel()) == (b.shape, b.numel())
        assert a.sparsity() == pytest.approx(b.sparsity())
        np.testing.assert_array_equal(a.to_dense().numpy(), b.to_dense().numpy())
        for what in (
            "kv_num_blocks",
            "kv_indices",
            "q_num_blocks",
            "q_indices",
            "full_kv_num_blocks",
            "full_kv_indices",
        ):
            mine, its = getattr(a, what), getattr(b, what)
            assert (mine is None) == (its is None)
            if mine is not None:
                assert mine.dtype is genesis.int32
                np.testing.assert_array_equal(mine.numpy(), its.numpy())


def test_written_out():
    q, k, v = operands(genesis)
    mask = create_block_mask(and_masks(causal, near), None, None, 7, 9, BLOCK_SIZE=4)
    out = flex_attention(q, k, v, lambda score, b, h, i, j: score + b, mask)
    want = genesis.nn.functional.scaled_dot_product_attention(q, k, v, create_mask(and_masks(causal, near), 2, 2, 7, 9))
    assert genesis.allclose(out, want)


def test_rows_without_anything_give_zeros_and_have_no_gradient():
    q, k, v = operands(genesis)
    mask = create_block_mask(lambda b, h, i, j: i > 2, None, None, 7, 9, BLOCK_SIZE=2)
    out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True, max_scores=True))
    assert (
        not out[:, :, :3].any()
        and (aux.lse[:, :, :3] == -math.inf).all()
        and (aux.max_scores[:, :, :3] == -math.inf).all()
    )
    assert genesis.allclose(aux.max_scores[:, :, 3:], (q @ k.mT / 2).amax(-1)[:, :, 3:])
    out.sum().backward()
    assert not q.grad[:, :, :3].any() and q.grad.isfinite().all() and k.grad.isfinite().all()


def test_several_heads_of_queries_share_one_of_keys():
    q, k, v = operands(genesis, heads=4)
    out = flex_attention(q, k, v, enable_gqa=True)
    want = flex_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))
    assert genesis.equal(out, want)
    assert genesis.allclose(
        flex_attention(q, k[:1], v[:1], enable_gqa=True)[1], flex_attention(q[1:], k[:1], v[:1], enable_gqa=True)[0]
    )


def test_tensors_that_scores_index_have_gradients():
    bias = genesis.zeros(2, 16, dtype=genesis.float64).requires_grad_()

    def call(bias):
        return flex_attention(*operands(genesis), lambda score, b, h, q, kv: score + bias[h, q - kv + 8])

    assert genesis.autograd.gradcheck(call, bias, fast_mode=True)
    call(bias).sum().backward()
    assert bias.grad[:, :16].any()


def test_blocks_decide_what_is_seen():
    """A mask of blocks alone, and the partial and full ones of another."""
    count, indices = (
        genesis.ones(1, 1, 2, dtype=genesis.int32),
        genesis.tensor([[[[0, 1], [1, 0]]]], dtype=genesis.int32),
    )
    blocks = BlockMask.from_kv_blocks(count, indices, BLOCK_SIZE=2)
    assert blocks.elements(1, 1)[0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert blocks.mask_mod is noop_mask and "BlockMask(shape=(1, 1, 4, 4), sparsity=50.00%" in str(blocks)
    mask = create_block_mask(causal, None, None, 5, 7, BLOCK_SIZE=2)
    assert genesis.equal(mask.elements(1, 1), create_mask(causal, None, None, 5, 7))


def test_lower_precision():
    q, k, v = operands(genesis, "bfloat16")
    out = flex_attention(q, k, v, lambda score, b, h, i, j: score + 1)
    assert out.dtype is genesis.bfloat16
    exact = flex_attention(*[x.detach().double() for x in (q, k, v)])
    assert genesis.allclose(out.double(), exact, atol=0.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q, k, v: flex_attention(q[0], k, v), "4 dimensions"),
        (lambda q, k, v: flex_attention(q, k[..., :2], v), "as many features"),
        (lambda q, k, v: flex_attention(q, k, v[:, :, :3]), "one length"),
        (lambda q, k, v: flex_attention(q, k[:, :1], v[:, :1]), "query has 2 heads, key 1"),
        (lambda q, k, v: flex_attention(q[:, :1], k, v, enable_gqa=True), "no multiple of the 2 of key"),
        (lambda q, k, v: flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 7, 7)), "is for lengths"),
        (lambda q, k, v: flex_attention(q, k, v, block_mask=create_block_mask(causal, 5, None, 7, 9)), "is for 5 examples"),
        (lambda q, k, v: flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 7, 9)[:1]), "sliced BlockMask"),
        (lambda q, k, v: flex_attention(q, k, v, return_lse=True, return_aux=AuxRequest()), "both given"),
        (lambda q, k, v: create_block_mask(lambda q, kv: q >= kv, None, None, 7, 9), "this takes 2"),
        (lambda q, k, v: create_block_mask(causal, None, None, 7, 9, compute_dq_write_order=True), "kernels on GPUs"),
        (lambda q, k, v: and_masks(causal, 3), r"masks are functions of \(b, h, q_idx, kv_idx\), got 3"),
        (lambda q, k, v: flex_attention(3, k, v), "query must be a tensor"),
    ],
)  # fmt: skip
def test_wrong_arguments(change, words):
    with pytest.raises((RuntimeError, ValueError, TypeError, NotImplementedError), match=words):
        change(*operands(genesis))
