"""Writes into rows of what a step is given, and indices that are looked at before it begins."""

from __future__ import annotations

import numpy as np
import pytest
from native_runs import check, ops_left_to_the_host, traced

import genesis
import genesis.nn.functional as F
from genesis import jit
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.testing import assert_close

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
RNG = np.random.default_rng(3)


def numbers(*shape, dtype=np.float32):
    return genesis.tensor(RNG.normal(size=shape).astype(dtype))


def copied(cache, index, value):
    return cache.index_copy_(2, index, value)


def assigned(cache, index, value):
    cache[:, :, index] = value
    return cache


def first(cache, index, value):
    cache[index] = value
    return cache


def last(cache, index, value):
    cache[..., index] = value
    return cache


WRITES = [
    (copied, [5], (2, 3, 1, 4)),
    (copied, [5, 0, 6], (2, 3, 3, 4)),
    (copied, [2, 2, 2], (2, 3, 3, 4)),
    (copied, [], (2, 3, 0, 4)),
    (assigned, [5], (2, 3, 1, 4)),
    (assigned, [-1, 1, -7], (2, 3, 3, 4)),
    (assigned, 3, (2, 3, 4)),
    (assigned, -3, (4,)),
    (assigned, [[1, 2], [3, -1]], (2, 3, 2, 2, 4)),
    (first, [1], (3, 7, 4)),
    (first, 0, (3, 7, 4)),
]


@pytest.mark.parametrize("write, index, shape", WRITES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_rows_are_written(write, index, shape, dtype):
    cache, value = numbers(2, 3, 7, 4).numpy().astype(dtype), numbers(*shape).numpy().astype(dtype)
    at = genesis.tensor(np.array(index, np.int64))
    graph = traced(write, genesis.tensor(cache), at, genesis.tensor(value))
    phases = check(graph, (genesis.tensor(cache), at, genesis.tensor(value)), assert_close)
    assert ops_left_to_the_host(phases) == []
    want, compiled = genesis.tensor(cache), genesis.compile(write, fullgraph=True)
    write(want, at, genesis.tensor(value))
    for _ in range(3):
        given = genesis.tensor(cache)
        compiled(given, at, genesis.tensor(value))
        assert given.equal(want)


def test_it_is_the_memory_of_the_old_value():
    """Nothing but the rows is moved: the old value and the new one lie in the same memory."""
    graph = traced(copied, numbers(1, 6, 128, 32), genesis.tensor([3]), numbers(1, 6, 1, 32))
    step = Step(graph.program)
    (put,) = [s for phase in step.plan.phases for s in phase.stages if "memcpy" in s.kernel.code]
    old, new = put.operands[:2]
    assert step.plan.where[old] == step.plan.where[new]
    assert step.plan.size == 64  # of the arena: nothing is copied


def test_old_values_are_read_before():
    def function(cache, index, value):
        before = cache.sum(2)
        cache.index_copy_(2, index, value)
        middle = cache * 1
        cache.index_copy_(2, index + 1, value)
        return before, middle, cache.sum(2)

    compiled = genesis.compile(function, fullgraph=True)
    for k in range(4):
        cache, index, value = numbers(2, 3, 7, 4), genesis.tensor([k]), numbers(2, 3, 1, 4)
        other = cache.clone()
        for ours, eager in zip(compiled(cache, index, value), function(other, index, value), strict=True):
            assert_close(ours, eager)
        assert cache.equal(other)


def test_what_overlaps_is_written_as_if_at_the_end():
    given = numbers(7, 4), genesis.tensor([0, 1]), numbers(2, 4)
    step = Step(traced(lambda cache, index, value: cache.index_copy_(0, index, value), *given).program)
    both, index = numbers(14, 4).numpy(), np.array([0, 1])
    for _ in range(3):
        memory, want = both.copy(), both.copy()
        want[2:4] = both[3:5]
        step.run((memory[2:9], index, memory[3:5]))
        assert (memory == want).all()


@pytest.mark.parametrize("index", [7, -8, 1 << 40])
@pytest.mark.parametrize("write", [copied, assigned])
def test_wrong_rows_are_refused(write, index):
    compiled, cache, value = genesis.compile(write, fullgraph=True), numbers(2, 3, 7, 4), numbers(2, 3, 1, 4)
    for k in range(3):
        compiled(cache, genesis.tensor([k]), value)
    before, stamp = cache.clone(), cache._version
    with pytest.raises(IndexError) as eager:
        write(cache.clone(), genesis.tensor([index]), value)
    with pytest.raises(IndexError) as ours:
        compiled(cache, genesis.tensor([index]), value)
    assert str(ours.value).splitlines()[0] == str(eager.value).splitlines()[0]
    assert cache.equal(before)
    assert cache._version >= stamp
    compiled(cache, genesis.tensor([6]), value)  # and it goes on
    assert cache[:, :, 6].equal(value[:, :, 0])


# ---- indices


def looked_up(table, index, total):
    total.add_(1)
    return F.embedding(index, table) * 2


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (40_000,), (0,)])
def test_indices_are_checked_before_anything_is_written(shape):
    table, total = numbers(10, 8), genesis.zeros(3)
    index = genesis.tensor(RNG.integers(0, 10, shape))
    compiled = genesis.compile(looked_up, fullgraph=True)
    for k in range(3):
        assert_close(compiled(table, index, total), F.embedding(index, table) * 2)
        assert total.tolist() == [k + 1] * 3
    assert (
        ops_left_to_the_host(check(traced(looked_up, table, index, total), (table, index, total), assert_close)) == []
    )
    if index.numel():
        for wrong in (10, -1):
            bad = index.clone()
            bad.reshape(-1)[-1] = wrong
            with pytest.raises(IndexError, match=f"index {wrong} is out of range for 10 rows"):
                compiled(table, bad, total)
        assert total.tolist() == [3.0] * 3
    compiled(table, index, total)
    assert total.tolist() == [4.0] * 3


def test_indices_that_are_a_part_of_an_argument():
    table, index = numbers(10, 8), genesis.tensor(RNG.integers(0, 10, (6, 9)))
    index[:, -1], index[0] = 99, -5
    compiled = genesis.compile(lambda x: F.embedding(x[1:, :-1:2].t(), table), fullgraph=True)
    for _ in range(3):
        assert_close(compiled(index), table[index[1:, :-1:2].t()])
    index[2, 2] = 10
    with pytest.raises(IndexError, match="index 10"):
        compiled(index)
    index[2, 2], index[2, 3] = 9, 10
    assert_close(compiled(index), table[index[1:, :-1:2].t()])


def test_classes_of_a_cross_entropy():
    x, target = numbers(6, 5), genesis.tensor([0, 4, -100, 2, 3, -100])
    compiled = genesis.compile(lambda x, y: F.cross_entropy(x, y), fullgraph=True)
    for _ in range(3):
        assert_close(compiled(x, target), F.cross_entropy(x, target))
    graph = traced(F.cross_entropy, x, target)
    assert ops_left_to_the_host(check(graph, (x, target), assert_close)) == []
    for wrong in (5, -1):
        bad = target.clone()
        bad[3] = wrong
        with pytest.raises(IndexError) as eager:
            F.cross_entropy(x, bad)
        with pytest.raises(IndexError) as ours:
            compiled(x, bad)
        assert all(f"{wrong} is out of range for 5 classes" in str(error.value) for error in (eager, ours))


def test_what_was_written_to_is_checked_where_it_is_made():
    """The indices of the outside are not those that are looked up."""

    def function(table, index):
        index.add_(1)
        return F.embedding(index, table)

    table, compiled = numbers(10, 8), genesis.compile(function, fullgraph=True)
    for k in range(3):
        assert_close(compiled(table, genesis.tensor([k, -1])), table[[k + 1, 0]])
    with pytest.raises(IndexError):
        compiled(table, genesis.tensor([9, 0]))


def test_all_is_one_native_call():
    table, x = numbers(10, 8), genesis.tensor([1, 2, 3])
    step = Step(jit.optimized(jit.trace(lambda t, i: F.embedding(i, t), table, x)).program)
    assert step.compiled.parts == ((step.compiled.checks, len(step.compiled.rows)),)
    assert (step.compiled.checks, step.compiled.flags) == (1, 1)


def set_at(x, key):
    x[key] = 5.0
    return x


def added_at(x, key):
    x[key].add_(2.0)
    return x


@pytest.mark.parametrize("write", [set_at, added_at])
@pytest.mark.parametrize(
    "make, key",
    [
        (lambda x: x.sum(0), 1),
        (lambda x: x.sum(0)[1:], -1),
        (lambda x: x * 2, (3, 1)),
        (lambda x: (x * 2).t(), (1, -1)),
        (lambda x: x.sum(), ()),
        (lambda x: x * 2, (..., 4, 2)),
        (lambda x: x * 2, (1, slice(2, None))),
    ],
)
def test_one_element_is_written(write, make, key):
    """Found by fuzz_compile, seed 510338: of a number, which is no view, the address was taken for the offset."""
    x = numbers(5, 3)
    phases = check(traced(lambda x: write(make(x), key), x), (x,), assert_close)
    assert ops_left_to_the_host(phases) == []


def test_the_gradient_of_one_element():
    def function(x):
        x = x.detach().requires_grad_()
        return genesis.autograd.grad(x[3, 1] * x.sum(0)[2], x)[0]

    x = numbers(5, 3)
    assert ops_left_to_the_host(check(traced(function, x), (x,), assert_close)) == []
