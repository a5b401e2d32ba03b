"""Writes to what a function computes, through views and by numbers that Python has: the trace makes them, or nobody does
apart.
"""

import linecache
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis.testing import fuzz_compile


def compared(step, log, calls=5):
    """The compiled function, which gave what the function gives."""

    def seen(run):
        del log[:]
        return [(run(genesis.arange(6.0).reshape(2, 3).sin() * k).tolist(), [*log]) for k in range(1, calls + 1)]

    compiled = genesis.compile(step)
    with fuzz_compile.arithmetic(False):
        assert seen(compiled) == seen(step)
    return compiled


@pytest.mark.parametrize(
    "write",
    [
        "y.view(-1)[1] = 0",
        "y.view(-1)[1:4] = x[0]",
        "y[..., None][0] *= 2",
        "y.unbind(1)[2][:] = 1",
        "y.t().narrow(0, 1, 2)[0] += x[:, 0]",
        "y[0:][0][int(x.argmax()) % 3] = 0",
        "y.view(-1)[int(x.argmax())], y.t()[0] = 4, 5",
    ],
)
def test_items_of_views_are_written_to(write):
    """Found by fuzz_recipes, seeds 3000556 and 3000680: they were taken for writes to objects, which Python does at the end."""
    scope = {}
    exec(f"def step(x):\n    y = x + 1\n    {write}\n    return y * 2", scope)
    compared(scope["step"], [])


def test_items_of_tensors_in_a_list_of_the_outside():
    """Found by fuzz_training, seed 3003469."""

    def seen(compiled):
        kept, results = [genesis.zeros(3), genesis.ones(3)], []

        def step(x):
            kept[-1][0] = x[0, 1]
            y = sum(kept) - x[0]
            kept[len(kept) - 2][1] += x[1, 1]
            return y

        run = genesis.compile(step, fullgraph=True) if compiled else step
        for call in range(5):
            results += [run(genesis.arange(6.0).reshape(2, 3) * call).tolist(), *[t.tolist() for t in kept]]
        return results

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


def test_statements_that_share_a_line():
    """A queue that moves on: the write to the tensor was taken for Python's, as the line has one of those."""
    name, source = (
        "<a queue>",
        (
            "def step(x):\n    k = at[0]; queue[k : k + 2] = x; at[0] = (k + 2) % 4; box.n += 1.5\n    return queue.mean(0)\n"
        ),
    )
    linecache.cache[name] = len(source), None, source.splitlines(True), name

    def seen(compiled):
        scope = {"queue": genesis.zeros(4, 3), "at": [0], "box": SimpleNamespace(n=0.0)}
        exec(compile(source, name, "exec"), scope)
        run, results = genesis.compile(scope["step"]) if compiled else scope["step"], []
        for call in range(6):
            results += [run(genesis.arange(6.0).reshape(2, 3) * (call + 1)).tolist(), scope["queue"].tolist()]
            results += [[*scope["at"]], scope["box"].n]
        return results

    with fuzz_compile.arithmetic(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it runs as it is, as the position is read and changed
        assert seen(True) == seen(False)


def test_attributes_that_are_set_by_name():
    def seen(compiled):
        box = SimpleNamespace(n=1.0, last=genesis.zeros(3))

        def step(x):
            y = x * 2
            setattr(box, "n", box.n + 1)  # noqa: B010
            setattr(box, "last", x[0])  # noqa: B010
            return y * box.n + box.last

        run = genesis.compile(step) if compiled else step
        return [(run(genesis.arange(6.0).reshape(2, 3) * k).tolist(), box.n, box.last.tolist()) for k in range(5)]

    with fuzz_compile.arithmetic(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it runs as it is
        assert seen(True) == seen(False)


LOG = []


@pytest.mark.parametrize("way", ["an item", "a view", "in a dictionary", "in place", "an argument"])
def test_tensors_that_are_written_to_by_what_python_computes(way):
    """Python writes at the end of the call, behind what is computed of them."""

    def step(x):
        y = x + 1
        seen, named = y.view(-1), {"y": y}
        LOG.append(y.sum().item())
        if way == "an item":
            y[len(LOG) % 2] = LOG[-1]
        elif way == "a view":
            y.view(-1)[len(LOG) % 2] = LOG[-1]
        elif way == "in a dictionary":
            named["y"][0] = LOG[-1]
        elif way == "in place":
            y += LOG[-1]
        else:
            x[0] = LOG[-1]
        return seen * 2 + x.view(-1)

    with pytest.warns(UserWarning, match="is written to at .*, by what Python computes"):
        compared(step, LOG)


@pytest.mark.parametrize("way", ["a call", "an item", "a division", "suppressed"])
def test_errors_that_are_caught_and_do_not_come_at_each_call(way):
    """Found by fuzz_recipes, seed 3000721: what Python does was done behind the ``try``."""
    log, table = [], {1: 0, 2: 0, 4: 0}

    def fails():
        log.append(1)
        if len(log) == 3:
            raise LookupError

    def step(x):
        y = x + 1
        if way == "suppressed":
            with suppress(LookupError):
                fails()
                y.mul_(2)
            return y
        try:
            if way == "a call":
                fails()
            elif way == "an item":
                log.append(1)
                log[0] = table[len(log)]
            else:
                log.append(len(log))
                log[0] = 1 // (len(log) - 3)
        except (LookupError, ZeroDivisionError):
            y.mul_(3)
        return y

    with pytest.warns(UserWarning, match="is not compiled, it runs as it is"):
        compared(step, log)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("first", [False, True])
def test_memory_of_arguments_that_cannot_be_written_to(first):
    def step(x, y):
        return x.add_(y)

    compiled, y = genesis.compile(step), genesis.tensor([[1.0], [2.0]]).expand(2, 3)
    numbers = np.ones((2, 3), np.float32)
    numbers.flags.writeable = False
    for _ in range(0 if first else 3):
        assert compiled(genesis.ones(2, 3), y).tolist() == [[2.0] * 3, [3.0] * 3]
    for given in (genesis.from_numpy(numbers), genesis.ones(1, 3).expand(2, 3)):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the memory cannot be written to"):
                compiled(given, y)
        assert (given == 1).all()
        with pytest.raises(RuntimeError, match="cannot be written to|laid out otherwise"):
            genesis.jit.trace(step, genesis.ones(2, 3), y).replay(given, y)
    assert compiled(genesis.ones(2, 3), y).tolist() == [[2.0] * 3, [3.0] * 3]


@pytest.mark.parametrize("refused", [False, True])
def test_a_trace_counts_no_writes(refused, recwarn):
    """A trace counts none, whether it becomes a graph or not; a graph writes to each memory once."""
    w, copied, p = genesis.ones(3), genesis.zeros(2), genesis.nn.Parameter(genesis.ones(2))
    view, optimizer = w[1:], genesis.optim.SGD([p], lr=0.1)

    def step(x):
        w.add_(1)
        (view if refused else w[1:]).mul_(2)
        copied.copy_(x[:2])
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        return w._version if refused else w * 1

    compiled = genesis.compile(step)
    for call in range(1, 4):
        compiled(genesis.ones(3))
        both = call * (2 if refused else 1)
        assert [x._version for x in (w, view, copied, p)] == [both, both, call, call]
    assert bool(recwarn) is refused
