"""Numbers among the arguments of compiled functions that Python decides by: a graph for each decision, and each call its own."""

from __future__ import annotations

import threading

import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim


def test_a_float_decides_for_its_own_call():
    """... not that of the call before."""

    @genesis.compile
    def scaled(x, rate):
        if rate < 0.5:
            return x * 2
        return x * rate

    x = genesis.ones(3)
    for rate in (0.1, 0.2, 0.3, 0.6, 0.7, 0.1, 0.8, 0.4):
        assert (scaled(x, rate) == (x * 2 if rate < 0.5 else x * rate)).all(), rate
    assert "3 graphs, 3 traces" in str(scaled.explain())


def test_formulas_of_floats_decide_for_their_own_calls():
    @genesis.compile
    def scaled(x, rate, other=1.0):
        return x * 2 if 1 - rate * other < 0.5 and rate else x * other

    x = genesis.ones(3)
    for rate, other in ((0.1, 1.0), (0.9, 1.0), (0.2, 3.0), (0.7, 0.1), (0.0, -3.0), (0.9, 1.0), (0.3, 0.3)):
        expected = x * 2 if 1 - rate * other < 0.5 and rate else x * other
        assert (scaled(x, rate, other=other) == expected).all(), (rate, other)


def test_threads_decide_by_their_own_numbers():
    @genesis.compile
    def signed(x, rate):
        return x * 2 if rate < 0.5 else x * 3

    x, wrong = genesis.ones(4), []
    for rate in (0.1, 0.2, 0.7, 0.8):
        signed(x, rate)

    def work(rate, factor):
        wrong.extend([1 for _ in range(400) if signed(x, rate)[0] != factor])

    threads = [threading.Thread(target=work, args=pair) for pair in ((0.1, 2), (0.9, 3), (0.3, 2), (0.6, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def accumulated(compiled):
    """Steps of four batches each; what the losses were, and where they led."""
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    many = 4

    def step(i, x, y):
        loss = F.mse_loss(model(x), y) / many
        loss.backward()
        if (i + 1) % many == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    run = genesis.compile(step) if compiled else step
    losses = [run(i, genesis.randn(16, 4), genesis.randn(16, 1)) for i in range(24)]
    if compiled:
        assert "not compiled" not in str(run.explain()) and len(str(run.explain()).split("\ngraph ")) <= 6
    return [*losses, *model.parameters()]


def test_gradients_of_several_batches_are_added_up():
    for one, other in zip(accumulated(False), accumulated(True), strict=True):
        assert (one - other).abs().max() <= 1e-6


def told(compiled):
    """What some steps print, and where they led."""
    genesis.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    def step(epoch, x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if (epoch + 1) % 3 == 0:
            print("epoch:", "%04d" % (epoch + 1), "{}".format(loss.item() > 0), "{:.3f}".format(loss))  # noqa: UP031, UP032
        loss.backward()
        optimizer.step()
        if epoch % 4 == 0:
            print(epoch, f"{epoch}", [epoch], type(epoch).__name__)
        return loss

    run = genesis.compile(step) if compiled else step
    losses = [run(i, genesis.randn(16, 4), genesis.randn(16, 1)) for i in range(12)]
    assert not compiled or "not compiled" not in str(run.explain())
    return [*losses, *model.parameters()]


def test_whole_numbers_that_decide_are_printed(capsys):
    expected = told(False), capsys.readouterr().out
    actual = told(True), capsys.readouterr().out
    assert actual[1] == expected[1] and "epoch: 0003 True" in actual[1] and "4 4 [4] int" in actual[1]
    for one, other in zip(expected[0], actual[0], strict=True):
        assert (one - other).abs().max() <= 1e-6


BODIES = {
    "an index": "return x[n % 2]",
    "a shape": "return x.reshape(n, -1) if n in (1, 2, 3, 6) else x",
    "a factor": "return x * n if n > 2 else x",
    "a key": "return x * {1: 2.0, 2: 3.0}.get(n, 4.0)",
    "a range": "for _ in range(n):\n    x = x + 1\nreturn x",
    "in a set": "return x * 2 if n in {1, 2} else x",
    "the same object": "return x * 2 if n is m else x",
    "text": "return x * len(f'{n}')",
    "changed": "n += 1\nreturn x * 2 if n > 3 else x",
    "inside": "return (lambda: x * 2 if n > 3 else x)()",
    "a bit": "return x * 2 if n & 1 else x",
    "a chain": "return x * 2 if 1 < n < m < 9 else x * 3 if not n % 2 or n == 5 else x",
    "a quotient": "return x * 2 if n // m == 1 else x - 1 if -n < -7 else x",
    "printed": "print(n)\nreturn x * 2 if n > 3 else x",
    "printed by another function": "print = str\nprint(n)\nreturn x * 2 if n > 3 else x",
    "printed and a factor": "print(n)\nreturn x * n",
    "an argument of both": "return x * 2 if n * m > 8 else x",
}


@pytest.mark.filterwarnings("ignore:compile. counted is not compiled")
@pytest.mark.parametrize("kind", BODIES)
def test_whole_numbers_for_all_else_are_what_they_are(kind, tmp_path, monkeypatch):
    """What looks into a number is told the number of this call."""
    name = f"counted_{abs(hash(kind))}"
    (tmp_path / f"{name}.py").write_text("def counted(x, n, m=3):\n    " + BODIES[kind].replace("\n", "\n    ") + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = __import__(name).counted
    compiled, x = genesis.compile(function), genesis.arange(6.0)
    for n in (1, 2, 3, 4, 6, 5, 1, 7, 9, 12, 2, 10, 2**60, True):
        if kind in ("a range", "a shape") and n > 100:
            continue
        try:
            expected = function(x, n)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(x, n)
            continue
        given = compiled(x, n)
        assert given.shape == expected.shape and (given == expected).all(), n
