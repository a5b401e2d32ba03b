"""Functions of tensors that are no ops, or whose samples are not what their users give; settings."""

from __future__ import annotations

from typing import Any

import numpy as np

import genesis
from genesis.core.call.op import case
from genesis.ops.fourier.windows import WINDOWS
from genesis.testing.calls.shared import Calls, plain
from genesis.testing.make import Maker


def _positive(t: Maker) -> Any:
    x = t(3, 3)
    return x @ x.mT + genesis.eye(3, dtype=x.dtype)


def _lu_of(t: Maker) -> tuple[Any, Any]:
    return tuple(genesis.linalg.lu_factor(_positive(t)))  # type: ignore[return-value]


_SYMMETRIC: Calls = lambda t: [case(_positive(t))]  # noqa: E731
_window: Calls = lambda t: [case(5), case(4, False)]  # noqa: E731
_symmetric: Calls = lambda t: [case(5), case(4, sym=False)]  # noqa: E731
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
    **dict.fromkeys([f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")], _window),
    **dict.fromkeys([f"signal.windows.{name}" for name in WINDOWS if name != "general_cosine"], _symmetric),
    **dict.fromkeys(("masked.softmax", "masked.softmin"), lambda t: [case(t(2, 3), 1), case(t(3), 0, mask=t(3) > 0)]),
    "signal.windows.general_cosine": lambda t: [case(5, a=[0.5, 0.3]), case(0, a=[1.0], sym=False)],
}

_ONE: Calls = lambda t: [case(t(2, 3))]  # noqa: E731

CALLS: dict[str, Calls] = {
    **FACTORS,
    **dict.fromkeys(("is_conj", "is_neg", "is_signed", "get_device", "resolve_conj", "resolve_neg"), _ONE),
    "is_nonzero": lambda t: [case(t(1))],
    "is_same_size": lambda t: [case(t(2), t(3))],
    "is_storage": lambda t: [case(t(2))],
    "empty_strided": lambda t: [case((2, 3), (1, 2))],
    "empty_permuted": lambda t: [case((2, 3), (1, 0))],
    "range": lambda t: [case(1, 3), case(0, 1, 0.5)],
    "rsub": lambda t: [case(t(2), 3), case(t(2), t(2), alpha=2)],
    "chain_matmul": lambda t: [case(t(2, 3), t(3, 4), t(4, 2))],
    "combinations": lambda t: [case(t(3)), case(t(3), 2, True)],
    "gradient": lambda t: [case(t(4)), case(t(3, 4), spacing=2.0, dim=1, edge_order=2)],
    "histogram": lambda t: [case(t(5), 3), case(t(5), 3, range=(-1.0, 1.0), density=True)],
    "histogramdd": lambda t: [case(t(5, 2), [2, 3]), case(t(5, 2), 2)],
    "nonzero_static": lambda t: [case(t(2, 3), size=4)],
    "unravel_index": lambda t: [case(t.int(3, low=0, high=6), (2, 3))],
    "hash_tensor": lambda t: [case(t(2, 3)), case(t.int(2, 3), 1, keepdim=True)],
    "sparse_coo_tensor": lambda t: [case([[0, 1], [1, 0]], [3.0, 4.0], (2, 2))],
    "sparse_csr_tensor": lambda t: [case([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2))],
    "sparse_csc_tensor": lambda t: [case([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2))],
    "sparse_bsr_tensor": lambda t: [case([0, 1, 2], [1, 0], [[[3.0]], [[4.0]]], (2, 2))],
    "sparse_bsc_tensor": lambda t: [case([0, 1, 2], [1, 0], [[[3.0]], [[4.0]]], (2, 2))],
    "sparse_compressed_tensor": lambda t: [case([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2), layout=genesis.sparse_csr)],
    "sparse.mm": lambda t: [case(genesis.eye(2).to_sparse_csr(), t(2, 3).float(), "mean")],
    "sparse.addmm": lambda t: [case(t(2, 3).float(), genesis.eye(2).to_sparse_csr(), t(2, 3).float())],
    "sparse.sampled_addmm": lambda t: [case(genesis.eye(2).to_sparse_csr(), t(2, 3).float(), t(3, 2).float())],
    "sparse.sum": lambda t: [case(genesis.eye(2).to_sparse(), 0)],
    "sparse.softmax": lambda t: [case(genesis.eye(2).to_sparse(), 1)],
    "sparse.log_softmax": lambda t: [case(genesis.eye(2).to_sparse(), 1)],
    "sparse.spdiags": lambda t: [case(t(2, 3), genesis.tensor([0, 1]), (3, 3))],
    "spmm": lambda t: [case(genesis.eye(2).to_sparse(), t(2, 3).float())],
    "istft": lambda t: [case(genesis.complex(t(3, 4), t(3, 4)), 4)],
    "view_as_real": lambda t: [case(genesis.complex(t(2), t(2)))],
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
    "poisson": lambda t: [case(t.positive(4))],
    "binomial": lambda t: [case(t.positive(4), t(4, low=0, high=1))],
    "svd_lowrank": lambda t: [case(t(4, 3), 2)],
    "pca_lowrank": lambda t: [case(t(4, 3), 2)],
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
    # a program's settings, put back by `settings_kept`
    **{
        name: plain
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
    # values
    "Generator": plain,
    "Size": lambda t: [case((2, 3))],
    "Tensor": lambda t: [case([1.0, 2.0]), case(2, 3)],
    "atleast_2d": lambda t: [case(t(3))],
    "atleast_3d": lambda t: [case(t(3))],
    "from_dlpack": lambda t: [case(np.ones(3))],
    "from_numpy": lambda t: [case(np.ones(3))],
    "frombuffer": lambda t: [case(bytearray(8), dtype=genesis.float32)],
    "index_put": lambda t: [case(t(3), (t.int(2, low=0, high=3),), t(2))],
}
