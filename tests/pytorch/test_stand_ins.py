"""Names that have no counterpart: switches, answers of a machine without a GPU, compilers that leave functions alone."""

from __future__ import annotations

import functools
import importlib

import pytest

import genesis
from genesis import nn
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.pytorch import installed
from genesis.pytorch.check import check


@pytest.fixture
def torch():
    with installed() as module:
        yield module


def test_methods_are_functions_of_torch(torch):
    x = torch.tensor([-1.0, 2.0])
    assert torch.abs_(x) is x and x.tolist() == [1.0, 2.0]
    assert torch.detach(x).tolist() == [1.0, 2.0] and not torch.is_conj(x) and torch.fill(x, 3).tolist() == [3.0, 3.0]


def test_copies_of_views(torch):
    x = torch.zeros(2, 3)
    y = torch.transpose_copy(x, 0, 1)
    y.fill_(1)
    assert y.shape == (3, 2) and not x.any() and len(torch.split_copy(x, 1)) == 2
    assert torch.index_copy is genesis.index_copy and torch.narrow_copy is genesis.narrow_copy  # copies of no view
    assert torch.view_copy(x, (6,)).shape == (6,) and torch.unbind_copy(x)[0].shape == (3,)


def test_functions_with_their_arguments_in_another_order(torch):
    x, weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([2.0, 3.0])
    args = torch.zeros(2), torch.ones(2)
    expected = nn.functional.batch_norm(x, *args, weight, None, False, 0.1, 1e-5)
    assert torch.equal(torch.batch_norm(x, weight, None, *args, False, 0.1, 1e-5, True), expected)
    assert torch.embedding(x, torch.tensor([1, 0])).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert torch.layer_norm(x, [2], weight, None, 1e-5, False).shape == (2, 2)
    assert torch.equal(torch.dropout(x, 0.5, False), x)


def test_a_machine_without_gpu(torch):
    kind = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
    assert kind(2).dtype is genesis.float32 and not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    with pytest.raises(NotImplementedError, match="there is no GPU here"):
        torch.cuda.LongTensor(3)
    with torch.cuda.device(0), torch.cuda.stream(None):
        assert torch.cuda.max_memory_reserved() == 0 and torch.cuda.get_arch_list() == []
    assert torch.cpu.device_count() == 1 and torch.accelerator.memory_allocated() == 0
    assert not torch.ones(1).is_cuda and torch.ones(1).is_cpu and torch.ones(1).get_device() == -1


def test_accelerators_are_the_gpus_of_now(torch):
    if not genesis.cuda.is_available():
        assert torch.accelerator.current_accelerator() is None and not torch.accelerator.is_available()
    with using(Emulated(2)):
        assert torch.accelerator.is_available() and torch.accelerator.device_count() == 2
        assert str(torch.accelerator.current_accelerator()) == "cuda"
        torch.accelerator.set_device_index(1)
        assert torch.accelerator.current_device_index() == 1
        with torch.accelerator.device_index(0):
            assert torch.ones(2, device="cuda").device.index == 0
        assert torch.distributed.get_default_backend_for_device("cuda:1") == "nccl"
        torch.accelerator.set_device_index(0)  # as whatever runs behind this takes it for granted


def test_rooms_that_have_another_name_now(torch):
    script = """
from torch.distributed import FileStore, HashStore, TCPStore
from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed._tensor import DTensor, Shard, distribute_tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.tensor.placement_types import Replicate
"""
    there: dict[str, object] = {}
    exec(script, there)
    assert there["fully_shard"] is torch.distributed.fsdp.fully_shard
    assert there["DTensor"] is torch.distributed.tensor.DTensor
    assert issubclass(there["PrefixStore"], there["Store"])


def test_compilers_leave_functions_as_they_are(torch):
    def f(x):
        return x * 2

    assert (
        torch.jit.script(f) is torch.jit.script_method(f) is f
        and torch.jit.trace(f, torch.ones(1)) is f
        and not torch.jit.is_scripting()
    )
    assert torch.compiler.disable(f)(3) == 6 and not torch.compiler.is_compiling() and torch.jit.ignore()(f) is f
    assert torch.jit.wait(torch.jit.fork(f, 3)) == 6
    with pytest.raises(RuntimeError, match=r"save: a function is no traced function"):
        torch.jit.save(f, "x.pt")


def test_what_runs_as_it_is_is_no_script(torch):
    class Net(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return x + 1

    assert Net()(torch.ones(1)).item() == 2 and isinstance(Net(), torch.jit.ScriptModule)
    assert not isinstance(torch.jit.script(torch.nn.Linear(1, 1)), torch.jit.ScriptModule)
    assert not isinstance(len, torch.jit.ScriptFunction)
    assert isinstance(Net(), torch.jit.ScriptFunction | torch.nn.Module)


def test_words_of_layouts_and_formats(torch):
    x = torch.ones(2, 3)
    assert x.layout is torch.strided and repr(torch.channels_last) == "genesis.channels_last"
    assert x.to(memory_format=torch.preserve_format) is x and x.float(memory_format=torch.contiguous_format) is x
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(genesis.strided)) is genesis.strided is copy.deepcopy(genesis.strided)


def test_types_of_tensors_by_name(torch):
    x = torch.ones(2)
    assert x.type() == "torch.FloatTensor" and torch.typename(x) == "torch.FloatTensor"
    assert x.type("torch.LongTensor").type() == "torch.LongTensor"
    assert x.type(torch.DoubleTensor).dtype is torch.float64 and x.type(torch.int8).dtype is torch.int8


def test_keywords_are_not_held_against_a_class_that_takes_any(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom torch.utils.data import DataLoader\nDataLoader(x, batch_size=3)\n"
        "torch.nn.LeakyReLU(0.2, inplace=True)\n"
    )
    assert [use.name for use in check([str(script)]) if use.note.startswith("has no argument")] == []


def test_futures(torch):
    first, second = torch.futures.Future(), torch.futures.Future()
    both = torch.futures.collect_all([first, second])
    first.set_result(1)
    assert not both.done()
    second.set_exception(ValueError("no"))
    assert both.done() and both.wait()[0].value() == 1
    with pytest.raises(ValueError, match="no"):
        torch.futures.wait_all([first, second])
    with pytest.raises(RuntimeError, match="Future: it has its result already"):
        first.set_result(2)
    failing = first.then(lambda done: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.wait()


def test_the_profiler_times_blocks_of_recorded_steps(torch, tmp_path):
    from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=seen.append) as p:
        for _ in range(6):
            with record_function("forward"):
                pass
            p.step()
    assert seen == [p]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path))) as p, record_function("loss"):
        pass
    (event,) = p.key_averages()
    assert event.key == "loss" and event.count == 1 and "loss" in p.key_averages().table(sort_by="cpu_time_total")
    assert len(list(tmp_path.iterdir())) == 1


def test_the_timer(torch):
    timer = torch.utils.benchmark.Timer("x + 1", globals={"x": 1}, label="sum")
    measured = timer.blocked_autorange(min_run_time=1e-3)
    assert measured.median > 0 and "sum" in repr(measured) and len(timer.timeit(5).times) == 1


def test_assert_close(torch):
    close = torch.testing.assert_close
    close(torch.ones(2), torch.ones(2) + 1e-6)
    close({"a": [1.0, torch.zeros(1)]}, {"a": [1.0, torch.zeros(1)]})
    with pytest.raises(AssertionError, match="the values are not close: 1 of 2 elements"):
        close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
    with pytest.raises(AssertionError, match=r"\['a'\]: the dtypes differ"):
        close({"a": torch.ones(2)}, {"a": torch.ones(2, dtype=torch.float64)})
    with pytest.raises(AssertionError, match="the shapes differ"):
        close(torch.ones(2), torch.ones(1, 2))
    with pytest.raises(AssertionError, match="mine"):
        close(1, 2, msg=lambda text: "mine: " + text)
    with pytest.raises(AssertionError):
        close(torch.tensor(float("nan")), torch.tensor(float("nan")))
    close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
    with pytest.raises(ValueError, match="rtol and atol are given together"):
        close(1, 1, rtol=0.1)


def test_the_class_of_tests(torch):
    from torch.testing._internal.common_utils import TestCase

    case, x = TestCase(), torch.ones(3) / 3
    for other in (x.clone(), [1 / 3] * 3, (x + 1e-7).requires_grad_()):
        case.assertEqual(x, other)
    case.assertEqual({"a": [x, None, "b", {1}]}, {"a": [x, None, "b", {1}]})
    case.assertEqual(torch.tensor(2.0), 2)
    case.assertEqual(torch.tensor(float("nan")), float("nan"))
    case.assertEqual(x, x.double(), exact_dtype=False, atol=1e-4, rtol=0)
    for a, b in (
        (x, x + 1e-3),
        (x, x[:2]),
        (x, x.double()),
        ({"a": 1}, {"a": 2}),
        ("a", "b"),
        (None, x),
        ([1, 2], [1]),
    ):
        case.assertNotEqual(a, b)
        with pytest.raises(AssertionError, match=r"differ|is not|not close"):
            case.assertEqual(a, b)
    case.setUp()
    first = torch.rand(2)
    case.setUp()
    case.assertEqual(first, torch.rand(2), atol=0, rtol=0)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "int64", "uint8", "bool", "bfloat16"])
def test_make_tensor(torch, name):
    x = torch.testing.make_tensor(3, 4, dtype=getattr(torch, name), device="cpu", noncontiguous=True)
    assert x.shape == (3, 4) and x.dtype is getattr(torch, name) and not x.is_contiguous()
    y = torch.testing.make_tensor((50,), dtype=torch.float32, device="cpu", low=-1, high=1, requires_grad=True)
    assert y.requires_grad and y.min() >= -1 and y.max() < 1


def _add_to(rank, total, amount):
    total[rank] += amount


def test_shared_memory_is_seen_by_spawned_processes(torch):
    total = torch.zeros(2).share_memory_()
    assert total.is_shared() and not torch.zeros(2).is_shared()
    torch.multiprocessing.spawn(_add_to, args=(total, 5.0), nprocs=2, start_method="fork")
    assert total.tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    "code", ["torch.cuda.amp.autocast()", "torch.cuda.amp.autocast(True, torch.float16)", "torch.autocast('cuda')"]
)
def test_nothing_is_cast_for_gpus(torch, code):
    with pytest.warns(UserWarning, match="autocast: there is no 'cuda' here"):
        context = eval(code)
    with context:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
    with torch.cpu.amp.autocast(), torch.cuda.amp.autocast(enabled=False):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16


@pytest.mark.parametrize(
    "code", ["torch.cuda.amp.GradScaler(4.0)", "torch.amp.GradScaler()", "torch.GradScaler('cuda')"]
)
def test_nothing_is_scaled_for_gpus(torch, code):
    with pytest.warns(UserWarning, match="GradScaler: there is no 'cuda' here"):
        scaler = eval(code)
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    assert not scaler.is_enabled() and w.grad.item() == 1.0
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == 0.5 and torch.amp.GradScaler(enabled=False).get_scale() == 1.0
    assert torch.amp.GradScaler("cpu", 8.0).get_scale() == 8.0 == torch.cpu.amp.GradScaler(8.0).get_scale()


def test_the_older_profiler(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile(record_shapes=True, profile_memory=True, use_cuda=False) as p:
        (x.exp() * x.exp()).sum().backward()
    assert p.key_averages().table(sort_by="self_cpu_time_total").count("exp") == 1 and str(p).count("exp ") == 2
    assert p.self_cpu_time_total > 0 and len(p.function_events) == len(p.events())
    with torch.autograd.profiler.profile(enabled=False) as p:
        x.exp()
    assert p.events() == []


def test_what_programs_ask_about_where_they_run(torch):
    import torch.xpu

    assert not torch.xpu.is_available() and torch.mtia.device_count() == 0
    assert "NumPy" in torch.__config__.show() and "threads" in torch.__config__.parallel_info()
    assert torch.FloatTensor([1, 2], device="cpu").dtype is torch.float32
    assert torch.LongTensor(2, device="meta").device.type == "meta"
    for code, words in {
        "torch.ops.prims": "no dispatcher",
        "torch.utils.collect_env": "genesis doctor",
        "torch.xpu.Stream": "no GPU",
    }.items():
        with pytest.raises(AttributeError, match=words):
            eval(code)
    with pytest.raises(
        NotImplementedError, match="torch.hub.list: nothing is downloaded, and there is no .*x_main/hubconf.py"
    ):
        torch.hub.list("x")


def test_what_was_downloaded_before_is_loaded(torch, tmp_path, monkeypatch):
    from torch.utils import model_zoo

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert torch.hub.get_dir() == str(tmp_path / "hub")
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save({"a": torch.ones(2)}, tmp_path / "hub" / "checkpoints" / "net-1f2e.pth")
    url = "https://download.pytorch.org/models/net-1f2e.pth"
    for load in (torch.hub.load_state_dict_from_url, model_zoo.load_url):
        assert load(url, progress=False)["a"].tolist() == [1, 1]
        with pytest.raises(NotImplementedError, match="there is no .*other.pth"):
            load("https://download.pytorch.org/models/other.pth?x=1", model_dir=str(tmp_path))


def test_models_of_a_hubconf(torch, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "me_nets_master"
    folder.mkdir(parents=True)
    (folder / "inside.py").write_text("SIZE = 3")
    (folder / "hubconf.py").write_text("from inside import SIZE\ndef net(n=1):\n    'A net.'\n    return SIZE * n\n")
    assert torch.hub.load("me/nets", "net", n=2) == torch.hub.load(str(folder), "net", 2, source="local") == 6
    assert torch.hub.list("me/nets:master") == ["net"] and torch.hub.help("me/nets", "net") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        torch.hub.load("me/nets", "other")
    with pytest.raises(ValueError, match="source is"):
        torch.hub.load("me/nets", "net", source="gitlab")


def test_what_programs_in_several_ranks_import(torch, monkeypatch):
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d
    from torch.distributed.elastic.multiprocessing.errors import record

    assert record(len) is len
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo" and dist.Backend.MPI in dist.Backend.backend_list
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    with pytest.raises(RuntimeError, match="there is no process group"):
        c10d._get_default_group()
    dist.init_process_group(dist.Backend.GLOO)
    assert c10d._get_default_group() is dist.group.WORLD and c10d.is_initialized()
    dist.destroy_process_group()


def test_what_trainers_take_from_inside_of_distributed(torch):
    import datetime

    import torch.distributed as dist
    import torch.distributed._functional_collectives as funcol
    from torch.distributed import distributed_c10d as c10d
    from torch.distributed._composable.fsdp.fully_shard import FSDPModule
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX
    from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
    from torch.distributed.fsdp.wrap import _module_wrap_policy, _or_policy

    assert _CHECKPOINT_PREFIX == "_checkpoint_wrapped_module." and isinstance(FSDPModule, type)
    assert [each.value for each in AsyncCheckpointerType] == ["thread", "process"]
    with pytest.raises(NotImplementedError, match="planners"):
        DefaultLoadPlanner(allow_partial_load=True)
    layers = functools.partial(_module_wrap_policy, module_classes={torch.nn.Linear})
    chosen = [_or_policy(m(), False, 0, [layers]) for m in (lambda: torch.nn.Linear(1, 1), torch.nn.ReLU)]
    assert chosen == [True, False]
    for call in (c10d._get_default_store, c10d._get_pg_timeout):
        with pytest.raises(RuntimeError, match="there is no process group"):
            call()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=50))
    world, x = dist.group.WORLD, torch.arange(6.0, requires_grad=True)
    store = c10d._get_default_store()
    store.set("key", "value")
    assert c10d._get_default_store() is store and c10d.PrefixStore("a", store).num_keys() == 1
    assert store.get("key") == b"value"
    assert c10d._get_pg_timeout() == datetime.timedelta(seconds=50)
    c10d._set_pg_timeout(datetime.timedelta(seconds=60), group=world)
    assert c10d._get_pg_timeout(world).total_seconds() == 60 and list(c10d._world.pg_map) == [world]
    assert c10d._resolve_process_group(c10d._get_process_group_name(world)) is world
    assert not c10d._rank_not_in_group(world) and c10d._get_pg_default_device() == torch.device("cpu")
    with c10d._coalescing_manager(group=world) as manager:
        dist.all_reduce(torch.ones(2))
    manager.wait()
    mesh = dist.init_device_mesh("cpu", (1,))
    for group in (world, mesh, (mesh, 0), world.group_name):
        got = funcol.wait_tensor(funcol.all_reduce(x, reduceOp=dist.ReduceOp.SUM.name, group=group))
        assert got.tolist() == x.tolist() and not got.requires_grad
    assert funcol.all_gather_tensor(x, 0, world).tolist() == funcol.broadcast(x, 0, world).tolist() == x.tolist()
    assert funcol.reduce_scatter_tensor(x.reshape(2, 3), "avg", 1, world).shape == (2, 3)
    assert funcol.all_to_all_single(x, None, [6], world).tolist() == x.tolist()
    whole = funcol.all_gather_tensor_autograd(x.reshape(2, 3), gather_dim=1, group=world)
    (funcol.reduce_scatter_tensor_autograd(whole, "sum", 0, world) * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 6
    with pytest.raises(TypeError, match="reduceOp is 'other'"):
        funcol.all_reduce(x, "other", world)
    dist.destroy_process_group()
    for name, why in (("run", "genesis run -n 2"), ("_composable.replicate", "DistributedDataParallel")):
        with pytest.raises(ModuleNotFoundError, match=why):
            importlib.import_module(f"torch.distributed.{name}")
