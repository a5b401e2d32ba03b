"""unfold: windows as views, what can be written through them, and their gradient."""

from __future__ import annotations

import pytest

import genesis


@pytest.mark.parity
@pytest.mark.parametrize(
    "args", [(0, 2, 1), (1, 3, 2), (-1, 6, 1), (0, 0, 1), (0, 5, 1), (0, 2, 0), (2, 1, 1), (0, -1, 1)]
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "reversed", "every second"])
def test_windows_are_those_of_pytorch(args, layout):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        x = lib.arange(24.0).reshape(4, 6)
        x = {"transposed": lambda x=x: x.T, "every second": lambda x=x: x[:, ::2]}.get(layout, lambda x=x: x)()
        if layout == "reversed":
            x = x.flip(0)
        try:
            w = x.unfold(*args)
        except (RuntimeError, IndexError) as error:
            found.append(IndexError if isinstance(error, IndexError) else RuntimeError)
            continue
        found.append((tuple(w.shape), tuple(w.stride()), w.tolist()))
    assert found[0] == found[1]


def test_windows_of_a_reversed_view():
    x = genesis.arange(5.0)[::-1]
    assert x.unfold(0, 2, 2).tolist() == [[4, 3], [2, 1]]


@pytest.mark.parametrize("step", [2, 3])
def test_windows_apart_are_written_through(step):
    x = genesis.arange(7.0).requires_grad_()
    y = x * 1
    view = y[1:]
    w = y.unfold(0, 2, step)
    w[0].mul_(3.0)
    w.mul_(genesis.tensor(2.0))
    weights = genesis.arange(7.0)
    assert y.tolist()[:2] == [0, 6] and view.tolist() == y.tolist()[1:]
    (y * weights).sum().backward()
    factors = genesis.ones(7)
    factors.unfold(0, 2, step).mul_(2.0)
    factors[:2].mul_(3.0)
    assert x.grad.tolist() == (factors * weights).tolist()


def test_windows_that_overlap_are_not_written_to():
    with pytest.raises(RuntimeError, match="the memory cannot be written to"):
        genesis.arange(5).unfold(0, 3, 1).zero_()


def test_a_write_after_windows_were_saved_is_noticed():
    x = genesis.arange(4.0).requires_grad_()
    y = x * 1
    squares = y.unfold(0, 2, 1) ** 2
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified in place"):
        squares.sum().backward()


@pytest.mark.parity
@pytest.mark.parametrize("args", [(0, 2, 1), (1, 2, 2), (-1, 3, 1)])
def test_gradients(args):
    found = []
    for lib in (genesis, pytest.importorskip("torch")):
        x = (lib.arange(12.0, dtype=lib.float64).reshape(3, 4) / 7).requires_grad_()
        (g,) = lib.autograd.grad((x.unfold(*args) ** 3).sum(), x, create_graph=True)
        found.append((g.tolist(), lib.autograd.grad((g * g).sum(), x)[0].tolist()))
    for a, b in zip(*found, strict=True):
        assert genesis.allclose(genesis.tensor(a), genesis.tensor(b))


def test_a_function_too():
    assert (
        genesis.unfold(genesis.arange(3), 0, 2, 1).tolist()
        == genesis.arange(3).unfold(dimension=0, size=2, step=1).tolist()
    )


@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("dim", [0, 1])
def test_writes_through_windows_are_traced(dim, step):
    def written(x):
        y = x * 1
        y.unfold(dim, 2, step).mul_(3.0)
        return y

    x = genesis.arange(20.0).reshape(4, 5)
    graph = genesis.jit.trace(written, genesis.zeros(4, 5))
    assert graph.replay(x).tolist() == written(x).tolist()
