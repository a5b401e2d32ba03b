"""Valid calls of every public callable, for the signature fuzzer: those of ops from their records, the others from the
tables here.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import genesis
from genesis import amp, autograd, data, func, nn, optim
from genesis.core.call.op import Case, Op, case
from genesis.nn import functional as F
from genesis.nn import init, utils
from genesis.optim import lr_scheduler
from genesis.testing import sequence_calls, spatial_calls, tensor_calls
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of

Calls = Callable[[Maker], list[Case]]


@dataclass(frozen=True, slots=True)
class Target:
    """One public callable: how to call it, with arguments that are right."""

    path: str
    call: Callable[..., Any]
    calls: Calls
    # what is done with the result: a module is called, an optimizer steps
    after: Callable[[Any, Maker], Any] | None = field(default=None)

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.call)


SPACES: dict[str, Any] = {
    "": genesis,
    "nn": nn,
    "nn.functional": F,
    "nn.init": init,
    "nn.parallel": nn.parallel,
    "nn.utils": utils,
    "nn.utils.parametrize": utils.parametrize,
    "nn.utils.parametrizations": utils.parametrizations,
    "nn.utils.prune": utils.prune,
    "optim": optim,
    "optim.lr_scheduler": lr_scheduler,
    "optim.swa_utils": optim.swa_utils,
    "data": data,
    "amp": amp,
    "autograd": autograd,
    "func": func,
    "linalg": genesis.linalg,
    "fft": genesis.fft,
    "special": genesis.special,
}


_OPTIMIZERS = [
    name
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and name not in ("Optimizer", "SparseAdam", "Muon", "LBFGS")
]


def _p(t: Maker, *shape: int) -> Any:
    p = t(*(shape or (3,))).requires_grad_()
    p.grad = t(*p.shape)
    return p


def _sgd(t: Maker) -> optim.Optimizer:
    return optim.SGD([_p(t)], lr=0.1)


def _ran(*inputs: Callable[[Maker], Any]) -> Callable[[Any, Maker], Any]:
    return lambda module, t: module.to(genesis.float64)(*[make(t) for make in inputs])


def _x(*shape: int) -> Callable[[Maker], Any]:
    return lambda t: t(*shape)


def _unit(t: Maker) -> Any:
    return t(4, low=0.1, high=0.9)


def _stepped(optimizer: Any, t: Maker) -> None:
    optimizer.step(lambda: 0.0)


def _scheduled(schedule: Any, t: Maker) -> None:
    for _ in range(3):
        schedule.optimizer.step()
        schedule.step(*([1.0] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))


def _listed(loader: Any, t: Maker) -> list[Any]:
    return list(itertools.islice(loader, 100))  # an order may be as long as somebody asks for


def _square(x: Any) -> Any:
    return (x * x).sum()


def _double(x: Any) -> Any:
    return x * 2


def _normed() -> Any:
    return utils.parametrizations.weight_norm(nn.Linear(3, 2))


def _hooked(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(utils, name)(nn.Linear(3, 2))


def _leaf(t: Maker) -> Any:
    return t(3).requires_grad_()


class _Stream(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


def _entered(mode: Any, t: Maker) -> None:
    """A mode as a context; a decorated function is left alone."""
    if hasattr(mode, "__enter__"):
        with mode:
            _double(t(3))


def _of_one(function: Any, t: Maker) -> None:
    """What a transform or a form makes is called, and differentiated."""
    y = function(_leaf(t))
    y = y[0] if isinstance(y, tuple) else y
    if isinstance(y, genesis.Tensor) and y.requires_grad:
        y.sum().backward()


def _transposed(function: Any, t: Maker) -> None:
    function(t(3))


def _positive(t: Maker) -> Any:
    x = t(3, 3)
    return x @ x.mT + genesis.eye(3, dtype=x.dtype)


def _lu_of(t: Maker) -> tuple[Any, Any]:
    return tuple(genesis.linalg.lu_factor(_positive(t)))  # type: ignore[return-value]


_SYMMETRIC: Calls = lambda t: [case(_positive(t))]  # noqa: E731
FACTORS = {
    **{
        f"linalg.{name}": _SYMMETRIC
        for name in ("cholesky", "cholesky_ex", "eig", "eigh", "eigvals", "eigvalsh", "svd")
    },
    **{f"linalg.{name}": _SYMMETRIC for name in ("ldl_factor", "ldl_factor_ex")},
    **dict.fromkeys(("cholesky", "qr", "svd"), _SYMMETRIC),
    "linalg.ldl_solve": lambda t: [case(*genesis.linalg.ldl_factor(_positive(t)), t(3, 2))],
    "linalg.lu_solve": lambda t: [case(*_lu_of(t), t(3, 2))],
    "lu_solve": lambda t: [case(t(3, 2), *_lu_of(t))],
    "lu_unpack": lambda t: [case(*_lu_of(t))],
    "fft.fftfreq": lambda t: [case(4), case(5, 0.5)],
    "fft.rfftfreq": lambda t: [case(4), case(5, 0.5)],
}
_PLAIN: Calls = lambda t: [case()]  # noqa: E731
ONE = {  # modules of one tensor
    "ReLU": _PLAIN,
    "Sigmoid": _PLAIN,
    "Tanh": _PLAIN,
    "ReLU6": _PLAIN,
    "LeakyReLU": _PLAIN,
    "ELU": _PLAIN,
    "CELU": _PLAIN,
    "SELU": _PLAIN,
    "GELU": _PLAIN,
    "SiLU": _PLAIN,
    "Mish": _PLAIN,
    "Softplus": _PLAIN,
    "Softsign": _PLAIN,
    "Hardtanh": _PLAIN,
    "Hardsigmoid": _PLAIN,
    "Hardswish": _PLAIN,
    "LogSigmoid": _PLAIN,
    "Tanhshrink": _PLAIN,
    "Threshold": lambda t: [case(0.1, 2.0)],
    "GLU": _PLAIN,
    "Softmax": lambda t: [case(1)],
    "LogSoftmax": lambda t: [case(1)],
    "Softmin": lambda t: [case(1)],
    "PReLU": lambda t: [case(), case(4, 0.1)],
    "Identity": _PLAIN,
    "Linear": lambda t: [case(4, 3), case(4, 3, False)],
    "Dropout": lambda t: [case(0.2)],
    "Flatten": _PLAIN,
    "Unflatten": lambda t: [case(1, (2, 2))],
    "LayerNorm": lambda t: [case(4), case((2, 4), 1e-3)],
    "RMSNorm": lambda t: [case(4)],
    "BatchNorm1d": lambda t: [case(4)],
    "GroupNorm": lambda t: [case(2, 4)],
    "Sequential": lambda t: [case(nn.ReLU(), nn.Tanh())],
}
TWO = {
    "MSELoss": _PLAIN,
    "L1Loss": _PLAIN,
    "SmoothL1Loss": _PLAIN,
    "HuberLoss": _PLAIN,
    "BCELoss": _PLAIN,
    "BCEWithLogitsLoss": _PLAIN,
    "KLDivLoss": _PLAIN,
    "PoissonNLLLoss": _PLAIN,
}
AFTER: dict[str, Callable[[Any, Maker], Any]] = {
    **sequence_calls.AFTER,
    **{f"nn.{name}": _ran(_x(2, 4)) for name in ONE},
    **{f"nn.{name}": _ran(_unit, _unit) for name in TWO},
    **{f"nn.{name}": _ran(_x(4, 3), lambda t: t.int(4, low=0, high=3)) for name in ("CrossEntropyLoss", "NLLLoss")},
    **spatial_calls.AFTER,
    **{f"nn.MaxUnpool{d}d": _ran(_x(2, *[1] * d), lambda t, d=d: t.int(2, *[1] * d, low=0, high=2)) for d in (1, 2, 3)},
    "nn.GaussianNLLLoss": _ran(_unit, _unit, _unit),
    "nn.TripletMarginLoss": _ran(_x(2, 3), _x(2, 3), _x(2, 3)),
    "nn.MarginRankingLoss": _ran(_unit, _unit, _unit),
    "nn.CosineSimilarity": _ran(_x(2, 3), _x(2, 3)),
    "nn.Bilinear": _ran(_x(5, 2), _x(5, 3)),
    "nn.BatchNorm2d": _ran(_x(2, 3, 2, 2)),
    "nn.Embedding": _ran(lambda t: t.int(3, low=0, high=5)),
    "nn.MultiheadAttention": _ran(_x(3, 2, 8), _x(3, 2, 8), _x(3, 2, 8)),
    "nn.ModuleList": _listed,
    "nn.ModuleDict": _listed,
    "nn.ParameterList": _listed,
    "nn.ParameterDict": _listed,
    **{f"optim.{name}": _stepped for name in _OPTIMIZERS},
    **{f"optim.{name}": _stepped for name in ("Muon", "LBFGS")},
    **{f"optim.lr_scheduler.{name}": _scheduled for name in lr_scheduler.__all__ if name != "LRScheduler"},
    "optim.swa_utils.SWALR": _scheduled,
    **{f"func.{name}": _of_one for name in ("grad", "grad_and_value", "value_and_grad", "jacrev", "jacfwd", "hessian")},
    "func.vmap": lambda mapped, t: mapped(t(2, 3)),
    "func.linear_transpose": _transposed,
    "func.vjp": lambda pair, t: pair[1](t()),
    "func.linearize": lambda pair, t: pair[1](t(3)),
    "custom_jvp": lambda f, t: (f.defjvp(lambda primals, tangents: (f(*primals), _double(tangents[0]))), _of_one(f, t)),
    "custom_vjp": lambda f, t: (f.defvjp(lambda x: (f(x), None), lambda kept, g: (_double(g),)), _of_one(f, t)),
    **{
        name: _of_one
        for name in (
            "custom_gradient",
            "autograd.custom_function",
            "autograd.defvjp",
            "autograd.straight_through",
            "autograd.grad_pass_through",
            "autograd.from_numpy",
            "autograd.from_scalar",
        )
    },
    **{
        name: _entered
        for name in (
            "enable_grad",
            "no_grad",
            "inference_mode",
            "GradientTape",
            "autograd.detect_anomaly",
            "autograd.profile",
            "autograd.strong_zero",
        )
    },
    "data.ChainDataset": _listed,
    "data.StackDataset": _listed,
    "data.ConcatDataset": _listed,
    "data.TensorDataset": _listed,
    "data.SubsetRandomSampler": _listed,
    **{
        f"data.{name}": _listed
        for name in ("DataLoader", "SequentialSampler", "RandomSampler", "WeightedRandomSampler", "BatchSampler")
    },
}
_params: Calls = lambda t: [case([_p(t)])]  # noqa: E731
CALLS: dict[str, Calls] = {
    **sequence_calls.CALLS,
    **tensor_calls.CALLS,
    **FACTORS,
    **{f"nn.{name}": calls for name, calls in {**ONE, **TWO}.items()},
    **{
        f"nn.{name}": _PLAIN
        for name in (
            "CrossEntropyLoss",
            "NLLLoss",
            "GaussianNLLLoss",
            "TripletMarginLoss",
            "MarginRankingLoss",
            "CosineSimilarity",
        )
    },
    **spatial_calls.CALLS,
    **{f"nn.MaxUnpool{d}d": (lambda t: [case(2)]) for d in (1, 2, 3)},
    "nn.UninitializedParameter": _PLAIN,
    "nn.UninitializedBuffer": _PLAIN,
    "nn.Bilinear": lambda t: [case(2, 3, 4)],
    "nn.BatchNorm2d": lambda t: [case(3)],
    "nn.Embedding": lambda t: [case(5, 3), case(5, 3, 1)],
    "nn.MultiheadAttention": lambda t: [case(8, 2)],
    "nn.Parameter": lambda t: [case(t(2))],
    "nn.Buffer": lambda t: [case(t(2))],
    "nn.ModuleList": lambda t: [case([nn.ReLU()])],
    "nn.ModuleDict": lambda t: [case({"a": nn.ReLU()})],
    "nn.ParameterList": lambda t: [case([t(2)])],
    "nn.ParameterDict": lambda t: [case({"a": t(2)})],
    "nn.summary": lambda t: [case(nn.Linear(4, 3), genesis.zeros(2, 4))],
    **{
        f"nn.init.{name}": (lambda t: [case(t(3, 4))])
        for name in (
            "uniform_",
            "normal_",
            "trunc_normal_",
            "ones_",
            "zeros_",
            "eye_",
            "xavier_uniform_",
            "xavier_normal_",
            "kaiming_uniform_",
            "kaiming_normal_",
            "orthogonal_",
            "uniform",
            "normal",
            "eye",
            "xavier_uniform",
            "xavier_normal",
            "kaiming_uniform",
            "kaiming_normal",
            "orthogonal",
        )
    },
    **{f"nn.init.{name}": (lambda t: [case(t(4, 3, 3), 2)]) for name in ("dirac_", "dirac")},
    **{f"nn.init.{name}": (lambda t: [case(t(4, 3), 0.5)]) for name in ("sparse_", "sparse", "constant")},
    "nn.init.constant_": lambda t: [case(t(3, 4), 0.5)],
    "nn.init.calculate_gain": lambda t: [case("leaky_relu", 0.1)],
    "nn.utils.clip_grad_norm_": lambda t: [case([_p(t)], 1.0)],
    "nn.utils.clip_grad_value_": lambda t: [case([_p(t)], 1.0)],
    "nn.utils.get_total_norm": lambda t: [case([t(3), t(2)])],
    "nn.utils.parameters_to_vector": lambda t: [case([t(3), t(2)])],
    "nn.utils.vector_to_parameters": lambda t: [case(t(5), [t(3), t(2)])],
    "nn.DataParallel": lambda t: [case(nn.Linear(3, 2))],
    "nn.parallel.data_parallel": lambda t: [case(nn.Linear(3, 2), genesis.ones(3))],
    "nn.utils.clip_grad_norm": lambda t: [case([_p(t)], 1.0)],
    "nn.utils.clip_grads_with_norm_": lambda t: [case([_p(t)], 1.0, t.positive())],
    "nn.utils.skip_init": lambda t: [case(nn.Linear, 3, 2)],
    **{
        f"nn.utils.{name}": (lambda t: [case(nn.Linear(3, 2))])
        for name in (
            "weight_norm",
            "spectral_norm",
            "parametrizations.weight_norm",
            "parametrizations.spectral_norm",
            "parametrizations.orthogonal",
        )
    },
    "nn.utils.remove_weight_norm": lambda t: [case(_hooked("weight_norm"))],
    "nn.utils.remove_spectral_norm": lambda t: [case(_hooked("spectral_norm"))],
    **{
        f"nn.utils.{name}": (lambda t: [case(nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval())])
        for name in ("fuse_linear_bn_eval", "fuse_conv_bn_eval")
    },
    **{
        f"nn.utils.{name}": (lambda t: [case(t(3, 2), t(3), t(3), t.positive(3), 1e-5, t(3), t(3))])
        for name in ("fuse_linear_bn_weights", "fuse_conv_bn_weights")
    },
    "nn.utils.parametrize.ParametrizationList": lambda t: [case([nn.Identity()], t(3))],
    "nn.utils.parametrize.cached": _PLAIN,
    "nn.utils.parametrize.register_parametrization": lambda t: [case(nn.Linear(3, 2), "weight", nn.Identity())],
    **{
        f"nn.utils.parametrize.{name}": (lambda t: [case(_normed(), "weight")])
        for name in ("is_parametrized", "remove_parametrizations")
    },
    "nn.utils.parametrize.type_before_parametrizations": lambda t: [case(_normed())],
    "nn.utils.parametrize.transfer_parametrizations_and_params": lambda t: [case(_normed(), nn.Linear(3, 2))],
    **{
        f"nn.utils.prune.{name}": (lambda t: [case(nn.Linear(3, 2), "weight", 0.5)])
        for name in ("random_unstructured", "l1_unstructured")
    },
    "nn.utils.prune.identity": lambda t: [case(nn.Linear(3, 2), "weight")],
    "nn.utils.prune.random_structured": lambda t: [case(nn.Linear(3, 2), "weight", 0.5, 0)],
    "nn.utils.prune.ln_structured": lambda t: [case(nn.Linear(3, 2), "weight", 0.5, 2, 0)],
    "nn.utils.prune.custom_from_mask": lambda t: [case(nn.Linear(3, 2), "weight", genesis.ones(2, 3))],
    "nn.utils.prune.global_unstructured": lambda t: [
        case([(nn.Linear(3, 2), "weight")], utils.prune.L1Unstructured, amount=0.5)
    ],
    "nn.utils.prune.remove": lambda t: [case(utils.prune.identity(nn.Linear(3, 2), "weight"), "weight")],
    "nn.utils.prune.is_pruned": lambda t: [case(nn.Linear(3, 2))],
    **{f"nn.utils.prune.{name}": _PLAIN for name in ("Identity", "PruningContainer")},
    **{f"nn.utils.prune.{name}": (lambda t: [case(0.5)]) for name in ("RandomUnstructured", "L1Unstructured")},
    "nn.utils.prune.RandomStructured": lambda t: [case(0.5, 0)],
    "nn.utils.prune.LnStructured": lambda t: [case(0.5, 2, 0)],
    "nn.utils.prune.CustomFromMask": lambda t: [case(t(2, 3))],
    **{f"optim.{name}": (lambda t: [case([_p(t)], 0.1)]) for name in (*_OPTIMIZERS, "LBFGS")},
    "optim.Muon": lambda t: [case([_p(t, 3, 2)], 0.1)],
    "optim.lr_scheduler.StepLR": lambda t: [case(_sgd(t), 2)],
    "optim.lr_scheduler.MultiStepLR": lambda t: [case(_sgd(t), [1, 2])],
    "optim.lr_scheduler.ExponentialLR": lambda t: [case(_sgd(t), 0.9)],
    "optim.lr_scheduler.LinearLR": lambda t: [case(_sgd(t))],
    "optim.lr_scheduler.CosineAnnealingLR": lambda t: [case(_sgd(t), 4)],
    "optim.lr_scheduler.LambdaLR": lambda t: [case(_sgd(t), lambda step: 0.5)],
    "optim.lr_scheduler.MultiplicativeLR": lambda t: [case(_sgd(t), lambda step: 0.5)],
    **{
        f"optim.lr_scheduler.{name}": (lambda t: [case(_sgd(t))])
        for name in ("ConstantLR", "PolynomialLR", "ReduceLROnPlateau")
    },
    "optim.lr_scheduler.CosineAnnealingWarmRestarts": lambda t: [case(_sgd(t), 4)],
    "optim.lr_scheduler.CyclicLR": lambda t: [case(_sgd(t), 0.1, 0.2, 3)],
    "optim.lr_scheduler.OneCycleLR": lambda t: [case(_sgd(t), 0.1, 10)],
    "optim.swa_utils.SWALR": lambda t: [case(_sgd(t), 0.1)],
    "optim.swa_utils.AveragedModel": lambda t: [case(nn.Linear(2, 2))],
    "optim.swa_utils.update_bn": lambda t: [case([t(3, 2).float()], nn.BatchNorm1d(2))],
    "optim.swa_utils.get_ema_avg_fn": lambda t: [case(0.5)],
    "optim.swa_utils.get_ema_multi_avg_fn": lambda t: [case(0.5)],
    "optim.swa_utils.get_swa_avg_fn": _PLAIN,
    "optim.swa_utils.get_swa_multi_avg_fn": _PLAIN,
    "optim.lr_scheduler.ChainedScheduler": lambda t: [case([lr_scheduler.ExponentialLR(_sgd(t), 0.9)])],
    "optim.lr_scheduler.SequentialLR": lambda t: [
        case((s := lr_scheduler.ExponentialLR(_sgd(t), 0.9)).optimizer, [s], [])
    ],
    "data.TensorDataset": lambda t: [case(t(4, 2), t(4))],
    "data.DataLoader": lambda t: [case(data.TensorDataset(t(4, 2)), 2)],
    "data.SequentialSampler": lambda t: [case([1, 2, 3])],
    "data.RandomSampler": lambda t: [case([1, 2, 3])],
    "data.WeightedRandomSampler": lambda t: [case([0.5, 1.0], 3)],
    "data.BatchSampler": lambda t: [case([1, 2, 3], 2, False)],
    "data.Subset": lambda t: [case([1, 2, 3], [0, 2])],
    "data.ConcatDataset": lambda t: [case([[1, 2], [3]])],
    "data.random_split": lambda t: [case([1, 2, 3], [1, 2])],
    "data.default_collate": lambda t: [case([t(2), t(2)])],
    "amp.GradScaler": _PLAIN,
    "amp.autocast": lambda t: [case("cpu")],
    "autograd.grad": lambda t: [case(_square(x := t(3).requires_grad_()), [x])],
    "autograd.backward": lambda t: [case([_square(t(3).requires_grad_())])],
    **{
        f"{space}.{name}": (lambda t: [case(_square, t(3))])
        for space, names in {
            "autograd": ("jacobian", "hessian"),
            "autograd.functional": ("jacobian", "hessian"),
        }.items()
        for name in names
    },
    **{
        f"func.{name}": (lambda t: [case(_square)])
        for name in ("grad", "grad_and_value", "vmap", "jacrev", "jacfwd", "hessian")
    },
    "func.vjp": lambda t: [case(_square, t(3))],
    "func.jvp": lambda t: [case(_square, (t(3),), (t(3),))],
    **{name: (lambda t: [case(2, 3)]) for name in ("zeros", "ones", "empty", "rand", "randn")},
    **{
        name: (lambda t: [case(t(2, 3))])
        for name in (
            "zeros_like",
            "ones_like",
            "empty_like",
            "rand_like",
            "randn_like",
            "as_tensor",
            "asarray",
            "tensor",
            "is_tensor",
            "numel",
            "is_complex",
            "is_floating_point",
            "atleast_1d",
            "fliplr",
            "flipud",
            "std_mean",
            "var_mean",
            "stop_gradient",
        )
    },
    **{name: (lambda t: [case([t(2, 3), t(2, 3)])]) for name in ("hstack", "vstack", "dstack", "column_stack")},
    **{name: (lambda t: [case(t(2, 3), t(2, 3))]) for name in ("allclose", "equal", "complex", "polar", "block_diag")},
    "arange": lambda t: [case(5), case(1, 7, 2)],
    "linspace": lambda t: [case(0.0, 1.0, 5)],
    "logspace": lambda t: [case(0.0, 1.0, 5)],
    "eye": lambda t: [case(3), case(2, 3)],
    "full": lambda t: [case((2, 3), 0.5)],
    "full_like": lambda t: [case(t(2), 0.5)],
    "randperm": lambda t: [case(5)],
    "randint": lambda t: [case(0, 5, (2, 3))],
    "randint_like": lambda t: [case(t(2), 0, 5)],
    "scalar_tensor": lambda t: [case(2.0)],
    "normal": lambda t: [case(t(3), 1.0)],
    "bernoulli": lambda t: [case(t(3, low=0, high=1))],
    "multinomial": lambda t: [case(t.positive(4), 2)],
    "meshgrid": lambda t: [case(t(2), t(3))],
    "broadcast_shapes": lambda t: [case((2, 1), (3,))],
    "broadcast_tensors": lambda t: [case(t(2, 1), t(3))],
    "cartesian_prod": lambda t: [case(t(2), t(3))],
    "where": lambda t: [case(t.bool(3), t(3), t(3))],
    "tril_indices": lambda t: [case(3, 3)],
    "triu_indices": lambda t: [case(3, 3)],
    "manual_seed": lambda t: [case(3)],
    "can_cast": lambda t: [case(genesis.int64, genesis.float32)],
    "promote_types": lambda t: [case(genesis.int64, genesis.float32)],
    "result_type": lambda t: [case(t(2), 1)],
    "finfo": lambda t: [case(genesis.float32)],
    "iinfo": lambda t: [case(genesis.int64)],
    "device": lambda t: [case("cpu")],
    "masked_scatter": lambda t: [case(t(3), t.bool(3), t(3))],
    **{
        f"nn.functional.{name}": (lambda t: [case(t(2, 3))])
        for name in ("relu", "relu_", "celu_", "elu_", "hardtanh_", "leaky_relu_", "selu_", "rrelu_")
    },
    "nn.functional.threshold_": lambda t: [case(t(2, 3), 0.1, 2.0)],
    "func.linearize": lambda t: [case(_square, t(3))],
    "func.value_and_grad": lambda t: [case(_square)],
    "func.hvp": lambda t: [case(_square, (t(3),), (t(3),))],
    "func.linear_transpose": lambda t: [case(_double, t(3))],
    "func.functional_call": lambda t: [
        case(nn.ReLU(), {}, (t(3),)),
        case(nn.Linear(3, 2).double(), {"bias": t(2)}, t(2, 3)),
    ],
    "func.stack_module_state": lambda t: [case([nn.Linear(2, 3), nn.Linear(2, 3)])],
    # a program's settings, put back by `settings_kept`
    **{
        name: _PLAIN
        for name in (
            "get_default_device",
            "get_default_dtype",
            "get_num_interop_threads",
            "get_num_threads",
            "get_rng_state",
            "initial_seed",
            "is_grad_enabled",
            "is_inference_mode_enabled",
            "seed",
            "amp.get_autocast_dtype",
            "amp.is_autocast_enabled",
            "autograd.is_anomaly_enabled",
            "data.get_worker_info",
            "nn.allow_loss_broadcast",
        )
    },
    "set_default_device": lambda t: [case("cpu")],
    "set_default_dtype": lambda t: [case(genesis.float32)],
    "set_num_threads": lambda t: [case(1)],
    "set_num_interop_threads": lambda t: [case(1)],
    "set_printoptions": lambda t: [case(4, 1000), case(profile="full")],
    "set_grad_enabled": lambda t: [case(True)],
    "set_rng_state": lambda t: [case(genesis.get_rng_state())],
    "autograd.set_detect_anomaly": lambda t: [case(False)],
    **{
        name: _PLAIN
        for name in (
            "enable_grad",
            "no_grad",
            "inference_mode",
            "GradientTape",
            "autograd.detect_anomaly",
            "autograd.profile",
            "autograd.strong_zero",
        )
    },
    # values
    "Generator": _PLAIN,
    "Size": lambda t: [case((2, 3))],
    "Tensor": lambda t: [case([1.0, 2.0]), case(2, 3)],
    "atleast_2d": lambda t: [case(t(3))],
    "atleast_3d": lambda t: [case(t(3))],
    "from_dlpack": lambda t: [case(np.ones(3))],
    "from_numpy": lambda t: [case(np.ones(3))],
    "frombuffer": lambda t: [case(bytearray(8), dtype=genesis.float32)],
    "index_put": lambda t: [case(t(3), (t.int(2, low=0, high=3),), t(2))],
    "data.ChainDataset": lambda t: [case([_Stream()])],
    "data.StackDataset": lambda t: [case([1, 2], [3, 4])],
    "data.SubsetRandomSampler": lambda t: [case([2, 0])],
    "data.default_convert": lambda t: [case({"x": np.ones(2)})],
    # functions of functions
    "custom_gradient": lambda t: [case(lambda x: (x * 2, lambda g: g * 2))],
    "custom_jvp": lambda t: [case(_double)],
    "custom_vjp": lambda t: [case(_double)],
    "autograd.custom_function": lambda t: [case(_double)],
    "autograd.defvjp": lambda t: [case(_double, lambda ans, x: lambda g: g * 2)],
    "autograd.straight_through": lambda t: [case(genesis.round)],
    "autograd.grad_pass_through": lambda t: [case(genesis.round)],
    "autograd.once_differentiable": lambda t: [case(lambda ctx, g: g)],
    "amp.custom_fwd": lambda t: [case(lambda ctx, x: x)],
    "amp.custom_bwd": lambda t: [case(lambda ctx, g: g)],
    "autograd.from_numpy": lambda t: [case(np.sin, np.cos)],
    "autograd.from_scalar": lambda t: [case(math.sin, math.cos)],
    **{f"autograd.{name}": (lambda t: [case(_leaf(t), 0.5)]) for name in ("scale_gradient", "reverse_gradient")},
    "autograd.clip_gradient": lambda t: [case(_leaf(t), -1.0, 1.0)],
    **{
        f"autograd.{name}": (lambda t: [case(_square, _leaf(t))])
        for name in ("gradcheck", "gradgradcheck", "numerical_gradient_check", "verify")
    },
    "autograd.explain": lambda t: [case(x := _leaf(t), _square(x))],
    "autograd.record": lambda t: [case(_square(_leaf(t)))],
    "autograd.diff": lambda t: [case(autograd.record(_square(_leaf(t))), autograd.record(_square(_leaf(t))))],
}
UNCALLED = {  # public, and not to be called by their users
    **tensor_calls.UNCALLED,
    **dict.fromkeys(("Context", "autograd.Context", "autograd.FunctionCtx"), "what a Function is given"),
    **dict.fromkeys(
        ("nn.functional.upsample", "nn.functional.upsample_bilinear", "nn.functional.upsample_nearest"),
        "old: they warn",
    ),
    "linalg.LinAlgError": "an error",
    **dict.fromkeys(("DType", "dtype", "NDArray"), "classes of values that exist, for isinstance"),
    **dict.fromkeys(
        (
            "Function",
            "autograd.Function",
            "nn.Module",
            "nn.LazyModuleMixin",
            "nn.utils.prune.BasePruningMethod",
            "nn.RNNCellBase",
            "optim.Optimizer",
            "optim.lr_scheduler.LRScheduler",
            "data.Dataset",
            "data.IterableDataset",
            "data.Sampler",
        ),
        "base classes",
    ),
    **dict.fromkeys(
        ("autograd.AddFunction", "autograd.MulFunction", "autograd.MatMulFunction", "autograd.ReluFunction"),
        "Functions, called by apply",
    ),
    **dict.fromkeys(
        (
            "nn.Summary",
            "autograd.Report",
            "autograd.BackwardRecord",
            "autograd.Explanation",
            "data.WorkerInfo",
            "autograd.ForeignFunction",
        ),
        "results of other calls",
    ),
    **dict.fromkeys(("nn.BroadcastWarning", "autograd.GradcheckError", "autograd.VerifyError"), "warnings and errors"),
    "autograd.from_ctypes": "takes a function of a C library",
    "optim.SparseAdam": "refuses: there are no sparse gradients",
}


@contextmanager
def settings_kept() -> Iterator[None]:
    """Puts back what a call sets for the thread or the process."""
    kind, place, threads, interop, state = (
        genesis.get_default_dtype(),
        genesis.get_default_device(),
        genesis.get_num_threads(),
        genesis.get_num_interop_threads(),
        genesis.get_rng_state(),
    )
    try:
        yield
    finally:
        genesis.set_grad_enabled(True)
        genesis.autograd.set_detect_anomaly(False)
        nn.allow_loss_broadcast(False)
        genesis.set_default_dtype(kind)
        genesis.set_default_device(place)
        genesis.set_num_threads(threads)
        genesis.set_num_interop_threads(interop)
        genesis.set_printoptions(profile="default")
        genesis.set_rng_state(state)


def _of_op(op: Op) -> Calls:
    return lambda t: samples_of(op, t)


def _names(space: Any) -> list[str]:
    listed = getattr(space, "__all__", None)
    found = (
        list(listed)
        if listed is not None
        else [n for n, v in vars(space).items() if getattr(v, "__module__", None) == space.__name__]
    )
    return sorted(n for n in set(found) if not n.startswith("_") and callable(getattr(space, n, None)))


def public() -> Iterator[tuple[str, Any]]:
    """The paths and objects of all public callables, aliases included."""
    for prefix, space in SPACES.items():
        for name in _names(space):
            yield (f"{prefix}.{name}" if prefix else name), getattr(space, name)


def targets() -> list[Target]:
    """What the fuzzer calls: each public callable that has valid calls, once."""
    found: dict[int, Target] = {}
    for path, call in public():
        op = getattr(call, "op", None)
        calls = CALLS.get(path) or (_of_op(op) if isinstance(op, Op) and samples_of(op, Maker()) else None)
        if calls is not None:
            found.setdefault(id(call), Target(path, call, calls, AFTER.get(path)))
    return list(found.values())
