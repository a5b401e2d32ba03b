"""Every op on inputs of any layout, size, value and dtype, in Genesis and in PyTorch: the same results and gradients.

    python -m genesis.testing.fuzz_ops --programs 2000 --seed 0

A call is a sample of an op, changed: its sizes, some of its values, the memory that its tensors lie in, their dtypes and
its options. It is made as a function, a method, in place or with ``out=``, which may be or overlap one of the operands; a
compiled loop takes what is small, too. Outcomes are those of `fuzz_pytorch`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import genesis
from genesis.base import dtypes
from genesis.core.call.op import REGISTRY, Op
from genesis.core.graph.tensor import Tensor, wrap
from genesis.kernels.cpu import compiled
from genesis.testing.command_line import options
from genesis.testing.fuzz_ops_calls import TIES, Call, Memory, memories, written
from genesis.testing.fuzz_pytorch import quiet
from genesis.testing.tolerance import tolerance

Outcome = tuple[str, str]

# ---- in both libraries


class Side:
    """One library's tensors of a call."""

    def __init__(self, lib: Any, call: Call, wide: bool = False) -> None:
        self.lib, self.wide = lib, wide
        self.roots: dict[int, Any] = {}
        self.leaves: list[Any] = []
        self.tensors: dict[int, Any] = {}
        every = [*memories(call.args), *memories(call.kwargs), *call.out]
        self.shared = Counter(id(r) for r in {id(m): m.root for m in every}.values())
        self.made = [(m, self.tensor(m)) for m in every]
        self.args, self.kwargs = self._given(call.args), self._given(call.kwargs)
        # PyTorch reads operands that it has written to: what is meant is what it gives where they lie apart
        apart = lib is not genesis
        self.out = [
            self._made(Memory(m.root.copy(), m.offset, m.shape, m.strides)) if apart else self.tensor(m)
            for m in call.out
        ]

    def _given(self, value: Any) -> Any:
        if isinstance(value, Memory):
            return self.tensor(value)
        if isinstance(value, list | tuple):
            return type(value)([self._given(v) for v in value])
        if isinstance(value, dict):
            return {k: self._given(v) for k, v in value.items()}
        if isinstance(value, dtypes.dtype) and self.lib is not genesis:
            return getattr(self.lib, value.name)
        return value

    def tensor(self, memory: Memory) -> Any:
        if id(memory) not in self.tensors:
            made = self.tensors[id(memory)] = self._made(memory)
            if memory.grad:
                made.requires_grad_()
                self.leaves.append(made)
        return self.tensors[id(memory)]

    def _made(self, memory: Memory) -> Any:
        plain = min(memory.strides, default=0) >= 0
        if self.shared[id(memory.root)] < 2 or not plain:
            root = memory.root.copy()
            if self.lib is genesis:
                return wrap(memory.array(root))
            return (
                self.foreign(root).as_strided(memory.shape, memory.strides, memory.offset)
                if plain
                else self.foreign(memory.array(root).copy())
            )
        base = self.roots.get(id(memory.root))
        if base is None:
            base = memory.root.copy()
            base = self.roots[id(memory.root)] = wrap(base) if self.lib is genesis else self.foreign(base)
        return base.as_strided(memory.shape, memory.strides, memory.offset)

    def foreign(self, array: Any) -> Any:
        if self.wide and dtypes.from_numpy(array.dtype).category >= 2:
            array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        if array.dtype == dtypes.bfloat16.np:
            return self.lib.from_numpy(np.atleast_1d(array).view(np.int16)).view(self.lib.bfloat16).reshape(array.shape)
        return self.lib.from_numpy(array)

    def call(self, call: Call) -> Any:
        if call.form == "function":
            return self.function(call.op)(*self.args, **self.kwargs)
        if call.form == "out":
            return self.function(call.op)(*self.args, **self.kwargs, out=self.out[0])
        name = (call.op.torch_name or call.op.name).rpartition(".")[2] + "_" * (call.form == "in place")
        return getattr(self.lib.Tensor, name)(*self.args, **self.kwargs)

    def function(self, op: Op) -> Callable[..., Any]:
        return op.call if self.lib is genesis else reference(op, self.lib)  # type: ignore[return-value]


def reference(op: Op, torch: Any) -> Callable[..., Any] | None:
    """PyTorch's function for an op."""
    name = op.torch_name if op.torch_name is not None else op.name
    for path in (name, "nn.functional." + name, "Tensor." + name):
        function = torch
        for part in path.split("."):
            function = getattr(function, part, None)
        if function is not None:
            return function  # type: ignore[no-any-return]
    return None


# Names that begin with these are not compared, each with its reason.
LEFT_OUT = {
    "dropout": "other random numbers",
    "alpha_dropout": "other random numbers",
    "feature_": "other random numbers",
    "empty_like": "any numbers",
    "geqrf": "its node refuses every backward in PyTorch",
    "ctc_loss": "reads beyond its inputs in PyTorch, where targets are too long",
    "as_strided": "of the memory behind a tensor, which lies in another way where steps are negative",
    "bucketize": "boundaries in no order",
    "searchsorted": "boundaries in no order",
    "pixel_unshuffle": "keeps the shape of what is empty in PyTorch",
    "cholesky_": "the half that is not read has a gradient in PyTorch, and the diagonal is taken for real",
    "multilabel_margin_loss": "any numbers of no rows, in PyTorch",
    "unique_consecutive": "gives more results in PyTorch where its options are not named",
    "linalg_lstsq": "its rank is 0 in PyTorch where there is no right side",
    "ormqr": "of reflections that are none, numbers of any size",
    "orgqr": "the same",
}
OTHER_SLOPES = (
    "binary_cross_entropy",
)  # of targets at 0 and 1: logarithms are cut off at -100 forward, but not backward


def compared_ops(torch: Any) -> list[Op]:
    """The ops that PyTorch has, but for those that draw."""
    return [
        op
        for _, op in sorted(REGISTRY.items())
        if op.torch_name != ""
        and not op.name.startswith(tuple(LEFT_OUT))
        and "polynomial" not in op.name
        and not op.kind.draws
        and reference(op, torch) is not None
    ]


def compare(call: Call, torch: Any) -> Outcome:
    """Make a call in both libraries."""
    kept, compiled.LARGE["elements"] = compiled.LARGE["elements"], 1 if call.small else compiled.LARGE["elements"]
    try:
        mine, theirs = Side(genesis, call), Side(torch, call)
        results, errors = zip(*[_tried(side, call) for side in (mine, theirs)], strict=True)
        if any(errors):
            kind = "refused" if all(errors) else "stricter" if errors[0] else "laxer"
            return kind, f"{errors[0] or errors[1]!r}"
        rtol = _loose(call)
        pairs = [_compared(call, _flat(r)) for r in results]
        if detail := _different(pairs[0], pairs[1], rtol):
            return ("nearer" if _exact(call, torch, pairs[0]) else "wrong"), detail
        after = [[t for m, t in side.made if not call.out] for side in (mine, theirs)]
        if detail := _different(after[0], after[1], rtol):
            return "wrong", f"an operand afterwards: {detail}"
        return _gradients(mine, theirs, results, call, torch)
    finally:
        compiled.LARGE["elements"] = kept


def _compared(call: Call, results: list[Any]) -> list[Any]:
    """Without the places of equals."""
    return results[: call.op.name != "argsort"] if call.op.name in TIES else results


def _exact(call: Call, torch: Any, mine: Sequence[Any]) -> bool:
    """Whether what was found is what PyTorch gives in float64."""
    side = Side(torch, call, wide=True)
    result, error = _tried(side, call)
    if error is not None or call.out:
        return False
    loose = _loose(call)
    return all(
        close(_array(a), _array(b).astype(_array(a).dtype), a.dtype, loose)
        for a, b in zip(mine, _compared(call, _flat(result)), strict=True)
        if hasattr(b, "detach")
    )


def _tried(side: Side, call: Call) -> tuple[Any, Exception | None]:
    try:
        return side.call(call), None
    except Exception as error:
        return None, error.with_traceback(None)


def _loose(call: Call) -> tuple[float, float]:
    operands = [m.root.dtype for m in (*memories(call.args), *memories(call.kwargs), *call.out)]
    tolerances = [tolerance(np.float32 if d.kind in "iub" else d) for d in operands]  # integers make float32
    return max([t[0] for t in tolerances], default=1e-9), max([t[1] for t in tolerances], default=1e-9)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [x for item in value for x in _flat(item)]
    return [value]


def _array(x: Any) -> Any:
    x = x.detach()
    if isinstance(x, Tensor):
        array = (x.to(dtypes.complex64) if x.dtype is dtypes.complex32 else x).numpy()
        return array.astype(np.float32) if x.dtype is dtypes.bfloat16 else array
    x = x.resolve_conj().resolve_neg()
    wide = {"torch.bfloat16": "float", "torch.complex32": "cfloat"}.get(str(x.dtype))  # which NumPy does not have
    return (x if wide is None else getattr(x, wide)()).numpy(force=True)


def _different(mine: Sequence[Any], theirs: Sequence[Any], loose: tuple[float, float]) -> str:
    if len(mine) != len(theirs):
        return f"{len(mine)} results, {len(theirs)} in PyTorch"
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if not hasattr(b, "detach"):
            if str(a).rpartition(".")[2] != str(b).rpartition(".")[2]:
                return f"{a}, {b} in PyTorch"
            continue
        if a.dtype.name != str(b.dtype).partition(".")[2]:
            return f"result {i}: {a.dtype}, {b.dtype} in PyTorch"
        if tuple(a.shape) != tuple(b.shape):
            return f"result {i}: shape {tuple(a.shape)}, {tuple(b.shape)} in PyTorch"
        x, y = _array(a), _array(b)
        if not close(x, y, a.dtype, loose):
            bad = np.argwhere(~np.isclose(x, y, loose[0], loose[1], equal_nan=True))
            index = tuple(bad[0].tolist()) if len(bad) else ()
            return f"result {i} at {index} of {x.shape}: {x[index]!r}, {y[index]!r} in PyTorch"
    return ""


def close(a: Any, b: Any, dtype: Any, loose: tuple[float, float]) -> bool:
    """Whether arrays agree to a tolerance relative to the largest number."""
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    rtol, atol = (max(x, y) for x, y in zip(loose, tolerance(dtype.np), strict=True))
    finite = b[np.isfinite(b)]
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(a, b, rtol, atol * max(1.0, float(np.max(np.abs(finite), initial=0.0))), equal_nan=True)
        )


def _gradients(mine: Side, others: Side, results: Any, call: Call, torch: Any) -> Outcome:
    outs = [
        (a, b) for a, b in zip(_flat(results[0]), _flat(results[1]), strict=True) if getattr(b, "requires_grad", False)
    ]
    if not outs or not all(a.requires_grad for a, _ in outs) or call.op.name in (*OTHER_SLOPES, *TIES):
        return "equal", ""
    finite = all([np.isfinite(_array(a)).all() for a, _ in outs])
    if not finite or (any(m.root.dtype.kind in "iub" for m in memories(call.args)) and call.op.kind.aligned):
        return "equal", ""  # PyTorch computes rules with integers in their own dtype
    rng = np.random.default_rng(0)
    seeds = [np.asarray(rng.integers(-2, 3, tuple(b.shape)) + 0.5) for _, b in outs]
    try:
        theirs = _pulled(others, [b for _, b in outs], seeds)
    except (RuntimeError, NotImplementedError) as error:
        return "backward refused", repr(error)
    gradients = _pulled(mine, [a for a, _ in outs], seeds)
    loose = tuple([10 * x for x in _loose(call)])
    if detail := _different(*_both(gradients, theirs), loose):  # type: ignore[arg-type]
        side = Side(torch, call, wide=True)
        exact = _pulled(side, [y for y in _flat(side.call(call)) if getattr(y, "requires_grad", False)], seeds)
        near = all(
            close(_array(a), _array(b).astype(_array(a).dtype), a.dtype, loose)  # type: ignore[arg-type]
            for a, b in zip(*_both(gradients, exact), strict=True)
        )
        return "nearer" if near else "wrong", f"gradient: {detail}"
    return "equal", ""


def _pulled(side: Side, outs: list[Any], seeds: list[Any]) -> Any:
    made = [
        wrap(s).to(y.dtype) if side.lib is genesis else side.lib.from_numpy(s).to(y.dtype)
        for s, y in zip(seeds, outs, strict=True)
    ]
    return side.lib.autograd.grad(outs, side.leaves, made, allow_unused=True)


def _both(mine: Any, theirs: Any) -> tuple[list[Any], list[Any]]:
    """Gradients that both have, or one of them and it is not zero."""
    pairs = []
    for a, b in zip(mine, theirs, strict=True):
        if a is not None or b is not None:
            zero = b.detach() * 0 if a is None else a.detach() * 0
            pairs.append((wrap(_array(zero)) if a is None else a, zero if b is None else b))
    return [a for a, _ in pairs], [b for _, b in pairs]


def fuzz(
    torch: Any, programs: int, seed: int = 0, kinds: Sequence[str] = ("wrong",), only: str = ""
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Compare ``programs`` calls: how many ended how, and those of ``kinds`` with their seeds."""
    counts: Counter[str] = Counter()
    differing = []
    ops = [op for op in compared_ops(torch) if op.name.startswith(only)]
    with quiet():
        for number in range(seed, seed + programs):
            call = written(number, ops)
            if call is None:
                continue
            try:
                kind, detail = compare(call, torch)
            except Exception as error:
                kind, detail = "wrong", repr(error)
            counts[kind] += 1
            if kind in kinds:
                differing.append((number, str(call), detail))
    return counts, differing


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many calls as asked for, print what differs."""
    kinds = {"nargs": "*", "default": ["wrong"], "help": "kinds of outcomes to print: wrong, stricter, laxer"}
    only = {"default": "", "help": "ops that begin with this"}
    asked = options("fuzz_ops", __doc__, arguments, 2000, show=kinds, only=only)
    import torch  # type: ignore[import-not-found, unused-ignore]

    counts, differing = fuzz(torch, asked.programs, asked.seed, asked.show, asked.only)
    for number, text, detail in differing:
        print(f"seed {number}: {text}\n  -> {detail}\n")
    print(f"calls {asked.programs} from seed {asked.seed}: {dict(counts)}")
    return bool(counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
