"""Training steps of models as steps of one call: the numbers of a replay, whatever the number of threads, and memory that
is not shared by two values at the same time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from by_elements import overlaps

import genesis
from genesis import jit, nn
from genesis.jit.lowering import cache
from genesis.jit.lowering.layouts import copy_as
from genesis.jit.lowering.step import _Replayed
from genesis.kernels.llvm import loops, native
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


class Attending(nn.Module):
    """A layer of a transformer, between an embedding and a classifier. (The gradient of the bias of keys is 0 but for
    rounding, so its optimizer must not divide by it.)
    """

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(7, 16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.rest = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 40), nn.GELU(), nn.Dropout(0.2), nn.Linear(40, 7))

    def forward(self, x):
        x = self.table(x)
        y = self.norm(x)
        return self.rest(x + self.attention(y, y, y, need_weights=False)[0]).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.LSTM(3, 8, 2), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.layers(x)[0][-1])


def images():
    return nn.Sequential(  # a bias before the norm has a gradient of rounding errors only
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 5),
    )


def dense(*sizes):
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    return lambda: nn.Sequential(*parts[:-1])


def classes(n, count):
    return lambda: genesis.randint(0, n, (count,))


MODELS = {
    "small": (dense(2, 16, 16, 1), lambda: genesis.randn(32, 2), lambda: genesis.randn(32, 1), F.mse_loss, "AdamW"),
    "digits": (dense(64, 48, 10), lambda: genesis.randn(40, 64), classes(10, 40), F.cross_entropy, "Adam"),
    "wide": (dense(200, 300, 10), lambda: genesis.randn(130, 200), classes(10, 130), F.cross_entropy, "SGD"),
    "images": (images, lambda: genesis.randn(6, 3, 8, 8), classes(5, 6), F.cross_entropy, "AdamW"),
    "text": (Attending, lambda: genesis.randint(0, 7, (3, 6)), classes(7, 18), F.cross_entropy, "SGD"),
    "series": (Recurrent, lambda: genesis.randn(5, 6, 3), classes(4, 6), F.cross_entropy, "RMSprop"),
}


def traced(name):
    make, x, y, loss, optimizer = MODELS[name]
    model, x, y = make(), x(), y()
    updates = getattr(genesis.optim, optimizer)(model.parameters(), lr=1e-2)

    def step(x, y):
        updates.zero_grad()
        value = loss(model(x), y)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        return value

    step(x, y)
    return jit.trace(step, x, y), (x, y)


def ran(run, step, graph, given):
    """The bytes of all that a call returns and writes, on copies."""
    program = graph.program
    arrays = [x._array for x in (*given, *graph.binding.captured)]
    takes = tuple([copy_as(a, v.spec) for a, v in zip(arrays, step.takes, strict=True)])
    numbers = [float(number()) + 1 for number in graph.binding.numbers]
    starts = [(generator, generator._block) for generator in graph.binding.streams]
    assert len(takes) == len(step.takes) and len(numbers) == len(program.numbers)
    returns = run(takes, numbers, starts)
    for generator, start in starts:
        generator._position(start)
    return [*returns, *takes]


@pytest.mark.parametrize("name", MODELS)
def test_steps(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "kept"))
    traced_graph, given = traced(name)
    graph, step = cache.lowered(traced_graph)
    assert not overlaps(step.plan)

    results = ran(step.run, step, graph, given)
    for a, b in zip(results, ran(_Replayed(step).run, step, graph, given), strict=True):
        assert a.strides == b.strides or a.size <= 1
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(b).max(initial=0))))

    expected, before = [a.tobytes() for a in results], genesis.get_num_threads()
    try:
        for threads in (1, 2, 3, 5):
            genesis.set_num_threads(threads)
            assert [a.tobytes() for a in ran(step.run, step, graph, given)] == expected
    finally:
        genesis.set_num_threads(before)

    monkeypatch.setattr(native, "_compiled", None)
    monkeypatch.setattr(cache, "optimized", None)
    kept, again = cache.lowered(traced_graph)
    assert kept.program == graph.program and again is not step
    assert [a.tobytes() for a in ran(again.run, again, kept, given)] == expected
