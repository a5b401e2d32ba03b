"""`SparseAdam`: only the rows that a gradient names are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import advance
from genesis.optim.optimizer import Group
from genesis.optim.options import chosen, number
from genesis.optim.rows import moved
from genesis.optim.stateful import Stateful


class SparseAdam(Stateful):
    """`Adam` for sparse gradients: of both averages only what the gradient names is updated, and only that is stepped
    along; the other rows stay as they are, where `Adam` would let their averages decay.

    Args:
        maximize: go up instead of down

    Raises:
        RuntimeError: a dense gradient
        ValueError: ``lr`` or ``eps`` are not positive

    >>> import genesis
    >>> layer = genesis.nn.Embedding(3, 1, _weight=genesis.ones(3, 1), sparse=True)
    >>> layer(genesis.tensor([1])).sum().backward()
    >>> genesis.optim.SparseAdam(layer.parameters(), lr=0.1).step(); layer.weight.detach()
    tensor([[1.0000],
            [0.9000],
            [1.0000]])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))
        for group in self.param_groups:
            if any([p.is_sparse for p in group["params"]]):
                raise ArgumentValueError(message("SparseAdam", "parameters must be dense, their gradients are sparse"))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        for name in ("lr", "eps"):
            if not group[name] > 0:
                raise ArgumentValueError(message("SparseAdam", f"{name} must be positive, got {group[name]}"))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        text = "does not support dense gradients, please consider Adam instead"
        raise UnsupportedError(message("SparseAdam", text, [("gradient", grad._spec())]))

    def update_sparse(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            self.begin(param, state, group)
        advance(state, "step")
        g, (b1, b2) = (-grad if group["maximize"] else grad).coalesce(), group["betas"]
        at, values = tuple(g.indices()), g.values()
        if not values.numel():
            return
        mean = moved(state["exp_avg"], at, values, 1 - b1)
        size = moved(state["exp_avg_sq"], at, values * values, 1 - b2).sqrt().add_(group["eps"])
        rate = number(group, state, _corrected, "betas")
        param[at] = param[at] + mean.div_(size) * rate


def _corrected(lr: Any, step: int, betas: Any) -> Any:
    """Minus the learning rate, with the corrections of both averages for their start at zero."""
    return -lr * (1 - betas[1] ** step) ** 0.5 / (1 - betas[0] ** step)


explain_all(globals(), "SparseAdam")
