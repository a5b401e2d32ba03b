"""First values of parameters. All write in place, unrecorded, and return the tensor."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.base.late import Late
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.random import rand, randn, randperm

_sharded = Late("genesis.distributed.sharded")
_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    **{f"conv_transpose{n}d": 1.0 for n in (1, 2, 3)},
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights should be larger for an activation, to keep the variance of what goes through.

    >>> import genesis
    >>> genesis.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ArgumentValueError(
            message("calculate_gain", f"unknown nonlinearity {nonlinearity!r}", hint=", ".join([*_GAINS, "leaky_relu"]))
        )
    return _GAINS[nonlinearity]


def _of_whole(first: Callable[..., Tensor]) -> Any:
    """A function that gives tensors of which each rank has some rows those of the whole tensor's first values. All ranks
    draw the same numbers, so these are the ones that one rank would have.
    """

    @functools.wraps(first)
    def of_whole(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        at = tensor._layout if isinstance(tensor, Tensor) else None
        if at is None:
            return first(tensor, *args, **kwargs)
        whole = wrap(np.empty(tensor.shape, tensor._array.dtype))
        with no_grad():
            part = _sharded.own_part(first(whole, *args, **kwargs), at)
            tensor.to_local().copy_(part.to_local())  # type: ignore[attr-defined]
        return tensor

    return of_whole


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ArgumentValueError(message("init", f"fan in and fan out need at least 2 dimensions, got {tensor.ndim}"))
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@_of_whole
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)  # type: ignore[attr-defined, no-any-return]


@_of_whole
@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers."""
    return tensor.normal_(mean, std, generator=generator)  # type: ignore[attr-defined, no-any-return]


@_of_whole
@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers within [a, b], by the inverse of their distribution function, so that any range takes the same
    time.
    """
    if not a < b:
        raise ArgumentValueError(message("trunc_normal_", f"the range from {a} to {b} is empty"))
    if not math.isfinite(mean) or not 0 < std < math.inf:
        raise ArgumentValueError(
            message("trunc_normal_", f"mean must be finite and std positive, got {mean} and {std}")
        )
    low, high = (math.erf((x - mean) / (std * math.sqrt(2))) for x in (a, b))
    uniform = rand(tensor.numel(), generator=generator, dtype="float64") * (high - low) + low
    values = (uniform.erfinv() * (std * math.sqrt(2)) + mean).clamp(a, b)
    return tensor.copy_(values.reshape(tensor.shape))  # type: ignore[attr-defined, no-any-return]


@_of_whole
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return tensor.fill_(val)  # type: ignore[attr-defined, no-any-return]


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


@_of_whole
@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if tensor.ndim != 2:
        raise ArgumentValueError(message("eye_", f"needs a matrix, got {tensor.ndim} dimensions"))
    return tensor.copy_(wrap(np.eye(*tensor.shape)))  # type: ignore[attr-defined, no-any-return]


@_of_whole
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in $\\pm gain \\sqrt{6 / (fan_{in} + fan_{out})}$ (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@_of_whole
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal of deviation $gain \\sqrt{2 / (fan_{in} + fan_{out})}$ (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentValueError(message("init", f"mode must be 'fan_in' or 'fan_out', got {mode!r}"))
    return _fans(tensor)[mode == "fan_out"]


@_of_whole
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform in $\\pm gain \\sqrt{3 / fan}$ (He et al. 2015)."""
    if 0 in tensor.shape:
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


@_of_whole
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal of deviation $gain / \\sqrt{fan}$ (He et al. 2015)."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


@_of_whole
@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix, from the QR decomposition of normal numbers (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ArgumentValueError(message("orthogonal_", f"needs at least 2 dimensions, got {tensor.ndim}"))
    rows = tensor.shape[0]
    flat = randn(rows, tensor.numel() // rows, generator=generator, dtype="float64").numpy()
    q, r = np.linalg.qr(flat.T if flat.shape[0] < flat.shape[1] else flat)
    q = q * np.sign(np.diag(r))
    q = q.T if flat.shape[0] < flat.shape[1] else q
    return tensor.copy_(wrap(gain * q.reshape(tensor.shape)))  # type: ignore[attr-defined, no-any-return]


@_of_whole
@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that gives its input channels back, as many as there are, in each group.

    Raises:
        ValueError: not 3, 4 or 5 dimensions, or output channels that cannot be divided by the groups

    >>> import genesis
    >>> genesis.nn.init.dirac_(genesis.empty(2, 2, 3))[1]
    tensor([[0., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ArgumentValueError(message("dirac_", f"needs 3, 4 or 5 dimensions, got {tensor.ndim}"))
    rows, columns = tensor.shape[:2]
    if not isinstance(groups, int) or groups < 1 or rows % groups:
        raise ArgumentValueError(message("dirac_", f"{rows} output channels cannot be divided by {groups!r} groups"))
    tensor.zero_()  # type: ignore[attr-defined]
    center = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for d in range(min(rows // groups, columns)):
            tensor[(group * (rows // groups) + d, d, *center)] = 1.0  # type: ignore[index]
    return tensor


@_of_whole
@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, but for a part of each column, at random places, which is zero (Martens 2010).

    >>> import genesis
    >>> (genesis.nn.init.sparse_(genesis.empty(4, 3), 0.5) == 0).sum(0)
    tensor([2, 2, 2])
    """
    if tensor.ndim != 2:
        raise ArgumentValueError(message("sparse_", f"needs a matrix, got {tensor.ndim} dimensions"))
    if not 0 <= sparsity <= 1:
        raise ArgumentValueError(message("sparse_", f"sparsity must be in [0, 1], got {sparsity}"))
    rows, columns = tensor.shape
    normal_(tensor, 0.0, std, generator)
    zeros = math.ceil(sparsity * rows)
    for column in range(columns):
        indices = randperm(rows, generator=generator, device=tensor.device)[:zeros]
        tensor[indices, column] = 0.0  # type: ignore[index]
    return tensor


def _old(new: Callable[..., Tensor]) -> Any:
    """The name without an underscore, which PyTorch had before 0.4."""

    @functools.wraps(new)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warn_user(message(f"nn.init.{old.__name__}", "this name is deprecated", hint=new.__name__), FutureWarning)
        return new(*args, **kwargs)

    old.__name__ = old.__qualname__ = new.__name__.removesuffix("_")
    old.__doc__ = f"The old name of `{new.__name__}`."
    return old


uniform, normal, constant, eye, dirac = map(_old, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = _old(xavier_uniform_), _old(xavier_normal_)
kaiming_uniform, kaiming_normal = _old(kaiming_uniform_), _old(kaiming_normal_)
orthogonal, sparse = _old(orthogonal_), _old(sparse_)

explain_all(globals())
