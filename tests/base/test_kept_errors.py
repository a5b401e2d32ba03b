"""An error that a program keeps holds none of the tensors that the call had."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn
from genesis.base import kept_errors

pytestmark = pytest.mark.usefixtures("only_new_garbage")
Keep = Callable[[Any], Any]


def made(keep: Keep, *shape: int) -> Any:
    """A temporary of the program: the result of an operation, with history."""
    return keep(genesis.randn(*shape, requires_grad=True) * 2)


class Wide(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g[:1] * genesis.ones(7)


class Broken(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise genesis.base.errors.GraphError("mine")


def stale(keep: Keep) -> None:
    x = made(keep, 3)
    y = keep(x.exp())
    z = x * y
    y.add_(1)
    z.sum().backward()


def twice(keep: Keep) -> None:
    y = keep(made(keep, 3).exp().sum())
    y.backward()
    y.backward()


def product(x: Any) -> Any:
    return x @ genesis.ones(7, 2)


CASES: dict[str, Callable[[Keep], Any]] = {
    "add": lambda k: made(k, 3) + made(k, 4),
    "matmul": lambda k: made(k, 3, 4) @ made(k, 3, 4),
    "sum": lambda k: made(k, 3).sum(5),
    "softmax": lambda k: F.softmax(made(k, 3), 7),
    "layer_norm": lambda k: F.layer_norm(made(k, 3, 4), (5,)),
    "cross_entropy": lambda k: F.cross_entropy(made(k, 3, 4), k(genesis.tensor([1, 2, 9]))),
    "attention": lambda k: F.scaled_dot_product_attention(made(k, 2, 3, 4), made(k, 2, 3, 5), made(k, 2, 3, 5)),
    "gelu": lambda k: F.gelu(made(k, 3), approximate="no"),
    "cat": lambda k: genesis.cat([made(k, 3, 4), made(k, 3, 5, 2)]),
    "index": lambda k: made(k, 3)[7],
    "setitem": lambda k: made(k, 3).__setitem__(genesis.tensor([0, 9]), 1),
    "in place": lambda k: made(k, 3).add_(made(k, 4)),
    "out": lambda k: genesis.add(made(k, 3), made(k, 3), out=k(genesis.ones(3))),
    "view": lambda k: made(k, 3).view(7),
    "clone of too much": lambda k: made(k, 1).expand(2**50).clone(),
    "item": lambda k: made(k, 3).item(),
    "to": lambda k: made(k, 3).to("nowhere"),
    "backward of a wrong gradient": lambda k: k(Wide.apply(made(k, 3)).sum()).backward(),
    "backward that raises": lambda k: k(Broken.apply(made(k, 3)).sum()).backward(),
    "backward twice": twice,
    "backward after a write": stale,
    "grad": lambda k: genesis.autograd.grad(k(made(k, 3).sum()), [made(k, 4)]),
    "module": lambda k: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 4))(made(k, 2, 3)),
    "vmap": lambda k: genesis.vmap(product)(made(k, 2, 3)),
    "jvp": lambda k: genesis.func.jvp(product, (made(k, 2, 3),), (made(k, 2, 3),)),
    "jacrev": lambda k: genesis.func.jacrev(product)(made(k, 2, 3)),
    "checkpoint": lambda k: genesis.utils.checkpoint.checkpoint(product, made(k, 2, 3), use_reentrant=False),
    "trace": lambda k: genesis.jit.trace(product, made(k, 2, 3)),
    "optimizer": lambda k: genesis.optim.SGD([made(k, 3)], lr=0.1),
    "load_state_dict": lambda k: nn.Linear(3, 4).load_state_dict({"weight": made(k, 9, 9)}),
    "save": lambda k: genesis.save({"a": made(k, 3), "b": [made(k, 2), (i for i in ())]}, "x.safetensors"),
    "save to nowhere": lambda k: genesis.save({"a": made(k, 3), "b": [made(k, 2), object()]}, "/nowhere/x.safetensors"),
}  # fmt: skip


def caught(run: Callable[[], Any]) -> Exception:
    """What it raises, with the frames of this file emptied: a program's own variables are its own."""
    try:
        run()
    except Exception as error:
        found = error
    trace = found.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__ and trace.tb_frame is not sys._getframe():
            trace.tb_frame.clear()
        trace = trace.tb_next
    del run
    return found


@pytest.mark.parametrize("name", CASES)
def test_no_tensor_lives_through_an_error_that_is_kept(name: str) -> None:
    alive: list[weakref.ref[Any]] = []

    def keep(x: Any) -> Any:
        alive.extend((weakref.ref(x), weakref.ref(x._array)))
        return x

    error = caught(partial(CASES[name], keep))
    gc.collect()
    assert alive
    assert [ref() for ref in alive if ref() is not None] == []
    lines = []
    trace = error.__traceback__
    while trace is not None:
        lines.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert len(lines) > 1, "the lines of the traceback stay"


def test_the_next_error_empties_the_one_before_without_the_collector() -> None:
    gc.disable()
    try:
        x = genesis.ones(3) * 2
        ref = weakref.ref(x)
        kept = caught(partial(genesis.matmul, x, genesis.ones(4)))
        del x
        assert ref() is not None
        also = caught(lambda: genesis.ones(2) + genesis.ones(3))
        assert ref() is None
        assert kept is not also
    finally:
        gc.enable()


def test_frames_that_still_run_are_left_alone() -> None:
    seen = []

    class Watching(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(caught(lambda: x + genesis.ones(9)))
            gc.collect()
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(caught(lambda: g + genesis.ones(9)))
            gc.collect()
            return g * 2

    x = genesis.ones(3, requires_grad=True)
    Watching.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert len(seen) == 2


def test_functions_that_somebody_holds_keep_what_they_have_from_around_them() -> None:
    held: list[Callable[[], Any]] = []
    source = (
        "def outer(keep, value):\n    def inner(fail):\n        if fail:\n            raise GraphError('mine')\n     "
        "   return value\n"
        "    if keep:\n        held.append(inner)\n    inner(True)\n"
    )
    scope: dict[str, Any] = {"GraphError": genesis.base.errors.GraphError, "held": held}
    exec(compile(source, "<genesis of a test>", "exec"), scope)  # a file of the package
    for keep in (True, False):
        x = genesis.ones(3)
        ref = weakref.ref(x)
        kept = caught(partial(scope["outer"], keep, x))
        del x
        gc.collect()
        assert (ref() is not None) == keep
        assert kept.__traceback__ is not None
    assert held[0](False).tolist() == [1, 1, 1]


def test_the_failing_module_is_named_although_its_frame_is_empty() -> None:
    error = caught(lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 4))(genesis.ones(2, 3)))
    gc.collect()
    assert error.__notes__ == ["  in Sequential.1 (Linear)"]
    gc.collect()
    assert error.__notes__ == ["  in Sequential.1 (Linear)"]


def test_nothing_runs_at_collections_once_all_errors_are_emptied_or_gone() -> None:
    kept = caught(lambda: genesis.ones(2) + genesis.ones(3))
    caught(lambda: genesis.ones(2) + genesis.ones(3))
    gc.collect()
    gc.collect()
    assert kept.__traceback__ is not None
    assert kept_errors._at_collection not in gc.callbacks


def test_full_tracebacks_keep_their_variables() -> None:
    code = (
        "import gc, genesis\ntry: genesis.ones(2) + genesis.ones(3)\nexcept Exception as error: kept = "
        "error\ngc.collect()\ntrace = kept.__traceback__\n"
        "while trace.tb_next: trace = trace.tb_next\nprint(len(trace.tb_frame.f_locals) > 0)"
    )
    for full in ("1", "0"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "", "GENESIS_FULL_TRACEBACK": full},
        )
        assert done.stdout.strip() == str(full == "1")
