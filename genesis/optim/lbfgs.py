"""L-BFGS, with a line search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import expect_function, explain_all
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.convert import imag, real
from genesis.ops.creation.create import complex as from_parts
from genesis.ops.shapes.join import cat, stack
from genesis.optim.optimizer import Group, Optimizer
from genesis.optim.options import check_options, chosen, scalar, whole_number


class LBFGS(Optimizer):
    """Newton's method with an estimate of the curvature from the last steps (Nocedal and Wright 2006, 7.2).

    Args:
        max_iter: how many directions a step goes along
        max_eval: how often a step evaluates ``closure``, at most; None is 1.25 times ``max_iter``
        tolerance_grad: enough, where the largest gradient is not larger
        tolerance_change: enough, where the loss or all parameters change by less
        history_size: how many steps the curvature is known from
        line_search_fn: "strong_wolfe", or None to go ``lr`` far

    Raises:
        ValueError: several parameter groups

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.tensor([3.0, -2.0]))
    >>> optimizer = genesis.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - 1) ** 2 * genesis.tensor([1.0, 10.0])).sum(); loss.backward()
    ...     return loss
    >>> optimizer.step(closure), p.detach().round(decimals=3)
    (tensor(94., grad_fn=<SumBackward>), tensor([1., 1.]))
    """

    elementwise = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = whole_number("LBFGS", "max_iter", max_iter, 0) * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, chosen(locals()))
        self._params = self.param_groups[0]["params"]

    def add_param_group(self, param_group: Group) -> None:
        if self.param_groups:
            raise ArgumentValueError(message("LBFGS", "has one parameter group only, all options hold for all"))
        super().add_param_group(param_group)

    def check_group(self, group: Group) -> None:
        check_options("LBFGS", lr=group["lr"])
        for name in ("max_iter", "max_eval", "history_size"):
            whole_number("LBFGS", name, group[name], 0)
        for name in ("tolerance_grad", "tolerance_change"):
            check_options("LBFGS", **{name: abs(group[name]) if isinstance(group[name], int | float) else group[name]})
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentValueError(
                message("LBFGS", f"unknown line_search_fn {group['line_search_fn']!r}", hint="'strong_wolfe' or None")
            )

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return "func_evals", "n_iter"

    def state_shape(self, name: str, param: Tensor) -> None:
        return None

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Go along up to ``max_iter`` directions; ``closure`` evaluates the loss and its gradients, and returns it."""
        if closure is None:
            raise ArgumentError(message("LBFGS.step", "needs a closure that evaluates the loss again", hint="step(f)"))
        group, evaluate = self.param_groups[0], enable_grad()(expect_function("LBFGS.step", "closure", closure))
        state = self.state[self._params[0]]
        first = evaluate()
        loss, grad, evaluations = float(first), _flat_gradient(self._params), 1
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        iterations = 0
        while iterations < group["max_iter"] and not _largest(grad) <= group["tolerance_grad"]:
            iterations += 1
            direction = _next_direction(state, grad, group["history_size"])
            before, slope = loss, float(grad.dot(direction))
            state.update(d=direction, prev_loss=before, t=self._first_length(state, grad))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                point, used = self._search(evaluate, loss, grad, slope, group["max_eval"] - evaluations)
                loss, grad, state["t"] = point.loss, point.grad, point.t
            _move(self._params, direction, state["t"])
            if group["line_search_fn"] is None and iterations < group["max_iter"]:
                loss, grad, used = float(evaluate()), _flat_gradient(self._params), 1
            evaluations += used
            state["func_evals"] += used
            change = max(_largest(direction * state["t"]), 0.0)
            if (
                evaluations >= group["max_eval"]
                or change <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first

    def _first_length(self, state: dict[str, Any], grad: Any) -> float:
        lr = float(scalar(self.param_groups[0]["lr"]))
        return min(1.0, 1.0 / float(grad.abs().sum())) * lr if state["n_iter"] == 1 else lr

    def _search(self, evaluate: Any, loss: float, grad: Any, slope: float, most: int) -> tuple[Point, int]:
        """The point along the direction that a line search finds, and how often it asked."""
        state = self.state[self._params[0]]
        direction, start = state["d"], [p.clone() for p in self._params]

        def at(t: float) -> Point:
            _move(self._params, direction, t)
            loss, grad = float(evaluate()), _flat_gradient(self._params)
            for p, x in zip(self._params, start, strict=True):
                p.copy_(x)
            return Point(t, loss, grad, float(grad.dot(direction)))

        change = self.param_groups[0]["tolerance_change"] / max(_largest(direction), 1e-300)
        return strong_wolfe(at, Point(0.0, loss, grad, slope), state["t"], change, most)


def _next_direction(state: dict[str, Any], grad: Any, history: int) -> Any:
    """Minus the gradient, times the estimate of the inverse curvature: the recursion of two loops."""
    state["n_iter"] += 1
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1, prev_flat_grad=grad.clone())
        return -grad
    _remember(state, grad - state["prev_flat_grad"], state["d"] * state["t"], history)
    state["prev_flat_grad"].copy_(grad)
    pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    factors = state.setdefault("al", [None] * history)
    q = -grad
    for i, (y, s, ro) in reversed(list(enumerate(pairs))):
        factors[i] = s.dot(q) * ro
        q.sub_(y * factors[i])
    direction = q * state["H_diag"]
    for i, (y, s, ro) in enumerate(pairs):
        direction.add_(s * (factors[i] - y.dot(direction) * ro))
    return direction


def _remember(state: dict[str, Any], y: Any, s: Any, history: int) -> None:
    """Note a change of the gradient with the step that made it, where the curvature along it is positive."""
    ys = y.dot(s)
    if not float(ys) > 1e-10:
        return
    for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
        if len(state[name]) == history:
            state[name].pop(0)
        state[name].append(value)
    state["H_diag"] = ys / y.dot(y)


# ---- parameters as one vector of reals


def _flat(x: Any) -> Any:
    return (stack([real(x), imag(x)], -1) if x.is_complex() else x).reshape(-1)


def _flat_gradient(params: list[Any]) -> Any:
    return cat([_flat(p.new_zeros(p.shape) if p.grad is None else _dense(p.grad)) for p in params])


def _dense(g: Any) -> Any:
    return g.to_dense() if g.is_sparse else g


def _move(params: list[Any], direction: Any, t: float) -> None:
    start = 0
    for p in params:
        size = p.numel() * (2 if p.is_complex() else 1)
        part = direction[start : start + size]
        if p.is_complex():
            pairs = part.reshape(*p.shape, 2)
            part = from_parts(pairs[..., 0], pairs[..., 1])
        p.add_(part.reshape(p.shape), alpha=t)
        start += size


def _largest(x: Any) -> float:
    return float(x.abs().max()) if x.numel() else 0.0


# ---- line search


@dataclass(slots=True)
class Point:
    """A place on a line: how far along, the loss, its gradient, and its slope along the line."""

    t: float
    loss: float
    grad: Any
    slope: float


def _cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum in a range of the cubic with the losses and slopes of two points (Nocedal and Wright, 3.59); the
    middle where it has none.
    """
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t) if a.t != b.t else float("nan")
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    width = b.slope - a.slope + 2 * d2
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / width) if width else float("nan")
    return min(max(t, low), high)


def strong_wolfe(
    at: Callable[[float], Point], start: Point, t: float, tolerance: float, most: int, c1: float = 1e-4, c2: float = 0.9
) -> tuple[Point, int]:
    """A point that is low enough and flat enough (Nocedal and Wright 2006, 3.5 and 3.6), and how many were asked for.

    Args:
        at: evaluates a point of the line
        start: the point at 0
        t: where to look first
        tolerance: how close the ends of a range are that is not divided any more
        most: how many points to ask for after the first, at most
    """

    def too_high(point: Point, best: float) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope or point.loss >= best

    before, point, asked, done = start, at(t), 0, False
    ends = [start, point]
    while asked < most:
        if too_high(point, before.loss if asked > 1 else float("inf")):
            ends = [before, point]
            break
        if abs(point.slope) <= -c2 * start.slope:
            ends, done = [point], True
            break
        if point.slope >= 0:
            ends = [before, point]
            break
        t = _cubic_minimum(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
        before, point, asked = point, at(t), asked + 1
    else:
        ends = [start, point]
    if done:
        return ends[0], asked + 1
    return _zoomed(at, start, ends, asked, tolerance, most, too_high, c2)


def _zoomed(
    at: Any, start: Point, ends: list[Point], asked: int, tolerance: float, most: int, too_high: Any, c2: float
) -> tuple[Point, int]:
    """The search between two points of which one is too far."""
    best, other = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
    stuck = False
    while asked < most and abs(ends[1].t - ends[0].t) >= tolerance:
        low, high = sorted((ends[0].t, ends[1].t))
        t, stuck = _not_at_an_end(_cubic_minimum(ends[0], ends[1], low, high), low, high, stuck)
        point, asked = at(t), asked + 1
        if too_high(point, ends[best].loss):
            ends[other] = point
            best, other = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        flat = abs(point.slope) <= -c2 * start.slope
        if not flat and point.slope * (ends[other].t - ends[best].t) >= 0:
            ends[other] = ends[best]
        ends[best] = point
        if flat:
            break
    return ends[best], asked + 1


def _not_at_an_end(t: float, low: float, high: float, stuck: bool) -> tuple[float, bool]:
    """A place in a range, moved inside if it is close to an end for the second time; and whether it is close."""
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if stuck or t >= high or t <= low:
        return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
    return t, True


explain_all(globals(), "LBFGS")
