"""Pooling as layers: `torch.nn`'s, each for one to three spatial dimensions."""

from __future__ import annotations

from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.spatial import pools
from genesis.ops.spatial.arguments import per_dim


class _Pool(Module):
    dims = 0

    def _function(self, stem: str) -> Any:
        return getattr(pools, f"{stem}{self.dims}d")


class _WindowPool(_Pool):
    """Pools of windows of one size."""

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_WindowPool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function("max_pool")(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class _MaxUnpool(_WindowPool):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = per_dim(name, "kernel_size", kernel_size, self.dims, 1)
        self.stride = self.kernel_size if stride is None else per_dim(name, "stride", stride, self.dims, 1)
        self.padding = per_dim(name, "padding", padding, self.dims, 0)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._function("max_unpool")(  # type: ignore[no-any-return]
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPool(_WindowPool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        if self.dims == 1:  # as PyTorch prints it
            self.kernel_size, self.stride, self.padding = (
                per_dim(type(self).__name__, what, getattr(self, what), 1)
                for what in ("kernel_size", "stride", "padding")
            )
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        more = () if self.dims == 1 else (self.divisor_override,)
        return self._function("avg_pool")(  # type: ignore[no-any-return]
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *more
        )


class _LPPool(_Pool):
    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function("lp_pool")(  # type: ignore[no-any-return]
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AdaptiveAvgPool(_Pool):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function("adaptive_avg_pool")(input, self.output_size)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function("adaptive_max_pool")(input, self.output_size, self.return_indices)


class _FractionalMaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, dims = type(self).__name__, self.dims
        self.kernel_size, self.return_indices = per_dim(name, "kernel_size", kernel_size, dims, 1), return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self.register_buffer("_random_samples", _random_samples)
        pools.check_fraction(name, output_size, output_ratio, dims)

    def forward(self, input: Tensor) -> Any:
        return self._function("fractional_max_pool")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


_KINDS: dict[str, tuple[type[_Pool], str, str]] = {
    "MaxPool": (_MaxPool, "max_pool", "(2)"),
    "AvgPool": (_AvgPool, "avg_pool", "(2)"),
    "LPPool": (_LPPool, "lp_pool", "(2, 2)"),
    "AdaptiveAvgPool": (_AdaptiveAvgPool, "adaptive_avg_pool", "(2)"),
    "AdaptiveMaxPool": (_AdaptiveMaxPool, "adaptive_max_pool", "(2)"),
    "FractionalMaxPool": (_FractionalMaxPool, "fractional_max_pool", "(2, output_size=2)"),
}


def _layer(kind: str, dims: int) -> Any:
    """The class of a kind and a number of spatial dimensions."""
    base, stem, arguments = _KINDS[kind]
    name = f"{kind}{dims}d"
    doc = f"""`{stem}{dims}d` as a layer, with its arguments.

    >>> import genesis
    >>> genesis.nn.{name}{arguments}(genesis.ones(1, 1, {", ".join(["4"] * dims)})).shape
    genesis.Size({[1, 1, *[2] * dims]})
    """
    members = {"__doc__": doc, "__module__": __name__, "__qualname__": name, "dims": dims}
    return type(name, (base,), members)


def _unpool(dims: int) -> Any:
    name = f"MaxUnpool{dims}d"
    doc = f"""`max_unpool{dims}d` as a layer: called with what `MaxPool{dims}d` gave, elements and places.

    >>> import genesis
    >>> pooled = genesis.nn.MaxPool{dims}d(2, return_indices=True)(genesis.rand(1, 1, {", ".join(["4"] * dims)}))
    >>> genesis.nn.{name}(2)(*pooled).shape
    genesis.Size({[1, 1, *[4] * dims]})
    """
    members = {"__doc__": doc, "__module__": __name__, "__qualname__": name, "dims": dims}
    return type(name, (_MaxUnpool,), members)


MaxPool1d, MaxPool2d, MaxPool3d = (_layer("MaxPool", dims) for dims in (1, 2, 3))
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (_unpool(dims) for dims in (1, 2, 3))
AvgPool1d, AvgPool2d, AvgPool3d = (_layer("AvgPool", dims) for dims in (1, 2, 3))
LPPool1d, LPPool2d, LPPool3d = (_layer("LPPool", dims) for dims in (1, 2, 3))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (_layer("AdaptiveAvgPool", dims) for dims in (1, 2, 3))
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (_layer("AdaptiveMaxPool", dims) for dims in (1, 2, 3))
FractionalMaxPool2d, FractionalMaxPool3d = (_layer("FractionalMaxPool", dims) for dims in (2, 3))
explain_all(
    globals(), "_MaxPool", "_MaxUnpool", "_AvgPool", "_LPPool", "_AdaptiveAvgPool", "_AdaptiveMaxPool", "_FractionalMaxPool"
)  # fmt: skip

__all__ = [
    f"{kind}{dims}d"
    for kind in (*_KINDS, "MaxUnpool")
    for dims in (1, 2, 3)
    if (kind, dims) != ("FractionalMaxPool", 1)
]
