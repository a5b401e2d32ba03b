"""Custom operations: one declaration, every part of it checked."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import library


@pytest.fixture
def scale():
    @library.custom_op("mylib::scale", mutates_args=())
    def scale(x: genesis.Tensor, k: float = 2.0) -> genesis.Tensor:
        """x times k"""
        return genesis.from_numpy(x.detach().numpy() * np.asarray(k, x.detach().numpy().dtype))

    def keep(ctx, inputs, output):
        ctx.k = inputs[1]

    scale.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=keep)
    scale.register_fake(lambda x, k: genesis.empty_like(x))
    yield scale
    library.remove("mylib::scale")


def test_a_call_by_either_name(scale):
    assert scale(genesis.ones(2)).tolist() == [2, 2]
    assert genesis.ops.mylib.scale(genesis.ones(2), k=3.0).tolist() == [3, 3]
    assert scale.schema.startswith("mylib::scale(x")
    assert scale.__doc__ == "x times k"


def test_gradients_of_both_orders(scale):
    x = genesis.ones(3, dtype=genesis.float64, requires_grad=True)
    y = scale(x * x, 5.0)
    assert repr(y.grad_fn) == "<scaleBackward>"
    (g,) = genesis.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [10, 10, 10]
    assert genesis.autograd.grad(g.sum(), x)[0].tolist() == [10, 10, 10]


def test_without_data(scale):
    y = scale(genesis.empty(3, 4, device="meta"), 2.0)
    assert (y.shape, y.device.type) == ((3, 4), "meta")


def test_without_a_gradient_or_a_fake_kernel():
    op = library.custom_op("mylib::plain", lambda x: x * 2, mutates_args=())
    try:
        y = op(genesis.ones(1, requires_grad=True))
        with pytest.raises(NotImplementedError, match="mylib::plain: has no gradient\n.*register_autograd"):
            y.backward()
        with pytest.raises(NotImplementedError, match="has no fake kernel\n.*register_fake"):
            op(genesis.ones(1, device="meta"))
    finally:
        library.remove("mylib::plain")
    assert not hasattr(genesis.ops, "mylib")


def test_writes_are_those_declared():
    def write(x: genesis.Tensor, y: genesis.Tensor) -> None:
        x.add_(y)

    good = library.custom_op("mylib::good", write, mutates_args=("x",))
    bad = library.custom_op("mylib::bad", write, mutates_args=("y",))
    secret = library.custom_op("mylib::secret", lambda x: genesis.from_numpy(np.add(x.numpy(), 1, out=x.numpy())).clone(), mutates_args=())
    same = library.custom_op("mylib::same", lambda x: x, mutates_args=())
    try:
        x = genesis.ones(2)
        assert good(x, x * 2) is None
        assert x.tolist() == [3, 3]
        with pytest.raises(RuntimeError, match="mylib::bad: wrote to x, which mutates_args does not name"):
            bad(x, x * 2)
        with pytest.raises(RuntimeError, match="test_schema of mylib::secret failed.*wrote to x"):
            library.opcheck(secret, (genesis.ones(2),))
        with pytest.raises(RuntimeError, match="returned one of its arguments"):
            same(x)
    finally:
        for name in ("good", "bad", "secret", "same"):
            library.remove(f"mylib::{name}")


def test_kernels_by_device():
    op = library.custom_op("mylib::here", lambda x: x + 1, mutates_args=(), device_types="cuda")
    try:
        with pytest.raises(NotImplementedError, match="has no kernel for cpu, only for cuda"):
            op(genesis.ones(1))
        op.register_kernel("cpu")(lambda x: x + 2)
        assert op(genesis.ones(1)).item() == 3
    finally:
        library.remove("mylib::here")


def test_autocast(scale):
    seen = []
    op = library.custom_op("mylib::seen", lambda x: (seen.append(x.dtype), x * 1)[1], mutates_args=())
    try:
        op.register_autocast("cpu", genesis.float16)
        with genesis.autocast():
            op(genesis.ones(1))
        op(genesis.ones(1))
        assert seen == [genesis.float16, genesis.float32]
    finally:
        library.remove("mylib::seen")


def test_opcheck(scale):
    assert library.opcheck(scale, (genesis.randn(3), 2.0)) == dict.fromkeys(
        ["test_schema", "test_faketensor", "test_autograd_registration", "test_warnings", "test_threads"], "SUCCESS"
    )
    scale.register_fake(lambda x, k: genesis.empty(7, device="meta"))
    with pytest.raises(RuntimeError, match=r"test_faketensor of mylib::scale failed.*result 0 is genesis.float32\[3\], the fake kernel gives genesis.float32\[7\]"):
        library.opcheck(scale, (genesis.randn(3), 2.0))
    scale.register_autograd(lambda ctx, g: (g * 2 * ctx.k, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]))
    found = library.opcheck(scale, (genesis.randn(3), 2.0), raise_exception=False)
    assert "twice" in found["test_autograd_registration"]


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: library.custom_op("scale", abs, mutates_args=()), ValueError, "'scale' is no name of an operation\n.*namespace::name"),
    (lambda: library.custom_op("nn::scale", lambda x: x, mutates_args=("y",)), ValueError, "mutates_args names 'y', the parameters are x"),
    (lambda: library.custom_op("add::scale", lambda x: x, mutates_args=()), ValueError, "its namespace is a name of Genesis"),
    (lambda: library.remove("no::op"), ValueError, "there is no custom op 'no::op'"),
])  # fmt: skip
def test_wrong_declarations(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_wrong_arguments(scale):
    with pytest.raises(TypeError, match="mylib::scale: got an unexpected keyword argument 'factor'"):
        scale(genesis.ones(1), factor=2)
    with pytest.raises(ValueError, match="exists already"):
        library.custom_op("mylib::scale", abs, mutates_args=())
