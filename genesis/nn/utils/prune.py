"""Weights that are left out: a mask for each pruned parameter, which a hook multiplies it by before each forward.

A pruned parameter ``weight`` is the product of the parameter ``weight_orig`` and the buffer ``weight_mask``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DimError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.hooks import hooks_of
from genesis.nn.module import Module
from genesis.nn.utils.vectors import parameters_to_vector
from genesis.ops.creation.create import ones_like, zeros_like
from genesis.ops.creation.random import rand


class BasePruningMethod:
    """Base of ways to prune: subclasses say with `compute_mask` what stays, and by ``PRUNING_TYPE`` what an earlier mask
    leaves them to look at.

    ``PRUNING_TYPE``: "unstructured" sees the elements that are left, "structured" the slices along ``dim`` in which any
    is left, "global" all.
    """

    PRUNING_TYPE = "global"
    _tensor_name: str = ""

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of a tensor, ones where it stays, given the one that holds so far."""
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask")

    def apply_mask(self, module: Any) -> Any:
        """The pruned tensor of a module."""
        mask, whole = getattr(module, self._tensor_name + "_mask"), getattr(module, self._tensor_name + "_orig")
        return mask.to(whole.dtype) * whole

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module in this way, after the ways in which it is pruned already.

        Args:
            importance_scores: what to decide by, in the place of the parameter
        """
        weight = _parameter(cls.__name__, module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        scores = weight if importance_scores is None else importance_scores
        _check_scores(cls.__name__, scores, weight)
        before = _hook_on(module, name)
        if before is not None:
            method = _together(before[1], method)
        mask = method.compute_mask(scores.detach(), _mask_of(module, name, weight).clone())
        if before is not None:
            del hooks_of(module).forward_pre[before[0]]
        else:
            del module._parameters[name]
            module.register_parameter(name + "_orig", weight)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned tensor, no module being involved."""
        scores = t if importance_scores is None else importance_scores
        _check_scores(type(self).__name__, scores, t)
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask).to(t.dtype)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter, with zeros where it is pruned."""
        weight = self.apply_mask(module).detach()
        whole = module._parameters.pop(self._tensor_name + "_orig")
        whole.data = weight
        delattr(module, self._tensor_name)
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, whole)


class PruningContainer(BasePruningMethod):
    """Several ways to prune a tensor, one after the other."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a way to prune the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(
                message("PruningContainer", f"expected a BasePruningMethod, got {type(method).__name__}")
            )
        if method._tensor_name != self._tensor_name:
            raise ArgumentValueError(
                message("PruningContainer", f"of {self._tensor_name!r}, got a method of {method._tensor_name!r}")
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far, with what the last method leaves of it."""
        method: Any = self._pruning_methods[-1]
        left = _left_to(method, t, default_mask)
        mask = default_mask.to(t.dtype).clone()
        mask[left] = method.compute_mask(t[left], default_mask[left]).to(t.dtype)
        return mask


def _left_to(method: Any, t: Any, mask: Any) -> Any:
    """An index of what a method may look at, where a mask holds already."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * t.ndim
    if kind != "structured" or not isinstance(getattr(method, "dim", None), int):
        raise ArgumentValueError(
            message(type(method).__name__, f"unknown PRUNING_TYPE {kind!r}, or a structured one without dim")
        )
    dim = _checked_dim(type(method).__name__, t, method.dim)
    others = [d for d in range(t.ndim) if d != dim]
    return tuple((mask != 0).sum(others) != 0 if d == dim else slice(None) for d in range(t.ndim))


def _together(before: BasePruningMethod, method: BasePruningMethod) -> Any:
    methods = list(before) if isinstance(before, PruningContainer) else [before]
    return PruningContainer(*methods, method)


# ---- what is asked of arguments


def _parameter(function: str, module: Any, name: Any) -> Any:
    """The parameter of a module, also of one that is pruned."""
    if isinstance(module, Module) and isinstance(name, str):
        parameter = module._parameters.get(name)
        parameter = (
            module._parameters.get(name + "_orig") if parameter is None and _hook_on(module, name) else parameter
        )
        if parameter is not None:
            return parameter
    raise ArgumentValueError(message(function, f"{type(module).__name__} has no parameter {name!r}"))


def _hook_on(module: Any, name: str) -> tuple[int, Any] | None:
    """The hook that prunes a parameter, and its number."""
    for number, entry in hooks_of(module).forward_pre.items():
        if isinstance(entry[0], BasePruningMethod) and entry[0]._tensor_name == name:
            return number, entry[0]
    return None


def _mask_of(module: Any, name: str, weight: Any) -> Any:
    mask = module._buffers.get(name + "_mask")
    return ones_like(weight.detach()) if mask is None else mask


def _check_scores(function: str, scores: Any, weight: Any) -> None:
    if not isinstance(scores, Tensor) or not isinstance(weight, Tensor):
        raise ArgumentError(message(function, f"expected tensors, got {type(scores).__name__}"))
    if scores.shape != weight.shape:
        raise ShapeError(
            message(
                function,
                "importance_scores have another shape",
                [("scores", scores._spec()), ("parameter", weight._spec())],
            )
        )


def _checked_dim(function: str, t: Any, dim: Any) -> int:
    if t.ndim < 2:
        raise ArgumentValueError(message(function, f"slices are of at least 2 dimensions, got {t.ndim}"))
    if not -t.ndim <= dim < t.ndim:
        raise DimError(message(function, f"dim {dim} is out of range for {t.ndim} dimensions"))
    return int(dim % t.ndim)


def _amount(function: str, amount: Any) -> Any:
    """How much to prune: a part in [0, 1], or a number of elements."""
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise ArgumentError(message(function, f"amount must be a number, got {type(amount).__name__}"))
    if not (amount >= 0 if isinstance(amount, int) else 0.0 <= amount <= 1.0):
        raise ArgumentValueError(
            message(function, f"amount must be a part in [0, 1] or a number of elements, got {amount}")
        )
    return amount


def _count(function: str, amount: Any, size: int) -> int:
    if isinstance(amount, int) and amount > size:
        raise ArgumentValueError(message(function, f"amount={amount} is more than the {size} there are"))
    return amount if isinstance(amount, int) else round(amount * size)


# ---- the ways


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _Elements(BasePruningMethod):
    """Leaves out the elements of the smallest scores."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        self.amount = _amount(type(self).__name__, amount)

    def scores(self, t: Any) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count(type(self).__name__, self.amount, t.numel())
        mask = default_mask.flatten().clone()
        if count:
            mask[self.scores(t).flatten().topk(count, largest=False).indices] = 0
        return mask.reshape(default_mask.shape)


class RandomUnstructured(_Elements):
    """Leaves out elements at random."""

    def scores(self, t: Any) -> Any:
        return rand(*t.shape, device=t.device)


class L1Unstructured(_Elements):
    """Leaves out the elements of the smallest magnitude."""

    def scores(self, t: Any) -> Any:
        return t.abs()


class _Slices(BasePruningMethod):
    """Leaves out the slices of the smallest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        self.amount, self.dim = _amount(type(self).__name__, amount), dim

    def scores(self, t: Any, dim: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        dim = _checked_dim(type(self).__name__, t, self.dim)
        size = t.shape[dim]
        count = _count(type(self).__name__, self.amount, size)
        if not count:
            return default_mask
        kept = self.scores(t, dim).topk(size - count, largest=True).indices
        mask = zeros_like(t)
        mask[tuple(kept if d == dim else slice(None) for d in range(t.ndim))] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Slices):
    """Leaves out slices at random."""

    def scores(self, t: Any, dim: int) -> Any:
        return rand(t.shape[dim], device=t.device)


class LnStructured(_Slices):
    """Leaves out the slices of the smallest ``n``-norm."""

    def __init__(self, amount: int | float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Any, dim: int) -> Any:
        return t.norm(self.n, dim=[d for d in range(t.ndim) if d != dim])


class CustomFromMask(BasePruningMethod):
    """Leaves out what a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_scores("CustomFromMask", self.mask, default_mask)
        return default_mask * self.mask.to(default_mask.dtype)  # type: ignore[attr-defined]


# ---- the same as functions


def identity(module: Any, name: str) -> Any:
    """Prune nothing of a parameter, which gets a mask of ones. Returns the module, as the others do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: int | float) -> Any:
    """Leave out elements of a parameter at random: a part of them, or so many."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Any:
    """Leave out the elements of a parameter of the smallest magnitude: a part of them, or so many.

    >>> import genesis
    >>> from genesis.nn.utils import prune
    >>> layer = genesis.nn.Linear(3, 1, bias=False); layer.weight.data = genesis.tensor([[3.0, -1.0, 2.0]])
    >>> _ = prune.l1_unstructured(layer, "weight", 1); layer.weight_mask, sorted(layer.state_dict())
    (tensor([[1., 0., 1.]]), ['weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: int | float, dim: int) -> Any:
    """Leave out slices of a parameter along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: int | float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Leave out the slices of a parameter along a dimension of the smallest ``n``-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Leave out what a mask says."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[Any],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[Any, Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: pairs ``(module, name)``
        pruning_method: an unstructured one, made with ``kwargs``

    Raises:
        TypeError: not pairs, or no unstructured method

    >>> from genesis import nn
    >>> from genesis.nn.utils import prune
    >>> a, b = nn.Linear(2, 2), nn.Linear(2, 3)
    >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=0.3)
    >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
    3
    """
    pairs = [pair if isinstance(pair, list | tuple) and len(pair) == 2 else (None, pair) for pair in parameters]
    weights = [_parameter("global_unstructured", module, name) for module, name in pairs]
    unstructured = isinstance(pruning_method, type) and issubclass(pruning_method, BasePruningMethod)
    if not unstructured or pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(message("global_unstructured", f"needs an unstructured method, got {pruning_method!r}"))
    given = {} if importance_scores is None else importance_scores
    scores = [given.get((module, name), getattr(module, name)) for module, name in pairs]
    for score, weight in zip(scores, weights, strict=True):
        _check_scores("global_unstructured", score, weight)
    masks = [_mask_of(module, name, weight) for (module, name), weight in zip(pairs, weights, strict=True)]
    container = PruningContainer(pruning_method(**kwargs))
    whole = container.compute_mask(parameters_to_vector(scores).detach(), parameters_to_vector(masks))  # type: ignore[attr-defined]
    start = 0
    for (module, name), weight in zip(pairs, weights, strict=True):
        custom_from_mask(module, name, whole[start : start + weight.numel()].reshape(weight.shape))
        start += weight.numel()


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter the parameter, with zeros where it is pruned.

    Raises:
        ValueError: it is not pruned
    """
    hook = _hook_on(module, name) if isinstance(module, Module) else None
    if hook is None:
        raise ArgumentValueError(message("remove", f"{name!r} of {type(module).__name__} is not pruned"))
    del hooks_of(module).forward_pre[hook[0]]
    hook[1].remove(module)
    return module


def is_pruned(module: Any) -> bool:
    """Whether any parameter of a module, or of those inside of it, is pruned."""
    if not isinstance(module, Module):
        raise ArgumentError(message("is_pruned", f"expected a module, got {type(module).__name__}"))
    entries = [entry for m in module.modules() if m._hooks is not None for entry in m._hooks.forward_pre.values()]
    return any(isinstance(entry[0], BasePruningMethod) for entry in entries)


explain_all(globals())

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]
