"""The loss of a last layer: cross entropy of linear logits, at once or some rows at a time, so that there are never all of
the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.casts import cast_for
from genesis.core.call.halves import HALVES
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor
from genesis.core.graph import autocast
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor
from genesis.ops.losses.classes import cross_entropy
from genesis.ops.products.linear import linear

# bytes of the logits of some rows, and of their gradient, where nothing else is said
_LOGITS, _ON_GPU = 1 << 29, 1 << 30
_FEWEST = 128  # rows, of which products are still fast
_POLICIES = ("auto", "accurate", "balanced", "compact")
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` goes through its rows, some at a time.

    Args:
        allow_retain_graph: accepted; a graph can be kept in any case, gradients that were computed are not used up
        batch_chunk_size: how many rows at a time
        chunking_method: instead of that, "auto": as many rows, a power of two, as have logits of at most 512 MiB, and
            1 GiB on a GPU; "aspect_ratio": as many as have logits of the size of the input; "aspect_ratio:N": an N-th of that
        acc_policy: what is computed in `acc_dtype`: the sum over the rows that is the weight's gradient ("balanced"), the
            logits as well ("accurate"), or nothing ("compact"). "auto" is "accurate" on the CPU, and elsewhere "compact" for
            bfloat16, "balanced" for float16, whose range is small
        acc_dtype: float32 unless given, or the input's dtype if that is wider

    Raises:
        ValueError: a size, method, policy or dtype that there is none of

    >>> import genesis
    >>> options = genesis.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None)
    >>> x, w, y = genesis.ones(5, 3), genesis.zeros(4, 3), genesis.tensor([0, 1, 2, 3, 0])
    >>> genesis.nn.functional.linear_cross_entropy(x, w, y, options=options)
    tensor(1.3863)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if not isinstance(self.acc_policy, str) or self.acc_policy not in _POLICIES:
            raise _wrong("acc_policy", self.acc_policy, f"one of {', '.join(_POLICIES)}")
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise _wrong("batch_chunk_size", size, "a number of rows, or None")
        if method is not None and not (isinstance(method, str) and (method == "auto" or _share_of(method))):
            raise _wrong("chunking_method", method, "'auto', 'aspect_ratio', 'aspect_ratio:2' or None")
        if self.acc_dtype is not None and dtypes.as_np(self.acc_dtype).name not in _FLOATS:
            raise _wrong("acc_dtype", self.acc_dtype, "a float dtype, or None")

    def rows(self, input: Tensor, classes: int) -> int:
        """How many rows of the input (N, I) are taken at a time."""
        (count, features), method = input.shape, self.chunking_method
        if method is None or (method == "auto" and self.batch_chunk_size is not None):
            return min(self.batch_chunk_size or count, count)
        if method == "auto":
            logits = _ON_GPU if input.device.type == "cuda" else _LOGITS
            most = max(logits // (classes * input._array.dtype.itemsize), _FEWEST)
            return min(1 << (most.bit_length() - 1), count)
        rows = -(-count // max(-(-classes // max(features, 1)), 1))
        rows = max((1 << (max(rows, 1) - 1).bit_length()) // (_share_of(method) or 1), 1)
        if self.batch_chunk_size not in (None, rows):
            text = f"{method} asks for {rows} rows at a time, batch_chunk_size for {self.batch_chunk_size}"
            raise ArgumentValueError(message("linear_cross_entropy", text, hint="chunking_method=None"))
        return min(rows, count)

    def wide(self, input: Tensor) -> tuple[str, str]:
        """The dtypes of the logits, and of the sum that is the weight's gradient."""
        own = input._array.dtype
        policy, wide = self.acc_policy, "float32" if own in HALVES else own.name
        if self.acc_dtype is not None:
            wide = dtypes.promote_types(self.acc_dtype, input.dtype).np.name
        if policy == "auto":
            on_cpu = input.device.type == "cpu"
            policy = "accurate" if on_cpu else "compact" if own.name == "bfloat16" else "balanced"
        return wide if policy == "accurate" else own.name, own.name if policy == "compact" else wide


def _options(given: Any) -> LinearCrossEntropyOptions:
    """Ours, of another framework's that has the same fields."""
    if isinstance(given, LinearCrossEntropyOptions):
        return given
    known = {field.name: getattr(given, field.name) for field in fields(LinearCrossEntropyOptions)}
    wide = known["acc_dtype"]
    return LinearCrossEntropyOptions(**known | {"acc_dtype": None if wide is None else str(wide).rpartition(".")[2]})


def _wrong(what: str, value: Any, allowed: str) -> Exception:
    return ArgumentValueError(message("LinearCrossEntropyOptions", f"{what} is {value!r}", hint=allowed))


def _share_of(method: str) -> int | None:
    """N of "aspect_ratio:N"; None of what is no such method."""
    name, colon, share = method.partition(":")
    share = share if colon else "1"
    return int(share) if name == "aspect_ratio" and share.isdigit() and int(share) else None


@composite(method=False, torch_name="nn.functional.linear_cross_entropy")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy` of `linear`, of logits $x W^T + b$; with ``options`` some rows at a time.

    Of the logits of many classes there is then only a part at a time: their loss is computed, and at once their share of
    the gradients, so that nothing is computed twice (with ``reduction="none"`` it is, in the backward). Derivatives of
    derivatives, and transforms, are those of the logits as a whole.

    Args:
        input: (N, I) or (I,); linear_weight: (C, I), or (C, d, ..., I) for targets (N, d, ...)
        linear_bias: (C,) or (C, d, ...); others as of `cross_entropy`
        options: `LinearCrossEntropyOptions`, or PyTorch's; of a linear_weight (C, I), class indices, and a weight without a gradient,
            otherwise with a warning that all is computed at once

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 3), genesis.zeros(2, 3)
    >>> genesis.nn.functional.linear_cross_entropy(x, w, genesis.tensor([1]))
    tensor(0.6931)
    """
    name = "linear_cross_entropy"
    expect_tensor(name, "input", input), expect_tensor(name, "linear_weight", linear_weight)
    expect_tensor(name, "target", target)
    given = [("input", input._spec()), ("linear_weight", linear_weight._spec())]
    if linear_weight.ndim < 2 or input.ndim not in (1, 2) or (input.ndim == 1 and linear_weight.ndim > 2):
        raise ShapeError(message(name, "input (N, I) and weight (C, ..., I) are needed", given))
    ignored = -100 if ignore_index is None else ignore_index
    constant = weight is None or not weight.requires_grad
    if options is not None and linear_weight.ndim == 2 and target._array.dtype.kind in "iu" and constant:
        return _some_at_a_time(
            input, linear_weight, target, linear_bias, weight, reduction, ignored, label_smoothing, _options(options)
        )
    if options is not None:
        text = (
            "options have no effect: they are for a linear_weight (C, I), class indices and a weight without a gradient, "
            "logits are computed at once"
        )
        warn_user(message(name, text, [*given, ("target", target._spec())]))
    dtype = input.dtype
    if input._array.dtype in HALVES and autocast.state() is None:  # computed in float32, and rounded once
        input, linear_weight = input.float(), linear_weight.float()
        linear_bias = None if linear_bias is None else linear_bias.float()
    logits = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]))
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    if linear_bias is not None:
        logits = logits + (
            linear_bias.reshape(-1, *[1] * (linear_weight.ndim - 1 - linear_bias.ndim), *linear_bias.shape[1:])
        )
    loss = cross_entropy(logits, target, weight, None, ignored, None, reduction, label_smoothing)
    return loss if autocast.state() is not None else loss.to(dtype)


def _some_at_a_time(
    input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignored: int, smoothing: float, options: LinearCrossEntropyOptions,
) -> Tensor:  # fmt: skip
    single, kind, mode = input.ndim == 1, input._array.dtype, autocast.state()
    if mode is not None:
        input, linear_weight, linear_bias = cast_for("low", (input, linear_weight, linear_bias), mode)
    if single:
        input, target = input.unsqueeze(0), target.reshape(-1)
    tensors = input, linear_weight, linear_bias
    loss = linear_cross_entropy_by_rows(
        input, linear_weight, target, linear_bias, weight, reduction, ignored, smoothing,
        max(options.rows(input, linear_weight.shape[0]), 1), *options.wide(input),
        *[x is not None and x.requires_grad and grad_mode.get() for x in tensors],
    )  # fmt: skip
    loss = loss.squeeze(0) if single and reduction == "none" else loss
    return loss if mode is not None or kind not in HALVES else loss.to(dtypes.from_numpy(kind))


@composite(method=False, torch_name="")
def linear_cross_entropy_by_rows(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    rows: int,
    logits_dtype: str,
    sum_dtype: str,
    input_grad: bool,
    weight_grad: bool,
    bias_grad: bool,
) -> Tensor:
    """`linear_cross_entropy` of an input (N, I) and class indices (N,); of 16-bit floats a loss in float32. Its kernels take
    so many rows at a time; what it is, is computed at once.

    Args:
        logits_dtype, sum_dtype: of the logits, and of the sum that is the weight's gradient
        input_grad, weight_grad, bias_grad: whether a gradient of these may be asked for

    >>> import genesis
    >>> x, w, y = genesis.ones(2, 3), genesis.zeros(4, 3), genesis.tensor([1, 3])
    >>> genesis.ops.losses.heads.linear_cross_entropy_by_rows(
    ...     x, w, y, None, None, "sum", -100, 0.0, 1, "float32", "float32", False, False, False)
    tensor(2.7726)
    """
    wide = dtypes.as_dtype(logits_dtype)
    logits = linear(*[x if x is None else x.to(wide) for x in (input, linear_weight, linear_bias)])
    logits = logits.float() if wide.itemsize == 2 else logits
    loss = cross_entropy(logits, target, weight, None, ignore_index, None, reduction, label_smoothing)
    return loss.to(dtypes.float32 if input.dtype.itemsize == 2 else input.dtype)


def _rows(t: Any, reduction: str = "mean", **options: Any) -> Any:
    return case(
        t(5, 2), t(3, 2), t.int(5, low=0, high=3), t(3), None, reduction, options.get("ignored", -100), 0.0, 2,
        "float64", "float64", True, True, True,
    )  # fmt: skip


samples(
    linear_cross_entropy,
    lambda t: [
        case(t(4, 2), t(3, 2), t.int(4, low=0, high=3)),
        case(t(2), t(3, 2), t.int(low=0, high=3), linear_bias=t(3), label_smoothing=0.1),
        case(t(4, 2), t(3, 5, 2), t.int(4, 5, low=0, high=3), linear_bias=t(3, 5), reduction="sum"),
    ],
)
samples(
    linear_cross_entropy_by_rows,
    lambda t: [_rows(t), _rows(t, "sum", ignored=1), _rows(t, "none"), _rows(t, ignored=2)],
)
wrong_inputs(
    linear_cross_entropy,
    (lambda t: case(t(4, 2), t(2), t.int(4)), RuntimeError, "input (N, I) and weight (C, ..., I) are needed"),
)
wrong_inputs(
    linear_cross_entropy_by_rows,
    (
        lambda t: case(
            t(2, 2), t(3, 2), t.int(2, low=5, high=6), None, None, "mean", -100, 0.0, 1, "float32", "float32", True, True,
            False,
        ),
        IndexError,
        "cross_entropy: target 5 is out of range for 3 classes",
    ),
)  # fmt: skip

FUNCTIONAL = ["linear_cross_entropy"]
__all__: list[str] = []
