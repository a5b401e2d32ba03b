"""Traced functions are called, saved, and loaded by another process."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

import genesis
from genesis import jit, nn


def test_a_graph_is_called():
    model = nn.Linear(3, 2)
    graph = jit.trace(model, genesis.ones(1, 3))
    x = genesis.randn(1, 3)
    assert genesis.equal(graph(x), model(x)) and genesis.equal(graph(x), graph.replay(x))


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16, genesis.complex64])
def test_saved_and_loaded(tmp_path, dtype):
    w = genesis.randn(3, 2).to(dtype)
    graph = jit.trace(lambda x: {"y": (x @ w, [x + 1])}, genesis.ones(4, 3, dtype=dtype))
    graph.save(tmp_path / "f")
    again = jit.load(tmp_path / "f").verify()
    x = genesis.randn(4, 3).to(dtype)
    (want, (more,)), (got, (other,)) = graph(x)["y"], again(x)["y"]
    assert got.dtype == dtype and genesis.equal(got, want) and genesis.equal(more, other)


def test_another_process_calls_it(tmp_path):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    jit.save(jit.trace(model, genesis.ones(1, 1, 4, 4)), tmp_path / "model.graph")
    code = (
        f"import genesis; print(genesis.jit.load({str(tmp_path / 'model.graph')!r})(genesis.ones(1, 1, 4, 4)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(model(genesis.ones(1, 1, 4, 4)).tolist())


def test_writes_and_random_numbers(tmp_path):
    count = genesis.zeros(1)

    def f(x, *, scale):
        count.add_(1)
        return nn.functional.dropout(x, 0.5) * scale + count

    graph = jit.trace(f, genesis.ones(8), scale=2.0)
    graph.save(tmp_path / "f")
    again = jit.load(tmp_path / "f")
    for _ in range(2):
        genesis.manual_seed(3)
        want = graph(genesis.ones(8), scale=2.0)
        genesis.manual_seed(3)
        assert genesis.equal(again(genesis.ones(8), scale=2.0), want)
    assert count.item() == 2  # the loaded one has tensors of its own
    with pytest.raises(RuntimeError, match="was traced with 2.0"):
        again(genesis.ones(8), scale=3.0)
    with pytest.raises(RuntimeError, match="was traced with f32"):
        again(genesis.ones(9), scale=2.0)


def test_a_generator_of_its_own(tmp_path):
    g = genesis.Generator().manual_seed(1)
    graph = jit.trace(lambda: genesis.randn(3, generator=g))
    graph.save(tmp_path / "f")
    again = jit.load(tmp_path / "f")
    assert genesis.equal(again(), genesis.randn(3, generator=g))
    assert genesis.equal(again(), genesis.randn(3, generator=g))


def test_what_no_file_has_a_form_for(tmp_path):
    model = nn.Linear(2, 2)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    cases = [
        (jit.trace(step, genesis.ones(1, 2)), "step has gradients of tensors, which no file has a form for"),
        (jit.trace(lambda x: (x, model), genesis.ones(2)), "results that are objects of Python"),
        (jit.trace(lambda x, o: x, genesis.ones(2), model), "arguments that are objects of Python"),
    ]
    for graph, words in cases:
        with pytest.raises(RuntimeError, match=words):
            graph.save(tmp_path / "f")
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="save: a Linear is no traced function"):
        jit.save(model, tmp_path / "f")


def test_damaged_files(tmp_path):
    path = tmp_path / "f"
    graph = jit.trace(lambda x: x * 2, genesis.ones(2))
    graph.program.save(path)
    with pytest.raises(RuntimeError, match="a program without its tensors"):
        jit.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match="no traced function, or a damaged one"):
        jit.load(path)
    graph.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part.replace(b"genesis graph 1", b"genesis graph 9"))
    with pytest.raises(RuntimeError, match="the format is 'genesis graph 9'"):
        jit.load(path)
