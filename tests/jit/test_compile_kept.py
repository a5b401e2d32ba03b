"""Tensors that a compiled function keeps, and what it returns, share memory as they do in calls as they are."""

import linecache
import warnings

import pytest

import genesis
from genesis.testing import fuzz_compile

STATE = """
w = genesis.arange(12.0).reshape(3, 4).cos().requires_grad_()
kept, named, losses = [None, None], {}, []
"""
BODIES = [
    "v = x * 2; kept[0] = v; return v",
    "v = x * 2; kept[0] = v; kept[1] = v; return x * 3",
    "v = x * 2; kept[0] = v[0]; kept[1] = v; return v",
    "v = w * x; kept[0] = v.detach(); return v",
    "v = w * x; kept[0] = v.detach(); return v * 2, v",
    "v = w * x; kept[0] = v.detach(); u = v * 2; return u.detach(), v.detach()",
    "v = w * x; kept[0] = v.detach(); v.sum().backward(); return v",
    "v = w * x; v.sum().backward(); kept[0] = v; return v",
    "v = w * x; v.sum().backward(); kept[0] = v; kept[1] = v.detach(); return x * 2",
    "v = w * x; v.sum().backward(); kept[0] = v; u = x * 2; return u, v.detach()",
    "v = w * x; named['v'] = v.detach(); kept[0] = v.detach(); return x * 2",
    "v = x.detach(); kept[0] = v; return x * 2, x",
    "v = x * 2; losses.append(float(v.sum())); kept[0] = v.clone(); return v",
    "v = x * 2; u = v[0]; kept[0] = u; return v",
    "v = x * 2; u = v[0]; kept[0] = v; return u",
    "v = x * 2; kept[0] = v.detach(); v.add_(1); return v",
]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("body", BODIES)
def test_kept_tensors_and_results_share_memory(body, native, recwarn):
    def seen(compiled):
        scope, results = {"genesis": genesis}, []
        exec(STATE, scope)
        source, name = "def step(x):\n    " + body.replace("; ", "\n    "), f"<{body}>"
        linecache.cache[name] = len(source), None, source.splitlines(True), name  # statements are read there
        exec(compile(source, name, "exec"), scope)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        for call in range(4):
            x = genesis.arange(12.0).reshape(3, 4) + call
            returned = step(x)
            with genesis.no_grad():
                x.add_(0.25)
                for y in returned if isinstance(returned, tuple) else (returned,):
                    y.mul_(2)
                kept = [*scope["kept"], *scope["named"].values()]
                results.append([(t.tolist(), t.requires_grad) for t in [x, *kept] if t is not None])
                for t in kept:
                    _ = t is None or t.detach().add_(1)
                results += [y.tolist() for y in (returned if isinstance(returned, tuple) else (returned,))]
        return results, step

    with fuzz_compile.arithmetic(native):
        (expected, _), (actual, step) = seen(False), seen(True)
    assert fuzz_compile.equal(actual, expected, exactly=not native)
    assert step._recent, recwarn.list


@pytest.mark.parametrize("line", ["v = x.t() @ kept[0]", "v = kept[0] @ x.t()", "v = kept[0] * 2; v[0] = 1.0"])
def test_what_is_computed_of_what_was_kept(line, recwarn):
    def seen(compiled):
        scope = {"genesis": genesis, "kept": [None]}
        source, name = (
            "def step(x):\n    kept[0] = x * 0.5\n    " + line.replace("; ", "\n    ") + "\n    return v, x * 3",
            f"<{line}>",
        )
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        exec(compile(source, name, "exec"), scope)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        return [[y.tolist() for y in step(genesis.arange(9.0).reshape(3, 3) + call)] for call in range(4)]

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)
    assert not [w for w in recwarn if "TypeError" in str(w.message)]


@pytest.mark.parametrize("behind", ["if total.sum() > 0: total.add_(1)", "(w**2).sum().backward(create_graph=True)"])
def test_what_python_does_is_done_once_and_histories_stay(behind):
    """Found by fuzz_compile, seeds 702640 and 703295: Python decides otherwise behind what it did; a call is replayed."""

    def seen(compiled):
        w = genesis.arange(3.0, requires_grad=True)
        scope = {"genesis": genesis, "w": w, "log": [], "total": genesis.zeros(3)}
        lines = ["y = (w * x).exp()", "log.append(w.sum().item())" if "if" in behind else "(x * y).sum().backward()"]
        source = "\n    ".join(["def step(x):", *lines, behind, "return y * 2, y"])
        linecache.cache[f"<{behind}>"] = len(source), None, source.splitlines(True), f"<{behind}>"
        exec(compile(source, f"<{behind}>", "exec"), scope)
        step, results = genesis.compile(scope["step"]) if compiled else scope["step"], []
        for call in range(6):
            scope["total"].add_(call == 3)
            returned = step(genesis.full((3,), 0.5))
            results += [[y.requires_grad for y in returned], len(scope["log"]), scope["total"].tolist()]
        return results

    with warnings.catch_warnings(), fuzz_compile.arithmetic(False):
        warnings.simplefilter("ignore")
        assert seen(True) == seen(False)
