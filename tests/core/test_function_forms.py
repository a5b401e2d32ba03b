"""The forms a `Function` may take: keywords, containers, setup_context, attributes; and mistakes seen when it is
defined.
"""

from __future__ import annotations

import gc
import traceback
import weakref
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import genesis as torch
from genesis.base.pytree import tree_flatten, tree_map


class Linear(torch.Function):
    @staticmethod
    def forward(ctx, x, w, b=None, *, scale=1.0):
        ctx.save_for_backward(x, w)
        ctx.scale = scale
        y = x @ w * scale
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {"x": g @ w.T * ctx.scale, "w": x.T @ g * ctx.scale, "b": g.sum(0)}


def numbers(*shape):
    return torch.tensor(np.random.default_rng(sum(shape)).normal(size=shape), requires_grad=True)


def test_keywords_are_bound_by_signature_and_gradients_may_come_by_name():
    x, w, b = numbers(3, 4), numbers(4, 5), numbers(5)
    Linear.apply(x, b=b, w=w, scale=2.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.ones((3, 5)) @ w.detach().numpy().T * 2)
    np.testing.assert_allclose(w.grad.numpy(), x.detach().numpy().T @ np.ones((3, 5)) * 2)
    assert b.grad.tolist() == [3.0] * 5
    with pytest.raises(
        TypeError,
        match=r"Linear.apply: got an unexpected keyword argument 'bias'\n  forward \(x, w, b=None, \*, scale=1.0\)",
    ):
        Linear.apply(x, w, bias=b)


def test_an_unknown_name_among_the_gradients():
    class Bad(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return {"weight": g}

    with pytest.raises(RuntimeError, match=r"Bad.backward: returned a gradient for 'weight', the arguments are x"):
        Bad.apply(numbers(2)).sum().backward()


@dataclass
class Pair:
    first: Any
    second: Any


Named = namedtuple("Named", "first second")


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: [a, b],
        lambda a, b: (a, b),
        lambda a, b: {"a": a, "b": b},
        Pair,
        Named,
        lambda a, b: {"in": [a, (b, 3)]},
    ],
)
def test_containers_in_and_out(make):
    """Every structure: tensors inside are tracked on the way in and on the way out, gradients come and go in the same
    structure.
    """
    structures = []

    class Twice(torch.Function):
        @staticmethod
        def forward(ctx, tree, factor):
            ctx.factor = factor
            return tree_map(lambda t: t * factor if isinstance(t, torch.Tensor) else t, tree)

        @staticmethod
        def backward(ctx, *gs):
            structures.append(gs)
            tree = gs if type(gs) is tuple and len(gs) > 1 else gs[0]
            return tree_map(lambda g: None if g is None else g * ctx.factor, tree), None

    a, b = numbers(2), numbers(3)
    out = Twice.apply(make(a, b), 3.0)
    assert type(out) is type(make(a, b))
    tensors = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
    assert len(tensors) == 2 and all(t.requires_grad and not t.is_leaf for t in tensors)
    (tensors[0].sum() + (tensors[1] * 2).sum()).backward()
    assert a.grad.tolist() == [3.0] * 2 and b.grad.tolist() == [6.0] * 3 and len(structures) == 1


def test_one_container_argument_and_an_unused_result():
    class Sums(torch.Function):
        @staticmethod
        def forward(ctx, xs):
            ctx.set_materialize_grads(False)
            ctx.count = len(xs)
            return {"sum": sum(xs), "double": sum(xs) * 2, "count": len(xs)}

        @staticmethod
        def backward(ctx, g):
            assert g["double"] is None and g["count"] is None
            return [g["sum"]] * ctx.count

    a, b = numbers(2), numbers(2)
    out = Sums.apply([a, b])
    assert out["count"] == 2
    out["sum"].sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [1.0, 1.0]


def test_the_wrong_structure_is_an_error_that_shows_both():
    class Bad(torch.Function):
        @staticmethod
        def forward(ctx, tree, x):
            return tree["a"] * x

        @staticmethod
        def backward(ctx, g):
            return [g], g

    with pytest.raises(
        RuntimeError,
        match=r"Bad.backward: the gradient of tree has another structure.*expected \{'a': \*\}.*got "
        r"\[\*\](.|\n)*return the structure",
    ):
        Bad.apply({"a": numbers(2)}, numbers(2)).sum().backward()


def test_needs_input_grad_has_one_entry_for_each_argument():
    seen = []

    class Look(torch.Function):
        @staticmethod
        def forward(ctx, xs, y, n):
            seen.append(ctx.needs_input_grad)
            return xs[0] * y

        @staticmethod
        def backward(ctx, g):
            return None, g, None

    Look.apply([torch.ones(1), numbers(1)], torch.ones(1), 3)
    Look.apply([torch.ones(1), torch.ones(1)], numbers(1), 3)
    with torch.no_grad():
        Look.apply([numbers(1)], numbers(1), 3)
    assert seen == [(True, False, False), (False, True, False), (False, False, False)]


def test_lists_of_sizes_are_plain_values():
    class Reshape(torch.Function):
        @staticmethod
        def forward(ctx, x, sizes):
            ctx.shape = x.shape
            return x.reshape(sizes)

        @staticmethod
        def backward(ctx, g):
            return g.reshape(ctx.shape), None

    x = numbers(6)
    Reshape.apply(x, [2, 3]).sum().backward()
    assert x.grad.tolist() == [1.0] * 6


def test_setup_context_form():
    class Power(torch.Function):
        @staticmethod
        def forward(x, n=2):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            x, _ = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Power.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (first,) = torch.autograd.grad(Power.apply(x, n=3).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [6.0, 12.0]


def test_vjp_is_another_name_of_backward():
    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def vjp(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    x = torch.tensor(2.0, requires_grad=True)
    Cube.apply(x).backward()
    assert x.grad.item() == 12.0


def test_mistakes_that_the_definition_shows():
    same = staticmethod(lambda ctx, x: x)
    with pytest.raises(TypeError, match=r"A: defines 'forwad'\n  try: did you mean 'forward'\?"):
        type("A", (torch.Function,), {"forwad": same, "backward": same})
    with pytest.raises(TypeError, match="A: defines both backward and vjp"):
        type("A", (torch.Function,), {"forward": same, "backward": same, "vjp": same})
    with pytest.raises(TypeError, match="A: forward has no parameter for the context"):
        type("A", (torch.Function,), {"forward": staticmethod(lambda: 1)})
    helper = type("A", (torch.Function,), {"forward": same, "backward": same, "forward_fast": same})
    assert helper.apply(torch.ones(1)).item() == 1.0


def test_apply_of_a_subclass_that_overrides_it_runs_the_subclass():
    class Base(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Derived(Base):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @classmethod
        def apply(cls, x):
            return super().apply(x)

    x = numbers(1)
    assert Derived.apply(x).grad_fn.name() == "DerivedBackward" and Base.apply(x).grad_fn.name() == "BaseBackward"
    assert torch.allclose(Derived.apply(x), x * 3)


def test_tensors_on_attributes_are_kept_like_saved_ones():
    class Exp(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.exp()
            ctx.both = {"x": x, "list": [ctx.y, 1]}
            ctx.save_variable("power", 1)
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            assert ctx.both["list"][1] == 1 == ctx.saved_variables["power"]
            return g * ctx.y

    gc.disable()
    try:
        x = numbers(2)
        y = Exp.apply(x)
        alive = weakref.ref(y)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert torch.allclose(torch.autograd.grad(first.sum(), x)[0], x.exp())
        del y, first
        assert alive() is None
    finally:
        gc.enable()
    y = Exp.apply(x)
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match="ExpBackward was already differentiated"):
        _ = node.y
    y = Exp.apply(x)
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"a tensor that ExpBackward saved was modified in place by add_(.|\n)*written at "
        r".*test_function_forms.py",
    ):
        y.sum().backward()


def test_saved_variables_of_a_bare_context():
    ctx = torch.autograd.Context()
    ctx.save_for_backward(torch.ones(1))
    ctx.save_for_backward(torch.zeros(1), None)
    ctx.save_variable("scale", 3)
    assert (
        len(ctx.saved_tensors) == 3
        and ctx.saved_variables == {"scale": 3}
        and torch.autograd.Context().saved_variables == {}
    )


def test_gradients_that_somebody_else_holds_are_not_written_to():
    """A backward may write to what it gets, and may return what it keeps."""
    kept = torch.ones(3)

    class Keeps(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return kept

    class Writes(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            g.mul_(10)
            return g

    x = numbers(3)
    Keeps.apply(Writes.apply(x)).sum().backward()
    Writes.apply(Keeps.apply(x)).sum().backward()
    Keeps.apply(x).sum().backward()
    assert kept.tolist() == [1.0] * 3 and x.grad.tolist() == [12.0] * 3
    seed = torch.ones(3, dtype=torch.float64)
    Writes.apply(x).backward(seed)
    assert seed.tolist() == [1.0] * 3


def test_a_backward_that_writes_to_what_was_saved():
    class Bad(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.no_grad():
                return x.mul_(g)

    with pytest.raises(RuntimeError, match=r"Bad.backward: wrote to a tensor that forward saved, with mul_"):
        Bad.apply(numbers(2)).sum().backward()


def test_a_backward_may_write_to_what_forward_made_for_it():
    """A gradient that forward computed already, scaled in place by the one that arrives."""

    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                leaf = x.detach().requires_grad_()
                y = leaf**3
                (slope,) = torch.autograd.grad(y.sum(), leaf)
            ctx.save_for_backward(slope)
            return y.detach()

        @staticmethod
        def backward(ctx, g):
            (slope,) = ctx.saved_tensors
            with torch.no_grad():
                return slope.mul_(g)

    x = numbers(2)
    y = Cube.apply(x)
    (2 * y).sum().backward(retain_graph=True)
    assert x.grad.tolist() == (6 * x.detach() ** 2).tolist()
    with pytest.raises(RuntimeError, match=r"CubeBackward saved was modified in place by mul_"):
        y.sum().backward()


@pytest.mark.parametrize("form", ["view", "alias", "in a list"])
def test_a_backward_that_writes_to_the_memory_of_an_argument(form):
    class Bad(torch.Function):
        @staticmethod
        def forward(ctx, x):
            x = x if isinstance(x, torch.Tensor) else x[0]
            ctx.save_for_backward(x.detach()[1:] if form != "alias" else x.detach())
            return x * 1

        @staticmethod
        def backward(ctx, g):
            (part,) = ctx.saved_tensors
            part.mul_(2)
            return g if form != "in a list" else ([g],)

    x = numbers(2) * 1
    with pytest.raises(RuntimeError, match=r"Bad.backward: wrote to a tensor that forward saved, with mul_"):
        Bad.apply([x] if form == "in a list" else x).sum().backward()


def test_a_backward_may_delete_what_forward_set():
    """As checkpoints written by hand do, to have its memory back at once."""

    class Checkpoint(torch.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.inputs, ctx.k, ctx.count = [x], k, 2
            return x * k

        @staticmethod
        def backward(ctx, g):
            ctx.inputs = [x.detach().requires_grad_() for x in ctx.inputs]
            with torch.enable_grad():
                y = ctx.inputs[0] * ctx.k
            gradients = torch.autograd.grad(y, [*ctx.inputs, ctx.k], g)
            del ctx.inputs, ctx.k, ctx.count
            assert not any(hasattr(ctx, name) for name in ("inputs", "k", "count"))
            with pytest.raises(AttributeError, match="inputs"):
                del ctx.inputs
            return gradients

    x, k = numbers(2), numbers(2)
    y = Checkpoint.apply(x, k)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == k.tolist() and k.grad.tolist() == x.tolist()
    with pytest.raises(AttributeError, match="inputs"):
        y.sum().backward()


def test_methods_that_are_put_there_later_count():
    class Times(torch.Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g, None

    class Inherits(Times):
        pass

    x, apply = numbers(2), Inherits.apply
    assert gradient_of(apply, x, 3.0) == [1, 1]

    def keeps(ctx, x):
        ctx.times = 5
        return x * 5

    Times.forward = staticmethod(keeps)
    Times.backward = staticmethod(lambda ctx, g: g * ctx.times)
    assert gradient_of(apply, x) == [5, 5] and Inherits.apply is apply
    Times.setup_context = staticmethod(lambda ctx, inputs, output: None)
    Times.forward = staticmethod(lambda x: x * 2)
    Inherits.backward = staticmethod(lambda ctx, g: g * 2)
    assert gradient_of(apply, x) == [2, 2]
    del Inherits.backward
    with pytest.raises(AttributeError):
        gradient_of(apply, x)


def gradient_of(apply, x, *args):
    x.grad = None
    apply(x, *args).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("make", [lambda f: f, lambda f: staticmethod(Called(f)), classmethod])
def test_backward_may_be_any_callable(make):
    def backward(*args):
        assert args[-2].saved_tensors[0] is x
        return args[-1] * 3

    class Triple(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

    Triple.backward = make(backward)
    x = numbers(2)
    assert gradient_of(Triple.apply, x) == [3, 3]


class Called:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 13])
@pytest.mark.parametrize("several", [False, True])
def test_any_number_of_arguments(count, several):
    def compute(ctx, *args):
        assert len(args) == count
        ctx.save_for_backward(*[a for a in args if isinstance(a, torch.Tensor)])
        total = sum(args, torch.zeros(2, dtype=torch.float64))
        return (total, total * 2) if several else total

    class Exact(torch.Function):
        # the parameters a0, a1, ... by name
        names = ", ".join(f"a{i}" for i in range(count))
        forward = staticmethod(
            eval(f"lambda ctx{', ' * bool(count)}{names}: compute(ctx, {names})", {"compute": compute})
        )

        @staticmethod
        def backward(ctx, *gs):
            return tuple(gs[0] + 2 * gs[1] if several else gs[0] for _ in range(count))

    class Open(Exact):
        forward = staticmethod(compute)

    for cls in (Exact, Open):
        for plain in ((), (count - 1,), (0, count - 1)):
            given = [2.0 if i in plain else numbers(2) for i in range(count)]
            out = cls.apply(*given)
            outs = out if several else (out,)
            assert [bool(y.requires_grad) for y in outs] == [any(not isinstance(a, float) for a in given)] * len(outs)
            if outs[0].requires_grad:
                sum(y.sum() for y in outs).backward()
                assert all(a.grad.tolist() == [3.0 if several else 1.0] * 2 for a in given if not isinstance(a, float))
            with torch.no_grad():
                again = cls.apply(*given)
            assert all(torch.equal(y, z) for y, z in zip(outs, again if several else (again,), strict=True))
        with pytest.raises(TypeError):
            Exact.apply(*given, 1.0)


def test_a_traceback_shows_the_lines_of_apply():
    class Wrong(torch.Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        Wrong.apply(numbers(2))
    lines = [entry.line for entry in traceback.extract_tb(caught.tb) if entry.filename.startswith("<genesis Wrong")]
    assert lines == ["result = forward(node, a0)"]
