"""`gradcheck`: float32 inputs, structured inputs, its options, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck
from genesis.core.call.op import REGISTRY
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of, tensors_in


def scaled(factor, f=lambda x: x * x, df=lambda x: 2 * x):
    class Rule(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return f(x)

        @staticmethod
        def backward(ctx, g):
            return g * df(ctx.saved_tensors[0]) * factor

    return Rule


def test_float32_with_the_step_of_float64():
    x = genesis.randn(5, 3, requires_grad=True)
    assert gradcheck(lambda x: (x**2).sum(), x, eps=1e-6)
    assert gradcheck(scaled(1.0).apply, x, eps=1e-6) and gradcheck(scaled(1.0).apply, x, eps=1e-6, fast_mode=True)
    for fast in (False, True):
        with pytest.raises(RuntimeError, match="the gradient of `x` is 1 % too large"):
            gradcheck(scaled(1.01).apply, x, eps=1e-6, fast_mode=fast)


def test_code_that_computes_in_float32_is_checked_to_one_per_cent():
    single = lambda x: (x.float() * x.float()).double()  # noqa: E731
    x = genesis.randn(6, requires_grad=True)
    assert gradcheck(lambda x: single(x).sum(), x)
    bad = scaled(1.01, single)
    assert gradcheck(scaled(1.0, single).apply, x)
    assert not gradcheck(bad.apply, x, raise_exception=False)


def calls_of_all_ops():
    for name, op in sorted(REGISTRY.items()):
        for i, sample in enumerate(
            samples_of(op, Maker(genesis.float32, requires_grad=True))[:2] if "f" in op.dtypes else []
        ):
            leaves = [t for t in tensors_in(sample.args) if t.requires_grad]
            if leaves and all(t.numel() for t in leaves):
                yield name, i, op, sample


def test_all_ops_pass_in_float32():
    checked = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, i, op, sample in calls_of_all_ops():
            out = op.call(*sample.args, **sample.kwargs)
            if any(y.requires_grad for y in tensors_in(out)):
                assert gradcheck(
                    lambda *a, op=op, kw=sample.kwargs: op.call(*a, **kw), sample.args, eps=1e-6, fast_mode=bool(i)
                ), name
                checked.add(name)
    assert len(checked) >= 60


def test_containers():
    def f(pair, params, n):
        return (pair[0] * params["w"]).sum() * n, pair[1] ** 2

    args = ((genesis.randn(2, requires_grad=True), genesis.randn(3)), {"w": genesis.randn(2, requires_grad=True)}, 3)
    assert gradcheck(f, args) and gradcheck(f, list(args), fast_mode=True)


def test_kinks_are_between_the_slopes():
    assert gradcheck(genesis.relu, genesis.tensor([0.0, 1.0], requires_grad=True))
    wild = scaled(1.0, lambda x: x.abs(), lambda x: genesis.where(x == 0, 3.0, x.sign()))
    with pytest.raises(RuntimeError, match="backward gives"):
        gradcheck(wild.apply, genesis.tensor([0.0, 1.0], requires_grad=True))


def test_linearity_and_layout_of_grad_output():
    class Clipped(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-1.6, 1.6)

    with pytest.raises(
        RuntimeError, match=r"gradcheck: backward is not linear in grad_output.*`x`(.*\n)*.*weights seed 0"
    ):
        gradcheck(Clipped.apply, genesis.randn(8, requires_grad=True))


def test_dtypes_of_gradients():
    class Wide(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.double() * 2

    x = genesis.randn(3, requires_grad=True)
    assert gradcheck(Wide.apply, x)
    with pytest.raises(RuntimeError, match="backward returns float64 for `x`, which is float32"):
        gradcheck(Wide.apply, x, check_grad_dtypes=True)


def test_undefined_gradients():
    class Two(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return 2 * a + 3 * b

    x = genesis.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="when only output 0 is used, backward fails"):
        gradcheck(Two.apply, x)
    assert gradcheck(Two.apply, x, check_undefined_grad=False)


def test_nondeterminism_and_its_tolerance():
    rng = np.random.default_rng(0)
    noisy = scaled(1.0, df=lambda x: 2 * x * (1 + 1e-7 * float(rng.normal())))
    x = genesis.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"two runs of backward differ by more than 0\.0"):
        gradcheck(noisy.apply, x)
    assert gradcheck(noisy.apply, x, nondet_tol=1e-5)


def test_wrong_use():
    with pytest.raises(
        RuntimeError, match="gradcheck: no input requires grad\n  try: pass tensors with requires_grad=True"
    ):
        gradcheck(lambda x: x, genesis.ones(2))
    with pytest.raises(RuntimeError, match="returned no floating or complex tensor"):
        gradcheck(lambda x: x > 0, genesis.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="unexpected keyword"):
        gradcheck(lambda x: x, genesis.ones(2, requires_grad=True), epsilon=1)


def test_the_generator_is_left_alone():
    state = genesis.get_rng_state()
    assert gradcheck(lambda x: x.sin(), genesis.ones(3, requires_grad=True))
    assert genesis.equal(state, genesis.get_rng_state())


def test_second_order_of_a_wrong_second_derivative():
    frozen = scaled(1.0, df=lambda x: 2 * x.detach())
    x = genesis.randn(3, requires_grad=True)
    assert gradcheck(frozen.apply, x)
    with pytest.raises(RuntimeError, match=r"its own derivative is not known: detach\(\) left the recorded graph"):
        gradgradcheck(frozen.apply, x)
    assert gradgradcheck(lambda p: p["a"] ** 3, [{"a": x}])
