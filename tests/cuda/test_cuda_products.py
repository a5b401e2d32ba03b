"""Products of vectors, of float64 and integers, and sums of products over named dimensions."""

from __future__ import annotations

import re

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 3e-2, "int64": 0, "int32": 0}


def tensors(*shapes, dtype="float32"):
    genesis.manual_seed(3)
    return [(genesis.randn(*shape) * 4).to(getattr(genesis, dtype)) for shape in shapes]


FORMS = {
    "two vectors": (lambda x, y: x @ y, [(7,), (7,)]),
    "a vector on the left": (lambda x, y: x @ y, [(7,), (7, 3)]),
    "a vector on the right": (lambda x, y: x @ y, [(5, 7), (7,)]),
    "vectors and batches": (lambda x, y: (x @ y, y.transpose(1, 2) @ x), [(7,), (2, 7, 3)]),
    "batches and a vector": (lambda x, y: x @ y, [(2, 4, 5, 7), (7,)]),
    "steps in vectors": (lambda x, y: x[::2] @ y[:, 0], [(13,), (7, 3)]),
    "matrices": (lambda x, y: x @ y, [(18, 7), (7, 33)]),
    "batches": (lambda x, y: x @ y.transpose(1, 2), [(2, 5, 7), (2, 3, 7)]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FORMS)
def test_products(name, dtype, way):
    function, shapes = FORMS[name]
    if way == "triton" and dtype == "bfloat16":
        pytest.skip("the interpreter has no bfloat16")
    with emulated(way):
        same(function, *tensors(*shapes, dtype=dtype), tolerance=TOLERANCE[dtype])


# of small ones in float32: what, shapes, whether lanes go along what is summed, and rows and columns of a program
SMALL = {
    "a linear layer": (genesis.nn.functional.linear, [(144, 200), (160, 200), (160,)], True, (16, 16)),
    "of few columns": (genesis.nn.functional.linear, [(24, 200), (10, 200), (10,)], True, (4, 16)),
    "a short one": (genesis.nn.functional.linear, [(17, 50), (9, 50), (9,)], True, (16, 16)),
    "its input's gradient": (lambda g, w: g @ w, [(24, 40), (40, 70)], False, (16, 16)),
    "of few": (lambda g, w: g @ w, [(24, 10), (10, 70)], False, (16, 16)),
    "its weight's gradient": (lambda g, x: g.t() @ x, [(40, 24), (40, 70)], False, (16, 32)),
    "of a wide layer": (lambda g, x: g.t() @ x, [(40, 250), (40, 290)], False, (32, 32)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SMALL)
def test_small_products(name, way):
    function, shapes, along, size = SMALL[name]
    given = tensors(*shapes)
    with emulated(way):
        same(function, *given, tolerance=2e-4)
        products = [kernel for kernel, _ in started(lambda: function(*[x.to("cuda") for x in given]))]
    assert [(p.tile.along, p.tile.m, p.tile.n) for p in products] == [(along, *size)]


@needs_triton
@pytest.mark.parametrize("name", SMALL)
def test_machine_code_of_small_products(name):
    """Copies to shared memory go on while numbers are multiplied, and what is read there is used several times."""
    function, shapes, along, _ = SMALL[name]
    shapes = [(shape[0], 8 * shape[1]) if along and len(shape) == 2 else shape for shape in shapes]
    ((kernel, aligned),) = started(lambda: function(*[x.to("cuda") for x in tensors(*shapes)]))
    assert kernel.tile.along == along
    text = machine_code(kernel, aligned)
    assert "LDGSTS" in text and text.count("FFMA") >= (4 if along else 1) * len(re.findall(r"\bLDS\b", text))


EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,kj->ik": [(2, 3), (4, 3)],
    "bhid,bhjd->bhij": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bhij,bhjd->bihd": [(2, 3, 4, 5), (2, 3, 5, 6)],
    "bthd,hdk->btk": [(2, 4, 3, 5), (3, 5, 6)],
    "i,j->ij": [(3,), (4,)],
    "i,i->": [(5,), (5,)],
    "ij,ij->ij": [(3, 4), (3, 4)],
    "ij,kl->i": [(2, 3), (4, 5)],
    "ij->ji": [(2, 3)],
    "ijk->j": [(2, 3, 4)],
    "i,ij,j->": [(3,), (3, 4), (4,)],
    "bi,ijk,bk->bj": [(2, 3), (3, 4, 5), (2, 5)],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_named_dimensions(equation, dtype):
    def computed(*x):
        x = [t.detach().requires_grad_(t.dtype.is_floating_point) for t in x]
        out = genesis.einsum(equation, *x)
        if not out.requires_grad:
            return out
        out.square().sum().backward()
        return out, *[t.grad for t in x]

    with emulated():
        same(
            computed,
            *tensors(*EQUATIONS[equation], dtype=dtype),
            tolerance=5e-5 if dtype == "float32" else TOLERANCE[dtype],
        )


def test_named_dimensions_that_lie_anyhow():
    x, y = tensors((4, 6, 5), (5, 3, 6))
    with emulated():
        same(lambda x, y: genesis.einsum("aij,jbi->ab", x, y), x, y, tolerance=1e-4)
        same(lambda x, y: genesis.einsum("aij,jbi->ba", x[::2], y[:, 1:]), x, y, tolerance=1e-4)
        same(lambda x, y: genesis.einsum("aij,jbi->ib", x[:1].expand(3, 6, 5), y), x, y, tolerance=1e-4)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int64", "int32"])
def test_machine_code(dtype):
    made = started(lambda: [x.to("cuda") @ x.to("cuda") for x in tensors((33, 33), dtype=dtype)])
    kernels = [(k, aligned) for k, aligned in made if type(k).__name__ == "Product"]
    assert kernels
    for kernel, aligned in kernels:
        machine_code(kernel, aligned)


# ---- quotients rounded down


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "float64", "bfloat16"])
def test_divisions(dtype, way):
    kind = getattr(genesis, dtype)
    if way == "triton" and dtype == "bfloat16":
        pytest.skip("the interpreter has no bfloat16")
    low = 0 if dtype == "uint8" else -9
    x = genesis.arange(low, 10).to(kind)[:, None]
    y = genesis.tensor([n for n in (-4, -3, -1, 1, 2, 3, 7) if n > low]).to(kind)
    with emulated(way):
        same(lambda x, y: (x // y, x % y, x // 3, x % 3, 7 // y, genesis.remainder(x.t(), y[:1])), x, y)
        if kind.is_floating_point:
            far = genesis.tensor([0.0, -0.0, 1e30, -1e30, float("inf"), float("nan"), 0.3]).to(kind)
            same(lambda x, y: (x[:, None] // y, x[:, None] % y), far, far)


def test_an_integer_divided_by_nothing():
    with emulated():
        x = genesis.tensor([5, -5], device="cuda")
        assert (x // 0).tolist() == [0, 0] and (x % 0).tolist() == [0, 0]
