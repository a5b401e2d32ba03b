"""Which dtype ops give under autocast on the CPU and on GPUs: PyTorch's lists, which are not the same."""

from __future__ import annotations

import warnings

import pytest

import genesis
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated

LOW, WIDE = "bfloat16", "float32"
# what a call gives of float32 on the CPU and on a GPU, and of bfloat16 on both
AS_IT_COMES, PRODUCT, ALWAYS_WIDE = (WIDE, WIDE, LOW, LOW), (LOW, LOW, LOW, LOW), (WIDE, WIDE, WIDE, WIDE)
WIDE_ON_GPUS, WIDE_ON_THE_CPU = (WIDE, WIDE, LOW, WIDE), (WIDE, WIDE, WIDE, LOW)


def elementwise(*names):
    return {name: lambda t, x, name=name: getattr(t, name)(x * 0.5) for name in names}


def losses(*names):
    return {name: lambda t, x, name=name: getattr(t.nn.functional, name)(x, x) for name in names}


def pools(*names):
    pooled = lambda t, x, name: getattr(t.nn.functional, name)(x.expand(1, 4, 4, 4), 2)  # noqa: E731
    return {name: lambda t, x, name=name: pooled(t, x, name) for name in names}


def batch(x):
    return x.unsqueeze(0)


def images(x):
    return batch(batch(x))


def row(x):
    return x.select(0, 0)


def unpooled(t, x):
    part = batch(x.narrow(0, 0, 2).narrow(1, 0, 2))
    return t.nn.functional.max_unpool2d(part, t.zeros_like(part).long(), 2)


CALLS = {
    PRODUCT: {
        "matmul": lambda t, x: x @ x,
        "mm": lambda t, x: t.mm(x, x),
        "bmm": lambda t, x: t.bmm(batch(x), batch(x)),
        "addmm": lambda t, x: t.addmm(x, x, x),
        "baddbmm": lambda t, x: t.baddbmm(batch(x), batch(x), batch(x)),
        "addbmm": lambda t, x: t.addbmm(x, batch(x), batch(x)),
        "linear": lambda t, x: t.nn.functional.linear(x, x, row(x)),
        "conv1d": lambda t, x: t.nn.functional.conv1d(batch(x), x.unsqueeze(2)),
        "conv2d": lambda t, x: t.nn.functional.conv2d(images(x), images(x).narrow(2, 0, 2).narrow(3, 0, 2)),
        "conv_transpose1d": lambda t, x: t.nn.functional.conv_transpose1d(batch(x), x.unsqueeze(2)),
        "prelu": lambda t, x: t.nn.functional.prelu(x, row(x).narrow(0, 0, 1)),
        "vecdot": lambda t, x: t.linalg.vecdot(x, x),
        "multi_dot": lambda t, x: t.linalg.multi_dot([x, x, x]),
        "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(batch(x), batch(x), batch(x)),
        "einsum": lambda t, x: t.einsum("ij,jk->ik", x, x),
    },
    (WIDE, LOW, LOW, LOW): {
        "mv": lambda t, x: t.mv(x, row(x)),
        "addmv": lambda t, x: t.addmv(row(x), x, row(x)),
        "addr": lambda t, x: t.addr(x, row(x), row(x)),
    },
    (LOW, WIDE, LOW, LOW): {"tensordot": lambda t, x: t.tensordot(x, x, 1), "inner": lambda t, x: t.inner(x, x)},
    AS_IT_COMES: {
        "add": lambda t, x: x + x,
        "relu": lambda t, x: x.relu(),
        "gelu": lambda t, x: t.nn.functional.gelu(x),
        "silu": lambda t, x: t.nn.functional.silu(x),
        "mean": lambda t, x: x.mean(),
        "amax": lambda t, x: x.amax(),
        "var": lambda t, x: x.var(),
        "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
        "dot": lambda t, x: t.dot(row(x), row(x)),
        "vdot": lambda t, x: t.vdot(row(x), row(x)),
        "inner of vectors": lambda t, x: t.inner(row(x), row(x)),
        "bilinear": lambda t, x: t.nn.functional.bilinear(x, x, batch(x)),
        "cat": lambda t, x: t.cat([x, x]),
        "logcumsumexp": lambda t, x: t.logcumsumexp(x, 0),
        "circular border": lambda t, x: t.nn.functional.pad(batch(x), (1, 1), mode="circular"),
        "zeros around": lambda t, x: t.nn.functional.pad(x, (1, 1)),
        "resized by means": lambda t, x: t.nn.functional.interpolate(batch(x), 2, mode="area"),
        "where": lambda t, x: t.where(x > 0, x, x),
        **elementwise("sin", "cos", "tanh", "sigmoid", "erf", "sqrt", "exp2", "abs"),
        **pools("avg_pool2d", "max_pool2d"),
    },
    WIDE_ON_GPUS: {
        **elementwise("exp", "expm1", "log", "log2", "log10", "log1p", "acos", "asin", "cosh", "sinh", "tan", "rsqrt"),
        **elementwise("reciprocal", "square", "erfinv"),
        "pow": lambda t, x: x**3,
        "power of a number": lambda t, x: 2.0**x,
        "sum": lambda t, x: x.sum(0),
        "cumsum": lambda t, x: x.cumsum(0),
        "cumprod": lambda t, x: x.cumprod(0),
        "logsumexp": lambda t, x: x.logsumexp(0),
        "softmax": lambda t, x: x.softmax(0),
        "log_softmax": lambda t, x: x.log_softmax(0),
        "softmin": lambda t, x: t.nn.functional.softmin(x, 0),
        "softplus": lambda t, x: t.nn.functional.softplus(x),
        "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (4,), row(x), row(x)),
        "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, (4,), row(x)),
        "group_norm": lambda t, x: t.nn.functional.group_norm(x, 2, row(x), row(x)),
        "norm": lambda t, x: x.norm(),
        "vector_norm": lambda t, x: t.linalg.vector_norm(x),
        "matrix_norm": lambda t, x: t.linalg.matrix_norm(x),
        "normalize": lambda t, x: t.nn.functional.normalize(x),
        "dist": lambda t, x: t.dist(x, x),
        "pdist": lambda t, x: t.pdist(x),
        "pairwise_distance": lambda t, x: t.nn.functional.pairwise_distance(x, x),
        "renorm": lambda t, x: t.renorm(x, 2, 0, 1.0),
        "cosine_similarity": lambda t, x: t.cosine_similarity(x, x),
        "resized": lambda t, x: t.nn.functional.interpolate(batch(x), 8),
        "resized lines": lambda t, x: t.nn.functional.interpolate(batch(x), 8, mode="linear"),
        "local_response_norm": lambda t, x: t.nn.functional.local_response_norm(batch(x), 2),
        "trapezoid": lambda t, x: t.trapezoid(x, x),
    },
    WIDE_ON_THE_CPU: {
        "quantile": lambda t, x: x.quantile(0.5),
        "nanquantile": lambda t, x: x.nanquantile(0.5),
        "trace": lambda t, x: x.trace(),
        "mirrored border": lambda t, x: t.nn.functional.pad(batch(x), (1, 1), mode="reflect"),
        "repeated border": lambda t, x: t.nn.functional.pad(batch(x), (1, 1), mode="replicate"),
        "grid_sample": lambda t, x: t.nn.functional.grid_sample(
            images(x), x.expand(1, 4, 4, 4).narrow(3, 0, 2), align_corners=False
        ),
        "max_unpool2d": unpooled,
        **pools("avg_pool3d", "max_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"),
    },
    ALWAYS_WIDE: {
        "prod": lambda t, x: x.prod(),
        "cdist": lambda t, x: t.cdist(x, x),
        "cross_entropy": lambda t, x: t.nn.functional.cross_entropy(x, t.ones_like(row(x)).long()),
        "nll_loss": lambda t, x: t.nn.functional.nll_loss(x, t.ones_like(row(x)).long()),
        **losses("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss"),
        **losses("binary_cross_entropy_with_logits", "poisson_nll_loss", "hinge_embedding_loss"),
    },
}
TABLE = {name: (call, gives) for gives, calls in CALLS.items() for name, call in calls.items()}
assert len(TABLE) == sum([len(calls) for calls in CALLS.values()])
GIVEN = [("cpu", WIDE), ("cuda", WIDE), ("cpu", LOW), ("cuda", LOW)]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setenv("GENESIS_CUDA_KERNELS", "loops")
    with using(Emulated(1)), warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield


# what PyTorch refuses of 16 bits, and what asks the device for its abilities
UNKNOWN = {"quantile", "nanquantile", "grid_sample"}


def name_of(dtype):
    return str(dtype).rpartition(".")[2]


@pytest.mark.parametrize("name", TABLE)
def test_dtypes_of_results(name, gpu):
    call, gives = TABLE[name]
    for (device, dtype), expected in zip(GIVEN, gives, strict=True):
        x = genesis.full((4, 4), 0.5, dtype=getattr(genesis, dtype), device=device)
        with genesis.autocast(device, genesis.bfloat16):
            assert name_of(call(genesis, x).dtype) == expected, (device, dtype)


def test_products_on_their_own_take_the_widest_dtype(gpu):
    x = genesis.ones(3, device="cuda")
    with genesis.autocast("cuda", genesis.bfloat16):
        assert genesis.dot(x, x.bfloat16()).dtype is genesis.float32
        assert genesis.is_autocast_enabled() and (batch(x) @ x).dtype is genesis.bfloat16


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_table_is_what_pytorch_does(device):
    """Of a GPU that is not there it knows the dtypes, by tensors without data."""
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    wrong = []
    with FakeTensorMode():
        for name, (call, gives) in TABLE.items():
            for (where, dtype), expected in zip(GIVEN, gives, strict=True):
                if where != device or (device == "cuda" and name in UNKNOWN):
                    continue
                x = torch.full((4, 4), 0.5, dtype=getattr(torch, dtype), device=device)
                torch.set_autocast_enabled(device, True)
                torch.set_autocast_dtype(device, torch.bfloat16)
                try:
                    got = name_of(call(torch, x).dtype)
                finally:
                    torch.set_autocast_enabled(device, False)
                    torch.clear_autocast_cache()
                if got != expected:
                    wrong.append((name, dtype, got, expected))
    assert not wrong
