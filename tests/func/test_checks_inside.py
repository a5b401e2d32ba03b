"""What eager mode refuses is refused inside transforms and by replays, too."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.func import linear_transpose, vjp, vmap

F = genesis.nn.functional
ROWS = genesis.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
BY_INDEX = {
    "embedding": lambda i: F.embedding(i, ROWS),
    "one_hot": lambda i: F.one_hot(i, 3),
    "index_select": lambda i: ROWS.index_select(0, i),
    "index_add": lambda i: ROWS.index_add(0, i, genesis.ones(2, 2)),
    "gather": lambda i: ROWS.gather(0, i.unsqueeze(1)),
    "scatter": lambda i: ROWS.scatter(0, i.unsqueeze(1), 1.0),
    "scatter_add": lambda i: ROWS.scatter_add(0, i.unsqueeze(1), genesis.ones(2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("wrong", [-1, 3])
@pytest.mark.parametrize("name", BY_INDEX)
def test_indices_out_of_range(name, wrong):
    f = BY_INDEX[name]
    good, bad = genesis.tensor([2, 0]), genesis.tensor([1, wrong])
    graph = jit.trace(f, genesis.tensor([0, 1]))
    for call in (
        lambda i: f(i),
        lambda i: vmap(f)(genesis.stack([good, i])),
        graph.replay,
        jit.optimized(graph).replay,
    ):
        call(good)
        with pytest.raises(
            IndexError, match=rf"{name}: index {wrong} is out of range for (dim 0 of size 3|3 rows|3 classes)"
        ):
            call(bad)
    assert (graph.replay(good) == f(good)).all()


def test_an_index_tensor_that_a_trace_captured_is_checked_at_each_replay():
    index = genesis.tensor([0, 1])
    graph = jit.trace(lambda x: x.index_select(0, index), genesis.ones(3))
    index[0] = 2
    assert graph.replay(genesis.tensor([1.0, 2.0, 3.0])).tolist() == [3, 2]
    index[0] = 5
    with pytest.raises(IndexError, match="index_select: index 5"):
        graph.replay(genesis.ones(3))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ignore_index": 1},
        {"weight": genesis.tensor([1.0, 2.0, 0.5, 3.0])},
        {"label_smoothing": 0.2},
        {"reduction": "sum"},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_losses_of_classes_in_batches_and_traces(loss, options):
    if loss is F.nll_loss and "label_smoothing" in options:
        pytest.skip("nll_loss has no label smoothing")
    x, y = genesis.randn(3, 5, 4).log_softmax(-1), genesis.tensor([[0, 1, 2, 3, 1], [1, 1, 0, 0, 2], [3, 3, 3, 3, 3]])
    call = lambda a, b: loss(a, b, **options)  # noqa: E731
    expected = np.array([call(a, b).item() for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(vmap(call)(x, y).numpy(), expected, rtol=1e-6)
    graph = jit.trace(call, x[0], y[0])
    np.testing.assert_allclose([graph.replay(a, b).item() for a, b in zip(x, y, strict=True)], expected, rtol=1e-6)
    wrong = y.clone()
    wrong[1, 2] = 4
    with pytest.raises(IndexError, match="target 4 is out of range for 4 classes"):
        vmap(call)(x, wrong)
    with pytest.raises(IndexError, match="(index|target) 4 is out of range"):
        graph.replay(x[0], wrong[1])


def test_losses_refuse_what_they_would_ignore():
    x, y = genesis.randn(2, 3), genesis.tensor([0, 1])
    for call in (F.cross_entropy, F.nll_loss):
        with pytest.raises(RuntimeError, match=r"weight has shape \[4\], there are 3 classes"):
            call(x, y, genesis.ones(4))
        with pytest.raises(TypeError, match=r"target must be a tensor, got \[0, 1\]"):
            call(x, [0, 1])


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_counts_of_samples(count):
    with pytest.raises(RuntimeError, match=f"multinomial: num_samples must be a positive integer, got {count}"):
        genesis.multinomial(genesis.ones(3), count)


def test_cotangents_have_the_structure_of_the_output():
    x = genesis.ones(2)
    _, pull = vjp(lambda v: {"a": v * 2, "b": v * 3}, x)
    assert pull({"a": x, "b": x})[0].tolist() == [5, 5]
    for wrong in ({"x": x, "y": x}, (x, x), [x, x]):
        with pytest.raises(TypeError, match="the cotangents differ in structure from the output"):
            pull(wrong)
    _, pull = vjp(lambda v: (v * 2, v * 3), x)
    assert pull(x, x)[0].tolist() == pull((x, x))[0].tolist() == [5, 5]


def test_aux_of_vjp_has_no_history():
    _, _, aux = vjp(lambda v: (v * 2, {"n": v * 3, "s": "text"}), genesis.ones(2), has_aux=True)
    assert not aux["n"].requires_grad and aux["n"].tolist() == [3, 3] and aux["s"] == "text"
    w = genesis.ones(2, requires_grad=True)
    assert vjp(lambda v: (v * 2, v * w), genesis.ones(2), has_aux=True)[2].requires_grad


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: x.sin(), lambda x: x.abs(), lambda x: x**3])
def test_functions_that_are_not_linear_have_no_transpose(f):
    with pytest.raises(RuntimeError, match="is not linear: at a random point"):
        linear_transpose(f, genesis.ones(3))


def test_linear_functions_have_one():
    A, B = genesis.randn(2, 3), genesis.randn(2, 3)
    pull = linear_transpose(
        lambda d: (A @ d["x"] + d["y"], d["x"].cumsum(0) * 1e6), {"x": genesis.ones(3), "y": genesis.ones(2)}
    )
    (found,) = pull((genesis.ones(2), genesis.zeros(3)))
    np.testing.assert_allclose(found["x"].numpy(), A.numpy().sum(0), rtol=1e-5)
    assert found["y"].tolist() == [1, 1]
    assert linear_transpose(lambda z: z @ B.to(genesis.complex64).T, genesis.ones(3, dtype=genesis.complex64))(
        genesis.ones(2, dtype=genesis.complex64)
    )[0].shape == (3,)


def test_a_schedule_is_no_part_of_a_traced_step():
    w = genesis.ones(1, requires_grad=True)
    optimizer = genesis.optim.SGD([w], lr=1.0)
    schedule = genesis.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x, inside):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        if inside:
            schedule.step()

    with pytest.raises(
        RuntimeError,
        match=r"ExponentialLR.step: a schedule is no part of a traced step(.|\n)*call step\(\) between replays",
    ):
        jit.trace(step, genesis.ones(1), True)
    assert optimizer.param_groups[0]["lr"] == 1.0 and w.item() == 1
    graph = jit.trace(step, genesis.ones(1), False)
    for expected in (0.0, -0.5, -0.75):
        graph.replay(genesis.ones(1), False)
        schedule.step()
        assert w.item() == expected


def test_a_replay_keeps_what_is_needed_only():
    def chain(x):
        for _ in range(30):
            x = x.sin()
        return x

    import tracemalloc

    x = genesis.ones(250_000)
    graph = jit.trace(chain, x)
    graph.replay(x)  # what the first call imports is not what a replay keeps
    tracemalloc.start()
    graph.replay(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * x.numpy().nbytes


@pytest.mark.parametrize(
    "what",
    [lambda x: x.item(), lambda x: 1 if x > 0 else 2, lambda x: x.numpy(), lambda x: x.reshape(1)[x.reshape(1) > 0]],
)
def test_errors_name_the_line(what):
    for call in (lambda: vmap(what)(genesis.ones(3)), lambda: jit.trace(what, genesis.ones(()))):
        with pytest.raises(RuntimeError, match=r"asked for at .*test_checks_inside.py:\d+ in <lambda>"):
            call()
