"""A differentiation rule on trial: its gradients at a point, and whether differences agree with them.

`Trial` holds the calls, a random generator of its own, and the point that everything is measured at. `Trial.judge`
compares the gradient of one input with differences: along random directions first, element by element only where those
disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.autograd.checking.calls import Calls, Pull, Run, held_tensors, watch
from genesis.autograd.checking.diagnose import diagnose
from genesis.autograd.checking.differences import (
    DOUBLE,
    SINGLE,
    Array,
    Column,
    Precision,
    column,
    inner,
    is_kink,
    one_sided,
    slope,
)
from genesis.autograd.checking.evidence import Diagnosis, Evidence, wrong_elements
from genesis.base.errors import ArgumentError, message
from genesis.core.functions.function import FunctionCtx
from genesis.core.graph.tensor import wrap


@dataclass(slots=True)
class Measured:
    """The gradients of one call: what arrived, what backward returned (whatever its shape), and how backward behaved."""

    gradients: list[Array | None]
    returned: list[Any]  # tensors, in the order of the inputs, where one Function made the result
    pulls: list[Pull]
    error: Exception | None = None


@dataclass(slots=True)
class Verdict:
    """Whether differences agree; the kinks among the elements, and what is wrong."""

    agrees: bool
    kinks: list[int] = field(default_factory=list)
    diagnosis: Diagnosis | None = None
    known: bool = True  # False: the function gave nan or inf, nothing can be said


class Trial:
    """The rule, the point, the weights of the outputs (``seed`` decides them), and the gradients there."""

    def __init__(self, calls: Calls, seed: int = 0, refuse: Callable[[str], Exception] | None = None) -> None:
        self.calls, self.names = calls, calls.names
        self.rng = np.random.Generator(np.random.Philox(seed))
        self.precision: Precision = DOUBLE
        self.dtype: Any = None
        self.wrong: set[int] = set()  # the inputs whose gradients were found to be wrong
        run = self._first()
        self.shapes = [tuple(y.shape) for y in run.outs]
        self.kinds = [y._array.dtype.kind for y in run.outs]
        self.live = [y.requires_grad for y in run.outs]
        if not run.outs:
            words = f"{calls.name} returned no floating or complex tensor"
            raise ArgumentError(message("verify", words)) if refuse is None else refuse(words)
        self.move_to(calls.arrays)

    def _first(self) -> Run:
        """In double precision; a function that insists on float32 gets that, and coarser differences."""
        try:
            run = self.calls.probe()
        except (TypeError, RuntimeError, ValueError):
            self.dtype, self.precision = np.float32, SINGLE
            try:
                run = self.run()
            except (TypeError, RuntimeError, ValueError):
                self.dtype = None
                return self.calls.probe()  # for its error
        if any(y._array.dtype.itemsize < (16 if y.is_complex() else 8) for y in run.outs):
            self.precision = SINGLE
        return run

    def move_to(self, arrays: Sequence[Array]) -> None:
        """Measure at another point from now on."""
        self.arrays = list(arrays)
        self.weights = self.draw()
        self.base = self.measure()
        if self.precision is DOUBLE and self._rounds():
            self.precision = SINGLE

    def _rounds(self) -> bool:
        """Whether the values stay when inputs move by 1e-10: something inside computes in float32."""
        if not any(g is not None and np.any(np.abs(g) > 1e-3) for g in self.base.gradients):
            return False
        near = [x + 1e-10 * np.maximum(np.abs(x), 1e-2) for x in self.arrays]
        a, b = self.values(self.arrays), self.values(near)
        return a.size > 0 and a.shape == b.shape and np.array_equal(a, b)

    def run(self, arrays: Sequence[Array] | None = None, **options: Any) -> Run:
        return self.calls(arrays, **{"dtype": self.dtype, **options})

    def values(self, arrays: Sequence[Array]) -> Array:
        """All outputs, flat, in double precision."""
        parts = [y.detach().numpy_view().reshape(-1) for y in self.run(arrays).outs]
        return np.concatenate([p.astype(np.complex128 if p.dtype.kind == "c" else np.float64) for p in parts])

    def draw(self) -> Array:
        """Random weights of both signs for all outputs, flat; zero for those that carry no gradient."""
        parts = []
        for shape, kind, live in zip(self.shapes, self.kinds, self.live, strict=True):
            parts.append(
                self.direction(np.zeros(shape, np.complex128 if kind == "c" else np.float64)).reshape(-1) * live
            )
        return np.concatenate(parts)

    def direction(self, like: Array, signs: Array | None = None) -> Array:
        """A random array away from zero, of both signs or of those given."""
        chosen = self.rng.choice([-1.0, 1.0], like.shape) if signs is None else signs
        real = self.rng.uniform(0.5, 1.5, like.shape) * chosen
        return np.asarray(
            real + 1j * self.rng.uniform(0.5, 1.5, like.shape) * self.rng.choice([-1.0, 1.0], like.shape)
            if like.dtype.kind == "c"
            else real
        )

    def seeds(self, weights: Array | None = None) -> list[Array]:
        """Flat weights as one grad_output for each output."""
        ends = np.cumsum([int(np.prod(s)) for s in self.shapes])[:-1]
        parts = np.split(self.weights if weights is None else weights, ends)
        return [
            (p if kind == "c" else p.real).reshape(s) for p, s, kind in zip(parts, self.shapes, self.kinds, strict=True)
        ]

    def measure(self, arrays: Sequence[Array] | None = None, weights: Array | None = None, **options: Any) -> Measured:
        """The gradients at ``arrays``, and what each backward did."""
        run = self.run(self.arrays if arrays is None else arrays, **options)
        return self.pulled(run, self.seeds(weights))

    def pulled(self, run: Run, seeds: Sequence[Any], prepare: Callable[[FunctionCtx], None] | None = None) -> Measured:
        """The gradients of a run."""
        pulls: list[Pull] = []
        nodes = run.nodes()
        for node in nodes:
            if prepare is not None:
                prepare(node)
            watch(node, pulls)
        try:
            gradients = run.grads(seeds)
        except Exception as error:  # a rule can fail in any way
            return Measured([None] * len(run.inputs), _returned(run, nodes, pulls), pulls, error)
        return Measured(gradients, _returned(run, nodes, pulls), pulls)

    def gradient(self, k: int, weights: Array | None = None, arrays: Sequence[Array] | None = None) -> Array | None:
        """One input's gradient, or None where backward fails."""
        return self.measure(arrays, weights).gradients[k]

    # ---- is it right?

    def along(self, arrays: Sequence[Array], position: int, d: Array, weights: Array) -> tuple[float, float]:
        """The derivative of the weighted outputs along a direction of one input, by differences."""
        moved = lambda s: [x + s * d if k == position else x for k, x in enumerate(arrays)]  # noqa: E731
        scale = max(1.0, float(np.median(np.abs(arrays[position]))) if arrays[position].size else 1.0)
        return slope(lambda s: float(inner(weights, self.values(moved(s)))), self.precision, scale)

    def judge(self, position: int, arrays: Sequence[Array], measured: Measured, weights: Array) -> Verdict:
        """Compare one input's gradient with differences."""
        g, x = measured.gradients[position], arrays[position]
        if measured.error is None:
            gradient = np.zeros_like(x) if g is None else g
            outcomes = [self._agrees(arrays, position, gradient, weights, i) for i in range(3)]
            if None in outcomes:
                return Verdict(True, known=False)
            if all(outcomes):
                return Verdict(True)
        return self.examine(position, arrays, measured, weights)

    def _agrees(self, arrays: Sequence[Array], position: int, g: Array, weights: Array, trial: int) -> bool | None:
        d = self.direction(arrays[position], np.where(g.real < 0, -1.0, 1.0) if trial == 0 else None)
        numeric, error = self.along(arrays, position, d, weights)
        if not np.isfinite(numeric) or not np.all(np.isfinite(g)):
            return None if not np.isfinite(numeric) else False
        terms = np.conj(d) * g
        size = float(np.sqrt((np.abs(terms) ** 2).sum()))
        tolerance = self.precision.rtol * max(size, abs(numeric)) + error + 1e-10
        if error > 0.01 * max(size, abs(numeric)) + 1e-6:  # something is not smooth here: look closer
            return False
        return bool(abs(float(terms.sum().real) - numeric) <= tolerance)

    def examine(self, position: int, arrays: Sequence[Array], measured: Measured, weights: Array) -> Verdict:
        """Element by element: kinks are told from errors, and errors are put into words."""
        col = column(self.values, arrays, position, self.precision)
        numeric, g, x = col.gradient(weights), measured.gradients[position], arrays[position]
        kinks: list[int] = []
        if measured.error is None:
            given = np.zeros_like(x) if g is None else g
            wrong = wrong_elements(given, numeric, 1e-5 if self.precision is DOUBLE else 2 * self.precision.rtol)
            at_kinks, outside = self.kinks(arrays, position, given, wrong, weights)
            wrong.reshape(-1)[at_kinks] = False
            kinks = [i for i in at_kinks if i not in outside]
            if outside:
                i = outside[0]
                return Verdict(
                    False,
                    kinks,
                    Diagnosis(
                        "kink",
                        f"the gradient of `{self.names[position]}` at the kink {x.reshape(-1)[i]:.6g} is "
                        f"{given.reshape(-1)[i]:.6g}, which is not between the slopes of the two sides",
                        "return a slope between them",
                    ),
                )
            if not wrong.any():
                return Verdict(True, kinks)
        numeric = numeric.copy()
        numeric.reshape(-1)[kinks] = np.nan
        return Verdict(False, kinks, self.diagnosis(position, arrays, measured, weights, col, numeric))

    def kinks(
        self, arrays: Sequence[Array], position: int, g: Array, wrong: Array, weights: Array
    ) -> tuple[list[int], list[int]]:
        """Of the wrong elements, those at kinks; and those of them whose gradient is not a slope between both sides."""
        at, outside = [], []
        if arrays[position].dtype.kind == "c" or self.precision is SINGLE:
            return [], []
        for i in np.flatnonzero(wrong)[:64]:
            left, right = one_sided(self.values, arrays, position, int(i), weights, self.precision)
            if is_kink(left, right):
                at.append(int(i))
                low, high = sorted((left, right))
                slack = 1e-4 * (abs(low) + abs(high)) + 1e-6
                if np.isfinite(low + high) and not low - slack <= g.reshape(-1)[i] <= high + slack:
                    outside.append(int(i))
        return at, outside

    def diagnosis(
        self, position: int, arrays: Sequence[Array], measured: Measured, weights: Array, col: Column, numeric: Array
    ) -> Diagnosis:
        """What is wrong with one input's gradient, from everything that can be known about it."""
        returned = measured.returned[position]
        others = [
            numeric if k == position else column(self.values, arrays, k, self.precision).gradient(weights)
            for k in range(len(arrays))
        ]
        outs = [y.detach().numpy_view() for y in self.run(arrays).outs]
        evidence = Evidence(
            name=self.names[position],
            x=arrays[position],
            numeric=numeric,
            analytic=measured.gradients[position],
            returned=None if returned is None else returned.detach().numpy_view(),
            column=col,
            weights=weights,
            shapes=self.shapes,
            inputs=list(zip(self.names, arrays, others, strict=True)),
            outs=outs,
            position=position,
            error=measured.error is not None,
            everything=[None if r is None else r.detach().numpy_view() for p in measured.pulls for r in p.returned],
            again=self.gradient(position, -100 * weights, arrays),
            nothing=self.gradient(position, 0 * weights, arrays),
            repairs=list(self.repairs(position, arrays, weights)),
        )
        return diagnose(evidence)

    def repairs(
        self, position: int, arrays: Sequence[Array], weights: Array
    ) -> Iterator[tuple[Diagnosis, Callable[[], Array | None]]]:
        """Backward again, with one held tensor exchanged for an input or an output."""
        run = self.run(arrays)
        nodes = run.nodes()
        if self.calls.owner is None or len(nodes) != 1:
            return
        outs = [
            ("the output" if len(run.outs) == 1 else f"output {i}", y.detach().numpy_view())
            for i, y in enumerate(run.outs)
        ]
        inputs = [(f"`{name}`", x) for name, x in zip(self.names, arrays, strict=True)]
        for slot, held in enumerate(held_tensors(nodes[0])):
            now = held._array
            what = next((n for n, v in outs + inputs if v.shape == now.shape and np.array_equal(v, now)), None)
            for name, value in inputs + outs:
                if value.shape == now.shape and name != what:
                    yield (
                        self._exchange(slot, what, name, inputs),
                        lambda s=slot, v=value: self._with_saved(position, arrays, weights, s, v),
                    )

    def _exchange(self, slot: int, what: str | None, name: str, inputs: list[Any]) -> Diagnosis:
        x, repair = self.names, f"save {name} there: the gradient is right then"
        if what is None:
            return Diagnosis(
                "stale",
                f"backward uses a changed value of {name}: what it saved (tensor {slot}) is not what forward used",
                repair,
            )
        belongs = (
            "the output where the input belongs"
            if "output" in what and name.strip("`") in x
            else f"{what} where {name} belongs"
        )
        return Diagnosis(
            "saved_output" if "output" in what or "output" in name else "saved_wrong",
            f"backward uses {belongs} (saved tensor {slot})",
            repair,
        )

    def _with_saved(
        self, position: int, arrays: Sequence[Array], weights: Array, slot: int, value: Array
    ) -> Array | None:
        def exchange(node: FunctionCtx) -> None:
            old, new = held_tensors(node)[slot], wrap(value.astype(held_tensors(node)[slot]._array.dtype))
            node._saved = tuple([new if t is old else t for t in node._saved])
            for leaves, *_ in (node._held or {}).values():
                leaves[:] = [new if t is old else t for t in leaves]
            for key, item in vars(node).items():
                if item is old:
                    setattr(node, key, new)

        return self.pulled(self.run(arrays), self.seeds(weights), exchange).gradients[position]


def _returned(run: Run, nodes: list[FunctionCtx], pulls: list[Pull]) -> list[Any]:
    """What one Function's backward returned for each input, before the engine looked at it."""
    if len(nodes) != 1 or len(pulls) != 1:
        return [None] * len(run.inputs)
    indices = {id(edge): i for i, edge in enumerate(nodes[0]._edges) if edge is not None}
    given = pulls[0].returned
    return [given[indices[id(e)]] if id(e) in indices and indices[id(e)] < len(given) else None for e in run.edges]
