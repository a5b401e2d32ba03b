"""`import torch` gives Genesis: modules, names, and errors for what is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import genesis
from genesis import nn, optim
from genesis.pytorch import as_torch, installed
from genesis.pytorch.check import ABSENT, state_of
from genesis.pytorch.names import names


@pytest.fixture
def torch():
    with installed() as module:
        yield module


def test_the_modules_that_programs_import(torch):
    program = """
import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim
import torch.backends.cudnn as cudnn, torch.multiprocessing as mp, torch.distributed as dist, torch.onnx
from torch import nn as again, Tensor
from torch.autograd import Function, Variable, grad
from torch.autograd.function import once_differentiable
from torch.nn.modules.module import Module
from torch.nn.modules.loss import _nothing as unknown
"""
    found: dict[str, object] = {}
    with pytest.raises(
        ImportError, match=r"torch.nn.modules.loss._nothing is not in Genesis: it is private to PyTorch"
    ):
        exec(program, found)
    assert found["nn"] is found["again"] and found["nn"].Linear is nn.Linear and found["optim"].Adam is optim.Adam
    assert found["F"].relu is genesis.nn.functional.relu and found["Function"] is genesis.Function
    assert found["Tensor"] is genesis.Tensor and found["Module"] is nn.Module
    assert found["dist"].is_available() and not found["dist"].is_initialized() and found["mp"].Queue


def test_what_programs_import_to_train(torch):
    program = """
from torch.optim.optimizer import Optimizer, required
from torch.optim.lr_scheduler import _LRScheduler, ReduceLROnPlateau
from torch.optim.swa_utils import AveragedModel, SWALR
from torch.optim.adamw import AdamW
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.nn.utils import parametrize, weight_norm
from torch.nn.utils.parametrizations import spectral_norm
import torch.nn.utils.prune as prune
import torch.nn.parallel
assert callable(weight_norm) and torch.nn.DataParallel is torch.nn.parallel.DataParallel
class Flat(_LRScheduler):
    def get_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]
"""
    found: dict[str, object] = {}
    exec(program, found)
    assert found["Optimizer"] is optim.Optimizer and found["AdamW"] is optim.AdamW
    assert issubclass(found["ReduceLROnPlateau"], found["_LRScheduler"])


def test_what_is_absent_of_several_machines_can_be_imported_and_says_why_when_it_is_used(torch):
    program = """
import torch.distributed as dist
from torch.distributed import ProcessGroupGloo, destroy_process_group, init_process_group
from torch.distributed.rpc import rpc_sync
from torch.nn.parallel import DistributedDataParallel as DDP
"""
    found: dict[str, object] = {}
    exec(program, found)
    assert not isinstance(nn.Linear(1, 1), found["DDP"]) and not isinstance(3, found["ProcessGroupGloo"])
    for name in ("ProcessGroupGloo", "rpc_sync"):
        with pytest.raises(NotImplementedError, match=rf"^torch\.\S+\.{name}: ."):
            found[name]("127.0.0.1", 1234)
    with pytest.raises(AttributeError, match=r"torch.distributed.ProcessGroupGloo.options is not in Genesis: ."):
        found["dist"].ProcessGroupGloo.options  # noqa: B018
    assert state_of("torch.distributed.ProcessGroupGloo")[0] == ABSENT


def test_rooms_of_torch_distributed(torch):
    program = """
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemReader, save
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.constants import default_pg_timeout
from torch.distributed.distributed_c10d import all_reduce
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp.fully_sharded_data_parallel import CPUOffload, FullyShardedDataParallel
from torch.distributed._tensor.placement_types import Shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.distributed.tensor.parallel.style import SequenceParallel
import torch.distributed.autograd, torch.distributed.rpc as rpc
"""
    found: dict[str, object] = {}
    exec(program, found)
    snapshots = genesis.distributed.checkpoint
    assert (found["save"], found["load"]) == (snapshots.save, snapshots.load)
    assert found["get_model_state_dict"] is snapshots.state_dict.get_model_state_dict
    assert found["all_reduce"] is genesis.distributed.all_reduce
    assert found["default_pg_timeout"] == genesis.distributed.groups.default_pg_timeout
    assert found["FullyShardedDataParallel"] is genesis.distributed.fsdp.FullyShardedDataParallel
    assert found["parallelize_module"] is genesis.distributed.tensor.parallel.parallelize_module
    assert found["rpc"].is_available() is found["torch"].distributed.autograd.is_available() is False
    assert found["SequenceParallel"] is genesis.distributed.tensor.parallel.SequenceParallel
    with pytest.raises(NotImplementedError, match="snapshots are written and read in one way"):
        found["DefaultSavePlanner"](print)
    assert state_of("torch.distributed.checkpoint.save")[0] != ABSENT == state_of("torch.distributed.rpc.rpc_sync")[0]


def test_tensorboard_is_imported_where_its_package_is(monkeypatch):
    """Programs go without it where the import fails."""
    program = """
try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:
    SummaryWriter = error
"""
    without = {}
    with installed(), monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tensorboard", None)
        exec(program, without)
    assert "needs the package tensorboard\n  try: pip install tensorboard" in str(without["SummaryWriter"])
    pytest.importorskip("tensorboard")
    found = {}
    with installed():
        exec(program + "from torch.utils.tensorboard.writer import FileWriter\n"
             "from torch.utils.tensorboard.summary import hparams, make_histogram", found)  # fmt: skip
    assert found["SummaryWriter"] is genesis.utils.tensorboard.SummaryWriter
    assert found["make_histogram"] is genesis.utils.tensorboard.summary.make_histogram


ROOMS = """
from torch.distributions.normal import Normal
from torch.distributions.categorical import Categorical
import torch.distributions.constraints as constraints
from torch.distributions import kl, transforms
from torch.distributions.utils import broadcast_all
from torch.autograd.gradcheck import gradcheck
from torch.autograd.grad_mode import no_grad
from torch.autograd.variable import Variable
from torch.functional import einsum
from torch.nn.utils.weight_norm import weight_norm
from torch.nn.utils.spectral_norm import spectral_norm
from torch.nn.common_types import _size_2_t
from torch.amp.grad_scaler import GradScaler
from torch.cpu.amp import autocast
from torch.profiler.profiler import profile
from torch.utils.model_zoo import load_url
from torch.utils.data._utils.collate import default_collate
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.loss import _Loss, _WeightedLoss
from torch.nn.modules.module import _addindent, _IncompatibleKeys
from torch.nn.modules.transformer import _get_activation_fn, _get_clones
from torch.nn.modules.utils import _pair, _single, _triple
from torch.nn.init import _calculate_fan_in_and_fan_out
from torch.nn import _reduction
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch._tensor import Tensor
from torch._jit_internal import Final
from torch.types import _device, _dtype, _size
import torch._C, torch._dynamo, torch._inductor.config
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel.data_parallel import DataParallel
from torch.torch_version import TorchVersion
"""


@pytest.mark.parametrize("line", ROOMS.strip().splitlines())
def test_inner_modules_that_programs_import(torch, line):
    exec(line, {})


def test_a_module_does_not_cover_the_function_of_its_name(torch):
    program = "import torch.nn.utils.weight_norm, torch.autograd.gradcheck, torch.multiprocessing.spawn\nimport torch"
    found: dict[str, object] = {}
    exec(program, found)
    for value in (torch.nn.utils.weight_norm, torch.autograd.gradcheck, torch.multiprocessing.spawn):
        assert callable(value)
    assert torch.autograd.gradcheck is genesis.autograd.gradcheck and not hasattr(torch.nn.quantized, "Linear")


def test_star_gives_what_is_there(torch):
    found: dict[str, object] = {}
    exec("from torch.nn import *\nfrom torch.nn.init import *", found)
    assert found["Linear"] is nn.Linear and found["xavier_uniform_"] is nn.init.xavier_uniform_
    assert "Conv2d" in found or not hasattr(nn, "Conv2d")


def test_values_that_programs_ask_for(torch):
    assert torch.__version__.startswith("2.13") and torch.version.cuda is None
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and not torch.backends.mps.is_available()
    assert torch.cuda.manual_seed_all(3) is None and torch.cuda.empty_cache() is None
    torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark is True and torch.inf == float("inf") and torch.nan != torch.nan
    with pytest.raises(NotImplementedError, match="there is no GPU here"):
        torch.cuda.synchronize()


def test_classes_of_one_dtype(torch):
    assert torch.LongTensor([1, 2]).dtype is torch.int64 and torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.DoubleTensor([1, 2]).dtype is torch.float64 and torch.FloatTensor().shape == (0,)
    assert isinstance(torch.ones(2), torch.FloatTensor) and not isinstance(torch.ones(2), torch.LongTensor)
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.ones(1).dtype is torch.float64
        torch.set_default_tensor_type("torch.FloatTensor")
        assert torch.ones(1).dtype is torch.float32
    finally:
        genesis.set_default_dtype(genesis.float32)


def test_compile_is_that_of_genesis(torch):
    def step(x):
        return x * 2

    for compiled in (torch.compile(step), torch.compile(mode="max-autotune", backend="inductor")(step)):
        assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
        assert "1 graphs" in compiled.explain()


def test_variable_is_a_tensor(torch):
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "code, error, words",
    [
        ("torch.onnx.InputObserver", AttributeError, "torch.onnx.InputObserver is not in Genesis: of its names export"),
        (
            "from torch.masked import masked_tensor",
            ImportError,
            "torch.masked.masked_tensor is not in Genesis: masked tensors",
        ),
        ("import torch.nowhere", ModuleNotFoundError, "PyTorch 2.13 has no such name"),
        ("torch.reluu", AttributeError, "did you mean torch.relu"),
        ("torch.hub.load('a/b', 'c')", NotImplementedError, "nothing is downloaded"),
        ("from torch.utils.tensorboard import TensorBoard", ImportError, "PyTorch 2.13 has no such name"),
    ],
)
def test_what_is_not_there_says_why(torch, code, error, words):
    with pytest.raises(error) as raised:
        exec(code, {"torch": torch})
    assert words in str(raised.value) and isinstance(raised.value, genesis.base.errors.GenesisError)


def test_hasattr_and_dir_tell_the_truth(torch):
    assert hasattr(torch, "relu") and not hasattr(torch.masked, "masked_tensor") and not hasattr(torch, "no_such_name")
    assert "relu" in dir(torch) and all(hasattr(torch.nn, name) for name in dir(torch.nn))


def test_every_module_of_the_table_can_be_imported(torch):
    for module in names():
        if module != "torch.Tensor":
            exec(f"import {module}", {})


def test_torch_is_what_it_was_after_a_block():
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torch"}
    finders = list(sys.meta_path)
    with pytest.raises(KeyError), installed():
        import torch  # noqa: F401

        raise KeyError
    assert {name: m for name, m in sys.modules.items() if name.split(".")[0] == "torch"} == before
    assert sys.meta_path == finders


def test_blocks_inside_each_other():
    with installed() as outer, installed() as inner:
        assert inner.relu is outer.relu
    assert not any(type(finder).__module__ == "genesis.pytorch.finder" for finder in sys.meta_path)


def test_pytorch_itself_is_not_pushed_aside(monkeypatch):
    class Real:
        __version__ = "2.13.0"

    monkeypatch.setitem(sys.modules, "torch", Real())
    with pytest.raises(ValueError, match=r"PyTorch 2.13.0 is imported already"):
        as_torch()
    assert not any(type(finder).__module__ == "genesis.pytorch.finder" for finder in sys.meta_path)


def test_as_torch_is_a_name_of_the_package():
    code = "import genesis; t = genesis.as_torch(); import torch; print(torch is t, torch.ones(2).sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 2.0\n"


NO_TORCH = """
import importlib.machinery, importlib.util, sys
find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = lambda name, *rest: None if name.split(".")[0] == "torch" else find(name, *rest)
"""


def without_pytorch(program):
    command = [sys.executable, "-c", NO_TORCH + program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("line", ["from torch.nn import Linear", "import torch.nn as nn", "import torch.nn.functional"])
@pytest.mark.parametrize("where", ["import genesis as torch\n{}", "def f():\n  import genesis as torch\n  {}\nf()"])
def test_an_import_of_torch_beside_genesis_under_its_name_says_what_to_do(line, where):
    last = without_pytorch(where.format(line)).stderr.strip().splitlines()[-2:]
    assert last[0].startswith("genesis.base.errors.MissingImport: import torch: Python looks for a module of this name")
    assert "genesis.as_torch()" in last[1] and "genesis run --torch" in last[1]


def test_modules_that_only_pytorch_has_are_imported_from_genesis():
    program = """
import importlib, sys
from genesis.autograd.function import Function, once_differentiable
from genesis.nn.modules.batchnorm import _BatchNorm
from genesis.nn.modules.utils import _pair
from genesis.utils.data.dataset import Dataset
import genesis as torch, genesis.nn.modules.conv as conv
from genesis.pytorch.names import names
assert Function is torch.autograd.Function and once_differentiable is torch.autograd.once_differentiable
assert issubclass(torch.nn.BatchNorm2d, _BatchNorm) and _pair(2) == (2, 2) and Dataset is torch.utils.data.Dataset
assert conv is torch.nn.modules.conv and conv.Conv2d is torch.nn.Conv2d
for name in sorted({*names()} - {"torch", "torch.Tensor"}):
    importlib.import_module(name.replace("torch", "genesis", 1))
assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
for absent in ("genesis.autograd.no_such_module", "genesis.no_such_module", "genesis.nn.functional.relu"):
    try:
        importlib.import_module(absent)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = without_pytorch(program)
    assert done.stderr == ""
    assert [line.partition(";")[0] for line in done.stdout.splitlines()] == [
        "No module named 'genesis.autograd.no_such_module'",
        "No module named 'genesis.no_such_module'",
        "No module named 'genesis.nn.functional.relu'",
    ]


def test_programs_that_ask_for_pytorch_still_hear_that_it_is_not_there():
    program = """
import genesis
assert importlib.util.find_spec("torch") is None
try:
    import torch
except ModuleNotFoundError as error:
    print(type(error).__name__, error)
"""
    assert without_pytorch(program).stdout == "ModuleNotFoundError No module named 'torch'\n"


def test_genesis_has_the_names_of_pytorch_where_no_import_of_torch_is_changed():
    program = """
import genesis as torch, sys
from genesis.pytorch import modules
assert not [name for name in sys.modules if name.startswith("torch")]
assert torch.LongTensor([1, 2]).dtype is torch.int64 and torch.FloatTensor(2, 3).shape == (2, 3)
assert torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad
assert torch.nn.modules.conv.Conv2d is torch.nn.Conv2d and torch.utils.data.dataset.Dataset is torch.utils.data.Dataset
assert torch.distributions.normal.Normal is torch.distributions.Normal and torch.transpose_copy(torch.ones(1, 2), 0, 1).shape == (2, 1)
assert torch.version.cuda is None and torch.jit.script(abs) is abs and not torch.backends.mps.is_available()
torch.backends.cudnn.benchmark = True
assert torch.backends.cudnn.benchmark and modules.find("torch.backends", "cudnn") is torch.backends.cudnn
for of, name in ((torch, "no_such_name"), (torch.nn, "no_such_name"), (torch, "_C"), (torch, "quantize_per_tensor")):
    try:
        getattr(of, name)
    except AttributeError as error:
        print(error)
assert not [name for name in sys.modules if name.startswith("torch")]
"""
    assert without_pytorch(program).stdout.splitlines() == [
        "module 'genesis' has no attribute 'no_such_name'",
        "module 'genesis.nn' has no attribute 'no_such_name'",
        "module 'genesis' has no attribute '_C'",
        "torch.quantize_per_tensor is not in Genesis: quantization is not built",
    ]
