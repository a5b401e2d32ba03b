"""What the function system promises, example by example: classes that users copy must work as they are written."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.autograd import Context, numerical_gradient_check


class AddFunction(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return genesis.ops.add(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class MatMulFunction(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return genesis.ops.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = genesis.ops.matmul(grad_output, b.transpose(-2, -1))
        grad_b = genesis.ops.matmul(a.transpose(-2, -1), grad_output)
        return grad_a, grad_b


class ReluFunction(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return genesis.ops.maximum(input, 0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        mask = input > 0
        return grad_output * mask


class AddInplaceFunction(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a.clone(), b)
        a.add_(b)
        return a

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class SplitFunction(Function):
    @staticmethod
    def forward(ctx, input, split_sizes):
        ctx.split_sizes = split_sizes
        return genesis.ops.split(input, split_sizes)

    @staticmethod
    def backward(ctx, *grad_outputs):
        SplitFunction.calls.append(grad_outputs)
        return genesis.ops.cat(grad_outputs, dim=0), None

    calls: list = []


class ScaleFunction(Function):
    @staticmethod
    def forward(ctx, input, scale_factor):
        ctx.save_variable("scale_factor", scale_factor)
        return input * scale_factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_variables["scale_factor"], None


def randn(*shape, grad=True):
    return genesis.randn(*shape, dtype=genesis.float64).requires_grad_(grad)


# ---- the base class


def test_function_without_forward_or_backward_names_the_class():
    class NoForward(Function):
        pass

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="NoForward"):
        NoForward.apply(genesis.ones(1))
    x = genesis.ones(1, requires_grad=True)
    y = NoBackward.apply(x)  # an error only where a gradient is asked for
    with pytest.raises(NotImplementedError, match="NoBackward"):
        y.backward()


def test_context_on_its_own():
    ctx = Context()
    a, b = genesis.ones(2), genesis.zeros(2)
    ctx.save_for_backward(a)
    ctx.save_for_backward(b)
    assert isinstance(ctx.saved_tensors, tuple)
    assert [t.tolist() for t in ctx.saved_tensors] == [[1, 1], [0, 0]]
    ctx.save_variable("k", 3)
    assert ctx.saved_variables["k"] == 3


# ---- the example classes


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2))])
def test_add_function_equals_the_operator(shapes):
    a, b = randn(*shapes[0]), randn(*shapes[1])
    c = AddFunction.apply(a, b)
    np.testing.assert_array_equal(c.detach().numpy(), (a + b).detach().numpy())
    g = randn(*c.shape, grad=False)
    mine = genesis.autograd.grad(c, (a, b), g)
    theirs = genesis.autograd.grad(a + b, (a, b), g)
    for m, t, x in zip(mine, theirs, (a, b), strict=True):
        assert m.shape == x.shape
        np.testing.assert_allclose(m.numpy(), t.numpy(), rtol=1e-14)


@pytest.mark.parametrize("other", [1, 2.5, genesis.ones(3, dtype=genesis.float64)])
def test_add_function_with_a_constant(other):
    x = randn(3)
    AddFunction.apply(x, other).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    x.grad = None
    AddFunction.apply(other, x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))])
def test_matmul_function_equals_the_operator(shapes):
    a, b = randn(*shapes[0]), randn(*shapes[1])
    g = genesis.randn(*(a @ b).shape, dtype=genesis.float64)
    mine = genesis.autograd.grad(MatMulFunction.apply(a, b), (a, b), g)
    theirs = genesis.autograd.grad(a @ b, (a, b), g)
    for m, t in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(m.numpy(), t.numpy(), rtol=1e-12, atol=1e-12)


def test_relu_function():
    x = genesis.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = ReluFunction.apply(x)
    assert y.tolist() == [0, 0, 2]
    y.backward(genesis.tensor([1.0, 1.0, 3.0]))
    assert x.grad.tolist() == [0, 0, 3]
    assert x.grad.dtype == genesis.float32


def test_add_inplace_function_writes_and_keeps_both_gradients():
    a0, b = randn(3), randn(3)
    a = a0 * 2
    out = AddInplaceFunction.apply(a, b)
    assert out is a
    (a * genesis.tensor([1.0, 2.0, 3.0], dtype=genesis.float64)).sum().backward()  # by the old name
    assert a0.grad.tolist() == [2, 4, 6]
    assert b.grad.tolist() == [1, 2, 3]


def test_add_inplace_function_on_a_leaf_is_refused():
    a, b = genesis.ones(2, requires_grad=True), genesis.ones(2)
    with pytest.raises(RuntimeError, match="AddInplaceFunction.*leaf that requires grad"):
        AddInplaceFunction.apply(a, b)


def test_split_function_gets_all_gradients_in_one_call():
    x = randn(5, 2)
    SplitFunction.calls.clear()
    first, second = SplitFunction.apply(x, [2, 3])
    assert first.shape == (2, 2)
    assert second.shape == (3, 2)
    (second * 3).sum().backward()  # `first` is not used
    assert len(SplitFunction.calls) == 1
    assert SplitFunction.calls[0][0].tolist() == [[0, 0], [0, 0]]
    assert x.grad.tolist() == [[0, 0]] * 2 + [[3, 3]] * 3


def test_scale_function():
    x = genesis.tensor([1, 2, 3], requires_grad=True)  # integer literals that require grad are floating
    y = ScaleFunction.apply(x, 2.5)
    y.backward(genesis.tensor([1.0, 1.0, 1.0]))
    assert x.grad.tolist() == [2.5, 2.5, 2.5]


def test_efficient_function_holds_only_what_it_saved():
    class EfficientFunction(Function):
        @staticmethod
        def forward(ctx, input):
            temporary = genesis.ops.exp(input)
            EfficientFunction.seen = weakref.ref(temporary)
            result = temporary * 2
            ctx.save_for_backward(input.detach())
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * genesis.ops.exp(input) * 2

    x = randn(4)
    gc.disable()
    try:
        y = EfficientFunction.apply(x)
        assert EfficientFunction.seen() is None
        (g,) = genesis.autograd.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), 2 * np.exp(x.detach().numpy()), rtol=1e-14)
        (h,) = genesis.autograd.grad(g.sum(), x)  # the detached input is known to be the input
        np.testing.assert_allclose(h.numpy(), 2 * np.exp(x.detach().numpy()), rtol=1e-14)
    finally:
        gc.enable()


def test_stable_function_that_saves_its_output_leaks_nothing():
    class StableFunction(Function):
        @staticmethod
        def forward(ctx, input):
            top = genesis.ops.maximum(input, 0)
            output = top + genesis.ops.log1p(genesis.ops.exp(-genesis.ops.abs(input)))
            ctx.save_for_backward(input, output)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            _, output = ctx.saved_tensors
            return grad_output * (1 - genesis.ops.exp(-output))

    x = genesis.tensor([-800.0, 0.0, 800.0], requires_grad=True)
    gc.disable()
    try:
        y = StableFunction.apply(x)
        assert y.tolist() == [0.0, pytest.approx(np.log(2)), 800.0]
        gone = weakref.ref(y)
        y.sum().backward()
        assert x.grad.tolist() == pytest.approx([0, 0.5, 1])
        del y
        assert gone() is None
        y = StableFunction.apply(x)
        gone = weakref.ref(y)
        del y  # without backward
        assert gone() is None
    finally:
        gc.enable()


def test_function_gradients_example_prints_a_readable_gradient():
    x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = ScaleFunction.apply(x, 2.0)
    y.backward(genesis.tensor([1.0, 1.0, 1.0]))
    assert f"gradient: {x.grad}" == "gradient: tensor([2., 2., 2.])"
    assert f"{x.grad.mean():.4f}" == "2.0000"


def test_numerical_gradient_check():
    assert (
        numerical_gradient_check(ReluFunction.apply, genesis.tensor([-1.0, 2.0], requires_grad=True), eps=1e-5) is True
    )

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    assert numerical_gradient_check(Wrong.apply, genesis.ones(2, requires_grad=True)) is False


def test_debug_function_prints_in_order(capsys):
    class DebugFunction(Function):
        @staticmethod
        def forward(ctx, input):
            print(f"forward: {tuple(input.shape)}")
            return input * 1

        @staticmethod
        def backward(ctx, grad_output):
            print(f"backward: {grad_output}")
            return grad_output

    x = genesis.ones(2, requires_grad=True)
    DebugFunction.apply(x).sum().backward()
    assert capsys.readouterr().out == "forward: (2,)\nbackward: tensor([1., 1.])\n"


@pytest.mark.parametrize("name", ["AddFunction", "MulFunction", "MatMulFunction", "ReluFunction"])
def test_built_in_function_classes(name):
    cls = getattr(genesis.autograd, name)
    assert issubclass(cls, Function)
    args = (randn(2, 2),) if name == "ReluFunction" else (randn(2, 2), randn(2, 2))
    assert genesis.autograd.gradcheck(cls.apply, args)
    assert genesis.autograd.gradgradcheck(cls.apply, args)


# ---- registration


def test_registered_add_is_used_by_operator_method_and_function():
    x, y = randn(3), randn(3)
    with genesis.ops.register_function("add", AddFunction.apply):
        for z in (x + y, x.add(y), genesis.add(x, y), x + 1, 1 + x, x.detach() + y):
            assert type(z.grad_fn).__name__ == "AddFunctionBackward"
            assert repr(z.grad_fn) == "<AddFunctionBackward>"
        assert type(genesis.ops.add(x, y).grad_fn).__name__ == "AddFunctionBackward"
        (x + y).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert repr((x + y).grad_fn) == "<AddBackward>"
    assert genesis.ops.add is genesis.add


def test_registered_matmul_and_relu_are_used_by_modules():
    x, w = randn(2, 3), randn(3, 2)
    matmul = genesis.ops.register_function("matmul", MatMulFunction.apply)
    relu = genesis.ops.register_function("relu", ReluFunction.apply)
    try:
        assert type((x @ w).grad_fn).__name__ == "MatMulFunctionBackward"
        for z in (genesis.relu(x), x.relu(), nn.ReLU()(x), nn.functional.relu(x)):
            assert type(z.grad_fn).__name__ == "ReluFunctionBackward"
        nn.ReLU()(x @ w).sum().backward()
        assert x.grad.shape == (2, 3)
    finally:
        matmul.remove()
        relu.remove()
    assert repr(nn.ReLU()(x).grad_fn) == "<ReluBackward>"


def test_ops_are_the_kernels_in_every_forward_and_backward():
    runs = []

    class Counting(Function):
        @staticmethod
        def forward(ctx, a, b):
            runs.append(1)
            return genesis.ops.add(a, b)

        @staticmethod
        def backward(ctx, g):
            return genesis.ops.add(g, 0), g

    class Other(Function):
        @staticmethod
        def forward(ctx, a, b):
            return genesis.ops.add(a, b)

        @staticmethod
        def backward(ctx, g):
            return genesis.ops.add(g, 0), g

    x = randn(2)
    with genesis.ops.register_function("add", Counting.apply):
        assert repr(genesis.ops.add(x, x).grad_fn) == "<CountingBackward>" and len(runs) == 1
        Counting.apply(x, x).sum().backward()
        assert len(runs) == 2
        Other.apply(x, x).sum().backward()
        genesis.vmap(Other.apply)(x, x)
        assert len(runs) == 2
    assert repr(genesis.ops.add(x, x).grad_fn) == "<AddBackward>" and len(runs) == 2


def test_saved_variables_are_a_plain_dict_from_the_beginning():
    for ctx in (genesis.Context(), genesis.Context()):
        assert ctx.saved_variables == {} and type(ctx.saved_variables) is dict
        ctx.saved_variables["k"] = 3
        ctx.save_variable("l", 4)
        assert ctx.saved_variables == {"k": 3, "l": 4}

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.saved_variables["factor"] = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_variables["factor"], None

    x = randn(2)
    Scale.apply(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]
    x.grad = None
    Scale.apply(x, genesis.tensor(3.0)).sum().backward()  # a tensor among them is checked like a saved one
    assert x.grad.tolist() == [3, 3]


def test_the_base_class_computes_nothing():
    with pytest.raises(
        NotImplementedError,
        match=r"^Function.apply: Function is the base class and computes nothing by itself\n  try: class "
        r"Double\(genesis.Function\)",
    ):
        Function.apply(randn(1))
    with pytest.raises(NotImplementedError, match=r"^Function.forward is not implemented"):
        Function.forward(genesis.Context(), 1)
    with pytest.raises(NotImplementedError, match=r"^Function.backward is not implemented"):
        Function.backward(genesis.Context(), 1)


def test_an_override_may_use_the_operator_it_replaces():
    class Doubling(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b + b - b  # operators, too, are the kernel in here

        @staticmethod
        def backward(ctx, g):
            return g + g - g, g

    x = randn(2)
    with genesis.ops.register_function("add", Doubling.apply):
        y = x + x
        y.sum().backward()
    assert y.tolist() == pytest.approx((2 * x.detach()).tolist())
    assert x.grad.tolist() == [2, 2]


def test_backward_runs_kernels_only():
    calls = []

    def counting(a, b):
        calls.append(1)
        return genesis.ops.add(a, b)

    x = randn(3)
    with genesis.ops.register_function("add", counting):
        y = (x * x + x).sum()
        assert len(calls) == 1
        y.backward()  # sums two gradients of x
        assert len(calls) == 1
        genesis.autograd.grad((x * x + x).sum(), x, create_graph=True)
        assert len(calls) == 2


def test_checkpoint_runs_an_override_again():
    calls = []

    def counting(input):
        calls.append(1)
        return genesis.ops.exp(input)

    x = randn(3)
    with genesis.ops.register_function("exp", counting):
        y = genesis.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
        y.sum().backward()
    assert len(calls) == 2
    np.testing.assert_allclose(x.grad.numpy(), (x.exp().cos() * x.exp()).detach().numpy())


@pytest.mark.parametrize(
    "name, call",
    [
        ("gelu", lambda x: nn.functional.gelu(x)),
        ("softplus", lambda x: nn.functional.softplus(x)),
        ("sum", lambda x: x.sum()),
        ("exp", lambda x: x.exp()),
        ("cat", lambda x: genesis.cat([x, x])),
        ("linear", lambda x: nn.functional.linear(x, x)),
        ("flatten", lambda x: x.flatten()),
    ],
)
def test_ops_of_every_kind_can_be_replaced(name, call):
    before = call(genesis.ones(2, 2))
    seen = []

    def mine(*args, **kwargs):
        seen.append((len(args), kwargs))
        return 7

    with genesis.ops.register_function(name, mine):
        assert call(genesis.ones(2, 2)) == 7
        np.testing.assert_array_equal(call_ops(name, call).numpy(), before.numpy())
    assert seen == [(2 if name == "linear" else 1, {})]  # defaults are left out
    np.testing.assert_array_equal(call(genesis.ones(2, 2)).numpy(), before.numpy())


def call_ops(name, call):
    """The same call inside another override: the kernel."""
    with genesis.ops.register_function("relu", lambda x: call(x)):
        return genesis.relu(genesis.ones(2, 2))


def test_arguments_that_were_given_reach_the_override():
    with genesis.ops.register_function("sum", lambda *args, **kwargs: (args[1:], kwargs)):
        assert genesis.ones(2, 2).sum(1, True) == ((1, True), {})
    with genesis.ops.register_function("gelu", lambda x, approximate="none": approximate):
        assert nn.functional.gelu(genesis.ones(1), approximate="tanh") == "tanh"


def test_overrides_nest_and_are_undone_in_any_order():
    x = genesis.ones(1)
    one = genesis.ops.register_function("exp", lambda x: 1)
    two = genesis.ops.register_function("exp", lambda x: 2)
    assert x.exp() == 2
    one.remove()
    assert x.exp() == 2
    one.remove()  # again: nothing happens
    two.remove()
    assert float(x.exp()) == pytest.approx(np.e)
    genesis.ops.register_function("exp", lambda x: 3)
    assert genesis.ops.registered_functions()["exp"](x) == 3
    genesis.ops.unregister_function("exp")
    assert genesis.ops.registered_functions() == {}
    with pytest.raises(ValueError, match="no function is registered for 'exp'"):
        genesis.ops.unregister_function("exp")


def test_an_override_is_undone_when_the_body_fails():
    with pytest.raises(KeyError), genesis.ops.register_function("exp", lambda x: 1):
        raise KeyError
    assert float(genesis.zeros(1).exp()) == 1.0


def test_in_place_forms_and_out_are_kept_apart():
    x = genesis.ones(2)
    with genesis.ops.register_function("add", lambda a, b: a * 10):
        x.add_(1)
        assert x.tolist() == [2, 2]
        out = genesis.zeros(2)
        genesis.add(x, 1, out=out)
        assert out.tolist() == [20, 20]


class Applied:
    """A class with `apply` that is no `Function`."""

    apply = abs


@pytest.mark.parametrize("arguments, error, sentence", [
    (("ad", abs), ValueError, "there is no op 'ad'.*did you mean .*add"),
    (("zeros", abs), ValueError, "'zeros' is made of other operations or creates tensors"),
    (("add", 3), TypeError, "must be callable, got int"),
    (("add", Applied), TypeError, "Applied is a class.*pass Applied.apply"),
])  # fmt: skip
def test_register_function_refuses(arguments, error, sentence):
    with pytest.raises(error, match=f"(?s){sentence}"):
        genesis.ops.register_function(*arguments)
    assert genesis.ops.registered_functions() == {}


def test_a_function_class_stands_for_its_apply():
    x = randn(2)
    with genesis.ops.register_function("add", AddFunction) as made:
        assert type(genesis.add(x, x).grad_fn).__name__ == "AddFunctionBackward"
        assert genesis.ops.registered_functions() == {"add": AddFunction.apply}
        assert "AddFunction.apply" in repr(made)
    with genesis.ops.register_operation("my_add", AddFunction):
        assert genesis.my_add(x, 1.0).tolist() == (x + 1).tolist()

    @genesis.ops.register_function("exp")
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

    assert isinstance(Twice, type) and genesis.exp(genesis.ones(1)).tolist() == [2]
    genesis.ops.unregister_function("exp")


def test_register_function_as_a_decorator():
    @genesis.ops.register_function("sin")
    def mine(x):
        return 5

    assert genesis.sin(genesis.ones(1)) == 5
    genesis.ops.unregister_function("sin")


def test_register_operation():
    def custom(t, p):
        return t * p

    made = genesis.ops.register_operation("custom_op", custom)
    try:
        assert genesis.custom_op(genesis.ones(2), 3).tolist() == [3, 3]
        assert genesis.ops.custom_op is custom
        assert "custom_op" in dir(genesis)
        with pytest.raises(ValueError, match=r"genesis.custom_op exists already: it was registered before"):
            genesis.ops.register_operation("custom_op", custom)
    finally:
        made.remove()
    assert not hasattr(genesis, "custom_op")
    with pytest.raises(ValueError, match="no operation 'custom_op' is registered"):
        genesis.ops.unregister_operation("custom_op")


@pytest.mark.parametrize("name", ["add", "nn", "Tensor", "relu", "save", "ops"])
def test_register_operation_refuses_to_shadow(name):
    with pytest.raises(ValueError, match="it is a name of Genesis"):
        genesis.ops.register_operation(name, abs)


@pytest.mark.parametrize("name", ["", "a b", "3x", "class", "_private", 3])
def test_register_operation_refuses_what_is_no_name(name):
    with pytest.raises(ValueError, match="cannot be a name"):
        genesis.ops.register_operation(name, abs)
