"""Random programs of promotion, views, writes, indexing, Functions and transforms end in Genesis as they do in PyTorch."""

from __future__ import annotations

import pytest

import genesis
from genesis.testing import fuzz_pytorch, fuzz_pytorch_programs


def explain(found):
    return "\n\n".join(f"seed {number}: {detail}\n" + "\n".join(lines) for number, lines, detail in found)


@pytest.mark.parity
def test_a_few_programs():
    counts, found = fuzz_pytorch.fuzz(pytest.importorskip("torch"), 150, seed=1_000_000)
    assert not found, explain(found)
    assert counts["equal"] > 75, counts  # to their end, without an error in one of the two


@pytest.mark.slow
@pytest.mark.parity
def test_twenty_thousand_programs():
    counts, found = fuzz_pytorch.fuzz(pytest.importorskip("torch"), 20_000)
    assert not found, explain(found)
    assert counts["equal"] > 10_000, counts


def test_a_seed_is_a_program():
    assert all(fuzz_pytorch_programs.program(seed) == fuzz_pytorch_programs.program(seed) for seed in range(12))


BROKEN = {
    "dtype": ("where", lambda right: lambda *args: right(*args).double(), ["r = T.where(T.tensor(True), 1.0, 2.0)"]),
    "value": ("cat", lambda right: lambda parts: right(parts[::-1]), ["r = T.cat([T.tensor([1]), T.tensor([2])])"]),
    "history": (
        "clone",
        lambda right: lambda x: right(x.detach()),
        ["v = T.ones(2).requires_grad_()", "w = T.clone(v)"],
    ),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found_and_shrunk(monkeypatch, name):
    other = pytest.importorskip("torch")
    op, broken, program = BROKEN[name]
    assert fuzz_pytorch.compare(program, other)[0] == "equal"
    monkeypatch.setattr(genesis, op, broken(getattr(genesis, op)))
    padded = ["a = T.ones(3)", *program, "b = a * 2"]
    assert fuzz_pytorch.compare(padded, other)[0] == "wrong"
    assert fuzz_pytorch.shrunk(padded, other) == program


@pytest.mark.parity
def test_errors_in_one_library_are_told_apart():
    other = pytest.importorskip("torch")
    assert fuzz_pytorch.compare(["r = T.nothing if T.__name__ == 'torch' else 1"], other)[0] == "laxer"
    assert fuzz_pytorch.compare(["r = 1 if T.__name__ == 'torch' else T.nothing"], other)[0] == "stricter"
    assert fuzz_pytorch.compare(["r = T.nothing", "v = T.ones(2)"], other)[0] == "equal"


REFUSED = {  # by PyTorch, whatever the answer
    "saved": ["v1 = x * 2", "v1.addcmul_(v1, v1)", "g = T.autograd.grad(v1.sum(), x, allow_unused=True)"],
    "overlap": [
        "v1 = x * 2",
        "v1.index_add_(0, T.tensor([1, 2, 0]), v1)",
        "g = T.autograd.grad((v1 * v1).sum(), x, allow_unused=True)",
    ],
    "assigned": ["v1 = x * 2", "v2 = v1[:-1]", "v1[1:] = v2"],
    "several views": [
        "v = x * 2",
        "w = v.unbind(0)[0]",
        "w.mul_(3.0)",
        "g = T.autograd.grad((v * v).sum(), x, allow_unused=True)",
    ],
}


@pytest.mark.parity
@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_on_principle_is_compared_with_a_program_of_copies(monkeypatch, name):
    other = pytest.importorskip("torch")
    program = ["x = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).requires_grad_()", *REFUSED[name]]
    with pytest.raises(RuntimeError, match=fuzz_pytorch.REFUSALS):
        exec("\n".join(program), {"T": other})
    assert fuzz_pytorch.compare(program, other) == ("equal", "")
    right = genesis.Tensor.__mul__
    monkeypatch.setattr(
        genesis.Tensor, "__mul__", lambda x, y: right(x, y) * 1.5 if y.__class__ is int else right(x, y)
    )
    assert fuzz_pytorch.compare(program, other)[0] == "wrong"


@pytest.mark.parity
def test_a_gradient_with_a_history_that_nothing_has_asked_for_is_found():
    program = ["v = T.nn.Parameter(T.ones(2))", "h = v * 1 if T.__name__ == 'genesis' else v.detach()"]
    assert fuzz_pytorch.compare(program, pytest.importorskip("torch"))[0] == "wrong"


STATED = {
    "copysign_": [
        "x = T.tensor([1.0, -2.0], dtype=T.float64).requires_grad_()",
        "v1 = x * 2",
        "v2 = x * -1",
        "v1.copysign_(v2)",
        "g = T.autograd.grad(v1.sum(), [v1, x], create_graph=True)",
        "h = T.autograd.grad((g[1] * g[1]).sum(), [v1, x], allow_unused=True)",
    ],
}


@pytest.mark.parity
@pytest.mark.parametrize("name", STATED)
def test_a_stated_difference_is_told_and_no_other(monkeypatch, name):
    other = pytest.importorskip("torch")
    assert fuzz_pytorch.compare(STATED[name], other)[0] == "stated"
    right = getattr(genesis.Tensor, name)
    monkeypatch.setattr(genesis.Tensor, name, lambda x, y: right(x, y).mul_(1.5))
    assert fuzz_pytorch.compare(STATED[name], other)[0] == "wrong"


@pytest.mark.parity
def test_out_dims_of_results_that_are_the_same_for_all_samples():
    program = [
        "f0 = lambda x, y: x * 2",
        "f1 = T.func.vmap(f0, in_dims=(None, 0), out_dims=1)",
        "h = f1(T.arange(3.0), T.zeros(2))",
    ]
    assert fuzz_pytorch.compare(program, pytest.importorskip("torch")) == ("equal", "")


@pytest.mark.parity
def test_unsigned_tensors_are_compared_with_negative_ones_in_genesis_alone():
    program = [
        "v0 = T.tensor([3], dtype=T.uint8)",
        "v1 = T.tensor(-2)",
        "r2 = v0 < v1",
        "r3 = T.ge(v0, v1)",
        "r4 = v0 != -1",
    ]
    other = pytest.importorskip("torch")
    assert fuzz_pytorch.compare(program, other) == ("equal", "")
    assert fuzz_pytorch.compare([*program, "v1 = T.tensor(2)", "r5 = v0 < v1"], other) == ("equal", "")
