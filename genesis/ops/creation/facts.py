"""What a tensor is: PyTorch's questions whose answer needs no elements, and conversions that change nothing here."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.base import dtypes, layouts
from genesis.base.device import MEMORIES, as_device, memory_named
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.op import samples
from genesis.core.call.refusal import expect_tensor, explain_all
from genesis.core.call.kinds import case, composite
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.pointwise.choice import where
from genesis.ops.shapes.expand import sum_to


def _is_on(*types: str) -> Any:
    return property(lambda self: self.device.type in types, doc=f"Whether the tensor is on {' or '.join(types)}.")


for _name in ("cpu", "cuda", "mps", "xpu", "xla", "ipu", "mtia", "maia", "vulkan"):
    setattr(Tensor, f"is_{_name}", _is_on(_name))

_NEVER = property(lambda self: False, doc="False: there are no such tensors here.")
for _name in ("quantized", "sparse", "sparse_csr", "mkldnn", "nested"):
    setattr(Tensor, f"is_{_name}", _NEVER)
Tensor.layout = property(lambda self: layouts.strided, doc="How the elements are stored: always ``strided``.")
Tensor.name = property(lambda self: None, doc="None: tensors have no names.")
Tensor.volatile = property(lambda self: False, doc="False; use ``no_grad``.")


def is_conj(input: Tensor) -> bool:
    """False: the conjugate of a tensor is computed at once."""
    expect_tensor("is_conj", "input", input)
    return False


def is_neg(input: Tensor) -> bool:
    """False: the negative of a tensor is computed at once."""
    expect_tensor("is_neg", "input", input)
    return False


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> import genesis
    >>> genesis.is_signed(genesis.ones(2)), genesis.is_signed(genesis.ones(2, dtype=genesis.uint8))
    (True, False)
    """
    return expect_tensor("is_signed", "input", input)._array.dtype.kind not in "ub"


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape.

    >>> import genesis
    >>> genesis.is_same_size(genesis.ones(2), genesis.ones(2, 1))
    False
    """
    name = "is_same_size"
    return expect_tensor(name, "input", input).shape == expect_tensor(name, "other", other).shape


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero.

    Raises:
        RuntimeError: there is not exactly one

    >>> import genesis
    >>> genesis.is_nonzero(genesis.tensor([3.]))
    True
    """
    expect_tensor("is_nonzero", "input", input)
    if input.numel() != 1:
        raise ShapeError(message("is_nonzero", f"the tensor has {input.numel()} elements, not one"))
    return bool(input.item() != 0)


def get_device(input: Tensor) -> int:
    """The index of the tensor's GPU; -1 on the CPU.

    >>> import genesis
    >>> genesis.get_device(genesis.ones(2))
    -1
    """
    device = expect_tensor("get_device", "input", input).device
    return -1 if device.index is None else device.index


@composite(dtypes="fcib")
def isreal(input: Tensor) -> Tensor:
    """Whether each element has no imaginary part; of real tensors all of them.

    >>> import genesis
    >>> genesis.isreal(genesis.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    from genesis.ops.creation.convert import imag

    return imag(input) == 0 if input.is_complex() else input.new_ones(input.shape, dtype=dtypes.bool)


samples(isreal, lambda t: [case(t(2, 3)), case(t())])


def _itself(name: str, doc: str) -> Any:
    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return input

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    setattr(Tensor, name, method)
    return method


resolve_conj = _itself("resolve_conj", "The tensor itself: its conjugate is computed at once.")
resolve_neg = _itself("resolve_neg", "The tensor itself: its negative is computed at once.")


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """This tensor in memory that a GPU copies from while the program goes on; itself where there is no GPU."""
    memory = memory_named("cuda" if device is None else as_device(device).type)
    if memory is None or not isinstance(self._array, np.ndarray):
        return self
    return wrap(memory.pin(self._array))


def _is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether a GPU copies from this tensor's memory while the program goes on."""
    memory = MEMORIES.get("cuda")
    return memory is not None and isinstance(self._array, np.ndarray) and memory.is_pinned(self._array)  # type: ignore[no-any-return]


def _record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory until a stream of the device has done what it was told until now, also where nobody has the
    tensor any more.
    """
    if isinstance(self._array, DeviceArray):
        memory_of(self._array).used_on(self._array, stream)


Tensor.pin_memory, Tensor.is_pinned, Tensor.record_stream = _pin_memory, _is_pinned, _record_stream
_itself("to_dense", "The tensor itself, which is dense.")
Tensor.is_distributed = lambda self: False
Tensor.is_coalesced = lambda self: False
Tensor.ndimension = Tensor.dim
Tensor.adjoint = lambda self: self.mH
Tensor.const_data_ptr = Tensor.data_ptr
Tensor._cdata = property(id)  # libraries ask by it whether two tensors are the same
Tensor.is_set_to = lambda self, tensor: (
    self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape and self.stride() == tensor.stride()
)


def _dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest steps in memory to that with the smallest."""
    steps = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda d: -steps[d]))


def _sum_to_size(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """Sum over the dimensions that broadcasting from ``size`` would add or stretch."""
    from genesis.ops.shapes.expand import sizes_of

    wanted, mine = sizes_of("sum_to_size", "size", size, named), tuple(self._array.shape)
    behind = mine[len(mine) - len(wanted) :]
    if len(wanted) > len(mine) or any(n not in (1, m) for n, m in zip(wanted, behind, strict=True)):
        raise ShapeError(message("sum_to_size", f"size {list(wanted)} does not broadcast to {list(mine)}"))
    return sum_to(self, wanted) if wanted else self.sum()


def _new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this one's dtype, of sizes or of data."""
    if not args:
        return self.new_empty(0, device=device)
    whole = all(isinstance(n, int) for n in args) or type(args[0]) is type(self.shape)
    if not whole and len(args) > 1:
        text = f"expected sizes or data, got {', '.join([type(x).__name__ for x in args])}"
        raise ArgumentError(message("new", text, hint="x.new(data)"))
    return self.new_empty(*args, device=device) if whole else self.new_tensor(args[0], device=device)


def _new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """`new_empty` with chosen steps in memory."""
    from genesis.ops.creation.laid_out import empty_strided

    given = {"dtype": self.dtype, "device": self.device, **options}
    return empty_strided(size, stride, **given)


def _fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the diagonal of a matrix, with ``wrap`` again after each block of a tall one; of cubes the main diagonal.

    Raises:
        RuntimeError: fewer than two dimensions, or a tensor of more that is no cube
    """
    shape = tuple(self._array.shape)
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(message("fill_diagonal_", f"expected a matrix or a cube, got shape {list(shape)}"))
    step = sum(_steps(shape))
    end = shape[1] * shape[1] if len(shape) == 2 and not wrap else self.numel()
    from genesis.core.call.writes import inplace
    from genesis.ops.creation.sequences import arange

    def filled(old: Tensor) -> Tensor:
        index = arange(old.numel(), device=old.device).reshape(shape)
        return where((index % step == 0) & (index < end), old.new_full((), fill_value), old)

    return inplace("fill_diagonal_", filled, self, (), {}) if self.numel() else self


def _steps(shape: tuple[int, ...]) -> list[int]:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.insert(0, steps[0] * n)
    return steps


Tensor.dim_order, Tensor.sum_to_size, Tensor.new = _dim_order, _sum_to_size, _new
Tensor.new_empty_strided, Tensor.fill_diagonal_ = _new_empty_strided, _fill_diagonal_
for _function in (is_conj, is_neg, is_signed, is_same_size, is_nonzero, get_device):
    setattr(Tensor, _function.__name__, _function)

explain_all(globals(), "is_conj", "is_neg", "is_signed", "is_same_size", "is_nonzero", "get_device")

__all__ = [
    "get_device",
    "is_conj",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "isreal",
    "resolve_conj",
    "resolve_neg",
]
