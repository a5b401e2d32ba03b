"""Programs that go over a batch, computed for some of its elements at a time."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import emulated_units
import numpy as np
import pytest
from by_elements import overlaps
from native_runs import check, ops_left_to_the_host
from test_models import MODELS, ran, traced

import genesis
from genesis import jit, nn
from genesis.jit.lowering import cache, rounds
from genesis.jit.lowering.code import functions_of
from genesis.jit.lowering.step import Step, _Replayed
from genesis.kernels.llvm import loops, native, rates
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
WIDTH, HEADS, LENGTH, BATCH, TOKENS = 32, 2, 64, 6, 11


class Layer(nn.Module):
    def __init__(self, dropped):
        super().__init__()
        self.dropped = dropped
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
        q, k, v = (p.view(*p.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.dropout(F.gelu(self.up(self.norms[1](x))), self.dropped))


class Text(nn.Module):
    def __init__(self, dropped, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers, self.norm = nn.Sequential(*[Layer(dropped) for _ in range(layers)]), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.tokens(x) + self.places(genesis.arange(LENGTH)))))


@pytest.fixture
def small_caches(monkeypatch):
    """Programs are in rounds that else would be too small."""
    monkeypatch.setattr(rounds, "LEAST", 0)
    monkeypatch.setattr(rounds, "MOST", 1 << 16)


def step_of(ignored=2, dropped=0.1, batch=BATCH):
    genesis.manual_seed(0)
    model = Text(dropped)
    optimizer = genesis.optim.SGD(model.parameters(), lr=1e-2)  # the gradient of the bias of keys is rounding only
    x, y = (genesis.randint(0, TOKENS, (batch, LENGTH)) for _ in range(2))
    y[0, :ignored] = -100

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).reshape(-1, TOKENS), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    step(x, y)
    return jit.trace(step, x, y), (x, y)


@pytest.mark.parametrize("ignored", [0, 7])
def test_a_step_in_rounds(ignored, small_caches, tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "kept"))
    traced_graph, given = step_of(ignored=ignored)
    graph, step = cache.lowered(traced_graph)
    times = [phase.times for phase in step.plan.phases]
    assert set(times) == {1, 3} and times.count(3) > 20
    assert not overlaps(step.plan)
    results = ran(step.run, step, graph, given)
    for a, b in zip(results, ran(_Replayed(step).run, step, graph, given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(b).max(initial=0))))
    expected, before = [a.tobytes() for a in results], genesis.get_num_threads()
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            assert [a.tobytes() for a in ran(step.run, step, graph, given)] == expected
    finally:
        genesis.set_num_threads(before)
    kept, again = cache.lowered(traced_graph)
    assert again is not step and [a.tobytes() for a in ran(again.run, again, kept, given)] == expected


@pytest.mark.parametrize("unit", ["", "dpbf16ps", "tdpbf16ps"])
def test_training_in_bfloat16(unit, small_caches, monkeypatch):
    """Steps under autocast are one native call; what they change differs from eager's by less than eager's from float32's."""
    if unit and loops.width() != 64:
        pytest.skip("there are no vectors of 16 numbers")
    with emulated_units.unit(unit, monkeypatch):
        training_in_bfloat16(unit)


NEON = """
import pytest, emulated_units, test_rounds
from genesis.kernels.llvm import loops, native, rates
patch = pytest.MonkeyPatch()
patch.setattr(loops, "width", lambda: 16)
patch.setattr(test_rounds.rounds, "LEAST", 0)
patch.setattr(test_rounds.rounds, "MOST", 1 << 16)
with emulated_units.unit("bfdot", patch, always=True):
    test_rounds.training_in_bfloat16("bfdot")
"""


def test_training_in_bfloat16_with_the_vectors_of_neon():
    """In a process of its own, as all code is for vectors of 16 bytes there."""
    folders = [os.path.dirname(__file__), os.path.dirname(emulated_units.__file__), *sys.path]
    given = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    subprocess.run([sys.executable, "-c", NEON], env=given, check=True, timeout=300)


def training_in_bfloat16(unit):
    def change(compiled, low=True):
        genesis.manual_seed(0)
        model = Text(0.0)
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
        x, y = (genesis.randint(0, TOKENS, (BATCH, LENGTH)) for _ in range(2))
        before = [p.detach().numpy().copy() for p in model.parameters()]

        def step(x, y):
            optimizer.zero_grad()
            with genesis.autocast("cpu", dtype=genesis.bfloat16, enabled=low):
                loss = F.cross_entropy(model(x).reshape(-1, TOKENS), y.reshape(-1))
            loss.backward()
            optimizer.step()
            return loss

        if compiled:
            phases = Step(jit.optimized(jit.trace(step, x, y)).program).plan.phases
            assert ops_left_to_the_host(phases) == [] and {phase.times for phase in phases} == {1, 3}
            codes = [stage.kernel.code for phase in phases for stage in phase.stages]
            used = [name for name in ("dpbf16ps", "tdpbf16ps", "bfdot") if any([f".{name}" in code for code in codes])]
            assert used == [unit] * bool(unit)
            step = genesis.compile(step, fullgraph=True)
        for _ in range(5):
            step(x, y)
        return np.concatenate(
            [(p.detach().numpy() - old).ravel() for p, old in zip(model.parameters(), before, strict=True)]
        )

    eager, ours, exact = change(False), change(True), change(False, low=False)
    off, rounding = np.linalg.norm(ours - eager), np.linalg.norm(eager - exact)
    assert off < rounding and 2.0**-12 < rounding / np.linalg.norm(exact) < 2.0**-8


X86, ARM, APPLE = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx"
PROCESSORS = {
    "AVX2": (X86, "haswell", 32, "", r"vfmadd.*%ymm"),
    "AVX-512": (X86, "skylake-avx512", 64, "", r"vfmadd.*%zmm"),
    "AVX-512 of bfloat16": (X86, "cooperlake", 64, "dpbf16ps", r"\bvdpbf16ps.*%zmm"),
    "AMX": (X86, "sapphirerapids", 64, "tdpbf16ps", r"\btdpbf16ps.*%tmm"),
    "NEON": (ARM, "neoverse-n1", 16, "", r"\bfmla\b"),
    "NEON of bfloat16": (ARM, "neoverse-v1", 16, "bfdot", r"\bbfdot\b"),
    "Apple M1": (APPLE, "apple-m1", 16, "", r"\bfmla\."),
    "Apple M2": (APPLE, "apple-m2", 16, "bfdot", r"\bbfdot\b"),
}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_training_in_bfloat16_assembles_for_other_processors(processor, small_caches, monkeypatch):
    """All kernels of a step; they call nothing but functions that every process has."""
    triple, cpu, width, unit, products = PROCESSORS[processor]
    model = Text(0.1, layers=1)
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.1)
    x, y = (genesis.randint(0, TOKENS, (BATCH, LENGTH)) for _ in range(2))

    def step(x, y):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            loss = F.cross_entropy(model(x).reshape(-1, TOKENS), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    graph = jit.trace(step, x, y)
    monkeypatch.setattr(loops, "width", lambda: width)
    monkeypatch.setattr(rates, "unit_of_pairs", lambda lanes: unit)
    phases = Step(jit.optimized(graph).program, native=False).plan.phases
    assert ops_left_to_the_host(phases) == []
    parsed = native.binding().parse_assembly(functions_of(phases)[0])
    parsed.verify()
    native.binding().initialize_all_targets()
    native.binding().initialize_all_asmprinters()
    features = "-prefer-256-bit" if width == 64 else ""
    machine = native.binding().Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2)
    assembly = machine.emit_assembly(parsed)
    own = set(re.findall(r"^([\w.$]+):", assembly, re.M))
    called = set(re.findall(r"\t(?:callq?|bl)\t\*?([\w.$]+)", assembly))
    assert called - own <= {"memcpy", "memset", "_memcpy", "_memset", "_bzero"}
    assert len(re.findall(products, assembly)) >= 40


def test_memory(small_caches, monkeypatch):
    """Of what is computed for an element of the batch there is memory for a round."""
    graph, _ = step_of(batch=24)
    program = jit.optimized(graph).program
    size = Step(program).plan.size
    monkeypatch.setattr(rounds, "LEAST", 1 << 40)
    assert Step(program).plan.size > 2 * size


def test_the_gpt_of_the_benchmarks(monkeypatch):
    """What a step of `benchmarks/gpt.py` is made of; fewer is better."""
    sizes = {"WIDTH": 192, "HEADS": 6, "LENGTH": 128, "BATCH": 16, "TOKENS": 256}
    for name, size in sizes.items():
        monkeypatch.setattr(sys.modules[__name__], name, size)
    model = Text(0.0, layers=4)
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = (genesis.randint(0, TOKENS, (BATCH, LENGTH)) for _ in range(2))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).reshape(-1, TOKENS), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    step()
    compiled = Step(jit.optimized(jit.trace(step)).program)
    each = [phase for phase in compiled.plan.phases if phase.times > 1]
    kernels = [stage.kernel for phase in each for stage in phase.stages]
    assert {phase.times for phase in each} == {8}  # two texts at a time
    assert len(each) <= 135 and len(compiled.plan.phases) <= 180
    assert len({kernel.name for kernel in kernels}) <= 38
    assert compiled.plan.size <= 27.4 * 2**20
    assert not any(
        [phase.why.startswith("what leaves") for phase in compiled.plan.phases]
    )  # nothing is copied at the end
    assert ops_left_to_the_host(compiled.plan.phases) == []


def test_python_forms(small_caches):
    """Of all kernels, in all rounds; and the bits do not depend on the order of chunks."""
    graph, args = step_of(dropped=0.0)
    phases = check(jit.optimized(graph), args, close)
    assert ops_left_to_the_host(phases) == []
    assert any([phase.times == 3 for phase in phases])


def close(found, want, why):
    np.testing.assert_allclose(
        found, want, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0))), err_msg=why
    )


@pytest.mark.parametrize("name", MODELS)
def test_other_models(name, small_caches):
    """In rounds or not, the results are the same."""
    graph, given = traced(name)
    graph = jit.optimized(graph)
    step = Step(graph.program)
    for a, b in zip(ran(step.run, step, graph, given), ran(_Replayed(step).run, step, graph, given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(b).max(initial=0))))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.gate = nn.RMSNorm(20), nn.Linear(20, 70), nn.Linear(20, 70, bias=False)
        self.down = nn.Linear(70, 1)

    def forward(self, x):
        y = self.norm(x)
        return self.down(F.silu(self.gate(y)) * F.leaky_relu(self.up(y), 0.1))


def regression():
    genesis.manual_seed(0)
    model, (x, y) = Gated(), (genesis.randn(120, 20), genesis.randn(120, 1))
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    return jit.optimized(jit.trace(step, x, y)), (x, y)


def test_means_gates_and_other_norms(small_caches, monkeypatch):
    monkeypatch.setattr(rounds, "MOST", 1 << 13)
    graph, given = regression()
    step = Step(graph.program)
    assert max([phase.times for phase in step.plan.phases]) == 5
    for a, b in zip(ran(step.run, step, graph, given), ran(_Replayed(step).run, step, graph, given), strict=True):
        close(a, b, "")


def test_what_is_read_anew_in_each_round_is_less_than_what_stays_in_the_caches(small_caches, monkeypatch):
    monkeypatch.setattr(rounds, "MOST", 1)
    assert {phase.times for phase in Step(regression()[0].program).plan.phases} == {1}


def test_gradients_of_as_many_rows_as_some_batches_are_no_batches(small_caches):
    """Rounds that are few rows each read all weights, and write to all sums, for little."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = genesis.optim.Adam(model.parameters())
    x, y = genesis.randn(8, 64), genesis.randn(8, 10)

    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    step(x, y)
    assert {phase.times for phase in Step(jit.optimized(jit.trace(step, x, y)).program).plan.phases} == {1}
