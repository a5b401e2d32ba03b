"""Layers that learn the number of their channels or features from the first input.

Until then their parameters have no shape; the first call gives them one, and the layer becomes the ordinary one.
"""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ShapeError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn import conv, linear, norm
from genesis.nn.module import Module
from genesis.nn.uninitialized import Uninitialized, UninitializedBuffer, UninitializedParameter


class LazyModuleMixin(Module):
    """Base class of layers with `UninitializedParameter`: they define ``initialize_parameters(*inputs)``, which gives
    them shapes, and ``cls_to_become``, the class of the layer from then on.

    >>> import genesis
    >>> layer = genesis.nn.LazyLinear(2)
    >>> layer.has_uninitialized_params(), layer(genesis.ones(4, 3)).shape, layer
    (True, genesis.Size([4, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: type | None = None

    def has_uninitialized_params(self: Any) -> bool:
        """Whether the first input is still to come."""
        stores = (self._parameters, self._buffers)
        return any(isinstance(x, Uninitialized) for store in stores for x in store.values())

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give parameters their shapes, and values."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize_parameters")

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.has_uninitialized_params():
            with no_grad():
                self.initialize_parameters(*args, **kwargs)
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become
            return self(*args, **kwargs)
        return super().__call__(*args, **kwargs)  # type: ignore[misc]


def _make_lazy(module: Module, *names: str) -> None:
    """Replace parameters and buffers by those without a shape."""
    for name in names:
        for store, kind in ((module._parameters, UninitializedParameter), (module._buffers, UninitializedBuffer)):
            given = store.get(name)  # type: ignore[attr-defined]
            if given is not None:
                store[name] = kind(device=given.device, dtype=given.dtype)  # type: ignore[index]


class LazyLinear(LazyModuleMixin, linear.Linear):
    """`Linear` whose ``in_features`` are those of the first input.

    >>> import genesis
    >>> genesis.nn.LazyLinear(2)(genesis.ones(4, 3)).shape
    genesis.Size([4, 2])
    """

    cls_to_become = linear.Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, out_features, bias, device, dtype)
        _make_lazy(self, "weight", "bias")

    def initialize_parameters(self, input: Tensor) -> None:
        self.in_features = input.shape[-1]
        self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
        if self.bias is not None:
            self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
        self.reset_parameters()


class _LazyConvolution(LazyModuleMixin):
    """The layer for the number of channels of its first input."""

    def initialize_parameters(self: Any, input: Tensor, *args: Any) -> None:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            text = f"expected {self.dims + 1}-D or {self.dims + 2}-D input, got {input.ndim}-D"
            raise ShapeError(message(type(self).__name__, text))
        self.in_channels = input.shape[-self.dims - 1]
        self._check(type(self).__name__)
        first, second = self.in_channels, self.out_channels
        if not self.transposed:
            first, second = second, first
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyNorm(LazyModuleMixin):
    """The layer for the number of channels of its first input."""

    def initialize_parameters(self: Any, input: Tensor) -> None:
        self.num_features = input.shape[self.channels_of(input)]
        for x in (self.weight, self.bias, self.running_mean, self.running_var):
            if x is not None:
                x.materialize((self.num_features,))
        self.reset_parameters()


def _lazy(base: Any, mixin: type, example: str) -> Any:
    """The lazy class of a layer."""
    name = f"Lazy{base.__name__}"
    is_norm = mixin is _LazyNorm
    learned = ("affine", "track_running_stats") if base.__name__.startswith("InstanceNorm") else ()  # as in PyTorch

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        given = dict.fromkeys(learned[max(0, len(args) - 2) :], True)  # after eps and momentum
        base.__init__(self, 0, *args, **given | kwargs)
        _make_lazy(self, "weight", "bias", *(("running_mean", "running_var") if is_norm else ()))

    shape = f"(2, 4, {', '.join(['5'] * base.dims if not is_norm else ['5'] * int(base.__name__[-2]))})"
    doc = f"""`{base.__name__}` whose number of {"features" if is_norm else "input channels"} is that of the first input.

    >>> import genesis
    >>> layer = genesis.nn.{name}({example})
    >>> layer(genesis.ones{shape}).ndim, type(layer).__name__
    ({int(name[-2]) + 2}, '{base.__name__}')
    """
    members = {
        "__init__": __init__,
        "__doc__": doc,
        "__module__": __name__,
        "__qualname__": name,
        "cls_to_become": base,
    }
    return type(name, (mixin, base), members)


LazyConv1d, LazyConv2d, LazyConv3d = (
    _lazy(base, _LazyConvolution, "8, 2") for base in (conv.Conv1d, conv.Conv2d, conv.Conv3d)
)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(base, _LazyConvolution, "8, 2") for base in (conv.ConvTranspose1d, conv.ConvTranspose2d, conv.ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(base, _LazyNorm, "") for base in (norm.BatchNorm1d, norm.BatchNorm2d, norm.BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(base, _LazyNorm, "") for base in (norm.InstanceNorm1d, norm.InstanceNorm2d, norm.InstanceNorm3d)
)

__all__ = [
    "LazyLinear",
    "LazyModuleMixin",
    "UninitializedBuffer",
    "UninitializedParameter",
    *[f"Lazy{kind}{dims}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm") for dims in (1, 2, 3)],
]
