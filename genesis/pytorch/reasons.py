"""Why a name of PyTorch is absent, what is different of one that is there, and what to write instead."""

from __future__ import annotations

import difflib

from genesis.pytorch.names import names

_QUANTIZED = "quantization is not built"
_SPARSE = "semi-structured matrices are for GPUs; sparse tensors in coordinates, rows, columns and blocks are there"
_SCRIPT = "TorchScript is left out"
_GPU = "there is no GPU code for such devices"
_BITS = "numbers of fewer than 8 bits are no dtype here"

# families, by the beginning of the dotted name: the longest that fits counts
FAMILIES = {
    "torch.accelerator": "torch.accelerator.is_available() is False",
    "torch.ao": _QUANTIZED,
    "torch.autograd.profiler": "of its names profile and record_function are there",
    "torch.backends": "this switch of a backend is not there",
    "torch.cuda": "genesis.cuda has what there is for GPUs; where there is none torch.cuda.is_available() is False, so programs that ask go on with the CPU",
    "torch.distributed": "processes find each other by MPI: options of other backends are left out",
    "torch.distributed.algorithms": "ranks send gradients as they are",
    "torch.distributed.algorithms._checkpoint": "genesis.utils.checkpoint.checkpoint(function, ...) computes again what it does not keep",
    "torch.distributed._composable": "DistributedDataParallel and fully_shard are there, under their public names",
    "torch.distributed._shard": "genesis.distributed.tensor has tensors of which each rank has a part",
    "torch.distributed._symmetric_memory": "ranks write to their own memory only",
    "torch.distributed._tools": "genesis.profiler.profile shows where time and memory go",
    "torch.distributed.autograd": "calls of other processes are left out",
    "torch.distributed.checkpoint": "snapshots are written and read in one way: planners, storages and metadata of other kinds are left out",
    "torch.distributed.elastic": "ranks that fail end the job, and `genesis run -n` says which failed first and why",
    "torch.distributed.fsdp.sharded_grad_scaler": "genesis.amp.GradScaler scales gradients of shards, too",
    "torch.distributed.launch": "`genesis run -n 2 script.py` starts several ranks",
    "torch.distributed.launcher": "`genesis run -n 2 script.py` starts several ranks",
    "torch.distributed.run": "`genesis run -n 2 script.py` starts several ranks",
    "torch.distributed.rendezvous": "init_process_group lets ranks meet, by an address, a file or a store",
    "torch.distributed.utils": "these are steps inside of PyTorch's DistributedDataParallel",
    "torch.distributed.tensor.experimental": "sequences are divided by SequenceParallel; attention over parts of them is left out",
    "torch.distributed.pipelining": "a backward computes all gradients of an operation at once, so it is not divided into those of inputs and of weights",
    "torch.distributed.rpc": "calls of other processes are left out",
    "torch.distributed.fsdp": "parameters are divided by rows, in memory of their own: options of flat parameters are left out",
    "torch.distributed.optim": "optimizers of remote and of locally averaged parameters are left out",
    "torch.export": "programs are recorded with genesis.jit.trace, which has no export format",
    "torch.fx": "of its passes shapes, parts, fusion and patterns are there",
    "torch.classes": _SCRIPT,
    "torch.contrib": "it is not built",
    "torch.hub": "nothing is downloaded",
    "torch.jit": "TorchScript is left out; genesis.jit.trace records a function and replays it",
    "torch.compiler": "guards and caches are not for programs to change",
    "torch.library": "genesis.library.custom_op and define declare an operation, with what is registered for it",
    "torch.masked": "masked tensors are left out",
    "torch.mps": "Apple's GPUs are not used",
    "torch.nn.intrinsic": _QUANTIZED,
    "torch.nn.attention.bias": "masks are tensors, or those of genesis.nn.attention.flex_attention; is_causal=True is the upper left one",
    "torch.nn.attention.varlen": "genesis.nested holds sequences of several lengths, and scaled_dot_product_attention takes them",
    "torch.nn.parallel": "it is a part of DataParallel, which is there as are scatter and gather",
    "torch.nn.qat": _QUANTIZED,
    "torch.nn.quantized": _QUANTIZED,
    "torch.onnx": "of its names export, ONNXProgram and is_in_onnx_export are there",
    "torch.monitor": "events and counters are left out",
    "torch.mtia": _GPU,
    "torch.ops": "there is no dispatcher of operations; torch and torch.nn.functional have functions of these names",
    "torch.package": "packaging of code is left out",
    "torch.profiler": "of its names profile, schedule, record_function and the handlers are there",
    "torch.quantization": _QUANTIZED,
    "torch.sparse": _SPARSE,
    "torch.utils.bottleneck": "genesis.profiler.profile shows where the time goes",
    "torch.utils.collect_env": "`genesis doctor` says what is installed",
    "torch.utils.benchmark": "of its classes Timer and Measurement are there",
    "torch.utils.cpp_extension": "extensions in C++ are left out; genesis.autograd.from_ctypes calls compiled code",
    "torch.xpu": _GPU,
}

INSTEAD = {
    "torch.hub.load": "build the model in the program, and torch.load its weights",
    "torch.distributed.rpc.rpc_sync": "send_object_list and recv_object_list",
    "torch.distributed.rpc.rpc_async": "isend and irecv of tensors",
    **{
        f"torch.distributed.pipelining.{name}": "ScheduleInterleaved1F1B"
        for name in ("ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble", "ScheduleDualPipeV")
    },
    "torch.distributed.BackendConfig": "the name of the backend as text",
    **{f"torch.distributed.{name}": "new_group(ranks) for each of them" for name in ("split_group", "shrink_group")},
    **{
        f"torch.distributed.all_{name}_coalesced": f"all_{name} of each tensor, with async_op=True"
        for name in ("reduce", "gather")
    },
    **{
        f"torch.distributed.checkpoint.{module}{old}": f"{new}(state, checkpoint_id=folder)"
        for old, new, rooms in (
            ("save_state_dict", "save", ("", "state_dict_saver.")),
            ("load_state_dict", "load", ("", "state_dict_loader.")),
        )
        for module in rooms
    },
    "torch.masked.masked_tensor": "the functions of genesis.masked with mask=, or torch.where",
    "torch.masked.as_masked_tensor": "the functions of genesis.masked with mask=, or torch.where",
    "torch.optim.swap_in_optimizer_params_and_state": "optimizer.state_dict() and load_state_dict(), "
    "or bind() of a traced step",
}

INSTEAD |= {
    f"torch.optim.{name}.{name}": "the class of this module, and its step()"
    for name in ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"]
}

# families of names in `torch` and `torch.Tensor`: a part of the name, and why it is absent
PARTS = {
    "quantize": _QUANTIZED, "dequantize": _QUANTIZED, "qparams": _QUANTIZED, "fbgemm": _QUANTIZED, "quint": _QUANTIZED,
    "qint": _QUANTIZED, "qscheme": _QUANTIZED, "q_scale": _QUANTIZED, "q_zero_point": _QUANTIZED,
    "q_per_channel": _QUANTIZED, "per_channel": _QUANTIZED, "int_repr": _QUANTIZED, "per_tensor": _QUANTIZED,
    "fake_quant": _QUANTIZED, "QInt": _QUANTIZED, "QUInt": _QUANTIZED, "mkldnn": "oneDNN is not used",
    "cudnn": _GPU, "miopen": _GPU, "_gpu_": _GPU,
    "sparse": _SPARSE, "crow_indices": _SPARSE, "col_indices": _SPARSE, "row_indices": _SPARSE, "smm": _SPARSE,
    "saddmm": _SPARSE, "sspaddmm": _SPARSE, "dense_dim": _SPARSE, "coalesce": _SPARSE,
    "Script": _SCRIPT, "parse_": _SCRIPT, "Sym": "sizes are numbers",
    "sym_": "sizes are numbers", "PyTorchFile": "genesis.save and genesis.load do it",
    "batch_norm_": "a step of torch.nn.functional.batch_norm on GPUs",
    "native_": "a step inside of the function of that name", "Dispatch": "there is no dispatcher of keys",
    "bits": _BITS, "float4": _BITS, "Graph": _SCRIPT,
}  # fmt: skip

# single names of `torch` and others: why they are absent
NAMES = {
    **{f"torch.{name}": _SCRIPT for name in (
        "AVG", "AliasDb", "Argument", "ArgumentSpec", "BenchmarkConfig", "BenchmarkExecutionStats", "Block", "BufferDict",
        "CallStack", "Capsule", "Code", "CompilationUnit", "CompleteArgumentSpec", "ConcreteModuleTypeBuilder",
        "DeepCopyMemoTable", "DeserializationStorageContext", "ErrorReport", "ExecutionPlan", "FatalError", "FileCheck",
        "FunctionSchema", "Gradient", "IODescriptor", "JITException", "LockingLogger", "LoggerBase", "ModuleDict", "Node",
        "NoopLogger", "OperatorInfo", "PRIVATE_OPS", "ParameterDict", "SUM", "SerializationStorageContext", "StaticModule",
        "Tag", "ThroughputBenchmark", "TracingState", "USE_GLOBAL_DEPS", "USE_RTLD_GLOBAL_WITH_LIBTORCH", "Use", "Value",
        "import_ir_module", "import_ir_module_from_buffer", "merge_type_from_type_comment", "unify_type_list",
        "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
    )},
    **{f"torch.{kind}{n}": _BITS for kind in ("int", "uint") for n in range(1, 8)}, "torch.bit": _BITS,
    **{f"torch.nn.functional.{name}": _GPU for name in ("scaled_mm", "scaled_grouped_mm")},
    **{f"torch.library.{name}": _GPU for name in ("triton_op", "wrap_triton")},
    "torch.Tensor.to_padded_tensor": "nested tensors have it, which are a class of their own (genesis.nested)",
    **{f"torch.library.{name}": "there is no dispatcher of keys" for name in ("fallthrough_kernel", "get_kernel")},
    "torch.fft.Tensor": "it is torch.Tensor", "torch.Tensor.index": "write x[i]",
    **dict.fromkeys(("torch.slice_inverse", "torch.Tensor.slice_inverse"), "a step inside of functionalization"),
    "torch.func.debug_unwrap": "transforms have no wrappers to be taken off",
    "torch.utils.checkpoint.CheckpointFunction": "checkpoints are not reentrant",
}  # fmt: skip

# what makes no sense on one CPU: families, by the beginning of the dotted name, and reasons
SENSELESS_FAMILIES = (
    "torch.accelerator", "torch.ao", "torch.backends.cuda", "torch.backends.cudnn", "torch.backends.mkldnn",
    "torch.backends.mps", "torch.compiler", "torch.cuda", "torch.distributed", "torch.export", "torch.jit",
    "torch.mps", "torch.nn.intrinsic", "torch.nn.parallel", "torch.nn.qat", "torch.nn.quantized", "torch.package",
    "torch.quantization", "torch.utils.cpp_extension",
)  # fmt: skip
SENSELESS = {_QUANTIZED, _SPARSE, _SCRIPT, _GPU, _BITS, "oneDNN is not used", "there is no dispatcher of keys",
             "a step of torch.nn.functional.batch_norm on GPUs"}  # fmt: skip


def makes_sense(dotted: str) -> bool:
    """Whether a name is of use on one CPU: not of quantization, GPUs, several machines or PyTorch's compilers."""
    family = any([dotted.startswith(f"{each}.") for each in SENSELESS_FAMILIES])
    return not family and why_absent(dotted).partition(";")[0] not in SENSELESS


# names that are there and do not do all that PyTorch's do
DIFFERENT = {
    "torch.nn.DataParallel": "there are no GPUs: the module as it is",
    "torch.nn.parallel.DistributedDataParallel": "gradients are views of the buckets; a parameter without a gradient is an error at the end of that "
    "backward, and what find_unused_parameters finds is found there",
    "torch.distributed.tensor.distribute_tensor": "a parameter that all ranks have stays an ordinary one",
    "torch.distributed.fsdp.fully_shard": "the states in an optimizer are tensors of this rank's rows; in its state_dict() they are DTensors",
    "torch.distributed.pipelining.ScheduleGPipe": "(and other schedules) gradients that are there already are not divided by the number of microbatches, nor those that an eval comes behind",
    "torch.distributed.pipelining.pipeline": "the program is recorded by torch.fx; modules in which no stage begins stay as they are",
    "torch.distributed.nn.functional.reduce": "zeros at the other ranks, so that its gradient is that of broadcast",
    "torch.compile": "backends that take graphs of PyTorch's kind are refused; what a graph cannot hold runs as it is, with a warning",
    "torch.jit.script": "the function or module runs as it is; genesis.jit.trace(function, *examples) records one",
    "torch.jit.trace": "the function or module runs as it is; genesis.jit.trace(function, *examples) records one",
    "torch.compiler.compile": "as torch.compile",
    "torch.profiler.profile": "what it sees runs on the CPU, and ops have their names here",
    "torch.sparse_coo_tensor": "a class of its own, SparseTensor, whose history is that of its values",
    "torch.sparse_csr_tensor": "a class of its own, CompressedTensor; indices that say no matrix are always refused",
    "torch.Tensor.to_sparse": "a class of its own, SparseTensor, whose history is that of its values",
    "torch.Tensor.share_memory_": "seen by processes that are forked, not by those that are spawned",
    "torch.Tensor.storage": "writes to a storage are not recorded, and it keeps its size",
    "torch.lobpcg": "computed exactly, whatever the options of the iteration are",
    "torch.func.functionalize": "the function as it is",
    "torch.nn.CrossMapLRN2d": "the gradient is that of the forward (PyTorch's is not)",
    "torch.nested.nested_tensor": "a class of its own, NestedTensor, on jagged memory whatever the layout",
    "torch.nested.as_nested_tensor": "a class of its own, NestedTensor, on jagged memory whatever the layout",
    "torch.sparse_bsr_tensor": "a class of its own, BlockTensor, without dimensions of batches",
    "torch.load": "nothing that a file names is called or imported; weights_only=False makes objects of classes that the program has, empty, and gives them their state",
    "torch.optim.Muon": "a momentum of 16 bits stays what it is (PyTorch divides it by its norm without nesterov)",
    "torch.optim.SGD": "differentiable=True: the first momentum has a gradient, too",
    "torch.nn.utils.clip_grad_norm_": "sparse gradients are clipped by the norm of their sums (PyTorch refuses them)",
    "torch.nn.utils.clip_grad_value_": "sparse gradients are summed and clipped (PyTorch refuses them)",
    "torch.save": "a name that ends in .pt, .pth or .bin gives PyTorch's format, and so do objects of the program's classes; others safetensors",
    "torch.nn.functional.mse_loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.functional.l1_loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.functional.smooth_l1_loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.functional.huber_loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.MSELoss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.L1Loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.SmoothL1Loss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.HuberLoss": "input and target of different shapes are refused; genesis run --torch warns, as PyTorch does",
    "torch.nn.functional.ctc_loss": "the gradient is that of log_probs as they are (PyTorch's is what follows after log_softmax)",
    "torch.nn.CTCLoss": "the gradient is that of log_probs as they are (PyTorch's is what follows after log_softmax)",
    "torch.nn.MultiheadAttention": "shapes that do not fit are a RuntimeError (PyTorch's is an AssertionError)",
    "torch.nn.TransformerEncoder": "padded positions are computed as all others (PyTorch may give zeros there in evaluation)",
    "torch.nn.attention.flex_attention.flex_attention": "all scores are in memory, whatever the mask; gradients work on the CPU, too",
    "torch.nn.attention.sdpa_kernel": "attention is computed one way, whatever is asked for",
    "torch.nn.utils.rnn.PackedSequence": "memory is never pinned",
    "torch.utils.data.DataLoader": "random numbers belong to the sample, not to the worker: the same for any number of workers",
    "torch.utils.tensorboard.SummaryWriter": "add_video writes GIFs with pillow, without moviepy; add_graph shows Genesis's own operations",
    "torch.nn.functional.interpolate": "uint8 images only with the nearest modes; gradients are those of the forward where a scale_factor leaves the size as it is",
    "torch.nn.functional.max_pool2d": "results are contiguous; windows that see nothing but padding are refused",
    "torch.use_deterministic_algorithms": "nothing is refused; all but attention's gradient by cuDNN is deterministic, whatever is set",
    "torch.set_float32_matmul_precision": "products are computed in float32, whatever is set",
}


def why_absent(dotted: str) -> str:
    """Why a name is not there, and what to write instead."""
    reason = NAMES.get(dotted, "") or next((FAMILIES[f] for f in _families(dotted) if f in FAMILIES), "")
    if not reason and dotted.rpartition(".")[0] in ("torch", "torch.Tensor"):
        reason = next((PARTS[part] for part in PARTS if part in dotted.rpartition(".")[2]), "")
    instead = INSTEAD.get(dotted, "")
    if not reason and not instead and not _known(dotted):
        near = _near(dotted)
        private = any([part.startswith("_") for part in dotted.split(".")])
        reason = "it is private to PyTorch" if private else "PyTorch 2.13 has no such name"
        reason += f"; did you mean {', '.join(near)}?" if near else ""
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
