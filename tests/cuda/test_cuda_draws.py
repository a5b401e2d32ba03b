"""Random numbers on a GPU: bit for bit those of the CPU, whatever is drawn."""

from __future__ import annotations

import re
import warnings

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton

import genesis
from genesis import nn
from genesis.cuda.kernels.draws import kernel_of
from genesis.nn import functional as F

DRAWN = {
    "uniform": lambda x: x.uniform_(),
    "between": lambda x: x.uniform_(-1.0, 3.3),
    "one number": lambda x: x.uniform_(0.7, 0.7),
    "normal": lambda x: genesis.randn_like(x),
    "spread": lambda x: x.normal_(0.7, 2.5),
    "chance": lambda x: x.bernoulli_(0.3),
    "dropout": lambda x: F.dropout(genesis.ones_like(x), 0.3),
}
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 2049, 4100]  # the second words of pairs begin anywhere in a block


def drawn(draw, dtype, device):
    genesis.manual_seed(2**63 + 11)
    genesis.rand(3)  # the stream is somewhere
    out = [draw(genesis.zeros(n, dtype=dtype, device=device)).cpu() for n in SIZES]
    return [x.tolist() for x in [*out, genesis.rand(3, device=device).cpu()]]  # and moves on as far


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", DRAWN)
def test_they_are_those_of_the_cpu(name, dtype, way):
    if way == "triton" and dtype == "bfloat16":
        pytest.skip("the interpreter rounds no bfloat16")
    here = drawn(DRAWN[name], getattr(genesis, dtype), "cpu")
    with emulated(way):
        assert drawn(DRAWN[name], getattr(genesis, dtype), "cuda") == here


@pytest.mark.parametrize("draw", [lambda x: x.bernoulli_(0.4)], ids=["chance"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_chances_of_other_dtypes(dtype, draw):
    here = drawn(draw, getattr(genesis, dtype), "cpu")
    with emulated():
        assert drawn(draw, getattr(genesis, dtype), "cuda") == here


@pytest.mark.parametrize("draw", [genesis.randn_like, genesis.rand_like, lambda x: x.normal_(0.0, 2.5)])
def test_parts_of_complex_numbers_are_drawn(draw):
    here = drawn(draw, genesis.complex64, "cpu")
    with emulated():
        assert drawn(draw, genesis.complex64, "cuda") == here


def test_layers_begin_with_the_same_weights():
    def weights(device):
        genesis.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(5, 3, device=device), nn.Conv2d(2, 3, 3, device=device), nn.Embedding(7, 3, device=device)
        )
        return [p.detach().cpu().tolist() for p in model.parameters()]

    here = weights("cpu")
    with emulated() as gpu:
        assert weights("cuda") == here
        assert not gpu.calls.get("copy_in", 0)


def test_recordings_draw_anew():
    """What a graph draws goes on from where the generator is."""

    def draws(device):
        genesis.manual_seed(5)
        genesis.randn(3, device=device)
        return [genesis.randn(9, device=device).cpu().tolist() for _ in range(3)]

    here = draws("cpu")
    with emulated():
        genesis.manual_seed(5)
        genesis.randn(3, device="cuda")
        out = [genesis.randn(9, device="cuda").cpu().tolist()]
        graph = genesis.cuda.CUDAGraph()
        with genesis.cuda.graph(graph):
            x = genesis.randn(9, device="cuda")
        for _ in range(2):
            graph.replay()
            out.append(x.cpu().tolist())
    assert out == here


def test_compiled_steps_draw_the_same():
    def run(device, compiled):
        genesis.manual_seed(6)
        step = lambda x: (x + genesis.randn_like(x)).tanh()  # noqa: E731
        step = genesis.compile(step) if compiled else step
        x = genesis.zeros(4, 5, device=device)
        return [step(x).cpu().tolist() for _ in range(4)]

    with emulated():
        assert run("cuda", True) == run("cuda", False)


INTEGERS = {
    "few": lambda n, d: genesis.randint(9, (n,), device=d),
    "below zero": lambda n, d: genesis.randint(-7, 1000, (n,), device=d),
    "many": lambda n, d: genesis.randint(2**31 - 1, (n,), device=d),
    "far out": lambda n, d: genesis.randint(-(2**63), -(2**63) + 5, (n,), device=d),
    "short": lambda n, d: genesis.randint(-3, 300, (n,), dtype=genesis.int16, device=d),
    "bytes": lambda n, d: genesis.randint(256, (n,), dtype=genesis.uint8, device=d),
    "floats": lambda n, d: genesis.randint(-5, 100, (n,), dtype=genesis.float32, device=d),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_those_of_the_cpu(name, way):
    def drawn(device):
        genesis.manual_seed(2**63 + 11)
        genesis.rand(3)
        return [INTEGERS[name](n, device).cpu().tolist() for n in SIZES] + [genesis.rand(3, device=device).tolist()]

    here = drawn("cpu")
    with emulated(way) as gpu:
        assert drawn("cuda") == here and not gpu.calls.get("copy_in", 0)


def test_graphs_draw_integers():
    """A step that draws them is recorded, and goes on in the stream."""

    def run(device, compiled):
        genesis.manual_seed(6)
        step = lambda x: x[genesis.randint(0, 50, (8,), device=x.device)] * 2.0  # noqa: E731
        step = genesis.compile(step) if compiled else step
        x = genesis.arange(50.0, device=device)
        out = [step(x).cpu().tolist() for _ in range(4)]
        return out, step

    with emulated():
        here, _ = run("cpu", False)
        there, step = run("cuda", True)
        (entry,) = step._recent
        assert here == there and entry.step.graphs == 1


def test_others_are_drawn_by_the_cpu():
    with emulated(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for draw in (
            lambda d: genesis.randint(2**40, (20,), device=d),
            lambda d: genesis.randint(9, (20,), device=d, dtype=genesis.bool),
            lambda d: genesis.randperm(20, device=d),
        ):
            out = []
            for device in ("cpu", "cuda"):
                genesis.manual_seed(1)
                out.append(draw(device).tolist())
            assert out[0] == out[1]


@needs_triton
@pytest.mark.parametrize("name", ["uniform", "normal", "normal_", "uniform_", "bernoulli_", "dropout", "integers"])
def test_machine_code_of_draws(name):
    """Nothing spills, and nothing is rounded once that the CPU rounds twice."""
    options = {
        "normal_": (0.0, 1.0),
        "uniform_": (0.0, 1.0, None, None),
        "bernoulli_": (0.5,),
        "dropout": (0.1,),
        "integers": (0, 9),
    }
    for dtype in (
        (genesis.int64, genesis.uint8) if name == "integers" else (genesis.float32, genesis.float64, genesis.bfloat16)
    ):
        for held in (False, True):
            kernel = kernel_of(name, dtype.np, 1000, options.get(name, ()), held)
            text = machine_code(kernel, (0,))
            assert not kernel.fused
            assert "normal" in name or not re.search("FFMA|DFMA", text)  # quotients and roots are made of these
