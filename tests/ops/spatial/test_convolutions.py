"""Convolutions against PyTorch's, over random arguments: values, dtypes, strides, gradients of first and second order."""

from __future__ import annotations

import importlib
import random
import re

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.core.call.op import REGISTRY, case
from genesis.testing import check_kernel

blocks = importlib.import_module("genesis.kernels.cpu.convolution")

quiet = pytest.mark.filterwarnings("ignore:Using padding='same'")


def _arguments(seed):
    """A function's name, shapes of its operands and options; about one in eight does not fit."""
    rng = random.Random(seed)
    dims, transposed = rng.choice([1, 1, 2, 2, 3]), rng.random() < 0.4
    some = lambda values: rng.choice(values) if rng.random() < 0.6 else tuple(rng.choice(values) for _ in range(dims))  # noqa: E731
    groups = rng.choice([1, 1, 2, 3])
    kernel = [rng.choice([1, 2, 3]) for _ in range(dims)]
    a, b = groups * rng.choice([1, 2]), groups * rng.choice([1, 2])
    weight = (a, b // groups, *kernel) if transposed else (b, a // groups, *kernel)
    shape = (*([rng.choice([1, 2])] * (rng.random() < 0.8)), a, *[rng.choice([1, 3, 4, 5]) for _ in range(dims)])
    options = {"stride": some([1, 2, 3]), "padding": some([0, 1, 2]), "dilation": some([1, 2]), "groups": groups}
    if transposed:
        options["output_padding"] = some([0, 0, 1])
    elif rng.random() < 0.2:
        options["padding"] = rng.choice(["same", "valid"])
    bias = (b,) if rng.random() < 0.7 else None
    return f"conv{'_transpose' * transposed}{dims}d", shape, weight, bias, options


def _derivatives(lib, function, operands, options):
    """The result, its gradients, and the gradients of those, as arrays; or the error."""
    given = [x for x in operands if x is not None]
    try:
        out = function(*operands, **options)
        grads = lib.autograd.grad((out * out).sum(), given, create_graph=True)
        second = lib.autograd.grad(sum((g * g * g).sum() for g in grads), given)
    except RuntimeError as error:
        return error
    return [x.detach().numpy() for x in (out, *grads, *second)]


@pytest.mark.parity
@quiet
@pytest.mark.parametrize("part", range(10))
def test_random_arguments(part):
    torch = pytest.importorskip("torch")
    for seed in range(part * 40, part * 40 + 40):
        name, shape, weight, bias, options = _arguments(seed)
        rng = np.random.default_rng(seed)
        arrays = [None if s is None else rng.normal(size=s) for s in (shape, weight, bias)]
        ours, theirs = (
            _derivatives(
                lib,
                getattr(lib.nn.functional, name),
                [None if a is None else lib.tensor(a).requires_grad_() for a in arrays],
                options,
            )
            for lib in (genesis, torch)
        )
        if isinstance(theirs, Exception) and not isinstance(ours, Exception) and not ours[0].size:
            assert "transpose" in name and "Output size is too small" in str(theirs)  # only in float64
            continue
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), (
            name,
            shape,
            weight,
            options,
            ours,
            theirs,
        )
        for a, b in zip(ours, theirs, strict=True) if not isinstance(ours, Exception) else ():
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=str((name, shape, weight, options)))


@pytest.mark.parity
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("last", [1, 2, 3], ids=lambda n: f"a kernel that ends in {n}")
@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"groups": 2}, {"dilation": 3, "padding": 2}])
def test_padding_may_take_away_all_of_a_transposed_output(dims, last, options):
    """PyTorch computes it in float32, of two examples, and the gradient; no second order, which is 0 here."""
    torch = pytest.importorskip("torch")
    shapes = (2, 4, *[1] * dims), (4, 2, *[2] * (dims - 1), last), (2 * options.get("groups", 1),)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    name, found = f"conv_transpose{dims}d", []
    for lib in (genesis, torch):
        given = [lib.tensor(a).requires_grad_() for a in arrays]
        try:
            out = getattr(lib.nn.functional, name)(*given, **{"padding": 1, **options})
            found.append([x.detach().numpy() for x in (out, *lib.autograd.grad((out * out).sum(), given))])
        except RuntimeError as error:
            found.append(error)
    ours, theirs = found
    assert isinstance(ours, Exception) == isinstance(theirs, Exception), (ours, theirs)
    if isinstance(ours, Exception):
        assert last == 1 and re.match(rf"{name}: the output would have sizes \[.*-[0-9]]", str(ours))
        return
    assert not ours[0].size or (dims == 1 and last == 3)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    second = _derivatives(
        genesis, getattr(F, name), [genesis.tensor(a).requires_grad_() for a in arrays], {"padding": 1, **options}
    )
    assert len(second) == 7 and (ours[0].size or not any(x.any() for x in second[4:]))


def test_a_transposed_output_without_elements_in_every_transform():
    x, w, b = genesis.ones(3, 2, 2, 1), genesis.ones(2, 3, 2), genesis.ones(3)
    call = lambda x, w, b: F.conv_transpose1d(x, w, b, padding=1)  # noqa: E731
    assert genesis.func.vmap(call, (0, None, None))(x, w, b).shape == (3, 2, 3, 0)
    out, tangent = genesis.func.jvp(call, (x[0], w, b), (x[0], w, b))
    assert out.shape == tangent.shape == (2, 3, 0)
    compiled = genesis.compile(lambda x, w, b: call(x, w, b).sum())
    leaves = [t.requires_grad_() for t in (x[0].clone(), w, b)]
    for _ in range(2):
        compiled(*leaves).backward()
        assert not any(t.grad.any() for t in leaves)
    check_kernel(REGISTRY["convolution"], case(x[0], w, b, (1,), (1,), (1,), True, (0,), 1))


@pytest.mark.parametrize(
    ("x", "w", "text"),
    [
        ((1, 2, 0), (2, 3, 2), "conv_transpose1d: the input has sizes [0]"),
        ((1, 2, 2), (2, 0, 2), "conv_transpose1d: weight has 0 in dim 1: the output would have no channels"),
        ((1, 2, 2), (2, 3, 0), "conv_transpose1d: the output would have sizes [1]"),
    ],
)
def test_transposed_convolutions_of_nothing_are_refused(x, w, text):
    with pytest.raises(RuntimeError, match=re.escape(text)):
        F.conv_transpose1d(genesis.ones(x), genesis.ones(w))


@pytest.mark.parity
@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d", "conv3d"])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"groups": 2}])
def test_channels_last_stay_last(name, options):
    torch = pytest.importorskip("torch")
    dims = int(name[-2])
    rng = np.random.default_rng(0)
    x, w = (
        rng.normal(size=(2, 4, *[5] * dims)).astype("float32"),
        rng.normal(size=(4, 4 // options.get("groups", 1), *[3] * dims)).astype("float32"),
    )
    last = lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)  # noqa: E731
    for a, b in ((last(x), w), (x, last(w)), (last(x), last(w))):
        found = []
        for lib in (genesis, torch):
            p, q = (lib.from_numpy(z).requires_grad_() for z in (a, b))
            y = getattr(lib.nn.functional, name)(p, q, **options)
            found.append(
                (y.stride(), y.detach().numpy(), *[g.numpy() for g in lib.autograd.grad((y * y).sum(), (p, q))])
            )
        assert found[0][0] == found[1][0]
        for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)
        if dims == 2:
            meta = F.conv2d(genesis.from_numpy(a).to("meta"), genesis.from_numpy(b).to("meta"), **options)
            assert name != "conv2d" or meta.shape == found[0][1].shape


def _operands(rng, *shapes):
    return [genesis.tensor(rng.normal(size=s)).requires_grad_() for s in shapes]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [64, 400, 4000])
def test_blocks_of_any_size_give_the_same(monkeypatch, threads, size):
    """Blocks of examples and of rows, and threads: the kernel against the meaning, gradients included."""
    monkeypatch.setattr(blocks, "BLOCK", size)
    before = genesis.get_num_threads()
    genesis.set_num_threads(threads)
    rng = np.random.default_rng(1)
    op = REGISTRY["convolution"]
    try:
        for transposed in (False, True):
            for stride, padding, dilation, groups in (((1, 1), (1, 1), (1, 1), 1), ((2, 1), (1, 0), (1, 2), 2), ((1, 1), (0, 0), (1, 1), 2)):  # fmt: skip
                kernel = (1, 1) if padding == (0, 0) else (3, 2)
                x, w, b = _operands(rng, (3, 4, 7, 6), (4, 4 // groups, *kernel), (4,))
                check_kernel(op, case(x, w, b, stride, padding, dilation, transposed, (0, 0), groups))
    finally:
        genesis.set_num_threads(before)


def test_the_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(2)
    x, w = (
        genesis.tensor(rng.normal(size=s).astype("float32")).requires_grad_() for s in ((9, 8, 20, 20), (8, 8, 3, 3))
    )
    before, found = genesis.get_num_threads(), []
    for threads in (1, 2, 3):
        genesis.set_num_threads(threads)
        y = F.conv2d(x, w, padding=1)
        found.append([t.detach().numpy() for t in (y, *genesis.autograd.grad((y * y).sum(), (x, w)))])
    genesis.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_memory_stays_small():
    """The windows of a large image would take 36 times its memory."""
    tracemalloc = pytest.importorskip("tracemalloc")
    x, w = genesis.ones(1, 4, 500, 500), genesis.ones(1, 4, 6, 6)
    tracemalloc.start()
    F.conv2d(x, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * x.numel() * 4


def test_samples_with_weights_of_their_own():
    rng = np.random.default_rng(3)
    x, w, b = (genesis.tensor(rng.normal(size=s)) for s in ((3, 2, 4, 6), (3, 4, 2, 3), (3, 4)))
    one = lambda x, w, b: F.conv1d(x, w, b, padding=1, groups=2)  # noqa: E731
    grads = genesis.func.vmap(genesis.func.grad(lambda *a: (one(*a) ** 2).sum(), argnums=(0, 1, 2)))(x, w, b)
    for i in range(3):
        alone = genesis.func.grad(lambda *a: (one(*a) ** 2).sum(), argnums=(0, 1, 2))(x[i], w[i], b[i])
        for many, single in zip(grads, alone, strict=True):
            np.testing.assert_allclose(many[i].numpy(), single.numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_are_rounded_once(dtype):
    rng = np.random.default_rng(4)
    x, w, b = (genesis.tensor(rng.normal(size=s).astype("float32")).to(getattr(genesis, dtype)) for s in ((2, 3, 8, 8), (4, 3, 3, 3), (4,)))  # fmt: skip
    wide = F.conv2d(x.float(), w.float(), b.float()).to(x.dtype)
    assert genesis.equal(F.conv2d(x, w, b), wide)


@pytest.mark.parametrize(("steps", "kernel", "pad"), [(0, 1, 0), (0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 3, 2), (1, 2, 0), (2, 3, 0), (3, 3, 1)])  # fmt: skip
def test_time_first_with_few_steps_or_none(steps, kernel, pad):
    x, w, b = (genesis.randn(s, dtype=genesis.float64, requires_grad=True) for s in ((steps, 2, 3), (kernel, 3, 4), 4))
    padded = np.pad(x.detach().numpy(), ((pad, pad), (0, 0), (0, 0)))
    count = steps + 2 * pad - kernel + 1
    want = [
        sum(padded[i + k] @ w.detach().numpy()[k] for k in range(kernel)) + b.detach().numpy() for i in range(count)
    ]
    y = genesis.conv_tbc(x, w, b, pad)
    assert y.shape == (count, 2, 4)
    np.testing.assert_allclose(y.detach().numpy(), np.reshape(want, (count, 2, 4)), atol=1e-12)
    gradients = genesis.autograd.grad(y.sum(), (x, w, b))
    assert [g.shape for g in gradients] == [x.shape, w.shape, b.shape] and gradients[2].tolist() == [2.0 * count] * 4


def test_transposed_convolutions_have_no_padding_unless_told():
    for dims in (1, 2, 3):
        x, w = genesis.ones(1, 1, *[2] * dims), genesis.ones(1, 1, *[2] * dims)
        y = getattr(F, f"conv_transpose{dims}d")(x, w)
        assert y.shape == (1, 1, *[3] * dims) and y.sum() == 4**dims
