"""Layers that have no table of their own, losses, containers, `nn.init`, `nn.utils`."""

from __future__ import annotations

import warnings
from typing import Any

import genesis
from genesis import nn
from genesis.core.call.op import case
from genesis.distributed.groups import KEYED
from genesis.distributed.nn.ops import ALONE
from genesis.nn import utils
from genesis.testing.calls.shared import After, Calls, listed, parameter, plain, ran, shaped, unit


def _normed() -> Any:
    return utils.parametrizations.weight_norm(nn.Linear(3, 2))


def _hooked(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(utils, name)(nn.Linear(3, 2))


ONE = {  # modules of one tensor
    **dict.fromkeys(
        (
            "ReLU",
            "Sigmoid",
            "Tanh",
            "ReLU6",
            "LeakyReLU",
            "ELU",
            "CELU",
            "SELU",
            "GELU",
            "SiLU",
            "Mish",
            "Softplus",
            "Softsign",
            "Hardtanh",
            "Hardsigmoid",
            "Hardswish",
            "LogSigmoid",
            "Tanhshrink",
            "GLU",
            "Identity",
            "Flatten",
        ),
        plain,
    ),
    "Threshold": lambda t: [case(0.1, 2.0)],
    "Softmax": lambda t: [case(1)],
    "LogSoftmax": lambda t: [case(1)],
    "Softmin": lambda t: [case(1)],
    "PReLU": lambda t: [case(), case(4, 0.1)],
    "Linear": lambda t: [case(4, 3), case(4, 3, False)],
    "Dropout": lambda t: [case(0.2)],
    "Unflatten": lambda t: [case(1, (2, 2))],
    "LayerNorm": lambda t: [case(4), case((2, 4), 1e-3)],
    "RMSNorm": lambda t: [case(4)],
    "BatchNorm1d": lambda t: [case(4)],
    "GroupNorm": lambda t: [case(2, 4)],
    "Sequential": lambda t: [case(nn.ReLU(), nn.Tanh())],
}
_LOSSES = (
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "HuberLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "PoissonNLLLoss",
)
TWO = dict.fromkeys(_LOSSES, plain)

CALLS: dict[str, Calls] = {
    **{f"nn.{name}": calls for name, calls in {**ONE, **TWO}.items()},
    **{
        f"nn.{name}": plain
        for name in (
            "CrossEntropyLoss",
            "NLLLoss",
            "GaussianNLLLoss",
            "TripletMarginLoss",
            "MarginRankingLoss",
            "CosineSimilarity",
        )
    },
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
    "nn.utils.clip_grad_norm_": lambda t: [case([parameter(t)], 1.0)],
    "nn.utils.clip_grad_value_": lambda t: [case([parameter(t)], 1.0)],
    "nn.utils.get_total_norm": lambda t: [case([t(3), t(2)])],
    "nn.utils.parameters_to_vector": lambda t: [case([t(3), t(2)])],
    "nn.utils.vector_to_parameters": lambda t: [case(t(5), [t(3), t(2)])],
    "nn.DataParallel": lambda t: [case(nn.Linear(3, 2))],
    "nn.parallel.DistributedDataParallel": lambda t: [case(nn.Linear(3, 2), process_group=KEYED[ALONE])],
    "nn.parallel.data_parallel": lambda t: [case(nn.Linear(3, 2), genesis.ones(3))],
    "nn.parallel.scatter": lambda t: [case(genesis.ones(4, 3), ["cpu", "cpu"])],
    "nn.parallel.gather": lambda t: [case([genesis.ones(2, 3), genesis.ones(1, 3)], "cpu")],
    "nn.utils.clip_grad_norm": lambda t: [case([parameter(t)], 1.0)],
    "nn.utils.clip_grads_with_norm_": lambda t: [case([parameter(t)], 1.0, t.positive())],
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
    "nn.utils.parametrize.cached": plain,
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
    **{f"nn.utils.prune.{name}": plain for name in ("Identity", "PruningContainer")},
    **{f"nn.utils.prune.{name}": (lambda t: [case(0.5)]) for name in ("RandomUnstructured", "L1Unstructured")},
    "nn.utils.prune.RandomStructured": lambda t: [case(0.5, 0)],
    "nn.utils.prune.LnStructured": lambda t: [case(0.5, 2, 0)],
    "nn.utils.prune.CustomFromMask": lambda t: [case(t(2, 3))],
    **{
        f"nn.functional.{name}": (lambda t: [case(t(2, 3))])
        for name in ("relu", "relu_", "celu_", "elu_", "hardtanh_", "leaky_relu_", "selu_", "rrelu_")
    },
    "nn.functional.threshold_": lambda t: [case(t(2, 3), 0.1, 2.0)],
}
AFTER: dict[str, After] = {
    **{f"nn.{name}": ran(shaped(2, 4)) for name in ONE},
    **{f"nn.{name}": ran(unit, unit) for name in TWO},
    **{f"nn.{name}": ran(shaped(4, 3), lambda t: t.int(4, low=0, high=3)) for name in ("CrossEntropyLoss", "NLLLoss")},
    "nn.GaussianNLLLoss": ran(unit, unit, unit),
    "nn.TripletMarginLoss": ran(shaped(2, 3), shaped(2, 3), shaped(2, 3)),
    "nn.MarginRankingLoss": ran(unit, unit, unit),
    "nn.CosineSimilarity": ran(shaped(2, 3), shaped(2, 3)),
    "nn.Bilinear": ran(shaped(5, 2), shaped(5, 3)),
    "nn.BatchNorm2d": ran(shaped(2, 3, 2, 2)),
    "nn.Embedding": ran(lambda t: t.int(3, low=0, high=5)),
    "nn.MultiheadAttention": ran(shaped(3, 2, 8), shaped(3, 2, 8), shaped(3, 2, 8)),
    "nn.ModuleList": listed,
    "nn.ModuleDict": listed,
    "nn.ParameterList": listed,
    "nn.ParameterDict": listed,
}
