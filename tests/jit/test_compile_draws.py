"""Random numbers in compiled functions: those of eager calls, computed by the kernels that use them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.jit.lowering import draws, rounds
from genesis.jit.lowering.emit_python import uniform
from genesis.jit.lowering.regions import phases
from genesis.kernels.llvm import loops
from genesis.nn import functional as F
from genesis.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
X = np.cos(np.arange(330)).reshape(33, 10).astype(np.float32)

IN_KERNELS = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout in float64": lambda x: F.dropout(x.double(), 0.3),
    "dropout of channels": lambda x: F.dropout2d(x.reshape(33, 5, 2, 1), 0.4),
    "dropout, then rows": lambda x: (F.dropout(x, 0.5) != 0).sum(1),
    "two draws": lambda x: genesis.rand_like(x) + genesis.rand_like(x) * x,
    "transposed": lambda x: genesis.rand(11, 30).t() * x.reshape(30, 11),
    "transposed in memory": lambda x: genesis.rand(100, 3).t().contiguous() + 1,
    "sums of rows": lambda x: genesis.rand(100, 3, dtype=genesis.float64).sum(1),
    "a product of drawn numbers": lambda x: x @ genesis.rand(10, 7),
    "indexed": lambda x: genesis.rand(33, 10)[genesis.tensor([3, 0, 32])],
    "float16": lambda x: genesis.rand(9, 3, dtype=genesis.float16).float(),
    "bfloat16": lambda x: genesis.rand(9, 3, dtype=genesis.bfloat16).float(),
    "many": lambda x: genesis.rand(70, 333),
    "one": lambda x: genesis.rand(()) + x,
    "none": lambda x: genesis.rand(0, 3),
    "of an odd number": lambda x: (genesis.rand(7), genesis.rand(5))[1],
    "bernoulli": lambda x: genesis.bernoulli(x.sigmoid()),
    "bernoulli_": lambda x: x.clone().bernoulli_(0.3),
    "uniform_": lambda x: x.clone().uniform_(-2, 3),
    "rrelu": lambda x: F.rrelu(x, training=True),
}
ON_THE_HOST = {
    "normal": lambda x: genesis.randn(5, 10) + x[:5] * genesis.rand(5, 10),
    "exponential": lambda x: x.clone().exponential_(),
    "integers": lambda x: genesis.randint(0, 7, (3, 4)),
    "permutation": lambda x: x[genesis.randperm(33)],
    "complex": lambda x: genesis.rand(3, 2, dtype=genesis.complex64),
}


def state(*streams):
    return [stream.key_and_block() for stream in (genesis.default_generator, *streams)]


def calls(function, place, count=3):
    """What some calls give, from a place of the default stream on, and where it is then."""
    genesis.default_generator.move_to(*place)
    return [function(genesis.tensor(X)).detach().numpy().copy() for _ in range(count)], state()


def hosts(compiled):
    """How many parts of the last graph the host computes, and how many native calls there are."""
    parts = compiled._recent[0].step.compiled.parts
    native = sum([isinstance(part, tuple) for part in parts])
    return len(parts) - native, native


@pytest.mark.parametrize("place", [(5, 0), (2**64 - 3, 7), (5, 2**64 - 2)], ids=["", "large seed", "carry"])
@pytest.mark.parametrize("name", [*IN_KERNELS, *ON_THE_HOST])
def test_the_same_numbers(name, place):
    function = {**IN_KERNELS, **ON_THE_HOST}[name]
    expected, after = calls(function, place)
    compiled = genesis.compile(function)
    found, there = calls(compiled, place)
    assert [x.tobytes() for x in found] == [x.tobytes() for x in expected] and there == after
    assert hosts(compiled)[0] == (name in ON_THE_HOST)


def test_any_number_of_threads():
    compiled, before = genesis.compile(lambda x: F.dropout(genesis.rand(300, 411), 0.2) * 2), genesis.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            found.append(calls(compiled, (3, 1))[0])
    finally:
        genesis.set_num_threads(before)
    assert [x.tobytes() for x in found[0]] == [x.tobytes() for x in found[1]] == [x.tobytes() for x in found[2]]


def test_the_python_form_of_a_draw():
    want = genesis.Generator().move_to(2**63 + 9, 5).uniform((3, 7), np.float32)
    for before in (0, 4):
        count = np.arange(21).reshape(3, 7) - before
        found = uniform(np.int64(9 - 2**63), np.int64(5), np.int64(0), count, before, 24)
        assert found.dtype == want.dtype and found.tobytes() == want.tobytes()


# ---- training steps


class Layer(nn.Module):
    def __init__(self, width, dropped):
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropped)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


def trained(dropped, wrap=lambda layer, x: layer(x), batch=6):
    """A step of a model whose layers have dropout, what it is trained on, and the model."""
    genesis.manual_seed(0)
    model = nn.ModuleList([nn.Embedding(11, 32), *[Layer(32, dropped) for _ in range(3)], nn.Linear(32, 11)])
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = (genesis.randint(0, 11, (batch, 16)) for _ in range(2))

    def step():
        optimizer.zero_grad()
        out = F.dropout(model[0](x), dropped, model.training)
        for layer in model[1:-1]:
            out = wrap(layer, out)
        loss = F.cross_entropy(model[-1](out).reshape(-1, 11), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def history(compiled, between=lambda i, model: None, **options):
    step, model = trained(0.25, **options)
    step = genesis.compile(step) if compiled else step
    seen = []
    for i in range(5):
        between(i, model)
        seen.append((float(step()), state()))
    return seen, step


def same(between=lambda i, model: None, **options):
    expected, found = history(False, between, **options)[0], history(True, between, **options)[0]
    np.testing.assert_allclose([x for x, _ in found], [x for x, _ in expected], rtol=1e-5)
    assert [s for _, s in found] == [s for _, s in expected]
    return [x for x, _ in found]


def test_seeds_and_states_that_are_set_between_calls():
    losses = same(lambda i, model: genesis.manual_seed(7) if i in (2, 3) else None)
    assert losses != same()
    kept = []

    def back(i, model):
        kept.append(genesis.get_rng_state())
        if i == 3:
            genesis.set_rng_state(kept[1])

    same(back)


def test_the_training_flag():
    def between(i, model):
        model.train(i not in (2, 3))

    losses, with_dropout = same(between), same()
    assert losses[:2] == with_dropout[:2] and losses[2] != with_dropout[2]


def test_checkpoints_draw_again_what_they_drew():
    for reentrant in (False, True):
        same(wrap=lambda layer, x, r=reentrant: checkpoint(layer, x, use_reentrant=r))


@pytest.mark.parametrize("in_rounds", [False, True])
def test_dropout_takes_no_phases_of_its_own(in_rounds, monkeypatch):
    if in_rounds:
        monkeypatch.setattr(rounds, "LEAST", 0)
        monkeypatch.setattr(rounds, "MOST", 1 << 13)
    counts = []
    for dropped in (0.0, 0.1):
        step = genesis.compile(trained(dropped)[0])
        step(), step()
        plan = step._recent[0].step.plan
        drawn = [call.op for phase in plan.phases for call in phase.calls if call.op in (draws.ROWS, "random.dropout")]
        assert drawn == [draws.ROWS if in_rounds else "random.dropout"] * (4 if dropped else 0)
        assert {phase.times for phase in plan.phases} == ({1, 6} if in_rounds else {1})
        counts.append((len(plan.phases), hosts(step)))
    assert counts[0] == counts[1] and counts[0][1] == (0, 1)


def test_rounds_draw_what_all_at_once_draw(monkeypatch):
    """Also what is needed whole, besides the part of each round."""

    def run():
        genesis.manual_seed(1)
        x, w, y = genesis.randn(64, 32), genesis.randn(32, 32).requires_grad_(), genesis.arange(64) % 32

        def step():
            w.grad = None
            kept = genesis.rand(64, 32)
            loss = F.cross_entropy(F.linear(F.dropout(x, 0.5), w) * kept, y)
            loss.backward()
            return loss, w.grad, kept, kept.sum(0)

        compiled = genesis.compile(step)
        genesis.manual_seed(2)
        results = [out.detach().numpy().copy() for _ in range(3) for out in compiled()]
        return results, {phase.times for phase in compiled._recent[0].step.plan.phases}

    want, times = run()
    monkeypatch.setattr(rounds, "LEAST", 0)
    monkeypatch.setattr(rounds, "MOST", 1 << 10)
    found, in_rounds = run()
    assert (times, in_rounds) == ({1}, {1, 8})
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert found[2].tobytes() == want[2].tobytes()


def test_gradients_from_outside_draw_what_the_forward_drew():
    """The stream may have been seeded in between; a backward that draws again goes by the seed of its forward."""

    def run(compiled):
        genesis.manual_seed(3)
        layer, x, seen = Layer(8, 0.5), genesis.randn(4, 8), []
        f = genesis.compile(lambda x: checkpoint(layer, x, use_reentrant=False)) if compiled else layer
        for i in range(3):
            y = f(x)
            genesis.manual_seed(i)
            y.square().sum().backward()
            seen += [layer.up.weight.grad.numpy().copy(), state()]
        return seen

    for a, b in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6) if isinstance(a, np.ndarray) else [a] == [b]


def test_a_generator_of_ones_own():
    def run(compiled):
        stream, seen = genesis.Generator().manual_seed(-4), []

        def f(x):
            return genesis.rand(5, generator=stream) + genesis.rand(5) * genesis.rand(5, generator=stream) + x[0, :5]

        f = genesis.compile(f) if compiled else f
        genesis.manual_seed(1)
        for i in range(4):
            seen += [f(genesis.tensor(X)).tolist(), state(stream)]
            stream.manual_seed(2**70 + 1) if i == 1 else None
        return seen

    assert run(True) == run(False)


def test_an_error_leaves_the_stream_where_it_was():
    table = genesis.randn(4, 3)

    def f(i):
        return F.dropout(table, 0.5)[i]

    compiled, i = genesis.compile(f), genesis.tensor([1, 2])
    compiled(i), compiled(i)
    before = state()
    with pytest.raises(IndexError):
        compiled(genesis.tensor([1, 9]))
    assert state() == before


SCRIPT = """
import genesis
from genesis.nn import functional as F
compiled = genesis.compile(lambda x: F.dropout(x, 0.5))
genesis.manual_seed(4)
print([compiled(genesis.ones(3, 5)).tolist() for _ in range(2)])
"""


def test_out_of_the_cache_on_disk(tmp_path):
    env = {**os.environ, "GENESIS_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    genesis.manual_seed(4)
    assert told == [f"{[F.dropout(genesis.ones(3, 5), 0.5).tolist() for _ in range(2)]}\n"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_draws_on():
    compiled = genesis.compile(lambda x: F.dropout(x, 0.5))
    x = genesis.tensor(X)
    compiled(x), compiled(x)
    genesis.manual_seed(6)
    expected = F.dropout(x, 0.5).numpy().tobytes()
    genesis.manual_seed(6)
    child = os.fork()
    if child == 0:
        os._exit(0 if compiled(x).numpy().tobytes() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compiled(x).numpy().tobytes() == expected


def test_draws_of_the_host_come_first():
    """So that native code is entered once."""

    def f(x):
        return (x.exp() + genesis.randn(33, 10)) * genesis.rand(33, 10)

    compiled = genesis.compile(f)
    compiled(genesis.tensor(X)), compiled(genesis.tensor(X))
    made = phases(compiled._recent[0].graph.program)
    assert [bool(phase.stages) for phase in made] == [False, True]
    assert hosts(compiled) == (1, 1)


@pytest.mark.parametrize("of_its_own", [False, True])
@pytest.mark.parametrize(
    "read",
    [
        lambda g: (g.initial_seed() if g else genesis.initial_seed()) % 7,
        lambda g: (g.get_state() if g else genesis.get_rng_state()).float().sum(),
        lambda g: (g.get_state() if g else genesis.get_rng_state())[8:].clone(),
    ],
)
def test_seeds_and_states_that_the_function_reads(read, of_its_own):
    """They were those of the trace."""

    def run(compiled):
        generator = genesis.Generator().manual_seed(3) if of_its_own else None
        genesis.manual_seed(3)
        step, results = (lambda x: (x * read(generator), genesis.rand(2, generator=generator))), []
        step = genesis.compile(step) if compiled else step
        for call in range(5):
            results.append([y.tolist() for y in step(genesis.ones(8))])
            if call == 2:
                (genesis.manual_seed if generator is None else generator.manual_seed)(12345)
        return results, step

    expected, _ = run(False)
    with pytest.warns(UserWarning, match="of a random stream from outside is"):
        assert run(True)[0] == expected


def test_a_state_that_the_function_goes_back_to_is_no_matter():
    def again(x):
        state = genesis.get_rng_state()
        drawn = genesis.rand(3)
        genesis.set_rng_state(state)
        return drawn - genesis.rand(3) + x

    step = genesis.compile(again, fullgraph=True)
    assert all(genesis.equal(step(genesis.ones(3)), genesis.ones(3)) for _ in range(3))
