"""What calls of recurrent layers have in common is made once."""

from __future__ import annotations

import re

import pytest

import genesis
from genesis.kernels.cpu import recurrent
from genesis.kernels.llvm import loops, native
from genesis.kernels.native import pace, runtime


def test_the_tables_of_steps_are_made_once_for_arrays_of_the_same_sizes(monkeypatch):
    if not loops.available():
        pytest.skip("no llvmlite")
    made, table = [], recurrent._Phases
    monkeypatch.setattr(recurrent, "_Phases", lambda *given: (made.append(given), table(*given))[1])
    recurrent._tables.cache_clear()
    layer, found = genesis.nn.LSTM(3, 5), []
    for x in (genesis.ones(6, 2, 3), genesis.ones(6, 2, 3), genesis.ones(7, 2, 3)):
        layer.zero_grad()
        layer(x)[0].sum().backward()
        found.append(len(made))
    assert found == [2, 2, 4]  # forward and backward
    assert genesis.equal(layer(genesis.ones(6, 2, 3))[0], layer(genesis.ones(7, 2, 3))[0][:6])


@pytest.mark.parametrize(("kind", "functions"), [("lstm", 5), ("gru", 3), ("tanh", 1), ("relu", 0)])
def test_the_arithmetic_of_a_cell_is_there_once_for_rows_whose_products_are_computed_together(kind, functions):
    """Of several rows side by side it needs more numbers at a time than there are registers."""
    target = recurrent.code.Target(16, True)
    text, rows = recurrent.code.forward(kind, target, True), target.rows(kind)
    assert text.count("= call <16 x float> @llvm.x86.avx512.rcp14") == functions * rows.bit_length()


# a processor, whether it has 32 registers, and what multiplies and is on the stack
PROCESSORS = {
    "skylake-avx512": ("x86_64", 16, True, r"vfmadd\w+ps.*%zmm", r"\(%rsp.*%zmm|%zmm.*\(%rsp"),
    "haswell": ("x86_64", 8, False, r"vfmadd\w+ps.*%ymm", r"\(%rsp.*%ymm|%ymm.*\(%rsp"),
    "neoverse-n1": ("aarch64", 4, True, r"fmla", r"\b[qv]\d.*\[sp"),
}


@pytest.mark.skipif(not loops.available(), reason="no llvmlite")
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh", "relu"])
def test_sums_of_products_stay_in_registers(kind, processor):
    """There is a loop that has as many as a tile, and none that has some of them on the stack."""
    machine, lanes, many, multiplied, spilled = PROCESSORS[processor]
    llvm, target, gates = native.binding(), recurrent.code.Target(lanes, many), recurrent.cells.GATES[kind]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = "-prefer-256-bit" if lanes == 16 else ""
    made = llvm.Target.from_triple(f"{machine}-unknown-linux-gnu").create_target_machine(processor, features, 2)
    columns = target.columns_back(16, 8)
    codes = {
        recurrent.code.inputs(kind, target, True): gates * target.rows(kind),
        recurrent.code.backward(kind, target, columns): columns * target.rows_back(columns),
    }
    for text, count in codes.items():
        blocks = re.split(r"\n(?=\.L)", made.emit_assembly(llvm.parse_assembly(text)))
        products = [block for block in blocks if re.search(multiplied, block)]
        assert max([len(re.findall(multiplied, block)) for block in products]) == count
        assert not [block for block in products if re.search(spilled, block)]


def test_states_of_layers_are_stacked_by_one_view():
    x = genesis.ones(2, 3, requires_grad=True)
    out = genesis.stack([x, x * 2])
    assert out.shape == (2, 2, 3) and "Reshape" in type(out.grad_fn).__name__
    out.sum().backward()
    assert x.grad.tolist() == [[3] * 3] * 2
    assert genesis.stack([genesis.zeros(0), genesis.zeros(0)]).shape == (2, 0)


@pytest.mark.skipif(not loops.available(), reason="no llvmlite")
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_steps_are_run_by_as_many_threads_as_are_faster(kind, monkeypatch):
    """By two and by one in turn to begin with; results have the same bits."""
    seen, run = [], runtime.run
    monkeypatch.setattr(runtime, "run", lambda table, threads=None: (seen.append(threads), run(table, threads))[1])
    recurrent._tables.cache_clear()
    layer, x, before = getattr(genesis.nn, kind)(8, 256), genesis.randn(5, 1, 8), genesis.get_num_threads()

    def results():
        layer.zero_grad()
        y = layer(x)[0]
        y.sum().backward()
        return [y.detach(), *[p.grad for p in layer.parameters()]]

    try:
        genesis.set_num_threads(1)
        expected = results()
        assert set(seen) == {1}
        genesis.set_num_threads(2)
        seen.clear()
        for _ in range(2 * pace.BLOCK + 1):
            assert all(map(genesis.equal, results(), expected))
    finally:
        genesis.set_num_threads(before)
    assert seen[: 4 * pace.BLOCK] == [2] * (2 * pace.BLOCK) + [1] * (2 * pace.BLOCK)  # forward and backward
