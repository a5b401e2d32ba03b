"""What a traced function leaves behind: memory that it writes to, tensors that it makes, gradients that come and go,
layouts.
"""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import jit, nn
from genesis.core.call import writes
from genesis.func import grad, jvp, vmap
from genesis.jit.compiling.effects import Watch
from genesis.jit.gradients import Gradients
from genesis.jit.memory import Memory
from genesis.jit.traced import Traced
from genesis.testing import fuzz_traces
from genesis.testing.fuzz_traces import check


def calls(make, passes=False, between=lambda state: None):
    """What is seen of three eager calls, and of three replays."""
    seen = []
    for traced in (False, True):
        state, f = make()
        run = f
        if traced:
            graph = jit.trace(f, genesis.ones(3)).verify()
            run = (jit.optimized(graph).verify() if passes else graph).replay
        seen.append([])
        for k in range(3):
            result = run(genesis.tensor([1.0, -2.0, 0.5]) * (k + 1))
            grads = [t.grad for t in state]
            seen[-1] += [
                None if t is None else (tuple(t.shape), t.detach().numpy().tobytes()) for t in (result, *state, *grads)
            ]
            between(state)
    return seen


def weights():
    return genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)


# ---- memory


def write_with_history():
    w, buf = weights(), genesis.zeros(3)

    def f(x):
        buf.add_(x)
        buf.mul_(w.mean())
        buf.detach_()
        return buf.clone()

    return [w, buf], f


def own_tensor_written_to():
    w = weights()

    def f(x):
        z = genesis.zeros_like(w)
        z[0] = w[0]
        z.mul_(2)
        z.sum().backward()
        return z.detach().clone()

    return [w], f


def returned_tensor_written_to():
    def f(x):
        z = genesis.zeros(3)
        return z.add_(x)

    return [], f


def view_of_an_own_tensor():
    w = weights()

    def f(x):
        z = genesis.zeros(3)
        z[1:].add_(x[1:])
        z.mul_(w)
        z.sum().backward()
        return z.detach()

    return [w], f


def written_under_vmap_and_jvp():
    def f(x):
        z = genesis.ones(3)
        z.mul_(x)
        a = vmap(lambda v: (v.clone().mul_(z).add_(1), z * v)[0])(genesis.stack([x, x]))
        b = jvp(lambda v: (v * z).clone().mul_(v), (x,), (z,))[1]
        return a.sum(0) + b

    return [], f


def captured_written_then_mapped():
    buf = genesis.ones(2, 3)

    def f(x):
        buf.add_(x)
        return vmap(lambda row: row.clone().mul_(2) + row)(buf).sum(0)

    return [buf], f


@pytest.mark.parametrize("passes", [False, True], ids=["as_traced", "optimized"])
@pytest.mark.parametrize(
    "make",
    [
        write_with_history,
        own_tensor_written_to,
        returned_tensor_written_to,
        view_of_an_own_tensor,
        written_under_vmap_and_jvp,
        captured_written_then_mapped,
    ],
)
def test_writes(make, passes):
    eager, traced = calls(make, passes)
    assert eager == traced


def test_a_buffer_written_with_a_value_that_has_a_history_is_one_tensor():
    w, buf = weights(), genesis.zeros(3)

    def f():
        buf.add_(1)
        buf.mul_(w.mean())

    graph = jit.trace(f)
    assert len(graph.captured) == 2 and buf.tolist() == [0, 0, 0] and buf.grad_fn is None
    graph.replay()
    assert buf.tolist() == [2, 2, 2]


def test_a_trace_gives_back_histories():
    w, base = weights(), genesis.zeros(2, 3)
    row = base[0]
    jit.trace(lambda: row.mul_(w))
    assert row.grad_fn is None and base.grad_fn is None and not row.requires_grad


def test_a_tensor_that_the_function_makes_and_keeps():
    cache = {}

    def f(x):
        cache["last"] = genesis.zeros(3)
        return cache["last"].add_(x).clone()

    with pytest.raises(RuntimeError, match="f keeps 1 tensor that it made while it was traced"):
        jit.trace(f, genesis.ones(3))

    def once(x):
        if "sum" not in cache:
            cache["sum"] = genesis.zeros(3)
            jit.keep(cache["sum"])
        return cache["sum"].add_(x).clone()

    graph = jit.trace(once, genesis.ones(3))
    assert graph.replay(genesis.ones(3)).tolist() == [1] * 3 and graph.replay(genesis.ones(3)).tolist() == [2] * 3
    assert once(genesis.ones(3)).tolist() == [3] * 3


def test_memory_of_the_outside_cannot_be_exchanged():
    w = weights()
    with pytest.raises(RuntimeError, match=r"in a trace a tensor keeps its memory(?s:.*)x.data.copy_\(value\)"):
        jit.trace(lambda x: setattr(w, "data", w.data * x), genesis.ones(3))


def test_memory_that_is_exchanged_between_replays_is_read():
    w = weights()
    graph = jit.trace(lambda x: x * w.detach() + vmap(lambda a: a * 2)(w).detach(), genesis.ones(3))
    w.data = genesis.tensor([10.0, 20.0, 30.0])
    assert graph.replay(genesis.ones(3)).tolist() == [30, 60, 90]


# ---- gradients


TRANSFORMS = {
    "vmap": lambda w, x: vmap(lambda a: a * a)(w).sum(),
    "vmap of a captured tensor": lambda w, x: vmap(lambda a: (a * w).sum())(x).sum(),
    "grad": lambda w, x: grad(lambda a: (a**3).sum())(w).sum(),
    "grad with a captured tensor": lambda w, x: grad(lambda a: (a**3 * w).sum())(x).sum(),
    "jvp primal": lambda w, x: jvp(lambda a: a**3, (w,), (x,))[1].sum(),
    "jvp tangent": lambda w, x: jvp(lambda a: a**3, (x,), (w,))[1].sum(),
    "jvp with a captured tensor": lambda w, x: jvp(lambda a: a**3 * w * w, (x,), (x,))[1].sum(),
    "grad of vmap": lambda w, x: grad(lambda a: vmap(lambda b: b.sin())(a).sum())(w).sum(),
    "vmap of grad": lambda w, x: vmap(grad(lambda a: a**4))(w).sum(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_through_transforms(name):
    def make():
        w = weights()

        def f(x):
            loss = TRANSFORMS[name](w, x)
            loss.backward()
            return loss.detach()

        return [w], f

    eager, traced = calls(make)
    assert eager == traced and eager[2] is not None


def make_step(after, prepare=lambda w, optimizer: None):
    def make():
        w = weights()
        optimizer = genesis.optim.AdamW([w], lr=0.1)

        def f(x):
            (w * x).sum().backward()
            return after(w, optimizer)

        prepare(w, optimizer)
        return [w], f

    return make


def state_but_no_gradient(w, optimizer):
    w.grad = genesis.ones(3)
    optimizer.step()
    w.grad = None


AFTER = {
    "scaled": lambda w, o: w.grad.mul_(2),
    "clipped": lambda w, o: nn.utils.clip_grad_norm_([w], 1.0),
    "stepped": lambda w, o: o.step(),
    "replaced": lambda w, o: setattr(w, "grad", w.grad * 3),
    "cleared": lambda w, o: o.zero_grad(),
    "zeroed": lambda w, o: o.zero_grad(False),
    "again": lambda w, o: (w * w).sum().backward(),
    "part": lambda w, o: w.grad[1:].zero_(),
    "detached": lambda w, o: w.grad.detach().add_(1),
}


@pytest.mark.parametrize("between", ["nothing", "none", "set", "half"])
@pytest.mark.parametrize(
    "prepare",
    [state_but_no_gradient, lambda w, o: o.step(w.sum().backward())],
    ids=["none at the trace", "some at the trace"],
)
@pytest.mark.parametrize("name", AFTER)
def test_gradients_that_are_there_at_a_replay(name, prepare, between):
    def change(state):
        if between != "nothing":
            state[0].grad = None if between == "none" else genesis.tensor([-0.0, 1.0, 5.0])

    eager, traced = calls(make_step(AFTER[name], prepare), between=change)
    assert eager == traced


def test_nothing_is_added_to_a_gradient_that_is_not_there():
    """-0.0 stays -0.0, which 0 + -0.0 is not."""
    w = weights()
    graph = jit.trace(lambda x: (w * x).sum().backward(), genesis.ones(3))
    graph.replay(genesis.tensor([-0.0, 0.0, float("inf")]))
    assert np.signbit(w.grad.numpy()).tolist() == [True, False, False]


def test_a_gradient_keeps_its_memory():
    w = weights()
    w.grad = genesis.zeros(3)
    seen = w.grad.detach()
    graph = jit.trace(lambda x: (w * x).sum().backward(), genesis.ones(3))
    graph.replay(genesis.ones(3))
    assert seen.tolist() == [1, 1, 1]
    w.grad = None
    graph.replay(genesis.ones(3))
    assert seen.tolist() == [1, 1, 1] and w.grad.tolist() == [1, 1, 1]


def test_a_leaf_that_the_function_makes_is_no_leaf_of_the_outside():
    w = genesis.ones(3)

    def f(x):
        v = w.detach().requires_grad_()
        (v * x).sum().backward()
        return v.grad + nn.Parameter(genesis.zeros(3))

    graph = jit.trace(f, genesis.ones(3))
    for _ in range(2):
        assert graph.replay(genesis.ones(3)).tolist() == [1, 1, 1]
    assert w.grad is None and not graph.leaves


def test_gradients_of_arguments_that_have_some():
    def f(x):
        (x * x).sum().backward()
        x.grad.mul_(2)

    seen = []
    for traced in (False, True):
        x = genesis.tensor([1.0, 2.0], requires_grad=True)
        run = jit.trace(f, x).replay if traced else f
        for _ in range(3):
            run(x)
        seen.append(x.grad.tolist())
    assert seen[0] == seen[1]
    with pytest.raises(RuntimeError, match="argument tensor 0 does not require grad, when f was traced it did"):
        run(x.detach())


def test_one_leaf_twice():
    w = weights()
    with pytest.raises(RuntimeError, match="a tensor that requires grad is passed twice"):
        jit.trace(lambda a, b: (a * b).sum().backward(), w, w)
    graph = jit.trace(lambda a, b: (a * b).sum().backward(), w, weights())
    with pytest.raises(RuntimeError, match="a tensor is given twice, or is captured as well"):
        graph.replay(w, w)
    both = jit.trace(lambda a: (a * w).sum().backward(), weights())
    with pytest.raises(RuntimeError, match="a tensor is given twice, or is captured as well"):
        both.replay(w)


def test_whether_there_is_a_gradient_is_a_branch():
    w = weights()

    def f(x):
        if w.grad is None:
            w.grad = x * 2
        else:
            w.grad.mul_(x)

    graph = jit.trace(f, genesis.ones(3))
    graph.replay(genesis.ones(3))
    assert w.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="a .grad that f reads is there, when it was traced it was None"):
        graph.replay(genesis.ones(3))


@pytest.mark.parametrize("make", [genesis.optim.Adam, genesis.optim.Adagrad, genesis.optim.RMSprop])
def test_two_steps_in_one_call_count_twice(make):
    seen = []
    for traced in (False, True):
        w = weights()
        optimizer = make([w], lr=0.1)

        def f(x, w=w, optimizer=optimizer):
            w.grad = x * 2
            optimizer.step()
            w.grad.mul_(-1.5)
            optimizer.step()

        f(genesis.ones(3))
        run = jit.trace(f, genesis.ones(3)).replay if traced else f
        for _ in range(3):
            run(genesis.ones(3))
        seen.append((w.tolist(), optimizer.state[w]["step"]))
    assert seen[0] == seen[1]


# ---- layouts


LAYOUTS = {
    "contiguous": lambda x: x.transpose(1, 2).contiguous().view(2, 12),
    "clone": lambda x: x.transpose(1, 2).clone(),
    "reshape": lambda x: x.transpose(1, 2).reshape(2, 12),
    "to": lambda x: x.transpose(1, 2).to(genesis.float32, copy=True),
    "double": lambda x: x.transpose(1, 2).double(),
    "zeros_like": lambda x: genesis.zeros_like(x.transpose(0, 2)),
    "ones_like": lambda x: genesis.ones_like(x.transpose(0, 2)) * x.transpose(0, 2),
    "elementwise": lambda x: (x.transpose(0, 2) + 1).exp(),
    "flatten": lambda x: x.transpose(1, 2).flatten(1),
    "in place": lambda x: x.transpose(1, 2).clone().mul_(2),
    "contiguous already": lambda x: x.contiguous().view(6, 4),
    "branch": lambda x: x.transpose(0, 1).view(3, 8) if x.transpose(0, 1).is_contiguous() else x.transpose(0, 1),
    "cumsum": lambda x: x.transpose(0, 2).cumsum(0),
    "expanded": lambda x: x[:, :1].expand(2, 3, 4).contiguous(),
    "one": lambda x: x[:, :1].transpose(0, 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    f, x = LAYOUTS[name], genesis.randn(2, 3, 4)
    seen = []

    def g(x):
        y = f(x)
        seen.append((y.stride(), y.is_contiguous()))
        return y

    expected = g(x)
    graph = jit.trace(g, x).verify()
    found = graph.replay(x)
    assert seen[0] == seen[1] == (found.stride(), found.is_contiguous())
    assert (found == expected).all()
    assert jit.optimized(graph).verify().replay(x).stride() == expected.stride()


# ---- random programs


def explain(wrong):
    return "\n\n".join(f"seed {number}: {program}" for number, program in wrong)


def test_random_steps():
    counts, wrong = check(250, seed=500_000)
    assert not wrong, explain(wrong)
    assert counts["equal"] > 180


@pytest.mark.slow
def test_thousands_of_random_steps():
    counts, wrong = check(2_000)
    assert not wrong, explain(wrong)
    assert counts["equal"] > 1500


def copies_of_bytes(monkeypatch):
    monkeypatch.setattr(writes, "copied", lambda array: array.copy())


def fresh_gradients_only(monkeypatch):
    monkeypatch.setattr(
        Gradients, "first", lambda self, tracer, node, g: (setattr(self.leaf(node), "used", True), g)[1]
    )


def made_is_captured(monkeypatch):
    monkeypatch.setattr(fuzz_traces.jit.memory.Capture, "is_ours", lambda self: False)
    monkeypatch.setattr(Memory, "was_made", lambda self, array: False)


def views_are_new_memory(monkeypatch):
    monkeypatch.setattr(
        Traced,
        "view",
        lambda self, name, args, spec: Traced(
            self.tracer, type(self.cell)(self.tracer.emit(name, (self.var(), *args))), spec
        ),
    )


@pytest.mark.parametrize(
    "broken", [copies_of_bytes, fresh_gradients_only, made_is_captured, views_are_new_memory], ids=lambda f: f.__name__
)
def test_they_find_what_is_broken(monkeypatch, broken):
    broken(monkeypatch)
    assert check(60, seed=500_000)[1]


def test_frames_that_have_ended_are_forgotten():
    """What is made next may have the place of any: a frame outside, with a ``try``, would be taken for one of the function."""

    def inner(x):
        return x * 2

    def outer(x):
        return [inner(x) for _ in range(3)]

    watch = Watch()
    with watch:
        outer(genesis.ones(2))
    assert watch.codes >= {inner.__code__, outer.__code__} and not watch._frames
