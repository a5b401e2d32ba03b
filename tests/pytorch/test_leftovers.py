"""Smaller names of PyTorch's modules: what they do, beside PyTorch where that can be compared."""

from __future__ import annotations

import itertools
import subprocess
import sys
import typing

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.pytorch import installed
from genesis.pytorch.modules import find


@pytest.mark.parity
@pytest.mark.parametrize(
    ("pattern", "shape", "sizes"),
    [
        ("a b -> b a", (2, 3), {}), ("a b c -> (a b) c", (2, 3, 4), {}), ("(a b) c -> b c a", (6, 4), {"a": 2}),
        ("... d -> d ...", (2, 3, 4), {}), ("b (h w) c -> b c h w", (2, 6, 3), {"h": 2}), ("a 1 b -> a b", (2, 1, 3), {}),
        ("a b -> a 1 b", (2, 3), {}), ("a ... -> (...) a", (2, 3, 4), {}),
    ],
)  # fmt: skip
def test_rearrange(pattern, shape, sizes):
    torch = pytest.importorskip("torch")
    x = np.arange(np.prod(shape)).reshape(shape)
    mine, theirs = (
        find("torch.func", "rearrange")(genesis.tensor(x), pattern, **sizes),
        torch.func.rearrange(torch.tensor(x), pattern, **sizes),
    )
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_patterns_that_do_not_fit():
    for pattern, shape in (("a b", (2, 3)), ("a b -> a", (2, 3)), ("(a b) -> a b", (6,)), ("a b c -> a b c", (2, 3))):
        with pytest.raises(ValueError, match="rearrange"):
            find("torch.func", "rearrange")(genesis.ones(shape), pattern)


def test_saved_tensors_may_be_written_to():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    with find("torch.autograd.graph", "allow_mutation_on_saved_tensors")():
        y = x * 1
        z = y**2
        y.mul_(10)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_tensors_are_exchanged():
    a, b = nn.Parameter(genesis.ones(2)), genesis.zeros(3)
    a.note = "first"
    a.sum().backward()
    find("torch.utils", "swap_tensors")(a, b)
    assert type(b) is nn.Parameter and b.note == "first" and b.grad.tolist() == [1, 1] and b.tolist() == [1, 1]
    assert type(a) is genesis.Tensor and a.tolist() == [0, 0, 0] and not hasattr(a, "note")
    (b * 3).sum().backward()
    assert b.grad.tolist() == [4, 4]


def test_what_was_saved_of_an_exchanged_tensor_is_another():
    x, w = genesis.ones(3, requires_grad=True), genesis.ones(3)
    y = x * w
    find("torch.utils", "swap_tensors")(w, genesis.zeros(3))
    with pytest.raises(RuntimeError, match="swap_tensors"):
        y.sum().backward()


def test_batch_norms_without_statistics():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    find("torch.func", "replace_all_batch_norm_modules_")(net)
    assert net[1].running_mean is None and not net[1].track_running_stats
    genesis.func.vmap(net, randomness="different")(genesis.randn(4, 5, 2))


def test_layouts_of_weights():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Linear(2, 2))
    convert = find("torch.nn.utils", "convert_conv2d_weight_memory_format")
    assert convert(net, genesis.channels_last) is net and net[0].weight.is_contiguous(
        memory_format=genesis.channels_last
    )
    assert isinstance(net[0].weight, nn.Parameter)


def test_streams_with_named_steps():
    base, name = find("torch.utils.data", "IterDataPipe"), find("torch.utils.data", "functional_datapipe")

    @name("doubled")
    class Doubled(base):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (2 * x for x in self.source)

    class Numbers(base):
        def __iter__(self):
            return iter([1, 2])

    assert list(Numbers().doubled().doubled()) == [4, 8]
    with pytest.raises(AttributeError, match="halved"):
        Numbers().halved()


@pytest.mark.parity
def test_samplers_of_several_processes():
    torch = pytest.importorskip("torch")
    theirs, mine = torch.utils.data.DistributedSampler, genesis.data.DistributedSampler
    for length, count in ((10, 3), (7, 2), (3, 5), (8, 4)):
        for drop in (False, True):
            parts = [[], []]
            for rank in range(count):
                made = [kind(range(length), count, rank, shuffle=False, drop_last=drop) for kind in (mine, theirs)]
                assert list(made[0]) == list(made[1]) and len(made[0]) == len(made[1])
                shuffled = mine(range(length), count, rank, seed=3, drop_last=drop)
                first = list(shuffled)
                assert list(shuffled) == first and len(first) == len(shuffled)
                shuffled.set_epoch(1)
                parts[0] += first
                parts[1] += list(shuffled)
            if not drop:
                assert set(parts[0]) == set(parts[1]) == set(range(length))
    with pytest.raises(ValueError, match="rank"):
        mine(range(3), 2, 2)


def test_strings_in_order():
    check = find("torch.testing", "FileCheck")
    check().check("a").check_same("b").check_next("c").check_not("x").check("d").check_count("e", 2).run(
        "a b\nc\nd e e"
    )
    for wrong in (
        check().check("b").check("a"),
        check().check_not("b"),
        check().check("a").check_next("d"),
        check().check_count("e", 3),
    ):
        with pytest.raises(RuntimeError, match="FileCheck"):
            wrong.run("a b\nc\nd e e")


@pytest.mark.parity
def test_units_of_time():
    benchmark = pytest.importorskip("torch.utils.benchmark")
    for t in (3e-9, 4.5e-6, 2e-3, 0.5, 12.0):
        assert find("torch.utils.benchmark", "select_unit")(t) == benchmark.select_unit(t)
        for n in (1, 3):
            assert find("torch.utils.benchmark", "trim_sigfig")(t, n) == pytest.approx(benchmark.trim_sigfig(t, n))


def test_operations_are_declared_in_parts():
    with installed() as torch:

        @torch.library.custom_op("leftovers::scaled", mutates_args=())
        def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
            return x * by

        @torch.library.register_fake("leftovers::scaled")
        def _(x, by):
            return torch.empty_like(x)

        torch.library.register_autograd("leftovers::scaled", lambda ctx, g: (g * 3, None))
        x = torch.ones(2, requires_grad=True)
        scaled(x, 2.0).sum().backward()
        assert x.grad.tolist() == [3, 3] and scaled(torch.ones(2, device="meta"), 2.0).is_meta
        with pytest.raises(ValueError, match="no operation"):
            torch.library.register_fake("leftovers::unknown", lambda: None)
        assert torch.library.infer_schema(scaled.__wrapped__, mutates_args=()) == "(Tensor x, float by) -> Tensor"


def test_what_programs_ask():
    with installed() as torch:
        import torch.fx
        import torch.utils.checkpoint
        from torch.utils.checkpoint import check_backward_validity, detach_variable

        assert not isinstance(torch.ones(1), torch.fx.Proxy) and not isinstance(3, torch.SymInt)
        assert torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight) and not torch.nn.parameter.is_lazy(
            torch.ones(1)
        )
        with pytest.warns(UserWarning, match="Gradients will be None"):
            check_backward_validity([torch.ones(1)])
        assert detach_variable((torch.ones(1, requires_grad=True), 2))[0].requires_grad
        assert torch.serialization.check_module_version_greater_or_equal(np, (1, 2)) is True
        assert torch.nn.parallel.parallel_apply([lambda x: x + 1], [torch.ones(1)])[0].item() == 2
        with torch.utils.benchmark.set_torch_threads(1):
            assert torch.get_num_threads() == 1
        timer = torch.utils.benchmark.Timer("1 + 1", label="sum")
        assert "sum" in str(torch.utils.benchmark.Compare([timer.timeit(5)]))


@pytest.mark.parity
def test_batch_norms_of_several_processes():
    torch = pytest.importorskip("torch")
    outs = []
    for lib in (genesis, torch):
        net = lib.nn.Sequential(lib.nn.BatchNorm2d(3), lib.nn.Sequential(lib.nn.BatchNorm1d(3, affine=False)))
        net[0](lib.arange(24.0).reshape(2, 3, 2, 2))
        synchronous = lib.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        assert [type(m).__name__ for m in synchronous.modules()].count("SyncBatchNorm") == 2
        synchronous.eval()
        outs.append(synchronous[0](lib.arange(12.0).reshape(2, 3, 2)).detach().numpy())
        assert sorted(synchronous.state_dict()) == sorted(net.state_dict())
    np.testing.assert_allclose(*outs, rtol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_the_old_normalization_across_channels(size):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(size).normal(size=(2, 5, 3, 2))
    mine, theirs = (lib.nn.CrossMapLRN2d(size, 0.3, 0.7, 1.5)(lib.tensor(x)) for lib in (genesis, torch))
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9)
    leaf = genesis.tensor(x[:1], requires_grad=True)
    assert genesis.autograd.gradcheck(genesis.nn.CrossMapLRN2d(size, 0.3, 0.7, 1.5), (leaf,))


def test_trees_of_torch_utils():
    with installed() as torch:
        from torch.utils._pytree import (
            LeafSpec,
            register_pytree_node,
            tree_all,
            tree_flatten,
            tree_leaves,
            tree_map,
            tree_map_only,
            tree_structure,
            tree_unflatten,
        )
        from torch.utils.hooks import RemovableHandle

        tree = {"a": [1, torch.ones(2)], "b": (None, "x")}
        leaves, spec = tree_flatten(tree)
        assert (
            leaves[0] == 1
            and len(tree_leaves(tree)) == 4
            and tree_unflatten([1, 2, 3, 4], spec) == {"a": [1, 2], "b": (3, 4)}
        )
        assert tree_map_only(int, lambda n: n + 1, tree)["a"][0] == 2 and tree_structure(3) == LeafSpec()
        assert tree_all(lambda x: x > 0, (1, [2])) and tree_map(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6]

        class Pair:
            def __init__(self, x, y):
                self.x, self.y = x, y

        register_pytree_node(Pair, lambda p: ([p.x, p.y], None), lambda children, context: Pair(*children))
        assert tree_map(lambda n: -n, Pair(1, 2)).y == -2
        assert isinstance(torch.ones(1, requires_grad=True).register_hook(lambda g: g), RemovableHandle)
        with torch.overrides.BaseTorchFunctionMode():
            torch.ones(1)


def test_what_programs_ask_of_cuda_where_there_is_none():
    assert find("torch.cuda", "_initialized") is False


def test_sizes_of_older_constructors_are_any_integers():
    assert find("torch", "FloatTensor")(np.int64(2), 3).shape == (2, 3)


def test_the_class_of_reductions():
    assert genesis.distributed.ReduceOp.RedOpType is type(genesis.distributed.ReduceOp.SUM)


def test_safetensors_reads_and_writes_files(tmp_path):
    """Its reader maps files by way of a storage; run as a program, in which torch is Genesis."""
    pytest.importorskip("safetensors.torch")
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom safetensors.torch import load_file, save_file\n"
        "save_file({'a': torch.arange(6.0).reshape(2, 3), 'b': torch.ones(2, dtype=torch.bfloat16)}, 'x.safetensors')\n"
        "state = load_file('x.safetensors')\n"
        "print(state['a'].tolist(), state['b'].dtype, state['b'].tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "genesis", "run", "--torch", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] torch.bfloat16 [1.0, 1.0]", done.stderr


def test_classes_that_libraries_name_in_annotations():
    reader = find("torch", "PyTorchFileReader")
    assert not isinstance(3, reader)
    with pytest.raises(RuntimeError, match=r"genesis\.load"):
        reader("file")


def test_what_the_arguments_of_to_name():
    """Libraries whose modules define `to` ask for it."""
    parse = find("torch._C._nn", "_parse_to")
    cpu, half = genesis.device("cpu"), genesis.float16
    assert parse("cpu") == (cpu, None, False, None)
    assert parse(half) == (None, half, False, None)
    assert parse(genesis.ones(1, dtype=half)) == (cpu, half, False, None)
    assert parse("cpu", half, True) == (cpu, half, True, None)
    assert parse(dtype=half, non_blocking=True, memory_format=genesis.channels_last) == (
        None,
        half,
        True,
        genesis.channels_last,
    )


def test_the_class_tensor_names_the_default_dtype():
    x = genesis.tensor([1, 2])
    assert x.type(genesis.Tensor).dtype is x.type("torch.Tensor").dtype is genesis.float32
    before = genesis.get_default_dtype()
    try:
        genesis.set_default_dtype(genesis.float64)
        assert x.type(genesis.Tensor).dtype is genesis.float64
    finally:
        genesis.set_default_dtype(before)


def test_trees_that_libraries_flatten_in_their_own_way():
    """With the classes of containers, how each is flattened, and structures made by hand."""
    nodes, kind_of, spec, leaf, unflatten = (
        find("torch.utils._pytree", name)
        for name in ("SUPPORTED_NODES", "_get_node_type", "TreeSpec", "LeafSpec", "tree_unflatten")
    )

    def flattened(tree):
        kind = kind_of(tree)
        if kind not in nodes:
            return [tree], leaf()
        children, rest = nodes[kind].flatten_fn(tree)
        parts = [flattened(child) for child in children]
        return [x for xs, _ in parts for x in xs], spec(kind, rest, [structure for _, structure in parts])

    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, structure = flattened(tree)
    assert leaves == [1, 2, 3, 4]
    assert structure.num_leaves == 4
    assert unflatten([x + 1 for x in leaves], structure) == {"a": [2, (3, 4)], "b": 5}
    assert nodes[list].unflatten_fn([1, 2], None) == [1, 2]


def test_the_number_of_a_tensor():
    x = genesis.ones(2)
    assert isinstance(x._cdata, int)
    assert (x._cdata == x._cdata, x._cdata == x.detach()._cdata) == (True, False)


def test_loaders_of_libraries_are_walked_by_iterators_of_pytorchs_names():
    with installed():
        from torch.utils.data.dataloader import (
            _DatasetKind,
            _MultiProcessingDataLoaderIter,
            _SingleProcessDataLoaderIter,
        )

        class Loader:
            dataset, collate_fn, _auto_collation = list(range(5)), staticmethod(list), True
            _dataset_kind, _index_sampler = _DatasetKind.Map, [[0, 1], [4, 2]]

        class Stream(Loader):
            dataset, collate_fn = "abcde", staticmethod("".join)
            _dataset_kind, _index_sampler = _DatasetKind.Iterable, [[0, 0], [0, 0], [0, 0], [0, 0]]

        class Single(Stream):
            _auto_collation, _index_sampler = False, itertools.count()

        assert list(_SingleProcessDataLoaderIter(Loader())) == [[0, 1], [4, 2]]
        assert list(_MultiProcessingDataLoaderIter(Stream())) == ["ab", "cd", "e"]
        assert list(_SingleProcessDataLoaderIter(Single())) == list("abcde")
        own = genesis.data.DataLoader(list(range(4)), batch_size=2)
        assert [x.tolist() for x in _SingleProcessDataLoaderIter(own)] == [[0, 1], [2, 3]]
        assert [x.tolist() for x in own._get_iterator()] == [[0, 1], [2, 3]]


def test_names_that_libraries_import_from_inside():
    with installed():
        import torch.backends.opt_einsum
        from torch._jit_internal import _copy_to_script_wrapper
        from torch.hub import HASH_REGEX, urlparse
        from torch.jit.annotations import List, Tuple
        from torch.utils.data.dataloader import _InfiniteConstantSampler

        torch.backends.opt_einsum.enabled = True
        with torch.backends.opt_einsum.flags(enabled=False):
            assert torch.einsum("i,i->", torch.ones(2), torch.ones(2)).item() == 2
        assert (torch.backends.opt_einsum.is_available(), torch.backends.opt_einsum.get_opt_einsum()) == (False, None)
    assert HASH_REGEX.search("resnet18-5c106cde.pth").group(1) == "5c106cde"
    assert urlparse("https://x.org/a/b.pth").path == "/a/b.pth"
    assert (List[int], Tuple[int]) == (typing.List[int], typing.Tuple[int])  # noqa: UP006
    assert _copy_to_script_wrapper(len) is len
    assert list(itertools.islice(_InfiniteConstantSampler(), 3)) == [None] * 3


def test_optimizers_that_are_derived_from_pytorchs_files():
    with installed():
        from torch.optim.lr_scheduler import LRScheduler, _enable_get_lr_call
        from torch.optim.optimizer import (
            Optimizer,
            _default_to_fused_or_foreach,
            _get_value,
            _params_doc,
            _RequiredParameter,
            _use_grad_for_differentiable,
            _view_as_real,
            required,
        )

        class Descent(Optimizer):
            def __init__(self, params, lr=required):
                super().__init__(params, {"lr": lr, "differentiable": False})

            @_use_grad_for_differentiable
            def step(self, closure=None):
                assert not genesis.is_grad_enabled()
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-_get_value(genesis.tensor(group["lr"])))

        p = genesis.ones(2, requires_grad=True)
        optimizer = Descent([p], lr=0.5)
        (p * 2).sum().backward()
        optimizer.step()
        assert p.tolist() == [0, 0] and isinstance(required, _RequiredParameter) and _params_doc == ""
        assert _default_to_fused_or_foreach([p], False) == (False, False)
        params, grads = [genesis.ones(2, dtype=genesis.complex64)], [genesis.ones(2, dtype=genesis.complex64)]
        _view_as_real(params, grads)
        assert params[0].shape == grads[0].shape == (2, 2)

        class Halves(LRScheduler):
            def get_lr(self):
                return [0.5**self.last_epoch]

        schedule = Halves(optimizer)
        with _enable_get_lr_call(schedule):
            assert schedule._get_lr_called_within_step and schedule.get_lr() == [1.0]
        assert not schedule._get_lr_called_within_step


def test_families_of_borders_and_pools():
    with installed() as torch:
        padding, pooling, nn = torch.nn.modules.padding, torch.nn.modules.pooling, torch.nn
        assert isinstance(nn.ReflectionPad2d(1), padding._ReflectionPadNd)
        assert not isinstance(nn.ReplicationPad2d(1), padding._ReflectionPadNd)
        assert isinstance(nn.CircularPad1d(1), padding._CircularPadNd)
        assert isinstance(nn.MaxUnpool2d(2), pooling._MaxUnpoolNd) and isinstance(nn.LPPool2d(2, 2), pooling._LPPoolNd)


def test_sobol_points():
    pytest.importorskip("scipy.stats.qmc")
    with installed() as torch:
        engine = torch.quasirandom.SobolEngine(2)
        points = engine.draw(4)
        # the first numbers of van der Corput's sequence, and those of the second direction
        assert points.tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
        assert engine.fast_forward(1).num_generated == 5 and engine.reset().draw_base2(2).equal(points)
        with pytest.raises(ValueError, match="no power of 2"):
            engine.draw_base2(1)
        random = torch.quasirandom.SobolEngine(3, scramble=True, seed=1)
        first = random.draw(8, dtype=genesis.float64)
        assert first.equal(random.reset().draw(8, dtype=genesis.float64)) and first.dtype == genesis.float64
        with pytest.raises(ValueError, match="from 1 to 21201"):
            torch.quasirandom.SobolEngine(0)
