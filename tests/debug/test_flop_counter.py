"""Counts of floating-point operations, beside PyTorch's."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn
from genesis.debug.flop_counter import FlopCounterMode
from genesis.utils.aten import packet


def _programs(lib):
    x = lib.ones(2, 4, 6, 6)
    a, b = lib.ones(3, 7).requires_grad_(), lib.ones(7, 5).requires_grad_()
    c, t = lib.nn.Conv2d(4, 6, 3, stride=2, padding=1), lib.nn.ConvTranspose2d(6, 2, 2)
    return {
        "mm": lambda: (a @ b).sum().backward(),
        "bmm": lambda: lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5)),
        "addmm": lambda: lib.addmm(lib.ones(5), a, b),
        "linear": lambda: lib.nn.Linear(7, 5)(a).sum().backward(),
        "convolutions": lambda: t(c(x)).sum().backward(),
        "conv1d": lambda: lib.nn.functional.conv1d(lib.ones(2, 3, 9), lib.ones(4, 3, 2), dilation=2),
        "attention by products": lambda: (
            ((q := lib.ones(2, 3, 4, 8).requires_grad_()) @ q.mT).softmax(-1).matmul(q).sum().backward()
        ),
        "einsum": lambda: (
            lib.einsum("bij,bjk->bik", lib.ones(2, 3, 4).requires_grad_(), lib.ones(2, 4, 5).requires_grad_())
            .sum()
            .backward()
        ),
        "einsum of two": lambda: lib.einsum("ij,kj->ik", a, lib.ones(5, 7).requires_grad_()).sum().backward(),
        "multihead": lambda: (
            lib.nn.MultiheadAttention(8, 2, batch_first=True)(*[lib.ones(2, 5, 8)] * 3)[0].sum().backward()
        ),
        "none": lambda: (a * 2).exp().sum(),
    }


@pytest.mark.parity
@pytest.mark.parametrize("name", list(_programs(genesis)))
def test_counts_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    counts = []
    theirs = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
    for lib, kind in ((genesis, FlopCounterMode), (torch, theirs)):
        program = _programs(lib)[name]
        with kind(display=False) as counter:
            program()
        by_name = {str(key): count for key, count in counter.get_flop_counts().get("Global", {}).items()}
        # addmm is a product and a sum here, the projections of attention are products of their own in PyTorch, where einsum
        # makes batches of one
        other_names = ("addmm", "multihead", "einsum of two")
        counts.append((counter.get_total_flops(), by_name if name not in other_names else None))
    assert counts[0] == counts[1]


def test_modules_and_tables(capsys):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
    with FlopCounterMode(depth=2) as counter:
        net(genesis.ones(5, 3))
    assert counter.get_flop_counts()["Sequential.0"] == {packet("addmm"): 120} and counter.get_total_flops() == 200
    assert counter.get_flop_counts()["Sequential.2.0"] == {packet("addmm"): 80}
    printed = capsys.readouterr().out
    assert "Sequential.2 " in printed and "Sequential.2.0" not in printed and "60.00%" in printed
    with FlopCounterMode(display=False, custom_mapping={genesis.exp: lambda shape, out_shape=None: 9}) as counter:
        genesis.ones(2).exp()
        genesis.ones(2) @ genesis.ones(2)
    assert counter.get_flop_counts()["Global"] == {packet("exp"): 9, packet("dot"): 4}
