"""Comparisons and logic that write their answers as numbers into their input, and the history of these."""

from __future__ import annotations

import pytest

import genesis

COMPARISONS = [
    f"{name}_"
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal")
]
LOGIC = ["logical_and_", "logical_or_", "logical_xor_"]


def leaves(lib, first, second, dtype="float64"):
    kind = getattr(lib, dtype)
    return lib.tensor([1.0, 2.0, 3.0], dtype=kind, requires_grad=first), lib.tensor(
        [2.0], dtype=kind, requires_grad=second
    )


@pytest.mark.parity
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_has_a_history_of_zeros(name, first, second, view):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        x, y = leaves(lib, first, second)
        z = x.clone()
        result = getattr(z[1:] if view else z, name)(y)
        assert result.requires_grad == (first or second)
        needed = [t for t in (x, y) if t.requires_grad]
        grads = lib.autograd.grad((z * z).sum(), needed, allow_unused=True) if needed else []
        found.append((z.requires_grad, z.tolist(), [g.tolist() for g in grads]))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_zeros_are_differentiable(name):
    x, y = leaves(genesis, True, True)
    z = getattr(x.clone(), name)(y)
    first = genesis.autograd.grad((z * x * y).sum(), (x, y), create_graph=True)
    second = genesis.autograd.grad(first[0].sum(), y)
    assert second[0].tolist() == [z.sum().item()]


@pytest.mark.parametrize("name", COMPARISONS)
def test_an_integer_has_no_history(name):
    x = genesis.tensor([1, 2, 3])
    getattr(x, name)(genesis.tensor([2.0], requires_grad=True))
    assert not x.requires_grad


@pytest.mark.parametrize("name", LOGIC)
def test_logic_replaces_values(name):
    x, y = leaves(genesis, True, False)
    z = getattr(x * 1, name)(y)
    assert genesis.autograd.grad(z.sum(), x)[0].tolist() == [0, 0, 0]


@pytest.mark.parity
def test_logical_not_in_place():
    found = [lib.tensor([0.0, 2.0]).logical_not_().tolist() for lib in (genesis, pytest.importorskip("torch"))]
    assert found[0] == found[1] == [1.0, 0.0]


INTEGERS = [
    ([5, 3, 250], "uint8", -1),
    ([5, -3, -128], "int8", 2),
    ([2**62 + 1, -7], "int64", 1),
    ([-(2**62) - 1, 7], "int64", -3),
    ([7, -7], "int16", True),
]


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize(("values", "dtype", "divisor"), INTEGERS)
def test_integers_are_divided_as_integers(values, dtype, divisor, mode):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        result = lib.div(lib.tensor(values, dtype=getattr(lib, dtype)), divisor, rounding_mode=mode)
        found.append((str(result.dtype).partition(".")[2], result.tolist()))
    assert found[0] == found[1]


@pytest.mark.parity
@pytest.mark.parametrize("exponent", ["float16", "float32", "float64", "int8", "int64", "uint8"])
@pytest.mark.parametrize(
    "mantissa", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
)
def test_ldexp(mantissa, exponent):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        x = lib.tensor([1, 0, 1], dtype=getattr(lib, mantissa))
        y = lib.tensor([3, 1, 2], dtype=getattr(lib, exponent))
        try:
            result = lib.ldexp(x, y)
        except RuntimeError:
            pytest.skip("complex with float16")
        found.append((str(result.dtype).partition(".")[2], result.tolist()))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1])


def test_ldexp_where_the_power_is_out_of_range():
    assert genesis.ldexp(genesis.tensor([1e-30]), genesis.tensor([200])).item() == pytest.approx(1.6069380442589903e30)
    assert genesis.ldexp(genesis.tensor([2.0**100]), genesis.tensor([-249.0])).item() == 2.0**-149
    wide = genesis.ldexp(genesis.tensor([2.0**-1000], dtype=genesis.float64), genesis.tensor([2000]))
    assert wide.item() == 2.0**1000
    assert genesis.ldexp(genesis.tensor([0.0]), genesis.tensor([1000])).item() == 0


def test_ldexp_in_place_keeps_the_dtype():
    assert genesis.ones(2).ldexp_(genesis.tensor([1, 2])).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="cannot be cast"):
        genesis.tensor([1, 2]).ldexp_(genesis.tensor([1, 2]))


@pytest.mark.parametrize("kind", ["bool", "int8", "float32"])
def test_ldexp_of_a_complex_number_of_no_dimensions(kind):
    other = genesis.tensor([0, 1]).to(getattr(genesis, kind))
    found = genesis.ldexp(genesis.tensor(1 + 2j, dtype=genesis.complex128), other)
    assert found.dtype == genesis.result_type(genesis.tensor(1j, dtype=genesis.complex128), other)
    assert found.tolist() == [1 + 2j, 2 + 4j]
