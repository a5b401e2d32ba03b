"""Random numbers of Python and NumPy that decide, and that tensors are computed with: `random.random() < p`, mixup."""

from __future__ import annotations

import random
import threading
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim


class Block(nn.Module):
    """Layers of which some are left out."""

    def __init__(self, layers):
        super().__init__()
        self.first, self.layers = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 4) for _ in range(layers)])

    def forward(self, x):
        x = genesis.tanh(self.first(x))
        for layer in self.layers:
            if self.training and random.random() < 0.5:
                continue
            x = x + genesis.tanh(layer(x))
        return x


def trained(model, optimizer, loss):
    optimizer.zero_grad()
    loss = loss()
    loss.backward()
    optimizer.step()
    return loss


def stochastic_depth(layers):
    def make():
        model = Block(layers)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        return lambda x, y: trained(model, optimizer, lambda: F.mse_loss(model(x), y))

    return make


def teacher_forcing():
    cell = nn.GRUCell(4, 4)
    optimizer = optim.SGD(cell.parameters(), lr=0.1)

    def step(x, y):
        h, given, loss = genesis.zeros(8, 4), x, 0
        teacher = random.random() < 0.5
        for _ in range(3):
            h = cell(given, h)
            loss = loss + F.mse_loss(h, y)
            given = y if teacher else h.detach()
        return trained(cell, optimizer, lambda: loss)

    return step


def mixup():
    model = nn.Linear(4, 4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        mix = np.random.beta(0.4, 0.4)
        index = genesis.randperm(len(x))
        mixed = mix * x + (1 - mix) * x[index]

        def loss():
            out = model(mixed)
            return mix * F.mse_loss(out, y) + (1 - mix) * F.mse_loss(out, y[index])

        return trained(model, optimizer, loss)

    return step


def scaled():
    return lambda x, y: x * random.uniform(0.5, 1.5) + y * np.random.rand()


def noise_and_dropout():
    """Random numbers of all three kinds, and a count."""
    model, drop = nn.Linear(4, 4), nn.Dropout(0.3)
    count = [0]

    def step(x, y):
        count[0] += 1
        x = drop(x) * random.gauss(1.0, 0.1)
        if np.random.random() < 0.3:
            x = x + genesis.randn(8, 4)
        return model(x).sum() / count[0]

    return step


def until():
    """How many are drawn goes by what is drawn."""

    def step(x, y):
        n = 0
        while random.random() < 0.5 and n < 2:
            x, n = x + y, n + 1
        return x

    return step


def decided_by_both():
    """By what is drawn, and by what is computed."""

    def step(x, y):
        if random.random() < 0.5:
            return x + y
        return x - y if (x * y).sum() > 0 else x * y

    return step


def kept():
    class Kept:
        def step(self, x, y):
            self.mix = np.random.beta(0.4, 0.4)
            self.flip = random.random() < 0.5
            return x * self.mix + (y if self.flip else 0)

    return Kept().step


MAKERS = {
    "one": stochastic_depth(1),
    "two": stochastic_depth(2),
    **{f.__name__: f for f in (teacher_forcing, mixup, scaled, noise_and_dropout, until, decided_by_both, kept)},
}


@pytest.mark.parametrize("name", MAKERS)
def test_results_and_random_numbers_are_those_of_eager_calls(name):
    """So are those behind the calls; between two of them somebody draws, and seeds."""
    seen, step = [], None
    for compiled in (False, True):
        genesis.manual_seed(0)
        random.seed(1)
        np.random.seed(2)
        step = MAKERS[name]()
        step = genesis.compile(step) if compiled else step
        stream = genesis.Generator().manual_seed(0)
        results = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for i in range(24):
                x, y = genesis.randn(8, 4, generator=stream), genesis.randn(8, 4, generator=stream)
                results.append(step(x, y).detach().numpy().sum())
                if i == 10:
                    random.seed(5)
                    np.random.normal()
        seen.append([*results, random.random(), np.random.rand(), genesis.rand(1).item()])
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-4, atol=1e-5)
    assert 1 <= len(step._recent) <= 4 and "not compiled" not in step.explain()


def test_more_ways_than_graphs():
    """Five layers lead 32 ways: four of them are compiled, the others run as they are."""
    seen = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        random.seed(1)
        step = stochastic_depth(5)()
        step = genesis.compile(step) if compiled else step
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            losses = [step(genesis.ones(8, 4), genesis.ones(8, 4)).item() for _ in range(20)]
        seen.append([*losses, random.random()])
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-4)
    assert len(told) == 1 and "led 4 ways" in str(told[0].message)


@pytest.mark.parametrize(
    "line",
    [
        "x * own.random()",
        "x * rng.random()",
        "x * bare()",
        "x * random.choice([1.0, 2.0])",
        "x * [1.0, 2.0, 3.0][random.randint(0, 2)]",
        "x * float(np.random.rand(1)[0])",
        "x * float(f'{random.random():.3f}')",
        "x * (1.0 if isinstance(random.randint(0, 2), int) else 2.0)",
        "(genesis.ones(2, dtype=genesis.int64) * random.randint(1, 3)) * x",
        "x * random.random() ** random.randint(0, 3)",
    ],
)
def test_numbers_that_are_used_otherwise(line, tmp_path):
    """Compiled or not, they are those of calls that run as they are."""
    path = tmp_path / "drawing.py"
    path.write_text(
        "import random\nimport genesis, numpy as np\nfrom random import random as bare\n"
        f"own, rng = random.Random(0), np.random.default_rng(0)\n\n\ndef step(x):\n    return {line}\n"
    )
    seen = []
    for compiled in (False, True):
        scope = {}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        random.seed(0)
        np.random.seed(0)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append([step(genesis.ones(2)).tolist() for _ in range(8)] + [random.random(), np.random.rand()])
    assert seen[1] == seen[0]


def test_a_second_derivative_draws_the_same_numbers():
    f = genesis.compile(lambda x: (x**3).sum() * random.random())
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        random.seed(7)
        (g,) = genesis.autograd.grad(f(x), x, create_graph=True)
        after = random.random()
    (second,) = genesis.autograd.grad(g.sum(), x)
    random.seed(7)
    drawn = random.random()
    assert after == random.random()
    np.testing.assert_allclose(second.numpy(), 6 * drawn * x.detach().numpy(), rtol=1e-5)


def test_what_a_call_has_drawn_that_ends_with_an_error_stays_drawn():
    table = genesis.ones(4, 2)

    @genesis.compile
    def look(i):
        return random.random() * F.embedding(i, table)

    random.seed(3)
    numbers = [random.random() for _ in range(4)]
    random.seed(3)
    for k in (0, 1):
        np.testing.assert_allclose(look(genesis.tensor([k])).numpy(), numbers[k], rtol=1e-6)
    with pytest.raises(IndexError):
        look(genesis.tensor([9]))
    np.testing.assert_allclose(look(genesis.tensor([1])).numpy(), numbers[3], rtol=1e-6)


def test_other_threads_draw_as_before_while_a_function_is_traced():
    stop, wrong = threading.Event(), []

    def draw():
        own = random.Random(4)
        while not stop.is_set():
            value = own.uniform(0, 1) + random.random() * 0
            if not 0 <= value <= 1:
                wrong.append(value)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for k in range(3):
            genesis.compile(lambda x, k=k: x * random.random() + k)(genesis.ones(2))
    finally:
        stop.set()
        thread.join()
    assert not wrong
