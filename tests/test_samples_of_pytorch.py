"""PyTorch's own samples of ops, modules and optimizers (`benchmarks/parity.py`): what agrees with PyTorch goes on to.

`KNOWN` and `OTHERWISE` have what does not, each with its reason. They may become shorter, never longer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

ABSENT = "it is not built"
STEP = "a step inside of the function of that name, not built"
SPARSE = "of sparse tensors there are matrices in coordinates, a class of its own"
MASKED = "masked tensors are left out"
KNOWN = {
    **dict.fromkeys(
        [
            *["svd_lowrank", "pca_lowrank", "stft", "hash_tensor", "_segment_reduce.lengths"],
            *["_segment_reduce.offsets", "fft.hfft2", "fft.hfftn", "fft.ihfft2", "fft.ihfftn"],
            *["_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "_chunk_cat", "linalg.lstsq (out=)"],
            *[
                f"signal.windows.{name}"
                for name in [
                    "hamming",
                    "hann",
                    "bartlett",
                    "blackman",
                    "cosine",
                    "exponential",
                    "gaussian",
                    "kaiser",
                    "general_cosine",
                    "general_hamming",
                    "nuttall",
                ]
            ],
        ],
        ABSENT,
    ),
    **dict.fromkeys(
        [
            *["native_group_norm", "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit"],
            *["max_pool2d_with_indices_backward", "grid_sampler_2d", "grid_sampler_3d"],
        ],
        STEP,
    ),
    **dict.fromkeys(["sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse", "to_sparse (method)"], SPARSE),
    **dict.fromkeys(
        [
            f"masked.{name}"
            for name in [
                "sum",
                "prod",
                "cumsum",
                "cumprod",
                "amax",
                "amin",
                "argmax",
                "argmin",
                "mean",
                "median",
                "norm",
                "var",
                "std",
                "softmax",
                "log_softmax",
                "softmin",
                "normalize",
                "logaddexp",
                "logsumexp",
            ]
        ],
        MASKED,
    ),
    **dict.fromkeys(["chalf", "chalf (method)"], "complex numbers of 16 bits are no dtype here"),
    "as_strided_scatter": "PyTorch gives what was replaced a gradient, too",
    "as_strided.partial_views": "a view of a view that NumPy made has no storage to count its offset in",
    "linalg.matrix_power": "the power 0 is constant: it does not require grad",
    "linalg.householder_product": "of no columns the result is constant",
    "logcumsumexp": "in float32 PyTorch's gradient loses digits: errors of 9e-3, here of 7e-7",
}
FLOAT32 = "PyTorch rounds steps, or a learning rate that is a float32 tensor, to float32 also for float64 parameters"
OTHERWISE = {
    "nn.CTCLoss": "the gradient is that of log_probs as they are",
    "ASGD": FLOAT32,
    "Adam": FLOAT32,
    "AdamW": FLOAT32,
    "Muon": FLOAT32,
    "LBFGS": "its step is a number where the learning rate is a tensor",
}


@pytest.fixture(scope="module")
def parity():
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    try:
        import parity
        import parity_modules

        yield parity, parity_modules
    finally:
        sys.path.pop(0)


def check(parity, rows, known):
    """Rows that do not agree are known ones, and most do."""
    unknown = {name: row for name, row in rows.items() if row.agreed < row.calls and name not in known}
    assert not unknown, "\n".join(parity.table(unknown, False))


def test_ops(parity):
    rows = parity[0].compared("", ("float32",), 2)
    check(parity[0], rows, KNOWN)
    assert sum(row.agreed for row in rows.values()) >= 0.97 * sum(row.calls for row in rows.values()) > 2000


def test_functions_of_networks_in_every_dtype(parity):
    rows = parity[0].compared("nn.functional", parity[0].DTYPES, 4)
    check(parity[0], rows, {**KNOWN, "nn.functional.grid_sample": "PyTorch computes its gradient in bfloat16"})
    assert sum(row.calls for row in rows.values()) > 1000


@pytest.mark.parametrize(("what", "calls"), [("modules", 2000), ("optimizers", 400)])
def test_modules_and_optimizers(parity, what, calls):
    rows = getattr(parity[1], what)("", count=8)
    check(parity[0], rows, OTHERWISE)
    assert sum(row.calls for row in rows.values()) >= calls
