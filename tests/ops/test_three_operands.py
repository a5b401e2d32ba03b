"""Functions of three tensors give the dtype that all of them promote to, not that of one pair after the other."""

from __future__ import annotations

import itertools

import pytest

import genesis

DTYPES = ("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def dtype_of(lib, name, operands):
    values = [lib.ones(shape, dtype=getattr(lib, kind)) for kind, shape in operands]
    if name == "where":
        values[0] = values[0] == values[0]
    try:
        return str(getattr(lib, name)(*values).dtype).partition(".")[2]
    except (RuntimeError, TypeError):
        return None


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("shapes", list(itertools.product([(), (1,)], repeat=3)), ids=str)
@pytest.mark.parametrize("name", ["addcmul", "addcdiv", "clamp", "where"])
def test_dtypes(name, shapes):
    other = pytest.importorskip("torch")
    wrong = []
    for kinds in itertools.product(DTYPES, repeat=3):
        operands = list(zip(kinds, shapes, strict=True))
        found, expected = dtype_of(genesis, name, operands), dtype_of(other, name, operands)
        # Genesis has no complex32; what one of the two refuses is another matter
        if found != expected and None not in (found, expected) and expected != "complex32":
            wrong.append((operands, found, expected))
    assert not wrong


def test_nothing_is_rounded_to_the_smaller_of_two_first():
    x = genesis.tensor(1 + 1j, dtype=genesis.complex128)
    y = genesis.addcdiv(x, genesis.tensor([1], dtype=genesis.int8), genesis.tensor(3.0, dtype=genesis.bfloat16))
    assert y.dtype == genesis.complex128 and y.item() == 1 + 1j + 1 / 3


@pytest.mark.parity
@pytest.mark.parametrize("limits", [("int64", 2), ("float64", 1), ("bool", 2), ("uint16", -1), ("int8", 1.5)], ids=str)
@pytest.mark.parametrize("kind", ["int8", "int16", "float16", "float32"])
def test_a_limit_of_no_dimensions_beside_a_number_is_a_number(kind, limits):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        low = lib.tensor(1, dtype=getattr(lib, limits[0]))
        result = lib.clamp(lib.tensor([0, 1, 5], dtype=getattr(lib, kind)), low, limits[1])
        found.append((str(result.dtype).partition(".")[2], result.tolist()))
    assert found[0] == found[1]
