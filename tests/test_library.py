"""Custom operations: one declaration, every part of it checked."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import library
from genesis.core.call.op import REGISTRY


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
    secret = library.custom_op(
        "mylib::secret", lambda x: genesis.from_numpy(np.add(x.numpy(), 1, out=x.numpy())).clone(), mutates_args=()
    )
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
    with pytest.raises(
        RuntimeError,
        match=r"test_faketensor of mylib::scale failed.*result 0 is genesis.float32\[3\], the fake kernel gives "
        r"genesis.float32\[7\]",
    ):
        library.opcheck(scale, (genesis.randn(3), 2.0))
    scale.register_autograd(
        lambda ctx, g: (g * 2 * ctx.k, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1])
    )
    found = library.opcheck(scale, (genesis.randn(3), 2.0), raise_exception=False)
    assert "twice" in found["test_autograd_registration"]


@pytest.mark.parametrize(
    "call, error, sentence",
    [
        (
            lambda: library.custom_op("scale", abs, mutates_args=()),
            ValueError,
            "'scale' is no name of an operation\n.*namespace::name",
        ),
        (
            lambda: library.custom_op("nn::scale", lambda x: x, mutates_args=("y",)),
            ValueError,
            "mutates_args names 'y', the parameters are x",
        ),
        (
            lambda: library.custom_op("add::scale", lambda x: x, mutates_args=()),
            ValueError,
            "its namespace is a name of Genesis",
        ),
        (lambda: library.remove("no::op"), ValueError, "there is no custom op 'no::op'"),
    ],
)
def test_wrong_declarations(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_wrong_arguments(scale):
    with pytest.raises(TypeError, match="mylib::scale: got an unexpected keyword argument 'factor'"):
        scale(genesis.ones(1), factor=2)
    with pytest.raises(ValueError, match="exists already"):
        library.custom_op("mylib::scale", abs, mutates_args=())


# ---- in traces


@pytest.fixture
def cube():
    calls = []

    @genesis.library.custom_op("tests::cube", mutates_args=())
    def cube(x: genesis.Tensor, factor: float = 1.0) -> genesis.Tensor:
        calls.append(x)
        return genesis.from_numpy(x.detach().numpy() ** 3 * np.float32(factor))

    cube.register_fake(lambda x, factor=1.0: genesis.empty_like(x))
    cube.register_autograd(
        lambda ctx, g: (g * 3 * ctx.factor * ctx.saved_tensors[0] ** 2, None),
        setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "factor", inputs[1])),
    )
    cube.calls = calls
    yield cube
    genesis.library.remove("tests::cube")
    assert not [name for name in REGISTRY if name.startswith("tests::")]


def test_a_trace_has_it_as_one_node_and_calls_it_at_every_replay(cube):
    graph = genesis.jit.trace(lambda x: cube(x.exp(), 2.0) + 1, genesis.ones(3))
    assert [node.op for node in graph.nodes] == ["exp", "tests::cube", "add"]
    assert not cube.calls, "a trace computes nothing"
    x = genesis.tensor([0.1, 0.2, -3.0])
    np.testing.assert_array_equal(graph.replay(x).numpy(), (cube(x.exp(), 2.0) + 1).numpy())
    assert len(cube.calls) == 2
    graph.verify()


def test_a_training_step_with_it_replays(cube):
    def step(w, x):
        loss = cube(x @ w).sum()
        loss.backward()
        return loss

    x = genesis.randn(4, 3)
    w, v = (genesis.ones(3, 2, requires_grad=True) for _ in range(2))
    graph = genesis.jit.trace(step, w, x)
    assert w.grad is None
    graph.replay(w, x)
    step(v, x)
    np.testing.assert_array_equal(w.grad.numpy(), v.grad.numpy())


def test_calls_of_it_are_neither_merged_nor_folded(cube):
    graph = genesis.jit.common_subexpressions(
        genesis.jit.trace(lambda x: cube(x) + cube(x) + cube(genesis.ones(3)), genesis.ones(3))
    )
    graph = genesis.jit.fold_constants(graph) if hasattr(genesis.jit, "fold_constants") else graph
    assert [node.op for node in graph.nodes].count("tests::cube") == 3


def test_several_results_and_tensors_in_other_places():
    @genesis.library.custom_op("tests::both", mutates_args=())
    def both(x, y):
        return x.detach() + 1, (y if isinstance(y, float) else y.detach()) * x.detach()

    both.register_fake(lambda x, y: (genesis.empty_like(x), genesis.empty_like(x)))
    try:
        x = genesis.tensor([1.0, 2.0])
        a, b = genesis.jit.trace(lambda x: both(x, x * 3), x).replay(x)
        assert a.tolist() == [2, 3] and b.tolist() == [3, 12]
        a, b = genesis.jit.trace(lambda x: both(x, 5.0), x).replay(x)
        assert b.tolist() == [5, 10]
    finally:
        genesis.library.remove("tests::both")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mutates_args": ()}, "is called in a trace and has no fake kernel"),
        ({"mutates_args": "x"}, "writes to x, and a trace would not know of it"),
    ],
)
def test_what_a_trace_cannot_have_says_why(options, words):
    op = genesis.library.custom_op("tests::no", lambda x: x.detach() * 2, **options)
    try:
        with pytest.raises(NotImplementedError, match=words):
            genesis.jit.trace(lambda x: op(x), genesis.ones(2))
    finally:
        genesis.library.remove("tests::no")


def test_it_is_an_op_from_its_declaration_on(scale):
    from genesis.ops.matrix import matrix

    op = REGISTRY["mylib::scale"]
    assert scale.op is op and op.call is scale and op.tensors == (0,)
    (row,) = [row for row in matrix() if row["op"] == "mylib::scale"]
    assert (row["kind"], row["infer"], row["vjp"], row["jvp"], row["vmap"]) == (
        "opaque",
        True,
        True,
        "transposed",
        "one by one",
    )
    library.custom_op("mylib::bare", lambda x, k=2: x * k, mutates_args=())
    try:
        assert REGISTRY["mylib::bare"].tensors == (0,)
        (row,) = [row for row in matrix() if row["op"] == "mylib::bare"]
        assert (row["vjp"], row["jvp"]) == (False, "no gradient")
    finally:
        library.remove("mylib::bare")
    assert "mylib::bare" not in REGISTRY


def test_the_checks_of_built_in_ops_check_it(scale):
    from genesis.testing import case, opcheck

    samples = lambda t: [case(t(2, 3), 2.0), case(t(0, 2), 1.0)]  # noqa: E731
    done = opcheck(scale, samples=samples)
    assert {name.split()[-1] for name in done} == {"warnings", "memory", "gradient", "threads", "infer"}
    scale.register_fake(lambda x, k: genesis.empty(2, 2))
    with pytest.raises(AssertionError, match="infer"):
        opcheck(scale, samples=samples)


def test_transforms(scale):
    from genesis import func

    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    value, tangent = func.jvp(lambda x: scale(x * x, 3.0), (x,), (genesis.ones(2, 2),))
    assert value.tolist() == (x * x * 3).tolist() and tangent.tolist() == (x * 6).tolist()
    with pytest.warns(UserWarning, match="scale"):
        assert func.vmap(lambda row: scale(row, 3.0))(x).tolist() == (x * 3).tolist()


def test_a_rule_for_samples(scale, recwarn):
    from genesis import func, jit

    seen = []

    @scale.register_vmap
    def rule(info, in_dims, x, k):
        seen.append((info.batch_size, in_dims))
        return scale(x, k), in_dims[0]

    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert func.vmap(lambda row: scale(row, 3.0), in_dims=1, out_dims=1)(x).tolist() == (x * 3).tolist()
    gradients = func.vmap(func.grad(lambda row: scale(row * row, 3.0).sum()))(x)
    assert gradients.tolist() == (x * 6).tolist()
    graph = jit.trace(lambda x: func.vmap(lambda row: scale(row, 3.0))(x), x)
    assert graph.replay(x).tolist() == (x * 3).tolist()
    assert seen and all(size in (2, 3) and dims[1] is None for size, dims in seen) and not recwarn.list
