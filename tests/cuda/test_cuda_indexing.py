"""Kernels that read, write and add where indices say, copy in another order, and sort: the CPU's numbers, bit for bit but
for sums.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis import cuda
from genesis.core.call import writes
from genesis.cuda.kernels import firsts, networks, sorts, sums
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.launch.kernel import interpreted
from genesis.nn import functional as F


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def gradient(function):
    """The gradient of a function of a tensor and others."""

    def graded(x, *others):
        x = x.detach().requires_grad_()
        out = function(x, *others)
        if out.numel():
            (out.float().square() * 2).sum().backward()
        return (out, x.grad) if out.numel() else (out,)

    return graded


def test_memory_is_set_to_a_number_without_a_copy(gpu, monkeypatch):
    for name in ("ACTIVE", "LEVELS", "HISTORY_WATCHES"):  # of other tests, as of a generator that nobody goes on with
        monkeypatch.setattr(writes, name, [])
    x = genesis.ones(3, 4, device="cuda", dtype=genesis.float64)
    half = x.to(genesis.float16)
    before = dict(gpu.calls)
    x.zero_()
    half.fill_(-2.5)
    done = {name: count - before.get(name, 0) for name, count in gpu.calls.items() if count != before.get(name, 0)}
    assert done == {"fill": 2}
    assert not x.any() and bool((half == -2.5).all()) and x._version == half._version == 1
    half[:, 1].zero_()
    x.fill_(2.5)  # of 8 bytes, which the driver does not repeat
    assert half.sum().item() == 9 * -2.5 and x.sum().item() == 30
    with pytest.raises(RuntimeError, match="a leaf that requires grad is written to"):
        genesis.ones(2, device="cuda", requires_grad=True).zero_()
    with genesis.inference_mode():
        y = genesis.ones(2, device="cuda").zero_()
    assert not y.any()


ONE_EACH = {
    "largest": lambda x: x.max(1).values,
    "smallest": lambda x: x.min(0).values,
    "k-th": lambda x: x.kthvalue(2, 1).values,
    "gathered": lambda x: x.gather(1, genesis.tensor([[4], [0]]).to(x.device)),
    "repeated": lambda x: x.repeat_interleave(3, 1),
    "repeated all": lambda x: x.repeat_interleave(2),
    "repeated once": lambda x: x.repeat_interleave(1, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ONE_EACH)
def test_gradients_of_one_of_a_row_are_not_sorted(name, dtype, gpu, monkeypatch):
    """No two elements are added to one: each is written."""
    monkeypatch.setattr(sums, "sort_rows", None)
    x = genesis.randn(3, 5).to(getattr(genesis, dtype))
    same(gradient(ONE_EACH[name]), x, tolerance=1e-6 if dtype == "float32" else 2e-2)


def test_rows_of_an_embedding_are_read_by_one_kernel(gpu):
    """It looks whether the rows are there; numbers below 0 are none."""
    weight, index = genesis.randn(7, 4), genesis.tensor([[1, 6], [0, 1]])
    there, at = weight.to("cuda"), index.to("cuda")
    before = gpu.calls.get("launch", 0)
    got = F.embedding(at, there)
    assert gpu.calls["launch"] - before == 1
    np.testing.assert_array_equal(got.cpu().numpy(), weight[index].numpy())
    assert F.embedding(at[0, 0], there).shape == (4,)
    for wrong in (-1, 7):
        y = F.embedding(at - at + wrong, there)  # the program goes on
        with pytest.raises(IndexError, match=f"embedding: index {wrong} is out of range for 7 rows"):
            y.tolist()
    pairs = weight.to(genesis.complex128).to("cuda")  # whose elements no kernel moves
    with pytest.warns(HostWarning), pytest.raises(IndexError, match="embedding: index -2 is out of range"):
        F.embedding(at - 2, pairs).tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("width", [128, 1300])
def test_gradients_of_wide_rows_are_written_row_by_row(width, dtype, gpu):
    """All of them, also those that none names: nothing is filled with zeros first."""
    index = genesis.tensor([[5, 2, 5, 5], [0, 8, 2, 5]])
    x = genesis.zeros(9, width, dtype=getattr(genesis, dtype)).requires_grad_()
    g = genesis.randint(-4, 5, (2, 4, width)).to(x.dtype)
    computed = lambda x, g: genesis.autograd.grad(x[index.to(x.device)], x, g)  # noqa: E731
    same(computed, x, g)
    there = x.detach().to("cuda").requires_grad_(), g.to("cuda")
    kinds = [type(kernel).__name__ for kernel, _ in started(lambda: computed(*there))]
    assert {"Begins", "Sums"} <= set(kinds)


@pytest.mark.parametrize(("n", "fills"), [(8, 0), (9, 2)])
def test_rows_as_long_as_a_power_of_two_are_not_filled_up_to_be_sorted(n, fills, gpu):
    x = genesis.randn(3, n, dtype=genesis.float64)
    there = x.to("cuda")
    before = gpu.calls.get("fill", 0)
    values, indices = there.sort(1)
    assert gpu.calls.get("fill", 0) - before == fills
    assert values.tolist() == x.sort(1).values.tolist() and indices.tolist() == x.argsort(1).tolist()


READ = {
    "rows": lambda x, i: x[i],
    "of the second dimension": lambda x, i: x[:, i],
    "two together": lambda x, i: x[i, i],
    "two apart, which come first": lambda x, i: x[i, :, i],
    "apart by a new dimension": lambda x, i: x[:, i, None, i],
    "behind an ellipsis": lambda x, i: x[..., i],
    "of slices": lambda x, i: x[1:4:2, i[0, :1] - 3, ::-1],
    "that broadcast": lambda x, i: x[i[:, :1], i[:1]],
    "of a transposed tensor": lambda x, i: x.transpose(0, 2)[i],
    "none": lambda x, i: x[i[:0]],
    "of nothing": lambda x, i: x[:, :0][i],
    "int32": lambda x, i: x[i.int()],
    "gather": lambda x, i: x.gather(1, (x > 0).long()),
    "gather of fewer": lambda x, i: x.gather(2, i.abs()[:, :, None].expand(2, 2, 4)),
    "take_along_dim": lambda x, i: x.take_along_dim(x.argsort(1), 1),
    "index_select": lambda x, i: x.index_select(2, i.abs()[0]),
    "embedding": lambda x, i: F.embedding(i.abs(), x[:, :, 0]),
    "basic": lambda x, i: x[1:4:2, None, ::-1],
}


@pytest.mark.parametrize("name", READ)
def test_reading(name, gpu):
    x, i = genesis.randn(5, 4, 3), genesis.tensor([[0, 2], [-1, 1]])
    same(gradient(READ[name]), x, i, tolerance=1e-6)


@pytest.mark.parametrize(
    "dtype", [genesis.float16, genesis.bfloat16, genesis.float64, genesis.uint8, genesis.bool, genesis.complex64]
)
def test_dtypes_that_are_moved(dtype, gpu):
    x, i = (genesis.randn(5, 4) * 3).to(dtype), genesis.tensor([[0, 2], [-1, 1]])
    same(lambda x, i: (x[i], x.flip(0), x.roll(3, 1), x.gather(1, i.abs()), x.index_put((i,), x[:2])), x, i)


WRITTEN = {
    "rows": lambda x, i: x.index_put((i,), x[0] * 2),
    "one place, the last of several": lambda x, i: x.index_put((i[0] * 0,), x[:2]),
    "two dimensions": lambda x, i: x.index_put((i, i), x[:2, :2] * 3),
    "slices": lambda x, i: x.slice_scatter(x[:2] * 2, 0, 1, 5, 2),
    "scatter": lambda x, i: x.scatter(1, (x > 0).long()[:, :1], x),
    "a number": lambda x, i: x.index_fill(0, i[0].abs(), 7.0),
    "index_copy": lambda x, i: x.index_copy(0, i[0].abs(), x[3:]),
    "flip": lambda x, i: x.flip((0, 2)),
    "roll": lambda x, i: x.roll((1, -2), (0, 1)),
    "roll of all": lambda x, i: x.roll(7),
    "backwards": lambda x, i: x.flip(0)[::-1].exp(),
    "turned": lambda x, i: x.rot90(1, (0, 2)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_writing(name, gpu):
    same(WRITTEN[name], genesis.randn(5, 4, 3), genesis.tensor([[0, 2], [-1, 1]]), tolerance=2e-7)


def test_in_place(gpu):
    def function(x, i):
        x = x.clone()
        x[i] = -1.0
        x[::2, 1] = 5.0
        x[:, i[0]] += 1.0
        return x

    same(function, genesis.randn(5, 4), genesis.tensor([[0, 2], [-1, 1]]))


SUMMED = {
    "index_add": lambda x, i, v: x.index_add(0, i, v),
    "of another dimension": lambda x, i, v: x.index_add(1, i[:4] * 0 + 2, x[:, :4]),
    "scatter_add": lambda x, i, v: x.scatter_add(0, i[:, None, None].expand(40, 4, 3), v),
    "of one each": lambda x, i, v: x.scatter_add(1, (x > 0).long()[:, :1], x),
    "index_put": lambda x, i, v: x.index_put((i,), v, accumulate=True),
    "mean": lambda x, i, v: x.scatter_reduce(0, i[:, None, None].expand(40, 4, 3), v, "mean"),
}


@pytest.mark.parametrize("name", SUMMED)
def test_sums(name, gpu):
    x, i, v = genesis.randn(5, 4, 3), genesis.randint(0, 5, (40,)), genesis.randn(40, 4, 3)
    same(SUMMED[name], x, i, v, tolerance=2e-6)


def test_sums_of_integers_and_16_bits(gpu):
    i = genesis.randint(0, 5, (40,))
    for dtype in (genesis.int64, genesis.int32):
        same(lambda i, dtype=dtype: genesis.zeros(9, dtype=dtype, device=i.device).scatter_add(0, i, i.to(dtype)), i)
    v = genesis.randn(40, 3).bfloat16()
    same(lambda v, i: genesis.zeros(5, 3, dtype=v.dtype, device=v.device).index_add(0, i, v), v, i, tolerance=2**-7)


def test_sums_are_the_same_each_time(gpu):
    """Bit for bit, however often and in which pieces it is computed."""
    i, v = genesis.randint(0, 3, (300,)).to("cuda"), genesis.randn(300, 2).to("cuda")
    first, again = (genesis.zeros(3, 2, device="cuda").index_add(0, i, v).tolist() for _ in range(2))
    assert first == again


# ---- indices that are none


def test_elements_that_indices_name_are_read_by_one_launch(gpu):
    """It looks whether they are there."""
    x, i = genesis.randn(5, 3, device="cuda"), genesis.tensor([[4], [0]], device="cuda")
    for read, want in (
        (lambda: x.gather(0, i), [[x[4, 0].item()], [x[0, 0].item()]]),
        (lambda: x[i[:, 0]], [x[4].tolist(), x[0].tolist()]),
    ):
        for _ in range(2):  # as a call for the first time, and as one like another before
            before = gpu.calls["launch"]
            got = read()
            assert gpu.calls["launch"] - before == 1 and got.tolist() == want
    z = x.double().to(genesis.complex128)  # whose elements no kernel moves
    with (
        pytest.warns(HostWarning),
        pytest.raises(IndexError, match="gather: index 7 is out of range for dim 0 of size 5"),
    ):
        z.gather(0, i - i + 7).tolist()


def test_a_wrong_index_is_reported_when_the_program_waits_and_work_goes_on(gpu):
    x, wrong = genesis.randn(5, 3, device="cuda"), genesis.tensor([0, 9], device="cuda")
    y = x[wrong]
    with pytest.raises(IndexError, match="index 9 is out of range for dimension 0 of size 5"):
        y.tolist()
    assert y.tolist()[0] == x[0].tolist()  # said once; the device is as good as before
    x.gather(0, genesis.full((1, 1), -3, device="cuda").long())
    with pytest.raises(IndexError, match="gather: index -3 is out of range for dim 0 of size 5"):
        cuda.synchronize()
    x.index_add(0, wrong, x[:2])
    with pytest.raises(IndexError, match="index 9 is out of range"):
        cuda.current_stream().synchronize()
    with pytest.raises(IndexError, match="index 0 is out of range for dim 0 of size 0"):
        x[:0][wrong]
    cuda.synchronize()


# ---- sorting


def small(monkeypatch, tile, merged=True):
    """Tiles and groups of so few elements that few rows go through all kernels; runs are merged twice, or by a network."""
    for module, values in (
        (networks, {"RUN": tile, "TILE": tile, "SEVERAL": 2, "FEW": networks.FEW if merged else 0}),
        (firsts, {"TILE": tile, "LANES": 2, "GROUPS": (2, 4), "MOST": 64, "FEWEST": 4}),
    ):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sorts, "_ready", {})


SPECIAL = [3.0, float("nan"), -0.0, 0.0, float("inf"), -1.0, float("-inf"), 0.0, float("nan"), 2.0]


@pytest.mark.parametrize(
    "dtype",
    [
        genesis.float32,
        genesis.float64,
        genesis.float16,
        genesis.bfloat16,
        genesis.int64,
        genesis.int32,
        genesis.uint8,
        genesis.bool,
    ],
)
@pytest.mark.parametrize("merged", [True, False])
def test_sorting(dtype, merged, gpu, monkeypatch):
    small(monkeypatch, 4, merged)
    x = genesis.tensor([SPECIAL, SPECIAL[::-1]])
    x = x.to(dtype) if dtype.is_floating_point else x.nan_to_num(1, 90, 5).to(dtype)
    for down in (False, True):
        same(lambda x, down=down: (x.argsort(1, down), x.argsort(0, down), *x.sort(1, down)), x)


ROWS = {
    "in order": lambda n: genesis.arange(n).expand(3, n),
    "backwards": lambda n: genesis.arange(n).flip(0).expand(3, n),
    "equal": lambda n: genesis.ones(3, n),
    "few values": lambda n: genesis.randint(0, 3, (3, n)),
    "special": lambda n: genesis.tensor([SPECIAL * n]).reshape(-1)[: 3 * n].reshape(3, n),
    "random": lambda n: genesis.randn(3, n),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "float64"])
@pytest.mark.parametrize("name", ROWS)
def test_the_first_few_of_long_rows(name, dtype, gpu, monkeypatch):
    """By two launches where the keys have up to 32 bits; which of equals they are is what a sort says."""
    small(monkeypatch, tile=4)
    kind = getattr(genesis, dtype)
    for n, k in ((37, 3), (5, 4), (33, 1))[: 1 if interpreted() else 3]:
        x = ROWS[name](n)
        x = x.to(kind) if kind.is_floating_point else x.nan_to_num(1, 90, 5).abs().to(kind)
        there = x.to("cuda")
        for largest in (False, True):
            want = x.argsort(1, largest)[:, :k]
            before = gpu.calls.get("launch", 0)
            values, positions = there.topk(k, largest=largest)
            assert dtype == "float64" or gpu.calls["launch"] - before == 3  # two, and one that reads the values
            assert positions.tolist() == want.tolist()
            np.testing.assert_array_equal(values.float().cpu().numpy(), x.gather(1, want).float().numpy())


def test_short_rows_are_sorted_by_one_launch(gpu):
    x = genesis.randn(70, 33).to("cuda")
    before = gpu.calls.get("launch", 0)
    assert x.argsort(1).tolist() == x.cpu().argsort(1).tolist()
    assert gpu.calls["launch"] - before == 1


def test_64_bits_of_which_the_lower_half_decides(gpu):
    x = genesis.tensor([2**40 + 5, 2**40 - 5, -(2**40), 2**40, -(2**40) - 1, 7, -7, 2**63 - 1, -(2**63)])
    same(lambda x: (x.argsort(), x.argsort(descending=True)), x)


@pytest.mark.parametrize("size", [0, 1, 2, 31, 33])
def test_sizes_that_are_sorted(size, gpu):
    same(lambda x: x.argsort(1), genesis.randn(3, size))


def test_launches_of_a_sort(gpu):
    """One for tiles and one that merges them, beside what makes the keys and reads the positions."""
    x = genesis.randn(1, 16384).to("cuda")
    before = gpu.calls.get("launch", 0)
    x.argsort(1)
    assert gpu.calls["launch"] - before == 4


def test_many_rows_of_many(gpu):
    if interpreted():
        pytest.skip("a minute by the interpreter")
    same(lambda x: x.argsort(1), genesis.randn(3, 5001))
    same(lambda x: x.topk(7, 0), genesis.randn(4100, 2))


def test_ranks(gpu):
    x = genesis.randn(5, 4, 3)
    same(lambda x: (*x.topk(2, 1), *x.topk(3, 0, largest=False), *x.kthvalue(2, 0), *x.median(1), x.msort()), x)
    same(lambda x: gradient(lambda x: x.topk(2, 1).values)(x), x)


# ---- machine code for Hopper


def calls():
    x, i = genesis.randn(64, 256, device="cuda"), genesis.arange(32, device="cuda")
    h = x.bfloat16()
    return {
        "reading": lambda: x[i],
        "reading 16 bits": lambda: h[i],
        "gather": lambda: x.gather(0, i[:, None].expand(32, 256)),
        "writing": lambda: x.index_put((i,), x[:32]),
        "sums": lambda: x.index_add(0, i, x[:32]),
        "sums of 16 bits": lambda: h.index_add(0, i, h[:32]),
        "sums of narrow rows": lambda: x[:, :16].contiguous().index_add(0, i, x[:32, :16]),
        "copies": lambda: x.flip(0),
        "sorting": lambda: x.argsort(1),
        "sorting 64 bits": lambda: x.double().argsort(1),
        "many": lambda: x.reshape(-1).argsort(),
        "more than are merged": lambda: genesis.randn(2 * networks.FEW, device="cuda").argsort(),
        "few of many": lambda: x.reshape(-1).topk(50),
        "few": lambda: x.topk(5),
    }


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "reading",
        "reading 16 bits",
        "gather",
        "writing",
        "sums",
        "sums of 16 bits",
        "sums of narrow rows",
        "copies",
        "sorting",
        "more than are merged",
        "sorting 64 bits",
        "many",
        "few of many",
        "few",
    ],
)
def test_machine_code(name):
    networks.tiles.cache_clear()
    made = started(lambda: calls()[name]())
    texts = [machine_code(kernel, aligned) for kernel, aligned in made if "prng" not in kernel.source]
    assert texts
    if name == "copies":
        assert any(["LDG.E" in text for text in texts])


def test_few_machine_codes_do_for_all_shapes():
    """Another number of rows or columns is another number for the same kernel."""
    sources = set()
    for rows, columns in ((64, 256), (65, 256), (64, 17), (3, 1)):
        x = lambda rows=rows, columns=columns: genesis.zeros(rows, columns, device="cuda")  # noqa: E731
        made = started(lambda x=x, rows=rows: x()[genesis.arange(rows).to("cuda")])
        sources |= {(kernel.source, aligned) for kernel, aligned in made if type(kernel).__name__ == "Lanes"}
    assert len({source for source, _ in sources}) <= 2 and len(sources) <= 5
    assert np.all([len(source) < 3000 for source, _ in sources])


# ---- masks


def graded_at(key):
    def computed(x, m):
        x = x.detach().requires_grad_()
        y = key(x, m)
        y.backward(2 * y.detach())  # not by a sum: the host computes that of no elements
        return y, x.grad

    return computed


MASKS = {
    "rows": (lambda x, m: x[m[:, 0]], (5, 3)),
    "elements": (lambda x, m: x[m], (5, 3)),
    "columns": (lambda x, m: x[:, m[0]], (5, 3)),
    "a part": (lambda x, m: x[1:, m[0]], (5, 3)),
    "in the middle": (lambda x, m: x[:, m[0]], (4, 3, 2)),
    "two dimensions": (lambda x, m: x[m], (4, 3, 2)),
    "a new dimension": (lambda x, m: x[None, m], (5, 3)),
    "none": (lambda x, m: x[m & ~m], (5, 3)),
    "all": (lambda x, m: x[m | ~m], (5, 3)),
    "selected": (lambda x, m: x.masked_select(m), (5, 3)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MASKS)
def test_what_masks_choose(name, way):
    function, shape = MASKS[name]
    genesis.manual_seed(0)
    x, m = genesis.randn(*shape), genesis.randn(*(shape[:2] if name == "two dimensions" else shape)) > 0
    m = m if m.ndim == 2 or name == "elements" else m[..., 0]
    with emulated(way):
        same(graded_at(function), x, m, tolerance=1e-6)


def test_what_is_written_where_a_mask_is_true():
    def written(x, m):
        out, rows, cells = x.clone(), x.clone(), x.clone()
        out[m[:, 0]] = 1.0
        rows[:, m[0]] = rows[:, m[0]] * 2
        cells[cells > 0] = 0.0
        cells[m] = genesis.arange(int(m.sum().item()), device=x.device).to(x.dtype)
        return out, rows, cells

    genesis.manual_seed(0)
    with emulated():
        same(written, genesis.randn(5, 3), genesis.randn(5, 3) > 0)


def test_masks_that_do_not_fit():
    with emulated():
        x = genesis.randn(5, 3, device="cuda")
        for key in ((x > 0)[:4], (slice(None), (x > 0)[:, 0])):
            with pytest.raises(IndexError):
                x[key]


# ---- bags of rows

BAGS = {
    "mean": {},
    "sum": {"mode": "sum"},
    "max": {"mode": "max"},
    "weighted": {"mode": "sum", "weighted": True},
    "padding": {"mode": "mean", "padding_idx": 2},
    "padding of max": {"mode": "max", "padding_idx": 2},
    "frequencies": {"mode": "sum", "scale_grad_by_freq": True},
    "norms": {"mode": "mean", "max_norm": 1.0},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", BAGS)
def test_bags_of_rows(name, flat, way):
    """Of numbers in rows, and of a list of numbers with the beginnings of bags, of which one is empty."""
    genesis.manual_seed(6)
    options = dict(BAGS[name])
    weighted = options.pop("weighted", False)
    numbers = genesis.randint(0, 5, (12,))
    weight, factors = genesis.randn(5, 6), genesis.randn(12)
    shape = (12,) if flat else (4, 3)

    def bags(numbers, weight, factors):
        weight, factors = (x.detach().clone().requires_grad_() for x in (weight, factors))
        offsets = genesis.tensor([0, 5, 5, 9], device=weight.device) if flat else None
        more = {"per_sample_weights": factors.reshape(shape)} if weighted else {}
        y = F.embedding_bag(numbers.reshape(shape), weight, offsets, **options, **more)
        y.sin().sum().backward()
        return (y, weight.grad, factors.grad) if weighted else (y, weight.grad, weight.detach())

    with emulated(way):
        same(bags, numbers, weight, factors, tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_windows_are_not_sorted(way, dtype, monkeypatch):
    """Whether windows overlap, touch, or leave elements out; of a tensor in another order, too."""
    if way == "triton" and dtype == "bfloat16":
        pytest.skip("Triton's interpreter does not compute with it")
    monkeypatch.setattr(sums, "sort_rows", None)

    def gradients(x):
        ways = ((2, 3, 2), (2, 2, 2), (1, 2, 3), (0, 1, 1), (1, 4, 1))
        windows = [x.transpose(0, 1).unfold(0, 3, 1), *[x.unfold(*each) for each in ways]]
        return [genesis.autograd.grad((w * w).sum(), x)[0] for w in windows]

    genesis.manual_seed(1)
    x = genesis.randn(3, 4, 8).to(getattr(genesis, dtype)).requires_grad_()
    with emulated(way):
        same(gradients, x, tolerance=1e-2 if dtype == "bfloat16" else 1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sort", lambda x: genesis.sort(x, 1, descending=True).values),
        ("sort of columns", lambda x: genesis.sort(x, 0).values),
        ("topk", lambda x: genesis.topk(x, 5).values),
        ("kthvalue", lambda x: genesis.kthvalue(x, 3).values),
    ],
)
def test_gradients_of_what_is_sorted_sort_nothing(name, function):
    """No place gets two of them: elements are put where they were."""
    x = genesis.randn(6, 40)
    weights = genesis.arange(function(x).numel()).reshape(function(x).shape) + 1.0
    with emulated() as driver:
        there = x.to("cuda").requires_grad_()
        y, g = function(there), weights.to("cuda")
        genesis.autograd.grad(y, there, g, retain_graph=True)
        before = driver.calls["launch"]
        (gradient,) = genesis.autograd.grad(y, there, g)
        assert driver.calls["launch"] - before == 1, name
        here = x.clone().requires_grad_()
        (expected,) = genesis.autograd.grad(function(here), here, weights)
        assert gradient.tolist() == expected.tolist()


def test_the_gradient_of_running_extremes_adds(gpu):
    """... as one place has several."""
    x = genesis.tensor([[1.0, 3.0, 2.0, 0.0]], requires_grad=True)
    same(lambda x: genesis.autograd.grad(genesis.cummax(x, 1).values.sum(), x)[0], x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, m: x[i],
        lambda x, i, m: x[m],
        lambda x, i, m: x[:, i],
        lambda x, i, m: x[i, i],
        lambda x, i, m: x[m, 1:],
        lambda x, i, m: genesis.autograd.grad(x[i].square().sum(), x)[0],
        lambda x, i, m: x.clone().index_put_((i,), genesis.full((), 3.0, device=x.device)),
    ],
)
def test_an_index_of_the_cpu_is_copied_to_the_tensor(gpu, function):
    i, m = genesis.tensor([2, 0]), genesis.tensor([True, False, True, False])
    same(lambda x: function(x, i, m), genesis.arange(12.0).reshape(4, 3).requires_grad_())
    there = genesis.zeros(4, 3, device="cuda")
    there[i] = 1.0
    there[m] += 1.0
    assert there[:, 0].tolist() == [2.0, 0.0, 2.0, 0.0]
    with pytest.raises(RuntimeError, match="the tensor is on cpu, the index on cuda:0"):
        genesis.zeros(4)[i.to("cuda")]


def test_a_gather_that_is_known_is_still_checked(gpu):
    """What is kept of a call is about shapes: another index that is none, or of another shape, is refused."""
    x = genesis.arange(12.0).reshape(3, 4).to("cuda")
    here = lambda rows: genesis.tensor(rows, device="cuda")
    for _ in range(3):
        assert genesis.gather(x, 1, here([[3], [0], [1]])).tolist() == [[3.0], [4.0], [9.0]]
        assert genesis.gather(x, -2, here([[2, 1, 0, 2]])).tolist() == [[8.0, 5.0, 2.0, 11.0]]
    with pytest.raises(IndexError, match="gather: index 4 is out of range for dim 1 of size 4"):
        genesis.gather(x, 1, here([[4], [0], [1]])).tolist()
    with pytest.raises(RuntimeError, match="is larger than the input"):
        genesis.gather(x, 1, here([[0], [0], [0], [0]]))
    with pytest.raises(RuntimeError, match="the tensor is on cuda:0, the index on cpu"):
        genesis.gather(x, 1, genesis.tensor([[3], [0], [1]]))
    with pytest.raises(IndexError, match="must be integer"):
        genesis.gather(x, 1, genesis.zeros(3, 1, device="cuda"))
    assert genesis.gather(x.double(), 1, here([[3], [0], [1]])).dtype is genesis.float64
    wide = x.to(genesis.complex64)
    assert genesis.gather(wide, 1, here([[3], [0], [1]])).tolist() == [[3 + 0j], [4 + 0j], [9 + 0j]]
