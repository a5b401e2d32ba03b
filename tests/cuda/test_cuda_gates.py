"""What is checked of the GPU's side on machines without one: that nothing of it is imported, that every kind of kernel has
its machine code looked at, and that the emulated device sees exactly the races that there are.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import genesis.cuda.steps.step  # kernels that are imported when a step is compiled
from genesis.arrays.spec import Spec
from genesis.cuda.launch.kernel import Launched
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.emulated import Emulated
from genesis.cuda.runtime.errors import RaceError
from genesis.jit.storage import seen_at

PURE = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "cupy", "triton", "nvmath", "cudnn", "nccl"}:
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refusing())
import genesis
from genesis import nn

for device in ("cpu", "cuda"):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    optimizer = genesis.optim.Adam(model.parameters())
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(genesis.ones(5, 4, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
"""


def test_a_training_imports_no_other_framework():
    environment = {"PYTHONPATH": str(Path(genesis.__file__).parents[1]), "PATH": "", "GENESIS_CUDA": "emulate"}
    done = subprocess.run([sys.executable, "-c", PURE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# kinds of kernels, and the tests that compile them for Hopper and look at registers, spills, loads and tensor cores
LOOKED_AT = {
    "test_cuda_triton.py": {"Kernel", "Product"},
    "test_cuda_tiled.py": {"Tiled", "Mixed"},
    "test_cuda_draws.py": {"Draw"},
    "test_cuda_optimizers.py": {"Several"},
    "test_cuda_indexing.py": {
        "Lanes",
        "Tiles",
        "Merge",
        "InPlace",
        "Step",
        "Begins",
        "Sums",
        "OfRows",
        "Whole",
        "Least",
        "Among",
    },
    "test_cuda_rows.py": {"Row", "Loss", "Gradient", "Mean", "Columns", "Both", "Share", "Long", "Few"},
    "test_cuda_scans.py": {"Scan"},
    "test_cuda_convolution.py": {"Windows"},
    "test_cuda_attention.py": {"Heads"},
}
SAME_CODE = {"Held": "Kernel, whose numbers lie in memory"}


def kinds(of):
    for each in of.__subclasses__():
        yield each
        yield from kinds(each)


def test_the_machine_code_of_every_kind_of_kernel_is_looked_at():
    known = {each.__name__ for each in kinds(Launched) if each.__module__.startswith("genesis.")}
    assert known == set.union(*LOOKED_AT.values()) | set(SAME_CODE)
    for file in LOOKED_AT:
        assert "def test_machine_code" in (Path(__file__).parent / file).read_text(), file


# ---- races: what the emulated device says beside a search of all paths

STREAMS, EVENTS, BUFFERS = 3, 2, 2


def program(seed, length=14):
    """Random actions of a program, as (what, numbers)."""
    draw = random.Random(seed)
    for _ in range(length):
        what = draw.choice(["write", "read", "read", "record", "wait", "synchronize"])
        second = BUFFERS if what in ("write", "read") else EVENTS
        yield what, draw.randrange(STREAMS), draw.randrange(second)


def first_race(actions):
    """The number of the first action that uses memory of which nothing says whether it comes before or after another use."""
    before = {}  # of each action, those that it certainly comes behind
    last, recorded, seen = dict.fromkeys(range(STREAMS)), dict.fromkeys(range(EVENTS)), set()
    uses, pending = [], {s: set() for s in range(STREAMS)}
    for number, (what, stream, which) in enumerate(actions):
        if what == "synchronize":  # whatever is told from now on comes behind
            seen |= _until(last[stream], before) | pending[stream]
            continue
        if what == "wait":
            if recorded[which] is not None:
                pending[stream] |= recorded[which]
            continue
        earlier = _until(last[stream], before) | pending[stream] | seen
        if what == "record":
            recorded[which] = earlier
            continue
        before[number], last[stream] = earlier, number
        for other, other_what, buffer in uses:
            if buffer == which and "write" in (what, other_what) and other not in earlier:
                return number
        uses.append((number, what, which))
    return None


def _until(number, before):
    return set() if number is None else before[number] | {number}


def raised(actions):
    """The number of the action at which the emulated device raises."""
    with using(Emulated(1)) as driver:
        device_at(0).enter()
        streams = [driver.stream() for _ in range(STREAMS)]
        events = [driver.event() for _ in range(EVENTS)]
        buffers, own = [driver.allocate(64) for _ in range(BUFFERS)], [driver.allocate(64) for _ in range(STREAMS)]
        for number, (what, stream, which) in enumerate(actions):
            try:
                if what == "write":
                    driver.fill(buffers[which], number, 1, 64, streams[stream])
                elif what == "read":
                    driver.copy(own[stream], buffers[which], 64, streams[stream])
                elif what == "record":
                    driver.event_record(events[which], streams[stream])
                elif what == "wait":
                    driver.stream_wait(streams[stream], events[which])
                else:
                    driver.stream_synchronize(streams[stream])
            except RaceError:
                return number
    return None


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_races_are_those_that_there_are(first):
    counts = {True: 0, False: 0}
    for seed in range(first, first + 100):
        actions = list(program(seed))
        expected = first_race(actions)
        assert raised(actions) == expected, (seed, actions)
        counts[expected is None] += 1
    assert min(counts.values()) >= 5, counts  # programs of both kinds


def test_the_order_that_one_event_gives():
    """All programs of three actions between a write and a read on two streams: only record and wait, in this order, do."""
    parts = [("record", 0, 0), ("wait", 1, 0), ("synchronize", 0, 0), ("record", 1, 1)]
    for middle in itertools.permutations(parts, 3):
        actions = [("write", 0, 0), *middle, ("read", 1, 0)]
        ordered = ("synchronize", 0, 0) in middle or (
            parts[0] in middle and parts[1] in middle and middle.index(parts[0]) < middle.index(parts[1])
        )
        assert (raised(actions) is None) == (first_race(actions) is None) == ordered, actions


def test_a_view_of_no_dimensions_is_where_the_array_is():
    """... also where NumPy gives a number for it, as ``x[()]`` does, whose address says nothing."""
    whole = SimpleNamespace(strides=None, kernel=lambda x: x[()])
    spec = Spec((), genesis.float32.np)
    assert seen_at(whole, (), spec, ()) == (0, ())
