"""Collectives in compiled steps: begun when their operand is there, waited for where their result is needed."""

from __future__ import annotations

import json

import pytest

import genesis
from genesis import jit, nn
from genesis.distributed.nn import ops
from genesis.jit.lowering import cache
from genesis.jit.lowering.compiled import Begin, End
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.testing.tolerance import assert_close

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def step_of(function, *tensors):
    return Step(jit.optimized(jit.trace(function, *tensors)).program)


def titles(step):
    """What the phases do, in their order."""
    return [f"{phase.moves} {','.join([c.op for c in phase.calls])}".strip() for phase in step.plan.phases]


def two_sums(x, w):
    first = ops.all_reduce(x.exp(), "sum", ops.ALONE) / 4
    y = (w @ w).cumsum(0)
    second = ops.all_reduce(y, "sum", ops.ALONE) / 4
    return w + first, w + second


def test_what_reads_the_results_comes_behind_what_does_not():
    step = step_of(two_sums, genesis.ones(8, 8), genesis.ones(8, 8))
    did = titles(step)
    begun = [i for i, title in enumerate(did) if title == "begin all_reduce"]
    ended = [i for i, title in enumerate(did) if title == "end all_reduce"]
    assert len(begun) == len(ended) == 2
    assert begun[0] < did.index("cumsum") < begun[1] < ended[0]
    assert all(["div" not in title for title in did[: ended[0]]])
    assert "begin" in str(step.explain()) and "left to the host" in str(step.explain())


def test_the_sum_is_made_where_its_operand_lies():
    def function(x):
        return ops.all_reduce(x.exp(), "sum", ops.ALONE) * 2

    step = step_of(function, genesis.ones(64, 64))
    (begin,) = [part for part in step.compiled.parts if isinstance(part, Begin)]
    assert begin.given[0] == begin.made[0]

    def kept(x):  # the operand is read later, too
        y = x.exp()
        return ops.all_reduce(y, "sum", ops.ALONE) * 2 + y

    (begin,) = [part for part in step_of(kept, genesis.ones(64, 64)).compiled.parts if isinstance(part, Begin)]
    assert begin.given[0] != begin.made[0]


def test_steps_in_rounds_send_what_is_complete():
    """A large batch goes through the step some rows at a time; the gradients are there behind the last of them."""
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = genesis.randn(8192, 256), genesis.randint(0, 10, (8192,))

    def gradients(x, y):
        nn.functional.cross_entropy(model(x), y).backward()
        return [ops.all_reduce(p.grad, "sum", ops.ALONE) / 2 for p in model.parameters()]

    def in_tree(x, y):
        nn.functional.cross_entropy(model(x), y).backward()
        return [ops.sum_in_tree(p.grad, ops.ALONE) / 2 for p in model.parameters()]

    step = step_of(gradients, x, y)
    assert any([phase.times > 1 for phase in step.plan.phases])
    model.zero_grad()
    assert all([phase.times == 1 for phase in step_of(in_tree, x, y).plan.phases])
    model.zero_grad()
    expected = gradients(x, y)
    model.zero_grad()
    for got, g in zip(genesis.compile(gradients, fullgraph=True)(x, y), expected, strict=True):
        assert genesis.allclose(got, g, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16, genesis.complex64])
@pytest.mark.parametrize("shape", [(5, 3), (), (0, 2)])
def test_results(shape, dtype):
    def function(x, y):
        whole = ops.all_reduce(x * 2, "mean", ops.ALONE)
        in_tree = ops.sum_in_tree(y, ops.ALONE)  # an argument stays as it is
        turned = ops.all_reduce(x.mT if x.ndim > 1 else x, "sum", ops.ALONE)
        return whole + 1, in_tree * y, turned, ops.all_reduce(x, "sum", ops.ALONE)

    x = genesis.randn(*shape).to(dtype)
    given = x.clone()
    compiled = genesis.compile(function, fullgraph=True)
    for _ in range(3):
        for a, b in zip(compiled(x, x), function(x, x), strict=True):
            assert_close(a, b)
    assert given.equal(x)


def test_kept_steps_have_what_goes_on():
    step = step_of(two_sums, genesis.ones(8, 8), genesis.ones(8, 8)).compiled
    again = cache.from_plain(json.loads(json.dumps(cache.to_plain(step))))
    assert again.parts == step.parts
    assert [type(part) for part in again.parts if isinstance(part, Begin | End)] == [Begin, Begin, End, End]


def test_memory_that_is_written_to_beside_is_not_used_again(monkeypatch):
    """A call that ends between: what was begun may still come."""

    class Never:
        def advance(self):
            pass

        def wait(self):
            raise KeyboardInterrupt

    op = ops.all_reduce.op
    step = step_of(lambda x: ops.all_reduce(x.exp(), "sum", ops.ALONE) + 1, genesis.ones(4))
    x = genesis.ones(4).numpy()
    step.run((x,))
    assert len(step._runner.free) == 1
    monkeypatch.setattr(op, "begins", lambda out, *args: Never())
    broken = Step(step.program)
    with pytest.raises(KeyboardInterrupt):
        broken.run((x,))
    assert not broken._runner.free
