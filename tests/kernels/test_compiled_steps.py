"""The compiled step of Adam, and loops of several results."""

import numpy as np
import pytest

import genesis
from genesis.kernels.cpu import optim as steps_on_cpu
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or no fused multiply-add here")


def _sum_and_product(x, y):
    return x + y, x * y


@pytest.fixture(scope="module")
def both():
    return loops.ufunc("sum_and_product", _sum_and_product, "float", operands=2, narrow=True, results=2)


@pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 100])
def test_a_loop_of_two_results(both, n):
    x, y = np.arange(n, dtype=np.float32), np.linspace(-1, 1, n, dtype=np.float32)
    total, product = both(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(product, x * y)


def test_layouts_and_overlap_of_two_results(both):
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    y = np.float32(3)
    for a in (x[:, ::2], x[::-1], x.T, x[:, ::-3], np.broadcast_to(x[:1], (3, 20))):
        total, product = both(a, y)
        np.testing.assert_array_equal(total, a + y)
        np.testing.assert_array_equal(product, a * y)
    wide = np.zeros((20, 6), np.float32)
    both(x[0], y, out=(wide[:, 1], wide[:, 4]))
    np.testing.assert_array_equal(wide[:, 1], x[0] + y)
    np.testing.assert_array_equal(wide[:, 4], x[0] * y)
    assert not wide[:, [0, 2, 3, 5]].any()
    z = x.copy()
    both(z[0, :-1], z[0, 1:], out=(z[1, :-1], z[0, :-1]))  # one of the results is where an operand is
    np.testing.assert_array_equal(z[1, :-1], x[0, :-1] + x[0, 1:])
    np.testing.assert_array_equal(z[0, :-1], x[0, :-1] * x[0, 1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(LARGE["elements"],), (97, 211), (LARGE["elements"] * 5 + 3,)])
def test_the_compiled_step_has_the_bits_of_the_blocks(dtype, shape):
    rng = np.random.default_rng(0)
    first = [rng.normal(size=shape).astype(dtype) for _ in range(3)] + [rng.random(shape).astype(dtype)]
    first[1].flat[:3] = np.nan, np.inf, 0
    compiled, blocks = [[a.copy() for a in first] for _ in range(2)]
    numbers = 0.9, 0.999, 0.0316, 1e-8, -0.01, 0.99
    with np.errstate(all="ignore"):
        for _ in range(3):
            p, g, m, v = compiled
            steps_on_cpu.adam_step.kernel(p, g, m, v, None, *numbers)
            steps_on_cpu._block(*blocks, np.empty(shape, dtype), *numbers)
    for a, b in zip(compiled, blocks, strict=True):
        np.testing.assert_array_equal(a, b)
    assert steps_on_cpu._compiled.cache_info().currsize


def test_many_small_steps_are_compiled_and_change_no_bit(monkeypatch):
    monkeypatch.setattr(steps_on_cpu, "OFTEN", 4)
    monkeypatch.setitem(steps_on_cpu._small, "steps", 0)
    calls = []
    block = steps_on_cpu._block
    monkeypatch.setattr(steps_on_cpu, "_block", lambda *a: (calls.append(len(a[0])), block(*a)))
    ends = []
    for often in (4, 1 << 62):
        steps_on_cpu._small["steps"] = 0
        monkeypatch.setattr(steps_on_cpu, "OFTEN", often)
        p = genesis.nn.Parameter(genesis.linspace(-1, 1, 7))
        optimizer = genesis.optim.AdamW([p], lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        ends.append(p.detach())
    assert genesis.equal(*ends)
    assert calls == [7] * (3 + 6)


def test_a_large_parameter_is_trained_as_a_small_one():
    a = genesis.nn.Parameter(genesis.linspace(-1, 1, LARGE["elements"] + 5))
    b = genesis.nn.Parameter(a.detach()[:7].clone())
    for p in (a, b):
        optimizer = genesis.optim.AdamW([p], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
    assert genesis.equal(a.detach()[:7], b.detach())
    assert a._version == 5


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
@pytest.mark.parametrize("number", [float, np.float64, np.float32, int])
def test_numbers_of_numpy_are_options_as_pythons_are(number, dtype):
    found = []
    for size in (7, LARGE["elements"] + 1):
        p = genesis.nn.Parameter(genesis.ones(size, dtype=dtype))
        optimizer = genesis.optim.AdamW([p], lr=0.1, eps=1.0, weight_decay=0.0)
        optimizer.param_groups[0]["eps"] = number(1)
        optimizer.param_groups[0]["lr"] = number(1)
        (p * p).sum().backward()
        optimizer.step()
        found.append(p[0].item())
    assert found[0] == pytest.approx(1 - 2 / 3, rel=1e-6)
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def _params(dtypes=("float32",)):
    rng = np.random.default_rng(3)
    shapes = [(3,), (4, 5), (), (0, 2), (17,), (2, 3, 4)]
    return [
        genesis.nn.Parameter(genesis.tensor(np.asarray(rng.normal(size=s), dtypes[i % len(dtypes)])))
        for i, s in enumerate(shapes)
    ]


def _steps(params, count=3, layout=lambda a: a, make=genesis.optim.AdamW, **options):
    rng = np.random.default_rng(4)
    optimizer = make(params, lr=0.1, **options)
    for _ in range(count):
        for p in params:
            p.grad = genesis.from_numpy(layout(np.asarray(rng.normal(size=p.shape), p.detach().numpy().dtype)))
        optimizer.step()
    return optimizer


def _ends(params, optimizer):
    states = [optimizer.state[p][name] for p in params for name in ("exp_avg", "exp_avg_sq")]
    return [t.detach().numpy() for t in (*params, *states)], [t._version for t in (*params, *states)]


@pytest.fixture
def native_calls(monkeypatch):
    monkeypatch.setitem(steps_on_cpu._small, "steps", steps_on_cpu.OFTEN)
    calls = []
    compiled = steps_on_cpu._compiled_rows

    def counting(letter):
        return lambda *a: (calls.append(a[1]), compiled(letter)(*a))

    monkeypatch.setattr(steps_on_cpu, "_compiled_rows", counting)
    return calls


@pytest.mark.parametrize("make", [genesis.optim.AdamW, genesis.optim.Adam])
@pytest.mark.parametrize(
    "layout", [np.copy, lambda a: a.copy("F"), lambda a: np.stack([a, a], -1)[..., 0]], ids=["rows", "columns", "steps"]
)
def test_the_steps_of_all_parameters_are_one_call_with_the_same_bits(native_calls, monkeypatch, make, layout):
    together = _params()
    values, versions = _ends(together, _steps(together, layout=layout, make=make, weight_decay=0.1))
    assert native_calls == [6, 6, 6]
    apart = _params()
    monkeypatch.setattr(make, "_update_group", genesis.optim.Optimizer._update_group)
    expected, known = _ends(apart, _steps(apart, layout=layout, make=make, weight_decay=0.1))
    assert len(native_calls) == 3
    for a, b in zip(values, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert versions == known


def test_parameters_of_two_dtypes_are_two_calls(native_calls):
    params = _params(("float32", "float64"))
    _steps(params)
    assert native_calls == [3, 3] * 3


def test_what_the_kernel_does_not_take_has_its_turn(native_calls, monkeypatch):
    def params():
        some = _params()
        some[2] = genesis.nn.Parameter(genesis.ones(3, 4).t())  # not contiguous
        some[4] = genesis.nn.Parameter(genesis.ones(3).half())
        some.append(genesis.nn.Parameter(genesis.ones(3) + 1j))
        return some

    together, apart = params(), params()
    values, versions = _ends(together, _steps(together))
    assert native_calls == [2, 1, 1] * 3
    monkeypatch.setattr(genesis.optim.Adam, "_update_group", genesis.optim.Optimizer._update_group)
    expected, known = _ends(apart, _steps(apart))
    for a, b in zip(values, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert versions == known


def test_large_parameters_go_by_themselves(native_calls):
    params = [genesis.nn.Parameter(genesis.linspace(-1, 1, n)) for n in (5, LARGE["elements"] + 1, 7)]
    alone = genesis.nn.Parameter(params[1].detach().clone())
    optimizer = genesis.optim.AdamW(params, lr=0.1)
    for p in (*params, alone):
        p.grad = p.detach() * 2
    optimizer.step()
    genesis.optim.AdamW([alone], lr=0.1).step()
    assert native_calls == [2]
    assert genesis.equal(params[1], alone)


def test_two_parameters_on_the_same_memory_change_one_after_the_other(native_calls):
    memory = np.ones(4, np.float32)
    params = [genesis.nn.Parameter(genesis.from_numpy(memory)) for _ in range(2)]
    optimizer = genesis.optim.AdamW(params, lr=0.5, weight_decay=0.0)
    for p in params:
        p.grad = genesis.ones(4)
    optimizer.step()
    assert native_calls == [2]
    np.testing.assert_allclose(memory, 0.0, atol=1e-6)


def test_parameters_that_missed_a_step_have_numbers_of_their_own(native_calls):
    params = _params()
    optimizer = genesis.optim.AdamW(params, lr=0.1)
    for k in range(3):
        optimizer.zero_grad()
        for i, p in enumerate(params):
            if k or i % 2:
                p.grad = genesis.ones_like(p)
        optimizer.step()
    assert native_calls == [3, *[1] * 6, *[1] * 6]
    assert [optimizer.state[p]["step"] for p in params] == [2, 3] * 3


def test_a_method_of_a_subclass_is_asked():
    class Counting(genesis.optim.AdamW):
        seen = 0

        def update(self, param, grad, state, group):
            type(self).seen += 1
            super().update(param, grad, state, group)

    _steps(_params(), make=Counting)
    assert Counting.seen == 18


def test_another_kernel_is_asked(native_calls, monkeypatch):
    from genesis.core.call import kernels
    from genesis.ops.learning.update import adam_step

    table, name = adam_step.op.kernels, "fused.adam_step"
    monkeypatch.setitem(table, np.ndarray, table[np.ndarray])  # what `attach` changes is as before at the end
    monkeypatch.setitem(kernels.FUSED, name, kernels.FUSED[name])
    seen = []
    kernels.attach(adam_step, np.ndarray, lambda *a: seen.append(a[0].shape))
    _steps(_params(), count=1)
    assert len(seen) == 6
    assert native_calls == []


@pytest.mark.parametrize("alone", [False, True])
def test_memory_that_others_may_read_is_copied_before_a_step(native_calls, alone):
    x, y = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    lent = []
    x.register_hook(lent.append)
    y.register_hook(lent.append)
    (x + y).backward(genesis.ones(3))
    p = lent[0].requires_grad_()
    if alone:
        averages = genesis.zeros(3), genesis.ones(3)
        with genesis.no_grad():
            genesis.ops.learning.update.adam_step(p, genesis.ones(3), *averages, None, 0.9, 0.9, 1.0, 1.0, -1.0, None)
    else:
        optimizer = genesis.optim.AdamW([p], lr=0.5)
        p.grad = genesis.ones(3)
        optimizer.step()
    assert p.tolist() != [1.0, 1.0, 1.0]
    assert lent[1].tolist() == [1.0, 1.0, 1.0]


def test_the_objects_of_arrays_are_as_known():
    from genesis.kernels.llvm import native

    assert object.__basicsize__ == native.ARRAY_DATA
