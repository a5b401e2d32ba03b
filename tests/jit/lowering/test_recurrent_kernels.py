"""Kernels of recurrent layers, beside the ops call by call."""

import numpy as np
import pytest

import genesis
from genesis.jit.lowering import regions
from genesis.jit.lowering.recurrent import SEQUENCES
from genesis.kernels.llvm import loops
from genesis.ops.learning import recurrent
from tests.jit.lowering.native_runs import check, ops_left_to_the_host, traced
from tests.jit.lowering.test_spatial_kernels import close, random

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")

KINDS = [("LSTM", {}), ("GRU", {}), ("RNN", {}), ("RNN", {"nonlinearity": "relu"})]
kinds = pytest.mark.parametrize(("kind", "own"), KINDS)


def function(layer):
    """What a layer gives and all its gradients, of a loss in which every result takes part."""

    def run(x, *states):
        y, last = layer(x, (states if len(states) > 1 else states[0]) if states else None)
        last = last if isinstance(last, tuple) else (last,)
        loss = (y * y).sum() + sum((s * s * s).sum() for s in last)
        return y, *last, *genesis.autograd.grad(loss, (x, *states, *layer.parameters()))

    return run


@kinds
@pytest.mark.parametrize(("size", "batch", "options"), [
    (16, 1, {}), (48, 3, {"num_layers": 2}), (32, 9, {"bidirectional": True, "bias": False}),
    (64, 2, {"batch_first": True}), (32, 19, {"bidirectional": True}), (16, 16, {"num_layers": 2}),
])  # fmt: skip
def test_layers_are_kernels(kind, own, size, batch, options):
    layer = getattr(genesis.nn, kind)(5, size, **own, **options)
    x = random(*((batch, 7) if "batch_first" in options else (7, batch)), 5).requires_grad_()
    graph = traced(function(layer), x)
    assert any("_layer" in call.op for call in graph.program.calls)
    assert not ops_left_to_the_host(check(graph, [x], close))


@kinds
def test_states_that_are_given_have_gradients(kind, own):
    layer = getattr(genesis.nn, kind)(3, 32, 2, **own)
    given = [random(2, 4, 32).requires_grad_() for _ in range(1 + (kind == "LSTM"))]
    x = random(5, 4, 3).requires_grad_()
    assert not ops_left_to_the_host(check(traced(function(layer), x, *given), [x, *given], close))


@kinds
@pytest.mark.parametrize(("size", "rows"), [(17, (3,) * 5), (16, (3, 2, 2, 1, 1))])
def test_what_fills_no_vectors_or_ends_early_is_left_to_the_host(kind, own, size, rows):
    layer = getattr(genesis.nn, kind)(4, size, **own)
    states = [genesis.zeros(3, size)] * (1 + (kind == "LSTM"))

    def run(x):
        op = getattr(recurrent, f"{kind.lower()}_layer")
        y = op(x, *states, *layer.parameters(), rows, **own)
        return y, *genesis.autograd.grad((y * y).sum(), (x, *layer.parameters()))

    x = random(sum(rows), 4).requires_grad_()
    assert any("_layer" in op for op in ops_left_to_the_host(check(traced(run, x), [x], close)))


@kinds
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}])
def test_what_a_backward_in_another_program_asks_of_a_layer(kind, own, options):
    layer = getattr(genesis.nn, kind)(5, 16, **own, **options)
    x = random(7, 2, 5).requires_grad_()

    def gradients(function):
        y, last = function(x)
        last = last if isinstance(last, tuple) else (last,)
        loss = (y * y).sum() + sum((s * s * s).sum() for s in last)
        return genesis.autograd.grad(loss, (x, *layer.parameters()))

    compiled = genesis.compile(lambda x: layer(x), fullgraph=True)
    for _ in range(3):
        for ours, expected in zip(gradients(compiled), gradients(layer), strict=True):
            close(ours.numpy(), expected.numpy(), "")


@kinds
@pytest.mark.parametrize("batch", [2, 35])
def test_the_bits_are_the_same_for_any_number_of_threads(kind, own, batch):
    layer = getattr(genesis.nn, kind)(24, 64, 2, **own)
    x, found, before = random(9, batch, 24).requires_grad_(), [], genesis.get_num_threads()
    step = genesis.compile(function(layer), fullgraph=True)
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            for _ in range(3):
                results = step(x)
            found.append(b"".join([each.detach().numpy().tobytes() for each in results]))
    finally:
        genesis.set_num_threads(before)
    assert len(set(found)) == 1


@kinds
def test_gradients_of_biases_are_sums_of_parts(kind, own):
    """Of sequences, and not of the gradients of all steps, that would have to be read once more."""
    layer = getattr(genesis.nn, kind)(5, 32, **own)
    program = traced(function(layer), random(7, 3 * SEQUENCES, 5).requires_grad_()).program
    bias = program.ends[-1]
    (stage,) = [s for phase in regions.phases(program) for s in phase.stages if bias in s.operands]
    assert {v.spec.shape[0] for v in stage.operands if v.spec.shape != bias.spec.shape} == {3}


@kinds
@pytest.mark.parametrize("batch", [1, 8])
def test_training_steps_have_the_losses_of_eager_ones(kind, own, batch):
    def losses(compiled):
        genesis.manual_seed(0)
        layer, head = getattr(genesis.nn, kind)(6, 32, 2, **own), genesis.nn.Linear(32, 3)
        optimizer = genesis.optim.AdamW([*layer.parameters(), *head.parameters()], lr=1e-2)
        x, y = random(11, batch, 6), genesis.arange(batch) % 3

        def step():
            optimizer.zero_grad()
            loss = genesis.nn.functional.cross_entropy(head(layer(x)[0][-1]), y)
            loss.backward()
            optimizer.step()
            return loss

        step = genesis.compile(step, fullgraph=True) if compiled else step
        return [step().item() for _ in range(10)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-4, atol=1e-6)
