"""How many floating-point operations a program makes: those of products and convolutions, forward and backward.

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    counter.get_total_flops()

A multiplication and the addition of its product count as two.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import genesis
from genesis.core.graph.engine import current
from genesis.core.graph.modes import closed, interception, opened
from genesis.core.graph.switches import ACTIVE
from genesis.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from genesis.utils.aten import own, packet


def _matmul(arrays: Sequence[Any], out: Any) -> int:
    return 2 * math.prod(out.shape) * int(arrays[0].shape[-1])


def _matmul_tn(arrays: Sequence[Any], out: Any) -> int:
    return 2 * math.prod(out.shape) * int(arrays[0].shape[-2])


def _linear(arrays: Sequence[Any], out: Any) -> int:
    return _matmul(arrays, out)


def _convolution(arrays: Sequence[Any], out: Any) -> int:
    x, weight, transposed = arrays[0], arrays[1], arrays[6]
    positions = (x if transposed else out).shape
    return 2 * int(positions[0]) * math.prod(positions[2:]) * math.prod(weight.shape)


def _convolution_weight(arrays: Sequence[Any], out: Any) -> int:
    g = arrays[1]
    return 2 * int(g.shape[0]) * math.prod(g.shape[2:]) * math.prod(out.shape)


def _einsum(arrays: Sequence[Any], out: Any) -> int:
    """A product of matrices for each operand after the first, which sums over what is in no later one."""
    operands, terms, result = arrays
    sizes = {label: n for a, term in zip(operands, terms, strict=True) for label, n in zip(term, a.shape, strict=True)}
    count, left = 0, set(terms[0])
    for i, term in enumerate(terms[1:], 1):
        every, later = left | set(term), set(result).union(*terms[i + 1 :])
        count += 2 * math.prod([sizes[label] for label in every]) if every - later else 0
        left = every & later
    return count


FORMULAS: dict[str, Callable[[Sequence[Any], Any], int]] = {
    "matmul": _matmul, "matmul_tn": _matmul_tn, "linear": _linear, "convolution": _convolution,
    "convolution_weight": _convolution_weight, "einsum_terms": _einsum,
}  # fmt: skip


_BUILT_IN = len(FORMULAS)


def key_of(op: Any, arrays: Sequence[Any]) -> Any:
    """The operation by which a primitive is counted, as PyTorch has it."""
    if op.name in ("matmul", "matmul_tn"):
        dims = [a.ndim for a in arrays[:2]]
        return packet("mm" if dims == [2, 2] else "mv" if dims == [2, 1] else "dot" if dims == [1, 1] else "bmm")
    if op.name == "linear":
        return packet("mm" if arrays[2] is None else "addmm")
    if op.name == "convolution_weight" or (op.name == "convolution" and current() is not None):
        return packet("convolution_backward")
    if op.name == "einsum_terms":
        return packet("bmm")
    return packet(op.name) if hasattr(genesis, op.name) or op.name == "convolution" else own(op.name)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """How many operations an op makes: decorate ``formula(*shapes of its tensors, out_shape=...)``.

    >>> import genesis
    >>> from genesis.debug.flop_counter import FlopCounterMode, register_flop_formula
    >>> @register_flop_formula("expm1")
    ... def _(x_shape, out_shape=None, **kwargs): return 10 * x_shape[0]
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = genesis.ones(3).expm1()
    >>> counter.get_total_flops()
    30
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        def flops(arrays: Sequence[Any], out: Any) -> int:
            shapes = [tuple(a.shape) for a in arrays if hasattr(a, "shape")]
            return formula(*shapes, out_shape=tuple(out.shape))

        for target in targets if isinstance(targets, list | tuple) else [targets]:
            FORMULAS[getattr(target, "__name__", target)] = flops
        return formula

    return register


class FlopCounterMode:
    """Counts the operations of what runs inside, in all and by the modules whose forward they are part of.

    Args:
        depth: of modules in the table; display: print it at the end
        custom_mapping: formulas by operation (``torch.ops.aten.mm``) or the name of one, as of `register_flop_formula`

    >>> import genesis
    >>> from genesis.debug.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = genesis.ones(2, 3) @ genesis.ones(3, 4)
    >>> counter.get_total_flops(), counter.get_flop_counts()
    (48, {'Global': {<OpOverloadPacket(op='aten.mm')>: 48}})
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._formulas = dict(FORMULAS)
        for target, formula in (custom_mapping or {}).items():
            self._formulas[getattr(target, "__name__", target)] = lambda arrays, out, f=formula: f(
                *[tuple(a.shape) for a in arrays if hasattr(a, "shape")], out_shape=tuple(out.shape)
            )
        self._others = len(self._formulas) > _BUILT_IN  # those of programs may have names of PyTorch's
        self._inside: list[tuple[Any, str]] = []
        self._handles: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        ACTIVE.append(self)
        opened(interception, self._between)
        self._handles = [register_module_forward_pre_hook(self._begins), register_module_forward_hook(self._ends)]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        closed(interception, self._between)
        ACTIVE.pop()
        self._inside.clear()
        if self.display:
            print(self.get_table())

    def _begins(self, module: Any, args: Any) -> None:
        name = type(module).__name__
        if self._inside:
            parent, path = self._inside[-1]
            known = [child for child, m in parent.named_children() if m is module]
            name = f"{path}.{known[0]}" if known else f"{path}.{name}"
        self._inside.append((module, name))

    def _ends(self, module: Any, args: Any, result: Any) -> None:
        while self._inside and self._inside.pop()[0] is not module:  # one that failed has not ended
            pass

    def _between(self, op: Any, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        result = run()
        if op.name not in self._formulas and not self._others:
            return result
        key = key_of(op, arrays)
        formula = self._formulas.get(key.__name__) or self._formulas.get(op.name)
        if formula is not None and hasattr(result, "shape"):
            count = int(formula(arrays, result))
            for name in ("Global", *dict.fromkeys([path for _, path in self._inside])):
                self.flop_counts[name][key] += count
        return result

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table of modules down to a depth."""
        depth, total = self.depth if depth is None else depth, max(self.get_total_flops(), 1)
        lines = [("Module", "FLOP", "% Total")]
        for name, counts in self.flop_counts.items():
            if name == "Global" or name.count(".") < depth:
                every = sum(counts.values())
                lines.append((name, f"{every:,}", f"{100 * every / total:.2f}%"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)


__all__ = ["FlopCounterMode", "register_flop_formula"]
