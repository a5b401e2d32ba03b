"""What calls of recurrent layers have in common is made once."""

from __future__ import annotations

import pytest

import genesis


def test_the_tables_of_steps_are_made_once_for_arrays_of_the_same_sizes(monkeypatch):
    from genesis.kernels.cpu import recurrent
    from genesis.kernels.llvm import loops

    if not loops.available():
        pytest.skip("no llvmlite")
    made, table = [], recurrent._Phases
    monkeypatch.setattr(recurrent, "_Phases", lambda *given: (made.append(given), table(*given))[1])
    recurrent._free_tables.cache_clear()
    layer, found = genesis.nn.LSTM(3, 5), []
    for x in (genesis.ones(6, 2, 3), genesis.ones(6, 2, 3), genesis.ones(7, 2, 3)):
        layer.zero_grad()
        layer(x)[0].sum().backward()
        found.append(len(made))
    assert found == [2, 2, 4]  # forward and backward
    assert genesis.equal(layer(genesis.ones(6, 2, 3))[0], layer(genesis.ones(7, 2, 3))[0][:6])


def test_states_of_layers_are_stacked_by_one_view():
    x = genesis.ones(2, 3, requires_grad=True)
    out = genesis.stack([x, x * 2])
    assert out.shape == (2, 2, 3) and "Reshape" in type(out.grad_fn).__name__
    out.sum().backward()
    assert x.grad.tolist() == [[3] * 3] * 2
    assert genesis.stack([genesis.zeros(0), genesis.zeros(0)]).shape == (2, 0)
