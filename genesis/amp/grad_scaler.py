"""`GradScaler`: multiply the loss so that small float16 gradients do not vanish, divide before the step, skip steps
that overflowed.

Source: Micikevicius et al., *Mixed Precision Training*, 2018 (dynamic loss scaling), with PyTorch's interface.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_map
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, changes, depends, does, host, tracer
from genesis.ops.shapes.join import stack

_collectives = Late("genesis.distributed.nn.ops")
READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler(Dependable):
    """Dynamic loss scaling.

    Args:
        init_scale: the first factor; growth_factor: what it grows by after ``growth_interval`` good steps
        backoff_factor: what it shrinks by when a gradient was inf or nan (the step is skipped)
        enabled: False makes every method do nothing

    >>> import genesis
    >>> w = genesis.ones(1, requires_grad=True)
    >>> optimizer, scaler = genesis.optim.SGD([w], lr=0.5), genesis.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale(w.sum()).backward(); scaler.step(optimizer); scaler.update()
    >>> w.item(), scaler.get_scale()
    (0.5, 8.0)
    """

    def __init__(
        self, device: str = "cpu", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        for key, value in (
            ("scale", init_scale),
            ("growth_factor", growth_factor),
            ("backoff_factor", backoff_factor),
            ("growth_interval", growth_interval),
        ):
            what, fits = _STATE[key]
            if not _is_number(value) or not fits(value):
                raise ArgumentError(
                    message("GradScaler", f"{'init_scale' if key == 'scale' else key} {what}, got {value!r}")
                )
        self._enabled, self._scale = enabled, float(init_scale)
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._good_steps = 0
        self._optimizers: dict[int, dict[str, Any]] = {}

    def _taken_for_granted(self) -> dict[str, Any]:
        return {"enabled": self._enabled, "stages": tuple([entry["stage"] for entry in self._optimizers.values()])}

    def is_enabled(self) -> bool:
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A loss, or a nest of tensors, times the scale."""
        if not self._enabled:
            return outputs
        return tree_map(lambda t: t * host(lambda: self._scale) if isinstance(t, Tensor) else t, outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once before each step; for clipping.

        Raises:
            RuntimeError: called twice, or after `step`
        """
        if not self._enabled:
            return
        entry = self._entry(optimizer)
        if entry["stage"] is not READY:
            what = (
                "unscale_() was already called" if entry["stage"] is UNSCALED else "unscale_() is called after step()"
            )
            raise GraphError(
                message(
                    "GradScaler",
                    f"{what} for this optimizer since the last update()",
                    hint="call update() once after the steps",
                )
            )
        self._note(optimizer, UNSCALED, self._divide(optimizer))

    def _divide(self, optimizer: Any) -> bool:
        """Whether a gradient was inf or nan."""
        finite, active = list[Any](), _tracing()
        with no_grad(), np.errstate(all="ignore"):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.dtype.itemsize == 2 and p.dtype.itemsize == 2 and p.dtype.name == "float16":
                        raise ArgumentError(
                            message(
                                "GradScaler", "a float16 gradient cannot be unscaled", hint="keep parameters in float32"
                            )
                        )
                    grad = p.grad if p._layout is None else p.grad.to_local()
                    grad.mul_(host(lambda: 1.0 / self._scale))
                    values = grad.coalesce().values() if grad.is_sparse else grad
                    finite.append(values.isfinite().all())
            layouts = [p._layout for g in optimizer.param_groups for p in g["params"] if p._layout is not None]
            keys = dict.fromkeys([group.key for at in layouts for group in at.groups])
            if finite and (active is not None or keys or finite[0].device.type != "cpu"):  # one wait
                all_finite = stack([x.to(finite[0].device) for x in finite]).all()
                for key in keys:  # all ranks step, or none
                    all_finite = _collectives.all_reduce(all_finite.float(), "min", key).bool()
                return not (active.decide(all_finite) if active is not None else bool(all_finite))
        return not all([bool(x) for x in finite])

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()``, after unscaling; skipped if a gradient is inf or nan.

        Raises:
            RuntimeError: called twice without `update`, or with a closure
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise GraphError(
                message("GradScaler", "closures are not supported, the scale may change between their calls")
            )
        entry = self._entry(optimizer)
        if entry["stage"] is STEPPED:
            raise GraphError(
                message(
                    "GradScaler", "step() was already called since the last update()", hint="call update() after step()"
                )
            )
        if entry["stage"] is READY:
            self.unscale_(optimizer)
        self._note(optimizer, STEPPED, entry["overflow"])
        optimizer._opt_called = True  # a step that is skipped is no mistake in the order of calls
        return None if entry["overflow"] else optimizer.step(**kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale after an overflow, let it grow after enough good steps; or set it."""
        if not self._enabled:
            return
        own = [(self.__dict__, name) for name in ("_scale", "_good_steps")]
        if _tracing() is not None and does(self.update, new_scale, changes=tuple(own)):
            self._entries().clear()
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._optimizers:
            raise GraphError(message("GradScaler", "update() without a step", hint="call step(optimizer) before"))
        elif any(entry["overflow"] for entry in self._optimizers.values()):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                grown = float(np.float32(self._scale) * np.float32(self._growth_factor))
                self._scale = grown if np.isfinite(grown) else self._scale
                self._good_steps = 0
        self._optimizers.clear()

    def _entry(self, optimizer: Any) -> dict[str, Any]:
        entry = {"stage": READY, "overflow": False, "optimizer": optimizer}
        return self._entries().setdefault(id(optimizer), entry)

    def _entries(self) -> dict[int, dict[str, Any]]:
        """What is known of optimizers since the last `update`; a trace goes on from it, and leaves it as it is."""
        active = _tracing()
        if active is None:
            return self._optimizers
        depends(self)
        now = {key: dict(entry) for key, entry in self._optimizers.items()}
        return active.own.setdefault(id(self), now)  # type: ignore[no-any-return]

    def _note(self, optimizer: Any, stage: str, overflow: bool) -> None:
        """Where an optimizer is; in a trace, at each call."""
        if _tracing() is not None:
            does(self._note, optimizer, stage, overflow)
        self._entry(optimizer).update(stage=stage, overflow=overflow)

    def get_scale(self) -> float:
        """The factor in use; 1.0 when not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` restores; empty when not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._good_steps}  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave; nothing is changed unless all of it fits.

        Raises:
            TypeError: not a mapping
            RuntimeError: an empty state, saved by a scaler that was not enabled; one that lacks something, or has
                impossible values
        """
        if not self._enabled:
            return
        changes(self, "a state is loaded into a GradScaler")
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(
                message(
                    "GradScaler.load_state_dict",
                    f"expected a mapping, got {type(state_dict).__name__}",
                    hint="scaler.state_dict()",
                )
            )
        if not state_dict:
            raise GraphError(message("GradScaler", "the state is empty, it was saved by a scaler that was not enabled"))
        problems = [
            f"{key}: {'missing' if key not in state_dict else f'{what}, got {state_dict[key]!r}'}"
            for key, (what, fits) in _STATE.items()
            if key not in state_dict or not (_is_number(state_dict[key]) and fits(state_dict[key]))
        ]
        if problems:
            raise GraphError(
                "GradScaler.load_state_dict: the state does not fit\n  "
                + "\n  ".join([*problems, "try: what scaler.state_dict() gave"])
            )
        self._scale, self._good_steps = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = (
            float(state_dict["growth_factor"]),
            float(state_dict["backoff_factor"]),
        )
        self._growth_interval = int(state_dict["growth_interval"])


def _tracing() -> Any:
    """The trace that is being made, if it can leave to calls what a scaler does."""
    active = tracer.get()
    return active if active is not None and active.defers else None


_STATE: dict[str, tuple[str, Callable[[float], bool]]] = {
    "scale": ("must be positive and finite", lambda x: 0 < x < math.inf),
    "growth_factor": ("must be greater than 1", lambda x: 1 < x < math.inf),
    "backoff_factor": ("must be between 0 and 1", lambda x: 0 < x < 1),
    "growth_interval": ("must be a positive integer", lambda x: x >= 1 and x == int(x)),
    "_growth_tracker": ("must be an integer that is not negative", lambda x: 0 <= x < math.inf and x == int(x)),
}


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not math.isnan(value)
        and not math.isinf(value)
    )


explain_all(globals())
