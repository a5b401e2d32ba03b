"""Products of 16-bit matrices whose rows do not begin at multiples of 16 bytes, by a stand-in of cuBLASLt."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started
from library_stand_ins import CublasLt

import genesis
from genesis import jit
from genesis.core.graph.tensor import wrap
from genesis.cuda.arrays import MEMORY
from genesis.cuda.dlpack import taken
from genesis.cuda.kernels import losses, padded
from genesis.cuda.libraries import loading
from genesis.cuda.steps.apart import apart, is_apart
from genesis.nn import functional as F


@pytest.fixture
def products(monkeypatch):
    """All products that can gain by copies are large enough."""
    monkeypatch.setattr(padded, "RATES", {**padded.RATES, 2: 1.0, 4: 1.0, 8: 1.0})
    with emulated() as driver:
        lt = CublasLt(driver)
        with loading.standing_in(cublaslt=lt):
            yield lt


def tensors(*shapes, dtype=genesis.bfloat16):
    genesis.manual_seed(1)
    return [genesis.randn(*shape).to(dtype) for shape in shapes]


FORMS = {  # a function, shapes, and the leading dimensions of the left, the right and the result
    "rows": (lambda x, y: x @ y, [(5, 7), (7, 9)], (8, 16, 16)),
    "columns": (lambda x, y: x.t() @ y.t(), [(7, 5), (9, 7)], (8, 8, 16)),
    "all but what it gives": (lambda x, y: x @ y, [(5, 7), (7, 16)], (8, 16, 16)),
    "only what it gives": (lambda x, y: x @ y.t(), [(6, 16), (9, 16)], (16, 16, 16)),
    "a part of more": (lambda x, y: x[:, 1:8] @ y[:, :16], [(5, 16), (7, 24)], (8, 24, 16)),
    "a batch": (lambda x, y: x @ y, [(4, 5, 7), (4, 7, 9)], (8, 16, 16)),
    "a batch that shares one side": (lambda x, y: x @ y, [(5, 7), (4, 7, 9)], (8, 16, 16)),
    "matrices that begin anywhere": (lambda x, y: x[:, 1:] @ y, [(4, 6, 4), (4, 4, 8)], (8, 8, 8)),
    "turned batches": (lambda x, y: x.transpose(1, 2) @ y.transpose(1, 2), [(2, 7, 5), (2, 9, 7)], (8, 8, 16)),
    "a layer with a bias": (F.linear, [(4, 5, 7), (9, 7), (9,)], (8, 8, 16)),
    "wide rows": (F.linear, [(2, 5, 8), (1025, 8)], (8, 8, 1088)),
}  # fmt: skip


DIVIDED = {  # a function, shapes, and of each product rows, columns (of the result) and whether it has a bias
    "columns of the result": (lambda x, y: x @ y, [(6, 16), (16, 19)], [(6, 16, False), (6, 3, False)]),
    "a layer": (F.linear, [(2, 3, 16), (19, 16), (19,)], [(6, 16, True), (6, 3, True)]),
    "a sum": (lambda x, y: x @ y, [(6, 19), (19, 16)], [(6, 16, False)] * 2),
    "rows that are columns": (lambda x, y: x.t() @ y, [(24, 11), (24, 16)], [(8, 16, False), (3, 16, False)]),
    "sums and columns, with a bias": (F.linear, [(5, 9), (17, 9), (17,)], [(5, 16, True), (5, 16, False), (5, 1, True), (5, 1, False)]),
    "a single one": (lambda x, y: x @ y, [(1, 16), (16, 19)], [(1, 16, False), (1, 3, False)]),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVIDED)
def test_a_large_product_is_of_extents_that_tensor_cores_take(name, products, monkeypatch):
    """And small ones of what is left, of which those of a sum are added."""
    monkeypatch.setattr(padded, "LARGE", 0)
    function, shapes, made = DIVIDED[name]
    same(function, *tensors(*shapes), tolerance=2e-2)
    assert [(rows, columns, biased) for _, rows, columns, _, biased in products.products] == made


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_the_library_multiplies_copies_whose_rows_are_further_apart(name, dtype, products):
    function, shapes, rows = FORMS[name]
    same(function, *tensors(*shapes, dtype=dtype), tolerance=2e-2)
    assert (products.rows, products.aligned) == ([rows], [True])
    there = [t.to("cuda") for t in tensors(*shapes, dtype=dtype)]
    assert function(*there).is_contiguous()


def test_gradients(products):
    def gradients(x, w, b):
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        F.linear(x, w, b).float().square().sum().backward()
        return x.grad, w.grad, b.grad

    same(gradients, *tensors((6, 7), (9, 7), (9,), dtype=genesis.float16), tolerance=5e-2)
    assert products.aligned == [True] * 3


def test_other_dtypes_and_what_begins_at_such_multiples_stay_as_they_are(products):
    x, y = [t.to("cuda") for t in tensors((5, 7), (7, 9), dtype=genesis.float32)]
    _ = x @ y
    x, y = [t.to("cuda") for t in tensors((5, 8), (8, 16))]
    _ = x @ y
    assert products.rows == [(7, 9, 9), (8, 16, 16)]


def described(shape, strides=None):
    """An array as far as its layout goes."""
    strides = (shape[1], 1) if strides is None else strides
    return SimpleNamespace(shape=shape, strides=strides, address=512, dtype=np.dtype(np.float16))


def test_copies_are_made_where_they_gain_more_than_they_take():
    rows, width, classes = 16384, 768, 50257
    logits, turned = described((rows, classes)), described((classes, rows), (1, classes))
    x, w = described((rows, width)), described((classes, width))
    wt = described((width, classes), (1, width))
    dx = described((rows, width))
    assert padded.pays(x, wt, logits) and padded.pays(logits, w, dx) and padded.pays(turned, x, w)
    even = described((rows, classes + 7)), described((width, classes + 7), (1, width))
    assert not padded.pays(x, even[1], even[0])  # nothing to gain
    assert not padded.pays(described((rows, 64)), described((64, classes)), logits)  # copies move as much
    assert not padded.pays(described((128, 256)), described((256, 10)), described((128, 10)))  # and take as long
    assert not padded.pays(logits, described((classes, 1)), described((rows, 1)))
    gaps = described((rows, classes), (padded.row_step(classes, 2), 1))
    assert not padded.pays(x, wt, gaps) and not padded.pays(gaps, w, dx)


# ---- compiled steps: such values are laid out so from the first


@pytest.fixture
def library():
    """The real rates: products here are too small for copies."""
    with emulated() as driver:
        lt = CublasLt(driver)
        with loading.standing_in(cublaslt=lt):
            yield lt


def compiled(library, step, *args):
    """What a step gives as a graph, and the step; the library knows of its products as far as they were compiled."""
    run = genesis.compile(step)
    run(*args)
    library.rows.clear(), library.aligned.clear()
    for _ in range(3):
        got = run(*args)
    (entry,) = run._recent
    assert entry.step.graphs == 1 and not entry.step.why
    return got, entry.step


def close(got, expected):
    for a, b in zip(got, expected, strict=True):
        a, b = a.detach().cpu().float().numpy(), b.detach().cpu().float().numpy()
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-2 * abs(b).max())


def head(rows=24, width=16, classes=131):
    """The head of a language model, its loss and gradients: arguments are on the CPU."""
    genesis.manual_seed(1)
    x, w = genesis.randn(2, rows // 2, width), genesis.randn(classes, width)
    target = genesis.randint(0, classes, (rows,))

    def step(x, w, target):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        with genesis.autocast(x.device.type, genesis.bfloat16):
            z = F.linear(x, w)
        loss = F.cross_entropy(z.view(-1, classes).float(), target)
        loss.backward()
        return loss.detach(), x.grad, w.grad

    return step, [x, w, target]


@pytest.fixture
def copies(monkeypatch):
    """The shapes of such values that were copied from strides to other strides."""
    shapes, assign = [], MEMORY.__class__.assign

    def counted(self, target, source):
        if target.strides != source.strides and 131 in target.shape:
            shapes.append(target.shape)
        assign(self, target, source)

    monkeypatch.setattr(MEMORY.__class__, "assign", counted)
    return shapes


def test_logits_and_their_gradient_have_rows_apart(library, copies):
    step, args = head()
    got, made = compiled(library, step, *[t.to("cuda") for t in args])
    close(got, step(*args))
    assert set(library.aligned) == {True} and set(library.rows) == {(16, 16, 136), (136, 16, 16)}
    logits = [v.spec for call in made.program.calls for v in call.outs if v.spec.shape[-1:] == (131,)]
    assert {spec.strides for spec in logits if spec.strides} == {(1632, 136, 1), (136, 1)}
    assert copies == []


def test_without_the_library_rows_lie_together():
    with emulated() as driver:
        step, args = head()
        got, made = compiled(CublasLt(driver), step, *[t.to("cuda") for t in args])
    close(got, step(*args))
    assert not any([v.spec.strides for call in made.program.calls for v in call.outs])


def test_what_loops_write_has_rows_apart_and_its_room_in_the_arena(library, copies):
    """Operands and gradients of products that kernels of loops write and read."""
    genesis.manual_seed(1)
    x, w, v = genesis.randn(64, 512) / 20, genesis.randn(512, 131), genesis.randn(131, 512)

    def step(x, w, v):
        x, w, v = (t.detach().requires_grad_() for t in (x, w, v))
        with genesis.autocast(x.device.type, genesis.bfloat16):
            y = F.softmax((x @ w).tanh() * 2, -1).to(genesis.bfloat16) @ v
        y.float().square().sum().backward()
        return y.detach(), x.grad, w.grad, v.grad

    there = [t.to("cuda") for t in (x, w, v)]
    got, made = compiled(library, step, *there)
    close(got, step(x, w, v))
    assert all(library.aligned) and copies == []
    plan = made.memory_plan
    written = [v for v in plan.lives if v.spec.strides and v.spec.strides[0] == 136]
    assert written
    for a in written:  # nothing that lives at the same time begins before its last row is over
        for b in plan.lives:
            never = plan.lives[a].last < plan.lives[b].first or plan.lives[b].last < plan.lives[a].first
            low, high = plan.where[a].index, plan.where[b].index
            assert never or a is b or low > high or low + (a.spec.shape[0] - 1) * 272 + 262 <= high
    same_bytes = [e for e in made.explain().entries if "matmul" in e.title]
    assert same_bytes[0].written == 64 * 131 * 2  # gaps are not moved


def test_loops_that_lose_more_than_products_gain_stay_as_they_are(library):
    def step(x, w, v):
        return F.linear(x, w).tanh() @ v

    for width, gaps in ((16, 0), (512, 2)):
        x, w, v = [
            genesis.ones(*n, dtype=genesis.bfloat16, device="cuda") for n in ((8, width), (131, width), (131, width))
        ]
        program = apart(jit.trace(step, x, w, v).program)
        assert len([call for call in program.calls if is_apart(call.outs[0].spec)]) == gaps


def test_what_leaves_a_step_has_no_gaps(library):
    genesis.manual_seed(1)
    x, w = genesis.randn(8, 16).to(genesis.bfloat16), genesis.randn(131, 16).to(genesis.bfloat16)

    def step(x, w):
        z = F.linear(x, w)
        return z, z[:, 1:70], F.linear(z.relu(), w.t())

    got, _ = compiled(library, step, x.to("cuda"), w.to("cuda"))
    close(got, step(x, w))
    assert got[0].is_contiguous() and [x.stride() for x in got] == [x.stride() for x in step(x, w)]
    assert (16, 16, 131) in library.rows  # what leaves is computed where it lies


def test_what_would_need_a_copy_with_gaps_has_none(library):
    """A view that joins a row with the next."""
    x, w, v = (genesis.ones(*n, dtype=genesis.bfloat16, device="cuda") for n in ((8, 16), (131, 16), (262, 4)))
    program = jit.trace(lambda x, w, v: (F.linear(x, w).view(4, 262) @ v, F.linear(x, w) @ v[:131]), x, w, v).program
    values = [call.outs[0].spec for call in apart(program).calls]
    assert [spec.strides for spec in values if spec.shape == (8, 131)] == [None, (136, 1)]


def graded_loss(x, t):
    x = x.detach()[:, :1031].requires_grad_()
    loss = F.cross_entropy(x, t)
    loss.backward()
    return loss, x.grad


def wide_logits(step):
    genesis.manual_seed(1)
    x, t = genesis.full((5, step), float("nan")), genesis.randint(0, 1031, (5,))
    x[:, :1031], t[2] = genesis.randn(5, 1031), -100
    return x, t


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [1088, 1040, 1032, 1031])
def test_losses_of_rows_with_gaps(step, way):
    """What is behind a row is read, and nothing else of it."""
    with emulated(way):
        x, t = wide_logits(step)
        same(graded_loss, x, t, tolerance=1e-6)
        shared = wrap(taken(x.to("cuda")))  # of whose memory nothing is known
        loss = F.cross_entropy(shared[:, :1031], t.to("cuda"))
        np.testing.assert_allclose(loss.item(), graded_loss(x, t)[0].item(), rtol=1e-6)


@pytest.mark.parametrize("classes", [64, 67])
def test_gradients_of_a_last_layer_are_written_first_and_added_up_then(classes, library):
    """What is in new memory is not read: of many classes that would be as much as the gradient itself."""
    x, w = genesis.randn(9, 16).bfloat16(), genesis.randn(classes, 16).bfloat16()
    t, options = genesis.randint(0, classes, (9,)), genesis.nn.LinearCrossEntropyOptions(False, 4, None)
    genesis.full((classes, 16), float("nan"), dtype=genesis.bfloat16, device="cuda")  # whose memory is free again

    def gradients(x, w, t):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        return genesis.autograd.grad(F.linear_cross_entropy(x, w, t, options=options), [x, w])

    same(gradients, x, w, t, tolerance=2e-2)


def test_rows_of_losses_are_gone_through_16_bytes_at_a_time(library):
    """Of logits with gaps behind their rows, up to a multiple of 16 elements: parameters say so."""
    step, args = head(classes=1031)
    values, start = [], losses.Row.start

    def noted(self, on, stream, grid, given):
        values.append(given[-4:-1])
        start(self, on, stream, grid, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses.Row, "start", noted)
        got, _ = compiled(library, step, *[t.to("cuda") for t in args])
    close(got, step(*args))
    assert {*values[-2:]} == {(1031, 1040, 1088)}


@needs_triton
@pytest.mark.slow
def test_machine_code_of_losses_of_rows_with_gaps():
    def step():
        x, t = wide_logits(1088)
        graded_loss(x.to("cuda", genesis.bfloat16), t.to("cuda"))

    (loss, *_) = [each for each in started(step) if isinstance(each[0], losses.Row)]
    assert "LDG.E.128" in machine_code(*loss)
