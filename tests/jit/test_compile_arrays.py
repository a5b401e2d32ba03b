"""Arrays of NumPy, lists and text that a compiled step makes of what it computes: Python makes them at each call."""

import linecache

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.base.pytree import tree_flatten
from genesis.kernels.llvm import loops
from genesis.nn import functional as F  # noqa: N812

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")

BODIES = [
    "return loss.item(), y.detach().numpy()",
    "return loss.item(), y.argmax(1).cpu().numpy()",
    "return {'loss': loss.item(), 'scores': y.detach().numpy(), 'more': [y.argmax(1).tolist(), 3]}",
    "return (loss.item(), [y.detach().numpy(), (x.numpy(), 1)])",
    "return y.detach(), y.detach().numpy()",
    "return loss.item(), model[0].weight.detach().numpy().copy()",
    "return loss.item(), model[0].weight.detach().numpy()",
    "return loss.item(), [row.detach().numpy() for row in y]",
    "return y.detach().numpy(), y.detach()[1:].numpy(), y.detach().T.numpy()",
    "return loss.item() + float(y.detach().numpy().sum())",
    "return loss.item(), scored(y, t)",
    "a = y.detach().numpy()\n    return loss.item(), a",
    "a = y.detach().clone().numpy()\n    a += 1\n    return y.detach() * 2, a",
    "right = (y.argmax(1).numpy() == t.numpy()).mean()\n    return loss.item(), right",
    "kept = []\n    for i in range(3):\n        kept.append(y[i].detach().numpy())\n    return loss.item(), kept",
    "with genesis.no_grad():\n        return loss.item(), y.numpy()",
    "text = f'{y.detach().numpy().sum():.2f}'\n    return loss.item(), text",
]
PLAIN = ["a = y.detach().numpy()\n    y.data.add_(1)\n    return loss.item(), a"]  # the array is seen to change


def scored(y, t):
    guess = y.detach().argmax(1).numpy()
    return float((guess == t.numpy()).sum())


def contents(x):
    if isinstance(x, genesis.Tensor | np.ndarray):
        return type(x).__name__, str(x.dtype), np.array(x.tolist(), np.float64)
    return type(x).__name__, "", x


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("body", [*BODIES, *PLAIN])
@pytest.mark.filterwarnings("ignore:compile")
def test_a_step_gives_arrays(body, trains):
    update = "    optimizer.zero_grad()\n    loss.backward()\n" + ("    optimizer.step()\n" if trains else "")
    text = f"def step(x, t):\n    y = model(x)\n    loss = F.cross_entropy(y, t)\n{update}    {body}\n"
    name = f"<a step that gives arrays {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    seen = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        scope = {"model": model, "genesis": genesis, "F": F, "scored": scored}
        scope["optimizer"] = genesis.optim.SGD(model.parameters(), 0.1)
        exec(compile(text, name, "exec"), scope)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        results = [step(genesis.randn(4, 3), genesis.tensor([0, 1, 2, 1])) for _ in range(4)]
        leaves = [
            tree_flatten(result)[0] for result in results
        ]  # an array may change in later calls, if it is a weight's
        memory = [[np.shares_memory(a, b) for a in result for b in result] for result in map(arrays, leaves)]
        seen.append(([contents(x) for result in leaves for x in result], memory, model[0].weight.tolist()))
    (expected, memory, weights), (actual, memory_too, weights_too) = seen
    assert memory == memory_too
    np.testing.assert_allclose(weights_too, weights, rtol=1e-4, atol=1e-6)
    for (kind, dtype, x), (kind_too, dtype_too, y) in zip(expected, actual, strict=True):
        assert (kind, dtype) == (kind_too, dtype_too)
        if isinstance(x, str):
            assert float(x) == pytest.approx(float(y), abs=0.02)
        else:
            np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)
    assert ("not compiled" in step.explain()) is (body in PLAIN)


def arrays(leaves):
    plain = [x.detach().numpy() if isinstance(x, genesis.Tensor) else x for x in leaves]
    return [x for x in plain if isinstance(x, np.ndarray)]
