"""Workers: what is left of them, what they say when something goes wrong, and what comes through to the caller."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
from common import Noisy, NoisyStream, make, plain

import genesis
from genesis.base.errors import WorkerError
from genesis.data import DataLoader, Dataset, IterableDataset, get_worker_info

KINDS = ["thread", "fork"]
ALL_KINDS = [None, *KINDS]
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(autouse=True)
def _nothing_is_left(request, only_new_garbage):
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    left = [t for t in threading.enumerate() if t.name.startswith("genesis-loader")]
    for thread in left:
        thread.join(10)
    assert not any(t.is_alive() for t in left)
    if sys.platform == "linux":
        helpers = 2 if "other_ways" in request.node.name else 0  # multiprocessing's, of which a process has one each
        assert len(os.listdir("/proc/self/fd")) <= before + helpers


class Doing(Dataset):
    """Example i is i; example 5 does something first."""

    def __init__(self, action, count=12):
        self.action, self.count = action, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i == 5:
            self.action()
        return i


def workers(kind, count=2):
    return 0 if kind is None else count


# ---- workers that die


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: os._exit(3), r"worker 0 \(process \d+\) exited with code 3\n  try: num_workers=0"),
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            r"worker 0 \(process \d+\) was killed by SIGKILL\n  try: fewer workers",
        ),
        (lambda: os.kill(os.getpid(), signal.SIGUSR1), r"worker 0 \(process \d+\) was killed by SIGUSR1"),
    ],
)
def test_a_worker_that_dies_is_an_error_that_names_it(action, words):
    batches = iter(make(Doing(action), 2, "fork", batch_size=2, prefetch_factor=1))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(WorkerError, match=words):
        list(batches)
    with pytest.raises(WorkerError, match="the workers of this iterator were ended"):
        next(batches)


def test_a_worker_that_is_killed_while_others_are_waited_for():
    loader = make(Doing(lambda: time.sleep(60)), 2, "fork", batch_size=2, prefetch_factor=1)
    batches = iter(loader)
    next(batches), next(batches)
    os.kill(batches.crew.processes[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match="worker 1 .* was killed by SIGKILL"):
        next(batches)


# ---- exceptions


class OddError(Exception):
    def __init__(self, one, *, two):
        super().__init__(f"{one} {two}")
        self.lock = threading.Lock()


def fail():
    raise KeyError("example 5 is broken")


def fail_oddly():
    raise OddError(1, two=2)


def stop():
    raise StopIteration


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_an_exception_keeps_its_type_and_names_index_batch_and_worker(kind):
    batches = iter(make(Doing(fail), workers(kind), kind, batch_size=2))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="example 5 is broken") as caught:
        next(batches)
    worker = "" if kind is None else ", worker 0"
    assert caught.value.__notes__ == [f"DataLoader: example 5, batch 2{worker}"]
    place = str(caught.value.__cause__) if kind == "fork" else str([e.name for e in caught.traceback])
    assert "fail" in place and "__getitem__" in place
    assert next(batches).tolist() == [6, 7] and len(list(batches)) == 2


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize(
    ("action", "error", "words"), [(fail_oddly, OddError, "1 2"), (stop, RuntimeError, "StopIteration was raised")]
)
def test_exceptions_that_are_hard_to_send(kind, action, error, words):
    with pytest.raises(error, match=words):
        list(make(Doing(action), workers(kind), kind))


def test_an_exception_of_a_local_class():
    class LocalError(Exception):
        pass

    def act():
        raise LocalError("here")

    with pytest.raises(WorkerError, match="LocalError: here"):
        list(make(Doing(act), 2, "fork"))


class Bad(IterableDataset):
    def __init__(self, at_once):
        self.at_once = at_once

    def __iter__(self):
        if self.at_once:
            fail()
        return self.run()

    def run(self):
        yield 1
        fail()


def bad_collate(batch):
    if 5 in batch:
        fail()
    return batch


def bad_init(number):
    if number == 1:
        fail()


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize(
    ("make_it", "note"),
    [
        (lambda **o: DataLoader(Bad(True), **o), "DataLoader: the begin of the stream, batch 0"),
        (lambda **o: DataLoader(Bad(False), **o), "DataLoader: example 1 of the stream, batch 1"),
        (lambda **o: DataLoader(range(9), 2, collate_fn=bad_collate, **o), "DataLoader: collate_fn, batch 2"),
        (lambda **o: DataLoader(Doing(fail), None, **o), "DataLoader: example 5, batch 5"),
    ],
)
def test_exceptions_elsewhere(kind, make_it, note):
    options = {} if kind is None else dict(num_workers=1, multiprocessing_context=kind)
    with pytest.raises(KeyError, match="example 5 is broken") as caught:
        list(make_it(**options))
    assert caught.value.__notes__[0].startswith(note)


@pytest.mark.parametrize("kind", KINDS)
def test_exceptions_of_worker_init_fn(kind):
    with pytest.raises(KeyError, match="example 5 is broken") as caught:
        list(make(range(9), 2, kind, worker_init_fn=bad_init))
    assert "DataLoader: worker_init_fn, worker 1" in caught.value.__notes__


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_exceptions_of_the_sampler_and_the_user_s_loop(kind):
    def order():
        yield 1
        fail()

    with pytest.raises(KeyError):
        list(make(range(9), workers(kind), kind, sampler=order()))
    with pytest.raises(ZeroDivisionError):
        for _ in make(range(9), workers(kind), kind):
            raise ZeroDivisionError


def test_a_batch_that_cannot_be_sent():
    x = genesis.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="only leaf tensors can be pickled") as caught:
        list(make([0, 1], 1, "fork", collate_fn=lambda batch: x * 2))
    assert "DataLoader: sending batch 0 of type Tensor from worker 0" in caught.value.__notes__
    with pytest.raises((pickle.PicklingError, AttributeError)):
        list(make([0, 1], 1, "fork", collate_fn=lambda batch: lambda: 0))


# ---- leaving early, time, Ctrl-C


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("persistent", [False, True])
def test_leaving_the_loop_ends_the_workers(kind, persistent):
    loader = make(Noisy(500), 2, kind, batch_size=4, persistent_workers=persistent)
    for _ in range(3):
        for _ in loader:
            break
    iter(loader)
    batches = iter(loader)
    next(batches)
    del batches, loader  # and the fixture looks for what is left


@pytest.mark.parametrize("kind", KINDS)
def test_time_is_over(kind):
    batches = iter(make(Doing(lambda: time.sleep(3)), 1, kind, batch_size=5, timeout=0.5))
    next(batches)
    with pytest.raises(RuntimeError, match=r"DataLoader: timed out after 0.5 seconds"):
        next(batches)


SCRIPT = """
import multiprocessing, os, signal, sys, time
import genesis
from genesis.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        if i == 3:
            time.sleep(600)
        return i

loader = DataLoader(Slow(), 2, num_workers=2, multiprocessing_context=sys.argv[1] if sys.argv[1] != "None" else None)
batches = iter(loader)
print(next(batches).tolist(), *[p.pid for p in multiprocessing.active_children()], flush=True)
if sys.argv[2] == "wait":
    next(batches)
elif sys.argv[2] == "compute":
    time.sleep(600)
"""


def gone(pid):
    for _ in range(200):
        try:
            if "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text():
                return True  # dead, and nobody has asked for it yet
        except OSError:
            return True
        time.sleep(0.05)
    return False


@linux
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", ["wait", "compute", "exit", "killed"])
def test_the_end_of_the_program_is_the_end_of_its_workers(kind, at, tmp_path):
    import subprocess

    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), kind, at.replace("killed", "wait")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        first, *pids = process.stdout.readline().replace("[0, 1]", "x").split()
        assert first == "x" and len(pids) == (2 if kind == "fork" else 0)
        if at == "killed":
            process.kill()
        elif at != "exit":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=60)
        assert all(gone(pid) for pid in pids)
        if at in ("wait", "compute"):
            assert process.returncode == -signal.SIGINT and errors.count("KeyboardInterrupt") == 1, errors
        else:
            assert errors == ""
    finally:
        process.kill()
        process.communicate()  # closes the pipes


@linux
def test_a_script_without_a_main_guard(tmp_path):
    import subprocess

    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run([*command, "None", "exit"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("[0, 1]") and done.stderr == "" and done.returncode == 0
    done = subprocess.run([*command, "spawn", "exit"], capture_output=True, text=True, timeout=60)
    assert 'try: if __name__ == "__main__": around what a script does (workers are started by spawn)' in done.stderr


@pytest.mark.parametrize("kind", ["spawn", "forkserver"])
def test_other_ways_to_start_give_the_same(kind):
    genesis.manual_seed(5)
    want = [plain(b) for b in make(Noisy(), 0, None, batch_size=4)]
    genesis.manual_seed(5)
    assert [plain(b) for b in make(Noisy(), 2, kind, batch_size=4)] == want
    with pytest.raises((pickle.PicklingError, AttributeError)) as caught:
        iter(make(Noisy(), 2, kind, collate_fn=lambda batch: batch))
    assert f"workers are started by {kind}, for which the dataset and the functions" in caught.value.__notes__[0]


# ---- what comes through


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_all_sorts_come_through(kind):
    made = [
        genesis.randn(100, 100),
        genesis.randn(100, 100).to(genesis.bfloat16),
        genesis.zeros(0, 5),
        genesis.tensor(3),
        genesis.tensor(True),
        genesis.randn(60, 100).t(),
        genesis.randn(2, 3, requires_grad=True),
        np.asfortranarray(np.random.rand(90, 80)),
        np.arange(40000)[::-2],
        np.array(["a", None], object),
        "text" * 5000,
        b"bytes" * 5000,
        None,
        {"deep": [(1, 2.5), {3}]},
        genesis.randn(30, 30).to(genesis.complex128),
    ]
    loader = make(range(len(made)), 2, kind, batch_size=None, collate_fn=lambda i: made[i])
    for got, want in zip(loader, made, strict=True):
        assert type(got) is type(want)
        if isinstance(want, genesis.Tensor):
            assert got.dtype == want.dtype and got.shape == want.shape and got.requires_grad == want.requires_grad
            assert got.detach().to(genesis.complex128).tolist() == want.detach().to(genesis.complex128).tolist()
        elif isinstance(want, np.ndarray):
            assert got.dtype == want.dtype and got.tolist() == want.tolist()
        else:
            assert got == want
    (got,) = make([0], 1, kind, collate_fn=lambda _: custom())
    assert got.array.sum() == np.arange(5000.0).sum() and got.text == "x" * 10000


class Custom:
    pass


def custom():
    made = Custom()
    made.array, made.text = np.arange(5000.0), "x" * 10000
    return made


def big(i):
    return genesis.full((50, 50), float(i))


def test_shared_memory_is_used_again_only_when_nothing_looks_at_it():
    loader = make(range(300), 2, "fork", batch_size=None, collate_fn=big)
    kept, views, addresses = [], [], set()
    for i, batch in enumerate(loader):
        if i % 3 == 0:
            kept.append((i, batch))
        if i % 3 == 1:
            views.append((i, batch[1:, ::2].t()))
        addresses.add(batch.data_ptr())
        batch.mul_(1)  # it may be written to
    assert all((x == float(i)).all() for i, x in kept + views)

    addresses = [batch.data_ptr() for batch in loader]
    assert len(set(addresses)) < 20


@linux
def test_keeping_every_batch_does_not_use_up_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    loader = make(range(200), 2, "fork", batch_size=None, collate_fn=big)
    batches = iter(loader)
    kept = list(itertools.islice(batches, 199))
    assert len(os.listdir("/proc/self/fd")) - before < 80
    assert all((x == float(i)).all() for i, x in enumerate(kept))


def test_segments_grow():
    sizes = [10, 2000, 30, 400000, 50, 2000000, 7]
    loader = make(range(len(sizes)), 1, "fork", batch_size=None, collate_fn=lambda i: np.full(sizes[i], i))
    for i, batch in enumerate(loader):
        assert batch.shape == (sizes[i],) and (batch == i).all()


@pytest.mark.parametrize("kind", KINDS)
def test_many_small_batches_ahead(kind):
    loader = make(range(4000), 2, kind, batch_size=1, prefetch_factor=1500, collate_fn=lambda b: b[0])
    assert list(loader) == list(range(4000))


# ---- options


class Infos(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = get_worker_info()
        return i, info.id, info.num_workers, info.seed, info.dataset is not None, os.getpid(), threading.get_ident()


@pytest.mark.parametrize("kind", KINDS)
def test_worker_info_and_turns(kind):
    genesis.manual_seed(1)
    rows = [[int(x) for x in batch] for batch in make(Infos(), 2, kind, collate_fn=lambda b: b[0])]
    assert [(r[0], r[1], r[2]) for r in rows] == [(i, i % 2, 2) for i in range(8)]
    assert rows[1][3] == rows[0][3] + 1 and all(r[4] for r in rows) and get_worker_info() is None
    places = {r[5:][kind == "thread"] for r in rows}
    assert len(places) == 2 and (os.getpid() in {r[5] for r in rows}) == (kind == "thread")


@pytest.mark.parametrize("kind", KINDS)
def test_persistent_workers_stay(kind):
    loader = make(Infos(), 2, kind, collate_fn=lambda b: b[0][5:], persistent_workers=True)
    first = list(loader)
    assert sorted(set(first)) == sorted(set(loader)) and len(set(first)) == 2
    old = iter(loader)
    new = iter(loader)
    next(new)
    with pytest.raises(WorkerError, match="a later iterator has taken over"):
        next(old)
    assert len(list(new)) == 7
    loader.end_workers()
    assert set(loader).isdisjoint(first) or kind == "thread"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("persistent", [False, True])
def test_persistent_workers_give_the_same_streams(kind, persistent):
    genesis.manual_seed(5)
    want = [[plain(b) for b in make(NoisyStream(), 2, kind, batch_size=3)] for _ in range(2)]
    genesis.manual_seed(5)
    loader = make(NoisyStream(), 2, kind, batch_size=3, persistent_workers=persistent)
    assert [[plain(b) for b in loader] for _ in range(2)] == want
    assert want[0] != want[1]


@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_are_not_split_come_from_each_worker(kind):
    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    assert [b.tolist() for b in make(Count(), 2, kind, batch_size=2)] == [[0, 1], [0, 1], [2], [2]]
    assert [b.tolist() for b in make(Count(), 2, kind, batch_size=2, drop_last=True)] == [[0, 1], [0, 1]]

    def split(number):
        info = get_worker_info()
        info.dataset.__class__ = Uneven
        info.dataset.number = number

    assert [b.item() for b in make(Count(), 2, kind, worker_init_fn=split)] == [0, 0, 1, 2, 3]


class Uneven(IterableDataset):
    def __iter__(self):
        return iter(range(1 if self.number == 0 else 4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_that_is_ready(kind):
    def wait(i):
        if i == 0:
            time.sleep(0.5)
        return i

    loader = make(range(6), 2, kind, batch_size=None, collate_fn=wait, in_order=False)
    batches = iter(loader)
    found = [next(batches)]
    assert found != [0]
    with pytest.raises(ValueError, match="batches were given out of order\n  try: in_order=True"):
        loader.state_dict()
    assert sorted(found + list(batches)) == list(range(6))


class Globals(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return random.random(), np.random.rand()


def test_processes_seed_the_other_generators_for_each_example():
    found = []
    for count in (1, 2, 4):
        genesis.manual_seed(5)
        loader = make(Globals(), count, "fork", batch_size=4)
        found.append([[plain(b) for b in loader] for _ in range(2)])
    assert found[0] == found[1] == found[2] and found[0][0] != found[0][1]
    flat = [x for batch in found[0][0] for column in batch for x in column]
    assert len(set(flat)) == 24


@pytest.mark.parametrize("kind", KINDS)
def test_worker_init_fn_draws_from_the_worker_s_seed(kind):
    drawn = []
    for _ in range(2):
        genesis.manual_seed(3)
        found = {}
        loader = make(range(4), 2, kind, worker_init_fn=lambda i, f=found: f.setdefault(i, genesis.rand(1).item()),
                      collate_fn=lambda b, f=found: f[get_worker_info().id])  # fmt: skip
        drawn.append(list(loader))
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 2


# ---- loaders in unusual places


class Nested(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return 3

    def __getitem__(self, i):
        loader = DataLoader(Noisy(6), 2, shuffle=True, num_workers=self.count)
        return genesis.cat([b[1] for b in loader])


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("inner", [0, 2])
def test_loaders_in_loaders(kind, inner):
    genesis.manual_seed(2)
    want = list(DataLoader(Nested(0)))
    genesis.manual_seed(2)
    found = list(make(Nested(inner), workers(kind), kind))
    assert all(genesis.equal(a, b) for a, b in zip(found, want, strict=True))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_loaders_in_threads(kind):
    def run(seed):
        g = genesis.Generator().manual_seed(seed)
        found[seed] = [plain(b) for b in make(Noisy(), workers(kind), kind, batch_size=4, shuffle=True, generator=g)]

    found = {}
    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for seed in range(3):
        g = genesis.Generator().manual_seed(seed)
        assert found[seed] == [plain(b) for b in DataLoader(Noisy(), 4, shuffle=True, generator=g)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_iterators_of_one_loader(kind):
    loader = make(range(6), 2, kind, batch_size=2)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)] == [
        (x, x) for x in ([0, 1], [2, 3], [4, 5])
    ]


@linux
def test_a_fork_with_a_live_iterator_leaves_its_workers_alone():
    batches = iter(make(range(20), 2, "fork"))
    next(batches)
    if (pid := os.fork()) == 0:
        del batches
        gc.collect()
        os._exit(0)
    os.waitpid(pid, 0)
    assert [b.item() for b in batches] == list(range(1, 20))


def test_pinning_is_accepted():
    loader = DataLoader(range(4), 2, pin_memory=True, pin_memory_device="cuda")
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
