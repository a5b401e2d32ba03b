# Written by scripts/signatures; do not edit.
import builtins
from collections.abc import Sequence
from typing import Any

from genesis.core.graph.tensor import Tensor

class Methods:
    def __add__(self, other: Tensor | complex) -> Tensor: ...
    def __radd__(self, other: Tensor | complex) -> Tensor: ...
    def __sub__(self, other: Tensor | complex) -> Tensor: ...
    def __rsub__(self, other: Tensor | complex) -> Tensor: ...
    def __mul__(self, other: Tensor | complex) -> Tensor: ...
    def __rmul__(self, other: Tensor | complex) -> Tensor: ...
    def __truediv__(self, other: Tensor | complex) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | complex) -> Tensor: ...
    def __floordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __rfloordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __mod__(self, other: Tensor | complex) -> Tensor: ...
    def __rmod__(self, other: Tensor | complex) -> Tensor: ...
    def __pow__(self, other: Tensor | complex) -> Tensor: ...
    def __rpow__(self, other: Tensor | complex) -> Tensor: ...
    def __iadd__(self, other: Tensor | complex) -> Tensor: ...
    def __isub__(self, other: Tensor | complex) -> Tensor: ...
    def __imul__(self, other: Tensor | complex) -> Tensor: ...
    def __itruediv__(self, other: Tensor | complex) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __imod__(self, other: Tensor | complex) -> Tensor: ...
    def __ipow__(self, other: Tensor | complex) -> Tensor: ...
    def __and__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rand__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __or__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __ror__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __xor__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rxor__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __lshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rlshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rrshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __iand__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __ior__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __ixor__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __ilshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __irshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __rmatmul__(self, other: Tensor) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __lt__(self, other: Tensor | complex) -> Tensor: ...
    def __le__(self, other: Tensor | complex) -> Tensor: ...
    def __gt__(self, other: Tensor | complex) -> Tensor: ...
    def __ge__(self, other: Tensor | complex) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __hash__(self) -> builtins.int: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    @property
    def H(self) -> Tensor:
        """"""
    @property
    def T(self) -> Tensor:
        """"""
    def abs(self, *, out: Tensor | None = ...) -> Tensor:
        """Absolute value, $|x|$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.abs(genesis.tensor([1., -2.]))
        tensor([1., 2.])
        """
    def abs_(self) -> Tensor:
        """In-place form of `abs`: writes the result into this tensor and returns it."""
    def absolute(self, *, out: Tensor | None = ...) -> Tensor:
        """Absolute value, $|x|$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.abs(genesis.tensor([1., -2.]))
        tensor([1., 2.])
        """
    def absolute_(self) -> Tensor:
        """In-place form of `abs`: writes the result into this tensor and returns it."""
    def acos(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc cosine, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.acos(genesis.tensor([0., 1.]))
        tensor([1.5708, 0.0000])
        """
    def acos_(self) -> Tensor:
        """In-place form of `acos`: writes the result into this tensor and returns it."""
    def acosh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic cosine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.acosh(genesis.tensor([1., 2.]))
        tensor([0.0000, 1.3170])
        """
    def acosh_(self) -> Tensor:
        """In-place form of `acosh`: writes the result into this tensor and returns it."""
    def add(self, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Sum, $x + alpha y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.add(genesis.tensor([1., 2.]), 3)
        tensor([4., 5.])
        """
    def add_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `add`: writes the result into this tensor and returns it."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """$\\beta x + \\alpha \\sum_i A_i B_i$ for batches of matrices.

        Raises:
            RuntimeError: shapes that do not fit

        >>> import genesis
        >>> genesis.addbmm(genesis.ones(1), genesis.ones(2, 1, 2), genesis.ones(2, 2, 1))
        tensor([[5.]])
        """
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """In-place form of `addbmm`: writes the result into this tensor and returns it."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """Sum with a scaled quotient, $x + value \\cdot a / b$.

        >>> import genesis
        >>> genesis.addcdiv(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([2., 4.]), value=2)
        tensor([2., 2.])
        """
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """In-place form of `addcdiv`: writes the result into this tensor and returns it."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """Sum with a scaled product, $x + value \\cdot a b$.

        >>> import genesis
        >>> genesis.addcmul(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([3., 4.]), value=0.5)
        tensor([2.5000, 5.0000])
        """
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """In-place form of `addcmul`: writes the result into this tensor and returns it."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """$\\beta x + \\alpha A B$ for matrices.

        >>> import genesis
        >>> genesis.addmm(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2, 1))
        tensor([[3.]])
        """
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """In-place form of `addmm`: writes the result into this tensor and returns it."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """$\\beta x + \\alpha A v$ for a matrix and a vector.

        >>> import genesis
        >>> genesis.addmv(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2))
        tensor([3.])
        """
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """In-place form of `addmv`: writes the result into this tensor and returns it."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """$\\beta x + \\alpha u v^T$ for two vectors; of bool tensors with *and* for the products and *or* for the sum.

        Raises:
            RuntimeError: not two vectors

        >>> import genesis
        >>> genesis.addr(genesis.zeros(2, 2), genesis.tensor([1., 2.]), genesis.ones(2))
        tensor([[1., 1.],
                [2., 2.]])
        """
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """In-place form of `addr`: writes the result into this tensor and returns it."""
    def adjoint(self) -> Any: ...
    def all(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Whether all elements over ``dim`` (None: all) are non-zero; True of nothing. The result is bool (uint8 of uint8).

        >>> import genesis
        >>> genesis.all(genesis.tensor([False, True]))
        tensor(False)
        """
    def allclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
        """Whether all elements are close, see `isclose`.

        >>> import genesis
        >>> genesis.allclose(genesis.ones(2), genesis.ones(2) + 1e-9)
        True
        """
    def amax(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Largest element over ``dim`` (None: all); nan if there is one. Equal maxima share the gradient evenly.

        Raises:
            IndexError: a dim out of range, or of size 0

        >>> import genesis
        >>> genesis.amax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
        tensor([5., 7.])
        """
    def amin(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Smallest element over ``dim`` (None: all); nan if there is one. Equal minima share the gradient evenly.

        Raises:
            IndexError: a dim out of range, or of size 0

        >>> import genesis
        >>> genesis.amin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
        tensor([1., 2.])
        """
    def aminmax(self, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """Smallest and largest element over ``dim`` (None: all), as a named tuple ``(min, max)``.

        >>> import genesis
        >>> genesis.aminmax(genesis.tensor([1., 5., 2.])).max
        tensor(5.)
        """
    def angle(self, *, out: Tensor | None = ...) -> Tensor:
        """Argument of a complex number in radians; for reals 0 or pi.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.angle(genesis.tensor([1., -1.]))
        tensor([0.0000, 3.1416])
        """
    def angle_(self) -> Tensor:
        """In-place form of `angle`: writes the result into this tensor and returns it."""
    def any(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Whether one element over ``dim`` (None: all) is non-zero; False of nothing. The result is bool (uint8 of uint8).

        >>> import genesis
        >>> genesis.any(genesis.tensor([False, True]))
        tensor(True)
        """
    def apply_(self, callable: Any) -> Tensor:
        """Replace each element by what a Python function returns for it; slow, and without a gradient."""
    def arccos(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc cosine, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.acos(genesis.tensor([0., 1.]))
        tensor([1.5708, 0.0000])
        """
    def arccos_(self) -> Tensor:
        """In-place form of `acos`: writes the result into this tensor and returns it."""
    def arccosh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic cosine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.acosh(genesis.tensor([1., 2.]))
        tensor([0.0000, 1.3170])
        """
    def arccosh_(self) -> Tensor:
        """In-place form of `acosh`: writes the result into this tensor and returns it."""
    def arcsin(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc sine, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.asin(genesis.tensor([0., 1.]))
        tensor([0.0000, 1.5708])
        """
    def arcsin_(self) -> Tensor:
        """In-place form of `asin`: writes the result into this tensor and returns it."""
    def arcsinh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic sine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.asinh(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.8814])
        """
    def arcsinh_(self) -> Tensor:
        """In-place form of `asinh`: writes the result into this tensor and returns it."""
    def arctan(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc tangent, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atan(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.7854])
        """
    def arctan2(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Angle of the point $(y, x)$, in radians.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atan2(genesis.tensor([0., 1.]), 1.)
        tensor([0.0000, 0.7854])
        """
    def arctan2_(self, other: Any) -> Tensor:
        """In-place form of `atan2`: writes the result into this tensor and returns it."""
    def arctan_(self) -> Tensor:
        """In-place form of `atan`: writes the result into this tensor and returns it."""
    def arctanh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic tangent.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atanh(genesis.tensor([0., 0.5]))
        tensor([0.0000, 0.5493])
        """
    def arctanh_(self) -> Tensor:
        """In-place form of `atanh`: writes the result into this tensor and returns it."""
    def argmax(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Index of the largest element along ``dim``, or in the flattened tensor for None; the first of equals.

        Raises:
            IndexError: a dim out of range, or of size 0
            TypeError: several dims

        >>> import genesis
        >>> genesis.argmax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
        tensor([1, 0])
        """
    def argmin(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Index of the smallest element along ``dim``, or in the flattened tensor for None; the first of equals.

        Raises:
            IndexError: a dim out of range, or of size 0
            TypeError: several dims

        >>> import genesis
        >>> genesis.argmin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
        tensor([0, 1])
        """
    def argsort(self, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, axis: Any = ...) -> Tensor:
        """Indices that sort along ``dim``; equals keep their order, nan comes last (first when descending).

        Raises:
            IndexError: a dim out of range
            RuntimeError: a complex tensor

        >>> import genesis
        >>> genesis.argsort(genesis.tensor([3., 1., 2.]))
        tensor([1, 2, 0])
        """
    def argwhere(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

        >>> import genesis
        >>> genesis.nonzero(genesis.tensor([0., 3.]))
        tensor([[1]])
        """
    def as_strided(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
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
    def as_strided_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `as_strided`: the tensor itself gets the other shape; returns it."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """``input`` with the elements that `as_strided` sees replaced.

        Raises:
            RuntimeError: ``src`` has not that size, or it reaches beyond the storage

        >>> import genesis
        >>> genesis.as_strided_scatter(genesis.zeros(2, 2), genesis.ones(2), (2,), (3,))
        tensor([[1., 0.],
                [0., 1.]])
        """
    def as_subclass(self, cls: builtins.type[Tensor]) -> Any:
        """The same tensor as an object of a subclass: it shares memory and history.

        Raises:
            TypeError: not a subclass of `Tensor`

        >>> import genesis
        >>> type(genesis.ones(2).as_subclass(genesis.nn.Parameter)).__name__
        'Parameter'
        """
    def asin(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc sine, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.asin(genesis.tensor([0., 1.]))
        tensor([0.0000, 1.5708])
        """
    def asin_(self) -> Tensor:
        """In-place form of `asin`: writes the result into this tensor and returns it."""
    def asinh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic sine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.asinh(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.8814])
        """
    def asinh_(self) -> Tensor:
        """In-place form of `asinh`: writes the result into this tensor and returns it."""
    def atan(self, *, out: Tensor | None = ...) -> Tensor:
        """Arc tangent, in radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atan(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.7854])
        """
    def atan2(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Angle of the point $(y, x)$, in radians.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atan2(genesis.tensor([0., 1.]), 1.)
        tensor([0.0000, 0.7854])
        """
    def atan2_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `atan2`: writes the result into this tensor and returns it."""
    def atan_(self) -> Tensor:
        """In-place form of `atan`: writes the result into this tensor and returns it."""
    def atanh(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse hyperbolic tangent.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.atanh(genesis.tensor([0., 0.5]))
        tensor([0.0000, 0.5493])
        """
    def atanh_(self) -> Tensor:
        """In-place form of `atanh`: writes the result into this tensor and returns it."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """$\\beta x + \\alpha A_i B_i$ for batches of matrices.

        >>> import genesis
        >>> genesis.baddbmm(genesis.ones(1), genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
        tensor([[[3.]]])
        """
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """In-place form of `baddbmm`: writes the result into this tensor and returns it."""
    def bernoulli(self, p: builtins.float | None = ..., *, generator: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Ones with the probabilities in ``input`` (or ``p``), zeros otherwise.

        Raises:
            RuntimeError: a probability outside [0, 1]

        >>> import genesis
        >>> genesis.bernoulli(genesis.tensor([0., 1.]))
        tensor([0., 1.])
        """
    def bernoulli_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with ones of probability p, zeros otherwise."""
    def bfloat16(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.bfloat16."""
    def bincount(self, weights: Tensor | None = ..., minlength: builtins.int = ...) -> Tensor:
        """How often each integer from 0 to the largest occurs, as int64; or the sum of its weights, as float32 or float64.

        Not differentiable.

        Raises:
            RuntimeError: the input is not 1-d or has negative elements; ``weights`` of another shape

        >>> import genesis
        >>> genesis.bincount(genesis.tensor([0, 1, 1]))
        tensor([1, 2])
        """
    def bitwise_and(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Bits set in both; for bool, and.

        Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_and(genesis.tensor([6, 3]), 2)
        tensor([2, 2])
        """
    def bitwise_and_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `bitwise_and`: writes the result into this tensor and returns it."""
    def bitwise_left_shift(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Bits moved up, $x 2^y$.

        Element by element, on tensors that broadcast together; integer dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_left_shift(genesis.tensor([1, 2]), 2)
        tensor([4, 8])
        """
    def bitwise_left_shift_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `bitwise_left_shift`: writes the result into this tensor and returns it."""
    def bitwise_not(self, *, out: Tensor | None = ...) -> Tensor:
        """All bits turned; for bool, not.

        Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_not(genesis.tensor([0, 1]))
        tensor([-1, -2])
        """
    def bitwise_not_(self) -> Tensor:
        """In-place form of `bitwise_not`: writes the result into this tensor and returns it."""
    def bitwise_or(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Bits set in either; for bool, or.

        Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_or(genesis.tensor([4, 3]), 2)
        tensor([6, 3])
        """
    def bitwise_or_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `bitwise_or`: writes the result into this tensor and returns it."""
    def bitwise_right_shift(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Bits moved down, $\\lfloor x / 2^y \\rfloor$.

        Element by element, on tensors that broadcast together; integer dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_right_shift(genesis.tensor([4, 8]), 2)
        tensor([1, 2])
        """
    def bitwise_right_shift_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `bitwise_right_shift`: writes the result into this tensor and returns it."""
    def bitwise_xor(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Bits set in one of the two.

        Element by element, on tensors that broadcast together; integer, bool dtypes. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.bitwise_xor(genesis.tensor([6, 3]), 2)
        tensor([4, 1])
        """
    def bitwise_xor_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `bitwise_xor`: writes the result into this tensor and returns it."""
    def bmm(self, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """Products of two batches of matrices, of the same size.

        >>> import genesis
        >>> genesis.bmm(genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
        tensor([[[2.]]])
        """
    def bool(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.bool."""
    def broadcast_to(self, *shape: Any, **named: Any) -> Tensor:
        """The tensor in a shape it broadcasts to, as a view.

        >>> import genesis
        >>> genesis.broadcast_to(genesis.tensor([1., 2.]), (2, 2))
        tensor([[1., 2.],
                [1., 2.]])
        """
    def byte(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.uint8."""
    def cauchy_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with Cauchy numbers."""
    def ccol_indices(self) -> Any:
        """Refused: only a compressed sparse matrix has it."""
    def cdouble(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.complex128."""
    def ceil(self, *, out: Tensor | None = ...) -> Tensor:
        """Smallest integer not below $x$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.ceil(genesis.tensor([1.5, -1.5]))
        tensor([ 2., -1.])
        """
    def ceil_(self) -> Tensor:
        """In-place form of `ceil`: writes the result into this tensor and returns it."""
    def cfloat(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.complex64."""
    def chalf(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.complex32."""
    def char(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.int8."""
    def cholesky(self, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
        """`linalg.cholesky`.

        >>> import genesis
        >>> genesis.cholesky(genesis.tensor([[4.]]))
        tensor([[2.]])
        """
    def cholesky_inverse(self, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
        """The inverse of A from Cholesky's factor of it, $A = LL^H$ (or for ``upper`` $A = L^H L$).

        >>> import genesis
        >>> genesis.cholesky_inverse(genesis.tensor([[2.]]))
        tensor([[0.2500]])
        """
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
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
    def chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """At most ``chunks`` pieces of equal size along ``dim`` (the last may be smaller); views.

        >>> import genesis
        >>> [len(piece) for piece in genesis.chunk(genesis.arange(5), 2)]
        [3, 2]
        """
    def clamp(self, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
        """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
        tensor.

        The slope is 1 inside and on the edges, 0 outside.

        Raises:
            ValueError: neither limit is given

        >>> import genesis
        >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
        """
    def clamp_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """In-place form of `clamp`: writes the result into this tensor and returns it."""
    def clamp_max(self, max: Any, *, out: Tensor | None = ...) -> Tensor:
        """No more than a limit, $\\min(x, y)$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.clamp_max(genesis.tensor([1., 5.]), 3.)
        tensor([1., 3.])
        """
    def clamp_max_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `clamp_max`: writes the result into this tensor and returns it."""
    def clamp_min(self, min: Any, *, out: Tensor | None = ...) -> Tensor:
        """No less than a limit, $\\max(x, y)$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.clamp_min(genesis.tensor([1., 5.]), 3.)
        tensor([3., 5.])
        """
    def clamp_min_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `clamp_min`: writes the result into this tensor and returns it."""
    def clip(self, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
        """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
        tensor.

        The slope is 1 inside and on the edges, 0 outside.

        Raises:
            ValueError: neither limit is given

        >>> import genesis
        >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
        """
    def clip_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """In-place form of `clamp`: writes the result into this tensor and returns it."""
    def clone(self, *, memory_format: Any = ...) -> Tensor:
        """A copy with its own memory; the gradient passes through.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.clone(genesis.tensor([1., 2.]))
        tensor([1., 2.])
        """
    def coalesce(self) -> Any:
        """Refused: only a sparse tensor has it."""
    def col_indices(self) -> Any:
        """Refused: only a compressed sparse matrix has it."""
    def conj(self) -> Tensor:
        """Complex conjugate; of a real tensor the same tensor.

        >>> import genesis
        >>> genesis.conj(genesis.tensor([1 + 2j]))
        tensor([1.-2.j])
        """
    def conj_physical(self, *, out: Tensor | None = ...) -> Tensor:
        """Complex conjugate, in new memory.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.conj_physical(genesis.tensor([1., 2.]))
        tensor([1., 2.])
        """
    def conj_physical_(self) -> Tensor:
        """In-place form of `conj_physical`: writes the result into this tensor and returns it."""
    def const_data_ptr(self) -> builtins.int:
        """The address of the first element, in the memory of its device."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        """This tensor if its memory is in the order of this format, else a copy that is."""
    def copy_(self, src: Any, non_blocking: builtins.bool = ...) -> Tensor:
        """Write ``src``, broadcast and converted, into this tensor's memory."""
    def copysign(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The size of $x$ with the sign of $y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.copysign(genesis.tensor([1., -2.]), -1)
        tensor([-1., -2.])
        """
    def copysign_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `copysign`: writes the result into this tensor and returns it."""
    def corrcoef(self) -> Tensor:
        """The correlations of variables, of which each row has the observations: covariances over $\\sigma_i \\sigma_j$.

        Raises:
            RuntimeError: more than two dimensions

        >>> import genesis
        >>> genesis.corrcoef(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
        """
    def cos(self, *, out: Tensor | None = ...) -> Tensor:
        """Cosine, of radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.cos(genesis.tensor([0., 1.]))
        tensor([1.0000, 0.5403])
        """
    def cos_(self) -> Tensor:
        """In-place form of `cos`: writes the result into this tensor and returns it."""
    def cosh(self, *, out: Tensor | None = ...) -> Tensor:
        """Hyperbolic cosine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.cosh(genesis.tensor([0., 1.]))
        tensor([1.0000, 1.5431])
        """
    def cosh_(self) -> Tensor:
        """In-place form of `cosh`: writes the result into this tensor and returns it."""
    def count_nonzero(self, *dim: Any, **named: Any) -> Tensor:
        """How many elements over ``dim`` (None: all) are not zero, as int64.

        >>> import genesis
        >>> genesis.count_nonzero(genesis.tensor([0., 1., 2.]))
        tensor(2)
        """
    def cov(self, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
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
    def cpu(self, memory_format: Any = ...) -> Any: ...
    def cross(self, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Cross product of vectors of three elements along ``dim`` (None: the first dimension of size 3).

        Raises:
            RuntimeError: another size

        >>> import genesis
        >>> genesis.cross(genesis.tensor([1., 0., 0.]), genesis.tensor([0., 1., 0.]))
        tensor([0., 0., 1.])
        """
    def crow_indices(self) -> Any:
        """Refused: only a compressed sparse matrix has it."""
    def cuda(self, device: Any = ..., non_blocking: builtins.bool = ...) -> Tensor:
        """This tensor on a GPU; an error where there is no backend for one."""
    def cummax(self, dim: builtins.int) -> Any:
        """Running maximum along ``dim`` as a named tuple ``(values, indices)``; of equals the last, nan once there is one.

        Raises:
            IndexError: a dim out of range
            RuntimeError: a complex tensor

        >>> import genesis
        >>> genesis.cummax(genesis.tensor([1., 3., 2.]), 0).values
        tensor([1., 3., 3.])
        """
    def cummin(self, dim: builtins.int) -> Any:
        """Running minimum along ``dim``, with the indices where it was last reached; see `cummax`.

        >>> import genesis
        >>> genesis.cummin(genesis.tensor([3., 1., 2.]), 0).values
        tensor([3., 1., 1.])
        """
    def cumprod(self, dim: builtins.int = ..., *, dtype: Any = ..., out: Tensor | None = ..., axis: Any = ...) -> Tensor:
        """Running product along ``dim``, $y_i = x_1 ... x_i$; integers and bool give int64.

        The gradient is right where elements are zero, too.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.cumprod(genesis.tensor([1., 2., 3.]), dim=0)
        tensor([1., 2., 6.])
        """
    def cumprod_(self, dim: builtins.int, *, dtype: Any = ...) -> Tensor:
        """In-place form of `cumprod`: writes the result into this tensor and returns it."""
    def cumsum(self, dim: builtins.int = ..., *, dtype: Any = ..., out: Tensor | None = ..., axis: Any = ...) -> Tensor:
        """Running sum along ``dim``, $y_i = x_1 + ... + x_i$; integers and bool give int64.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.cumsum(genesis.tensor([1., 2., 3.]), dim=0)
        tensor([1., 3., 6.])
        """
    def cumsum_(self, dim: builtins.int, *, dtype: Any = ...) -> Tensor:
        """In-place form of `cumsum`: writes the result into this tensor and returns it."""
    def deg2rad(self, *, out: Tensor | None = ...) -> Tensor:
        """Degrees to radians.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.deg2rad(genesis.tensor([0., 180.]))
        tensor([0.0000, 3.1416])
        """
    def deg2rad_(self) -> Tensor:
        """In-place form of `deg2rad`: writes the result into this tensor and returns it."""
    def dense_dim(self) -> builtins.int:
        """How many dimensions it has: all are dense."""
    def det(self) -> Tensor:
        """`linalg.det`.

        >>> import genesis
        >>> genesis.det(genesis.eye(2))
        tensor(1.)
        """
    def diag(self, diagonal: builtins.int = ...) -> Tensor:
        """The diagonal of a matrix, or the matrix with this diagonal.

        >>> import genesis
        >>> genesis.diag(genesis.tensor([[1., 2.], [3., 4.]]))
        tensor([1., 4.])
        """
    def diag_embed(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Matrices with the last dimension on their diagonal.

        >>> import genesis
        >>> genesis.diag_embed(genesis.tensor([1., 2.]))
        tensor([[1., 0.],
                [0., 2.]])
        """
    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """The matrix with the elements, in one dimension, on its diagonal.

        >>> import genesis
        >>> genesis.diagflat(genesis.tensor([[1., 2.]]))
        tensor([[1., 0.],
                [0., 2.]])
        """
    def diagonal(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """The diagonal of two dimensions, last in the result; a view.

        >>> import genesis
        >>> genesis.diagonal(genesis.tensor([[1., 2.], [3., 4.]]))
        tensor([1., 4.])
        """
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """``input`` with a diagonal replaced: what `diagonal` is the inverse of.

        Raises:
            RuntimeError: ``src`` has not the shape of the diagonal

        >>> import genesis
        >>> genesis.diagonal_scatter(genesis.zeros(2, 2), genesis.ones(2))
        tensor([[1., 0.],
                [0., 1.]])
        """
    def diff(self, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
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
    def digamma(self, *, out: Tensor | None = ...) -> Tensor:
        """Derivative of ln gamma.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.digamma(genesis.tensor([1., 2.]))
        tensor([-0.5772,  0.4228])
        """
    def digamma_(self) -> Tensor:
        """In-place form of `digamma`: writes the result into this tensor and returns it."""
    def dim_order(self, *, ambiguity_check: Any = ...) -> builtins.tuple[builtins.int, ...]:
        """The dimensions from the one with the largest steps in memory to that with the smallest."""
    def dist(self, other: Tensor, p: builtins.float = ...) -> Tensor:
        """The $p$-norm of a difference, of all elements.

        >>> import genesis
        >>> genesis.dist(genesis.tensor([3., 0.]), genesis.tensor([0., 4.]))
        tensor(5.)
        """
    def div(self, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
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
    def div_(self, other: Tensor | builtins.complex, *, rounding_mode: Any = ...) -> Tensor:
        """In-place form of `divide`: writes the result into this tensor and returns it."""
    def divide(self, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
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
    def divide_(self, other: Any, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """In-place form of `divide`: writes the result into this tensor and returns it."""
    def dot(self, tensor: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """Dot product of two vectors, $\\\\sum_i x_i y_i$.

        >>> import genesis
        >>> genesis.dot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
        tensor(11.)
        """
    def double(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.float64."""
    def dsplit(self, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
        """Pieces of one size, or cut at indices, along dim 2; views.

        Raises:
            RuntimeError: fewer than three dimensions, or a number of pieces that does not divide the size

        >>> import genesis
        >>> [piece.shape[2] for piece in genesis.dsplit(genesis.ones(1, 2, 4), 2)]
        [2, 2]
        """
    def eig(self, **kwargs: Any) -> Any:
        """Refused: PyTorch removed it."""
    def eq(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x = y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.eq(genesis.tensor([1., 2.]), 2)
        tensor([False,  True])
        """
    def eq_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `eq`: writes the result into this tensor and returns it."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape and the same elements.

        >>> import genesis
        >>> genesis.equal(genesis.ones(2), genesis.ones(3))
        False
        """
    def erf(self, *, out: Tensor | None = ...) -> Tensor:
        """Error function, $\\frac{2}{\\sqrt\\pi} \\int_0^x e^{-t^2} dt$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.erf(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.8427])
        """
    def erf_(self) -> Tensor:
        """In-place form of `erf`: writes the result into this tensor and returns it."""
    def erfc(self, *, out: Tensor | None = ...) -> Tensor:
        """One minus the error function, accurate for large $x$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.erfc(genesis.tensor([0., 1.]))
        tensor([1.0000, 0.1573])
        """
    def erfc_(self) -> Tensor:
        """In-place form of `erfc`: writes the result into this tensor and returns it."""
    def erfinv(self, *, out: Tensor | None = ...) -> Tensor:
        """Inverse of the error function.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.erfinv(genesis.tensor([0., 0.5]))
        tensor([0.0000, 0.4769])
        """
    def erfinv_(self) -> Tensor:
        """In-place form of `erfinv`: writes the result into this tensor and returns it."""
    def exp(self, *, out: Tensor | None = ...) -> Tensor:
        """Exponential, $e^x$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.exp(genesis.tensor([0., 1.]))
        tensor([1.0000, 2.7183])
        """
    def exp2(self, *, out: Tensor | None = ...) -> Tensor:
        """Power of two, $2^x$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.exp2(genesis.tensor([0., 3.]))
        tensor([1., 8.])
        """
    def exp2_(self) -> Tensor:
        """In-place form of `exp2`: writes the result into this tensor and returns it."""
    def exp_(self) -> Tensor:
        """In-place form of `exp`: writes the result into this tensor and returns it."""
    def expand(self, *shape: Any, **named: Any) -> Tensor:
        """The same elements seen in a larger shape, without copying: dimensions of size 1 are stretched, -1 keeps one.

        Raises:
            RuntimeError: a dimension of another size is to change

        >>> import genesis
        >>> genesis.tensor([[1.], [2.]]).expand(2, 3)
        tensor([[1., 1., 1.],
                [2., 2., 2.]])
        """
    def expand_as(self, other: Any) -> Any: ...
    def expm1(self, *, out: Tensor | None = ...) -> Tensor:
        """Exponential minus one, $e^x - 1$, accurate near zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.expm1(genesis.tensor([0., 1.]))
        tensor([0.0000, 1.7183])
        """
    def expm1_(self) -> Tensor:
        """In-place form of `expm1`: writes the result into this tensor and returns it."""
    def exponential_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with exponential numbers of a rate."""
    def fill_(self, value: Any) -> Tensor:
        """Set all elements to a number or 0-d tensor."""
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = ...) -> Tensor:
        """Set the diagonal of a matrix, with ``wrap`` again after each block of a tall one; of cubes the main diagonal.

        Raises:
            RuntimeError: fewer than two dimensions, or a tensor of more that is no cube
        """
    def fix(self, *, out: Tensor | None = ...) -> Tensor:
        """Integer part of $x$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.trunc(genesis.tensor([1.5, -1.5]))
        tensor([ 1., -1.])
        """
    def fix_(self) -> Tensor:
        """In-place form of `trunc`: writes the result into this tensor and returns it."""
    def flatten(self, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
        """Merge the dimensions from ``start_dim`` to ``end_dim`` into one.

        >>> import genesis
        >>> genesis.flatten(genesis.zeros(2, 3, 4), 1).shape
        genesis.Size([2, 12])
        """
    def flip(self, *order: Any, dims: Any = ...) -> Tensor:
        """`flip` of one sequence of dimensions, or of several dimensions."""
    def fliplr(self) -> Tensor:
        """Columns in reverse order."""
    def flipud(self) -> Tensor:
        """Rows in reverse order."""
    def float(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.float32."""
    def float_power(self, exponent: Any) -> Tensor:
        """Power, $x^y$, in double precision whatever the dtypes are.

        >>> import genesis
        >>> genesis.float_power(genesis.tensor([1, 2, 3]), -1)
        tensor([1.0000, 0.5000, 0.3333], dtype=genesis.float64)
        """
    def float_power_(self, exponent: Any) -> Tensor:
        """In-place form of `float_power`: writes the result into this tensor and returns it."""
    def floor(self, *, out: Tensor | None = ...) -> Tensor:
        """Largest integer not above $x$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.floor(genesis.tensor([1.5, -1.5]))
        tensor([ 1., -2.])
        """
    def floor_(self) -> Tensor:
        """In-place form of `floor`: writes the result into this tensor and returns it."""
    def floor_divide(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Quotient rounded towards minus infinity, $\\lfloor x / y \\rfloor$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.floor_divide(genesis.tensor([7., -7.]), 2)
        tensor([ 3., -4.])
        """
    def floor_divide_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `floor_divide`: writes the result into this tensor and returns it."""
    def fmax(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The larger of two, ignoring nan.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.fmax(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
        tensor([3., 5.])
        """
    def fmax_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `fmax`: writes the result into this tensor and returns it."""
    def fmin(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The smaller of two, ignoring nan.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.fmin(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
        tensor([1., 2.])
        """
    def fmin_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `fmin`: writes the result into this tensor and returns it."""
    def fmod(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Remainder with the sign of the dividend.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.fmod(genesis.tensor([7., -7.]), 3)
        tensor([ 1., -1.])
        """
    def fmod_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `fmod`: writes the result into this tensor and returns it."""
    def frac(self, *, out: Tensor | None = ...) -> Tensor:
        """Fractional part, $x - trunc(x)$.

        Element by element, on tensors that broadcast together; floating dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.frac(genesis.tensor([1.5, -1.5]))
        tensor([ 0.5000, -0.5000])
        """
    def frac_(self) -> Tensor:
        """In-place form of `frac`: writes the result into this tensor and returns it."""
    def frexp(self) -> Any:
        """Each element as $m 2^e$ with $|m|$ in [1/2, 1): the mantissa, and the exponent as int32.

        Raises:
            RuntimeError: the tensor is not floating

        >>> import genesis
        >>> genesis.frexp(genesis.tensor([3.]))
        frexp_result(mantissa=tensor([0.7500]), exponent=tensor([2], dtype=genesis.int32))
        """
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ...) -> Tensor:
        """Elements named along ``dim``, ``out[i][j] = input[index[i][j]][j]`` for dim 0; in the shape of ``index``.

        Raises:
            IndexError: an index out of range
            RuntimeError: ``index`` has other dimensions, or is larger than the input elsewhere

        >>> import genesis
        >>> genesis.gather(genesis.tensor([[1., 2.], [3., 4.]]), 1, genesis.tensor([[0], [1]]))
        tensor([[1.],
                [4.]])
        """
    def gcd(self, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """The greatest common divisor of each pair of integers, after broadcasting.

        Raises:
            RuntimeError: no integers, or shapes that do not fit

        >>> import genesis
        >>> genesis.gcd(genesis.tensor([12, 5]), genesis.tensor([8, 10]))
        tensor([4, 5])
        """
    def gcd_(self, other: Tensor) -> Tensor:
        """In-place form of `gcd`: writes the result into this tensor and returns it."""
    def ge(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\ge y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.ge(genesis.tensor([1., 2.]), 2)
        tensor([False,  True])
        """
    def ge_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `ge`: writes the result into this tensor and returns it."""
    def geometric_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with the number of trials to a first success."""
    def geqrf(self, *, out: Tensor | None = ...) -> Any:
        """The QR factors as LAPACK keeps them, ``(a, tau)``: R on and above the diagonal, below it the reflections that
        `linalg.householder_product` makes Q of. It has no gradient.

        >>> import genesis
        >>> genesis.geqrf(genesis.eye(2)).a.abs()
        tensor([[1., 0.],
                [0., 1.]])
        """
    def ger(self, vec2: Tensor) -> Tensor:
        """Outer product of two vectors, $x_i y_j$.

        >>> import genesis
        >>> genesis.outer(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
        tensor([[3., 4.],
                [6., 8.]])
        """
    def get_device(self) -> builtins.int:
        """The index of the tensor's GPU; -1 on the CPU.

        >>> import genesis
        >>> genesis.get_device(genesis.ones(2))
        -1
        """
    @property
    def grad_dtype(self) -> Tensor:
        """"""
    def greater(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x > y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.gt(genesis.tensor([1., 2.]), 1)
        tensor([False,  True])
        """
    def greater_(self, other: Any) -> Tensor:
        """In-place form of `gt`: writes the result into this tensor and returns it."""
    def greater_equal(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\ge y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.ge(genesis.tensor([1., 2.]), 2)
        tensor([False,  True])
        """
    def greater_equal_(self, other: Any) -> Tensor:
        """In-place form of `ge`: writes the result into this tensor and returns it."""
    def gt(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x > y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.gt(genesis.tensor([1., 2.]), 1)
        tensor([False,  True])
        """
    def gt_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `gt`: writes the result into this tensor and returns it."""
    def half(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.float16."""
    def hardshrink(self, lambd: builtins.float = ...) -> Tensor:
        """$x$ beyond ``lambd`` on both sides, zero between.

        >>> import genesis
        >>> genesis.hardshrink(genesis.tensor([-1., 0.25]))
        tensor([-1.,  0.])
        """
    def hash_tensor(self, dim: Any = ..., *, keepdim: builtins.bool = ..., mode: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
        """The exclusive or of the bits of all elements, or of those along dimensions: of floats as float64, of integers as
        int64.

        Raises:
            RuntimeError: no elements, and no dimension
            ValueError: a mode other than 0

        >>> import genesis
        >>> genesis.hash_tensor(genesis.tensor([1, 2])).item()
        3
        """
    def heaviside(self, values: Any, *, out: Tensor | None = ...) -> Tensor:
        """Step: 0 below zero, 1 above, $y$ at zero.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.heaviside(genesis.tensor([-1., 0., 2.]), genesis.tensor([0.5, 0.5, 0.5]))
        tensor([0.0000, 0.5000, 1.0000])
        """
    def heaviside_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `heaviside`: writes the result into this tensor and returns it."""
    def histc(self, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor:
        """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max`` (both equal: of the data's
        range).

        The last bin includes its end. Elements outside and nan are left out. Not differentiable.

        Raises:
            RuntimeError: an input that is not floating, no bins, ``max`` below ``min``, or a range that is not finite

        >>> import genesis
        >>> genesis.histc(genesis.tensor([1., 2., 1.]), bins=2, min=0, max=3)
        tensor([2., 1.])
        """
    def histogram(self, bins: Any, *, range: Sequence[builtins.float] | None = ..., weight: Tensor | None = ..., density: builtins.bool = ..., out: Tensor | None = ...) -> Any:
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
    def hsplit(self, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
        """Pieces of one size, or cut at indices, along dim 1 (dim 0 of one dimension); views.

        Raises:
            RuntimeError: no dimensions, or a number of pieces that does not divide the size

        >>> import genesis
        >>> genesis.hsplit(genesis.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3]))
        """
    def hypot(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Length of $(x, y)$, $\\sqrt{x^2 + y^2}$.

        Element by element, on tensors that broadcast together; floating dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.hypot(genesis.tensor([3., 5.]), genesis.tensor([4., 12.]))
        tensor([ 5., 13.])
        """
    def hypot_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `hypot`: writes the result into this tensor and returns it."""
    def i0(self, *, out: Tensor | None = ...) -> Tensor:
        """Modified Bessel function of the first kind of order 0, $I_0$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.i0(genesis.tensor([0., 1.]))
        tensor([1.0000, 1.2661])
        """
    def i0_(self) -> Tensor:
        """In-place form of `i0`: writes the result into this tensor and returns it."""
    def igamma(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Regularised lower incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_0^x t^{a-1} e^{-t} dt$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.igamma(genesis.tensor([2., 2.]), genesis.tensor([1., 3.]))
        tensor([0.2642, 0.8009])
        """
    def igamma_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `igamma`: writes the result into this tensor and returns it."""
    def igammac(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Regularised upper incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_x^\\infty t^{a-1} e^{-t} dt$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.igammac(genesis.tensor([2., 2.]), genesis.tensor([1., 3.]))
        tensor([0.7358, 0.1991])
        """
    def igammac_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `igammac`: writes the result into this tensor and returns it."""
    @property
    def imag(self) -> Tensor:
        """"""
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ...) -> Tensor:
        """``input`` with slices of ``source`` added at the places of a 1-d index along ``dim``.

        >>> import genesis
        >>> genesis.index_add(genesis.zeros(3), 0, genesis.tensor([1, 1]), genesis.tensor([2., 3.]))
        tensor([0., 5., 0.])
        """
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ...) -> Tensor:
        """In-place form of `index_add`: writes the result into this tensor and returns it."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """``input`` with slices replaced by those of ``source`` at the places of a 1-d index along ``dim``.

        >>> import genesis
        >>> genesis.index_copy(genesis.zeros(3), 0, genesis.tensor([1]), genesis.tensor([2.]))
        tensor([0., 2., 0.])
        """
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """In-place form of `index_copy`: writes the result into this tensor and returns it."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """``input`` with slices set to one value at the places of a 1-d index along ``dim``.

        >>> import genesis
        >>> genesis.index_fill(genesis.zeros(3), 0, genesis.tensor([1]), 7)
        tensor([0., 7., 0.])
        """
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """In-place form of `index_fill`: writes the result into this tensor and returns it."""
    def index_put(self, indices: Sequence[Tensor], values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """``input`` with ``values`` at (or, with ``accumulate``, added at) a tuple of indices.

        >>> import genesis
        >>> genesis.index_put(genesis.zeros(3), (genesis.tensor([1, 1]),), genesis.tensor([2., 3.]), accumulate=True)
        tensor([0., 5., 0.])
        """
    def index_put_(self, indices: Sequence[Tensor], values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """In-place form of `index_put`: writes the result into this tensor and returns it."""
    def index_reduce(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Slices of ``source`` combined at the places of a 1-d index along ``dim``: "prod", "mean", "amax" or "amin".

        Raises:
            ValueError: an unknown ``reduce``
            RuntimeError: ``source`` has not one slice for each place

        >>> import genesis
        >>> genesis.index_reduce(genesis.ones(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "amax")
        tensor([1., 5.])
        """
    def index_reduce_(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """In-place form of `index_reduce`: writes the result into this tensor and returns it."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The slices along ``dim`` named by a 1-d index, in that order.

        Raises:
            IndexError: an index out of range

        >>> import genesis
        >>> genesis.index_select(genesis.tensor([1., 2., 3.]), 0, genesis.tensor([2, 0]))
        tensor([3., 1.])
        """
    def indices(self) -> Any:
        """Refused: only a sparse tensor has it."""
    def inner(self, other: Tensor) -> Tensor:
        """Products summed over the last dimensions.

        >>> import genesis
        >>> genesis.inner(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
        tensor(11.)
        """
    def int(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.int32."""
    def inverse(self, *, out: Tensor | None = ...) -> Tensor:
        """`linalg.inv`.

        >>> import genesis
        >>> genesis.inverse(genesis.eye(1))
        tensor([[1.]])
        """
    def ipu(self, device: Any = ..., non_blocking: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
        """Refused: there is no such device."""
    def is_coalesced(self) -> Any: ...
    def is_conj(self) -> builtins.bool:
        """False: the conjugate of a tensor is computed at once."""
    @property
    def is_cpu(self) -> Tensor:
        """Whether the tensor is on cpu."""
    @property
    def is_cuda(self) -> Tensor:
        """Whether the tensor is on cuda."""
    def is_distributed(self) -> Any: ...
    @property
    def is_ipu(self) -> Tensor:
        """Whether the tensor is on ipu."""
    @property
    def is_maia(self) -> Tensor:
        """Whether the tensor is on maia."""
    @property
    def is_mkldnn(self) -> Tensor:
        """False: there are no such tensors here."""
    @property
    def is_mps(self) -> Tensor:
        """Whether the tensor is on mps."""
    @property
    def is_mtia(self) -> Tensor:
        """Whether the tensor is on mtia."""
    def is_neg(self) -> builtins.bool:
        """False: the negative of a tensor is computed at once."""
    @property
    def is_nested(self) -> Tensor:
        """False: there are no such tensors here."""
    def is_nonzero(self) -> builtins.bool:
        """Whether the one element is not zero.

        Raises:
            RuntimeError: there is not exactly one

        >>> import genesis
        >>> genesis.is_nonzero(genesis.tensor([3.]))
        True
        """
    def is_pinned(self, device: Any = ...) -> builtins.bool:
        """Whether a GPU copies from this tensor's memory while the program goes on."""
    @property
    def is_quantized(self) -> Tensor:
        """False: there are no such tensors here."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have one shape.

        >>> import genesis
        >>> genesis.is_same_size(genesis.ones(2), genesis.ones(2, 1))
        False
        """
    def is_set_to(self, tensor: Any) -> Any: ...
    def is_shared(self) -> builtins.bool:
        """Whether other processes see this tensor's memory."""
    def is_signed(self) -> builtins.bool:
        """Whether the dtype has negative numbers.

        >>> import genesis
        >>> genesis.is_signed(genesis.ones(2)), genesis.is_signed(genesis.ones(2, dtype=genesis.uint8))
        (True, False)
        """
    @property
    def is_sparse(self) -> Tensor:
        """False: there are no such tensors here."""
    @property
    def is_sparse_csr(self) -> Tensor:
        """False: there are no such tensors here."""
    @property
    def is_vulkan(self) -> Tensor:
        """Whether the tensor is on vulkan."""
    @property
    def is_xla(self) -> Tensor:
        """Whether the tensor is on xla."""
    @property
    def is_xpu(self) -> Tensor:
        """Whether the tensor is on xpu."""
    def isclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
        """Whether $|x - y| \\le atol + rtol |y|$; equal infinities are close, nan only with ``equal_nan``.

        >>> import genesis
        >>> genesis.isclose(genesis.tensor([1., 2.]), genesis.tensor([1., 2.1]))
        tensor([ True, False])
        """
    def isfinite(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is neither infinite nor nan.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.isfinite(genesis.tensor([1., float('inf')]))
        tensor([ True, False])
        """
    def isinf(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is infinite.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.isinf(genesis.tensor([1., float('inf')]))
        tensor([False,  True])
        """
    def isnan(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is nan.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.isnan(genesis.tensor([1., float('nan')]))
        tensor([False,  True])
        """
    def isneginf(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is -inf.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.isneginf(genesis.tensor([1., float('inf')]))
        tensor([False, False])
        """
    def isposinf(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is inf.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.isposinf(genesis.tensor([1., float('inf')]))
        tensor([False,  True])
        """
    def isreal(self) -> Tensor:
        """Whether each element has no imaginary part; of real tensors all of them.

        >>> import genesis
        >>> genesis.isreal(genesis.tensor([1 + 0j, 1j]))
        tensor([ True, False])
        """
    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
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
    def kron(self, other: Tensor) -> Tensor:
        """Kronecker product.

        >>> import genesis
        >>> genesis.kron(genesis.tensor([1., 2.]), genesis.tensor([1., 10.]))
        tensor([ 1., 10.,  2., 20.])
        """
    def kthvalue(self, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """The ``k``-th smallest element along ``dim`` (counted from 1) and its index.

        Raises:
            RuntimeError: there are fewer than ``k``, or a complex tensor
            IndexError: a dim out of range, or of size 0

        >>> import genesis
        >>> genesis.kthvalue(genesis.tensor([3., 1., 2.]), 2).values
        tensor(2.)
        """
    @property
    def layout(self) -> Tensor:
        """How the elements are stored: always ``strided``."""
    def lcm(self, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """The least common multiple of each pair of integers, after broadcasting.

        Raises:
            RuntimeError: no integers, or shapes that do not fit

        >>> import genesis
        >>> genesis.lcm(genesis.tensor([12, 5]), genesis.tensor([8, 10]))
        tensor([24, 10])
        """
    def lcm_(self, other: Tensor) -> Tensor:
        """In-place form of `lcm`: writes the result into this tensor and returns it."""
    def ldexp(self, other: Any, *, out: Tensor | None = ...) -> Tensor:
        """A mantissa and an exponent put together, $x \\, 2^y$, rounded once; a power out of range by itself does no harm.

        Integers give a floating result, in the default dtype.

        >>> import genesis
        >>> genesis.ldexp(genesis.tensor([1., 1e-30]), genesis.tensor([-2, 200]))
        tensor([2.5000e-01, 1.6069e+30])
        """
    def ldexp_(self, other: Any) -> Tensor:
        """In-place form of `ldexp`: writes the result into this tensor and returns it."""
    def le(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\le y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.le(genesis.tensor([1., 2.]), 1)
        tensor([ True, False])
        """
    def le_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `le`: writes the result into this tensor and returns it."""
    def lerp(self, end: Tensor, weight: Any) -> Tensor:
        """Linear interpolation, $x + w (end - x)$, from the end that is nearer: with a weight of 1 it is ``end`` itself.

        >>> import genesis
        >>> genesis.lerp(genesis.tensor([0., 10.]), genesis.tensor([10., 20.]), 0.5)
        tensor([ 5., 15.])
        """
    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """In-place form of `lerp`: writes the result into this tensor and returns it."""
    def less(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x < y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.lt(genesis.tensor([1., 2.]), 2)
        tensor([ True, False])
        """
    def less_(self, other: Any) -> Tensor:
        """In-place form of `lt`: writes the result into this tensor and returns it."""
    def less_equal(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\le y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.le(genesis.tensor([1., 2.]), 1)
        tensor([ True, False])
        """
    def less_equal_(self, other: Any) -> Tensor:
        """In-place form of `le`: writes the result into this tensor and returns it."""
    def lgamma(self, *, out: Tensor | None = ...) -> Tensor:
        """Logarithm of the absolute value of the gamma function.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.lgamma(genesis.tensor([1., 4.]))
        tensor([0.0000, 1.7918])
        """
    def lgamma_(self) -> Tensor:
        """In-place form of `lgamma`: writes the result into this tensor and returns it."""
    def log(self, *, out: Tensor | None = ...) -> Tensor:
        """Natural logarithm, $\\ln x$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.log(genesis.tensor([1., 2.]))
        tensor([0.0000, 0.6931])
        """
    def log10(self, *, out: Tensor | None = ...) -> Tensor:
        """Logarithm to base ten.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.log10(genesis.tensor([1., 50.]))
        tensor([0.0000, 1.6990])
        """
    def log10_(self) -> Tensor:
        """In-place form of `log10`: writes the result into this tensor and returns it."""
    def log1p(self, *, out: Tensor | None = ...) -> Tensor:
        """Logarithm of one plus $x$, accurate near zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.log1p(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.6931])
        """
    def log1p_(self) -> Tensor:
        """In-place form of `log1p`: writes the result into this tensor and returns it."""
    def log2(self, *, out: Tensor | None = ...) -> Tensor:
        """Logarithm to base two.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.log2(genesis.tensor([1., 8.]))
        tensor([0., 3.])
        """
    def log2_(self) -> Tensor:
        """In-place form of `log2`: writes the result into this tensor and returns it."""
    def log_(self) -> Tensor:
        """In-place form of `log`: writes the result into this tensor and returns it."""
    def log_normal_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with exponentials of normal numbers."""
    def log_softmax(self, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
        """Logarithm of the softmax along ``dim``, $x_i - \\ln \\sum_j e^{x_j}$.

        >>> import genesis
        >>> genesis.log_softmax(genesis.tensor([0., 0.]), dim=0)
        tensor([-0.6931, -0.6931])
        """
    def logaddexp(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Stable $\\ln(e^x + e^y)$.

        Element by element, on tensors that broadcast together; floating, complex dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logaddexp(genesis.tensor([0., 1.]), genesis.tensor([0., 2.]))
        tensor([0.6931, 2.3133])
        """
    def logaddexp2(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Stable $\\log_2(2^x + 2^y)$.

        Element by element, on tensors that broadcast together; floating dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logaddexp2(genesis.tensor([0., 1.]), genesis.tensor([0., 1.]))
        tensor([1., 2.])
        """
    def logaddexp2_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `logaddexp2`: writes the result into this tensor and returns it."""
    def logaddexp_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `logaddexp`: writes the result into this tensor and returns it."""
    def logcumsumexp(self, dim: builtins.int = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
        """Running logarithm of a sum of exponentials along ``dim``, $y_i = \\ln(e^{x_1} + ... + e^{x_i})$, without
        overflow.

        Raises:
            RuntimeError: a tensor that is neither floating nor complex
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.logcumsumexp(genesis.tensor([-1000., -1000., 0.]), 0)
        tensor([-1000.0000,  -999.3068,     0.0000])
        """
    def logdet(self) -> Tensor:
        """The logarithm of the determinant; nan where that is negative, -inf where it is zero.

        Raises:
            RuntimeError: not square

        >>> import genesis
        >>> genesis.logdet(genesis.eye(2))
        tensor(0.)
        """
    def logical_and(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether both are non-zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logical_and(genesis.tensor([1., 0.]), genesis.tensor([2., 3.]))
        tensor([ True, False])
        """
    def logical_and_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `logical_and`: writes the result into this tensor and returns it."""
    def logical_not(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether an element is zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logical_not(genesis.tensor([1., 0.]))
        tensor([False,  True])
        """
    def logical_not_(self) -> Tensor:
        """In-place form of `logical_not`: writes the result into this tensor and returns it."""
    def logical_or(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether one is non-zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logical_or(genesis.tensor([1., 0.]), genesis.tensor([0., 0.]))
        tensor([ True, False])
        """
    def logical_or_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `logical_or`: writes the result into this tensor and returns it."""
    def logical_xor(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether exactly one is non-zero.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logical_xor(genesis.tensor([1., 0.]), genesis.tensor([2., 3.]))
        tensor([False,  True])
        """
    def logical_xor_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `logical_xor`: writes the result into this tensor and returns it."""
    def logit(self, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
        """Inverse of the sigmoid, $\\ln(x / (1 - x))$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.logit(genesis.tensor([0.5, 0.75]))
        tensor([0.0000, 1.0986])

        With ``eps`` the elements are cut off at eps and 1 - eps first.
        """
    def logit_(self, eps: builtins.float | None = ...) -> Tensor:
        """In-place form of `logit`: writes the result into this tensor and returns it."""
    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Logarithm of a sum of exponentials over ``dim`` (None: all), $\\ln \\sum_i e^{x_i}$, without overflow; -inf of
        nothing.

        >>> import genesis
        >>> genesis.logsumexp(genesis.tensor([100., 100.]), dim=0)
        tensor(100.6931)
        """
    def long(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.int64."""
    def lstsq(self, **kwargs: Any) -> Any:
        """Refused: PyTorch removed it."""
    def lt(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x < y$.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.lt(genesis.tensor([1., 2.]), 2)
        tensor([ True, False])
        """
    def lt_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `lt`: writes the result into this tensor and returns it."""
    def lu(self, pivot: builtins.bool = ..., get_infos: builtins.bool = ..., out: Tensor | None = ...) -> Any:
        """`linalg.lu_factor`, and with ``get_infos`` 0 or which pivot is zero, for each matrix.

        >>> import genesis
        >>> len(genesis.lu(genesis.eye(2), get_infos=True))
        3
        """
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """`linalg.lu_solve`.

        >>> import genesis
        >>> genesis.lu_solve(genesis.ones(1, 1), *genesis.linalg.lu_factor(genesis.tensor([[2.]])))
        tensor([[0.5000]])
        """
    @property
    def mH(self) -> Tensor:
        """"""
    @property
    def mT(self) -> Tensor:
        """"""
    def map2_(self, x: Tensor, y: Tensor, callable: Any) -> Tensor:
        """Replace each element by what a Python function returns for it and those of two other tensors."""
    def map_(self, tensor: Tensor, callable: Any) -> Tensor:
        """Replace each element by what a Python function returns for it and that of another tensor."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """``input`` with one value wherever the mask is True.

        Raises:
            TypeError: the mask is not bool

        >>> import genesis
        >>> genesis.masked_fill(genesis.ones(2), genesis.tensor([True, False]), 0.0)
        tensor([0., 1.])
        """
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """In-place form of `masked_fill`: writes the result into this tensor and returns it."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """``input`` with the elements where the mask is True replaced, in order, by those of ``source``.

        >>> import genesis
        >>> genesis.masked_scatter(genesis.zeros(3), genesis.tensor([True, False, True]), genesis.tensor([5., 6.]))
        tensor([5., 0., 6.])
        """
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place form of `masked_scatter`: writes the result into this tensor and returns it."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the mask is True, in one dimension.

        >>> import genesis
        >>> genesis.masked_select(genesis.tensor([1., 2.]), genesis.tensor([False, True]))
        tensor([2.])
        """
    def matmul(self, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """Matrix product; ``a @ b``.

        Two vectors give their dot product, a matrix and a vector their product; leading dimensions are batches and
        broadcast.

        Raises:
            RuntimeError: inner sizes, batch sizes or dtypes differ, or an operand is 0-d

        >>> import genesis
        >>> genesis.matmul(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
        tensor([3., 7.])
        """
    def matrix_exp(self) -> Tensor:
        """`linalg.matrix_exp`.

        >>> import genesis
        >>> genesis.matrix_exp(genesis.zeros(1, 1))
        tensor([[1.]])
        """
    def matrix_power(self, n: builtins.int, *, out: Tensor | None = ...) -> Tensor:
        """`linalg.matrix_power`.

        >>> import genesis
        >>> genesis.matrix_power(genesis.tensor([[1., 1.], [0., 1.]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
        """
    def max(self, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: builtins.int | None = ..., keepdims: builtins.bool | None = ..., other: Tensor | None = ...) -> Any:
        """Largest element: of all, along ``dim`` with its indices, or of two tensors.

        ``max(x)`` gives one value; ``max(x, dim)`` a named tuple ``(values, indices)``, the gradient going to that index;
        ``max(x, other)`` is `maximum`.

        Raises:
            IndexError: a dim out of range, or of size 0

        >>> import genesis
        >>> genesis.max(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).indices
        tensor([1, 0])
        """
    def maximum(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The larger of two, nan if either is.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.maximum(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
        tensor([3., 5.])
        """
    def maximum_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `maximum`: writes the result into this tensor and returns it."""
    def mean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Mean over ``dim`` (None: all), $\\frac{1}{n} \\sum_i x_i$; nan of nothing.

        Raises:
            RuntimeError: an integer tensor without ``dtype=``
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.mean(genesis.tensor([1., 2., 6.]))
        tensor(3.)
        """
    def median(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """The middle element, the lower of two: of all, or along ``dim`` with its index; nan if there is one.

        The gradient goes to the element at the index, also where others are equal. Of no floating elements it is nan.

        Raises:
            IndexError: a dim out of range, or of size 0
            RuntimeError: a complex tensor

        >>> import genesis
        >>> genesis.median(genesis.tensor([3., 1., 2., 9.]))
        tensor(2.)
        """
    def min(self, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: builtins.int | None = ..., keepdims: builtins.bool | None = ..., other: Tensor | None = ...) -> Any:
        """Smallest element: of all, along ``dim`` with its indices, or of two tensors; see `max`.

        >>> import genesis
        >>> genesis.min(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).values
        tensor([1., 2.])
        """
    def minimum(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The smaller of two, nan if either is.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.minimum(genesis.tensor([1., 5.]), genesis.tensor([3., 2.]))
        tensor([1., 2.])
        """
    def minimum_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `minimum`: writes the result into this tensor and returns it."""
    def mm(self, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """Product of two matrices.

        >>> import genesis
        >>> genesis.mm(genesis.ones(1, 2), genesis.ones(2, 1))
        tensor([[2.]])
        """
    def mode(self, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """The most frequent element along ``dim``, the smallest if there are several, and the index of its last occurrence.

        Raises:
            IndexError: a dim out of range, or of size 0
            RuntimeError: a complex tensor

        >>> import genesis
        >>> genesis.mode(genesis.tensor([3, 1, 2, 1]))
        mode_result(values=tensor(1), indices=tensor(3))
        """
    def module_load(self, other: Tensor, assign: builtins.bool = ...) -> Tensor:
        """What `Module.load_state_dict` puts in the place of this parameter when it swaps tensors."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Dimensions moved to other places, the rest in order.

        >>> import genesis
        >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
        genesis.Size([3, 4, 2])
        """
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Dimensions moved to other places, the rest in order.

        >>> import genesis
        >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
        genesis.Size([3, 4, 2])
        """
    def msort(self) -> Tensor:
        """Elements in order along dim 0.

        >>> import genesis
        >>> genesis.msort(genesis.tensor([3., 1., 2.]))
        tensor([1., 2., 3.])
        """
    def mtia(self, device: Any = ..., non_blocking: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
        """Refused: there is no such device."""
    def mul(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Product, $x y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.mul(genesis.tensor([1., 2.]), 3)
        tensor([3., 6.])
        """
    def mul_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `mul`: writes the result into this tensor and returns it."""
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Indices drawn with probabilities proportional to the weights in (each row of) ``input``.

        Without replacement by the smallest of exponential times (Efraimidis and Spirakis 2006).

        Raises:
            ValueError: negative or infinite weights, or a row of zeros
            RuntimeError: more samples than weights that are not zero

        >>> import genesis
        >>> genesis.multinomial(genesis.tensor([0., 1., 0.]), 2, replacement=True)
        tensor([1, 1])
        """
    def multiply(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Product, $x y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.mul(genesis.tensor([1., 2.]), 3)
        tensor([3., 6.])
        """
    def multiply_(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """In-place form of `mul`: writes the result into this tensor and returns it."""
    def mv(self, vec: Tensor, *, out: Tensor | None = ...) -> Tensor:
        """Product of a matrix and a vector.

        >>> import genesis
        >>> genesis.mv(genesis.ones(1, 2), genesis.ones(2))
        tensor([2.])
        """
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Logarithm of the multivariate gamma function,
        $\\frac{p (p - 1)}{4} \\ln \\pi + \\sum_{j=1}^p \\ln \\Gamma(x + (1 - j) / 2)$.

        Raises:
            ValueError: ``p`` is below 1

        >>> import genesis
        >>> genesis.mvlgamma(genesis.tensor([2.0, 3.0]), 2)
        tensor([0.4516, 1.5502])
        """
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """In-place form of `mvlgamma`: writes the result into this tensor and returns it."""
    @property
    def name(self) -> Tensor:
        """None: tensors have no names."""
    def nan_to_num(self, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
        """Replace nan, inf and -inf by numbers: ``nan``, and the largest and smallest of the dtype unless given.

        >>> import genesis
        >>> genesis.nan_to_num(genesis.tensor([float("nan"), 1.]), nan=5.0)
        tensor([5., 1.])
        """
    def nan_to_num_(self, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
        """In-place form of `nan_to_num`: writes the result into this tensor and returns it."""
    def nanmean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
        """Mean over ``dim`` (None: all) of the elements that are not nan.

        >>> import genesis
        >>> genesis.nanmean(genesis.tensor([1., float("nan"), 2.]))
        tensor(1.5000)
        """
    def nanmedian(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """`median` of the elements that are not nan; nan where all are.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.nanmedian(genesis.tensor([1., float("nan"), 3.]))
        tensor(1.)
        """
    def nanquantile(self, q: Any, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
        """`quantile` of the elements that are not nan; nan where all are.

        Raises:
            RuntimeError: q outside [0, 1], or a tensor that is not floating
            ValueError: an unknown interpolation

        >>> import genesis
        >>> genesis.nanquantile(genesis.tensor([1., float("nan"), 3.]), 0.5)
        tensor(2.)
        """
    def nansum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Sum over ``dim`` (None: all) with nan counted as zero.

        >>> import genesis
        >>> genesis.nansum(genesis.tensor([1., float("nan"), 2.]))
        tensor(3.)
        """
    def narrow(self, dim: builtins.int = ..., start: builtins.int = ..., length: builtins.int = ..., *, axis: Any = ...) -> Tensor:
        """The part of ``length`` slices from ``start`` along ``dim``, as a view.

        Raises:
            IndexError: the start is out of range
            RuntimeError: there are not so many slices from there

        >>> import genesis
        >>> genesis.narrow(genesis.arange(5), 0, 1, 3)
        tensor([1, 2, 3])
        """
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """`narrow`, as a copy.

        >>> import genesis
        >>> genesis.narrow_copy(genesis.arange(4), 0, 1, 2)
        tensor([1, 2])
        """
    def ndimension(self) -> builtins.int: ...
    def ne(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\ne y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.ne(genesis.tensor([1., 2.]), 2)
        tensor([ True, False])
        """
    def ne_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `ne`: writes the result into this tensor and returns it."""
    def neg(self, *, out: Tensor | None = ...) -> Tensor:
        """Negation, $-x$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.neg(genesis.tensor([1., -2.]))
        tensor([-1.,  2.])
        """
    def neg_(self) -> Tensor:
        """In-place form of `neg`: writes the result into this tensor and returns it."""
    def negative(self, *, out: Tensor | None = ...) -> Tensor:
        """Negation, $-x$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.neg(genesis.tensor([1., -2.]))
        tensor([-1.,  2.])
        """
    def negative_(self) -> Tensor:
        """In-place form of `neg`: writes the result into this tensor and returns it."""
    def new(self, *args: Any, device: Any = ...) -> Tensor:
        """A tensor of this one's dtype, of sizes or of data."""
    def new_empty(self, *shape: Any, size: Any = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """A tensor of whatever the memory holds, in this one's dtype and place."""
    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Tensor:
        """`new_empty` with chosen steps in memory."""
    def new_full(self, size: Any, fill_value: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
        """A tensor of one value, in this one's dtype and place."""
    def new_ones(self, *shape: Any, size: Any = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """A tensor of ones, in this one's dtype and place."""
    def new_tensor(self, data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: Any = ...) -> Tensor:
        """`tensor` in this one's dtype and place."""
    def new_zeros(self, *shape: Any, size: Any = ..., dtype: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: builtins.bool = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """A tensor of zeros, in this one's dtype and place."""
    def nextafter(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """The next number after $x$ towards $y$.

        Element by element, on tensors that broadcast together; floating dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.nextafter(genesis.tensor([1.]), genesis.tensor([2.]))
        tensor([1.0000])
        """
    def nextafter_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `nextafter`: writes the result into this tensor and returns it."""
    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

        >>> import genesis
        >>> genesis.nonzero(genesis.tensor([0., 3.]))
        tensor([[1]])
        """
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
        """`nonzero` with a fixed number of rows: cut off, or filled up.

        >>> import genesis
        >>> genesis.nonzero_static(genesis.tensor([0, 1, 1]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
        """
    def norm(self, p: builtins.float | builtins.str | None = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., dtype: Any = ..., *, out: Tensor | None = ...) -> Tensor:
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
    def normal_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with normal numbers of a mean and standard deviation; of complex ones each part has half of the variance."""
    def not_equal(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Whether $x \\ne y$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.ne(genesis.tensor([1., 2.]), 2)
        tensor([ True, False])
        """
    def not_equal_(self, other: Any) -> Tensor:
        """In-place form of `ne`: writes the result into this tensor and returns it."""
    def orgqr(self, input2: Tensor) -> Tensor:
        """`linalg.householder_product`.

        >>> import genesis
        >>> genesis.orgqr(*genesis.geqrf(genesis.eye(1))).abs()
        tensor([[1.]])
        """
    def ormqr(self, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
        """A matrix times the whole product Q of reflections: $QX$, or $XQ$ for ``left=False``, with ``transpose`` of
        $Q^H$.

        >>> import genesis
        >>> a = genesis.tensor([[3., 1.], [4., 2.]])
        >>> genesis.ormqr(*genesis.geqrf(a), a, transpose=True).abs()
        tensor([[5.0000, 2.2000],
                [0.0000, 0.4000]])
        """
    def outer(self, vec2: Tensor) -> Tensor:
        """Outer product of two vectors, $x_i y_j$.

        >>> import genesis
        >>> genesis.outer(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
        tensor([[3., 4.],
                [6., 8.]])
        """
    def permute(self, *shape: Any, **named: Any) -> Tensor:
        """The dimensions in another order, as a view.

        Raises:
            RuntimeError: ``dims`` does not name each dimension once

        >>> import genesis
        >>> genesis.permute(genesis.zeros(2, 3, 4), (2, 0, 1)).shape
        genesis.Size([4, 2, 3])
        """
    def pin_memory(self, device: Any = ...) -> Tensor:
        """This tensor in memory that a GPU copies from while the program goes on; itself where there is no GPU."""
    def pinverse(self, rcond: builtins.float = ...) -> Tensor:
        """`linalg.pinv`.

        >>> import genesis
        >>> genesis.pinverse(genesis.eye(1))
        tensor([[1.]])
        """
    def polygamma(self, n: builtins.int) -> Tensor:
        """The derivative of order ``n`` of `digamma`, see `genesis.polygamma`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """In-place form of `polygamma`: writes the result into this tensor and returns it."""
    def polygamma_of(self, n: builtins.int, *, out: Tensor | None = ...) -> Tensor:
        """The derivative of order $n \\ge 1$ of `digamma`, with the tensor first.

        >>> import genesis
        >>> genesis.ops.pointwise.special.polygamma_of(genesis.tensor([1.0, 2.0]), 1)
        tensor([1.6449, 0.6449])
        """
    def positive(self) -> Tensor:
        """The same tensor.

        Raises:
            RuntimeError: of bool

        >>> import genesis
        >>> +genesis.tensor([1., -2.])
        tensor([ 1., -2.])
        """
    def pow(self, exponent: Any, *, out: Tensor | None = ...) -> Tensor:
        """Power, $x^y$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.pow(genesis.tensor([1., 2., 3.]), 2)
        tensor([1., 4., 9.])
        """
    def pow_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `pow`: writes the result into this tensor and returns it."""
    def prelu(self, weight: Tensor) -> Tensor:
        """`leaky_relu` with learned slopes, one for all elements or one per channel (dim 1).

        Raises:
            RuntimeError: another number of weights

        >>> import genesis
        >>> genesis.prelu(genesis.tensor([-2., 2.]), genesis.tensor([0.5]))
        tensor([-1.,  2.])
        """
    def prod(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Product over ``dim`` (None: all), $\\prod_i x_i$; 1 of nothing.

        Integers and bool are multiplied as int64. The gradient is right where elements are zero, too.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.prod(genesis.tensor([2., 3., 4.]))
        tensor(24.)
        """
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """``input`` with the elements at places of the flattened tensor replaced by those of ``source``, or added to.

        Raises:
            IndexError: a place out of range
            RuntimeError: ``index`` and ``source`` have not equally many elements

        >>> import genesis
        >>> genesis.put(genesis.zeros(2, 2), genesis.tensor([0, 3]), genesis.tensor([1., 2.]))
        tensor([[1., 0.],
                [0., 2.]])
        """
    def put_(self, index: Any, source: Any, accumulate: Any = ...) -> Tensor:
        """In-place form of `put_elements`: writes the result into this tensor and returns it."""
    def qr(self, some: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
        """`linalg.qr`, "reduced" or "complete".

        >>> import genesis
        >>> genesis.qr(genesis.eye(2)).R.abs()
        tensor([[1., 0.],
                [0., 1.]])
        """
    def quantile(self, q: Any, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
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
    def rad2deg(self, *, out: Tensor | None = ...) -> Tensor:
        """Radians to degrees.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.rad2deg(genesis.tensor([0., 1.]))
        tensor([ 0.0000, 57.2958])
        """
    def rad2deg_(self) -> Tensor:
        """In-place form of `rad2deg`: writes the result into this tensor and returns it."""
    def random_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with integers in [low, high), or of the dtype's whole range."""
    def ravel(self) -> Tensor:
        """The elements in one dimension.

        >>> import genesis
        >>> genesis.ravel(genesis.zeros(2, 3)).shape
        genesis.Size([6])
        """
    @property
    def real(self) -> Tensor:
        """"""
    def reciprocal(self, *, out: Tensor | None = ...) -> Tensor:
        """Reciprocal, $1 / x$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.reciprocal(genesis.tensor([1., -2.]))
        tensor([ 1.0000, -0.5000])
        """
    def reciprocal_(self) -> Tensor:
        """In-place form of `reciprocal`: writes the result into this tensor and returns it."""
    def record_stream(self, stream: Any) -> None:
        """Keep the memory until a stream of the device has done what it was told until now, also where nobody has the
        tensor any more.
        """
    def reinforce(self, **kwargs: Any) -> Any:
        """Refused: PyTorch removed it."""
    def relu(self, *, out: Tensor | None = ...) -> Tensor:
        """Rectifier, $\\max(x, 0)$, with slope 0 at 0.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.relu(genesis.tensor([-1., 2.]))
        tensor([0., 2.])
        """
    def relu_(self) -> Tensor:
        """In-place form of `relu`: writes the result into this tensor and returns it."""
    def remainder(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """Remainder with the sign of the divisor, $x - y \\lfloor x / y \\rfloor$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.remainder(genesis.tensor([7., -7.]), 3)
        tensor([1., 2.])
        """
    def remainder_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `remainder`: writes the result into this tensor and returns it."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """``input`` with the slices along ``dim`` whose $p$-norm is above ``maxnorm`` scaled down to it.

        Raises:
            IndexError: a dim out of range
            RuntimeError: fewer than two dimensions, or a ``p`` or ``maxnorm`` that is not positive

        >>> import genesis
        >>> genesis.renorm(genesis.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1.)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
        """
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """In-place form of `renorm`: writes the result into this tensor and returns it."""
    def repeat(self, *repeats: Any, **named: Any) -> Tensor:
        """The tensor repeated like tiles, one count for each dimension.

        >>> import genesis
        >>> genesis.tensor([1., 2.]).repeat(2, 1).shape
        genesis.Size([2, 2])
        """
    def repeat_interleave(self, repeats: Any = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
        """Each slice repeated in place, the same or its own number of times.

        With one argument the indices that so many repeats give. ``output_size`` is found, if it is given or not.

        >>> import genesis
        >>> genesis.repeat_interleave(genesis.tensor([1., 2.]), 2)
        tensor([1., 1., 2., 2.])
        """
    def reshape(self, *shape: Any, **named: Any) -> Tensor:
        """The same elements, in row-major order, in another shape; one size may be -1. A view where memory allows.

        Raises:
            RuntimeError: the number of elements differs

        >>> import genesis
        >>> genesis.reshape(genesis.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
        """
    def reshape_as(self, other: Any) -> Any: ...
    def resize(self, *size: Any) -> Any: ...
    def resize_(self, *size: Any, memory_format: Any = ..., **named: Any) -> Tensor:
        """Another shape: the elements in their order, cut off or followed by whatever the memory holds.

        Raises:
            RuntimeError: the tensor requires grad; a size below 0
        """
    def resize_as(self, tensor: Any) -> Any: ...
    def resize_as_(self, the_template: Tensor, *, memory_format: Any = ...) -> Tensor:
        """`resize_` to the shape of another tensor."""
    def resize_as_sparse_(self) -> Tensor:
        """Refused: only a sparse tensor has it."""
    def resolve_conj(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor itself: its conjugate is computed at once."""
    def resolve_neg(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor itself: its negative is computed at once."""
    def roll(self, shifts: Any, dims: Any = ...) -> Tensor:
        """Slices moved on by ``shifts`` along ``dims`` (None: the flattened tensor), the last ones coming first.

        >>> import genesis
        >>> genesis.roll(genesis.arange(4), 1)
        tensor([3, 0, 1, 2])
        """
    def rot90(self, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
        """Turned by ``k`` right angles in the plane of two dimensions.

        >>> import genesis
        >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
        """
    def round(self, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
        """Round to ``decimals`` digits, halves to the even neighbour (IEEE 754).

        Integers are returned as they are. The derivative is zero.

        Raises:
            NotImplementedError: ``decimals`` of integers

        >>> import genesis
        >>> genesis.round(genesis.tensor([0.5, 1.5, 2.25]), decimals=0)
        tensor([0., 2., 2.])
        """
    def round_(self, *, decimals: builtins.int = ...) -> Tensor:
        """In-place form of `round`: writes the result into this tensor and returns it."""
    def row_indices(self) -> Any:
        """Refused: only a compressed sparse matrix has it."""
    def rsqrt(self, *, out: Tensor | None = ...) -> Tensor:
        """Reciprocal square root, $1 / \\sqrt x$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.rsqrt(genesis.tensor([4., 16.]))
        tensor([0.5000, 0.2500])
        """
    def rsqrt_(self) -> Tensor:
        """In-place form of `rsqrt`: writes the result into this tensor and returns it."""
    def scatter(self, dim: builtins.int, index: Tensor, src: Any = ..., *, value: Any = ..., reduce: builtins.str | None = ...) -> Tensor:
        """``input`` with the elements named along ``dim`` replaced by those of ``src`` (or by one value).

        Args:
            reduce: "add" or "multiply" to combine instead of replacing

        Raises:
            IndexError: an index out of range

        >>> import genesis
        >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([2]), genesis.tensor([5.]))
        tensor([0., 0., 5.])
        """
    def scatter_(self, dim: builtins.int, index: Tensor, src: Any = ..., *, value: Any = ..., reduce: builtins.str | None = ...) -> Tensor:
        """In-place form of `scatter`: writes the result into this tensor and returns it."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """``input`` with elements of ``src`` added at the places named along ``dim``.

        >>> import genesis
        >>> genesis.scatter_add(genesis.zeros(3), 0, genesis.tensor([2, 2]), genesis.tensor([5., 1.]))
        tensor([0., 0., 6.])
        """
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """In-place form of `scatter_add`: writes the result into this tensor and returns it."""
    def scatter_reduce(self, dim: builtins.int, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Elements of ``src`` combined at the places named along ``dim``: "sum", "prod", "mean", "amax" ("max") or "amin".

        Of bool tensors "sum" is *or* and "prod" is *and*.

        >>> import genesis
        >>> genesis.scatter_reduce(genesis.zeros(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "mean", include_self=False)
        tensor([0., 4.])
        """
    def scatter_reduce_(self, dim: builtins.int, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """In-place form of `scatter_reduce`: writes the result into this tensor and returns it."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at ``index`` along ``dim``, without that dimension; a view.

        Raises:
            IndexError: the index is out of range

        >>> import genesis
        >>> genesis.select(genesis.tensor([[1., 2.], [3., 4.]]), 1, 0)
        tensor([1., 3.])
        """
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """``input`` with the slice at ``index`` along ``dim`` replaced: what `select` is the inverse of.

        Raises:
            IndexError: the index is out of range
            RuntimeError: ``src`` has not the shape of the slice

        >>> import genesis
        >>> genesis.select_scatter(genesis.zeros(2, 2), genesis.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])
        """
    def set_(self, source: Any = ..., storage_offset: builtins.int = ..., size: Any = ..., stride: Any = ...) -> Tensor:
        """See another tensor's or storage's memory from now on; nothing is copied, and history is not kept.

        Raises:
            RuntimeError: the tensor requires grad, is a view, or the memory is too small
        """
    def sgn(self, *, out: Tensor | None = ...) -> Tensor:
        """Sign, of complex numbers $x / |x|$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sgn(genesis.tensor([3., 0., -2.]))
        tensor([ 1.,  0., -1.])
        """
    def sgn_(self) -> Tensor:
        """In-place form of `sgn`: writes the result into this tensor and returns it."""
    def share_memory_(self) -> Tensor:
        """Move this tensor's memory to where processes that are forked from now on see it; returns it."""
    def short(self, memory_format: Any = ...) -> Tensor:
        """This tensor as genesis.int16."""
    def sigmoid(self, *, out: Tensor | None = ...) -> Tensor:
        """Logistic function, $1 / (1 + e^{-x})$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sigmoid(genesis.tensor([0., 1.]))
        tensor([0.5000, 0.7311])
        """
    def sigmoid_(self) -> Tensor:
        """In-place form of `sigmoid`: writes the result into this tensor and returns it."""
    def sign(self, *, out: Tensor | None = ...) -> Tensor:
        """Sign: -1, 0 or 1.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sign(genesis.tensor([3., 0., -2.]))
        tensor([ 1.,  0., -1.])
        """
    def sign_(self) -> Tensor:
        """In-place form of `sign`: writes the result into this tensor and returns it."""
    def signbit(self, *, out: Tensor | None = ...) -> Tensor:
        """Whether the sign bit is set.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; the result is bool. Not differentiable: the result never requires grad.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.signbit(genesis.tensor([1., -1.]))
        tensor([False,  True])
        """
    def sin(self, *, out: Tensor | None = ...) -> Tensor:
        """Sine, of radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sin(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.8415])
        """
    def sin_(self) -> Tensor:
        """In-place form of `sin`: writes the result into this tensor and returns it."""
    def sinc(self, *, out: Tensor | None = ...) -> Tensor:
        """Normalised sinc, $\\sin(\\pi x) / (\\pi x)$.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sinc(genesis.tensor([0., 0.5]))
        tensor([1.0000, 0.6366])
        """
    def sinc_(self) -> Tensor:
        """In-place form of `sinc`: writes the result into this tensor and returns it."""
    def sinh(self, *, out: Tensor | None = ...) -> Tensor:
        """Hyperbolic sine.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sinh(genesis.tensor([0., 1.]))
        tensor([0.0000, 1.1752])
        """
    def sinh_(self) -> Tensor:
        """In-place form of `sinh`: writes the result into this tensor and returns it."""
    def slice_scatter(self, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
        """``input`` with the slices from ``start`` to ``end`` along ``dim`` replaced.

        Raises:
            IndexError: a dim out of range
            RuntimeError: ``src`` has not the shape of these slices

        >>> import genesis
        >>> genesis.slice_scatter(genesis.zeros(4), genesis.ones(2), 0, 1, 4, 2)
        tensor([0., 1., 0., 1.])
        """
    def slogdet(self, *, out: Tensor | None = ...) -> Any:
        """`linalg.slogdet`.

        >>> import genesis
        >>> genesis.slogdet(genesis.eye(2)).logabsdet
        tensor(0.)
        """
    def smm(self, mat: Any) -> Any:
        """The product of a sparse matrix and a dense one, as a sparse tensor."""
    def softmax(self, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
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
    def solve(self, **kwargs: Any) -> Any:
        """Refused: PyTorch removed it."""
    def sort(self, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Any:
        """Elements in order along ``dim`` and the indices they came from, as a named tuple ``(values, indices)``.

        Equals keep their order whether or not ``stable`` is asked for; nan comes last (first when descending).

        Raises:
            IndexError: a dim out of range
            RuntimeError: a complex tensor

        >>> import genesis
        >>> genesis.sort(genesis.tensor([3., 1., 2.])).values
        tensor([1., 2., 3.])
        """
    def sparse_dim(self) -> builtins.int:
        """0: no dimension has coordinates."""
    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the coordinates of a sparse tensor.

        >>> import genesis
        >>> genesis.arange(4.).reshape(2, 2).sparse_mask(genesis.eye(2).to_sparse()).values()
        tensor([0., 3.])
        """
    def sparse_resize_(self) -> Tensor:
        """Refused: only a sparse tensor has it."""
    def sparse_resize_and_clear_(self) -> Tensor:
        """Refused: only a sparse tensor has it."""
    def split(self, split_size: Any, dim: Any = ...) -> Any: ...
    def split_with_sizes(self, split_sizes: Any, dim: Any = ...) -> Any: ...
    def sqrt(self, *, out: Tensor | None = ...) -> Tensor:
        """Square root.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sqrt(genesis.tensor([4., 9.]))
        tensor([2., 3.])
        """
    def sqrt_(self) -> Tensor:
        """In-place form of `sqrt`: writes the result into this tensor and returns it."""
    def square(self, *, out: Tensor | None = ...) -> Tensor:
        """Square, $x^2$; of bools an integer.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.square(genesis.tensor([1., -2.]))
        tensor([1., 4.])
        """
    def square_(self) -> Tensor:
        """In-place form of `square`: writes the result into this tensor and returns it."""
    def squeeze(self, *dim: Any, **named: Any) -> Tensor:
        """Drop dimensions of size 1: all, or those named in ``dim``; a view.

        >>> import genesis
        >>> genesis.squeeze(genesis.zeros(2, 1, 3)).shape
        genesis.Size([2, 3])
        """
    def squeeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `squeeze`: the tensor itself gets the other shape; returns it."""
    def sspaddmm(self, mat1: Any, mat2: Any, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Any:
        """``beta * input + alpha * (mat1 @ mat2)``, sparse, of two sparse matrices and a dense one."""
    def std(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., axis: Any = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
        """Standard deviation, the square root of `var`; its gradient is zero where it is zero.

        >>> import genesis
        >>> genesis.std(genesis.tensor([1., 2., 3., 4.]))
        tensor(1.2910)
        """
    def std_mean(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Any:
        """Standard deviation and mean.

        >>> import genesis
        >>> genesis.std_mean(genesis.tensor([1., 3.]))
        (tensor(1.4142), tensor(2.))
        """
    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
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
    def storage(self) -> Any:
        """The whole memory that this tensor and its views share, as elements of its dtype."""
    def storage_offset(self) -> builtins.int:
        """Where the first element is in the storage, in elements."""
    def storage_type(self) -> Any: ...
    def sub(self, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Difference, $x - alpha y$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sub(genesis.tensor([1., 2.]), 3)
        tensor([-2., -1.])
        """
    def sub_(self, other: Tensor | builtins.complex, *, alpha: Any = ...) -> Tensor:
        """In-place form of `sub`: writes the result into this tensor and returns it."""
    def subtract(self, other: Tensor | builtins.complex, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Difference, $x - alpha y$.

        Element by element, on tensors that broadcast together; floating, complex, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.sub(genesis.tensor([1., 2.]), 3)
        tensor([-2., -1.])
        """
    def subtract_(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """In-place form of `sub`: writes the result into this tensor and returns it."""
    def sum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: Any = ..., out: Tensor | None = ...) -> Tensor:
        """Sum over ``dim`` (None: all), $\\sum_i x_i$.

        Integers and bool are summed as int64; an empty sum is 0.

        Raises:
            IndexError: a dim out of range
            RuntimeError: a dim named twice

        >>> import genesis
        >>> genesis.sum(genesis.tensor([[1., 2.], [3., 4.]]), dim=0)
        tensor([4., 6.])
        """
    def sum_to_size(self, *size: Any, **named: Any) -> Tensor:
        """Sum over the dimensions that broadcasting from ``size`` would add or stretch."""
    def svd(self, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
        """`linalg.svd`, with V in the place of its adjoint, ``(U, S, V)``; without ``compute_uv`` U and V are zeros.

        >>> import genesis
        >>> genesis.svd(genesis.eye(2)).S
        tensor([1., 1.])
        """
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged, as a view.

        >>> import genesis
        >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
        tensor([[1., 3.],
                [2., 4.]])
        """
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `swapaxes`: the tensor itself gets the other shape; returns it."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged, as a view.

        >>> import genesis
        >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
        tensor([[1., 3.],
                [2., 4.]])
        """
    def swapdims_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `swapdims`: the tensor itself gets the other shape; returns it."""
    def symeig(self, **kwargs: Any) -> Any:
        """Refused: PyTorch removed it."""
    def t(self) -> Tensor:
        """The transpose of a matrix, as a view; vectors as they are.

        Raises:
            RuntimeError: more than two dimensions

        >>> import genesis
        >>> genesis.t(genesis.zeros(2, 3)).shape
        genesis.Size([3, 2])
        """
    def t_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `t`: the tensor itself gets the other shape; returns it."""
    def take(self, index: Tensor) -> Tensor:
        """Elements of the flattened tensor, in the shape of ``index``.

        >>> import genesis
        >>> genesis.take(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([0, 3]))
        tensor([1., 4.])
        """
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Elements named along ``dim``, the indices broadcast against the input; of the flattened tensor for None.

        Negative indices count from the end.

        >>> import genesis
        >>> genesis.take_along_dim(genesis.tensor([[3., 1.]]), genesis.tensor([[1, 0]]), 1)
        tensor([[1., 3.]])
        """
    def tan(self, *, out: Tensor | None = ...) -> Tensor:
        """Tangent, of radians.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.tan(genesis.tensor([0., 1.]))
        tensor([0.0000, 1.5574])
        """
    def tan_(self) -> Tensor:
        """In-place form of `tan`: writes the result into this tensor and returns it."""
    def tanh(self, *, out: Tensor | None = ...) -> Tensor:
        """Hyperbolic tangent.

        Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.tanh(genesis.tensor([0., 1.]))
        tensor([0.0000, 0.7616])
        """
    def tanh_(self) -> Tensor:
        """In-place form of `tanh`: writes the result into this tensor and returns it."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Pieces as equal as possible, or cut at the given indices, along ``dim``; views.

        Raises:
            RuntimeError: no sections, or more than ten million

        >>> import genesis
        >>> [len(piece) for piece in genesis.tensor_split(genesis.arange(7), 3)]
        [3, 2, 2]
        """
    def tile(self, *dims: Any, **named: Any) -> Any: ...
    def to(self, *args: Any, dtype: Any = ..., device: Any = ..., non_blocking: builtins.bool = ..., copy: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
        """This tensor in another dtype or on another device; itself when nothing changes.

        ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` and ``to(other)`` are all understood. Differentiable.

        >>> import genesis
        >>> genesis.ones(2).to(genesis.float64).dtype
        genesis.float64
        """
    def to_dense(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor itself, which is dense."""
    def to_sparse(self, sparse_dim: builtins.int | None = ..., *, layout: Any = ..., blocksize: Any = ..., dense_dim: builtins.int | None = ...) -> Any:
        """The elements that are not zero, at their coordinates; of ``sparse_dim`` dimensions the slices that are not, or in
        another layout.
        """
    def to_sparse_bsc(self, blocksize: Any, dense_dim: builtins.int | None = ...) -> Any:
        """The matrix by columns of blocks of this size."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: builtins.int | None = ...) -> Any:
        """The matrix by rows of blocks of this size."""
    def to_sparse_coo(self, sparse_dim: builtins.int | None = ..., *, layout: Any = ..., blocksize: Any = ..., dense_dim: builtins.int | None = ...) -> Any:
        """The elements that are not zero, at their coordinates; of ``sparse_dim`` dimensions the slices that are not, or in
        another layout.
        """
    def to_sparse_csc(self, dense_dim: builtins.int | None = ...) -> Any:
        """The matrix by columns."""
    def to_sparse_csr(self, dense_dim: builtins.int | None = ...) -> Any:
        """The matrix by rows."""
    def topk(self, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> Any:
        """The ``k`` largest (or smallest) elements along ``dim``, always in order, and their indices.

        Which of equal elements are among them is not said.

        Raises:
            RuntimeError: there are fewer than ``k``, or a complex tensor
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.topk(genesis.tensor([1., 5., 3.]), 2).values
        tensor([5., 3.])
        """
    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix.

        Raises:
            RuntimeError: not a matrix

        >>> import genesis
        >>> genesis.trace(genesis.eye(3))
        tensor(3.)
        """
    def transpose(self, *dims: Any, dim0: Any = ..., dim1: Any = ...) -> Tensor:
        """Two integers exchange these dimensions, one sequence reorders all, nothing reverses the order."""
    def transpose_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `transpose`: the tensor itself gets the other shape; returns it."""
    def triangular_solve(self, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
        """The solution of $AX = b$ (with ``transpose``, of $A^T X = b$) for triangles, and a copy of A.

        >>> import genesis
        >>> genesis.triangular_solve(genesis.ones(1, 1), genesis.tensor([[2.]])).solution
        tensor([[0.5000]])
        """
    def tril(self, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
        """Lower triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.

        >>> import genesis
        >>> genesis.tril(genesis.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
        """
    def tril_(self, diagonal: builtins.int = ...) -> Tensor:
        """In-place form of `tril`: writes the result into this tensor and returns it."""
    def triu(self, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
        """Upper triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.

        >>> import genesis
        >>> genesis.triu(genesis.ones(2, 2))
        tensor([[1., 1.],
                [0., 1.]])
        """
    def triu_(self, diagonal: builtins.int = ...) -> Tensor:
        """In-place form of `triu`: writes the result into this tensor and returns it."""
    def true_divide(self, other: Any, *, rounding_mode: builtins.str | None = ..., out: Tensor | None = ...) -> Tensor:
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
    def true_divide_(self, other: Any, *, rounding_mode: Any = ...) -> Tensor:
        """In-place form of `divide`: writes the result into this tensor and returns it."""
    def trunc(self, *, out: Tensor | None = ...) -> Tensor:
        """Integer part of $x$.

        Element by element, on tensors that broadcast together; floating, integer dtypes.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.trunc(genesis.tensor([1.5, -1.5]))
        tensor([ 1., -1.])
        """
    def trunc_(self) -> Tensor:
        """In-place form of `trunc`: writes the result into this tensor and returns it."""
    def type(self, dtype: Any = ..., non_blocking: builtins.bool = ...) -> Any:
        """The name of PyTorch's class of such tensors, ``torch.FloatTensor``; or with an argument (a dtype, such a class or its
        name, which say where, too, or ``Tensor`` for the default dtype) this tensor converted.
        """
    def type_as(self, other: Any) -> Any: ...
    def unbind(self, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """All slices along ``dim``, without that dimension; views.

        >>> import genesis
        >>> genesis.unbind(genesis.tensor([1., 2.]))
        (tensor(1.), tensor(2.))
        """
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Split one dimension into several; one size may be -1.

        >>> import genesis
        >>> genesis.unflatten(genesis.zeros(2, 6), 1, (2, 3)).shape
        genesis.Size([2, 2, 3])
        """
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
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
    def uniform_(self, *args: Any, generator: Any = ..., **kwargs: Any) -> Tensor:
        """Fill with uniform numbers in [from, to); of complex numbers both parts."""
    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, axis: Any = ...) -> Any:
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
    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, axis: Any = ...) -> Any:
        """The elements (or slices along ``dim``) without those that equal the one before, on request with where each went and
        how many there were.

        Not differentiable.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]), return_counts=True)
        (tensor([1, 2, 1]), tensor([2, 1, 1]))
        """
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """`chunk`: what PyTorch does not check is right here.

        >>> import genesis
        >>> genesis.unsafe_chunk(genesis.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
        """
    def unsafe_split(self, split_size: Any, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """`split`: what PyTorch does not check is right here.

        >>> import genesis
        >>> genesis.unsafe_split(genesis.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
        """
    def unsafe_split_with_sizes(self, split_sizes: Any, dim: Any = ...) -> Any: ...
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Add a dimension of size 1 at ``dim``; a view.

        Raises:
            IndexError: a dim out of range

        >>> import genesis
        >>> genesis.unsqueeze(genesis.zeros(3), 0).shape
        genesis.Size([1, 3])
        """
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """In-place form of `unsqueeze`: the tensor itself gets the other shape; returns it."""
    def untyped_storage(self) -> Any:
        """The whole memory that this tensor and its views share, as bytes."""
    def values(self) -> Any:
        """Refused: only a sparse tensor has it."""
    def var(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., axis: Any = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
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
    def var_mean(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Any:
        """Variance and mean.

        >>> import genesis
        >>> genesis.var_mean(genesis.tensor([1., 3.]))
        (tensor(2.), tensor(2.))
        """
    def vdot(self, other: Tensor) -> Tensor:
        """Dot product with the first vector conjugated.

        >>> import genesis
        >>> genesis.vdot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
        tensor(11.)
        """
    def view(self, *shape: Any, dtype: Any = ..., **named: Any) -> Tensor:
        """`reshape` that never copies; ``x.view(2, 3)``.

        Raises:
            RuntimeError: the number of elements differs, or the memory layout needs a copy

        >>> import genesis
        >>> genesis.arange(4).view(2, 2)
        tensor([[0, 1],
                [2, 3]])
        """
    def view_as(self, other: Any) -> Any: ...
    def view_shape(self, shape: Sequence[builtins.int]) -> Tensor:
        """`reshape` that never copies; ``x.view(2, 3)``.

        Raises:
            RuntimeError: the number of elements differs, or the memory layout needs a copy

        >>> import genesis
        >>> genesis.arange(4).view(2, 2)
        tensor([[0, 1],
                [2, 3]])
        """
    @property
    def volatile(self) -> Tensor:
        """False; use ``no_grad``."""
    def vsplit(self, indices_or_sections: Any) -> builtins.tuple[Tensor, ...]:
        """Pieces of one size, or cut at indices, along dim 0 of at least two; views.

        Raises:
            RuntimeError: fewer than two dimensions, or a number of pieces that does not divide the size

        >>> import genesis
        >>> [len(piece) for piece in genesis.vsplit(genesis.ones(4, 3), [1])]
        [1, 3]
        """
    def where(self, condition: Any, other: Any) -> Any: ...
    def xlogy(self, other: Tensor | builtins.complex, *, out: Tensor | None = ...) -> Tensor:
        """$x \\ln y$, zero where $x$ is zero.

        Element by element, on tensors that broadcast together; floating, integer, bool dtypes; integers give the default floating dtype.

        Raises:
            RuntimeError: shapes, dtypes or devices that do not fit

        >>> import genesis
        >>> genesis.xlogy(genesis.tensor([0., 2.]), genesis.tensor([0., 1.]))
        tensor([0., 0.])
        """
    def xlogy_(self, other: Tensor | builtins.complex) -> Tensor:
        """In-place form of `xlogy`: writes the result into this tensor and returns it."""
    def xpu(self, device: Any = ..., non_blocking: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
        """Refused: there is no such device."""
    def zero_(self) -> Tensor:
        """Set all elements to zero."""
