"""The same training in the same bits: on 1, 2 and 4 ranks, and where it is killed twenty times."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from ranks import JOBS, needs_mpi

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.trees import tree_sum
from genesis.nn.hooks import EVERY_MODULE, register_module_forward_pre_hook
from genesis.nn.parallel import DistributedDataParallel
from genesis.nn.parallel.shard_tensors import Leaves

SCRIPT = str(JOBS / "deterministic.py")


def digest(ranks, folder, how, *options):
    """What a job ends with."""
    return of_job(ranks, [*options, SCRIPT, str(folder), how])


@pytest.fixture(scope="module")
def of_one_rank(tmp_path_factory):
    """What a training ends with on one rank: made once, the others are compared with it."""
    return functools.cache(lambda how: digest(1, tmp_path_factory.mktemp("one") / "folder", how))


def of_job(ranks, arguments, **said):
    command = [sys.executable, "-m", "genesis", "run", "-n", str(ranks), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RANK": "0", "WORLD_SIZE": "1"}
    environment |= said
    if ranks > 1:
        del environment["RANK"], environment["WORLD_SIZE"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, env=environment)
    assert done.returncode == 0 and "is done" in done.stdout, done.stdout + done.stderr
    return re.search(r"digest (\w{64})", done.stdout)[1]


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_number_of_ranks_does_not_matter(tmp_path, ranks, of_one_rank):
    assert digest(ranks, tmp_path / "several", "plain") == of_one_rank("plain")


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_nor_where_linear_layers_take_the_rows_of_all_shards(ranks):
    several, one = [of_job(n, [str(JOBS / "shards_of_layers.py")]) for n in (ranks, 1)]
    assert several == one


@pytest.mark.parametrize(("rows", "outputs", "products"), [(32, 10, 2), (16, 10, 8), (32, 3, 5)])
def test_compiled_layers_take_the_rows_of_all_shards(rows, outputs, products):
    """Where products of few rows, or of few columns, would add in another order each shard has its own."""
    dist.init_process_group()
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, outputs)), shards=4
    )

    def gradients(x, y):
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()

    compiled = genesis.compile(gradients, fullgraph=True)
    x, y = genesis.randn(rows, 8), genesis.randint(0, outputs, (rows,))
    compiled(x, y)
    got = [p.grad for p in model.parameters()]
    calls = [call.op for call in compiled._recent[0].step.program.calls]
    gradients(x, y)
    dist.destroy_process_group()
    assert calls.count("linear") == products and calls.count("matmul_tn") == 8
    for a, p in zip(got, model.parameters(), strict=True):
        assert genesis.allclose(a, p.grad, atol=1e-6)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_nor_in_models_with_a_forward_of_their_own(ranks):
    several, one = [of_job(n, [str(JOBS / "shards_of_classes.py")]) for n in (ranks, 1)]
    assert several == one


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_loop_that_says_nothing_of_shards_computes_as_the_environment_says(ranks):
    several, one = [of_job(n, [str(JOBS / "plain_loop.py")], GENESIS_SHARDS="4") for n in (ranks, 1)]
    assert several == one


def test_each_process_has_the_examples_of_its_logical_ranks(monkeypatch):
    data = TensorDataset(genesis.arange(21))

    def batches(ranks, shards):
        samplers = [DistributedSampler(data, ranks, rank, seed=3, shards=shards) for rank in range(ranks)]
        loaders = [DataLoader(data, batch_size=2, sampler=sampler) for sampler in samplers]
        assert len({len(loader) for loader in loaders}) == 1
        return [[x.tolist() for (x,) in loader] for loader in loaders]

    four = batches(4, None)
    for ranks in (1, 2):
        for rank, own in enumerate(batches(ranks, 4)):
            here = four[rank::ranks]  # those of its logical ranks, row by row in turn
            want = [[row for rows in zip(*step, strict=True) for row in rows] for step in zip(*here, strict=True)]
            assert own == want
    whole = DistributedSampler(data, 2, 0, drop_last=True, shards=4)
    assert (len(whole), whole.total_size) == (10, 20)
    monkeypatch.setenv("GENESIS_SHARDS", "4")
    assert batches(2, None) == batches(2, 4)
    with pytest.raises(ValueError, match="4 shards do not divide among 3 ranks"):
        DistributedSampler(data, 3, 0)
    monkeypatch.setenv("GENESIS_SHARDS", "many")
    with pytest.raises(ValueError, match="GENESIS_SHARDS is 'many' in the environment"):
        DistributedSampler(data, 2, 0)


def test_the_environment_gives_models_their_shards(alone, monkeypatch):
    monkeypatch.setenv("GENESIS_SHARDS", "2")
    assert DistributedDataParallel(nn.Linear(3, 2)).shards.count == 2
    assert DistributedDataParallel(nn.Linear(3, 2), shards=4).shards.count == 4


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_nor_in_compiled_steps(tmp_path, ranks, of_one_rank):
    assert digest(ranks, tmp_path / "several", "compiled") == of_one_rank("compiled")


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_training_that_is_killed_twenty_times_ends_in_the_same_bits(tmp_path, ranks, of_one_rank):
    killed = tmp_path / "killed"
    if ranks == 1:  # nobody starts one rank again: the test does
        for _ in range(25):
            ended = subprocess.run(
                [sys.executable, SCRIPT, str(killed), "killed"],
                capture_output=True,
                env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            if ended.returncode == 0:
                break
    found = digest(ranks, killed, "killed", *(["--max-restarts", "25"] if ranks > 1 else []))
    assert len((tmp_path / "killed.kills").read_text().splitlines()) == 20
    assert found == of_one_rank("plain")
    names = {path.name for path in killed.glob("step-*/*")}
    assert not [name for name in names if name.endswith(".tmp") or name.startswith("failed")]


@pytest.fixture
def alone():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def test_gradients_are_those_of_the_whole_batch(alone):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    x, y = genesis.randn(8, 3).double(), genesis.randn(8, 2).double()
    parallel = DistributedDataParallel(model, shards=4)
    out = parallel(x)
    np.testing.assert_allclose(out.detach().numpy(), model(x).detach().numpy())  # in the order of the rows
    ((out - y) ** 2).mean().backward()
    ours = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    ((model(x) - y) ** 2).mean().backward()
    for g, p in zip(ours, model.parameters(), strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-12)
    with genesis.no_grad():
        assert parallel(x[:3]).shape == (3, 2)  # of any number of rows, where nothing is summed
    before = genesis.get_rng_state()
    parallel(x)
    assert genesis.get_rng_state().equal(before)  # nothing was drawn


def test_sums_have_the_order_of_the_tree():
    g = np.random.default_rng(0).standard_normal(4).astype(np.float32) * np.array([1e8, 1, 1, 1e-3], np.float32)
    g[2] = -g[0] * np.float32(1 + 2**-20)
    assert tree_sum(list(g)) == (g[0] + g[2]) + (g[1] + g[3]) != ((g[0] + g[1]) + g[2]) + g[3]
    p = genesis.zeros(1, requires_grad=True)
    sum(leaf * float(v) for leaf, v in zip(Leaves.apply(p, 4), g, strict=True)).backward()
    assert p.grad.item() == tree_sum(list(g))


@pytest.mark.parametrize("count", [2, 4, 8])
def test_large_sums_have_that_order_too(count):
    parts = np.random.default_rng(0).standard_normal((count, 300, 307)).astype(np.float32)  # no multiple of a part
    p = genesis.zeros(300, 307, requires_grad=True)
    losses = [(leaf * genesis.tensor(x)).sum() for leaf, x in zip(Leaves.apply(p, count), parts, strict=True)]
    sum(losses).backward()
    np.testing.assert_array_equal(p.grad.numpy(), tree_sum(list(parts)))
    assert parts[0].nbytes >= memory.LARGE


def test_gradients_of_gradients_go_through_the_sum():
    p = genesis.ones(300, 307, requires_grad=True)
    first, second = Leaves.apply(p, 2)
    (g,) = genesis.autograd.grad((first**3).sum() + (second**2).sum(), p, create_graph=True)
    (h,) = genesis.autograd.grad(g.sum(), p)
    assert (g == 5).all() and (h == 8).all()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, x):
        return x + self.inner(x)


def several(kind):
    """Networks whose layers take the rows of all shards, or do not."""
    genesis.manual_seed(2)
    if kind == "tied":
        layer = nn.Linear(128, 128)
        return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(128, 5))
    if kind == "frozen":
        layers = [nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)]
        layers[0].weight.requires_grad_(False)
        return nn.Sequential(*layers)
    if kind == "hooked":
        model = nn.Sequential(nn.Linear(128, 256), nn.Linear(256, 128))
        model[0].register_forward_hook(lambda module, args, out: out * 2)
        return model
    if kind == "each by itself":  # layers that take all rows, too, and some that write into what they are given
        first = [nn.Linear(128, 96), nn.ReLU(inplace=True), nn.Unflatten(1, (2, 48)), nn.Flatten(), nn.Hardtanh(-1, 2)]
        return nn.Sequential(nn.LeakyReLU(), *first, nn.SiLU(inplace=True), nn.Linear(96, 128), nn.ELU(inplace=True))
    if kind == "sequences":
        return nn.Sequential(nn.Unflatten(1, (1, 128)), nn.Linear(128, 300, bias=False), nn.GELU(), nn.Linear(300, 128))
    return nn.Sequential(nn.Linear(128, 1000), nn.ReLU(), nn.Sequential(nn.Linear(1000, 128), nn.Tanh()), Residual(128))


@pytest.mark.parametrize("rows", [1, 2, 40])
@pytest.mark.parametrize("kind", ["nested", "tied", "frozen", "hooked", "each by itself", "sequences"])
def test_shards_together_give_the_bits_of_shards_alone(alone, kind, rows):
    x = genesis.randn(4 * rows, 128)

    def gradients(x, shards):
        model, x = several(kind), x.clone().requires_grad_()
        out = DistributedDataParallel(model, shards=shards)(x)
        out.square().sum().backward()
        return [out.detach(), x.grad], [p.grad for p in model.parameters() if p.requires_grad]

    (out, of_input), together = gradients(x, 4)
    each = [gradients(x[i::4], 1) for i in range(4)]
    for i, ((one, g), _) in enumerate(each):
        assert (out[i::4] == one).all() and (of_input[i::4] == g).all()
    for got, *parts in zip(together, *[grads for _, grads in each], strict=True):
        assert (got == tree_sum(parts)).all()


def test_shards_have_rows_as_ranks_have_them(alone):
    """In one piece: a product of rows that lie apart may add in another order."""
    seen = []
    handle = register_module_forward_pre_hook(lambda m, args: seen.append(args[0]))
    try:
        x = genesis.randn(8, 128)
        model = several("sequences")
        out = DistributedDataParallel(model, shards=4)(x)
        for i in range(4):
            assert (out[i::4] == model(x[i::4].clone())).all()
    finally:
        handle.remove()
    assert len(seen) > 5 and all(x.is_contiguous() for x in seen[1:]) and not EVERY_MODULE


def test_gradients_of_gradients_of_layers_that_take_all_rows(alone):
    genesis.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), genesis.randn(8, 3)

    def second(parallel):
        g = genesis.autograd.grad(parallel(x).sum(), list(model.parameters()), create_graph=True)
        return genesis.autograd.grad(sum((each**2).sum() for each in g), list(model.parameters()), allow_unused=True)

    for ours, theirs in zip(second(DistributedDataParallel(model, shards=4)), second(model), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)


def test_a_parameter_that_one_shard_does_not_use():
    p = genesis.ones(3, requires_grad=True)
    first, _ = Leaves.apply(p, 2)
    first.sum().backward()
    assert p.grad.tolist() == [1, 1, 1]


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, scale, what=None):
        out = self.layer(x) * scale
        return {"out": out, "loss": out.square().mean(), "what": what}


def test_outputs_of_every_kind(alone):
    parallel = DistributedDataParallel(Several(), shards=2)
    x = genesis.randn(4, 3)
    given, whole = parallel(x, genesis.tensor(2.0), what="text"), parallel.module(x, genesis.tensor(2.0))
    np.testing.assert_allclose(given["out"].detach().numpy(), whole["out"].detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(given["loss"].item(), whole["loss"].item(), rtol=1e-6)
    assert given["what"] == "text"


def test_what_does_not_divide_is_refused(alone):
    for shards in (3, 0, -2):
        with pytest.raises(ValueError, match=r"shards is .*, expected a power of two"):
            DistributedDataParallel(nn.Linear(3, 2), shards=shards)
    parallel = DistributedDataParallel(nn.Linear(3, 2), shards=4)
    with pytest.raises(RuntimeError, match="a batch of 6 rows does not divide into 4 shards"):
        parallel(genesis.ones(6, 3))
    with pytest.raises(NotImplementedError, match="in another order for another number of ranks"), parallel.no_sync():
        pass
    swapped = DistributedDataParallel(nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), shards=2)
    with pytest.raises(RuntimeError, match="whose first dimension is the batch's"):
        swapped(genesis.ones(4, 3))


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(self.layer(x)).relu()


class Kept(Several):
    def forward(self, x, scale=2.0):
        self.seen = self.layer(x)
        return self.seen * scale


class Asks(Several):
    def forward(self, x):
        y = self.layer(x)
        return y if y.sum() > 1e9 else y * 2


class Hooked(Several):
    def forward(self, x):
        return self.layer(x)


def hooked():
    model = Hooked()
    model.layer.register_forward_hook(lambda module, args, out: out * 2)
    return model


@pytest.mark.parametrize(
    ("make", "width", "reason"),
    [
        (Norm, 6, "buffers"),
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5)), 6, "buffers"),
        (Kept, 3, "keeps tensors in modules"),
        (Asks, 3, "has no single value"),
        (hooked, 3, "hooks"),
        (lambda: Residual(3), 3, None),
    ],
)
def test_what_is_computed_shard_by_shard(alone, make, width, reason):
    x = genesis.randn(8, width)

    def state(shards, x):
        genesis.manual_seed(0)
        parallel = DistributedDataParallel(make(), shards=shards)
        for _ in range(2):
            out = parallel(x)
            out.square().sum().backward()
        found = parallel.shards.reason
        assert shards == 1 or (found is None if reason is None else reason in found)
        return out, [*parallel.buffers()], [p.grad for p in parallel.parameters()]

    out, buffers, grads = state(4, x)
    each = [state(1, x[i::4]) for i in range(4)]
    for i, (part, _, _) in enumerate(each):
        assert (out[i::4] == part).all()
    for ours, first in zip(buffers, each[0][1], strict=True):
        assert (ours == first).all()
    for g, *parts in zip(grads, *[p for _, _, p in each], strict=True):
        np.testing.assert_allclose(g.numpy(), tree_sum([p.numpy() for p in parts]), rtol=1e-5)


def test_what_a_program_kept_of_a_forward_is_refused_afterwards(alone):
    kept = []

    class Outside(Several):
        def forward(self, x):
            kept.append(self.layer(x))
            return kept[-1] * 2

    DistributedDataParallel(Outside(), shards=4)(genesis.randn(8, 3))
    with pytest.raises(RuntimeError, match="used after a forward of several shards has ended"):
        kept[0] + 1


def test_inputs_and_outputs_that_are_no_batches(alone):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.unused = nn.Parameter(genesis.ones(3)), nn.Parameter(genesis.ones(2))

        def forward(self, x, scale, *, mask=None):
            y = x * self.w * scale
            return (y, [y.sum(), mask], {"penalty": (self.w * self.w).sum(), "rows": x.shape[0], "mask": mask})

    scale = genesis.tensor(3.0, requires_grad=True)
    x, mask = genesis.randn(8, 3), genesis.arange(8) > 3
    parallel = DistributedDataParallel(Mixed(), shards=4)
    y, (total, same), named = parallel(x, scale, mask=mask)
    assert parallel.shards.reason is None
    assert (y == x * 3).all() and (same == mask).all() and (named["mask"] == mask).all() and named["rows"] == 2
    np.testing.assert_allclose(total.item(), (x * 3).sum().item() / 4, rtol=1e-6)
    (y.sum() + named["penalty"]).backward()
    np.testing.assert_allclose(parallel.module.w.grad.numpy(), (x * 3).sum(0).numpy() + 2, rtol=1e-5)
    np.testing.assert_allclose(scale.grad.item(), x.sum().item(), rtol=1e-5)
    assert parallel.module.unused.grad is None or not parallel.module.unused.grad.any()


def test_gradients_of_gradients_of_what_is_computed_at_once(alone):
    genesis.manual_seed(0)
    model, x = Residual(6), genesis.randn(8, 6)
    parallel = DistributedDataParallel(model, shards=4)

    def second(function):
        g = genesis.autograd.grad(function(x).square().sum(), list(model.parameters()), create_graph=True)
        return genesis.autograd.grad(sum((each**2).sum() for each in g), list(model.parameters()))

    for ours, theirs in zip(second(parallel), second(model), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    assert parallel.shards.reason is None


def test_a_call_that_fails_is_no_reason(alone):
    parallel = DistributedDataParallel(Residual(6), shards=4)
    with pytest.raises(RuntimeError, match="input has 5 features"):
        parallel(genesis.randn(8, 5))
    parallel(genesis.randn(8, 6)).sum().backward()
    assert parallel.shards.reason is None
