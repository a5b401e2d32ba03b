"""What steps of reference models launch and move, and what a launch is for the host: budgets that a change must not exceed.

Nothing here needs a GPU: launches and bytes are those of the plan (`compiled.explain()`), the host's work is counted in
functions that are entered, over a driver that does nothing.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from kernels_of import training_step
from resnets import resnet, training

import genesis
from genesis import jit, nn
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.kernels.lowering import PROCESSORS
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.steps.ready import STAYS
from genesis.jit.lowering.compiled import title_of
from genesis.jit.lowering.step import step_of
from genesis.nn import functional as F
from genesis.ops.spatial.convolution import is_channels_last


class Silent(Emulated):
    """A driver that takes calls and does nothing: what is left is the time of the host."""

    def _nothing(self, *_):
        pass

    copy = copy_in = fill = launch_graph = event_record = stream_wait = _nothing

    def launch(self, function, grid, block, shared, stream, parameters, values):
        parameters.address(values)

    def event_query(self, event):
        return True


@pytest.fixture
def gpu():
    with using(Emulated(1)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


def told(step, *args):
    """What the step of a program does; nothing is run but one call that fills the optimizer's state."""
    step(*args)
    return step_of(jit.optimized(jit.trace(step, *args)).program).explain()


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.heads = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels=16):
        super().__init__()
        self.c1, self.c2 = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.n1, self.n2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + x)


def mlp():
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to("cuda")
    optimizer = genesis.optim.Adam(model.parameters())

    step = training_step(optimizer, lambda x, y: F.cross_entropy(model(x), y))

    return step, genesis.randn(128, 784, device="cuda"), genesis.randint(0, 10, (128,), device="cuda")


def of_module(model, *shape):
    model = model.to("cuda")

    def step(x):
        model.zero_grad()
        model(x).square().mean().backward()

    return step, genesis.randn(*shape, device="cuda")


def half(model, *shape):
    """A step under autocast."""
    model = model.to("cuda")
    optimizer = genesis.optim.AdamW(model.parameters())

    def step(x):
        optimizer.zero_grad()
        with genesis.autocast("cuda", genesis.bfloat16):
            y = model(x)
        loss = y.float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, genesis.randn(*shape, device="cuda")


# launches, bytes moved, and the bytes of the arena
BUDGETS = {
    "an MLP's step with Adam": (mlp, 7, 11_700_000, 525_000),
    "a layer of a transformer, forward and backward": (
        lambda: of_module(Block(), 4, 64, 64),
        15,
        7_170_000,
        1_385_000,
    ),
    "a layer of a transformer with AdamW, in bfloat16": (lambda: half(Block(), 4, 64, 64), 25, 5_790_000, 465_000),
    "a residual block, forward and backward": (lambda: of_module(Residual(), 8, 16, 16, 16), 14, 2_540_000, 265_000),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_launches_and_bytes(name, gpu):
    make, launches, moved, arena = BUDGETS[name]
    now = told(*make())
    assert (now.launches <= launches, now.moved <= moved, now.arena <= arena) == (True,) * 3, str(now)


class Vast(Spaces):
    """Memory that nobody touches: addresses alone, so that steps as large as a GPU's can be planned."""

    def reserve(self, count):
        address = self._enter(np.broadcast_to(np.zeros(1, np.uint8), (count,)))
        self._backed[address] = {}
        return address

    def back(self, address, count, device):
        self.used[device] += count
        self._owners[address] = device
        start = self._start(address)
        self._backed[start][address - start] = count
        return True


class GPT2(nn.Module):
    """124 million parameters, whose embedding is its last layer, too."""

    def __init__(self, words=50257, width=768, layers=12, heads=12, length=1024):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, t):
        x = self.words(t) + self.positions(genesis.arange(t.shape[1], device=t.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


@pytest.fixture
def vast():
    """A device with the memory of an H200, on which nothing is done."""
    driver = Silent(1, 130 << 30)
    driver.spaces = Vast(1, 130 << 30)
    with using(driver), warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


@pytest.mark.slow
def test_the_step_of_gpt2(vast):
    """16 sequences of 1024 words in bfloat16: launches, bytes, memory, and the least time by a model of an H200, in which
    each processor has its share of the bandwidth, and attention takes no more than its bytes do.
    """
    model = GPT2().to("cuda")
    optimizer = genesis.optim.AdamW(model.parameters())
    t = genesis.zeros(16, 1024, dtype=genesis.int64, device="cuda")

    def step(t, y):
        optimizer.zero_grad()
        with genesis.autocast("cuda", genesis.bfloat16):
            z = model(t).flatten(0, 1)
        loss = F.cross_entropy(z.float(), y)
        loss.backward()
        optimizer.step()
        return loss

    now = told(step, t, t.flatten())
    assert sum([p.numel() for p in model.parameters()]) == 124_439_808
    milliseconds = now.seconds(4.3e12, 790e12) * 1e3
    assert (now.launches <= 325, now.moved <= 48.3e9, now.arena <= 3.35e9, milliseconds <= 21.9) == (True,) * 4, (
        f"{milliseconds:.2f} ms", str(now).splitlines()[0],
    )  # fmt: skip


# depth: batch, parameters, launches, bytes moved, of the arena, and the least milliseconds by the same model. Statistics of
# channels that lie last are sums of columns, which programs divide: a launch for each time that they are read
RESNETS = {
    18: (64, 11_689_512, 275, 6.56e9, 0.39e9, 2.12),
    50: (64, 25_557_032, 715, 27.6e9, 1.42e9, 7.28),
}
CONVOLUTIONS = {18: 59, 50: 158}  # forward and backward


@pytest.mark.parametrize("depth", [18, pytest.param(50, marks=pytest.mark.slow)])
def test_the_step_of_a_resnet(depth, vast):
    """Images of 224 x 224 in bfloat16, with batch norm and momentum."""
    batch, parameters, launches, moved, arena, least = RESNETS[depth]
    assert sum([p.numel() for p in resnet(depth).parameters()]) == parameters
    step, *args = training(depth, batch)
    step(*args)
    made = step_of(jit.optimized(jit.trace(step, *args)).program)
    now = made.explain()
    milliseconds = now.seconds(4.3e12, 790e12) * 1e3
    convolved = [p.calls[0] for p in made.phases if not p.stages and "convolution" in p.calls[0].op]
    assert len(convolved) == CONVOLUTIONS[depth]
    rows = [
        c
        for c in convolved
        if not all([is_channels_last(v.spec) or 1 in v.spec.shape[1:] for v in (*c.inputs, *c.outs)])
    ]
    assert not rows, "cuDNN computes with channels last: what lies otherwise is copied before and behind"
    images = [v for p in made.phases for s in p.stages for v in s.operands if len(v.spec.shape) == 4]
    assert all([is_channels_last(v.spec) or 1 in v.spec.shape[1:] for v in images]), "gradients, too"
    assert (now.launches <= launches, now.moved <= moved, now.arena <= arena, milliseconds <= least) == (True,) * 4, (
        f"{milliseconds:.2f} ms", str(now).splitlines()[0],
    )  # fmt: skip


def test_16_bits_stay_so_in_memory(gpu):
    """Products of a step under autocast are asked for in 16 bits, those of gradients, too; attention is one call forward and
    one backward; and GELU's gradient reads two numbers of 16 bits and writes one: the bias' gradient is summed on the way.
    """
    step, x = half(Block(), 4, 64, 64)
    step(x)
    made = step_of(jit.optimized(jit.trace(step, x)).program)
    calls = [phase.calls[0] for phase in made.phases if not phase.stages]
    products = [call for call in calls if call.op in ("linear", "matmul", "matmul_tn")]
    assert len(products) == 12 and {v.spec.dtype for call in products for v in (*call.inputs, *call.outs)} == {
        genesis.bfloat16.np
    }
    (forward, backward) = [call for call in calls if "attention" in call.op]
    assert backward.op == forward.op + ".backward.joined" and forward.outs[1].spec.shape == (4, 4, 64, 1)
    (entry,) = [e for e in made.explain().entries if "gelu.CudaArray.backward" in e.title]
    count, bias = 4 * 64 * 256, 4 * 256
    assert "sum" in entry.title and entry.read <= 4 * count + 4 * bias and entry.written <= 2 * count + 4 * bias


def test_what_a_norm_moves(gpu):
    """Forward the sum that is normalized is read, and written with the result and two numbers of each row; nothing of it is
    read again, in the same launch either. Backward nothing but the gradient is as large.
    """
    w, m = nn.LayerNorm(512, device="cuda"), genesis.randn(512, 8, device="cuda")

    def step(x, y):
        z = x + y
        loss = (w(z) @ m).sum()
        return loss, z, *genesis.autograd.grad(loss, [z, w.weight, w.bias])

    x, y = (genesis.randn(64, 512, device="cuda", requires_grad=True) for _ in range(2))
    step(x, y)
    made = step_of(jit.optimized(jit.trace(step, x, y)).program)
    size, row = 4 * 64 * 512, 4 * 512
    (forward,) = [e for e in made.explain().entries if "layer_norm.CudaArray" in e.title and "backward" not in e.title]
    assert (forward.read, forward.written) == (2 * size + 2 * row, 2 * size + 2 * 4 * 64)
    (source,) = [p.stages[0].kernel.kernel.source for p in made.phases if forward.title == title_of(p.calls)]
    assert source.count("tl.load") == 4 and "barrier" not in source
    backward = [e for e in made.explain().entries if "layer_norm.CudaArray.backward" in e.title]
    assert sum([e.written for e in backward]) <= size + 4 * row


def test_loops_over_many_tensors_are_one_launch(gpu):
    """Weights become 16 bits in one launch, and are updated in one, whatever their sizes are."""
    step, x = half(nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 128), nn.Linear(128, 64)), 16, 64)
    step(x)
    made = step_of(jit.optimized(jit.trace(step, x)).program)
    phases = [(len(p.stages), {c.op for c in p.calls}) for p in made.phases if len(p.stages) > 1]
    assert phases == [(7, {"convert"}), (3, {"convert", "fused.adam_step"})]  # the input, too


def test_convolutions_of_16_bits_stay_so(gpu):
    """Those of gradients are asked for in 16 bits, too."""
    step, x = half(Residual(), 8, 16, 16, 16)
    step(x)
    made = step_of(jit.optimized(jit.trace(step, x)).program)
    calls = [phase.calls[0] for phase in made.phases if not phase.stages and "convolution" in phase.calls[0].op]
    assert sorted([call.op for call in calls]) == ["convolution"] * 3 + ["convolution_weight"] * 2
    assert {v.spec.dtype for call in calls for v in (*call.inputs, *call.outs)} == {genesis.bfloat16.np}
    operations = 2 * (8 * 16 * 16 * 16) * (16 * 3 * 3)
    assert made.explain().flops == len(calls) * operations


def test_tensors_of_one_number_are_counted_in_one_launch(gpu):
    """How many batches each batch norm saw: a number each, of which none is read."""
    model = nn.Sequential(*[nn.BatchNorm1d(n) for n in (16, 16, 16, 16)]).to("cuda")
    x = genesis.zeros(8, 16, device="cuda")
    step_of_model = lambda x: model(x)  # noqa: E731
    step_of_model(x)
    made = step_of(jit.optimized(jit.trace(step_of_model, x)).program)
    (counts,) = [p for p in made.phases if p.stages and {c.outs[0].spec.shape for c in p.calls} == {()}]
    assert len(counts.stages) == 4


def test_an_optimizer_moves_what_it_must(gpu):
    """Adam reads a parameter, its gradient and two averages, and writes three of these: once, whatever is clipped or scaled."""
    w = nn.Parameter(genesis.zeros(1 << 16, device="cuda"))
    optimizer = genesis.optim.AdamW([w], weight_decay=0.1)

    def step(g):
        w.grad = None
        (w * g).sum().backward()
        optimizer.step()

    now = told(step, genesis.ones(1 << 16, device="cuda"))
    (update,) = [e for e in now.entries if "adam_step" in e.title]
    size = 4 << 16
    assert update.read <= 4 * size + 64 and update.written == 3 * size
    assert now.moved <= 10 * size + 256


def test_a_model_of_time(gpu):
    """The least time of a step: each launch takes as long as its bytes or its operations."""
    now = told(*mlp())
    least = now.seconds(4.3e12, 790e12, processors=1)
    assert now.moved / 4.3e12 <= least * (1 + 1e-9) < now.moved / 4.3e12 + now.flops / 790e12
    assert now.seconds(4.3e12, 790e12) > least  # its kernels have fewer programs than an H100 processors


def test_programs_share_what_a_launch_moves(vast):
    """No program moves much while other processors have none."""
    step, x = half(Block(768, 12), 16, 1024, 768)
    for each in told(step, x).entries:
        assert not each.launch or each.programs >= PROCESSORS or each.read + each.written < each.programs << 18, each


# ---- the host


def calls(run):
    """Functions that one call enters, those of Python and those of C."""
    count = 0

    def enter(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    for _ in range(3):  # what is only done the first times
        run()
    sys.setprofile(enter)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count - 1  # without the one that ends it


@pytest.fixture
def silent():
    with using(Silent(1)) as driver:
        yield driver


# how many functions each may enter; kernels that somebody attached for other devices are looked for, too
CALLS = {
    "an eager add": 42,
    "an eager product": 45,
    "an eager addition in place": 34,
    "a gather": 54,
    "forward and backward of a layer": 215,
    "a launch of a kernel": 12,
    "a step as a graph": 39,
    "a step of Adam": 410,
}


def of_many_parameters():
    """A step of Adam, as those before were: 64 parameters."""
    parameters = [nn.Parameter(genesis.ones(8, device="cuda")) for _ in range(64)]
    for p in parameters:
        p.grad = genesis.ones(8, device="cuda")
    return genesis.optim.AdamW(parameters).step


def forward_and_backward():
    layer, x, g = nn.Linear(8, 4).to("cuda"), genesis.ones(2, 8, device="cuda"), genesis.ones(2, 4, device="cuda")

    def run():
        layer.weight.grad = layer.bias.grad = None
        layer(x).backward(g)

    return run


def test_the_host_does_little(silent, classes_of_its_own):
    x, m = genesis.ones(64, device="cuda"), genesis.ones(8, 8, device="cuda")
    places = genesis.zeros(8, 3, dtype=genesis.int64, device="cuda")
    x + x
    run = genesis.compile(lambda t: (t * 2 + 1).relu())
    for _ in range(STAYS + 4):
        run(x)
    (entry,) = run._recent
    assert entry.step.graphs == 1
    stage = entry.step.phases[0].stages[0].kernel
    on, stream = x._array.on, genesis.cuda.current_stream().cuda_stream
    operands = [x._array.address] * len(stage.kernel.nest.operands)
    runs = {
        "an eager add": lambda: x + x,
        "an eager product": lambda: m @ m,
        "an eager addition in place": lambda: x.add_(x),
        "a gather": lambda: genesis.gather(m, 1, places),
        "forward and backward of a layer": forward_and_backward(),
        "a launch of a kernel": lambda: stage.kernel.launch(on, stream, operands, stage.count),
        "a step as a graph": lambda: run(x),
        "a step of Adam": of_many_parameters(),
    }
    counts = {name: calls(each) for name, each in runs.items()}
    assert all([counts[name] <= CALLS[name] for name in CALLS]), dict(counts)
