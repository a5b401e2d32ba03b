"""Every attached kernel against the meaning of its op: on every sample, dtype and layout, with first and second
derivatives.
"""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY
from genesis.testing import Maker, check_kernel
from genesis.testing.opcheck import sample_dtypes, samples_of

ATTACHED = [op for op in REGISTRY.values() if np.ndarray in op.kernels and samples_of(op, Maker(genesis.float32))]
CASES = [
    pytest.param(op, dtype, layout, id=f"{op.name}-{dtype.short}-{layout}")
    for op in ATTACHED
    for dtype in sample_dtypes(op)
    for layout in ("contiguous", "strided")
]


@pytest.mark.parametrize(("op", "dtype", "layout"), CASES)
def test_a_kernel_is_what_its_op_means(op, dtype, layout):
    for i in range(len(samples_of(op, Maker(dtype)))):
        check_kernel(
            op,
            samples_of(
                op, Maker(dtype, seed=i, layout=layout, requires_grad=dtype.is_floating_point or dtype.is_complex)
            )[i],
        )


def test_the_normal_distribution_function_to_one_unit_in_the_last_place():
    x = np.concatenate([np.linspace(-13, 13, 20_001), -np.geomspace(1e-30, 13, 5000)]).astype(np.float32)
    found = genesis.ops.pointwise.special.normal_cdf(genesis.tensor(x)).numpy()
    exact = genesis.ops.pointwise.special.normal_cdf(genesis.tensor(x.astype(np.float64))).numpy()
    assert np.max(np.abs(found - exact) / np.spacing(exact.astype(np.float32))) <= 1
    special = genesis.ops.pointwise.special.normal_cdf(genesis.tensor([np.inf, -np.inf, np.nan, 0.0])).numpy()
    np.testing.assert_array_equal(special, np.float32([1, 0, np.nan, 0.5]))
