"""Functions of float32 numbers in nests of loops: what recurrent layers and attention are made of."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops, native
from genesis.kernels.llvm.nests import Code

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
# the largest errors, in units of the last digit
FUNCTIONS = {
    "exp": (np.exp, 1.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 1.15),
    "tanh": (np.tanh, 1.2),
    "reciprocal": (lambda x: 1 / x, 0.6),
}


def applied(which, x):
    lanes = loops.width() // 4
    code = Code(lanes)
    with code.loop("0", "%n", str(lanes)) as i:
        code.store(getattr(code, which)(code.load("%x", i.index)), "%out", i.index)
    x = np.resize(x, -(-len(x) // lanes) * lanes).astype(np.float32)
    out = np.empty_like(x)
    run = native.nest(f"{which}_of_all", code.function(f"{which}_of_all", ["x", "out"], ["n"]), 2, 1)
    run(x.ctypes.data, out.ctypes.data, len(x))
    return x, out


@pytest.mark.parametrize("which", FUNCTIONS)
def test_errors(which):
    function, most = FUNCTIONS[which]
    rng = np.random.default_rng(0)
    given = np.concatenate([np.linspace(-87, 87, 1 << 18), np.linspace(-1, 1, 1 << 16), rng.normal(size=1 << 18)])
    if which == "reciprocal":
        given = np.concatenate([np.linspace(1, 4, 1 << 18), 2 ** np.linspace(0, 126, 1 << 16), [1.0, 2.0, 2.0**100]])
    x, out = applied(which, given)
    want = function(x.astype(np.float64))
    errors = np.abs(out - want) / np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert errors.max() <= most


def test_ends():
    """Beyond the limits of exp the ends stay, and NaN is NaN."""
    ends = np.array([np.inf, -np.inf, 1000.0, -1000.0, np.nan, 0.0, -0.0])
    _, gates = applied("sigmoid", ends)
    assert gates[0] == gates[2] == 1 and 0 <= gates[1] == gates[3] < 1e-38
    assert np.isnan(gates[4]) and gates[5] == gates[6] == 0.5
    _, curve = applied("tanh", ends)
    assert (
        curve[:4].tolist() == [1, -1, 1, -1] and np.isnan(curve[4]) and np.signbit(curve[5:7]).tolist() == [False, True]
    )


@pytest.mark.parametrize("behind", [native.ARRAY_DATA, 0])
def test_arrays_and_their_addresses_name_the_same_memory(behind, monkeypatch):
    monkeypatch.setattr(native, "ARRAY_DATA", behind)
    code = Code(1)
    with code.loop("%first", "%last", "1") as i:
        code.store(code.load("%x", i.index), "%out", i.index)
    x, out, whole = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    copy = Nest("copy", code.function("copy", ["x", "out"], ["first", "last"]), 2, 2)
    copy.alone(x, out, 2, 5)
    assert out.tolist() == [0, 0, 2, 3, 4, 0, 0, 0]
    copy((x, whole), 8, (), True)
    assert whole.tolist() == x.tolist()


def test_what_is_no_number_is_refused_before_anything_runs():
    code = Code(1)
    with code.loop("%first", "%last", "1") as i:
        code.store(code.load("%x", i.index), "%out", i.index)
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    copy = Nest("copy", code.function("copy", ["x", "out"], ["first", "last"]), 2, 2)
    with pytest.raises(TypeError):
        copy.alone(x, out, 0, 2.5)
    with pytest.raises((SystemError, TypeError)):
        copy.alone(x, out, 0)
    assert out.tolist() == [0, 0, 0, 0]
    copy.alone(x, out, np.int64(1), True + 1)
    assert out.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("which", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(1,), (2, 3, 16), (7, 33)])
def test_a_row_has_the_same_bits_among_few_and_among_many(which, shape):
    x = genesis.randn(*shape)
    rows = x.reshape(-1, shape[-1])
    few, many = getattr(x, which)(-1), getattr(genesis.cat([rows] * (1 + 20000 // x.numel())), which)(-1)
    assert few.shape == shape and genesis.equal(few.reshape(rows.shape), many[: len(rows)])


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0,)])
def test_no_rows_and_empty_ones(shape):
    assert genesis.zeros(*shape).softmax(-1).shape == shape
