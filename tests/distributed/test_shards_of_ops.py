"""What all shards of a batch computed at once have in common with each by itself: every bit, for every op."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.base import dtypes
from genesis.core.call.op import REGISTRY
from genesis.core.graph.generator import default_generator
from genesis.core.graph.levels import opened
from genesis.nn import functional as F
from genesis.nn.parallel.shard_arrays import Sharded
from genesis.nn.parallel.shard_level import ShardLevel, in_one_piece, into, out_of, parameter, without_stream
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of
from genesis.utils.checkpoint import checkpoint

COUNT, ROOM = 4, 1 << 20
OPS = {name: op for name, op in REGISTRY.items() if not op.kind.draws and not op.written}


def equal(a, b):
    x, y = a.detach().numpy(), b.detach().numpy()
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def level():
    key, start = default_generator.key_and_block()
    return ShardLevel(COUNT, key, [start + i * ROOM for i in range(COUNT)])


def outputs_of(function, tensors):
    return [y for y in tensors_in(function(tensors)) if isinstance(y, genesis.Tensor)]


def backward(outputs, weights):
    floats = [(y, w) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
    if floats:
        genesis.autograd.backward([y for y, _ in floats], [w for _, w in floats])
    return bool(floats)


def leaf(array, like):
    x = genesis.tensor(np.array(array, order="C"))
    return x.requires_grad_() if like.is_floating_point() else x


def lying(array):
    """The strides of a shard's array, where they matter: the order of sums may depend on them. (Of 16-bit floats they are
    converted before.)
    """
    x = array.arrays[0] if isinstance(array, Sharded) else array
    return (
        None
        if not x.size or x.dtype.itemsize == 2
        else tuple([s for s, n in zip(x.strides, x.shape, strict=True) if n > 1])
    )


def watched(tensors):
    """How gradients lie that come to tensors."""
    came = {}
    for i, x in enumerate(tensors):
        if x.requires_grad:
            x.register_hook(lambda g, i=i: came.__setitem__(i, lying(g._array)))
    return came


def compare(function, columns, shared=()):
    """Call ``function(tensors)`` for all shards at once and for each: ``columns`` has a tensor of each shard for each of them,
    or is the same for all where ``shared`` has its index. None, or why it is not computed at once.
    """
    here, rng = level(), np.random.default_rng(0)
    begins = list(here.at)
    stacked = [
        leaf(c[0].numpy() if i in shared else np.stack([x.numpy() for x in c]), c[0]) for i, c in enumerate(columns)
    ]
    try:
        with opened(here), without_stream():
            given = [parameter(x, here) if i in shared else into(x, here) for i, x in enumerate(stacked)]
            came = watched(given)
            made = outputs_of(function, given)
            lie = [lying(y._array) for y in made]
            at_once = [out_of(y, here) for y in made]
    except Exception as refusal:
        return str(refusal) or type(refusal).__name__
    weights = [genesis.tensor(rng.standard_normal(y.shape)).to(y.dtype) if y.requires_grad else None for y in at_once]
    backward(at_once, weights)
    sums = {}
    key = here.key
    for i, block in enumerate(begins):
        default_generator.move_to(key, block)
        own = [leaf(c[0 if k in shared else i].numpy(), c[0]) for k, c in enumerate(columns)]
        here_alone = [x.view_as(x) for x in own]
        came_alone = watched(here_alone)
        alone = [in_one_piece(y) for y in outputs_of(function, here_alone)]
        for whole, way, y in zip(at_once, lie, alone, strict=True):
            assert equal(whole[i], y), f"shard {i}: {whole[i]} is not {y}"
            assert way == lying(y._array), f"shard {i} lies as {way}, not as {lying(y._array)}"
        backward(alone, [None if w is None else w[i].contiguous() for w in weights])
        assert came == came_alone, f"gradients lie as {came}, not as {came_alone}"
        for k, (x, y) in enumerate(zip(stacked, own, strict=True)):
            if k in shared:
                sums.setdefault(k, []).append(y.grad)
            elif y.grad is not None:
                assert equal(x.grad[i], y.grad), f"gradient of {k}, shard {i}: {x.grad[i]} is not {y.grad}"
    for k, grads in sums.items():
        if grads[0] is not None:
            a, b, c, d = grads
            assert equal(stacked[k].grad, (a + c) + (b + d)), f"gradient of {k}"
    return None


def of_sample(op, dtype, index, shared):
    cases = [samples_of(op, Maker(dtype, seed=seed))[index] for seed in range(COUNT)]
    columns = list(zip(*[list(tensors_in((c.args, c.kwargs))) for c in cases], strict=True))
    if not columns:
        return "no tensors"

    def call(tensors):
        rest = iter(tensors)
        args, kwargs = replace((cases[0].args, dict(cases[0].kwargs)), lambda _: next(rest))
        return op.call(*args, **kwargs)

    shared = [i for i in range(1, len(columns))] if shared else []
    return compare(call, columns, shared)


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op(name):
    op = OPS[name]
    for dtype in (dtypes.float32,) if op.kind == "factorization" else (dtypes.float32, dtypes.bfloat16):
        for index in range(len(samples_of(op, Maker(dtype)))):
            for shared in (False, True):
                of_sample(op, dtype, index, shared)


def normal(*shape, seed=0):
    return genesis.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def numbers(limit, *shape, seed=0):
    return genesis.tensor(np.random.default_rng(seed).integers(0, limit, shape))


# functions of tensors of a shard, how each is made, and which of them are the same for all shards
LARGE = {
    "linear": (lambda t: F.linear(*t), lambda s: [normal(32, 784, seed=s), normal(200, 784), normal(200)], (1, 2)),
    "linear of few rows": (lambda t: F.linear(*t), lambda s: [normal(5, 784, seed=s), normal(200, 784), normal(200)], (1, 2)),
    "linear of one row": (lambda t: F.linear(*t), lambda s: [normal(1, 784, seed=s), normal(700, 784)], (1,)),
    "linear of sequences": (lambda t: F.linear(*t), lambda s: [normal(3, 17, 128, seed=s), normal(97, 128)], (1,)),
    "linear of what is turned": (
        lambda t: F.linear(t[0].transpose(1, 2), t[1]), lambda s: [normal(3, 128, 40, seed=s), normal(97, 128)], (1,)
    ),
    "a weight used twice": (lambda t: (t[0] @ t[1]).tanh() @ t[1], lambda s: [normal(40, 128, seed=s), normal(128, 128)], (1,)),
    "matrices of each": (lambda t: t[0] @ t[1], lambda s: [normal(40, 128, seed=s), normal(128, 128, seed=s)], ()),
    "a batch of products": (lambda t: t[0] @ t[1], lambda s: [normal(7, 40, 64, seed=s), normal(7, 64, 33, seed=9 + s)], ()),
    "gelu": (lambda t: F.gelu(t[0]), lambda s: [normal(37, 229, seed=s)], ()),
    "gelu of tanh": (lambda t: F.gelu(t[0], approximate="tanh"), lambda s: [normal(37, 229, seed=s)], ()),
    "silu": (lambda t: F.silu(t[0]), lambda s: [normal(37, 229, seed=s)], ()),
    "elu": (lambda t: F.elu(t[0]), lambda s: [normal(37, 229, seed=s)], ()),
    "relu": (lambda t: F.relu(t[0] - t[0].abs().clamp(max=1)), lambda s: [normal(37, 229, seed=s)], ()),
    "few numbers": (lambda t: F.gelu(t[0]).exp().tanh().sigmoid(), lambda s: [normal(3, 7, seed=s)], ()),
    "softmax": (lambda t: F.softmax(t[0], -1), lambda s: [normal(37, 229, seed=s)], ()),
    "log_softmax": (lambda t: F.log_softmax(t[0], -1), lambda s: [normal(37, 229, seed=s)], ()),
    "sums of rows": (lambda t: t[0] * t[1], lambda s: [normal(37, 229, seed=s), normal(229)], (1,)),
    "sums of many rows": (lambda t: t[0] + t[1], lambda s: [normal(300, 31, seed=s), normal(31)], (1,)),
    "sums of sequences": (lambda t: t[0] + t[1], lambda s: [normal(9, 40, 31, seed=s), normal(31)], (1,)),
    "mean": (lambda t: t[0].mean(), lambda s: [normal(37, 229, seed=s)], ()),
    "layer_norm": (lambda t: F.layer_norm(t[0], (256,), *t[1:]), lambda s: [normal(37, 256, seed=s), normal(256), normal(256)], (1, 2)),
    "layer_norm of few": (lambda t: F.layer_norm(t[0], (16,), *t[1:]), lambda s: [normal(3, 16, seed=s), normal(16), normal(16)], (1, 2)),
    "rms_norm": (lambda t: F.rms_norm(t[0], (256,), t[1]), lambda s: [normal(37, 256, seed=s), normal(256)], (1,)),
    "group_norm": (
        lambda t: F.group_norm(t[0], 4, *t[1:]), lambda s: [normal(3, 16, 15, 15, seed=s), normal(16), normal(16)], (1, 2)
    ),
    "batch_norm": (
        lambda t: F.batch_norm(t[0], None, None, *t[1:], training=True),
        lambda s: [normal(3, 16, 15, 15, seed=s), normal(16), normal(16)],
        (1, 2),
    ),
    "attention": (
        lambda t: F.scaled_dot_product_attention(*t, is_causal=True), lambda s: [normal(2, 3, 40, 32, seed=s + 9 * k) for k in range(3)], ()
    ),
    "attention of heads that are turned": (
        lambda t: F.scaled_dot_product_attention(*[x.transpose(1, 2) for x in t]).transpose(1, 2).reshape(2, 40, 96),
        lambda s: [normal(2, 40, 3, 32, seed=s + 9 * k) for k in range(3)],
        (),
    ),
    "little attention": (
        lambda t: F.scaled_dot_product_attention(*t), lambda s: [normal(2, 1, 5, 8, seed=s + 9 * k) for k in range(3)], ()
    ),
    "convolution": (
        lambda t: F.conv2d(*t, padding=1), lambda s: [normal(4, 8, 20, 20, seed=s), normal(16, 8, 3, 3), normal(16)], (1, 2)
    ),
    "a small convolution": (lambda t: F.conv2d(*t), lambda s: [normal(2, 3, 7, 7, seed=s), normal(4, 3, 3, 3), normal(4)], (1, 2)),
    "one dimension": (lambda t: F.conv1d(*t, stride=2), lambda s: [normal(4, 8, 50, seed=s), normal(6, 8, 5)], (1,)),
    "pooling": (lambda t: F.max_pool2d(F.avg_pool2d(t[0], 2), 2), lambda s: [normal(4, 8, 20, 20, seed=s)], ()),
    "embedding": (lambda t: F.embedding(*t), lambda s: [numbers(50, 9, 40, seed=s), normal(50, 31)], (1,)),
    "cross entropy": (lambda t: F.cross_entropy(*t), lambda s: [normal(70, 229, seed=s), numbers(229, 70, seed=s)], ()),
    "written to": (lambda t: (t[0] * 2).add_(t[1]).mul_(t[0]).relu_(), lambda s: [normal(9, 40, seed=s), normal(40)], (1,)),
    "an index written to": (lambda t: written(t[0]), lambda s: [normal(9, 40, seed=s)], ()),
    "dropout": (lambda t: F.dropout(t[0], 0.3) + F.dropout(t[0], 0.5), lambda s: [normal(9, 40, seed=s)], ()),
    "drawn": (lambda t: t[0] * genesis.rand(9, 1) + genesis.randn(40), lambda s: [normal(9, 40, seed=s)], ()),
    "a fixed one and a row": (lambda t: genesis.cat([t[1].expand(9, 1, 8), t[0]], 1), lambda s: [normal(9, 5, 8, seed=s), normal(8)], (1,)),
    "of parameters alone": (lambda t: t[0] * (t[1] * t[1]).sum() + t[1].exp(), lambda s: [normal(9, 40, seed=s), normal(40)], (1,)),
    "a checkpoint": (
        lambda t: checkpoint(lambda x, w: F.dropout(F.linear(x, w).tanh(), 0.3) * genesis.rand(40), *t, use_reentrant=False).exp(),
        lambda s: [normal(9, 40, seed=s), normal(40, 40)],
        (1,),
    ),
    "many weights for what lies apart": (
        lambda t: F.linear(F.gelu(t[0]).flatten(1), t[1]), lambda s: [normal(8, 64, 12, 12, seed=s), normal(128, 9216)], (1,)
    ),
    "pieces": (lambda t: genesis.cat(t[0].chunk(4, 1)[::-1], 1) * t[0].flip(0), lambda s: [normal(9, 40, seed=s)], ()),
}  # fmt: skip


def written(x):
    y = x * 2
    y[:, 3] = x[:, 4] * 2
    y[0] += 1
    return y * y


@pytest.mark.parametrize("name", LARGE)
def test_at_once_as_each_by_itself(name):
    function, make, shared = LARGE[name]
    refusal = compare(function, list(zip(*[make(seed) for seed in range(COUNT)], strict=True)), shared)
    assert refusal is None


OUTSIDE = normal(40)


def of_functions(x):
    class Double(genesis.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return genesis.tensor(x.numpy() * w.numpy() * 2)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w * 2, (g * x * 2).sum(0)

    return Double.apply(*x)


def test_functions_of_a_program():
    assert compare(of_functions, [[normal(9, 40, seed=s) for s in range(COUNT)], [normal(40)] * COUNT], (1,)) is None


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t[0] * float(t[0].sum()),
        lambda t: t[0] if t[0].sum() > 0 else -t[0],
        lambda t: genesis.tensor(t[0].detach().numpy()),
        lambda t: t[0][t[0] > 0],
        lambda t: t[0].nonzero(),
        lambda t: t[0] * genesis.rand(40, generator=genesis.Generator()),
        lambda t: t[0] * genesis.get_rng_state()[0],
        lambda t: OUTSIDE.add_(t[0].sum(0).detach()),
    ],
)
def test_what_needs_the_values_of_one_is_refused(function):
    columns = [[normal(9, 40, seed=s) for s in range(COUNT)], [normal(40)] * COUNT]
    assert compare(function, columns, (1,)) is not None
