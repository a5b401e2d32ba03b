"""Graphs and hooks where frameworks differ in what they call when: each program runs in Genesis and, where it is
installed, in PyTorch.
"""

from __future__ import annotations

import warnings

import pytest

import genesis

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture(params=["genesis", pytest.param("torch", marks=pytest.mark.parity)])
def lib(request):
    return genesis if request.param == "genesis" else pytest.importorskip("torch")


def values(t):
    """Numbers of tensors in any structure."""
    if isinstance(t, (tuple, list)):
        return [values(part) for part in t]
    return t.detach().tolist() if hasattr(t, "detach") else t


def leaf(lib, *numbers):
    return lib.tensor([float(n) for n in numbers], requires_grad=True)


class Log(list):
    """What hooks were called with; each method makes a hook."""

    def tensor(self, name):
        return lambda g: self.append((name, values(g)))

    def pre(self, name):
        return lambda gs: self.append((name, values(gs)))

    def post(self, name):
        return lambda gi, go: self.append((name, values(gi), values(go)))


# ---- what runs for the gradient of a tensor inside the graph


def hooked(lib, log):
    x = leaf(lib, 1, 2)
    y = x * 3
    y.register_hook(log.tensor("tensor"))
    y.grad_fn.register_prehook(log.pre("pre"))
    y.grad_fn.register_hook(log.post("post"))
    y.retain_grad()
    return x, y


def test_the_node_of_an_input_of_grad_does_not_run(lib):
    log = Log()
    _, y = hooked(lib, log)
    (g,) = lib.autograd.grad((y * 2).sum(), y, retain_graph=True)
    assert log == [("tensor", [2, 2])]
    assert values(g) == values(y.grad) == [2, 2]
    assert values(lib.autograd.grad(y, y, lib.ones(2))) == [[1, 1]]
    assert log[1:] == [("tensor", [1, 1])]


def test_the_node_of_an_input_runs_where_another_input_lies_below(lib):
    log = Log()
    x, y = hooked(lib, log)
    gy, gx = lib.autograd.grad((y * 2).sum(), [y, x])
    assert [entry[0] for entry in log] == ["tensor", "pre", "post"]
    assert values([gy, gx]) == [[2, 2], [6, 6]]


def test_tensor_hooks_change_what_grad_returns_but_prehooks_do_not(lib):
    x = leaf(lib, 1, 2)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    z = (y * 2).sum()
    assert values(lib.autograd.grad(z, y, retain_graph=True)) == [[20, 20]]
    assert values(lib.autograd.grad(z, [y, x])) == [[2, 2], [6000, 6000]]


def test_hooks_of_a_leaf_in_grad(lib):
    log = Log()
    x = leaf(lib, 1, 2)
    y = x * 3
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(log.pre("pre"))
    accumulator.register_hook(log.post("post"))
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    assert values(lib.autograd.grad(y.sum(), x)) == [[6, 6]]
    assert log == [] and x.grad is None


def test_backward_to_a_tensor_that_is_no_leaf_sets_its_grad(lib):
    log = Log()
    x = leaf(lib, 1, 2)
    y = x * 3
    y.grad_fn.register_hook(log.post("post"))
    (y * 2).sum().backward(inputs=[y], retain_graph=True)
    assert values(y.grad) == [2, 2] and x.grad is None and len(log) == 1
    assert y.retains_grad
    lib.autograd.backward((y * 5).sum(), inputs=[y, x])
    assert values(y.grad) == [7, 7] and values(x.grad) == [15, 15]


# ---- the accumulation of leaves


def test_hooks_around_the_accumulation_see_and_replace_grad(lib):
    log = Log()
    x = leaf(lib, 1, 2)
    y = x * 3
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda gs: (log.append(("pre", values(gs), values(x.grad))), (gs[0] * 2,))[1])
    accumulator.register_hook(lambda gi, go: log.append(("post", values(gi), values(go), values(x.grad))))
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", values(t.grad))))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert log == [
        ("pre", [[30, 30]], None), ("accumulated", [60, 60]), ("post", [], [[60, 60]], [60, 60]),
        ("pre", [[30, 30]], [60, 60]), ("accumulated", [120, 120]), ("post", [], [[60, 60]], [120, 120]),
    ]  # fmt: skip


def test_a_hook_after_the_accumulation_has_the_last_word(lib):
    x = leaf(lib, 1, 2)
    y = x * 3
    y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: setattr(x, "grad", lib.tensor([7.0, 7.0])))
    y.sum().backward()
    assert values(x.grad) == [7, 7]


# ---- versions of a tensor


def test_a_retained_gradient_is_that_of_the_last_version(lib):
    x = leaf(lib, 3)
    a = x * 1
    a.retain_grad()
    a.mul_(2)
    assert a.retains_grad
    (a * 5).backward()
    assert values([a.grad, x.grad]) == [[5], [10]]


@pytest.mark.parametrize("write", ["view", "base"])
def test_retained_gradients_of_views_and_bases_move_on_together(lib, write):
    x = leaf(lib, 3, 4)
    a = x * 1
    v = a[0]
    a.retain_grad()
    v.retain_grad()
    (v if write == "view" else a).mul_(2)
    assert a.retains_grad and v.retains_grad
    (v * 5).backward()
    assert values([a.grad, v.grad, x.grad]) == [[5, 0], 5, [10, 0]]


def test_a_view_whose_base_is_written_to_keeps_its_gradient(lib):
    w = leaf(lib, 2)
    rows = lib.zeros(4, dtype=w.dtype)
    rows[0] = w * 1
    views = []
    for i in range(3):
        views.append(rows[i])
        views[i].retain_grad()
        rows[i + 1] = views[i] + w
    rows[3].backward()
    assert values([v.grad for v in views]) == [1, 1, 1]
    assert all(v.retains_grad for v in views)


@pytest.mark.parametrize("uses", [[], [0], [1], [0, 1]], ids=str)
def test_the_gradient_of_a_view_is_kept_where_it_was_used_last(lib, uses):
    x = leaf(lib, 3, 4)
    base = x * 1
    view = base[:1]
    view.retain_grad()
    parts = [view * 5]
    for i in range(2):
        base.mul_(2)
        if i in uses:
            parts.append(view * 7)
    view.retain_grad()  # it does already
    sum(parts).sum().backward()
    assert values(view.grad) == [7 if uses else 5]
    assert values(x.grad) == [5 + 7 * sum(2 ** (i + 1) for i in uses), 0]


def test_tensor_hooks_stay_with_the_version_they_were_put_on(lib):
    log = Log()
    x = leaf(lib, 3)
    a = x * 1
    a.register_hook(log.tensor("before"))
    a.mul_(2)
    a.register_hook(log.tensor("after"))
    (a * 5).backward()
    assert log == [("after", [5]), ("before", [10])]


WRITES = {
    "zero_": lambda lib, a: a.zero_(),
    "fill_": lambda lib, a: a.fill_(3),
    "copy_": lambda lib, a: a.copy_(lib.tensor([1.0, 2.0])),
    "setitem": lambda lib, a: a.__setitem__(slice(None), 1.0),
    "normal_": lambda lib, a: a.normal_(),
    "uniform_": lambda lib, a: a.uniform_(),
    "bernoulli_": lambda lib, a: a.bernoulli_(0.5),
    "exponential_": lambda lib, a: a.exponential_(),
    "masked_fill_": lambda lib, a: a.masked_fill_(lib.tensor([True, True]), 1.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_value_that_was_written_over_gets_zeros(lib, write):
    x = leaf(lib, 3, 4)
    a = x * 2
    WRITES[write](lib, a)
    assert a.requires_grad
    a.sum().backward()
    assert values(x.grad) == [0, 0]
    b = x * 2
    WRITES[write](lib, b[:1] if write not in ("copy_", "masked_fill_") else b)
    assert values(lib.autograd.grad(b.sum(), x)) == [[0, 0 if write in ("copy_", "masked_fill_") else 2]]


def test_fill_with_a_tensor_that_has_history(lib):
    x, v = leaf(lib, 3, 4), lib.tensor(3.0, requires_grad=True)
    a = x * 2
    a.fill_(v)
    assert values(lib.autograd.grad(a.sum(), [x, v])) == [[0, 0], 2]


def test_index_fill_counts_a_row_that_is_named_twice_once(lib):
    x, v = leaf(lib, 3, 4, 5), lib.tensor(2.0, requires_grad=True)
    y = x.index_fill(0, lib.tensor([0, 0, 1]), v)
    assert values(lib.autograd.grad(y.sum(), [x, v])) == [[0, 0, 1], 2]


def test_detach_in_place_of_a_saved_tensor(lib):
    x = leaf(lib, 2, 3)
    a = x * 1
    y = a * a
    a.detach_()
    with pytest.raises(RuntimeError, match="detach"):
        y.sum().backward()
    b = x.exp()
    z = b * 1
    b.detach_()  # the node that made it keeps a value of its own
    z.sum().backward()
    assert x.grad is not None


def test_refused_assignments(lib):
    x = leaf(lib, 1, 2)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    with pytest.raises((RuntimeError, TypeError), match="requires grad"):
        x.data = lib.tensor([1, 2])
    assert x.grad is None and x.dtype == lib.float32


# ---- operations with several results


def test_one_node_for_all_pieces(lib):
    log = Log()
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x.unbind(0)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)
    b.register_hook(log.tensor("b"))
    a.register_hook(log.tensor("a"))
    b.register_hook(log.tensor("b again"))
    a.grad_fn.register_prehook(log.pre("pre"))
    a.grad_fn.register_hook(log.post("post"))
    (a * b).sum().backward()
    assert log == [
        ("b", [1, 2]),
        ("b again", [1, 2]),
        ("a", [3, 4]),
        ("pre", [[3, 4], [1, 2]]),
        ("post", [[[3, 4], [1, 2]]], [[3, 4], [1, 2]]),
    ]


@pytest.mark.parametrize("cut", ["unbind", "split", "chunk"])
def test_a_piece_that_nothing_used_has_no_gradient(lib, cut):
    log = Log()
    x = leaf(lib, 1, 2)
    a, b = {"unbind": lambda: x.unbind(0), "split": lambda: x.split(1), "chunk": lambda: x.chunk(2)}[cut]()
    a.retain_grad()
    b.retain_grad()
    a.register_hook(log.tensor("a"))
    b.register_hook(lambda g: g * 10)
    b.grad_fn.register_prehook(log.pre("pre"))
    (b * 2).sum().backward(retain_graph=True)
    twenty = 20 if cut == "unbind" else [20]
    assert log == [("a", None), ("pre", [None, twenty])]
    assert a.grad is None and values(b.grad) == twenty and values(x.grad) == [0, 20]


def test_writes_to_pieces():
    x = leaf(genesis, 1, 2, 3, 4)
    y = x * 1
    a, b = y.split(2)
    a.mul_(3)
    (y.sum() + (b * 5).sum() + (a * 7).sum()).backward()
    assert values(x.grad) == [24, 24, 6, 6]


def test_results_of_a_function_without_a_gradient(lib):
    log = Log()

    class Two(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    x = leaf(lib, 1)
    a, b = Two.apply(x)
    a.grad_fn.register_prehook(log.pre("pre"))
    a.grad_fn.register_hook(log.post("post"))
    b.backward()
    assert log == [("pre", [None, [1]]), ("post", [[3]], [None, [1]])]


@pytest.mark.parametrize("wrong", ["shape", "type", "dtype"])
def test_hooks_that_return_something_else(lib, wrong):
    x = leaf(lib, 1)
    y = x * 3
    y.register_hook(lambda g: {"shape": lib.ones(2), "type": 3.0, "dtype": lib.ones(1, dtype=lib.float64)}[wrong])
    with pytest.raises((RuntimeError, TypeError), match="hook"):
        y.backward()


# ---- saved tensors


def test_nested_saved_tensors_hooks_use_the_innermost(lib):
    hooks, log = lib.autograd.graph.saved_tensors_hooks, []
    x = leaf(lib, 2)
    with hooks(lambda t: (log.append("outer"), t)[1], lambda t: t):
        with hooks(lambda t: (log.append("inner"), t)[1], lambda t: t):
            y = x.exp()
        z = y.sin()
    z.backward()
    assert log == ["inner", "outer"] and x.grad is not None


def test_a_pack_hook_that_writes_is_refused(lib):
    a = leaf(lib, 2) * 1
    with (
        lib.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="pack.hook"),
    ):
        a.exp()


# ---- rules


def test_copysign_and_nextafter(lib):
    x = lib.tensor([3.0, -2.0, 1.0], requires_grad=True)
    y = lib.tensor([-1.0, 2.0, 1.0], requires_grad=True)
    g, h = lib.autograd.grad((x.copysign(y) ** 2).sum(), [x, y], create_graph=True)
    assert values([g, h]) == [[6, -4, 2], [0, 0, 0]]
    assert values(lib.autograd.grad(g.sum(), [x, y])) == [[2, 2, 2], [0, 0, 0]]
    assert values(lib.autograd.grad(lib.nextafter(x, y).sum(), [x, y])) == [[1, 1, 0], [0, 0, 0]]


# ---- modules


def test_full_backward_hooks_wait_for_a_gradient_of_the_output(lib):
    log = Log()
    module = lib.nn.ReLU()
    module.forward = lambda x: x * x
    module.register_full_backward_hook(lambda m, gi, go: log.append((values(gi), values(go))))
    x = leaf(lib, 1, 2)
    (g,) = lib.autograd.grad(module(x).sum(), x, create_graph=True)
    assert log == [([[2, 4]], [[1, 1]])]
    g.sum().backward()  # comes to the input, but not through the output
    assert len(log) == 1 and values(x.grad) == [2, 2]


def test_full_backward_hooks_run_in_each_backward(lib):
    log = []
    module = lib.nn.Tanh()
    module.register_full_backward_hook(lambda m, gi, go: log.append(values(go)))
    y = module(leaf(lib, 1, 2)).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert log == [[[1, 1]]] * 2


# ---- modes


def test_inference_tensors_may_begin_to_require_grad_inside(lib):
    with lib.inference_mode():
        x = lib.ones(2).requires_grad_()
        y = lib.ones(2, requires_grad=True)
        z = lib.ones(2)
    assert x.requires_grad and y.requires_grad and x.is_inference()
    with pytest.raises(RuntimeError, match="inference"):
        z.requires_grad_()


def test_anomaly_mode_warns_when_it_is_made_and_of_errors(lib):
    x = leaf(lib, 0)

    def told(program):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program()
        return [str(w.message).splitlines()[0] for w in caught]

    def fails(inside):
        y = None if inside else lib.sqrt(x) * 0
        with pytest.raises(RuntimeError), lib.autograd.detect_anomaly():
            ((lib.sqrt(x) * 0) if inside else y).sum().backward()

    enabled = "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
    assert told(lib.autograd.detect_anomaly) == [enabled]
    assert told(lambda: lib.autograd.set_detect_anomaly(True).__exit__(None, None, None)) == []
    first, second = told(lambda: fails(True))
    assert (
        first == enabled
        and second.startswith("Error detected in SqrtBackward")
        and "Traceback of forward call that caused the error" in second
    )
    first, second = told(lambda: fails(False))
    assert "No forward pass information available" in second


# ---- forward mode


def test_dual_tensors(lib):
    fw = lib.autograd.forward_ad
    value, tangent = lib.tensor([3.0, 4.0]), lib.tensor([1.0, 2.0])
    with fw.dual_level() as level:
        assert level == 0
        dual = fw.make_dual(value, tangent, level=level)
        dual *= 2
        assert values(fw.unpack_dual(dual)) == [[6, 8], [2, 4]]
        assert values([value, tangent]) == [[6, 8], [2, 4]]  # the dual tensor is on the memory of both
        for pair in ((dual, lib.ones(2)), (lib.ones(2), dual)):
            with pytest.raises(RuntimeError, match="at the same level|in this level already"):
                fw.make_dual(*pair)
        across = fw.make_dual(lib.ones(2, 2), lib.ones(2, 2).t() * 5)
        across *= 2
        assert values(fw.unpack_dual(across).tangent) == [[10, 10], [10, 10]]


# ---- operations of one's own


@pytest.fixture
def namespace(lib):
    yield f"graphs{'' if lib is genesis else '_of_torch'}"
    if lib is genesis:
        genesis.library.remove("graphs::op")


def test_a_write_by_a_custom_op_is_counted(lib, namespace):
    def double(x: lib.Tensor) -> None:
        x.detach().numpy()[...] *= 2

    double.__annotations__ = {"x": lib.Tensor, "return": None}
    op = lib.library.custom_op(f"{namespace}::op", double, mutates_args=("x",))
    x = lib.ones(2)
    op(x)
    assert x._version == 1 and values(x) == [2, 2]
    b = leaf(lib, 1, 2) * 1
    c = b.sin()
    op(b)
    with pytest.raises(RuntimeError):
        c.sum().backward()


def test_setup_context_is_called_where_a_gradient_is_wanted():
    log = []
    op = genesis.library.custom_op("graphs::op", lambda x: x * 2, mutates_args=())
    op.register_autograd(
        lambda ctx, g: g * 2, setup_context=lambda ctx, inputs, output: log.append(genesis.is_grad_enabled())
    )
    try:
        op(genesis.ones(2))
        with genesis.no_grad():
            op(leaf(genesis, 1))
        assert log == []
        op(leaf(genesis, 1)).backward()
        assert log == [False]
    finally:
        genesis.library.remove("graphs::op")


def test_a_rule_for_batches_is_told_where_the_samples_are(lib):
    seen = []

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def vmap(info, in_dims, x, y):
            seen.append((tuple(in_dims), tuple(x.shape), tuple(y.shape)))
            x, y = [t if d is None else t.movedim(d, 0) for t, d in zip((x, y), in_dims, strict=True)]
            return Product.apply(x, y), 0

    x, y = lib.arange(6.0).reshape(2, 3), lib.ones(2, requires_grad=True)
    found = lib.func.vmap(Product.apply, in_dims=(1, None))(x, y)
    found.sum().backward()
    assert values(found) == [[0, 3], [1, 4], [2, 5]] and values(y.grad) == [3, 12]
    lib.func.vmap(Product.apply, in_dims=(-1, 1))(x, x)
    lib.func.vmap(lambda a: Product.apply(a + 1, y.detach()), in_dims=1)(x)
    assert seen == [((1, None), (2, 3), (2,)), ((1, 1), (2, 3), (2, 3)), ((0, None), (3, 2), (2,))]
    nested = lib.func.vmap(lib.func.vmap(Product.apply, in_dims=(1, 0)), in_dims=(2, 1))
    assert tuple(nested(lib.ones(2, 4, 3), lib.ones(4, 3, 2)).shape) == (3, 4, 2)
    assert seen[3:] == [((1, 0), (2, 4), (4, 2)), ((0, 0), (3, 4, 2), (3, 4, 2))]


def test_what_a_node_saved_under_pytorchs_names():
    x, y = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    product, power = (x * y).grad_fn, x.exp()
    assert product._saved_self is x and product._saved_other is y
    assert power.grad_fn._saved_result is not power and power.grad_fn._saved_result.tolist() == power.tolist()
    assert not hasattr(power.grad_fn, "_saved_self") and not hasattr(product, "_saved_result")
    assert (x.unsqueeze(0) @ y).grad_fn._saved_self.shape == (1, 3)
    with genesis.autograd.graph.saved_tensors_hooks(lambda t: t * 4, lambda t: t):
        packed = x.pow(2)
    assert packed.grad_fn._saved_self.tolist() == [4, 4, 4]
    power.sum().backward()
    with pytest.raises(RuntimeError, match="second time|freed|retain_graph"):
        _ = power.grad_fn._saved_result
