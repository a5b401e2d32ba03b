"""What optimizers share that count their steps and keep tensors like the parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genesis.base.dtypes import float32
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import advance, begins
from genesis.ops.creation.convert import imag, real
from genesis.ops.creation.create import complex as from_parts
from genesis.ops.creation.create import full, full_like
from genesis.ops.learning.update import plus
from genesis.ops.shapes.join import stack
from genesis.optim.optimizer import Group, Optimizer
from genesis.optim.options import Inputs, check_options, refuse_both, scalar
from genesis.optim.together import update_together


class Stateful(Optimizer):
    """Base of optimizers that keep a count of steps, and tensors like the parameter: subclasses define `first_state`
    and `change`.

    The gradient that `change` gets points downhill and includes the weight decay, if that is not decoupled. A complex
    parameter is changed as two real ones.
    """

    checked: tuple[str, ...] = ("lr", "eps", "weight_decay", "betas", "momentum")  # options that are not negative
    single: tuple[str, ...] = ()  # entries of the state that are one number each
    # the rule of `genesis.kernels.llvm.steps` that does what `change` does, of this class, not of those made of it
    rule: str | None = None

    def check_group(self, group: Group) -> None:
        name = type(self).__name__
        check_options(name, **{k: group[k] for k in self.checked if k in group})
        refuse_both(name, group)

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers that the tensors in the state of a parameter begin with."""
        return {}

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", *self.first_state(group))

    def state_shape(self, name: str, param: Tensor) -> tuple[int, ...] | None:
        return param.shape

    def decoupled(self, group: Group) -> bool:
        """Whether weight decay is no part of the gradient."""
        return bool(group.get("decoupled_weight_decay"))

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place, and its state; ``g`` is the gradient to go down along."""
        raise NotImplementedError(f"{type(self).__name__} defines no change")

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        """What the rule takes besides tensors; the entries of the state that are one number each are changed here."""
        raise NotImplementedError(f"{type(self).__name__} defines no numbers")

    def _update_group(self, group: Group) -> None:
        """The steps of all parameters by one call, where there is a rule, nothing is open and all options are numbers."""
        if not update_together(self, group):
            super()._update_group(group)

    def begin(self, param: Any, state: dict[str, Any], group: Group) -> None:
        """Make the state of a parameter."""
        state["step"] = 0
        for name, start in self.first_state(group).items():
            if isinstance(start, Tensor) and group.get("differentiable"):
                state[name] = (start * 1).reshape(()) if name in self.single else full_like(param, 1) * start
            elif name in self.single:
                state[name] = full((), scalar(start), dtype=float32, device=param.device)
            else:
                start = scalar(start)
                state[name] = full_like(param, complex(start, start) if param.is_complex() else start)

    def _prepare(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> Any:
        """Make or advance the state of a parameter; the gradient to go down along."""
        if not state:
            if group.get("differentiable"):
                self.begin(param, state, group)
            else:
                with begins(state, self.state):
                    self.begin(param, state, group.group if isinstance(group, Inputs) else group)
        advance(state, "step")
        g = -grad if group.get("maximize") else grad
        decay = group.get("weight_decay")
        return plus(g, param, decay) if decay and not self.decoupled(group) else g

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        g = self._prepare(param, grad, state, group)
        if param.is_complex():
            self._change_pairs(param, g, state, group)
        else:
            self.change(param, g, state, group)

    def _change_pairs(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        """`change` for the real and imaginary parts of a complex parameter."""
        complex_ones = {k: v for k, v in state.items() if isinstance(v, Tensor) and v.is_complex()}
        there, pairs = _pair(param), {k: _pair(v) for k, v in complex_ones.items()}
        state.update(pairs)
        try:
            self.change(there, _pair(g), state, group)
        finally:
            state.update(complex_ones)
        for x, pair in [(param, there), *((complex_ones[k], pair) for k, pair in pairs.items())]:
            x.copy_(from_parts(pair[0], pair[1]))  # type: ignore[attr-defined]


def _pair(x: Any) -> Any:
    return stack([real(x), imag(x)])
