"""What steps say of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from by_elements import phases

import genesis
from genesis import jit
from genesis.jit.lowering.explain import work_of
from genesis.jit.lowering.listing import axes_of
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.profiler import profile

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def _step():
    w = genesis.ones(4, 3)

    def function(x):
        w.mul_(x)
        return (w * x).exp() + w

    graph = jit.trace(function, genesis.ones(4, 3))
    seed = next(s for s in range(100) if sum(bool(p.stages) for p in phases(graph.program, s)) == 2)
    return Step(graph.program, phases(graph.program, seed)), (genesis.ones(4, 3).numpy() * 2, w.numpy())


def test_phases_with_their_lines_and_reasons():
    step, _ = _step()
    told = step.explain()
    assert len(told.entries) == len(step.plan.phases) and told.seconds is None
    text = str(told)
    assert "mul" in text and "host" in text and "test_explained_steps.py:" in text and "left to the host" in text
    assert "time" not in text.splitlines()[1]


def test_chunks_are_parts_of_an_axis():
    told = Step(jit.trace(lambda x: (x * 2).exp(), genesis.ones(1 << 20)).program).explain()
    (entry,) = told.entries
    (axis,) = [axis for axis in axes_of(entry.phase.stages[0].kernel.nest.body) if axis.chunk]
    assert entry.phase.chunks == -(-axis.extent // axis.chunk) > 1
    assert f"{axis.extent} by {axis.chunk}" in str(told) and "along" in str(told)
    assert "along" not in str(Step(jit.trace(lambda x: x * 2, genesis.ones(4)).program).explain())


def test_work_is_that_of_products():
    x, w = genesis.ones(64, 32), genesis.ones(48, 32)
    q, image, kernel = genesis.ones(2, 4, 16, 8, requires_grad=True), genesis.ones(2, 3, 8, 8), genesis.ones(5, 3, 3, 3)
    f = genesis.nn.functional

    def attend(q):
        f.scaled_dot_product_attention(q, q, q).sum().backward()

    def works(function, *args):
        program = jit.trace(function, *args).program
        return {call.op: work_of(program, call) for call in program.calls}

    assert works(f.linear, x, w)["linear"] == 2 * 64 * 32 * 48
    assert works(f.conv2d, image, kernel)["convolution"] == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)
    done = works(attend, q)
    assert done["fused.scaled_dot_product_attention"] == 2 * 2 * (2 * 4 * 16 * 16 * 8)
    assert done["fused.scaled_dot_product_attention.backward"] == 5 * 2 * (2 * 4 * 16 * 16 * 8)
    assert works(lambda x: x * 2, x)["mul"] == 64 * 32


def test_times_are_of_copies():
    step, arrays = _step()
    before = arrays[1].copy()
    told = step.explain(arrays)
    assert (arrays[1] == before).all()
    assert told.seconds is not None and told.seconds > 0 and "time" in str(told).splitlines()[1]
    assert all(entry.seconds is not None for entry in told.entries)


def test_the_picture_has_a_rectangle_for_each_value_of_the_arena():
    step, _ = _step()
    told = step.explain()
    assert told.svg.count("<rect") == len(step.plan.lives)
    page = told._repr_html_()
    assert "<table" in page and page.count("<svg") == 1  # nothing was measured


def test_pictures_of_what_was_measured():
    step, arrays = _step()
    told = step.explain(arrays)
    assert set(told.pictures) == {"memory", "timeline", "roofline"}
    assert told.pictures["timeline"].count("<rect") == len(told.entries)
    native = [e for e in told.entries if e.phase.stages and e.seconds and e.work]
    assert told.pictures["roofline"].count("<circle") == len(native) > 0
    assert told._repr_html_().count("<svg") == 3


def test_a_kernel_in_all_its_words():
    told = Step(jit.trace(lambda x: x * x + 1, genesis.ones(100)).program).explain()
    ((name, words),) = told.kernels.items()
    assert words.loops.startswith(f"def {name}(x0, ") and "multiply(" in words.loops
    assert f"define void @{name}" in words.llvm and f"{name}:" in words.assembly
    for text in (words.loops, words.llvm, words.assembly):
        assert text in str(words)


def test_attention_has_no_loops_and_says_where_it_is_made():
    q = genesis.ones(2, 4, 64, 16)
    graph = jit.trace(lambda q: genesis.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    words = [k for k in Step(graph.program).explain().kernels.values() if "tiles" in k.loops]
    assert words and "genesis/jit/lowering/attention.py" in words[0].loops
    assert "define void" in words[0].llvm and words[0].kernel.python is not None


def test_a_profile_has_the_phases():
    step, arrays = _step()
    want = [a.tobytes() for a in step.run((arrays[0], arrays[1].copy()))]
    target = arrays[1].copy()
    with profile() as p:
        got = step.run((arrays[0], target))
    assert [a.tobytes() for a in got] == want and not np.array_equal(target, arrays[1])
    events = [event for event in p.events() if event.category == "kernel"]
    assert sum("mul" in event.name for event in events) == 2 and any("host" in event.name for event in events)
    assert all(event.threads >= 1 for event in events)
    step.run((arrays[0], target))
    assert [event for event in p.events() if event.category == "kernel"] == events
