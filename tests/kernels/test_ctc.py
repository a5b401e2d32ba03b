"""CTC's kernel: the sum over all alignments, one by one, and what the composition gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.core.call.kinds import case
from genesis.core.call.op import REGISTRY
from genesis.nn import functional as F
from genesis.testing import check_kernel

rng = np.random.default_rng(0)


def read(alignment, blank):
    """What an alignment says: repetitions are one, blanks nothing."""
    return tuple(c for c, _ in itertools.groupby(alignment) if c != blank)


def by_alignments(log_probs, target, steps, blank):
    """The loss of one sequence, and its gradient."""
    classes = log_probs.shape[1]
    total, gradient = 0.0, np.zeros_like(log_probs)
    for alignment in itertools.product(range(classes), repeat=steps):
        if read(alignment, blank) == tuple(target):
            p = math.exp(sum(log_probs[t, c] for t, c in enumerate(alignment)))
            total += p
            for t, c in enumerate(alignment):
                gradient[t, c] -= p
    return (-math.log(total), gradient / total) if total else (math.inf, gradient)


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("joined", [False, True])
def test_every_alignment_counts(blank, joined):
    classes = [c for c in range(3) if c != blank]
    a, b = classes
    wanted, steps = [(a, a), (b,), (), (a, b)], [5, 4, 3, 2]
    log_probs = genesis.tensor(rng.standard_normal((5, 4, 3)) * 2).log_softmax(-1).requires_grad_()
    padded = [[*t, *[a] * (2 - len(t))] for t in wanted]
    targets = genesis.tensor([c for t in wanted for c in t] if joined else padded)
    losses = F.ctc_loss(log_probs, targets, steps, [len(t) for t in wanted], blank, "none")
    losses.sum().backward()
    for n, (target, count) in enumerate(zip(wanted, steps, strict=True)):
        loss, gradient = by_alignments(log_probs.detach().numpy()[:, n], target, count, blank)
        np.testing.assert_allclose(losses[n].item(), loss, rtol=1e-12)
        np.testing.assert_allclose(log_probs.grad.numpy()[:, n], gradient, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_as_the_composition_to_second_order(reduction, zero_infinity):
    log_probs = genesis.tensor(rng.standard_normal((4, 3, 5))).log_softmax(-1).requires_grad_()
    targets = genesis.tensor([[1, 1, 1], [2, 3, 4], [4, 0, 0]])  # of the first, three would need five steps
    lengths = genesis.tensor([3 if zero_infinity else 2, 3, 1])
    steps = genesis.tensor([4, 4, 2])
    check_kernel(REGISTRY["ctc_loss"], case(log_probs, targets, steps, lengths, 0, reduction, zero_infinity))


def test_what_is_impossible_is_infinite():
    log_probs = genesis.zeros(2, 1, 3).log_softmax(-1).requires_grad_()
    loss = F.ctc_loss(log_probs, genesis.tensor([[1, 1]]), [2], [2])
    assert loss.item() == math.inf
    zero = F.ctc_loss(log_probs, genesis.tensor([[1, 1]]), [2], [2], zero_infinity=True)
    zero.backward()
    assert zero.item() == 0 and not log_probs.grad.any()


def test_a_class_without_probability():
    log_probs = genesis.tensor([[[0.5, 0.5, 0.0]]] * 2, dtype=genesis.float64).log().requires_grad_()
    F.ctc_loss(log_probs, genesis.tensor([[1]]), [2], [1]).backward()
    _, gradient = by_alignments(log_probs.detach().numpy()[:, 0], (1,), 2, 0)
    np.testing.assert_allclose(log_probs.grad.numpy()[:, 0], gradient, rtol=1e-12)


@pytest.mark.parametrize(
    "targets, steps, lengths",
    [([[1, 9]], [4], [2]), ([[1, -1]], [4], [2]), ([[1, 2]], [5], [2]), ([[1, 2]], [4], [3]), ([1, 2], [4], [1])],
)
def test_wrong_targets_and_lengths_are_refused(targets, steps, lengths):
    with pytest.raises((RuntimeError, IndexError)):
        F.ctc_loss(genesis.zeros(4, 1, 3), genesis.tensor(targets), steps, lengths)


def test_a_trace_reads_lengths_and_targets_of_its_call():
    def loss(x, targets, steps, lengths):
        return F.ctc_loss(x, targets, steps, lengths, reduction="sum")

    x = genesis.tensor(rng.standard_normal((5, 2, 4))).log_softmax(-1)
    made = [genesis.tensor(t) for t in ([[1, 2], [3, 1]], [5, 4], [2, 1])]
    graph = jit.trace(loss, x, *made)
    for targets, steps, lengths in (([[2, 2], [1, 3]], [4, 0], [1, 0]), ([[3, 1], [1, 1]], [5, 5], [2, 2])):
        now = [genesis.tensor(t) for t in (targets, steps, lengths)]
        assert graph.replay(x, *now).item() == loss(x, *now).item()
    with pytest.raises(RuntimeError, match="input_lengths must be from 0 to 5, got \\[6, 1\\]"):
        graph.replay(x, made[0], genesis.tensor([6, 1]), made[2])


def test_no_step_says_nothing_and_nothing_else():
    x = genesis.zeros(3, 2, 4, dtype=genesis.float64).log_softmax(-1).requires_grad_()
    losses = F.ctc_loss(x, genesis.tensor([[1], [1]]), [0, 0], [0, 1], reduction="none")
    assert losses.tolist() == [0.0, math.inf]


def test_an_infinite_loss_has_no_gradient_that_is_a_number():
    x = genesis.zeros(2, 2, 3, dtype=genesis.float64).log_softmax(-1).requires_grad_()
    losses = F.ctc_loss(x, genesis.tensor([[1, 1], [1, 2]]), [2, 2], [2, 2], reduction="none")
    losses.sum().backward()
    assert losses[0] == math.inf and losses[1].isfinite()
    assert x.grad[:, 0].isnan().any() and x.grad[:, 1].isfinite().all()
