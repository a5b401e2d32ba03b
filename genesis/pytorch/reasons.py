"""Why a name of PyTorch is absent, what is different of one that is there, and what to write instead."""

from __future__ import annotations

import difflib

from genesis.pytorch.names import names

_QUANTIZED = "quantization is not built"
_SPARSE = "of sparse tensors there are matrices in coordinates, by rows and by columns, and their products"

# families, by the beginning of the dotted name: the longest that fits counts
FAMILIES = {
    "torch.accelerator": "there is no GPU code yet; torch.accelerator.is_available() is False",
    "torch.ao": _QUANTIZED,
    "torch.backends": "this switch of a backend is not there",
    "torch.cuda": "there is no GPU code yet; torch.cuda.is_available() is False, so programs that ask go on with the CPU",
    "torch.distributed": "training on several machines is not built",
    "torch.export": "programs are recorded with genesis.jit.trace, which has no export format",
    "torch.fx": "graphs of modules are left out; genesis.jit.trace records a function",
    "torch.hub": "nothing is downloaded",
    "torch.jit": "TorchScript is left out; genesis.jit.trace records a function and replays it",
    "torch.compiler": "guards and caches are not for programs to change",
    "torch.library": "genesis.library.custom_op declares an operation, with what is registered for it",
    "torch.masked": "masked tensors are left out",
    "torch.mps": "Apple's GPUs are not used",
    "torch.nested": "nested tensors are left out",
    "torch.nn.intrinsic": _QUANTIZED,
    "torch.nn.parallel": "there is no GPU code and no second machine yet",
    "torch.nn.qat": _QUANTIZED,
    "torch.nn.quantized": _QUANTIZED,
    "torch.onnx": "of its names export, ONNXProgram and is_in_onnx_export are there",
    "torch.package": "packaging of code is left out",
    "torch.profiler": "of its names profile, schedule, record_function and the handlers are there",
    "torch.quantization": _QUANTIZED,
    "torch.sparse": _SPARSE,
    "torch.utils.benchmark": "of its classes Timer and Measurement are there",
    "torch.utils.cpp_extension": "extensions in C++ are left out; genesis.autograd.from_ctypes calls compiled code",
    "torch.utils.tensorboard": "SummaryWriter is there",
}

INSTEAD = {
    "torch.hub.load": "build the model in the program, and torch.load its weights",
    "torch.nn.SyncBatchNorm": "torch.nn.BatchNorm2d, on the one machine that there is",
    "torch.nn.CrossMapLRN2d": "torch.nn.LocalResponseNorm",
    "torch.nn.parallel.DistributedDataParallel": "the model itself",
    "torch.nn.utils.convert_conv2d_weight_memory_format": "nothing: a weight has the layout that it was made with",
    "torch.nn.utils.convert_conv3d_weight_memory_format": "nothing: a weight has the layout that it was made with",
    "torch.optim.swap_in_optimizer_params_and_state": "optimizer.state_dict() and load_state_dict(), "
    "or bind() of a traced step",
}

INSTEAD |= {
    f"torch.optim.{name}.{name}": "the class of this module, and its step()"
    for name in ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"]
}

INSTEAD |= {
    f"torch.{name}": "the function of this name in torch.nn.functional"
    for name in [
        "alpha_dropout", "binary_cross_entropy_with_logits", "ctc_loss", "embedding_bag", "feature_alpha_dropout",
        "hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss", "poisson_nll_loss",
        "triplet_margin_loss",
    ]
}  # fmt: skip

# families of names in `torch` and `torch.Tensor`: a part of the name, and why it is absent
PARTS = {
    "quantize": _QUANTIZED, "dequantize": _QUANTIZED, "qparams": _QUANTIZED, "fbgemm": _QUANTIZED, "quint": _QUANTIZED,
    "qint": _QUANTIZED, "qscheme": _QUANTIZED, "q_scale": _QUANTIZED, "q_zero_point": _QUANTIZED,
    "q_per_channel": _QUANTIZED, "per_channel": _QUANTIZED, "int_repr": _QUANTIZED, "per_tensor": _QUANTIZED,
    "fake_quant": _QUANTIZED, "QInt": _QUANTIZED, "QUInt": _QUANTIZED, "mkldnn": "oneDNN is not used",
    "cudnn": "there is no GPU code yet", "miopen": "there is no GPU code yet", "_gpu_": "there is no GPU code yet",
    "sparse": _SPARSE, "crow_indices": _SPARSE, "col_indices": _SPARSE, "row_indices": _SPARSE, "smm": _SPARSE,
    "saddmm": _SPARSE, "sspaddmm": _SPARSE, "dense_dim": _SPARSE, "coalesce": _SPARSE,
    "Script": "TorchScript is left out", "parse_": "TorchScript is left out", "Sym": "sizes are numbers",
    "sym_": "sizes are numbers", "PyTorchFile": "genesis.save and genesis.load do it",
    "batch_norm_": "it is a step of torch.nn.functional.batch_norm",
    "native_": "a step inside of the function of that name", "Dispatch": "there is no dispatcher of keys",
    "bits": "bits of other widths are no dtype here", "float8": "float8 is no dtype here",
    "float4": "float4 is no dtype here", "complex32": "complex numbers of 16 bits are no dtype here",
    "chalf": "complex numbers of 16 bits are no dtype here", "Graph": "TorchScript is left out",
}  # fmt: skip

# names that are there and do not do all that PyTorch's do
DIFFERENT = {
    "torch.nn.DataParallel": "there are no GPUs: the module as it is",
    "torch.compile": "backends that take graphs of PyTorch's kind are refused; what a graph cannot hold runs as it is, with a warning",
    "torch.jit.script": "the function or module runs as it is; genesis.jit.trace(function, *examples) records one",
    "torch.jit.trace": "the function or module runs as it is; genesis.jit.trace(function, *examples) records one",
    "torch.compiler.compile": "as torch.compile",
    "torch.profiler.profile": "what it sees runs on the CPU, and ops have their names here",
    "torch.sparse_coo_tensor": "a class of its own, SparseTensor, with products and sums; to_dense() for all else",
    "torch.sparse_csr_tensor": "a class of its own, CompressedTensor; indices that say no matrix are always refused",
    "torch.Tensor.to_sparse": "a class of its own, SparseTensor, with products and sums; to_dense() for all else",
    "torch.Tensor.share_memory_": "seen by processes that are forked, not by those that are spawned",
    "torch.Tensor.storage": "writes to a storage are not recorded, and it keeps its size",
    "torch.load": "PyTorch's files are read with or without weights_only, and no code in them ever runs",
    "torch.optim.Muon": "a momentum of 16 bits stays what it is (PyTorch divides it by its norm without nesterov)",
    "torch.optim.SGD": "differentiable=True: the first momentum has a gradient, too",
    "torch.nn.utils.clip_grad_norm_": "sparse gradients are clipped by the norm of their sums (PyTorch refuses them)",
    "torch.nn.utils.clip_grad_value_": "sparse gradients are summed and clipped (PyTorch refuses them)",
    "torch.save": "a name that ends in .pt, .pth or .bin gives PyTorch's format, others safetensors",
    "torch.nn.functional.mse_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.l1_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.smooth_l1_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.huber_loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.MSELoss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.L1Loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.SmoothL1Loss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.HuberLoss": "input and target of different shapes are refused (PyTorch warns)",
    "torch.nn.functional.ctc_loss": "the gradient is that of log_probs as they are (PyTorch's is what follows after log_softmax)",
    "torch.nn.CTCLoss": "the gradient is that of log_probs as they are (PyTorch's is what follows after log_softmax)",
    "torch.nn.functional.linear_cross_entropy": "logits are computed at once, whatever options say",
    "torch.nn.MultiheadAttention": "shapes that do not fit are a RuntimeError (PyTorch's is an AssertionError)",
    "torch.nn.TransformerEncoder": "padded positions are computed as all others (PyTorch may give zeros there in evaluation)",
    "torch.nn.attention.sdpa_kernel": "attention is computed one way, whatever is asked for",
    "torch.nn.utils.rnn.PackedSequence": "memory is never pinned",
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
    if not reason and dotted.rpartition(".")[0] in ("torch", "torch.Tensor"):
        reason = next((PARTS[part] for part in PARTS if part in dotted.rpartition(".")[2]), "")
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
