"""vmap: dimensions, containers, randomness, chunks, writes in place, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import Function, vmap
from genesis.func import functional_call, grad, jvp, stack_module_state

X = np.arange(24.0).reshape(2, 3, 4)


def t(array, **options):
    return genesis.tensor(np.asarray(array, np.float64), **options)


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def test_dimensions_in_and_out():
    for i in range(-3, 3):
        same(vmap(lambda x: x * 2, in_dims=i, out_dims=i)(t(X)), X * 2)
    same(vmap(lambda x, y: x @ y, in_dims=(0, None))(t(X), t(np.ones(4))), X @ np.ones(4))
    same(
        vmap(lambda x, y: x + y, in_dims=(None, 0), out_dims=1)(t(np.ones(3)), t([1.0, 2])),
        np.array([[2.0, 3], [2, 3], [2, 3]]),
    )


def test_containers():
    f = lambda d, k=1.0: {"sum": (d["a"] + d["b"][0]) * k, "pair": (d["a"], d["b"][1])}  # noqa: E731
    tree = {"a": t(X), "b": [t(np.ones((3, 2, 4))), t(5.0)]}
    out = vmap(f, in_dims=({"a": 0, "b": [1, None]},), out_dims={"sum": 1, "pair": 0})(tree)
    same(out["sum"], np.moveaxis(X + np.moveaxis(np.ones((3, 2, 4)), 1, 0), 0, 1))
    same(out["pair"][0], X)
    assert out["pair"][1].tolist() == [5.0, 5.0]  # the same for all samples: repeated
    same(vmap(f)({"a": t(X), "b": [t(X), t(X)]})["sum"], 2 * X)


def test_keyword_arguments_are_shared():
    same(vmap(lambda x, y: x * y)(t(X), y=t(np.arange(4.0))), X * np.arange(4.0))
    assert vmap(lambda d, k: d * k)(genesis.ones(3, 4), k=genesis.ones(3, 4)).shape == (3, 3, 4)


def test_nesting_and_outer_products():
    a, b = t([1.0, 2, 3]), t([4.0, 5])
    same(vmap(lambda x: vmap(lambda y: x * y)(b))(a), np.outer([1, 2, 3], [4, 5]))
    same(vmap(vmap(vmap(lambda x: x + 1)))(t(X)), X + 1)


def test_chunks_give_the_same():
    x = t(np.arange(20.0).reshape(10, 2))
    for size in (1, 3, 10, 99):
        same(vmap(lambda v: v.sum(), chunk_size=size)(x), x.sum(1).numpy())


def test_chunks_of_the_same_numbers():
    found = vmap(lambda v: v + genesis.rand(()), randomness="same", chunk_size=2)(genesis.zeros(5))
    assert len(set(found.tolist())) == 1


def test_backward_inside_for_a_leaf_outside_is_refused():
    w = t([1.0, 2.0], requires_grad=True)
    for call in (
        lambda: vmap(lambda q: ((q * w).sum().backward(), q)[1])(t(np.ones((3, 2)))),
        lambda: jvp(lambda q: ((q * w).sum().backward(), q)[1], (t([1.0, 1]),), (t([1.0, 1]),)),
    ):
        with pytest.raises(
            RuntimeError, match=r"(?s)the gradient of a leaf from outside cannot go into its .grad.*autograd.grad"
        ):
            call()
    assert w.grad is None


def test_fresh_tensors_written_to_through_views_under_jacfwd():
    from genesis.func import hessian, jacfwd

    def f(x):
        y = genesis.zeros(4, dtype=genesis.float64)
        view = y[:2]
        view.copy_(x)
        y.view(2, 2).t()[0].add_(x.sum())
        return y * y

    x = t([1.0, 2.0])
    same(jacfwd(f)(x), genesis.func.jacrev(f)(x).numpy())
    same(jacfwd(genesis.diag)(x), genesis.func.jacrev(genesis.diag)(x).numpy())
    same(hessian(lambda v: genesis.diag(v).exp().sum())(x), np.diag(np.exp([1, 2])))


def test_randomness():
    genesis.manual_seed(0)
    x = genesis.zeros(4, 3)
    other = vmap(lambda v: v + genesis.rand(3), randomness="different")(x)
    assert len({tuple(row) for row in other.tolist()}) == 4
    shared = vmap(lambda v: v + genesis.rand(3), randomness="same")(x)
    assert len({tuple(row) for row in shared.tolist()}) == 1
    both = vmap(vmap(lambda v: v + genesis.rand(()), randomness="same"), randomness="different")(x)
    assert all(len(set(row)) == 1 for row in both.tolist()) and len({row[0] for row in both.tolist()}) == 4
    dropped = vmap(lambda v: genesis.nn.functional.dropout(v + 1), randomness="different")(genesis.zeros(8, 50))
    assert {v for row in dropped.tolist() for v in row} == {0.0, 2.0} and dropped.std(0).sum() > 0
    genesis.manual_seed(1)
    first = vmap(lambda v: v + genesis.randn(3), randomness="different")(x)
    genesis.manual_seed(1)
    same(first, genesis.randn(4, 3).numpy())
    with pytest.raises(
        RuntimeError, match=r"(?s)random numbers are drawn inside vmap of <lambda>.*randomness=\"different\""
    ):
        vmap(lambda v: v + genesis.rand(3))(x)


# ---- gradients


def test_one_gradient_for_each_sample():
    genesis.manual_seed(0)
    model = genesis.nn.Sequential(genesis.nn.Linear(3, 5), genesis.nn.Tanh(), genesis.nn.Linear(5, 2)).double()
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = genesis.randn(6, 3, dtype=genesis.float64), genesis.tensor([0, 1, 1, 0, 1, 0])
    loss = lambda p, a, b: genesis.nn.functional.cross_entropy(
        functional_call(model, p, a.unsqueeze(0)), b.unsqueeze(0)
    )  # noqa: E731
    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(6):
        model.zero_grad()
        genesis.nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in model.named_parameters():
            np.testing.assert_allclose(found[name][i].numpy(), p.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_gradients_of_captured_tensors_inside_are_per_sample_and_outside_summed():
    w = t([1.0, 2.0], requires_grad=True)
    xs = t([[1.0, 2], [3, 4], [5, 6]])
    inside = vmap(lambda x: genesis.autograd.grad((w * x).sum() ** 2, w)[0])(xs)
    same(inside, np.stack([2 * (x @ [1, 2]) * x for x in xs.numpy()]))
    (vmap(lambda x: (w * x).sum() ** 2)(xs)).sum().backward()
    same(w.grad, inside.sum(0).numpy())


def test_backward_of_many_cotangents_at_once():
    x = t([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    rows = genesis.autograd.grad(y, x, genesis.eye(3, dtype=genesis.float64), is_grads_batched=True, retain_graph=True)[
        0
    ]
    same(rows, np.diag([2.0, 4, 6]))
    genesis.autograd.grad(y, x, genesis.eye(3, dtype=genesis.float64), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="already differentiated"):
        y.sum().backward()


def test_batched_cotangents_through_a_backward_in_numpy():
    class Foreign(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return genesis.tensor(g.numpy() * 2)

    x = t([1.0, 2.0], requires_grad=True)
    same(
        genesis.autograd.grad(Foreign.apply(x), x, genesis.eye(2, dtype=genesis.float64), is_grads_batched=True)[0],
        2 * np.eye(2),
    )


def test_an_ensemble_of_modules():
    models = [genesis.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = genesis.randn(5, 3)
    out = vmap(lambda p, b: functional_call(models[0], (p, b), x))(params, buffers)
    for i, m in enumerate(models):
        np.testing.assert_allclose(out[i].detach().numpy(), m(x).detach().numpy(), rtol=1e-6)
    out.sum().backward()
    assert params["weight"].grad.shape == (4, 2, 3)


# ---- writes in place


def test_writes_into_tensors_of_the_inside():
    def f(x):
        out = genesis.zeros(3, dtype=genesis.float64)
        row = out[1:]
        row[0] = x
        out[2] += x * 2
        out.mul_(2)
        return out, row

    found, row = vmap(f)(t([1.0, 2.0]))
    same(found, [[0, 2, 4], [0, 4, 8]])
    same(row, [[2, 4], [4, 8]])
    value, tangent = jvp(lambda x: f(x)[0], (t(3.0),), (t(1.0),))
    same(value, [0, 6, 12])
    same(tangent, [0, 2, 4])
    same(vmap(grad(lambda x: (f(x)[0] ** 2).sum()))(t([1.0, 2.0])), [40, 80])


def test_a_write_into_an_argument_reaches_the_callers_memory():
    x = t([[1.0, 2], [3, 4]])
    vmap(lambda row: row.mul_(2))(x)
    same(x, [[2, 4], [6, 8]])


def test_writes_at_indices_that_differ_from_sample_to_sample():
    x, i = t(np.zeros((2, 4))), genesis.tensor([1, 3])

    def put(row, k):
        row = row.clone()
        row[k] = 5.0
        return row

    same(vmap(put)(x, i), [[0, 5, 0, 0], [0, 0, 0, 5]])
    same(vmap(lambda k: t([10.0, 20, 30, 40])[k])(i), [20, 40])
    mask = genesis.tensor([[True, False], [False, True]])

    def masked(row, m):
        row = row.clone()
        row[m] = 0.0
        return row

    same(vmap(masked)(t([[1.0, 2], [3, 4]]), mask), [[0, 2], [3, 0]])


# ---- what it refuses


def test_a_write_into_a_captured_tensor_names_it():
    total = genesis.zeros(3)
    with pytest.raises(
        RuntimeError,
        match=r"(?s)inside vmap of <lambda>, a tensor that was made outside is written to.*written at "
        r".*test_vmap.py.*clone\(\) it",
    ):
        vmap(lambda x: total.add_(x))(genesis.ones(2, 3))
    assert total.tolist() == [0, 0, 0]
    with pytest.raises(
        RuntimeError,
        match=r"(?s)inside jvp of <lambda>, a tensor that was made outside is written to, with a value that has a "
        r"tangent",
    ):
        jvp(lambda x: total.add_(x), (genesis.ones(3),), (genesis.ones(3),))


def test_values_are_refused_with_the_way_out():
    def branch(x):
        return x * 2 if x > 0 else x

    with pytest.raises(RuntimeError, match=r"(?s)under vmap this tensor stands for 2 different samples.*genesis.where"):
        vmap(branch)(t([1.0, -1.0]))
    with pytest.raises(RuntimeError, match="stands for 2 different samples"):
        vmap(lambda x: genesis.tensor(x.numpy()))(t([1.0, -1.0]))
    k = t(3.0)
    same(vmap(lambda x: x * 2 if k > 0 else x)(t([1.0, -1.0])), [2, -2])  # the same for all samples: has a value
    value, tangent = jvp(branch, (t(2.0),), (t(1.0),))  # one value, one branch
    assert float(value) == 4 and float(tangent) == 2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vmap(3), TypeError, "expected a function, got int"),
        (lambda: vmap(lambda x: x)(3), ValueError, "no argument of <lambda> has samples"),
        (
            lambda: vmap(lambda x: x, in_dims=(0, 0))(t(X)),
            ValueError,
            "in_dims has 2 entries, the function was called with 1 argument",
        ),
        (
            lambda: vmap(lambda x: x, in_dims=3)(t(X)),
            ValueError,
            "in_dims is 3 for `x` of <lambda>, which has 3 dimensions",
        ),
        (lambda: vmap(lambda x: x, in_dims=(0,))(5), ValueError, "in_dims is 0 for `x` of <lambda>, which is int"),
        (lambda: vmap(lambda x: x, in_dims="0")(t(X)), ValueError, "in_dims must be an integer or a tuple"),
        (lambda: vmap(lambda x: x, in_dims=({"b": 0},))({"a": t(X)}), ValueError, "in_dims has keys"),
        (
            lambda: vmap(lambda x, y: x)(t(X), t(np.ones(5))),
            ValueError,
            r"(?s)differ in their number of samples.*x f64\[2, 3, 4\], 2 samples along dim 0.*5 samples",
        ),
        (lambda: vmap(lambda x, y: x, in_dims=(None, None))(t(X), t(X)), ValueError, "all in_dims are None"),
        (lambda: vmap(lambda x: x)(t(np.ones((0, 3)))), RuntimeError, "there are no samples"),
        (lambda: vmap(lambda x: 3)(t(X)), TypeError, "must return tensors, it returned int 3"),
        (lambda: vmap(lambda x: x, out_dims=4)(t(X)), IndexError, "out_dims is 4"),
        (lambda: vmap(lambda x: x, out_dims=(0, 1))(t(X)), ValueError, "out_dims"),
        (lambda: vmap(lambda x: x, out_dims=None)(t(X)), ValueError, "out_dims holds None"),
        (lambda: vmap(lambda x: x, randomness="yes"), ValueError, "randomness is 'yes'"),
        (lambda: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size must be a positive integer"),
        (
            lambda: vmap(lambda x: x @ genesis.ones(5, dtype=genesis.float64))(t(X)),
            RuntimeError,
            r"(?s)matmul: inner sizes differ, 4 and 5.*f64\[3, 4\]",
        ),
        (
            lambda: vmap(lambda x: x[x > 3])(t(X)),
            NotImplementedError,
            "the shape of the result depends on the values of the mask",
        ),
        (lambda: vmap(lambda x: x.nonzero())(t(X)), NotImplementedError, "depends on values"),
        (
            lambda: vmap(lambda x: x.unique())(t([[1.0, 1], [1, 2]]).long()),
            RuntimeError,
            "the shape of the result differs from sample to sample",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:vmap")
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_tensors_that_leak_name_their_transform():
    kept = []
    vmap(lambda x: kept.append(x) or x)(t([1.0, 2.0]))
    with pytest.raises(
        RuntimeError,
        match=r"(?s)a tensor from inside vmap of <lambda> is used after vmap of <lambda> has ended.*test_vmap.py",
    ):
        kept[0] + 1
    kept.clear()
    jvp(lambda x: kept.append(x * x) or x, (t(1.0),), (t(1.0),))
    with pytest.raises(RuntimeError, match="a tensor from inside jvp of <lambda> is used after"):
        kept[0].sin()
    assert "Batched" not in repr(kept)


def test_the_sequential_way_warns_once():
    from genesis.core.layers import batches

    batches._warned.discard("histc")
    x = genesis.rand(3, 10)
    with pytest.warns(UserWarning, match="histc has no rule for batches"):
        found = vmap(lambda v: genesis.histc(v, 4, 0, 1))(x)
    assert found.tolist() == [genesis.histc(row, 4, 0, 1).tolist() for row in x]
    vmap(lambda v: genesis.histc(v, 4, 0, 1))(x)  # a second warning would be an error here


def test_threads_do_not_see_each_others_transforms():
    import threading

    failures = []

    def work(k):
        try:
            for _ in range(20):
                same(vmap(grad(lambda x: (x**k).sum()))(t(np.ones((3, 2)))), np.full((3, 2), k))
                assert float((t([1.0, 2]) + 1).sum()) == 5
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- gradients of arguments that all samples share, through Functions


def _two_results(how):
    def compute(x, w):
        return x * w, w * w

    def keep(ctx, x, w):
        ctx.save_for_backward(x, w)

    class Two(genesis.Function):
        @staticmethod
        def forward(ctx, x, w):
            keep(ctx, x, w)
            if how != "numpy":
                return compute(x, w)
            return tuple(genesis.tensor(y) for y in compute(x.detach().numpy(), w.detach().numpy()))

        @staticmethod
        def backward(ctx, g, h):
            x, w = ctx.saved_tensors
            return g * w, g * x + 2 * h * w

        if how == "rule":

            @staticmethod
            def vmap(info, in_dims, x, w):
                x, w = (
                    t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)
                    for t, d in zip((x, w), in_dims, strict=True)
                )
                return Two.apply(x, w), (0, 0)

    return Two.apply


@pytest.mark.filterwarnings("ignore:vmap. Two.forward needs values")
@pytest.mark.parametrize("how", ["whole batch", "numpy", "rule"])
def test_shared_arguments_of_a_function_with_two_results(how):
    f = _two_results(how)
    xs = genesis.tensor([1.0, 2.0, 3.0])
    inner = lambda place: genesis.vmap(lambda x: genesis.func.grad(lambda w: f(x, w)[place])(genesis.tensor(2.0)))(xs)
    assert inner(0).tolist() == [1, 2, 3] and inner(1).tolist() == [4, 4, 4]
    for place, wanted in ((0, 6), (1, 12)):
        w = genesis.tensor(2.0, requires_grad=True)
        genesis.vmap(f, in_dims=(0, None))(xs, w)[place].sum().backward()
        assert w.grad.item() == wanted
        assert (
            genesis.func.grad(lambda w, place=place: genesis.vmap(lambda x: f(x, w)[place])(xs).sum())(
                genesis.tensor(2.0)
            ).item()
            == wanted
        )
    w = genesis.tensor(2.0, requires_grad=True)
    genesis.vmap(lambda x: f(w, x)[1])(xs).sum().backward()
    assert w.grad.item() == 0


def test_inside_the_gradient_of_a_tensor_from_outside_through_a_rule_is_refused():
    f, w = _two_results("rule"), genesis.tensor(2.0, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="gradient of a tensor from outside was asked for, through a Function with a rule"
    ):
        genesis.vmap(lambda x: genesis.autograd.grad(f(x, w)[0], w)[0])(genesis.ones(3))


@pytest.mark.parametrize(
    "zero", [lambda w: w * 0, lambda w: genesis.zeros_like(w), lambda w: None], ids=["product", "zeros", "none"]
)
def test_a_gradient_of_zero_of_a_shared_argument(zero):
    class First(genesis.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(w)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, zero(*ctx.saved_tensors)

    w = genesis.ones(2, requires_grad=True)
    genesis.vmap(First.apply, in_dims=(0, None))(genesis.ones(3), w).sum().backward()
    assert w.grad is None or w.grad.tolist() == [0, 0]


def test_a_captured_leaf_is_copied_into_every_sample():
    w = genesis.tensor([2.0, 3.0], requires_grad=True)
    y = genesis.vmap(lambda x: (x * 1).copy_(w) * x)(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert y.tolist() == [[2, 6], [6, 12]]
    y.sum().backward()
    assert w.grad.tolist() == [4, 6]
