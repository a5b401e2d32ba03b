"""Names of PyTorch's inner modules that programs import all the same: classes to derive layers from, helpers with an underscore."""

from __future__ import annotations

import copy
import functools
import importlib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import genesis
from genesis import nn
from genesis.core.graph.tensor import Tensor
from genesis.nn import conv, dropout, init, loss, norm, padding, pooling, transformer
from genesis.nn.state import EXTRA, IncompatibleKeys
from genesis.pytorch.names import VERSION
from genesis.pytorch.stand_ins.common import Values, as_it_is, from_module, nothing, values


class TorchVersion(str):
    """A version that is compared by its numbers, with versions, strings and tuples.

    >>> from genesis.pytorch.stand_ins.rooms import TorchVersion
    >>> TorchVersion("2.13.0+genesis") >= "2.9", TorchVersion("2.13.0") < (3,), TorchVersion("2.13.0") == "2.13"
    (True, True, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def _numbers(self, other: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        parts = [
            re.match(r"v?([\d.]*)(.*)", ".".join(map(str, each)) if isinstance(each, tuple | list) else str(each))
            for each in (self, other)
        ]
        released = [[int(n) for n in p[1].split(".") if n] for p in parts if p is not None]
        length = max(map(len, released))
        a, b = ((*r, *[0] * (length - len(r)), p[2]) for r, p in zip(released, parts, strict=True) if p is not None)
        return a, b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str | tuple | list) and tuple.__eq__(*self._numbers(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return tuple.__lt__(*self._numbers(other))

    def __le__(self, other: Any) -> bool:
        return tuple.__le__(*self._numbers(other))

    def __gt__(self, other: Any) -> bool:
        return tuple.__gt__(*self._numbers(other))

    def __ge__(self, other: Any) -> bool:
        return tuple.__ge__(*self._numbers(other))


@values("torch", "torch.version")
def _version() -> Values:
    return {"__version__": TorchVersion(f"{VERSION}+genesis{genesis.__version__}")}


values("torch.torch_version")(lambda: {"TorchVersion": TorchVersion})


# ---- what programs derive layers from


class _Family(type):
    """A class to derive from, of which the layers here are instances, too."""

    members: tuple[type, ...] = ()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__dict__.get("members", ())) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__dict__.get("members", ())) or super().__subclasscheck__(other)


class _BatchNorm(norm._BatchNorm, metaclass=_Family):
    """A batch norm whose ``_check_input_dim`` says which inputs it takes."""

    members = (norm._BatchNorm,)

    def _check_dims(self, input: Tensor) -> None:
        self._check_input_dim(input)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError


class _ConvNd(conv._Convolution, metaclass=_Family):
    """A convolution, of as many dimensions as its kernel has sizes, without a ``forward``."""

    members = (conv._Convolution,)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sequence[int], stride: Any, padding: Any,
                 dilation: Any, transposed: bool, output_padding: Any, groups: int, bias: bool, padding_mode: str,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        object.__setattr__(self, "dims", len(kernel_size))
        object.__setattr__(self, "transposed", transposed)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups,
                         bias, padding_mode, device, dtype)  # fmt: skip
        # as `pad` takes it: the last dimension first, each size twice
        sides = self._border() if isinstance(self.padding, str) else [p for p in reversed(self.padding) for _ in (0, 1)]
        self._reversed_padding_repeated_twice = sides


class _Loss(nn.Module, metaclass=_Family):
    """A loss that knows how results are reduced."""

    members = (loss._Loss,)

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        old = size_average is not None or reduce is not None
        self.reduction = _legacy_get_string(size_average, reduce) if old else reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class."""

    members = tuple(getattr(nn, name) for name in ("NLLLoss", "CrossEntropyLoss", "BCELoss", "MultiLabelSoftMarginLoss",
                                                   "MultiMarginLoss"))  # fmt: skip

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def _legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


values("torch.nn._reduction")(lambda: {"legacy_get_string": _legacy_get_string})
values("torch.nn.modules.batchnorm")(lambda: {"_BatchNorm": _BatchNorm, "_NormBase": norm._ChannelNorm})
values("torch.nn.modules.instancenorm")(lambda: {"_InstanceNorm": norm._InstanceNorm, "_NormBase": norm._ChannelNorm})
values("torch.nn.modules.conv")(lambda: {"_ConvNd": _ConvNd, "_ConvTransposeNd": conv._Transposed})
values("torch.nn.modules.dropout")(lambda: {"_DropoutNd": dropout._Dropout})
values("torch.nn.modules.linear")(lambda: {"NonDynamicallyQuantizableLinear": nn.Linear})
values("torch.nn.modules.loss")(lambda: {"_Loss": _Loss, "_WeightedLoss": _WeightedLoss})


def _sort_of_pad(kind: str) -> type:
    """The layers of one kind of borders, of which PyTorch's have a class in common."""
    members = tuple(getattr(padding, f"{kind}Pad{dims}d") for dims in (1, 2, 3))
    return _Family(f"_{kind}PadNd", (padding._Pad,), {"members": members})


values("torch.nn.modules.padding")(
    lambda: {"_ConstantPadNd": padding._ConstantPad,
             **{f"_{kind}PadNd": _sort_of_pad(kind) for kind in ("Reflection", "Replication", "Circular")}}
)  # fmt: skip
values("torch.nn.modules.pooling")(
    lambda: {
        **{
            f"_{kind}PoolNd": getattr(pooling, f"_{kind}Pool")
            for kind in ("Max", "Avg", "AdaptiveAvg", "AdaptiveMax", "LP")
        },
        "_MaxUnpoolNd": pooling._MaxUnpool,
    }
)


# ---- helpers of layers


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes ``n`` of a single value, and a tuple of several."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


def _indented(text: str, spaces: int) -> str:
    """All lines but the first further to the right."""
    return text.replace("\n", "\n" + " " * spaces)


@values("torch.nn.modules.utils")
def _utils() -> Values:
    sizes = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}
    return {
        **{name: _ntuple(n, name) for name, n in sizes.items()}, "_ntuple": _ntuple,
        "_reverse_repeat_tuple": lambda t, n: tuple(x for x in reversed(t) for _ in range(n)),
        "consume_prefix_in_state_dict_if_present": _stripped,
    }  # fmt: skip


def _stripped(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names in a state dict, in place."""
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)


values("torch.nn.modules.module")(
    lambda: {"_addindent": _indented, "_IncompatibleKeys": IncompatibleKeys, "_EXTRA_STATE_KEY_SUFFIX": EXTRA}
)
values("torch.nn.modules.transformer")(
    lambda: {
        "_get_clones": lambda module, N: nn.ModuleList([copy.deepcopy(module) for _ in range(N)]),  # noqa: N803
        "_get_activation_fn": lambda activation: transformer._activation("activation", activation),
    }
)
values("torch.nn.init")(
    lambda: {
        "_calculate_fan_in_and_fan_out": init._fans,
        "_calculate_correct_fan": lambda tensor, mode: init._fan(tensor, mode.lower()),
        "_no_grad_trunc_normal_": init.trunc_normal_,
        "_no_grad_normal_": init.normal_,
        "_no_grad_uniform_": init.uniform_,
    }
)


@values("torch.nn.common_types")
def _common_types() -> Values:
    number = typing.TypeVar("number")
    kinds: Values = {"T": number, "Tensor": Tensor}
    for kind, of in (("size", int), ("ratio", float)):
        kinds |= {f"_{kind}_{n}_t": of | tuple[(of,) * n] for n in range(1, 7)}  # type: ignore[misc, valid-type]
        kinds[f"_{kind}_any_t"] = of | tuple[of, ...]
    optional = int | None
    kinds |= {f"_size_{n}_opt_t": optional | tuple[(optional,) * n] for n in (2, 3)}  # type: ignore[misc, valid-type]
    return kinds | {"_size_any_opt_t": optional | tuple[optional, ...], "_tensor_list_t": Tensor | tuple[Tensor, ...],
                    "_maybe_indices_t": Tensor | tuple[Tensor, Tensor]}  # fmt: skip


@values("torch.nn.grad")
def _grad() -> Values:
    """The gradients of convolutions, of their input and of their weight."""
    F = importlib.import_module("genesis.nn.functional")  # noqa: N806

    def of_input(dims: int) -> Callable[..., Tensor]:
        def gradient(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                     dilation: Any = 1, groups: int = 1) -> Tensor:  # fmt: skip
            function = functools.partial(getattr(F, f"conv{dims}d"), weight=weight, stride=stride, padding=padding,
                                         dilation=dilation, groups=groups)  # fmt: skip
            return _transposed(function, input_size, grad_output)

        return gradient

    def of_weight(dims: int) -> Callable[..., Tensor]:
        def gradient(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                     dilation: Any = 1, groups: int = 1) -> Tensor:  # fmt: skip
            convolve = getattr(F, f"conv{dims}d")
            return _transposed(
                lambda weight: convolve(input, weight, None, stride, padding, dilation, groups),
                weight_size,
                grad_output,
            )

        return gradient

    made: Values = {f"conv{dims}d_input": of_input(dims) for dims in (1, 2, 3)}
    return made | {f"conv{dims}d_weight": of_weight(dims) for dims in (1, 2, 3)}


def _transposed(function: Callable[[Tensor], Tensor], size: Any, grad_output: Tensor) -> Tensor:
    """The gradient of a linear function, which is the same everywhere."""
    with genesis.enable_grad():
        x = genesis.zeros(tuple(size), dtype=grad_output.dtype, requires_grad=True)
        (gradient,) = genesis.autograd.grad(function(x), x, grad_output)
    return gradient


# ---- distributions


class lazy_property:  # noqa: N801
    """A method whose value is computed once, as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with genesis.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _clamped(probs: Tensor) -> Tensor:
    tiny = float(genesis.finfo(probs.dtype).eps)
    return probs.clamp(min=tiny, max=1 - tiny)  # type: ignore[attr-defined, no-any-return]


@values("torch.distributions.utils")
def _of_distributions() -> Values:
    F = importlib.import_module("genesis.nn.functional")  # noqa: N806
    utils = importlib.import_module("genesis.distributions.utils")

    def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
        clamped = _clamped(probs)
        return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()  # type: ignore[attr-defined, no-any-return]

    def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
        # with n rows and `diag`, vec has n (n + 1 + 2 diag) / 2 + ... elements: that is solved for n
        k = vec.shape[-1]
        n = round((-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * k + 4 * abs(diag) * (diag + 1))) / 2)
        rows, columns = genesis.tril_indices(n, n, diag)
        matrix = genesis.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype)
        matrix[..., rows, columns] = vec
        return matrix

    def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
        rows, columns = genesis.tril_indices(mat.shape[-1], mat.shape[-1], diag)
        return mat[..., rows, columns]

    return {
        "broadcast_all": lambda *tensors: tuple(utils.tensors(*tensors)), "clamp_probs": _clamped,
        "logits_to_probs": lambda logits, is_binary=False: logits.sigmoid() if is_binary else F.softmax(logits, -1),
        "probs_to_logits": probs_to_logits, "lazy_property": lazy_property, "_sum_rightmost": utils.sum_last,
        "_standard_normal": lambda shape, dtype, device: genesis.randn(shape, dtype=dtype, device=device),
        "vec_to_tril_matrix": vec_to_tril_matrix, "tril_matrix_to_vec": tril_matrix_to_vec,
    }  # fmt: skip


@values("torch.distributions.constraints")
def _constraints() -> Values:
    room = importlib.import_module("genesis.distributions.constraints")
    sets = {name: kind for name, kind in vars(room).items() if isinstance(kind, type)}
    return {name: kind for name, kind in sets.items() if name.startswith("_") and issubclass(kind, room.Constraint)}


values("torch.distributions.transforms")(from_module("genesis.distributions.transforms.transform", "_InverseTransform"))

# ---- modules with an underscore


def _unflattened(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Parts of a long vector in the shapes of tensors."""
    tensors = list(tensors)
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors, strict=True))  # type: ignore[attr-defined]


values("torch._utils")(
    lambda: {
        "_flatten_dense_tensors": lambda tensors: genesis.cat([t.reshape(-1) for t in tensors]),
        "_unflatten_dense_tensors": _unflattened,
    }
)
values("torch._tensor")(lambda: {"Tensor": Tensor})
values("torch._jit_internal", "torch.jit")(lambda: {"Final": typing.Final})
values("torch._jit_internal")(lambda: {"_copy_to_script_wrapper": as_it_is})
values("torch.jit.annotations")(
    lambda: {**{name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple")}, "Tensor": Tensor}
)
values("torch._dynamo")(
    lambda: {**{name: getattr(genesis.compiler, name) for name in ("disable", "is_compiling", "list_backends", "reset")},
             "optimize": lambda *args, **options: genesis.compile, "graph_break": nothing,
             "OptimizedModule": importlib.import_module("genesis.nn.compiled").OptimizedModule,
             **dict.fromkeys(("mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic"), nothing),
             **dict.fromkeys(("allow_in_graph", "assume_constant_result", "disallow_in_graph"), as_it_is)}
)  # fmt: skip
values("torch._dynamo.eval_frame")(from_module("genesis.nn.compiled", "OptimizedModule"))
values("torch._inductor.config")(
    lambda: {name: types.SimpleNamespace() for name in ("aot_inductor", "cpp", "cuda", "trace", "triton")}
)
values("torch.utils.data._utils.collate")(from_module("genesis.data", "default_collate", "default_convert"))


@values("torch.types")
def _types() -> Values:
    plain = {f"_{kind.__name__}": kind for kind in (bool, bytes, complex, float, int, str)}
    return {**plain, "_device": genesis.device, "_dtype": genesis.dtype, "_layout": genesis.layout,
            "_size": genesis.Size | list[int] | tuple[int, ...], "_TensorOrTensors": Tensor | Sequence[Tensor]}  # fmt: skip
