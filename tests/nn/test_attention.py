"""Attention and transformers against PyTorch, with the same weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import genesis
from genesis import jit, nn
from genesis.kernels.cpu import attention
from genesis.nn import functional as F
from genesis.nn.attention import SDPBackend, sdpa_kernel

rng = np.random.default_rng(0)


def same_weights(torch, ours, theirs):
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        values = rng.standard_normal(tuple(q.shape)) * 0.5
        with torch.no_grad():
            q.copy_(torch.from_numpy(values))
        with genesis.no_grad():
            p.copy_(genesis.tensor(values))


def run(lib, call, arrays, parameters=()):
    """Results and gradients, as arrays."""
    inputs = [lib.tensor(a, requires_grad=True) if a.dtype.kind == "f" else lib.tensor(a) for a in arrays]
    found = call(lib, *inputs)
    outs = [y for y in (found if isinstance(found, tuple) else (found,)) if y is not None]
    total = sum((y * lib.tensor(np.cos(np.arange(y.numel())).reshape(tuple(y.shape)))).sum() for y in outs)
    total.backward()
    leaves = [x for x in inputs if x.requires_grad] + list(parameters)
    return [x.detach().numpy() for x in outs] + [None if x.grad is None else x.grad.numpy() for x in leaves]


def agree(torch, call, arrays, modules=(None, None), note=""):
    results = []
    for lib, module in zip((genesis, torch), modules, strict=True):
        parameters = () if module is None else module.parameters()
        results.append(run(lib, lambda lib, *x, m=module: call(lib, m, *x) if m else call(lib, *x), arrays, parameters))
    for a, b in zip(*results, strict=True):
        assert (a is None) == (b is None), note
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8, err_msg=str(note))


def sdpa(lib, *args, **kwargs):
    functional = F if lib is genesis else lib.nn.functional
    return functional.scaled_dot_product_attention(*args, **kwargs)


@pytest.mark.parity
@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (1, 2, 3)])
def test_attention_agrees(lead):
    torch = pytest.importorskip("torch")
    shapes = (*lead, 4, 6), (*lead, 5, 6), (*lead, 5, 3)
    q, k, v = (rng.standard_normal(s) for s in shapes)
    for options in ({}, {"is_causal": True}, {"scale": 0.3}, {"scale": -2.0, "is_causal": True}):
        agree(torch, lambda lib, *x, o=options: sdpa(lib, *x, **o), (q, k, v), note=options)
    for shape in ((4, 5), (4, 1), (1, 5), (*lead, 4, 5)):
        floating, boolean = rng.standard_normal(shape), rng.standard_normal(shape) > 0
        boolean[..., 0] = True
        agree(torch, lambda lib, *x: sdpa(lib, *x), (q, k, v, floating), note=shape)
        agree(torch, lambda lib, *x: sdpa(lib, *x), (q, k, v, boolean), note=shape)


@pytest.mark.parity
def test_a_query_that_sees_nothing_gives_zeros():
    torch = pytest.importorskip("torch")
    q, k, v = (rng.standard_normal((2, 3, 4)) for _ in range(3))
    mask = np.array([[True, False, True], [False, False, False], [False, False, True]])
    agree(torch, lambda lib, *x: sdpa(lib, *x), (q, k, v, mask))
    added = genesis.tensor(np.where(mask, 0.0, -np.inf))
    out = F.scaled_dot_product_attention(*map(genesis.tensor, (q, k, v)), added)
    assert out[:, 1].eq(0).all() and genesis.isfinite(out).all()
    nothing = F.scaled_dot_product_attention(genesis.ones(2, 3), genesis.ones(0, 3), genesis.ones(0, 4))
    assert nothing.tolist() == [[0.0] * 4] * 2
    assert F.scaled_dot_product_attention(genesis.ones(0, 3), genesis.ones(2, 3), genesis.ones(2, 4)).shape == (0, 4)


@pytest.mark.parity
def test_shared_heads_and_broadcast_batches():
    torch = pytest.importorskip("torch")
    q, k, v = (rng.standard_normal((2, h, 3, 4)) for h in (6, 2, 3))
    agree(torch, lambda lib, *x: sdpa(lib, *x, enable_gqa=True), (q, k, k[..., :2]))
    agree(torch, lambda lib, *x: sdpa(lib, *x, enable_gqa=True, is_causal=True), (q, k, v))
    agree(torch, lambda lib, *x: sdpa(lib, *x), (q[:1], q, q))


def test_dropout_of_weights():
    genesis.manual_seed(0)
    q = genesis.ones(4, 50, 3)
    out = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert 0.9 < out.mean() < 1.1 and out.var() > 0
    assert F.scaled_dot_product_attention(q, q, q, dropout_p=1.0).eq(0).all()
    with pytest.raises(ValueError, match="p must be"):
        F.scaled_dot_product_attention(q, q, q, dropout_p=1.5)


OPTIONS = list(itertools.product((False, True), repeat=4))


@pytest.mark.parity
@pytest.mark.parametrize("kinds", ["same", "separate"])
def test_multihead_attention_agrees(kinds):
    torch = pytest.importorskip("torch")
    sizes = {} if kinds == "same" else {"kdim": 3, "vdim": 5}
    for bias, extra, zero, batch_first in OPTIONS:
        options = {"bias": bias, "add_bias_kv": extra, "add_zero_attn": zero, "batch_first": batch_first, **sizes}
        ours = nn.MultiheadAttention(6, 2, **options, dtype=genesis.float64)
        theirs = torch.nn.MultiheadAttention(6, 2, **options, dtype=torch.float64)
        same_weights(torch, ours, theirs)
        turned = (lambda *s: (s[1], s[0], s[2])) if batch_first else (lambda *s: s)
        q, k, v = (
            rng.standard_normal(turned(n, 2, f))
            for n, f in ((4, 6), (5, sizes.get("kdim", 6)), (5, sizes.get("vdim", 6)))
        )
        padding, mask = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], bool), rng.standard_normal((4, 5)) > 1
        mask[:, 0] = False
        heads = rng.standard_normal((4, 4, 5))
        for need, average, pad, m in itertools.product(
            (True, False), (True, False), (None, padding), (None, mask, heads)
        ):
            agree(
                torch,
                lambda lib, layer, *x, n=need, a=average, p=pad, m=m, heads=heads: layer(
                    *x,
                    key_padding_mask=None if p is None else lib.tensor(p if m is not heads else np.where(p, -1e9, 0.0)),
                    need_weights=n,
                    attn_mask=None if m is None else lib.tensor(m),
                    average_attn_weights=a,
                ),
                (q, k, v),
                (ours, theirs),
                (options, need, average, pad is None, m is None),
            )
            ours.zero_grad(), theirs.zero_grad()


@pytest.mark.parity
def test_multihead_attention_to_itself_without_a_batch_and_causal():
    torch = pytest.importorskip("torch")
    ours, theirs = nn.MultiheadAttention(6, 3).double(), torch.nn.MultiheadAttention(6, 3).double()
    same_weights(torch, ours, theirs)
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    for need, shape in itertools.product((True, False), ((4, 2, 6), (4, 6))):
        agree(
            torch,
            lambda lib, m, x, n=need: m(x, x, x, attn_mask=lib.tensor(mask), is_causal=True, need_weights=n),
            (rng.standard_normal(shape),),
            (ours, theirs),
        )
        ours.zero_grad(), theirs.zero_grad()


@pytest.mark.parity
@pytest.mark.parametrize("first", [False, True])
def test_projections_read_what_is_given_as_it_lies(first):
    model, x = nn.MultiheadAttention(8, 2, batch_first=first), genesis.randn(3, 5, 8, requires_grad=True)

    def step():
        model(x, x, x, need_weights=False)[0].sum().backward()

    products = [
        c for c in jit.trace(step).program.calls if c.op in ("linear", "matmul") and len(c.outs[0].spec.shape) == 3
    ]
    assert [c.op for c in products] == ["linear", "linear", "matmul", "matmul"]
    assert all(c.args[0].spec.strides is None for c in products)


def test_static_keys_and_values():
    torch = pytest.importorskip("torch")
    q, w = rng.standard_normal((3, 2, 4)), rng.standard_normal((12, 4))
    static = rng.standard_normal((4, 5, 2))

    def call(lib, q, w, k, v):
        functional = F if lib is genesis else lib.nn.functional
        return functional.multi_head_attention_forward(
            q, q, q, 4, 2, w, None, None, None, False, 0.0, w[:4], None, static_k=k, static_v=v
        )

    agree(torch, call, (q, w, static, static))


LAYERS = [
    dict(zip(("norm_first", "batch_first", "bias", "activation"), v, strict=True))
    for v in itertools.product((False, True), (False, True), (True, False), ("relu", "gelu"))
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("options", LAYERS[::3], ids=str)
def test_transformers_agree(options):
    torch = pytest.importorskip("torch")
    args = (6, 2, 2, 1, 10, 0.0)
    ours = nn.Transformer(*args, **options, dtype=genesis.float64)
    theirs = torch.nn.Transformer(*args, **options, dtype=torch.float64)
    same_weights(torch, ours, theirs)
    shape = lambda n: (3, n, 6) if options["batch_first"] else (n, 3, 6)  # noqa: E731
    src, tgt = rng.standard_normal(shape(5)), rng.standard_normal(shape(4))
    padding = np.arange(5) >= np.array([[5], [4], [2]])
    causal = np.triu(np.full((4, 4), -np.inf), 1)
    cases = [
        {},
        {"tgt_mask": causal},
        {"tgt_mask": causal, "tgt_is_causal": True, "src_mask": rng.standard_normal((5, 5))},
        {"tgt_mask": causal < 0, "src_key_padding_mask": padding, "memory_key_padding_mask": padding},
        {"memory_mask": rng.standard_normal((4, 5)), "tgt_key_padding_mask": np.where(padding[:, :4], -1e9, 0.0)},
    ]
    for case in cases:
        if case.get("memory_mask") is not None:
            case["tgt_mask"] = rng.standard_normal((4, 4))
        agree(
            torch,
            lambda lib, m, *x, c=case: m(*x, **{k: v if isinstance(v, bool) else lib.tensor(v) for k, v in c.items()}),
            (src, tgt),
            (ours, theirs),
            (options, sorted(case)),
        )
        ours.zero_grad(), theirs.zero_grad()
    agree(torch, lambda lib, m, *x: m(*x), (src[0], tgt[0]), (ours, theirs))


@pytest.mark.parity
def test_stacks_agree_and_copy_their_layer():
    torch = pytest.importorskip("torch")
    pairs = []
    for lib in (nn, torch.nn):
        layer = lib.TransformerEncoderLayer(6, 2, 10, 0.0, activation=lambda x: x * x, batch_first=True)
        pairs.append(lib.TransformerEncoder(layer, 2, lib.LayerNorm(6), enable_nested_tensor=False).double())
        assert pairs[-1].layers[0] is not layer and pairs[-1].layers[0] is not pairs[-1].layers[1]
    same_weights(torch, *pairs)
    mask = np.triu(np.full((5, 5), -np.inf), 1)
    agree(torch, lambda lib, m, x: m(x, lib.tensor(mask)), (rng.standard_normal((2, 5, 6)),), pairs)


def test_transformers_learn_in_training_with_dropout():
    genesis.manual_seed(0)
    layer, x = nn.TransformerEncoderLayer(8, 2, 16), genesis.randn(5, 2, 8)
    assert not genesis.equal(layer(x), layer(x))
    layer.eval()
    assert genesis.equal(layer(x), layer(x))
    half = nn.TransformerDecoderLayer(8, 2, 16).bfloat16().eval()
    assert half(x.bfloat16(), x.bfloat16()).dtype == genesis.bfloat16
    meta = nn.Transformer(8, 2, 1, 1, 16, device="meta")
    assert meta(genesis.ones(5, 2, 8, device="meta"), genesis.ones(3, 2, 8, device="meta")).shape == (3, 2, 8)


def test_wrong_calls():
    x, layer = genesis.ones(5, 2, 4), nn.MultiheadAttention(4, 2)
    model = nn.Transformer(4, 2, 1, 1, 8)
    for error, match, call in [
        (ValueError, "cannot be divided among 3 heads", lambda: nn.MultiheadAttention(4, 3)),
        (ValueError, "cannot be divided", lambda: nn.MultiheadAttention(0, 1)),
        (TypeError, "query must be a tensor", lambda: layer(1, x, x)),
        (RuntimeError, "2 dimensions, or 3 with a batch", lambda: layer(x[0, 0], x, x)),
        (RuntimeError, "lengths or batches differ", lambda: layer(x, x, x[:3])),
        (RuntimeError, "lengths or batches differ", lambda: layer(x, x[:, :1], x[:, :1])),
        (RuntimeError, "key_padding_mask has shape", lambda: layer(x, x, x, key_padding_mask=genesis.ones(2, 3) > 0)),
        (RuntimeError, "attn_mask has shape", lambda: layer(x, x, x, attn_mask=genesis.ones(3, 3) > 0)),
        (RuntimeError, "bool or floating", lambda: layer(x, x, x, attn_mask=genesis.ones(5, 5).long())),
        (RuntimeError, "is_causal says", lambda: layer(x, x, x, is_causal=True)),
        (ValueError, "3 features, expected 4", lambda: layer(x[..., :3], x, x)),
        (RuntimeError, "activation must be", lambda: nn.TransformerEncoderLayer(4, 2, activation="sin")),
        (TypeError, "activation must be", lambda: nn.TransformerDecoderLayer(4, 2, activation=3)),
        (RuntimeError, "src has a batch of 2, tgt of 1", lambda: model(x, x[:, :1])),
        (RuntimeError, "expected 4", lambda: model(x[..., :3], x)),
        (ValueError, "must not be negative", lambda: nn.Transformer.generate_square_subsequent_mask(-1)),
    ]:
        with pytest.raises(error, match=match):
            call()


def test_names_of_backends_are_accepted():
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert nn.attention.current_flash_attention_impl() is None and nn.attention.list_flash_attention_impls() == []
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel("math"):
        pass
    with pytest.raises(NotImplementedError, match="one way"):
        nn.attention.activate_flash_attention_impl("FA4")


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 4, 16, 8), (2, 3, 1, 8), (1, 4, 5, 8), (2, 1, 3, 4), (2, 4, 128, 32)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
def test_results_lie_as_the_query_does(dtype, shape, order):
    """So that ``.transpose(1, 2).view`` joins the heads of what a projection gave, in PyTorch and here."""
    torch = pytest.importorskip("torch")
    values = rng.standard_normal([shape[d] for d in order])
    mask = rng.random((shape[2], shape[2])) < 0.5
    mask[:, 0] = True
    found = []
    for lib, more in itertools.product(
        (genesis, torch), ({}, {"is_causal": True}, {"attn_mask": mask}, {"dropout_p": 0.1})
    ):
        x = lib.tensor(values, dtype=getattr(lib, dtype)).permute([order.index(d) for d in range(4)])
        more = {name: lib.tensor(each) if each is mask else each for name, each in more.items()}  # noqa: PLW2901
        out = lib.nn.functional.scaled_dot_product_attention(x, x, x, **more)
        found.append([step for step, n in zip(out.stride(), out.shape, strict=True) if n > 1])
    assert found[:4] == found[4:]


@pytest.mark.parametrize("shape", [(2, 4, 16, 8), (2, 4, 3, 8), (4, 4, 128, 32)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_results_lie_as_the_query_does_in_compiled_functions(shape, order, masked):
    made = [genesis.randn(*[shape[d] for d in order]) for _ in range(3)]
    arguments = [x.permute([order.index(d) for d in range(4)]) for x in made]
    mask = genesis.ones(shape[2], shape[2], dtype=genesis.bool).tril() if masked else None

    def step(q, k, v):
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        joined = out.transpose(1, 2).view(shape[0], shape[2], -1) if order == (0, 2, 1, 3) else out
        (joined.square() + joined).sum().backward()
        return out.detach(), q.grad, k.grad, v.grad

    compiled = genesis.compile(step, fullgraph=True)
    for _ in range(2):
        for got, expected in zip(compiled(*arguments), step(*arguments), strict=True):
            assert got.stride() == expected.stride()
            assert genesis.allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lead", [(), (2,), (1, 2)])
def test_small_matrices_at_once_are_those_of_blocks_and_of_float64(monkeypatch, lead, causal):
    rng, found = np.random.default_rng(0), []
    arrays = [rng.standard_normal((*lead, n, 4)) for n in (5, 7, 7)]
    for dtype, block in (("float32", attention._BLOCK), ("float32", 1), ("float64", 1)):
        monkeypatch.setattr(attention, "_BLOCK", block)
        leaves = [genesis.tensor(a.astype("float32").astype(dtype), requires_grad=True) for a in arrays]
        out = F.scaled_dot_product_attention(*leaves, is_causal=causal)
        gradients = genesis.autograd.grad(out.square().sum(), leaves)
        found.append([x.detach().numpy() for x in (out, *gradients)])
    for at_once, in_blocks, exact in zip(*found, strict=True):
        np.testing.assert_allclose(at_once, in_blocks, rtol=0, atol=1e-7)
        np.testing.assert_allclose(at_once, exact, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found[0][0], found[2][0].astype(np.float32))
