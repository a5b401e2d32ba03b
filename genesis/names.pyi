# Written by scripts/signatures; do not edit.
import builtins
from collections.abc import Sequence
from typing import Any

from genesis import amp as amp
from genesis import array_api as array_api
from genesis import cli as cli
from genesis import compiler as compiler
from genesis import cuda as cuda
from genesis import data as data
from genesis import datasets as datasets
from genesis import debug as debug
from genesis import distributed as distributed
from genesis import distributions as distributions
from genesis import fft as fft
from genesis import func as func
from genesis import fx as fx
from genesis import interop as interop
from genesis import io as io
from genesis import jit as jit
from genesis import library as library
from genesis import linalg as linalg
from genesis import masked as masked
from genesis import nested as nested
from genesis import nn as nn
from genesis import onnx as onnx
from genesis import optim as optim
from genesis import overrides as overrides
from genesis import profiler as profiler
from genesis import pytorch as pytorch
from genesis import signal as signal
from genesis import sklearn as sklearn
from genesis import sparse as sparse
from genesis import special as special
from genesis import testing as testing
from genesis import tiny as tiny
from genesis import utils as utils
from genesis.autograd import GradientTape as GradientTape
from genesis.pytorch import as_torch as as_torch
from genesis.amp import autocast as autocast
from genesis.compiler import compile as compile
from genesis.autograd import custom_gradient as custom_gradient
from genesis.autograd import custom_jvp as custom_jvp
from genesis.autograd import custom_vjp as custom_vjp
from genesis.debug import draw as draw
from genesis.amp import get_autocast_dtype as get_autocast_dtype
from genesis.amp import is_autocast_enabled as is_autocast_enabled
from genesis.io import load as load
from genesis.io import save as save
from genesis.autograd import stop_gradient as stop_gradient
from genesis.func import vmap as vmap
from genesis.core.graph.tensor import Tensor

BlockTensor: Any
CompressedTensor: Any
Generator: Any
SparseTensor: Any
TypedStorage: Any
UntypedStorage: Any
def abs(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Absolute value, $|x|$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.abs(genesis.tensor([1., -2.]))
    tensor([1., 2.])
    """
def absolute(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Absolute value, $|x|$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.abs(genesis.tensor([1., -2.]))
    tensor([1., 2.])
    """
def acos(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc cosine, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.acos(genesis.tensor([0., 1.]))
    tensor([1.5708, 0.0000])
    """
def acosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic cosine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.acosh(genesis.tensor([1., 2.]))
    tensor([0.0000, 1.3170])
    """
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many nearly equal cells of (N, C, L) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.adaptive_avg_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: builtins.bool = ...) -> Any:
    """The largest elements of as many nearly equal cells of (N, C, L) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.adaptive_max_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def add(input: Tensor, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Sum, $x + alpha y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.add(genesis.tensor([1., 2.]), 3)
    tensor([4., 5.])
    """
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """$\\beta x + \\alpha \\sum_i A_i B_i$ for batches of matrices.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> genesis.addbmm(genesis.ones(1), genesis.ones(2, 1, 2), genesis.ones(2, 2, 1))
    tensor([[5.]])
    """
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
    """Sum with a scaled quotient, $x + value \\cdot a / b$.

    >>> import genesis
    >>> genesis.addcdiv(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([2., 4.]), value=2)
    tensor([2., 2.])
    """
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
    """Sum with a scaled product, $x + value \\cdot a b$.

    >>> import genesis
    >>> genesis.addcmul(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([3., 4.]), value=0.5)
    tensor([2.5000, 5.0000])
    """
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """$\\beta x + \\alpha A B$ for matrices.

    >>> import genesis
    >>> genesis.addmm(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[3.]])
    """
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """$\\beta x + \\alpha A v$ for a matrix and a vector.

    >>> import genesis
    >>> genesis.addmv(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2))
    tensor([3.])
    """
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """$\\beta x + \\alpha u v^T$ for two vectors; of bool tensors with *and* for the products and *or* for the sum.

    Raises:
        RuntimeError: not two vectors

    >>> import genesis
    >>> genesis.addr(genesis.zeros(2, 2), genesis.tensor([1., 2.]), genesis.ones(2))
    tensor([[1., 1.],
            [2., 2.]])
    """
def all(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Whether all elements over ``dim`` (None: all) are non-zero; True of nothing. The result is bool (uint8 of uint8).

    >>> import genesis
    >>> genesis.all(genesis.tensor([False, True]))
    tensor(False)
    """
def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
    """Whether all elements are close, see `isclose`.

    >>> import genesis
    >>> genesis.allclose(genesis.ones(2), genesis.ones(2) + 1e-9)
    True
    """
def amax(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Largest element over ``dim`` (None: all); nan if there is one. Equal maxima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([5., 7.])
    """
def amin(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Smallest element over ``dim`` (None: all); nan if there is one. Equal minima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1., 2.])
    """
def aminmax(input: Tensor, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
    """Smallest and largest element over ``dim`` (None: all), as a named tuple ``(min, max)``.

    >>> import genesis
    >>> genesis.aminmax(genesis.tensor([1., 5., 2.])).max
    tensor(5.)
    """
def angle(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Argument of a complex number in radians; for reals 0 or pi.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.angle(genesis.tensor([1., -1.]))
    tensor([0.0000, 3.1416])
    """
def any(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Whether one element over ``dim`` (None: all) is non-zero; False of nothing. The result is bool (uint8 of uint8).

    >>> import genesis
    >>> genesis.any(genesis.tensor([False, True]))
    tensor(True)
    """
def arange(start: Any = ..., end: Any = ..., step: Any = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Numbers from ``start`` (0) up to, not including, ``end`` in steps; int64 if all three are integers.

    Raises:
        RuntimeError: a step of zero, or one that leads away from ``end``

    >>> import genesis
    >>> genesis.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
def arccos(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc cosine, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.acos(genesis.tensor([0., 1.]))
    tensor([1.5708, 0.0000])
    """
def arccosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic cosine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.acosh(genesis.tensor([1., 2.]))
    tensor([0.0000, 1.3170])
    """
def arcsin(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc sine, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.asin(genesis.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
def arcsinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic sine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.asinh(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8814])
    """
def arctan(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc tangent, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atan(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
def arctan2(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Angle of the point $(y, x)$, in radians.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atan2(genesis.tensor([0., 1.]), 1.)
    tensor([0.0000, 0.7854])
    """
def arctanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic tangent.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atanh(genesis.tensor([0., 0.5]))
    tensor([0.0000, 0.5493])
    """
def argmax(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Index of the largest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1, 0])
    """
def argmin(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Index of the smallest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([0, 1])
    """
def argsort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, axis: Any = ...) -> Tensor:
    """Indices that sort along ``dim``; equals keep their order, nan comes last (first when descending).

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.argsort(genesis.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
def argwhere(input: Tensor, *, as_tuple: builtins.bool = ...) -> Any:
    """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

    >>> import genesis
    >>> genesis.nonzero(genesis.tensor([0., 3.]))
    tensor([[1]])
    """
def as_strided(input: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """The memory of a tensor with other sizes and steps between neighbours, from an offset in its storage; a view.

    The gradient of an element that is seen several times is the sum of theirs.

    Raises:
        RuntimeError: sizes and strides of different lengths, or that reach beyond the storage

    >>> import genesis
    >>> genesis.as_strided(genesis.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """``input`` with the elements that `as_strided` sees replaced.

    Raises:
        RuntimeError: ``src`` has not that size, or it reaches beyond the storage

    >>> import genesis
    >>> genesis.as_strided_scatter(genesis.zeros(2, 2), genesis.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
def as_tensor(data: Any, dtype: Any = ..., device: Any = ...) -> Tensor:
    """``data`` as a tensor, sharing memory where that is possible (tensors, NumPy arrays of the right dtype).

    >>> import genesis, numpy as np
    >>> a = np.zeros(2); t = genesis.as_tensor(a); a[0] = 1; t
    tensor([1., 0.], dtype=genesis.float64)
    """
def asarray(obj: Any, *, dtype: Any = ..., device: Any = ..., copy: builtins.bool | None = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`as_tensor` with ``copy``: True always copies, False never (an error where it would have to).

    >>> import genesis
    >>> genesis.asarray([1.0])
    tensor([1.])
    """
def asin(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc sine, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.asin(genesis.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
def asinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic sine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.asinh(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8814])
    """
def atan(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Arc tangent, in radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atan(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
def atan2(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Angle of the point $(y, x)$, in radians.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atan2(genesis.tensor([0., 1.]), 1.)
    tensor([0.0000, 0.7854])
    """
def atanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse hyperbolic tangent.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.atanh(genesis.tensor([0., 0.5]))
    tensor([0.0000, 0.5493])
    """
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least 1 dimensions, ones added where they are missing."""
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least 2 dimensions, ones added where they are missing."""
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least 3 dimensions, ones added where they are missing."""
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of each window of (N, C, L).

    Args:
        kernel_size, stride, padding: one number for all dimensions or one for each; the stride is the kernel's size
            unless given, the padding is zeros
        ceil_mode: whether a last window may reach beyond the padding
        count_include_pad: whether the padding counts in the mean

    Raises:
        RuntimeError: a shape, integers, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.avg_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """$\\beta x + \\alpha A_i B_i$ for batches of matrices.

    >>> import genesis
    >>> genesis.baddbmm(genesis.ones(1), genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
    tensor([[[3.]]])
    """
def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`signal.windows.bartlett`, by default of a period.

    >>> import genesis
    >>> genesis.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Ones with the probabilities in ``input`` (or ``p``), zeros otherwise.

    Raises:
        RuntimeError: a probability outside [0, 1]

    >>> import genesis
    >>> genesis.bernoulli(genesis.tensor([0., 1.]))
    tensor([0., 1.])
    """
def bincount(input: Tensor, weights: Tensor | None = ..., minlength: builtins.int = ...) -> Tensor:
    """How often each integer from 0 to the largest occurs, as int64; or the sum of its weights, as float32 or float64.

    Not differentiable.

    Raises:
        RuntimeError: the input is not 1-d or has negative elements; ``weights`` of another shape

    >>> import genesis
    >>> genesis.bincount(genesis.tensor([0, 1, 1]))
    tensor([1, 2])
    """
def binomial(count: Tensor, prob: Tensor, generator: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """How many of ``count`` trials succeed, each with the probability ``prob``; the two broadcast.

    Raises:
        ValueError: counts that are not floating numbers; negative ones, and probabilities outside of [0, 1]
        RuntimeError: dtypes that differ

    >>> import genesis
    >>> genesis.binomial(genesis.tensor([10., 10.]), genesis.tensor([0., 1.]))
    tensor([ 0., 10.])
    """
def bitwise_and(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Bits set in both; for bool, and.

    Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_and(genesis.tensor([6, 3]), 2)
    tensor([2, 2])
    """
def bitwise_left_shift(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Bits moved up, $x 2^y$.

    Element by element, on tensors that broadcast together; integer dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_left_shift(genesis.tensor([1, 2]), 2)
    tensor([4, 8])
    """
def bitwise_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """All bits turned; for bool, not.

    Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_not(genesis.tensor([0, 1]))
    tensor([-1, -2])
    """
def bitwise_or(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Bits set in either; for bool, or.

    Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_or(genesis.tensor([4, 3]), 2)
    tensor([6, 3])
    """
def bitwise_right_shift(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Bits moved down, $\\lfloor x / 2^y \\rfloor$.

    Element by element, on tensors that broadcast together; integer dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_right_shift(genesis.tensor([4, 8]), 2)
    tensor([1, 2])
    """
def bitwise_xor(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Bits set in one of the two.

    Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.bitwise_xor(genesis.tensor([6, 3]), 2)
    tensor([4, 1])
    """
def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`signal.windows.blackman`, by default of a period.

    >>> import genesis
    >>> genesis.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one; of none a matrix without elements.

    >>> import genesis
    >>> genesis.block_diag(genesis.ones(1, 1), genesis.ones(1, 2))
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Products of two batches of matrices, of the same size.

    >>> import genesis
    >>> genesis.bmm(genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
    tensor([[[2.]]])
    """
def broadcast_shapes(*shapes: Sequence[builtins.int]) -> Any:
    """The shape that shapes broadcast to.

    >>> import genesis
    >>> genesis.broadcast_shapes((3, 1), (4,))
    genesis.Size([3, 4])
    """
def broadcast_tensors(*tensors: Tensor) -> builtins.tuple[Tensor, ...]:
    """Tensors expanded to their common shape.

    >>> import genesis
    >>> a, b = genesis.broadcast_tensors(genesis.ones(3, 1), genesis.ones(4))
    >>> a.shape, b.shape
    (genesis.Size([3, 4]), genesis.Size([3, 4]))
    """
def broadcast_to(input: Tensor, size: Sequence[builtins.int]) -> Tensor:
    """The tensor in a shape it broadcasts to, as a view.

    >>> import genesis
    >>> genesis.broadcast_to(genesis.tensor([1., 2.]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
def bucketize(input: Any, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ...) -> Tensor:
    """The bucket, between sorted boundaries, that each element falls into, $b_{i-1} < x \\le b_i$; see `searchsorted`.

    Raises:
        RuntimeError: the boundaries are not 1-d

    >>> import genesis
    >>> genesis.bucketize(genesis.tensor([0., 2.]), genesis.tensor([1., 3.]))
    tensor([0, 1])
    """
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of 1-d tensors, as rows."""
def cat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Tensors one after the other along ``dim``; other sizes must be equal, dtypes are promoted.

    Raises:
        TypeError: no tensors, or something else among them
        RuntimeError: sizes that do not match

    >>> import genesis
    >>> genesis.cat([genesis.zeros(1), genesis.ones(2)])
    tensor([0., 1., 1.])
    """
def cdist(x1: Tensor, x2: Tensor, p: builtins.float = ..., compute_mode: builtins.str = ...) -> Tensor:
    """Distances in the p-norm between all pairs of rows; exact, so ``compute_mode`` has no effect.

    >>> import genesis
    >>> genesis.cdist(genesis.zeros(1, 2), genesis.tensor([[3., 4.]]))
    tensor([[5.]])
    """
def ceil(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Smallest integer not below $x$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ceil(genesis.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """
def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """$\\max(x, 0) + \\min(0, \\alpha (e^{x/\\alpha} - 1))$ (Barron 2017).

    >>> import genesis
    >>> genesis.celu(genesis.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
def celu_(input: Any, alpha: Any = ...) -> Any:
    """In-place form of `celu`: writes the result into this tensor and returns it."""
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor:
    """The product of matrices, in the order of multiplications that costs least.

    Raises:
        RuntimeError: not matrices, or sizes that do not fit

    >>> import genesis
    >>> genesis.chain_matmul(genesis.ones(2, 3), genesis.ones(3, 4), genesis.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of ``groups`` groups in turns, (N, C, ...): what a convolution in groups needs after it (Zhang et al.
    2018).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of the groups

    >>> import genesis
    >>> genesis.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """`linalg.cholesky`.

    >>> import genesis
    >>> genesis.cholesky(genesis.tensor([[4.]]))
    tensor([[2.]])
    """
def cholesky_inverse(L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """The inverse of A from Cholesky's factor of it, $A = LL^H$ (or for ``upper`` $A = L^H L$).

    >>> import genesis
    >>> genesis.cholesky_inverse(genesis.tensor([[2.]]))
    tensor([[0.2500]])
    """
def cholesky_solve(B: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """The solution of $AX = B$ from Cholesky's factor of A, $A = LL^H$ (or for ``upper`` $A = L^H L$).

    Args:
        B: (\\*, n, k), batches broadcast
        L: (\\*, n, n), of which the other half is not read

    Raises:
        RuntimeError: L is not square, sizes or dtypes do not fit

    >>> import genesis
    >>> genesis.cholesky_solve(genesis.tensor([[8.]]), genesis.tensor([[2.]]))
    tensor([[2.]])
    """
def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size along ``dim`` (the last may be smaller); views.

    >>> import genesis
    >>> [len(piece) for piece in genesis.chunk(genesis.arange(5), 2)]
    [3, 2]
    """
def clamp(input: Tensor, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
    tensor.

    The slope is 1 inside and on the edges, 0 outside.

    Raises:
        ValueError: neither limit is given

    >>> import genesis
    >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = ...) -> Tensor:
    """No more than a limit, $\\min(x, y)$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.clamp_max(genesis.tensor([1., 5.]), 3.)
    tensor([1., 3.])
    """
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = ...) -> Tensor:
    """No less than a limit, $\\max(x, y)$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.clamp_min(genesis.tensor([1., 5.]), 3.)
    tensor([3., 5.])
    """
def clip(input: Tensor, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
    tensor.

    The slope is 1 inside and on the edges, 0 outside.

    Raises:
        ValueError: neither limit is given

    >>> import genesis
    >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
def clone(input: Tensor, *, memory_format: Any = ...) -> Tensor:
    """A copy with its own memory; the gradient passes through.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.clone(genesis.tensor([1., 2.]))
    tensor([1., 2.])
    """
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """1-d tensors as the columns of a matrix."""
def combinations(input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...) -> Tensor:
    """All choices of ``r`` elements of a 1-d tensor in their order, as rows.

    Raises:
        RuntimeError: more dimensions, or a negative ``r``

    >>> import genesis
    >>> genesis.combinations(genesis.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """A complex tensor of its real and imaginary parts, of one dtype.

    Raises:
        RuntimeError: the parts differ in dtype

    >>> import genesis
    >>> genesis.complex(genesis.tensor([1.]), genesis.tensor([2.]))
    tensor([1.+2.j])
    """
def concat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Tensors one after the other along ``dim``; other sizes must be equal, dtypes are promoted.

    Raises:
        TypeError: no tensors, or something else among them
        RuntimeError: sizes that do not match

    >>> import genesis
    >>> genesis.cat([genesis.zeros(1), genesis.ones(2)])
    tensor([0., 1., 1.])
    """
def concatenate(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Tensors one after the other along ``dim``; other sizes must be equal, dtypes are promoted.

    Raises:
        TypeError: no tensors, or something else among them
        RuntimeError: sizes that do not match

    >>> import genesis
    >>> genesis.cat([genesis.zeros(1), genesis.ones(2)])
    tensor([0., 1., 1.])
    """
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; of a real tensor the same tensor.

    >>> import genesis
    >>> genesis.conj(genesis.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
def conj_physical(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Complex conjugate, in new memory.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.conj_physical(genesis.tensor([1., 2.]))
    tensor([1., 2.])
    """
def constant_pad_nd(input: Tensor, pad: Sequence[builtins.int], value: Any = ...) -> Tensor:
    """A border of one value; negative numbers take elements away.

    ``pad`` has how many elements are added before and after, for the last dimension first.

    Raises:
        RuntimeError: an odd number of them, or more than the dimensions have; a result of negative size

    >>> import genesis
    >>> genesis.constant_pad_nd(genesis.ones(2), (1, 0), 5.)
    tensor([5., 1., 1.])
    """
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 1 spatial dimension: (N, C, L) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4), genesis.ones(3, 2, 2)
    >>> genesis.nn.functional.conv1d(x, w).shape
    genesis.Size([1, 3, 3])
    """
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 2 spatial dimensions: (N, C, H, W) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4), genesis.ones(3, 2, 2, 2)
    >>> genesis.nn.functional.conv2d(x, w).shape
    genesis.Size([1, 3, 3, 3])
    """
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 3 spatial dimensions: (N, C, D, H, W) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4, 4), genesis.ones(3, 2, 2, 2, 2)
    >>> genesis.nn.functional.conv3d(x, w).shape
    genesis.Size([1, 3, 3, 3, 3])
    """
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: builtins.int = ...) -> Tensor:
    """`conv1d` of (time, batch, channels) with weight (kernel, in, out).

    >>> import genesis
    >>> genesis.conv_tbc(genesis.ones(4, 1, 2), genesis.ones(3, 2, 1), genesis.zeros(1)).shape
    genesis.Size([2, 1, 1])
    """
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 1 spatial dimension: (N, C, L) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4), genesis.ones(2, 3, 2)
    >>> genesis.nn.functional.conv_transpose1d(x, w).shape
    genesis.Size([1, 3, 5])
    """
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 2 spatial dimensions: (N, C, H, W) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4), genesis.ones(2, 3, 2, 2)
    >>> genesis.nn.functional.conv_transpose2d(x, w).shape
    genesis.Size([1, 3, 5, 5])
    """
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 3 spatial dimensions: (N, C, D, H, W) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4, 4), genesis.ones(2, 3, 2, 2, 2)
    >>> genesis.nn.functional.conv_transpose3d(x, w).shape
    genesis.Size([1, 3, 5, 5, 5])
    """
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: builtins.bool, output_padding: Any, groups: builtins.int) -> Tensor:
    """A convolution of (N, C, *sizes), or with ``transposed`` its transpose; what `conv1d` to `conv_transpose3d` call.

    Weight is (out, in / groups, *kernel), of a transposed one (in, out / groups, *kernel).

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 1, 3), genesis.ones(1, 1, 2)
    >>> genesis.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
def copysign(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The size of $x$ with the sign of $y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.copysign(genesis.tensor([1., -2.]), -1)
    tensor([-1., -2.])
    """
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, of which each row has the observations: covariances over $\\sigma_i \\sigma_j$.

    Raises:
        RuntimeError: more than two dimensions

    >>> import genesis
    >>> genesis.corrcoef(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
def cos(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Cosine, of radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.cos(genesis.tensor([0., 1.]))
    tensor([1.0000, 0.5403])
    """
def cosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Hyperbolic cosine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.cosh(genesis.tensor([0., 1.]))
    tensor([1.0000, 1.5431])
    """
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Cosine of the angle between vectors along ``dim``.

    >>> import genesis
    >>> genesis.nn.functional.cosine_similarity(genesis.tensor([[1., 0.]]), genesis.tensor([[1., 1.]]))
    tensor([0.7071])
    """
def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
    """How many elements over ``dim`` (None: all) are not zero, as int64.

    >>> import genesis
    >>> genesis.count_nonzero(genesis.tensor([0., 1., 2.]))
    tensor(2)
    """
def cov(input: Tensor, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
    """The covariances of variables, of which each row has the observations: $\\sum_k w_k (x_{ik} - m_i)(x_{jk} - m_j)^* / c$.

    Args:
        correction: what is taken from the sum of weights in $c$
        fweights: how often each observation counts, integers
        aweights: how much each observation weighs

    Raises:
        RuntimeError: more than two dimensions, weights of another length, or bool

    >>> import genesis
    >>> genesis.cov(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
def cross(input: Tensor, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """Cross product of vectors of three elements along ``dim`` (None: the first dimension of size 3).

    Raises:
        RuntimeError: another size

    >>> import genesis
    >>> genesis.cross(genesis.tensor([1., 0., 0.]), genesis.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
def cummax(input: Tensor, dim: builtins.int) -> Any:
    """Running maximum along ``dim`` as a named tuple ``(values, indices)``; of equals the last, nan once there is one.

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.cummax(genesis.tensor([1., 3., 2.]), 0).values
    tensor([1., 3., 3.])
    """
def cummin(input: Tensor, dim: builtins.int) -> Any:
    """Running minimum along ``dim``, with the indices where it was last reached; see `cummax`.

    >>> import genesis
    >>> genesis.cummin(genesis.tensor([3., 1., 2.]), 0).values
    tensor([3., 1., 1.])
    """
def cumprod(input: Tensor, dim: builtins.int = ..., *, dtype: Any = ..., out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Running product along ``dim``, $y_i = x_1 ... x_i$; integers and bool give int64.

    The gradient is right where elements are zero, too.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.cumprod(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
def cumsum(input: Tensor, dim: builtins.int = ..., *, dtype: Any = ..., out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Running sum along ``dim``, $y_i = x_1 + ... + x_i$; integers and bool give int64.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.cumsum(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
def cumulative_trapezoid(y: Tensor, x: Tensor | None = ..., *, dx: Any = ..., dim: builtins.int = ...) -> Tensor:
    """The areas under a curve up to each of its points but the first, see `trapezoid`.

    Raises:
        IndexError: a dim out of range
        RuntimeError: points that do not fit

    >>> import genesis
    >>> genesis.cumulative_trapezoid(genesis.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
default_generator: Any
def deg2rad(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Degrees to radians.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.deg2rad(genesis.tensor([0., 180.]))
    tensor([0.0000, 3.1416])
    """
def det(input: Tensor) -> Tensor:
    """`linalg.det`.

    >>> import genesis
    >>> genesis.det(genesis.eye(2))
    tensor(1.)
    """
def diag(input: Tensor, diagonal: builtins.int = ...) -> Tensor:
    """The diagonal of a matrix, or the matrix with this diagonal.

    >>> import genesis
    >>> genesis.diag(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
def diag_embed(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Matrices with the last dimension on their diagonal.

    >>> import genesis
    >>> genesis.diag_embed(genesis.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
def diagflat(input: Tensor, offset: builtins.int = ...) -> Tensor:
    """The matrix with the elements, in one dimension, on its diagonal.

    >>> import genesis
    >>> genesis.diagflat(genesis.tensor([[1., 2.]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
def diagonal(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """The diagonal of two dimensions, last in the result; a view.

    >>> import genesis
    >>> genesis.diagonal(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """``input`` with a diagonal replaced: what `diagonal` is the inverse of.

    Raises:
        RuntimeError: ``src`` has not the shape of the diagonal

    >>> import genesis
    >>> genesis.diagonal_scatter(genesis.zeros(2, 2), genesis.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
def diff(input: Tensor, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
    """Differences of neighbours along ``dim``, $y_i = x_{i+1} - x_i$, taken ``n`` times; for bool, whether they differ.

    Args:
        prepend, append: elements to put before and after along ``dim`` first

    Raises:
        RuntimeError: a 0-d tensor, or a negative ``n``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.diff(genesis.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Derivative of ln gamma.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.digamma(genesis.tensor([1., 2.]))
    tensor([-0.5772,  0.4228])
    """
def dist(input: Tensor, other: Tensor, p: builtins.float = ...) -> Tensor:
    """The $p$-norm of a difference, of all elements.

    >>> import genesis
    >>> genesis.dist(genesis.tensor([3., 0.]), genesis.tensor([0., 4.]))
    tensor(5.)
    """
def div(input: Any, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Quotient, $x / y$, exact or rounded.

    Args:
        rounding_mode: None for the exact quotient, ``"floor"`` to round down, ``"trunc"`` to round towards zero

    Raises:
        ValueError: another rounding mode
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.divide(genesis.tensor([7., -7.]), 2, rounding_mode="trunc")
    tensor([ 3., -3.])
    """
def divide(input: Any, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Quotient, $x / y$, exact or rounded.

    Args:
        rounding_mode: None for the exact quotient, ``"floor"`` to round down, ``"trunc"`` to round towards zero

    Raises:
        ValueError: another rounding mode
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.divide(genesis.tensor([7., -7.]), 2, rounding_mode="trunc")
    tensor([ 3., -3.])
    """
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Dot product of two vectors, $\\\\sum_i x_i y_i$.

    >>> import genesis
    >>> genesis.dot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
def dsplit(input: Tensor, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 2; views.

    Raises:
        RuntimeError: fewer than three dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> [piece.shape[2] for piece in genesis.dsplit(genesis.ones(1, 2, 4), 2)]
    [2, 2]
    """
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """Tensors behind each other, along dim 2."""
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products over the indices that an equation does not keep (Einstein's convention).

    Each letter is a dimension, ``...`` any number of broadcast ones; without ``->`` the result has the letters that
    occur once, in alphabetical order. A letter repeated in one operand takes its diagonal. Without an equation each operand
    is followed by a list of numbers for its dimensions, and the last may be by one for the result:
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    Raises:
        RuntimeError: an equation that does not fit the operands

    >>> import genesis
    >>> genesis.einsum("ij,j->i", genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
    tensor([3., 7.])
    """
def empty(*shape: Any, size: Any = ..., out: Tensor | None = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of whatever the memory holds, in the default dtype unless given.

    >>> import genesis
    >>> genesis.empty(2, 3).shape
    genesis.Size([2, 3])
    """
def empty_like(input: Tensor, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of whatever the memory holds, in the shape, dtype and place of ``input``."""
def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """A tensor of whatever the memory holds, whose dimensions lie in memory in the given order.

    >>> import genesis
    >>> genesis.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
def empty_strided(size: Any, stride: Any, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., pin_memory: builtins.bool = ...) -> Tensor:
    """A tensor of whatever the memory holds, with chosen steps between neighbours along each dimension.

    Raises:
        RuntimeError: not one step for each size, or a negative one

    >>> import genesis
    >>> genesis.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
def eq(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x = y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.eq(genesis.tensor([1., 2.]), 2)
    tensor([False,  True])
    """
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape and the same elements.

    >>> import genesis
    >>> genesis.equal(genesis.ones(2), genesis.ones(3))
    False
    """
def erf(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Error function, $\\frac{2}{\\sqrt\\pi} \\int_0^x e^{-t^2} dt$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.erf(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8427])
    """
def erfc(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """One minus the error function, accurate for large $x$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.erfc(genesis.tensor([0., 1.]))
    tensor([1.0000, 0.1573])
    """
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Inverse of the error function.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.erfinv(genesis.tensor([0., 0.5]))
    tensor([0.0000, 0.4769])
    """
def exp(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Exponential, $e^x$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.exp(genesis.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
def exp2(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Power of two, $2^x$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.exp2(genesis.tensor([0., 3.]))
    tensor([1., 8.])
    """
def expm1(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Exponential minus one, $e^x - 1$, accurate near zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.expm1(genesis.tensor([0., 1.]))
    tensor([0.0000, 1.7183])
    """
def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Ones on the diagonal of an ``n`` by ``m`` matrix of zeros.

    >>> import genesis
    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
def fix(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Integer part of $x$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.trunc(genesis.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """
def flatten(input: Tensor, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
    """Merge the dimensions from ``start_dim`` to ``end_dim`` into one.

    >>> import genesis
    >>> genesis.flatten(genesis.zeros(2, 3, 4), 1).shape
    genesis.Size([2, 12])
    """
def flip(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """A copy in reverse order along ``dims``.

    >>> import genesis
    >>> genesis.flip(genesis.tensor([1., 2., 3.]), (0,))
    tensor([3., 2., 1.])
    """
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
def float_power(input: Any, exponent: Any) -> Tensor:
    """Power, $x^y$, in double precision whatever the dtypes are.

    >>> import genesis
    >>> genesis.float_power(genesis.tensor([1, 2, 3]), -1)
    tensor([1.0000, 0.5000, 0.3333], dtype=genesis.float64)
    """
def floor(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Largest integer not above $x$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.floor(genesis.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """
def floor_divide(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Quotient rounded towards minus infinity, $\\lfloor x / y \\rfloor$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.floor_divide(genesis.tensor([7., -7.]), 2)
    tensor([ 3., -4.])
    """
def fmax(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The larger of two, ignoring nan.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.fmax(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
    tensor([3., 5.])
    """
def fmin(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The smaller of two, ignoring nan.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.fmin(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
    tensor([1., 2.])
    """
def fmod(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Remainder with the sign of the dividend.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.fmod(genesis.tensor([7., -7.]), 3)
    tensor([ 1., -1.])
    """
def frac(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Fractional part, $x - trunc(x)$.

    Element by element, on tensors that broadcast together; floating dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.frac(genesis.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
def frexp(input: Tensor) -> Any:
    """Each element as $m 2^e$ with $|m|$ in [1/2, 1): the mantissa, and the exponent as int32.

    Raises:
        RuntimeError: the tensor is not floating

    >>> import genesis
    >>> genesis.frexp(genesis.tensor([3.]))
    frexp_result(mantissa=tensor([0.7500]), exponent=tensor([2], dtype=genesis.int32))
    """
def from_dlpack(ext_tensor: Any, *, device: Any = ..., copy: builtins.bool | None = ...) -> Tensor:
    """A tensor on the memory of any object that speaks DLPack (NumPy, PyTorch, JAX on the CPU, ...).

    Args:
        device: where the tensor shall be; None: where the memory is
        copy: True always copies, False never

    Raises:
        ValueError: ``copy=False``, and the tensor shall be elsewhere than the memory

    >>> import genesis, numpy as np
    >>> genesis.from_dlpack(np.ones(2, dtype=np.float32))
    tensor([1., 1.])
    """
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a NumPy array: a write to one is seen by the other.

    A read-only array gives a tensor that cannot be written to in place.

    Raises:
        TypeError: not a NumPy array, or of a dtype without counterpart (strings, objects, dates)

    >>> import genesis, numpy as np
    >>> genesis.from_numpy(np.array([1, 2], dtype=np.int32))
    tensor([1, 2], dtype=genesis.int32)
    """
def frombuffer(buffer: Any, *, dtype: Any, count: builtins.int = ..., offset: builtins.int = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A tensor on the memory of a Python buffer.

    >>> import genesis
    >>> genesis.frombuffer(bytearray(8), dtype=genesis.int32)
    tensor([0, 0], dtype=genesis.int32)
    """
def full(size: Any, fill_value: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """A tensor of one value; its dtype follows from the value unless given.

    >>> import genesis
    >>> genesis.full((2,), 7)
    tensor([7, 7])
    """
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
    """A tensor of one value in the shape, dtype and place of ``input``.

    >>> import genesis
    >>> genesis.full_like(genesis.zeros(2), 3)
    tensor([3., 3.])
    """
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ...) -> Tensor:
    """Elements named along ``dim``, ``out[i][j] = input[index[i][j]][j]`` for dim 0; in the shape of ``index``.

    Raises:
        IndexError: an index out of range
        RuntimeError: ``index`` has other dimensions, or is larger than the input elsewhere

    >>> import genesis
    >>> genesis.gather(genesis.tensor([[1., 2.], [3., 4.]]), 1, genesis.tensor([[0], [1]]))
    tensor([[1.],
            [4.]])
    """
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The greatest common divisor of each pair of integers, after broadcasting.

    Raises:
        RuntimeError: no integers, or shapes that do not fit

    >>> import genesis
    >>> genesis.gcd(genesis.tensor([12, 5]), genesis.tensor([8, 10]))
    tensor([4, 5])
    """
def ge(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\ge y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ge(genesis.tensor([1., 2.]), 2)
    tensor([False,  True])
    """
def geqrf(input: Tensor, *, out: Tensor | None = ...) -> Any:
    """The QR factors as LAPACK keeps them, ``(a, tau)``: R on and above the diagonal, below it the reflections that
    `linalg.householder_product` makes Q of. It has no gradient.

    >>> import genesis
    >>> genesis.geqrf(genesis.eye(2)).a.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """Outer product of two vectors, $x_i y_j$.

    >>> import genesis
    >>> genesis.outer(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
def get_device(input: Tensor) -> builtins.int:
    """The index of the tensor's GPU; -1 on the CPU.

    >>> import genesis
    >>> genesis.get_device(genesis.ones(2))
    -1
    """
def get_rng_state() -> Tensor:
    """The state of the default generator, for `set_rng_state`."""
def gradient(input: Tensor, *, spacing: Any = ..., dim: Any = ..., edge_order: builtins.int = ...) -> builtins.list[Tensor]:
    """The slopes along each of ``dim``, from the neighbours on both sides; at the edges from one side.

    Args:
        spacing: the distance of points: one number, one for each dimension, or for each a tensor of their places
        edge_order: 1 or 2, the order of the estimate at the edges

    Raises:
        RuntimeError: a dimension shorter than ``edge_order + 1``, or a spacing that does not fit

    >>> import genesis
    >>> genesis.gradient(genesis.tensor([1., 2., 4., 7.]))
    [tensor([1.0000, 1.5000, 2.5000, 3.0000])]
    """
def greater(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x > y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.gt(genesis.tensor([1., 2.]), 1)
    tensor([False,  True])
    """
def greater_equal(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\ge y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ge(genesis.tensor([1., 2.]), 2)
    tensor([False,  True])
    """
def gru(input: Tensor, hx: Tensor, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = ...) -> builtins.tuple[Tensor, Tensor]:
    """Gated recurrent units of several layers; what `genesis.nn.GRU` computes.

    Arguments as of `genesis.lstm`, with one tensor of hidden states.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last ones of all layers

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones(3, 1)
    >>> [y.shape for y in genesis.gru(x, h, [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1])]
    """
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """One step of gated recurrent units: (B, I) and the hidden states (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 1), genesis.ones(3, 1)
    >>> genesis.gru_cell(x, x, w, w)
    tensor([[0.],
            [0.]])
    """
def gt(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x > y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.gt(genesis.tensor([1., 2.]), 1)
    tensor([False,  True])
    """
def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., alpha: builtins.float = ..., beta: builtins.float = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """$\\alpha - \\beta \\cos 2 \\pi x$, by default of a period.

    >>> import genesis
    >>> genesis.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`signal.windows.hann`, by default of a period.

    >>> import genesis
    >>> genesis.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
def hardshrink(input: Tensor, lambd: builtins.float = ...) -> Tensor:
    """$x$ beyond ``lambd`` on both sides, zero between.

    >>> import genesis
    >>> genesis.hardshrink(genesis.tensor([-1., 0.25]))
    tensor([-1.,  0.])
    """
def hash_tensor(input: Tensor, dim: Any = ..., *, keepdim: builtins.bool = ..., mode: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """The exclusive or of the bits of all elements, or of those along dimensions: of floats as float64, of integers as
    int64.

    Raises:
        RuntimeError: no elements, and no dimension
        ValueError: a mode other than 0

    >>> import genesis
    >>> genesis.hash_tensor(genesis.tensor([1, 2])).item()
    3
    """
def heaviside(input: Tensor, values: Any, *, out: Tensor | None = ...) -> Tensor:
    """Step: 0 below zero, 1 above, $y$ at zero.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.heaviside(genesis.tensor([-1., 0., 2.]), genesis.tensor([0.5, 0.5, 0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor:
    """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max`` (both equal: of the data's
    range).

    The last bin includes its end. Elements outside and nan are left out. Not differentiable.

    Raises:
        RuntimeError: an input that is not floating, no bins, ``max`` below ``min``, or a range that is not finite

    >>> import genesis
    >>> genesis.histc(genesis.tensor([1., 2., 1.]), bins=2, min=0, max=3)
    tensor([2., 1.])
    """
def histogram(input: Tensor, bins: Any, *, range: Sequence[builtins.float] | None = ..., weight: Tensor | None = ..., density: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """How many elements are in each bin, and the edges of the bins; the last bin holds its right edge.

    Args:
        bins: how many of one width, or a tensor of edges
        range: the lowest and the highest edge; the smallest and the largest element for None
        weight: what each element counts for
        density: divide by the total and by the widths

    >>> import genesis
    >>> genesis.histogram(genesis.tensor([1., 2., 2.]), bins=2).hist
    tensor([1., 2.])
    """
def histogramdd(input: Tensor, bins: Any, *, range: Sequence[builtins.float] | None = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """How many points, the last dimension of ``input``, are in each cell of a grid; and the edges of the grid.

    Args:
        bins: how many along each dimension, one number for all, or tensors of edges
        range: the lowest and highest edge of each dimension, one after the other
        weight: what each point counts for
        density: divide by the total and by the size of each cell

    >>> import genesis
    >>> genesis.histogramdd(genesis.tensor([[0., 0.], [1., 1.]]), bins=[2, 2]).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
def hsplit(input: Tensor, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 1 (dim 0 of one dimension); views.

    Raises:
        RuntimeError: no dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> genesis.hsplit(genesis.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """Tensors side by side: along dim 1, or dim 0 for 1-d.

    >>> import genesis
    >>> genesis.hstack([genesis.zeros(1), genesis.ones(1)])
    tensor([0., 1.])
    """
def hypot(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Length of $(x, y)$, $\\sqrt{x^2 + y^2}$.

    Element by element, on tensors that broadcast together; floating dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.hypot(genesis.tensor([3., 5.]), genesis.tensor([4., 12.]))
    tensor([ 5., 13.])
    """
def i0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 0, $I_0$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.i0(genesis.tensor([0., 1.]))
    tensor([1.0000, 1.2661])
    """
def igamma(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Regularised lower incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_0^x t^{a-1} e^{-t} dt$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.igamma(genesis.tensor([2., 2.]), genesis.tensor([1., 3.]))
    tensor([0.2642, 0.8009])
    """
def igammac(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Regularised upper incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_x^\\infty t^{a-1} e^{-t} dt$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.igammac(genesis.tensor([2., 2.]), genesis.tensor([1., 3.]))
    tensor([0.7358, 0.1991])
    """
def imag(input: Tensor) -> Tensor:
    """Imaginary parts, as a view.

    >>> import genesis
    >>> genesis.imag(genesis.tensor([1 + 2j]))
    tensor([2.])
    """
def index_add(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ...) -> Tensor:
    """``input`` with slices of ``source`` added at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_add(genesis.zeros(3), 0, genesis.tensor([1, 1]), genesis.tensor([2., 3.]))
    tensor([0., 5., 0.])
    """
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with slices replaced by those of ``source`` at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_copy(genesis.zeros(3), 0, genesis.tensor([1]), genesis.tensor([2.]))
    tensor([0., 2., 0.])
    """
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
    """``input`` with slices set to one value at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_fill(genesis.zeros(3), 0, genesis.tensor([1]), 7)
    tensor([0., 7., 0.])
    """
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """``input`` with ``values`` at (or, with ``accumulate``, added at) a tuple of indices.

    >>> import genesis
    >>> genesis.index_put(genesis.zeros(3), (genesis.tensor([1, 1]),), genesis.tensor([2., 3.]), accumulate=True)
    tensor([0., 5., 0.])
    """
def index_reduce(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
    """Slices of ``source`` combined at the places of a 1-d index along ``dim``: "prod", "mean", "amax" or "amin".

    Raises:
        ValueError: an unknown ``reduce``
        RuntimeError: ``source`` has not one slice for each place

    >>> import genesis
    >>> genesis.index_reduce(genesis.ones(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "amax")
    tensor([1., 5.])
    """
def index_select(input: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """The slices along ``dim`` named by a 1-d index, in that order.

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.index_select(genesis.tensor([1., 2., 3.]), 0, genesis.tensor([2, 0]))
    tensor([3., 1.])
    """
def initial_seed() -> builtins.int:
    """The seed of the default generator."""
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dimensions.

    >>> import genesis
    >>> genesis.inner(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
def inverse(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """`linalg.inv`.

    >>> import genesis
    >>> genesis.inverse(genesis.eye(1))
    tensor([[1.]])
    """
def is_complex(input: Tensor) -> builtins.bool:
    """Whether the dtype is complex."""
def is_conj(input: Tensor) -> builtins.bool:
    """False: the conjugate of a tensor is computed at once."""
def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the dtype is floating."""
def is_neg(input: Tensor) -> builtins.bool:
    """False: the negative of a tensor is computed at once."""
def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element is not zero.

    Raises:
        RuntimeError: there is not exactly one

    >>> import genesis
    >>> genesis.is_nonzero(genesis.tensor([3.]))
    True
    """
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have one shape.

    >>> import genesis
    >>> genesis.is_same_size(genesis.ones(2), genesis.ones(2, 1))
    False
    """
def is_signed(input: Tensor) -> builtins.bool:
    """Whether the dtype has negative numbers.

    >>> import genesis
    >>> genesis.is_signed(genesis.ones(2)), genesis.is_signed(genesis.ones(2, dtype=genesis.uint8))
    (True, False)
    """
def is_storage(obj: Any) -> builtins.bool:
    """Whether something is a storage.

    >>> import genesis
    >>> genesis.is_storage(genesis.ones(2).storage())
    True
    """
def is_tensor(obj: Any) -> builtins.bool:
    """Whether ``obj`` is a tensor.

    >>> import genesis
    >>> genesis.is_tensor([1.0])
    False
    """
def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
    """Whether $|x - y| \\le atol + rtol |y|$; equal infinities are close, nan only with ``equal_nan``.

    >>> import genesis
    >>> genesis.isclose(genesis.tensor([1., 2.]), genesis.tensor([1., 2.1]))
    tensor([ True, False])
    """
def isfinite(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is neither infinite nor nan.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.isfinite(genesis.tensor([1., float('inf')]))
    tensor([ True, False])
    """
def isin(elements: Any, test_elements: Any, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ...) -> Tensor:
    """Whether each of ``elements`` is among ``test_elements``; with ``invert`` whether it is not.

    >>> import genesis
    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([2, 5]))
    tensor([False,  True, False])
    """
def isinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is infinite.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.isinf(genesis.tensor([1., float('inf')]))
    tensor([False,  True])
    """
def isnan(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is nan.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.isnan(genesis.tensor([1., float('nan')]))
    tensor([False,  True])
    """
def isneginf(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is -inf.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.isneginf(genesis.tensor([1., float('inf')]))
    tensor([False, False])
    """
def isposinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is inf.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.isposinf(genesis.tensor([1., float('inf')]))
    tensor([False,  True])
    """
def isreal(input: Tensor) -> Tensor:
    """Whether each element has no imaginary part; of real tensors all of them.

    >>> import genesis
    >>> genesis.isreal(genesis.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
def istft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
    """The inverse of `stft`: the signal whose pieces are nearest to those of a spectrum (Griffin and Lim 1984).

    Args:
        input: (N, T), or (B, N, T) for several signals
        length: of the signal, cut or filled with zeros; what the pieces cover unless given
        return_complex: a complex signal, from all n frequencies
        n_fft, hop_length, win_length, window, center, normalized, onesided: those of `stft`

    Raises:
        RuntimeError: sizes that do not fit, or a window that is zero somewhere in all of its places

    >>> import genesis
    >>> spectrum = genesis.stft(genesis.arange(6.), 4, return_complex=True)
    >>> genesis.istft(spectrum, 4).round(decimals=4).abs()
    tensor([0., 1., 2., 3., 4., 5.])
    """
def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., beta: builtins.float = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`signal.windows.kaiser`, by default of a period.

    >>> import genesis
    >>> genesis.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product.

    >>> import genesis
    >>> genesis.kron(genesis.tensor([1., 2.]), genesis.tensor([1., 10.]))
    tensor([ 1., 10.,  2., 20.])
    """
def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
    """The ``k``-th smallest element along ``dim`` (counted from 1) and its index.

    Raises:
        RuntimeError: there are fewer than ``k``, or a complex tensor
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.kthvalue(genesis.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The least common multiple of each pair of integers, after broadcasting.

    Raises:
        RuntimeError: no integers, or shapes that do not fit

    >>> import genesis
    >>> genesis.lcm(genesis.tensor([12, 5]), genesis.tensor([8, 10]))
    tensor([24, 10])
    """
def ldexp(input: Any, other: Any, *, out: Tensor | None = ...) -> Tensor:
    """A mantissa and an exponent put together, $x \\, 2^y$, rounded once; a power out of range by itself does no harm.

    Integers give a floating result, in the default dtype.

    >>> import genesis
    >>> genesis.ldexp(genesis.tensor([1., 1e-30]), genesis.tensor([-2, 200]))
    tensor([2.5000e-01, 1.6069e+30])
    """
def le(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\le y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.le(genesis.tensor([1., 2.]), 1)
    tensor([ True, False])
    """
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Linear interpolation, $x + w (end - x)$, from the end that is nearer: with a weight of 1 it is ``end`` itself.

    >>> import genesis
    >>> genesis.lerp(genesis.tensor([0., 10.]), genesis.tensor([10., 20.]), 0.5)
    tensor([ 5., 15.])
    """
def less(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x < y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.lt(genesis.tensor([1., 2.]), 2)
    tensor([ True, False])
    """
def less_equal(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\le y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.le(genesis.tensor([1., 2.]), 1)
    tensor([ True, False])
    """
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logarithm of the absolute value of the gamma function.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.lgamma(genesis.tensor([1., 4.]))
    tensor([0.0000, 1.7918])
    """
def linspace(start: Any, end: Any, steps: builtins.int, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    >>> import genesis
    >>> genesis.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
def log(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Natural logarithm, $\\ln x$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.log(genesis.tensor([1., 2.]))
    tensor([0.0000, 0.6931])
    """
def log10(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logarithm to base ten.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.log10(genesis.tensor([1., 50.]))
    tensor([0.0000, 1.6990])
    """
def log1p(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logarithm of one plus $x$, accurate near zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.log1p(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.6931])
    """
def log2(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logarithm to base two.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.log2(genesis.tensor([1., 8.]))
    tensor([0., 3.])
    """
def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Logarithm of the softmax along ``dim``, $x_i - \\ln \\sum_j e^{x_j}$.

    >>> import genesis
    >>> genesis.log_softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
def logaddexp(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Stable $\\ln(e^x + e^y)$.

    Element by element, on tensors that broadcast together; floating, complex dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logaddexp(genesis.tensor([0., 1.]), genesis.tensor([0., 2.]))
    tensor([0.6931, 2.3133])
    """
def logaddexp2(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Stable $\\log_2(2^x + 2^y)$.

    Element by element, on tensors that broadcast together; floating dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logaddexp2(genesis.tensor([0., 1.]), genesis.tensor([0., 1.]))
    tensor([1., 2.])
    """
def logcumsumexp(input: Tensor, dim: builtins.int = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Running logarithm of a sum of exponentials along ``dim``, $y_i = \\ln(e^{x_1} + ... + e^{x_i})$, without
    overflow.

    Raises:
        RuntimeError: a tensor that is neither floating nor complex
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.logcumsumexp(genesis.tensor([-1000., -1000., 0.]), 0)
    tensor([-1000.0000,  -999.3068,     0.0000])
    """
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where that is negative, -inf where it is zero.

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.logdet(genesis.eye(2))
    tensor(0.)
    """
def logical_and(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether both are non-zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logical_and(genesis.tensor([1., 0.]), genesis.tensor([2., 3.]))
    tensor([ True, False])
    """
def logical_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logical_not(genesis.tensor([1., 0.]))
    tensor([False,  True])
    """
def logical_or(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether one is non-zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logical_or(genesis.tensor([1., 0.]), genesis.tensor([0., 0.]))
    tensor([ True, False])
    """
def logical_xor(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether exactly one is non-zero.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logical_xor(genesis.tensor([1., 0.]), genesis.tensor([2., 3.]))
    tensor([False,  True])
    """
def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Inverse of the sigmoid, $\\ln(x / (1 - x))$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.logit(genesis.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])

    With ``eps`` the elements are cut off at eps and 1 - eps first.
    """
def logspace(start: Any, end: Any, steps: builtins.int, base: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """``steps`` numbers from ``base**start`` to ``base**end``, evenly spaced in the exponent.

    >>> import genesis
    >>> genesis.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
def logsumexp(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Logarithm of a sum of exponentials over ``dim`` (None: all), $\\ln \\sum_i e^{x_i}$, without overflow; -inf of
    nothing.

    >>> import genesis
    >>> genesis.logsumexp(genesis.tensor([100., 100.]), dim=0)
    tensor(100.6931)
    """
def lstm(input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = ...) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory of several layers; what `genesis.nn.LSTM` computes.

    Args:
        input: (T, B, I), or (B, T, I) with ``batch_first``
        hx: the first hidden states and cells, (layers, B, H) each, with both directions of each layer
        params: of each layer and direction ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh`` and, for hidden states
            of P numbers, ``weight_hr``
        dropout: between layers, where ``train``

    Sequences of several lengths: ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional)``, see `genesis.nn.utils.rnn.PackedSequence`.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last hidden states and cells of all layers

    Raises:
        RuntimeError: shapes that do not fit
        ValueError: another number of parameters

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones(4, 1)
    >>> [y.shape for y in genesis.lstm(x, (h, h), [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1]), genesis.Size([1, 2, 1])]
    """
def lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """One step of long short-term memory: (B, I) and the hidden states and cells (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 3), genesis.ones(4, 1)
    >>> genesis.lstm_cell(x[:, :1], (x[:, :1], x[:, :1]), w, w)[0].shape
    genesis.Size([2, 1])
    """
def lt(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x < y$.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.lt(genesis.tensor([1., 2.]), 2)
    tensor([ True, False])
    """
def lu(A: Tensor, pivot: builtins.bool = ..., get_infos: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """`linalg.lu_factor`, and with ``get_infos`` 0 or which pivot is zero, for each matrix.

    >>> import genesis
    >>> len(genesis.lu(genesis.eye(2), get_infos=True))
    3
    """
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """`linalg.lu_solve`.

    >>> import genesis
    >>> genesis.lu_solve(genesis.ones(1, 1), *genesis.linalg.lu_factor(genesis.tensor([[2.]])))
    tensor([[0.5000]])
    """
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """P, L and U of what `linalg.lu_factor` gives; those that are not asked for are empty.

    Raises:
        RuntimeError: pivots that are no int32

    >>> import genesis
    >>> genesis.lu_unpack(*genesis.linalg.lu_factor(genesis.eye(2))).U
    tensor([[1., 0.],
            [0., 1.]])
    """
def manual_seed(seed: builtins.int) -> Any:
    """Begin the stream of ``seed``, as an integer, in the default generator.

    >>> import genesis
    >>> _ = genesis.manual_seed(0)
    """
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with one value wherever the mask is True.

    Raises:
        TypeError: the mask is not bool

    >>> import genesis
    >>> genesis.masked_fill(genesis.ones(2), genesis.tensor([True, False]), 0.0)
    tensor([0., 1.])
    """
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where the mask is True replaced, in order, by those of ``source``.

    >>> import genesis
    >>> genesis.masked_scatter(genesis.zeros(3), genesis.tensor([True, False, True]), genesis.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is True, in one dimension.

    >>> import genesis
    >>> genesis.masked_select(genesis.tensor([1., 2.]), genesis.tensor([False, True]))
    tensor([2.])
    """
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Matrix product; ``a @ b``.

    Two vectors give their dot product, a matrix and a vector their product; leading dimensions are batches and
    broadcast.

    Raises:
        RuntimeError: inner sizes, batch sizes or dtypes differ, or an operand is 0-d

    >>> import genesis
    >>> genesis.matmul(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
    tensor([3., 7.])
    """
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`.

    >>> import genesis
    >>> genesis.matrix_exp(genesis.zeros(1, 1))
    tensor([[1.]])
    """
def matrix_power(input: Tensor, n: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """`linalg.matrix_power`.

    >>> import genesis
    >>> genesis.matrix_power(genesis.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
def max(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: builtins.int | None = ..., keepdims: builtins.bool | None = ..., other: Tensor | None = ...) -> Any:
    """Largest element: of all, along ``dim`` with its indices, or of two tensors.

    ``max(x)`` gives one value; ``max(x, dim)`` a named tuple ``(values, indices)``, the gradient going to that index;
    ``max(x, other)`` is `maximum`.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.max(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).indices
    tensor([1, 0])
    """
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, L).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.max_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, H, W).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.max_pool2d(x, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, D, H, W).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.max_pool3d(x, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def maximum(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The larger of two, nan if either is.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.maximum(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
    tensor([3., 5.])
    """
def mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Mean over ``dim`` (None: all), $\\frac{1}{n} \\sum_i x_i$; nan of nothing.

    Raises:
        RuntimeError: an integer tensor without ``dtype=``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.mean(genesis.tensor([1., 2., 6.]))
    tensor(3.)
    """
def median(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
    """The middle element, the lower of two: of all, or along ``dim`` with its index; nan if there is one.

    The gradient goes to the element at the index, also where others are equal. Of no floating elements it is nan.

    Raises:
        IndexError: a dim out of range, or of size 0
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.median(genesis.tensor([3., 1., 2., 9.]))
    tensor(2.)
    """
def meshgrid(*tensors: Any, indexing: builtins.str = ...) -> builtins.tuple[Tensor, ...]:
    """Coordinate grids of 1-d tensors, with "ij" (matrix) or "xy" (Cartesian) indexing; views.

    >>> import genesis
    >>> a, b = genesis.meshgrid(genesis.arange(2), genesis.arange(3), indexing="ij")
    >>> b
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
def min(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: builtins.int | None = ..., keepdims: builtins.bool | None = ..., other: Tensor | None = ...) -> Any:
    """Smallest element: of all, along ``dim`` with its indices, or of two tensors; see `max`.

    >>> import genesis
    >>> genesis.min(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).values
    tensor([1., 2.])
    """
def minimum(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The smaller of two, nan if either is.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.minimum(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
    tensor([1., 2.])
    """
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Product of two matrices.

    >>> import genesis
    >>> genesis.mm(genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[2.]])
    """
def mode(input: Tensor, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
    """The most frequent element along ``dim``, the smallest if there are several, and the index of its last occurrence.

    Raises:
        IndexError: a dim out of range, or of size 0
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.mode(genesis.tensor([3, 1, 2, 1]))
    mode_result(values=tensor(1), indices=tensor(3))
    """
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places, the rest in order.

    >>> import genesis
    >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
    genesis.Size([3, 4, 2])
    """
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places, the rest in order.

    >>> import genesis
    >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
    genesis.Size([3, 4, 2])
    """
def msort(input: Tensor) -> Tensor:
    """Elements in order along dim 0.

    >>> import genesis
    >>> genesis.msort(genesis.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
def mul(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Product, $x y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.mul(genesis.tensor([1., 2.]), 3)
    tensor([3., 6.])
    """
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in (each row of) ``input``.

    Without replacement by the smallest of exponential times (Efraimidis and Spirakis 2006).

    Raises:
        ValueError: negative or infinite weights, or a row of zeros
        RuntimeError: more samples than weights that are not zero

    >>> import genesis
    >>> genesis.multinomial(genesis.tensor([0., 1., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
def multiply(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Product, $x y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.mul(genesis.tensor([1., 2.]), 3)
    tensor([3., 6.])
    """
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Product of a matrix and a vector.

    >>> import genesis
    >>> genesis.mv(genesis.ones(1, 2), genesis.ones(2))
    tensor([2.])
    """
def mvlgamma(input: Tensor, p: builtins.int) -> Tensor:
    """Logarithm of the multivariate gamma function,
    $\\frac{p (p - 1)}{4} \\ln \\pi + \\sum_{j=1}^p \\ln \\Gamma(x + (1 - j) / 2)$.

    Raises:
        ValueError: ``p`` is below 1

    >>> import genesis
    >>> genesis.mvlgamma(genesis.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
def nan_to_num(input: Tensor, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Replace nan, inf and -inf by numbers: ``nan``, and the largest and smallest of the dtype unless given.

    >>> import genesis
    >>> genesis.nan_to_num(genesis.tensor([float("nan"), 1.]), nan=5.0)
    tensor([5., 1.])
    """
def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """Mean over ``dim`` (None: all) of the elements that are not nan.

    >>> import genesis
    >>> genesis.nanmean(genesis.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
def nanmedian(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
    """`median` of the elements that are not nan; nan where all are.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.nanmedian(genesis.tensor([1., float("nan"), 3.]))
    tensor(1.)
    """
def nanquantile(input: Tensor, q: Any, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
    """`quantile` of the elements that are not nan; nan where all are.

    Raises:
        RuntimeError: q outside [0, 1], or a tensor that is not floating
        ValueError: an unknown interpolation

    >>> import genesis
    >>> genesis.nanquantile(genesis.tensor([1., float("nan"), 3.]), 0.5)
    tensor(2.)
    """
def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Sum over ``dim`` (None: all) with nan counted as zero.

    >>> import genesis
    >>> genesis.nansum(genesis.tensor([1., float("nan"), 2.]))
    tensor(3.)
    """
def narrow(input: Tensor, dim: builtins.int = ..., start: builtins.int = ..., length: builtins.int = ..., *, axis: Any = ...) -> Tensor:
    """The part of ``length`` slices from ``start`` along ``dim``, as a view.

    Raises:
        IndexError: the start is out of range
        RuntimeError: there are not so many slices from there

    >>> import genesis
    >>> genesis.narrow(genesis.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
def narrow_copy(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """`narrow`, as a copy.

    >>> import genesis
    >>> genesis.narrow_copy(genesis.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of ``groups`` groups in turns, (N, C, ...): what a convolution in groups needs after it (Zhang et al.
    2018).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of the groups

    >>> import genesis
    >>> genesis.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
def ne(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\ne y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ne(genesis.tensor([1., 2.]), 2)
    tensor([ True, False])
    """
def neg(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Negation, $-x$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.neg(genesis.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
def negative(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Negation, $-x$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.neg(genesis.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
def nextafter(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """The next number after $x$ towards $y$.

    Element by element, on tensors that broadcast together; floating dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.nextafter(genesis.tensor([1.]), genesis.tensor([2.]))
    tensor([1.0000])
    """
def nonzero(input: Tensor, *, as_tuple: builtins.bool = ...) -> Any:
    """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

    >>> import genesis
    >>> genesis.nonzero(genesis.tensor([0., 3.]))
    tensor([[1]])
    """
def nonzero_static(input: Tensor, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
    """`nonzero` with a fixed number of rows: cut off, or filled up.

    >>> import genesis
    >>> genesis.nonzero_static(genesis.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
def norm(input: Tensor, p: builtins.float | builtins.str | None = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., dtype: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Vector norm over ``dim`` (None: all), $(\\sum_i |x_i|^p)^{1/p}$.

    Args:
        p: any number; inf is the largest and -inf the smallest magnitude, 0 counts what is not zero, "fro" is 2; "nuc" is
            the sum of singular values of matrices, of which ``dim`` has the two dimensions
        dtype: what the input is converted to first

    The gradient is zero where the norm, or for p < 1 the element, is zero.

    Raises:
        RuntimeError: an integer tensor
        IndexError: a dim out of range, or of size 0 where p is negative or infinite

    >>> import genesis
    >>> genesis.norm(genesis.tensor([3., 4.]))
    tensor(5.)
    """
def normal(mean: Any = ..., std: Any = ..., size: Any = ..., *, generator: Any = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor:
    """Normal numbers of given means and standard deviations (tensors that broadcast, or numbers with a ``size``).

    Raises:
        RuntimeError: a negative standard deviation

    >>> import genesis
    >>> genesis.normal(genesis.zeros(3), 1.0).shape
    genesis.Size([3])
    """
def not_equal(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Whether $x \\ne y$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ne(genesis.tensor([1., 2.]), 2)
    tensor([ True, False])
    """
def numel(input: Tensor) -> builtins.int:
    """The number of elements.

    >>> import genesis
    >>> genesis.numel(genesis.zeros(2, 3))
    6
    """
def ones(*shape: Any, size: Any = ..., out: Tensor | None = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of ones, in the default dtype unless given.

    >>> import genesis
    >>> genesis.ones(2, 3).shape
    genesis.Size([2, 3])
    """
def ones_like(input: Tensor, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of ones, in the shape, dtype and place of ``input``."""
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`.

    >>> import genesis
    >>> genesis.orgqr(*genesis.geqrf(genesis.eye(1))).abs()
    tensor([[1.]])
    """
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """A matrix times the whole product Q of reflections: $QX$, or $XQ$ for ``left=False``, with ``transpose`` of
    $Q^H$.

    >>> import genesis
    >>> a = genesis.tensor([[3., 1.], [4., 2.]])
    >>> genesis.ormqr(*genesis.geqrf(a), a, transpose=True).abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Outer product of two vectors, $x_i y_j$.

    >>> import genesis
    >>> genesis.outer(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of $x_1 - x_2 + eps$ over the last dimension.

    >>> import genesis
    >>> genesis.nn.functional.pairwise_distance(genesis.tensor([[3., 4.]]), genesis.zeros(1, 2))
    tensor([5.0000])
    """
def pca_lowrank(A: Tensor, q: builtins.int | None = ..., center: builtins.bool = ..., niter: builtins.int = ...) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of observations, the rows of A, less their means: the columns of V are the principal directions.

    Args:
        q: how many directions; at most 6 unless given
        center: take the means off

    Raises:
        ValueError: ``q`` is negative or more than there are rows or columns; ``niter`` is negative; integers
        RuntimeError: A has fewer than two dimensions

    >>> import genesis
    >>> U, S, V = genesis.pca_lowrank(genesis.tensor([[3., 1.], [1., 1.], [2., 1.]]), 1)
    >>> S.round(decimals=1)
    tensor([1.4000])
    """
def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Raises:
        RuntimeError: not a floating matrix, or a negative p

    >>> import genesis
    >>> genesis.pdist(genesis.tensor([[0.], [1.], [3.]]))
    tensor([1., 3., 2.])
    """
def permute(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """The dimensions in another order, as a view.

    Raises:
        RuntimeError: ``dims`` does not name each dimension once

    >>> import genesis
    >>> genesis.permute(genesis.zeros(2, 3, 4), (2, 0, 1)).shape
    genesis.Size([4, 2, 3])
    """
def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor:
    """`linalg.pinv`.

    >>> import genesis
    >>> genesis.pinverse(genesis.eye(1))
    tensor([[1.]])
    """
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Images (..., C r², H, W) as (..., C, H r, W r): channels become places (Shi et al. 2016).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of r²

    >>> import genesis
    >>> genesis.pixel_shuffle(genesis.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """Images (..., C, H r, W r) as (..., C r², H, W): places become channels, the inverse of `pixel_shuffle`.

    Raises:
        RuntimeError: fewer than three dimensions, or sizes that are not a multiple of r

    >>> import genesis
    >>> genesis.pixel_unshuffle(genesis.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
def poisson(input: Tensor, generator: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Poisson-distributed counts with the rates in ``input``, in its dtype.

    Raises:
        RuntimeError: a rate that is negative or not a number
        NotImplementedError: rates that are not floating numbers

    >>> import genesis
    >>> genesis.poisson(genesis.tensor([0., 0.]))
    tensor([0., 0.])
    """
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """A complex tensor of absolute values and angles in radians.

    >>> import genesis
    >>> genesis.polar(genesis.tensor([2.]), genesis.tensor([0.]))
    tensor([2.+0.j])
    """
def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """The derivative of order $n$ of `digamma`, $\\psi^{(n)}(x) = (-1)^{n+1} n! \\, \\zeta(n + 1, x)$.

    Element by element, computed in float64; integers give the default floating dtype. NaN far below -10000.

    Raises:
        ValueError: ``n`` is negative or no integer

    >>> import genesis
    >>> genesis.polygamma(1, genesis.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
def positive(input: Tensor) -> Tensor:
    """The same tensor.

    Raises:
        RuntimeError: of bool

    >>> import genesis
    >>> +genesis.tensor([1., -2.])
    tensor([ 1., -2.])
    """
def pow(input: Tensor, exponent: Any, *, out: Tensor | None = ...) -> Tensor:
    """Power, $x^y$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.pow(genesis.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with learned slopes, one for all elements or one per channel (dim 1).

    Raises:
        RuntimeError: another number of weights

    >>> import genesis
    >>> genesis.prelu(genesis.tensor([-2., 2.]), genesis.tensor([0.5]))
    tensor([-1.,  2.])
    """
def prod(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Product over ``dim`` (None: all), $\\prod_i x_i$; 1 of nothing.

    Integers and bool are multiplied as int64. The gradient is right where elements are zero, too.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.prod(genesis.tensor([2., 3., 4.]))
    tensor(24.)
    """
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """``input`` with the elements at places of the flattened tensor replaced by those of ``source``, or added to.

    Raises:
        IndexError: a place out of range
        RuntimeError: ``index`` and ``source`` have not equally many elements

    >>> import genesis
    >>> genesis.put(genesis.zeros(2, 2), genesis.tensor([0, 3]), genesis.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
def qr(input: Tensor, some: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """`linalg.qr`, "reduced" or "complete".

    >>> import genesis
    >>> genesis.qr(genesis.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
def quantile(input: Tensor, q: Any, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
    """The value below which a part ``q`` of the elements lies: number $q (n - 1)$ in order, counted from 0.

    Args:
        q: a number or a tensor in [0, 1]; a 1-d tensor adds a leading dimension to the result
        dim: along which dimension; None: of all elements
        interpolation: between neighbours: "linear", "lower", "higher", "midpoint" or "nearest"

    Raises:
        RuntimeError: q outside [0, 1], nothing to take a quantile of, or a tensor that is not floating
        ValueError: an unknown interpolation
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.quantile(genesis.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
def rad2deg(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Radians to degrees.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.rad2deg(genesis.tensor([0., 1.]))
    tensor([ 0.0000, 57.2958])
    """
def rand(*shape: Any, size: Any = ..., generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Uniform numbers in [0, 1); of complex numbers both parts.

    >>> import genesis
    >>> genesis.rand(2, 3).shape
    genesis.Size([2, 3])
    """
def rand_like(input: Tensor, *, generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
    """`rand` in the shape, dtype and place of ``input``."""
def randint(low: Any = ..., high: Any = ..., size: Any = ..., *, generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Integers in [low, high), int64 unless given: ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises:
        RuntimeError: an empty range

    >>> import genesis
    >>> x = genesis.randint(3, 5, (100,))
    >>> int(x.min()), int(x.max())
    (3, 4)
    """
def randint_like(input: Tensor, low: Any = ..., high: Any = ..., *, generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
    """`randint` in the shape, dtype and place of ``input``."""
def randn(*shape: Any, size: Any = ..., generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Standard normal numbers; of complex ones each part has the variance 1/2.

    >>> import genesis
    >>> genesis.randn(2, 3).shape
    genesis.Size([2, 3])
    """
def randn_like(input: Tensor, *, generator: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
    """`randn` in the shape, dtype and place of ``input``."""
def randperm(n: builtins.int, *, generator: Any = ..., dtype: Any = ..., device: Any = ..., layout: Any = ..., pin_memory: Any = ..., requires_grad: Any = ..., out: Tensor | None = ...) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    >>> import genesis
    >>> genesis.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
def range(start: Any = ..., end: Any = ..., step: Any = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Numbers from ``start`` (0) up to and including ``end`` in steps, in the default dtype; `arange` leaves ``end`` out.

    >>> import genesis
    >>> genesis.range(1, 3)
    tensor([1., 2., 3.])
    """
def ravel(input: Tensor) -> Tensor:
    """The elements in one dimension.

    >>> import genesis
    >>> genesis.ravel(genesis.zeros(2, 3)).shape
    genesis.Size([6])
    """
def real(input: Tensor) -> Tensor:
    """Real parts, as a view.

    >>> import genesis
    >>> genesis.real(genesis.tensor([1 + 2j]))
    tensor([1.])
    """
def reciprocal(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Reciprocal, $1 / x$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.reciprocal(genesis.tensor([1., -2.]))
    tensor([ 1.0000, -0.5000])
    """
def relu(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Rectifier, $\\max(x, 0)$, with slope 0 at 0.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.relu(genesis.tensor([-1., 2.]))
    tensor([0., 2.])
    """
def relu_(input: Any) -> Any:
    """In-place form of `relu`: writes the result into this tensor and returns it."""
def remainder(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """Remainder with the sign of the divisor, $x - y \\lfloor x / y \\rfloor$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.remainder(genesis.tensor([7., -7.]), 3)
    tensor([1., 2.])
    """
def renorm(input: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
    """``input`` with the slices along ``dim`` whose $p$-norm is above ``maxnorm`` scaled down to it.

    Raises:
        IndexError: a dim out of range
        RuntimeError: fewer than two dimensions, or a ``p`` or ``maxnorm`` that is not positive

    >>> import genesis
    >>> genesis.renorm(genesis.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
def repeat_interleave(input: Tensor, repeats: Any = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
    """Each slice repeated in place, the same or its own number of times.

    With one argument the indices that so many repeats give. ``output_size`` is found, if it is given or not.

    >>> import genesis
    >>> genesis.repeat_interleave(genesis.tensor([1., 2.]), 2)
    tensor([1., 1., 2., 2.])
    """
def reshape(input: Tensor, shape: Sequence[builtins.int]) -> Tensor:
    """The same elements, in row-major order, in another shape; one size may be -1. A view where memory allows.

    Raises:
        RuntimeError: the number of elements differs

    >>> import genesis
    >>> genesis.reshape(genesis.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
def resolve_conj(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself: its conjugate is computed at once."""
def resolve_neg(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself: its negative is computed at once."""
def rnn_relu(input: Tensor, hx: Tensor, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = ...) -> builtins.tuple[Tensor, Tensor]:
    """Elman's network with rectifiers of several layers; what `genesis.nn.RNN` computes.

    Arguments as of `genesis.lstm`, with one tensor of hidden states.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last ones of all layers

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones(1, 1)
    >>> [y.shape for y in genesis.rnn_relu(x, h, [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1])]
    """
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """One step of Elman's network with rectifiers: (B, I) and the hidden states (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 1), genesis.ones(1, 1)
    >>> genesis.rnn_relu_cell(x, x, w, w)
    tensor([[0.],
            [0.]])
    """
def rnn_tanh(input: Tensor, hx: Tensor, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = ...) -> builtins.tuple[Tensor, Tensor]:
    """Elman's network with tanh of several layers; what `genesis.nn.RNN` computes.

    Arguments as of `genesis.lstm`, with one tensor of hidden states.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last ones of all layers

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones(1, 1)
    >>> [y.shape for y in genesis.rnn_tanh(x, h, [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1])]
    """
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """One step of Elman's network with tanh: (B, I) and the hidden states (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 1), genesis.ones(1, 1)
    >>> genesis.rnn_tanh_cell(x, x, w, w)
    tensor([[0.],
            [0.]])
    """
def roll(input: Tensor, shifts: Any, dims: Any = ...) -> Tensor:
    """Slices moved on by ``shifts`` along ``dims`` (None: the flattened tensor), the last ones coming first.

    >>> import genesis
    >>> genesis.roll(genesis.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
def rot90(input: Tensor, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
    """Turned by ``k`` right angles in the plane of two dimensions.

    >>> import genesis
    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
def round(input: Tensor, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """Round to ``decimals`` digits, halves to the even neighbour (IEEE 754).

    Integers are returned as they are. The derivative is zero.

    Raises:
        NotImplementedError: ``decimals`` of integers

    >>> import genesis
    >>> genesis.round(genesis.tensor([0.5, 1.5, 2.25]), decimals=0)
    tensor([0., 2., 2.])
    """
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """Tensors on top of each other, along dim 0.

    >>> import genesis
    >>> genesis.vstack([genesis.zeros(2), genesis.ones(2)]).shape
    genesis.Size([2, 2])
    """
def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) for each element in training, else with their mean (Xu et al.
    2015).

    Raises:
        ValueError: ``lower`` is above ``upper``

    >>> import genesis
    >>> genesis.nn.functional.rrelu(genesis.tensor([-4., 1.]), 0.1, 0.4)
    tensor([-1.,  1.])
    """
def rrelu_(input: Any, lower: Any = ..., upper: Any = ..., training: Any = ...) -> Any:
    """In-place form of `rrelu`: writes the result into this tensor and returns it."""
def rsqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Reciprocal square root, $1 / \\sqrt x$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.rsqrt(genesis.tensor([4., 16.]))
    tensor([0.5000, 0.2500])
    """
def rsub(input: Tensor, other: Any, *, alpha: Any = ...) -> Tensor:
    """$y - \\alpha x$: `sub` with its operands exchanged.

    >>> import genesis
    >>> genesis.rsub(genesis.tensor([1., 2.]), 5)
    tensor([4., 3.])
    """
def scalar_tensor(s: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
    """A 0-d tensor in the default dtype unless given.

    >>> import genesis
    >>> genesis.scalar_tensor(2)
    tensor(2.)
    """
def scatter(input: Tensor, dim: builtins.int, index: Tensor, src: Any = ..., *, value: Any = ..., reduce: builtins.str | None = ...) -> Tensor:
    """``input`` with the elements named along ``dim`` replaced by those of ``src`` (or by one value).

    Args:
        reduce: "add" or "multiply" to combine instead of replacing

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([2]), genesis.tensor([5.]))
    tensor([0., 0., 5.])
    """
def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with elements of ``src`` added at the places named along ``dim``.

    >>> import genesis
    >>> genesis.scatter_add(genesis.zeros(3), 0, genesis.tensor([2, 2]), genesis.tensor([5., 1.]))
    tensor([0., 0., 6.])
    """
def scatter_reduce(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
    """Elements of ``src`` combined at the places named along ``dim``: "sum", "prod", "mean", "amax" ("max") or "amin".

    Of bool tensors "sum" is *or* and "prod" is *and*.

    >>> import genesis
    >>> genesis.scatter_reduce(genesis.zeros(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "mean", include_self=False)
    tensor([0., 4.])
    """
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: builtins.str | None = ..., sorter: Tensor | None = ..., out: Tensor | None = ...) -> Tensor:
    """Where values would go in a sorted sequence to keep it sorted: $s_{i-1} < v \\le s_i$.

    Args:
        sorted_sequence: in order along its last dimension; 1-d, or with the leading dimensions of ``input``
        input: the values, a tensor or a number
        out_int32: int32 instead of int64
        right, side: ``right=True`` or ``side="right"`` is $s_{i-1} \\le v < s_i$
        sorter: the indices that sort a sequence that is not in order

    Raises:
        RuntimeError: leading dimensions that differ
        ValueError: ``side`` is neither, or contradicts ``right``

    >>> import genesis
    >>> genesis.searchsorted(genesis.tensor([1., 3., 5.]), genesis.tensor([3., 4.]))
    tensor([1, 2])
    """
def seed() -> builtins.int:
    """Begin a stream that nobody can guess in the default generator; returns its seed."""
def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """The slice at ``index`` along ``dim``, without that dimension; a view.

    Raises:
        IndexError: the index is out of range

    >>> import genesis
    >>> genesis.select(genesis.tensor([[1., 2.], [3., 4.]]), 1, 0)
    tensor([1., 3.])
    """
def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """``input`` with the slice at ``index`` along ``dim`` replaced: what `select` is the inverse of.

    Raises:
        IndexError: the index is out of range
        RuntimeError: ``src`` has not the shape of the slice

    >>> import genesis
    >>> genesis.select_scatter(genesis.zeros(2, 2), genesis.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Self-normalising unit, a scaled `elu` (Klambauer et al. 2017).

    >>> import genesis
    >>> genesis.selu(genesis.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
def selu_(input: Any) -> Any:
    """In-place form of `selu`: writes the result into this tensor and returns it."""
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back into a state."""
def sgn(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Sign, of complex numbers $x / |x|$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sgn(genesis.tensor([3., 0., -2.]))
    tensor([ 1.,  0., -1.])
    """
def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logistic function, $1 / (1 + e^{-x})$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sigmoid(genesis.tensor([0., 1.]))
    tensor([0.5000, 0.7311])
    """
def sign(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Sign: -1, 0 or 1.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sign(genesis.tensor([3., 0., -2.]))
    tensor([ 1.,  0., -1.])
    """
def signbit(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Whether the sign bit is set.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.signbit(genesis.tensor([1., -1.]))
    tensor([False,  True])
    """
def sin(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Sine, of radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sin(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8415])
    """
def sinc(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Normalised sinc, $\\sin(\\pi x) / (\\pi x)$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sinc(genesis.tensor([0., 0.5]))
    tensor([1.0000, 0.6366])
    """
def sinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Hyperbolic sine.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sinh(genesis.tensor([0., 1.]))
    tensor([0.0000, 1.1752])
    """
def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
    """``input`` with the slices from ``start`` to ``end`` along ``dim`` replaced.

    Raises:
        IndexError: a dim out of range
        RuntimeError: ``src`` has not the shape of these slices

    >>> import genesis
    >>> genesis.slice_scatter(genesis.zeros(4), genesis.ones(2), 0, 1, 4, 2)
    tensor([0., 1., 0., 1.])
    """
def slogdet(input: Tensor, *, out: Tensor | None = ...) -> Any:
    """`linalg.slogdet`.

    >>> import genesis
    >>> genesis.slogdet(genesis.eye(2)).logabsdet
    tensor(0.)
    """
def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Softmax along ``dim``, $e^{x_i} / \\sum_j e^{x_j}$, without overflow.

    Warns:
        UserWarning: no ``dim``; it is 0 of 0, 1 or 3 dimensions, else 1

    Raises:
        IndexError: a dim out of range
        RuntimeError: an integer tensor

    >>> import genesis
    >>> genesis.softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
def sort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Any:
    """Elements in order along ``dim`` and the indices they came from, as a named tuple ``(values, indices)``.

    Equals keep their order whether or not ``stable`` is asked for; nan comes last (first when descending).

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.sort(genesis.tensor([3., 1., 2.])).values
    tensor([1., 2., 3.])
    """
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = ..., *, dtype: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ...) -> Any:
    """`sparse_bsr_tensor` by columns.

    >>> import genesis
    >>> genesis.sparse_bsc_tensor([0, 0, 1], [0], [[[1., 2.]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = ..., *, dtype: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ...) -> Any:
    """A sparse matrix by rows of blocks: `sparse_csr_tensor` with a small matrix for each value.

    Raises:
        RuntimeError: indices that say no matrix, or blocks that do not divide ``size``

    >>> import genesis
    >>> genesis.sparse_bsr_tensor([0, 1], [1], [[[1., 2.]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ...) -> Any:
    """`sparse_csr_tensor` or `sparse_csc_tensor`, as the layout says.

    Raises:
        RuntimeError: another layout

    >>> import genesis
    >>> genesis.sparse_compressed_tensor([0, 1], [0], [5.], layout=genesis.sparse_csr).to_dense()
    tensor([[5.]])
    """
def sparse_coo_tensor(indices: Any = ..., values: Any = ..., size: Any = ..., *, dtype: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ..., is_coalesced: builtins.bool | None = ...) -> Any:
    """A sparse tensor of values at coordinates, a row of ``indices`` for each dimension; those at one coordinate add up.

    Args:
        indices: of the first dimensions; or, without values, the size of a tensor that has no elements, which ``size`` may
            say as well
        values: numbers, or slices of the dimensions that have no coordinates
        size: the shape; the smallest that holds all coordinates for None

    Raises:
        RuntimeError: not one coordinate for each value, or one outside ``size``

    >>> import genesis
    >>> genesis.sparse_coo_tensor([[0, 1], [1, 0]], [3., 4.], (2, 2)).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = ..., *, dtype: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ...) -> Any:
    """`sparse_csr_tensor` by columns.

    >>> import genesis
    >>> genesis.sparse_csc_tensor([0, 1, 2], [1, 0], [5., 3.]).to_dense()
    tensor([[0., 3.],
            [5., 0.]])
    """
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = ..., *, dtype: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., check_invariants: builtins.bool | None = ...) -> Any:
    """A sparse matrix by rows: row i has the values from ``crow_indices[i]`` to ``crow_indices[i + 1]``.

    Args:
        col_indices: the column of each value, growing in each row
        size: the shape; as many columns as needed for None

    Raises:
        RuntimeError: indices that say no matrix

    >>> import genesis
    >>> genesis.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], [5., 3., 2.], (3, 4)).to_dense()
    tensor([[0., 5., 0., 3.],
            [0., 0., 0., 0.],
            [2., 0., 0., 0.]])
    """
def split(tensor: Tensor, split_size_or_sections: Any, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller), or of the given sizes, along ``dim``; views.

    Raises:
        RuntimeError: the sizes do not add up

    >>> import genesis
    >>> [len(piece) for piece in genesis.split(genesis.arange(5), 2)]
    [2, 2, 1]
    """
def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse matrix and a dense one; `SparseTensor.mm`.

    >>> import genesis
    >>> genesis.spmm(genesis.eye(2).to_sparse(), genesis.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
def sqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Square root.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sqrt(genesis.tensor([4., 9.]))
    tensor([2., 3.])
    """
def square(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Square, $x^2$; of bools an integer.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.square(genesis.tensor([1., -2.]))
    tensor([1., 4.])
    """
def squeeze(input: Tensor, dim: Any = ...) -> Tensor:
    """Drop dimensions of size 1: all, or those named in ``dim``; a view.

    >>> import genesis
    >>> genesis.squeeze(genesis.zeros(2, 1, 3)).shape
    genesis.Size([2, 3])
    """
def stack(tensors: Sequence[Tensor], dim: builtins.int = ...) -> Tensor:
    """Tensors of one shape, along a new dimension.

    Raises:
        RuntimeError: the shapes differ

    >>> import genesis
    >>> genesis.stack([genesis.zeros(2), genesis.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
def std(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., axis: Any = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Standard deviation, the square root of `var`; its gradient is zero where it is zero.

    >>> import genesis
    >>> genesis.std(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.2910)
    """
def std_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Any:
    """Standard deviation and mean.

    >>> import genesis
    >>> genesis.std_mean(genesis.tensor([1., 3.]))
    (tensor(1.4142), tensor(2.))
    """
def stft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
    """The short-time Fourier transform, $X_{\\omega, m} = \\sum_k w_k x_{mh + k} e^{-2 \\pi i k \\omega / n}$: a column for
    each piece of a signal.

    Args:
        input: (L,), or (B, L) for several signals; the result is (B, N, T), N frequencies of T pieces
        n_fft: n, the size of a piece; hop_length: h, from one piece to the next, a quarter of n unless given
        window: w, weights of ``win_length`` samples (ones; n of them), filled up to n with zeros on both sides
        center: piece m has its middle at mh; the signal is continued at its ends as ``pad_mode`` says
        normalized: divide by $\\sqrt n$
        onesided: n // 2 + 1 frequencies, those that say all of a real signal; False: all n
        return_complex: False: a last dimension of real and imaginary parts
        align_to_window: without ``center``: as many pieces as windows fit, not transforms

    Raises:
        RuntimeError: sizes that do not fit; no ``return_complex`` for real signals; ``onesided`` of complex ones

    >>> import genesis
    >>> genesis.stft(genesis.ones(8), 4, center=False, return_complex=True).abs()[:, 0]
    tensor([4., 0., 0.])
    """
def sub(input: Tensor, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Difference, $x - alpha y$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sub(genesis.tensor([1., 2.]), 3)
    tensor([-2., -1.])
    """
def subtract(input: Tensor, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Difference, $x - alpha y$.

    Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sub(genesis.tensor([1., 2.]), 3)
    tensor([-2., -1.])
    """
def sum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Sum over ``dim`` (None: all), $\\sum_i x_i$.

    Integers and bool are summed as int64; an empty sum is 0.

    Raises:
        IndexError: a dim out of range
        RuntimeError: a dim named twice

    >>> import genesis
    >>> genesis.sum(genesis.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """`linalg.svd`, with V in the place of its adjoint, ``(U, S, V)``; without ``compute_uv`` U and V are zeros.

    >>> import genesis
    >>> genesis.svd(genesis.eye(2)).S
    tensor([1., 1.])
    """
def svd_lowrank(A: Tensor, q: builtins.int | None = ..., niter: builtins.int | None = ..., M: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """``(U, S, V)`` with $A - M \\approx U \\, diag(S) V^H$ of rank ``q``, found with random projections.

    Args:
        q: how many singular values, a little more than what is wanted
        niter: how often the projection is refined
        M: what is taken off first, such as means; it broadcasts

    Raises:
        RuntimeError: A has fewer than two dimensions
        ValueError: integers; ``niter`` is more than 10,000

    >>> import genesis
    >>> U, S, V = genesis.svd_lowrank(genesis.tensor([[3., 0.], [0., 1.], [0., 0.]]), 1)
    >>> S.round(decimals=1)
    tensor([3.])
    """
def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged, as a view.

    >>> import genesis
    >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged, as a view.

    >>> import genesis
    >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; vectors as they are.

    Raises:
        RuntimeError: more than two dimensions

    >>> import genesis
    >>> genesis.t(genesis.zeros(2, 3)).shape
    genesis.Size([3, 2])
    """
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in the shape of ``index``.

    >>> import genesis
    >>> genesis.take(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([0, 3]))
    tensor([1., 4.])
    """
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """Elements named along ``dim``, the indices broadcast against the input; of the flattened tensor for None.

    Negative indices count from the end.

    >>> import genesis
    >>> genesis.take_along_dim(genesis.tensor([[3., 1.]]), genesis.tensor([[1, 0]]), 1)
    tensor([[1., 3.]])
    """
def tan(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Tangent, of radians.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.tan(genesis.tensor([0., 1.]))
    tensor([0.0000, 1.5574])
    """
def tanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Hyperbolic tangent.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.tanh(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
def tanh_gradient(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """$x (1 - y^2)$; the gradient of `tanh`, whose value is y.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.ops.pointwise.elementwise.tanh_gradient(genesis.tensor([1., 1.]), genesis.tensor([0., 1.]))
    tensor([1., 0.])
    """
def tensor(data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., pin_memory: builtins.bool = ...) -> Tensor:
    """A tensor holding a copy of ``data``: numbers, nested sequences, NumPy arrays, other tensors.

    Python floats take the default dtype, integers int64; arrays keep their dtype. Integer literals that are to
    require grad become floating, an explicit integer ``dtype`` is an error then.

    Raises:
        TypeError, ValueError: not a rectangular array of numbers
        RuntimeError: an integer dtype that is to require grad

    >>> import genesis
    >>> genesis.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> genesis.tensor([1, 2, 3], requires_grad=True)
    tensor([1., 2., 3.], requires_grad=True)
    """
def tensor_split(input: Tensor, indices_or_sections: Any, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Pieces as equal as possible, or cut at the given indices, along ``dim``; views.

    Raises:
        RuntimeError: no sections, or more than ten million

    >>> import genesis
    >>> [len(piece) for piece in genesis.tensor_split(genesis.arange(7), 3)]
    [3, 2, 2]
    """
def tensordot(a: Tensor, b: Tensor, dims: Any = ...) -> Tensor:
    """Product summed over dimensions: the last ``dims`` of ``a`` and first of ``b``, or two lists of them.

    >>> import genesis
    >>> genesis.tensordot(genesis.ones(2, 3), genesis.ones(3, 2), 1)
    tensor([[3., 3.],
            [3., 3.]])
    """
def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """``value`` up to the threshold, $x$ elsewhere.

    >>> import genesis
    >>> genesis.threshold(genesis.tensor([0., 1.]), 0.5, -1.0)
    tensor([-1.,  1.])
    """
def threshold_(input: Any, threshold: Any, value: Any) -> Any:
    """In-place form of `threshold`: writes the result into this tensor and returns it."""
def tile(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """The tensor repeated like tiles; missing repeats and dimensions count as 1.

    >>> import genesis
    >>> genesis.tile(genesis.tensor([1., 2.]), (2,))
    tensor([1., 2., 1., 2.])
    """
def topk(input: Tensor, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, always in order, and their indices.

    Which of equal elements are among them is not said.

    Raises:
        RuntimeError: there are fewer than ``k``, or a complex tensor
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.topk(genesis.tensor([1., 5., 3.]), 2).values
    tensor([5., 3.])
    """
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    Raises:
        RuntimeError: not a matrix

    >>> import genesis
    >>> genesis.trace(genesis.eye(3))
    tensor(3.)
    """
def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged, as a view.

    >>> import genesis
    >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
def trapezoid(y: Tensor, x: Tensor | None = ..., *, dx: Any = ..., dim: builtins.int = ...) -> Tensor:
    """The area under a curve along ``dim`` by the trapezoidal rule, $\\sum_i (x_{i+1} - x_i)(y_i + y_{i+1}) / 2$.

    Args:
        x: the points; ``dx`` is their distance where they are not given

    Raises:
        IndexError: a dim out of range
        RuntimeError: points that do not fit

    >>> import genesis
    >>> genesis.trapezoid(genesis.tensor([1., 2., 3.]))
    tensor(4.)
    """
def trapz(y: Tensor, x: Tensor | None = ..., *, dx: Any = ..., dim: builtins.int = ...) -> Tensor:
    """The area under a curve along ``dim`` by the trapezoidal rule, $\\sum_i (x_{i+1} - x_i)(y_i + y_{i+1}) / 2$.

    Args:
        x: the points; ``dx`` is their distance where they are not given

    Raises:
        IndexError: a dim out of range
        RuntimeError: points that do not fit

    >>> import genesis
    >>> genesis.trapezoid(genesis.tensor([1., 2., 3.]))
    tensor(4.)
    """
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The solution of $AX = b$ (with ``transpose``, of $A^T X = b$) for triangles, and a copy of A.

    >>> import genesis
    >>> genesis.triangular_solve(genesis.ones(1, 1), genesis.tensor([[2.]])).solution
    tensor([[0.5000]])
    """
def tril(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Lower triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.

    >>> import genesis
    >>> genesis.tril(genesis.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., layout: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Tensor:
    """Row and column indices of a lower triangle.

    >>> import genesis
    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
def triu(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Upper triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.

    >>> import genesis
    >>> genesis.triu(genesis.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., layout: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Tensor:
    """Row and column indices of an upper triangle."""
def true_divide(input: Any, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Quotient, $x / y$, exact or rounded.

    Args:
        rounding_mode: None for the exact quotient, ``"floor"`` to round down, ``"trunc"`` to round towards zero

    Raises:
        ValueError: another rounding mode
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.divide(genesis.tensor([7., -7.]), 2, rounding_mode="trunc")
    tensor([ 3., -3.])
    """
def trunc(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Integer part of $x$.

    Element by element, on tensors that broadcast together; floating, integer dtypes.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.trunc(genesis.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """
def unbind(input: Tensor, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """All slices along ``dim``, without that dimension; views.

    >>> import genesis
    >>> genesis.unbind(genesis.tensor([1., 2.]))
    (tensor(1.), tensor(2.))
    """
def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    """Split one dimension into several; one size may be -1.

    >>> import genesis
    >>> genesis.unflatten(genesis.zeros(2, 6), 1, (2, 3)).shape
    genesis.Size([2, 2, 3])
    """
def unfold(input: Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """All windows of ``size`` elements along a dimension, ``step`` apart, as a view: there are $\\lfloor (n - size) /
    step \\rfloor + 1$, their elements come last.

    Windows that overlap cannot be written to.

    Raises:
        RuntimeError: a window larger than the dimension, a negative size, a step below 1
        IndexError: a dimension out of range

    >>> import genesis
    >>> genesis.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, axis: Any = ...) -> Any:
    """The distinct elements in order (or slices along ``dim``), on request with where each element went and how often
    each occurs.

    Each nan is distinct. Complex numbers are in the order of their real parts, then of their imaginary parts. Not
    differentiable.

    Raises:
        IndexError: a dim out of range
        RuntimeError: slices without elements

    >>> import genesis
    >>> genesis.unique(genesis.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, axis: Any = ...) -> Any:
    """The elements (or slices along ``dim``) without those that equal the one before, on request with where each went and
    how many there were.

    Not differentiable.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
def unravel_index(indices: Tensor, shape: Any) -> builtins.tuple[Tensor, ...]:
    """The coordinates in a tensor of ``shape`` of places in the flattened one.

    >>> import genesis
    >>> genesis.unravel_index(genesis.tensor([5, 0]), (2, 3))
    (tensor([1, 0]), tensor([2, 0]))
    """
def unsafe_chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """`chunk`: what PyTorch does not check is right here.

    >>> import genesis
    >>> genesis.unsafe_chunk(genesis.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
def unsafe_split(tensor: Tensor, split_size: Any, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """`split`: what PyTorch does not check is right here.

    >>> import genesis
    >>> genesis.unsafe_split(genesis.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    """Add a dimension of size 1 at ``dim``; a view.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.unsqueeze(genesis.zeros(3), 0).shape
    genesis.Size([1, 3])
    """
def vander(x: Tensor, N: builtins.int | None = ..., increasing: builtins.bool = ...) -> Tensor:
    """The powers of the elements of a vector, as the rows of a matrix with ``N`` columns; the highest first.

    Of integers they are int64.

    Raises:
        RuntimeError: not one dimension, or a negative ``N``

    >>> import genesis
    >>> genesis.vander(genesis.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
def var(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., axis: Any = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Variance over ``dim`` (None: all), $\\frac{1}{n - c} \\sum_i |x_i - \\bar x|^2$ with correction $c$, 1 unless
    given.

    ``unbiased`` is an older way to say ``correction=1`` (True) or ``correction=0``. Real, also for complex tensors.

    Raises:
        RuntimeError: an integer tensor
        TypeError: both ``unbiased`` and ``correction``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.var(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.6667)
    """
def var_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Any:
    """Variance and mean.

    >>> import genesis
    >>> genesis.var_mean(genesis.tensor([1., 3.]))
    (tensor(2.), tensor(2.))
    """
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Dot product with the first vector conjugated.

    >>> import genesis
    >>> genesis.vdot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs in the last dimension as complex numbers; a view.

    Raises:
        RuntimeError: another dtype than float16, float32 and float64, a last dimension that has not size 2, or pairs that do not
            lie together in memory

    >>> import genesis
    >>> genesis.view_as_complex(genesis.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
def view_as_real(input: Tensor) -> Tensor:
    """The real and imaginary parts of complex numbers in a last dimension of size 2; a view.

    Raises:
        RuntimeError: the tensor is not complex

    >>> import genesis
    >>> genesis.view_as_real(genesis.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
def vsplit(input: Tensor, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 0 of at least two; views.

    Raises:
        RuntimeError: fewer than two dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> [len(piece) for piece in genesis.vsplit(genesis.ones(4, 3), [1])]
    [1, 3]
    """
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """Tensors on top of each other, along dim 0.

    >>> import genesis
    >>> genesis.vstack([genesis.zeros(2), genesis.ones(2)]).shape
    genesis.Size([2, 2])
    """
def where(condition: Tensor, input: Any = ..., other: Any = ..., *, out: Tensor | None = ...) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere; alone, the indices where it holds.

    The three broadcast together; ``input`` and ``other`` may be numbers. The gradient goes to the chosen operand.

    Raises:
        RuntimeError: shapes that do not broadcast, or a condition that is not bool (uint8 is taken with a warning)

    >>> import genesis
    >>> x = genesis.tensor([-1., 2.])
    >>> genesis.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
def xlogy(input: Tensor, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
    """$x \\ln y$, zero where $x$ is zero.

    Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.xlogy(genesis.tensor([0., 2.]), genesis.tensor([0., 1.]))
    tensor([0., 0.])
    """
def zeros(*shape: Any, size: Any = ..., out: Tensor | None = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of zeros, in the default dtype unless given.

    >>> import genesis
    >>> genesis.zeros(2, 3).shape
    genesis.Size([2, 3])
    """
def zeros_like(input: Tensor, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """A tensor of zeros, in the shape, dtype and place of ``input``."""
enable_autocast: Any
