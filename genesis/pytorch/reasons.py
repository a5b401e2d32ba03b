"""Why a name of PyTorch is absent, what is different of one that is there, and what to write instead."""

from __future__ import annotations

import difflib

from genesis.pytorch.names import names

# families, by the beginning of the dotted name: the longest that fits counts
FAMILIES = {
    "torch.accelerator": "there is no GPU code yet; torch.accelerator.is_available() is False",
    "torch.ao": "quantization is not built",
    "torch.backends": "this switch of a backend is not there",
    "torch.cuda": "there is no GPU code yet; torch.cuda.is_available() is False, so programs that ask go on with the CPU",
    "torch.distributed": "training on several machines is not built",
    "torch.distributions": "distributions are not built",
    "torch.export": "programs are recorded with genesis.jit.trace, which has no export format",
    "torch.fft": "Fourier transforms are not built",
    "torch.futures": "futures of TorchScript are left out",
    "torch.fx": "graphs of modules are left out; genesis.jit.trace records a function",
    "torch.hub": "nothing is downloaded",
    "torch.jit": "TorchScript is left out; genesis.jit.trace records a function and replays it",
    "torch.linalg": "linear algebra beyond products is not built",
    "torch.masked": "masked tensors are left out",
    "torch.mps": "Apple's GPUs are not used",
    "torch.nested": "nested tensors are left out",
    "torch.nn.intrinsic": "quantization is not built",
    "torch.nn.parallel": "there is no GPU code and no second machine yet",
    "torch.nn.qat": "quantization is not built",
    "torch.nn.quantized": "quantization is not built",
    "torch.onnx": "export to ONNX is not built",
    "torch.package": "packaging of code is left out",
    "torch.profiler": "genesis.autograd.profile measures a backward",
    "torch.quantization": "quantization is not built",
    "torch.signal": "windows of signals are not built",
    "torch.sparse": "sparse tensors are not built",
    "torch.special": "the special functions that are there are names of torch itself",
    "torch.utils.benchmark": "use timeit",
    "torch.utils.cpp_extension": "extensions in C++ are left out; genesis.autograd.from_ctypes calls compiled code",
    "torch.utils.tensorboard": "SummaryWriter is there",
}

INSTEAD = {
    "torch.compile": "genesis.jit.trace(step) records a whole step and replays it",
    "torch.hub.load": "build the model in the program, and torch.load its weights",
    "torch.utils.tensorboard.SummaryWriter": "from tensorboardX import SummaryWriter",
    "torch.nn.DataParallel": "the model itself",
    "torch.nn.SyncBatchNorm": "there is one machine: torch.nn.BatchNorm2d",
    "torch.nn.CrossMapLRN2d": "torch.nn.LocalResponseNorm",
    "torch.nn.parallel.DistributedDataParallel": "the model itself",
    "torch.nn.utils.convert_conv2d_weight_memory_format": "nothing: a weight has the layout that it was made with",
    "torch.nn.utils.convert_conv3d_weight_memory_format": "nothing: a weight has the layout that it was made with",
    "torch.optim.swap_in_optimizer_params_and_state": "optimizer.state_dict() and load_state_dict(), "
    "or bind() of a traced step",
    "torch.profiler.profile": "genesis.autograd.profile",
    "torch.jit.script": "genesis.jit.trace(function, *examples)",
}

INSTEAD |= {
    f"torch.optim.{name}.{name}": "the class of this module, and its step()"
    for name in ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"]
}

# names that are there and do not do all that PyTorch's do
DIFFERENT = {
    "torch.nn.DataParallel": "there are no GPUs: the module as it is",
    "torch.compile": "the function runs as it is, nothing is compiled",
    "torch.load": "PyTorch's files are read with or without weights_only, and no code in them ever runs",
    "torch.optim.Muon": "a momentum of 16 bits stays what it is (PyTorch divides it by its norm without nesterov)",
    "torch.optim.SGD": "differentiable=True: the first momentum has a gradient, too",
    "torch.optim.SparseAdam": "there are no sparse gradients: it refuses",
    "torch.save": "a name that ends in .pt, .pth or .bin gives PyTorch's format, others safetensors",
    "torch.nn.functional.mse_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.l1_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.smooth_l1_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.huber_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.MSELoss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.L1Loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.SmoothL1Loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.HuberLoss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.utils.data.DataLoader": "random numbers belong to the sample, not to the worker: the same for any number of workers",
    "torch.utils.tensorboard.SummaryWriter": "it needs the package tensorboard; scalars, histograms, pictures and texts",
    "torch.nn.functional.interpolate": "uint8 images only with the nearest modes; gradients are those of the forward where a scale_factor leaves the size as it is",
    "torch.nn.functional.max_pool2d": "results are contiguous; windows that see nothing but padding are refused",
    "torch.use_deterministic_algorithms": "everything is deterministic, whatever is set",
    "torch.set_float32_matmul_precision": "products are computed in float32, whatever is set",
}


def why_absent(dotted: str) -> str:
    """Why a name is not there, and what to write instead."""
    reason = next((FAMILIES[f] for f in _families(dotted) if f in FAMILIES), "")
    instead = INSTEAD.get(dotted, "")
    if not reason and not instead and not _known(dotted):
        near = _near(dotted)
        reason = "PyTorch 2.13 has no such name" + (f"; did you mean {', '.join(near)}?" if near else "")
    return "; ".join(
        part for part in (reason or ("" if instead else "it is not built"), instead and f"write {instead}") if part
    )


def _families(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 1, -1)]


def _known(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    return name in names().get(module, ()) or dotted in names()


def _near(dotted: str) -> list[str]:
    module, _, name = dotted.rpartition(".")
    return [f"{module}.{other}" for other in difflib.get_close_matches(name, names().get(module, ()), 2)]
