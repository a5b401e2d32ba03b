"""`genesis.compile` on a GPU: whole training steps as one graph, on the emulated device, beside the CPU's eager steps."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from kernels_of import training_step

import genesis
from genesis import cuda, nn
from genesis.cuda.kernels.draws import Draw
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.kernels.loss_gradients import WITH_GRADIENT
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.cuda.steps import ready
from genesis.cuda.steps import step as step_of_devices
from genesis.cuda.steps.held import Held
from genesis.cuda.steps.tiled import Tiled
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="functions are compiled where there is llvmlite")


@pytest.fixture
def gpu():
    with using(Emulated(2, memory=64 << 20)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


def steps_of(compiled):
    """The steps of the graphs of a compiled function."""
    return [entry.step for entry in compiled._recent]


def is_graph(step):
    return step.graphs == 1 and bool(step._ready.graphs) and not step.why


class Network(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 16), nn.LayerNorm(16), nn.Linear(16, 5)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return self.last(self.dropout(F.gelu(self.norm(self.first(x)))))


def loss_of(model, x, target):
    """A cross entropy whose classes are rows of ones and zeros."""
    return -(model(x).log_softmax(1) * target).sum(1).mean()


def training(place, kind, compiled, steps=10, clip=1.0, p=0.2):
    """Losses and parameters of steps with a schedule, clipping and dropout; every fifth batch is shorter."""
    genesis.manual_seed(0)
    model = Network(p).to(place)
    optimizer = kind(model.parameters())
    schedule = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def step(x, target):
        optimizer.zero_grad()
        loss = loss_of(model, x, target)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss

    run, losses = genesis.compile(step) if compiled else step, []
    for i in range(steps):
        x, target = genesis.randn(8, 6), F.one_hot(genesis.randint(0, 5, (8,)), 5).float()
        count = 5 if i % 5 == 4 else 8
        losses.append(run(x[:count].to(place), target[:count].to(place)).item())
        schedule.step()
    return losses, [x.detach().cpu().numpy() for x in model.parameters()], run


OPTIMIZERS = {
    "SGD": lambda p: genesis.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda p: genesis.optim.Adam(p, lr=1e-2, amsgrad=True),
    "AdamW": lambda p: genesis.optim.AdamW(p, lr=1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_are_those_of_the_cpu(name, gpu):
    expected = training("cpu", OPTIMIZERS[name], False)
    found = training("cuda", OPTIMIZERS[name], True)
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5)
    for x, y in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-6)
    long, short = (next(s for s in steps_of(found[2]) if s.takes[0].spec.shape[0] == n) for n in (8, 5))
    assert is_graph(long) and short.why == ""  # the shorter one came twice: once as it is, once recorded


def test_no_number_of_the_host_is_frozen(gpu):
    """A learning rate that is set at every step, steps counted by Adam: the parameters move by as much as they should."""
    w = nn.Parameter(genesis.ones(4, device="cuda"))
    optimizer = genesis.optim.SGD([w], lr=1.0)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    run, x, expected = genesis.compile(step), genesis.ones(4, device="cuda"), 1.0
    for rate in (1.0, 0.5, 0.25, 2.0, 0.125):
        optimizer.param_groups[0]["lr"] = rate
        run(x)
        expected -= rate
        assert w.tolist() == [expected] * 4
    assert is_graph(steps_of(run)[0])


def test_no_random_number_is_frozen(gpu):
    """Each call draws the numbers that eager calls would, and leaves the stream where they would."""
    run = genesis.compile(
        lambda x: F.dropout(x, 0.5) + genesis.rand(x.shape, device="cuda") + genesis.randn(x.shape, device="cuda")
    )
    x, ends = genesis.ones(1000), []
    for place, function in (("cuda", run), ("cpu", None)):
        genesis.manual_seed(3)
        rows = []
        for _ in range(4):
            if function is None:
                y = F.dropout(x, 0.5) + genesis.rand(1000) + genesis.randn(1000)
            else:
                y = function(x.to(place))
            rows.append(y.cpu().numpy())
        ends.append((rows, genesis.get_rng_state().tolist()))
    assert all(np.array_equal(a, b) for a, b in zip(ends[0][0], ends[1][0], strict=True)) and ends[0][1] == ends[1][1]
    assert not np.array_equal(ends[0][0][2], ends[0][0][3]) and is_graph(steps_of(run)[0])


def test_one_launch_is_a_step(gpu):
    """What a step asks of the driver from the fourth call on: nothing but copies of what it is given, and the graph."""
    model = Network(0.1).to("cuda")
    optimizer = genesis.optim.AdamW(model.parameters())

    step = training_step(optimizer, lambda x, target: loss_of(model, x, target))

    run, x, target = genesis.compile(step), genesis.randn(8, 6, device="cuda"), genesis.ones(8, 5, device="cuda")
    for _ in range(4):
        run(x, target)
    before, allocated = dict(gpu.calls), cuda.memory_stats()["num_device_alloc"]
    for _ in range(3):
        run(x, target)
    made = {name: count - before.get(name, 0) for name, count in gpu.calls.items() if count > before.get(name, 0)}
    assert made["launch_graph"] == 3 and "launch" not in made and "stream_synchronize" not in made
    assert made["copy_in"] == 3 and cuda.memory_stats()["num_device_alloc"] == allocated
    assert made["copy"] == 3 * 2  # two arguments: the loss and the gradients are where the graph wrote them
    assert "event_record" not in made and "event" not in made


def test_numbers_of_the_host_wait_for_their_copies_now_and_then(gpu):
    """The memory that they are copied from is written to again after many calls, on whatever streams these were."""
    w = nn.Parameter(genesis.zeros(3, device="cuda"))
    optimizer = genesis.optim.SGD([w], lr=1.0)

    @genesis.compile
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    def steps(count, begin=0):
        for i in range(begin, begin + count):
            optimizer.param_groups[0]["lr"] = float(i)
            step()

    steps(4)
    before = dict(gpu.calls)
    steps(200, 4)
    assert 0 < gpu.calls["event_record"] - before.get("event_record", 0) <= 200 // 32 + 1
    side = cuda.Stream()
    for i in range(204, 240):
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            steps(1, i)
        cuda.current_stream().wait_stream(side)
        steps(1, i)
    cuda.synchronize()
    assert w.tolist() == [-float(sum(range(204)) + 2 * sum(range(204, 240)))] * 3


def averages(count):
    """A compiled step of running averages that gives two results, its number of graphs, and what they should be."""
    w, expected = nn.Parameter(genesis.zeros(3, 4, device="cuda")), []
    for i in range(count):
        expected.append(((expected[-1][0] if i else 0) + i, 2 * i))

    @genesis.compile
    def step(x):
        with genesis.no_grad():
            w.add_(x)
        return w + 0, x * 2

    return step, expected


def test_results_that_are_kept_stay_as_they_are(gpu):
    """... whichever of them, and views of them; from then on these are copied, the others are not."""
    step, expected = averages(12)
    kept = []
    for i in range(12):
        total, double = step(genesis.full((3, 4), float(i), device="cuda"))
        kept.append((total.t()[1:2], double.sum() if i % 5 else double))  # of the second only some
    for i, ((view, second), (total, double)) in enumerate(zip(kept, expected, strict=True)):
        assert view.tolist() == [[total] * 3], i
        assert second.tolist() == (12 * double if i % 5 else [[double] * 4] * 3), i
    (made,) = steps_of(step)
    assert is_graph(made) and 0 in made._ready.copied and len(made._ready.graphs) <= 2
    before = gpu.calls["copy"]
    del total, double, view, second
    kept.clear()
    step(genesis.ones(3, 4, device="cuda"))
    assert gpu.calls["copy"] - before == 1 + len(made._ready.copied)


def test_results_that_nobody_has_are_given_again(gpu):
    """... as the same arrays: a call makes none. One that is kept, without its tensor or in a view, is not written to."""
    run, x = genesis.compile(lambda x: (x * 2, x + 1)), genesis.ones(3, device="cuda")
    for _ in range(ready.STAYS + 4):
        run(x)
    arrays = [tuple([id(y._array) for y in run(x)]) for _ in range(4)]
    assert len(set(arrays)) == 1  # one graph is enough for results that are gone
    array, view = run(x)[0]._array, run(x)[1][1:]
    x += 1
    (doubled, more), (made,) = run(x), steps_of(run)
    assert is_graph(made) and doubled._array is not array
    assert genesis.cuda.arrays.MEMORY.to_host(array).tolist() == [2.0] * 3 and view.tolist() == [2.0] * 2
    assert doubled.tolist() == [4.0] * 3 and more.tolist() == [3.0] * 3


def test_results_lie_as_their_layouts_say(gpu):
    run, x = genesis.compile(lambda x: (x * 2).permute(2, 0, 1) + 1), genesis.ones(2, 3, 4, device="cuda")
    for _ in range(3):
        array = run(x)._array
        assert array.strides == array.layout.strides == (1, 12, 4)


def test_memory_of_results_is_there_before_a_graph_is_recorded(gpu):
    """While it is, the driver gives none; what the first call used may be others' by then."""
    x = genesis.randn(700, 700).to("cuda")
    run = genesis.compile(lambda x: (x @ x, x @ x.t()))
    kept = [run(x)]
    cuda.empty_cache()
    kept += [run(x) for _ in range(3)]
    for product, other in kept:
        np.testing.assert_allclose(product.cpu(), (x @ x).cpu(), rtol=1e-5)
        np.testing.assert_allclose(other.cpu(), (x @ x.t()).cpu(), rtol=1e-5)
    assert is_graph(steps_of(run)[0])


def test_large_arguments_of_few_launches_are_read_where_they_are(gpu, monkeypatch):
    """A graph would read copies of them, which take longer than the launches that it saves."""
    monkeypatch.setattr(step_of_devices, "LAUNCH", 1e-6)
    x, y = genesis.randn(1000, 1000).to("cuda"), genesis.randn(1000, 1000).to("cuda")
    run = genesis.compile(lambda x, y: F.silu(x) * y)
    for scale in (1.0, 2.0, 3.0):
        given = x * scale
        copies = gpu.calls.get("copy", 0)
        result = run(given, y)
        copies = gpu.calls.get("copy", 0) - copies
        np.testing.assert_allclose(result.cpu(), (F.silu(given) * y).cpu(), rtol=1e-6)
    (step,) = steps_of(run)
    assert copies == 0 and "7 MB of arguments are read where they are" in str(step.explain())
    few = genesis.compile(lambda x, y: F.silu(x) * y)
    _ = [few(x[:9], y[:9]) for _ in range(3)]
    assert is_graph(steps_of(few)[0])


def test_arguments_that_stay_are_read_where_they_are(gpu):
    """... until they are elsewhere; what is written to, and what overlaps it, is not."""
    genesis.manual_seed(0)
    w = genesis.ones(3, 4, device="cuda")
    run = genesis.compile(lambda x, y: (x * 2 + y, y.add_(w)))
    x, y, expected = genesis.randn(3, 4).to("cuda"), genesis.zeros(3, 4, device="cuda"), 0.0

    def call(x):
        nonlocal expected
        copies = gpu.calls.get("copy", 0)
        out, _ = run(x, y)
        np.testing.assert_allclose(out.cpu(), x.cpu().numpy() * 2 + expected)
        expected += 1
        assert y.cpu().tolist() == [[expected] * 4] * 3
        return gpu.calls.get("copy", 0) - copies

    first = [call(x.copy_(genesis.full((3, 4), float(i)))) for i in range(ready.STAYS - 1)]
    assert first[-1] == 3  # both, and what is written back
    assert [call(x) for _ in range(3)] == [2] * 3
    (made,) = steps_of(run)
    assert is_graph(made) and list(made._ready.here) == [0]
    with cuda.stream(side := cuda.Stream()):
        side.wait_stream(cuda.default_stream())
        call(x)
    cuda.default_stream().wait_stream(side)
    assert [call(x + 1) for _ in range(2 * ready.STAYS)] == [3] * 2 * ready.STAYS
    assert made._ready.here == {} and call(x) == 3  # from now on they are copied


def test_arguments_that_are_results_stay_as_they_are(gpu):
    """A graph does not write where it reads them."""
    run, x = genesis.compile(lambda x: x * 0.5 + 1), genesis.zeros(64, device="cuda")
    for _ in range(2 * ready.STAYS):
        x = run(x)
    y = [run(x) for _ in range(2 * ready.STAYS)]
    assert all([each.tolist() == [x[0].item() * 0.5 + 1] * 64 for each in y])
    z = x
    for _ in range(40):
        z = run(z)
    np.testing.assert_allclose(z.cpu(), 2.0, rtol=1e-6)


def test_results_that_nobody_keeps_need_one_graph(gpu):
    step, _ = averages(0)
    x = genesis.ones(3, 4, device="cuda")
    for _ in range(6):
        step(x)
    (made,) = steps_of(step)
    assert len(made._ready.graphs) == 1 and made._ready.copied == set()


def test_other_streams_are_done_with_results_before_a_graph_writes_again(gpu):
    step, expected = averages(10)
    side, sums = cuda.Stream(), []
    for i in range(10):
        total, _ = step(genesis.full((3, 4), float(i), device="cuda"))
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            sums.append(total.sum())
        total.record_stream(side)
        del total
    cuda.synchronize()
    assert [x.item() for x in sums] == [12 * total for total, _ in expected]
    (made,) = steps_of(step)
    assert made._ready.copied == set()


def test_a_step_that_moves_to_another_stream(gpu):
    """Its results are used on the stream that it was on, of which nobody needs to be told."""
    step, expected = averages(12)
    side, sums = cuda.Stream(), []
    given = [genesis.full((3, 4), float(i), device="cuda") for i in range(12)]
    cuda.synchronize()
    for i, x in enumerate(given):
        here = side if 2 <= i < 10 else cuda.default_stream()
        with cuda.stream(here):
            total = step(x)[0]
        cuda.default_stream().wait_stream(here)
        sums.append(total.sum())
        del total
    cuda.synchronize()
    assert [x.item() for x in sums] == [12 * total for total, _ in expected]


def test_a_graph_that_looks_at_what_it_computed(gpu):
    """Python decides by a number of the step: both ways are graphs, and the right one is taken."""
    w = nn.Parameter(genesis.ones(3, device="cuda"))

    def step(x):
        loss = (w * x).sum()
        if loss > 5:
            return loss * 2
        return loss - 1

    run = genesis.compile(step)
    for value in (1.0, 2.0, 1.0, 3.0, 1.0, 2.0):
        with genesis.no_grad():
            total = 3 * value
            assert run(genesis.full((3,), value, device="cuda")).item() == (total * 2 if total > 5 else total - 1)


def test_scaled_losses_are_skipped_where_they_overflow(gpu):
    ends = {}
    for place, compiled in (("cpu", False), ("cuda", True)):
        genesis.manual_seed(0)
        model = nn.Linear(4, 3).to(place)
        optimizer, scaler = (
            genesis.optim.SGD(model.parameters(), lr=0.1),
            genesis.amp.GradScaler(place, init_scale=2.0**10),
        )

        def step(x, model=model, optimizer=optimizer, scaler=scaler):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        run = genesis.compile(step) if compiled else step
        for i in range(6):
            x = genesis.ones(2, 4) * (float("inf") if i == 3 else 1.0 + i)
            run(x.to(place))
        ends[place] = scaler.get_scale(), model.weight.detach().cpu().numpy()
    assert ends["cuda"][0] == ends["cpu"][0] == 2.0**9
    np.testing.assert_allclose(ends["cuda"][1], ends["cpu"][1], rtol=1e-6)


def test_gradients_flow_through_a_compiled_model(gpu):
    ends = {}
    for place in ("cpu", "cuda"):
        genesis.manual_seed(0)
        model = Network(0.0).to(place)
        run = genesis.compile(model) if place == "cuda" else model
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            loss = run(genesis.ones(3, 6).to(place)).square().mean()
            loss.backward()
            optimizer.step()
        ends[place] = [x.detach().cpu().numpy() for x in model.parameters()]
    for x, y in zip(ends["cuda"], ends["cpu"], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_gradients_that_are_added_to(gpu):
    """`.grad` tensors stay where they are and are written to by the graph; new ones are recorded anew."""
    w = nn.Parameter(genesis.ones(3, device="cuda"))
    run = genesis.compile(lambda x: (w * x).sum().backward())
    for i in range(1, 6):
        run(genesis.ones(3, device="cuda"))
        assert w.grad.tolist() == [i] * 3
    w.grad = genesis.zeros(3, device="cuda")
    for i in range(1, 4):
        run(genesis.ones(3, device="cuda"))
        assert w.grad.tolist() == [i] * 3


def test_results_are_memory_of_their_own(gpu):
    run = genesis.compile(lambda x: (x * 2, (x + 1).t()))
    every = [run(genesis.full((2, 3), float(i), device="cuda")) for i in range(5)]
    assert [y.tolist() for y, _ in every] == [[[2.0 * i] * 3] * 2 for i in range(5)]
    assert [y.tolist() for _, y in every] == [[[i + 1.0] * 2] * 3 for i in range(5)]


def test_arguments_are_written_to(gpu):
    def step(x, y):
        x.mul_(2)
        y[1:].copy_(x[:2])

    run = genesis.compile(step)
    for _ in range(4):
        x, y = genesis.arange(3.0, device="cuda"), genesis.zeros(3, device="cuda")
        run(x, y)
        assert x.tolist() == [0, 2, 4] and y.tolist() == [0, 0, 2]


def test_arguments_of_the_host_are_copied(gpu):
    w = genesis.full((3,), 2.0, device="cuda")
    run = genesis.compile(lambda x: x.to("cuda") * w)
    for i in range(4):
        assert run(genesis.full((3,), float(i))).tolist() == [2.0 * i] * 3


def test_momentum_of_weights_in_channels_last_begins_in_the_first_call(gpu):
    """It was a value of the trace: the first call ran as it is, with other kernels than all others."""
    model = nn.Conv2d(3, 4, 3).to("cuda").to(memory_format=genesis.channels_last)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step(genesis.rand(2, 3, 5, 5, device="cuda"))
    assert len(steps_of(step)) == 1
    momentum = optimizer.state[model.weight]["momentum_buffer"]
    assert momentum.is_contiguous(memory_format=genesis.channels_last)
    assert momentum.tolist() == model.weight.grad.tolist()


def test_what_the_cpu_computes_is_no_graph(gpu):
    run = genesis.compile(lambda x: (x + 1).igamma(x) * 2)
    for _ in range(3):
        np.testing.assert_allclose(
            run(genesis.ones(3, device="cuda")).cpu().numpy(),
            (genesis.full((3,), 2.0).igamma(genesis.ones(3)) * 2).numpy(),
            rtol=1e-6,
        )
    (step,) = steps_of(run)
    assert step.graphs == 0 and "the CPU has a part" in step.why and "igamma" in str(run.explain())


def test_values_of_two_devices_are_not_compiled(gpu):
    run = genesis.compile(lambda x, y: (x * 2, y * 3))
    run(genesis.ones(2, device="cuda"), genesis.ones(2))
    with pytest.warns(UserWarning, match="is not compiled, it runs as it is: .* is on cpu"):
        a, b = run(genesis.ones(2, device="cuda"), genesis.ones(2))
    assert a.tolist() == [2.0, 2.0] and b.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16])
def test_autocast(dtype, gpu):
    model = Network(0.0).to("cuda")

    def step(x):
        with genesis.autocast("cuda", dtype):
            y = model(x)
        return y.float().square().mean()

    run, x = genesis.compile(step), genesis.randn(4, 6, device="cuda")
    expected = step(x).item()
    for _ in range(4):
        assert abs(run(x).item() / expected - 1) < 2e-2


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(16, 4, batch_first=True), nn.LayerNorm(16)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        y = self.norm(x)
        x = x + self.attention(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.narrow(F.gelu(self.wide(x), approximate="tanh"))


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.float16])
def test_gradients_of_attention_and_products(dtype, gpu):
    """Values and gradients of a compiled layer are those of the layer as it is."""
    genesis.manual_seed(1)
    model, x = Attending().to("cuda"), genesis.randn(2, 9, 16, device="cuda")

    def step(x):
        model.zero_grad()
        with nullcontext() if dtype is genesis.float32 else genesis.autocast("cuda", dtype):
            y = model(x)
        loss = y.float().square().mean()
        loss.backward()
        return loss, y

    loss, y = step(x)
    expected = [loss, y, *[p.grad.clone() for p in model.parameters()]]
    run = genesis.compile(step)
    tolerance = 1e-5 if dtype is genesis.float32 else 3e-2
    for _ in range(3):
        got = [*run(x), *[p.grad for p in model.parameters()]]
        for a, b in zip(got, expected, strict=True):
            a, b = a.detach().cpu().float().numpy(), b.detach().cpu().float().numpy()
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(abs(b).max(), 1e-3))
    assert is_graph(steps_of(run)[0])


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
def test_cross_entropy_of_logits(dtype, gpu):
    """Logits of 16 bits are read as they are and get gradients of 16 bits, whatever the loss wants; the loss is float32."""
    genesis.manual_seed(1)
    model, x = nn.Linear(16, 33).to("cuda"), genesis.randn(12, 16, device="cuda")
    target = genesis.randint(0, 33, (12,), device="cuda")
    target[3] = -100

    def step(x, target):
        model.zero_grad()
        with nullcontext() if dtype is genesis.float32 else genesis.autocast("cuda", dtype):
            z = model(x).view(3, 4, 33)
        loss = F.cross_entropy(z.flatten(0, 1).float(), target)
        loss.backward()
        return loss

    expected = [step(x, target), *[p.grad.clone() for p in model.parameters()]]
    run = genesis.compile(step)
    for _ in range(3):
        got = [run(x, target), *[p.grad for p in model.parameters()]]
        assert got[0].dtype is genesis.float32
        for a, b in zip(got, expected, strict=True):
            a, b = a.detach().cpu().numpy(), b.detach().cpu().numpy()
            np.testing.assert_allclose(a, b, rtol=0, atol=(1e-6 if dtype is genesis.float32 else 1e-2) * abs(b).max())
    (made,) = steps_of(run)
    assert is_graph(made)
    (call,) = [p.calls[0] for p in made.phases if not p.stages and "cross_entropy" in p.calls[0].op]
    assert call.op == WITH_GRADIENT and call.args[1].spec.dtype == call.outs[1].spec.dtype == dtype.np
    target[5] = 33
    run(x, target)
    with pytest.raises(IndexError, match="index 33 is out of range for 33 classes"):
        cuda.synchronize()


LOSSES = {
    "times a number": (lambda x, t: F.cross_entropy(x, t) * 3, True),
    "times a tensor": (lambda x, t: F.cross_entropy(x, t) * x.detach()[0, 0], True),
    "squared, whose gradient is not known before": (lambda x, t: F.cross_entropy(x, t) ** 2, False),
    "of rows that do not stay in the cache": (lambda x, t: F.cross_entropy(x.repeat(1, 1300), t), False),
    "twice": (lambda x, t: F.cross_entropy(x, t) + F.cross_entropy(x * 2, t, ignore_index=1), True),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_one_call_where_that_is_known(name, gpu):
    genesis.manual_seed(2)
    loss_of, joined = LOSSES[name]
    x, target = genesis.randn(12, 33), genesis.randint(0, 33, (12,))

    def step(x, target):
        x = x.detach().requires_grad_()
        loss = loss_of(x, target)
        loss.backward()
        return loss, x.grad

    expected, run = step(x, target), genesis.compile(step)
    for _ in range(3):
        for a, b in zip(run(x.to("cuda"), target.to("cuda")), expected, strict=True):
            np.testing.assert_allclose(
                a.detach().cpu().numpy(), b.detach().numpy(), rtol=0, atol=1e-6 * abs(b).max().item()
            )
    calls = {p.calls[0].op for p in steps_of(run)[0].phases if not p.stages and "cross_entropy" in p.calls[0].op}
    assert (calls == {WITH_GRADIENT}) == joined


def test_a_slice_of_all_rows_is_no_slice(gpu):
    """The gradient of as many positions as there are is not put into zeros."""

    def positions(x, p, n):
        p = p.detach().requires_grad_()
        ((x[:, :n] + p[:n]) * x[:, :n]).sum().backward()
        return p.grad

    def written(x, v):
        x = x.clone()
        x[:] = v
        return x * 2

    x, p = genesis.randn(3, 8, 5), genesis.randn(8, 5)
    for function, args, launches in (
        (positions, (x, p, 8), 1),
        (positions, (x, p, 6), 3),
        (written, (x, p[0]), None),
        (written, ((x * 10).int(), p[0]), None),
    ):
        run, given = genesis.compile(function), [a.to("cuda") if isinstance(a, genesis.Tensor) else a for a in args]
        for _ in range(3):
            got = run(*given)
        np.testing.assert_allclose(got.cpu().numpy(), function(*args).numpy(), rtol=1e-5)
        assert launches is None or run.explain().steps[0][0].launches == launches


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_rows_of_an_embedding_are_read_by_the_loop_that_uses_them(dtype, kind, gpu):
    """As the numbers are checked before, and are 0 where they are none; rows that unchecked ones name are read by a call. What
    loops compute in does not depend on how many bits an index has.
    """
    table, more, weight = (genesis.randn(*shape).to(getattr(genesis, dtype)) for shape in ((9, 40), (3, 40), (40,)))
    at = genesis.tensor([[1, 8, 0], [4, 4, 2]], dtype=getattr(genesis, kind))

    def of(table, more, weight, at):
        x = F.embedding(at, table) + more
        return x, F.layer_norm(x, (40,), weight)

    expected, given = of(table, more, weight, at), [x.to("cuda") for x in (table, more, weight, at)]
    run, called = genesis.compile(of), genesis.compile(lambda table, at: table[at] + 1)
    for _ in range(3):
        for a, b in zip(run(*given), expected, strict=True):
            tolerance = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 2e-2}[dtype]
            np.testing.assert_allclose(a.cpu().double().numpy(), b.double().numpy(), atol=tolerance, rtol=tolerance)
        called(given[0], given[3])
    (made,) = steps_of(run)
    assert is_graph(made) and {p.calls[0].op for p in made.phases if not p.stages} == {"check_range"}
    entries = [e for e in made.explain().entries if "take_index" in e.title]
    rows = 6 + 3 + 1  # six of nine of the table, and those of the others
    assert [e.read for e in entries] == [rows * 40 * given[0].element_size() + given[3].nbytes]
    sources = [stage.kernel.kernel.source for p in made.phases for stage in p.stages]
    assert any(["tl.sum" in source and (dtype == "float64" or ".to(tl.float64)" not in source) for source in sources])
    assert "take_index" in {p.calls[0].op for p in steps_of(called)[0].phases if not p.stages}
    run(*given[:3], given[3] + 1)
    with pytest.raises(IndexError, match="embedding: index 9 is out of range for 9 rows"):
        cuda.synchronize()


def test_other_streams_wait(gpu):
    """Two calls on two streams use the same memory: the second waits for the first."""
    w = genesis.ones(3, device="cuda")
    run, side = genesis.compile(lambda x: (x * w + 1).sum()), cuda.Stream()
    for i in range(6):
        stream = side if i % 2 else cuda.default_stream()
        with cuda.stream(stream):
            side.wait_stream(cuda.default_stream())
            cuda.default_stream().wait_stream(side)
            assert run(genesis.full((3,), float(i), device="cuda")).item() == 3 * (i + 1)


def test_the_memory_of_a_step_is_given_back(gpu):
    before = cuda.memory_allocated()
    run = genesis.compile(lambda x: ((x * 2).sum(1) + 1).square().sum())
    for _ in range(4):
        run(genesis.ones(64, 64, device="cuda"))
    assert cuda.memory_allocated() > before
    del run
    import gc

    gc.collect()
    assert cuda.memory_allocated() == before


def test_explain(gpu):
    run = genesis.compile(lambda x: (x @ x).relu() + 1)
    for _ in range(3):
        run(genesis.ones(4, 4, device="cuda"))
    text = str(run.explain())
    assert "one graph" in text and "call" in text and "matmul" in text and "kernel" in text
    (told,) = run.explain().steps[0]
    assert told.launches == 2 and told.moved == (64 + 64) + (64 + 64) and told.flops == 2 * 4**3


# ---- kernels of steps


@pytest.fixture
def step(gpu):
    """A step with a dropout, a norm, a clipped gradient and Adam."""
    return max(steps_of(training("cuda", OPTIMIZERS["AdamW"], True, steps=3)[2]), key=lambda s: len(s.phases))


def kernels_of(step):
    return [stage.kernel.kernel for phase in step.phases for stage in phase.stages]


def test_numbers_of_the_host_are_read_from_memory(step):
    loops = [kernel.loop if isinstance(kernel, Tiled) else kernel for kernel in kernels_of(step)]
    held = [kernel for kernel in loops if isinstance(kernel, Held) and kernel.held]
    assert held and all(["fp64" not in [k for k in kernel.signature if k[0] != "*"] for kernel in held])
    assert all(["*fp64" in kernel.signature for kernel in held]) and "tl.load(p" in held[0].source
    (draw,) = [kernel for kernel in kernels_of(step) if isinstance(kernel, Draw)]
    assert "key, first = tl.load(position), tl.load(position + 1)" in draw.source


@pytest.mark.slow
def test_kernels_of_a_step_compile_for_hopper(step):
    pytest.importorskip("triton")
    from genesis.cuda.launch import triton

    known = set()
    for kernel in kernels_of(step):
        aligned = tuple([i for i, letter in enumerate(kernel.letters) if letter == "Q"])
        if kernel.source not in known:
            made = triton.compiled(kernel.source, kernel.signature, aligned, kernel.warps, fused=kernel.fused)
            told = triton.text_of(made)
            assert made.image[:4] == b"\x7fELF" and "STACK:0" in told and "LDL" not in told
        known.add(kernel.source)
    assert len(known) > 5


@pytest.mark.slow
def test_kernels_of_steps_run_by_tritons_interpreter(gpu, monkeypatch):
    pytest.importorskip("triton")
    expected = training("cuda", OPTIMIZERS["AdamW"], True, steps=4)
    monkeypatch.setenv("GENESIS_CUDA_KERNELS", "triton")
    found = training("cuda", OPTIMIZERS["AdamW"], True, steps=4)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for x, y in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [genesis.optim.Adam, genesis.optim.SGD])
def test_parameters_without_elements(kind, gpu):
    """What a rank has of a parameter with fewer rows than ranks: its loops have no rounds, and start no kernel."""

    def trained(place):
        none, some = (nn.Parameter(genesis.ones(n, 5, device=place)) for n in (0, 3))
        optimizer = kind([none, some], lr=0.1)

        step = training_step(optimizer, lambda x: (none * 2).sum() + (some * x).pow(2).sum())

        step = genesis.compile(step, fullgraph=True) if place == "cuda" else step
        losses = [step(genesis.full((5,), float(i), device=place)).item() for i in range(4)]
        return *losses, *some.flatten().tolist()

    np.testing.assert_allclose(trained("cuda"), trained("cpu"), rtol=1e-5)
