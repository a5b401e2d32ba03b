"""Automatic differentiation in one file, to be read from top to bottom.

A `Variable` is a box for an array. A `Function` takes boxes, computes with what is in them and puts the result in a new
box that remembers which function made it. Following these memories backwards from a result, and asking each function
for its derivative on the way, gives the derivative of the result with respect to everything it was made from.

    x ──> Square ──> a ──> Exp ──> b ──> Square ──> y          y.creator.input is b
    x.grad <── Square.backward <── a.grad <── Exp.backward <── b.grad <── Square.backward <── y.grad

It needs NumPy and nothing else: none of the rest of Genesis. docs/guide/tiny.md says where each idea lives in the full
engine.

>>> A, B, C = Square(), Exp(), Square()
>>> x = Variable(np.array(0.5))
>>> y = C(B(A(x)))
>>> y.backward()
>>> print(y.data, x.grad)
1.648721270700128 3.297442541400256
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Variable:
    """A box for an array, its gradient, and the function that made it (None: you did).

    ``data`` is a NumPy array, which is kept and not copied, or a NumPy number; anything else is a TypeError.

    >>> x = Variable(np.array([1.0, 2.0]))
    >>> y = x * x + 3 * x
    >>> y.backward()
    >>> x.grad  # 2 x + 3
    array([5., 7.])
    """

    __slots__ = ("__dict__", "__weakref__", "creator")  # creator not in __dict__: see `Function.output`
    __array_ufunc__ = None  # so that `array * variable` asks the Variable, not NumPy

    def __init__(self, data: Any) -> None:
        self._version = 0
        self.data = data
        self.grad: Any = None
        self.creator: Function | None = None
        self._left: Any = None  # the gradient that backward() left in .grad, to tell it from one that you put there

    @property
    def data(self) -> Array:
        """The array in the box; it may be replaced."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if not isinstance(data, np.ndarray | np.generic):
            raise TypeError(f"{type(data)} is not supported\n  try: Variable(np.array(...))")
        self._data = np.asarray(data)  # arithmetic on 0-d arrays gives NumPy numbers: back to an array
        self._version += 1

    def set_creator(self, function: Function) -> None:
        """Remember which function made this."""
        self.creator = function

    def cleargrad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def backward(self, retain_grad: bool = True) -> None:
        """Set ``.grad`` of everything this was made from: d (sum of this) / d (that).

        It starts from the gradient that you put into this Variable's ``.grad``, else from ones, and replaces what an
        earlier call left. With ``retain_grad=False`` results on the way show none.

        Raises:
            TypeError: something on the way is not an array of real numbers
        """
        given = self._given_grad()
        grads = {self: np.ones(self.data.shape, _grad_dtype(self)) if given is None else given}
        waits_for = _count_uses(self)
        ready, done = [self], []
        while ready:  # a loop, not recursion: a graph may be deeper than Python's stack
            v = ready.pop()
            g = grads.pop(v)
            done.append((v, g))
            if v.creator is None:
                continue
            for x, gx in zip(v.creator.inputs, _input_grads(v.creator, g), strict=True):
                grads[x] = grads[x] + gx if x in grads else gx
                waits_for[x] -= 1
                if not waits_for[x]:  # every function that used x has answered
                    ready.append(x)
        for v, g in done:  # all or none: an error on the way leaves every .grad as it was
            if v.creator is None or (retain_grad and not (v is self and given is not None)):
                v.grad = v._left = np.array(g)

    def _given_grad(self) -> Array | None:
        if self.creator is None or self.grad is None or self.grad is self._left:
            return None
        g = np.asarray(self.grad, _grad_dtype(self))
        if g.shape != self.data.shape:
            raise ValueError(
                f"backward: .grad has shape {g.shape}, .data has {self.data.shape}\n  try: y.grad = "
                "np.ones_like(y.data)"
            )
        return g

    def __repr__(self) -> str:
        return f"Variable({self.data})"

    def _operand(self, other: Any) -> Any:
        """A Python number takes the dtype of the array it meets, as in NumPy: float32 stays float32."""
        if isinstance(other, int | float) and not isinstance(other, np.generic):
            return Variable(np.asarray(other, np.result_type(self.data, other)))
        return other


class Function:
    """A differentiable function of Variables. Subclasses say how to compute it, with arrays, and how its gradient
    flows.

    >>> class Cube(Function):
    ...     def forward(self, x):
    ...         return x**3
    ...
    ...     def backward(self, gy):
    ...         return 3 * self.input.data**2 * gy
    >>> x = Variable(np.array(2.0))
    >>> Cube()(x).backward()
    >>> print(x.grad)
    12.0
    """

    inputs: tuple[Variable, ...] = ()
    _output: Callable[[], Variable | None] = staticmethod(lambda: None)
    _in_output: dict[str, Any] | None = None

    def __call__(self, *inputs: Any) -> Variable:
        earlier = self._output()
        if earlier is not None and earlier.creator is self:
            earlier.creator = copy.copy(self)  # called again: the earlier result keeps a record of its own
        inputs = tuple(
            x if isinstance(x, Variable) else Variable(np.asarray(x) if isinstance(x, int | float) else x)
            for x in inputs
        )
        out = Variable(self.forward(*[x.data for x in inputs]))
        out.set_creator(self)
        self.inputs, self._versions = inputs, [x._version for x in inputs]
        # weak: out holds this function, and a cycle would wait for the garbage collector
        self._output = weakref.ref(out)
        self._in_output = out.__dict__  # what is in the box, all but its creator
        return out

    @property
    def input(self) -> Variable:
        """The first input of the latest call."""
        return self.inputs[0]

    @property
    def output(self) -> Variable | None:
        """The result of the latest call (None before the first)."""
        out = self._output()
        if out is None and self._in_output is not None:  # nobody holds the box any more: a new one for what was in it
            out = Variable.__new__(Variable)
            out.__dict__ = self._in_output
            out.set_creator(self)
            self._output = weakref.ref(out)
        return out

    def forward(self, *xs: Array) -> Any:
        """The value, from the inputs' arrays."""
        raise NotImplementedError(
            f"{type(self).__name__}.forward is not written\n  try: def forward(self, x): return ..."
        )

    def backward(self, gy: Array) -> Any:
        """The gradient of each input, from the gradient of the output: one array, or a tuple of them."""
        raise NotImplementedError(
            f"{type(self).__name__}.backward is not written\n  try: def backward(self, gy): return ..."
        )


def _count_uses(last: Variable) -> dict[Variable, int]:
    """How often each Variable that ``last`` was made from was used: so many gradients it waits for."""
    uses, to_visit = {last: 0}, [last]
    for v in to_visit:  # grows while it is walked
        for x in v.creator.inputs if v.creator else ():
            if x not in uses:
                to_visit.append(x)
            uses[x] = uses.get(x, 0) + 1
    return uses


def _input_grads(f: Function, g: Array) -> list[Array]:
    """``f.backward(g)``, checked, each gradient in the shape and dtype of its input."""
    name = f"{type(f).__name__}.backward"
    if f._versions != [x._version for x in f.inputs]:
        raise RuntimeError(f"{name}: the data of an input was replaced since forward\n  try: compute the result again")
    grads = f.backward(g)
    grads = grads if isinstance(grads, tuple | list) else (grads,)
    if len(grads) != len(f.inputs) or any(gx is None for gx in grads):
        got = ", ".join(type(gx).__name__ for gx in grads)
        raise ValueError(
            f"{name}: {len(f.inputs)} inputs, and gradients ({got})\n  try: return one array for each input"
        )
    return [_sum_to(name, np.asarray(gx), np.shape(g), x) for gx, x in zip(grads, f.inputs, strict=True)]


def _sum_to(name: str, gx: Array, result: tuple[int, ...], x: Variable) -> Array:
    """Undo broadcasting: where x was repeated to fit the result, each copy had a gradient, and x gets their sum."""
    shape = x.data.shape
    if gx.shape != shape:
        extra = gx.ndim - len(shape)
        if (
            gx.shape != result
            or extra < 0
            or any(n not in (1, m) for n, m in zip(shape, gx.shape[extra:], strict=True))
        ):
            raise ValueError(
                f"{name}: a gradient of shape {gx.shape} for an input of shape {shape}\n  try: return the input's shape"
            )
        gx = gx.sum(tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1)).reshape(shape)
    return gx.astype(_grad_dtype(x), copy=False)


def _grad_dtype(x: Variable) -> np.dtype[Any]:
    if x.data.dtype.kind not in "biuf":
        raise TypeError(f"backward: gradients are of real numbers, not of {x.data.dtype}\n  try: x.data.astype(float)")
    return np.result_type(x.data, 1.0)  # of integers: float64


class Square(Function):  # x^2
    def forward(self, x: Array) -> Any:
        return x**2

    def backward(self, gy: Array) -> Any:
        return 2 * gy * self.input.data  # gy first: it is never an integer, so nothing overflows


class Exp(Function):  # e^x
    def forward(self, x: Array) -> Any:
        return np.exp(x)

    def backward(self, gy: Array) -> Any:
        return gy * np.exp(self.input.data)


class Neg(Function):  # -x
    def forward(self, x: Array) -> Any:
        return -x

    def backward(self, gy: Array) -> Any:
        return -gy


class Add(Function):  # x + y
    def forward(self, x: Array, y: Array) -> Any:
        return x + y

    def backward(self, gy: Array) -> Any:
        return gy, gy


class Sub(Function):  # x - y
    def forward(self, x: Array, y: Array) -> Any:
        return x - y

    def backward(self, gy: Array) -> Any:
        return gy, -gy


class Mul(Function):  # x y
    def forward(self, x: Array, y: Array) -> Any:
        return x * y

    def backward(self, gy: Array) -> Any:
        x, y = self.inputs
        return gy * y.data, gy * x.data


class Div(Function):  # x / y
    def forward(self, x: Array, y: Array) -> Any:
        return x / y

    def backward(self, gy: Array) -> Any:
        x, y = self.inputs
        return gy / y.data, -gy / y.data * (x.data / y.data)


class Pow(Function):  # x^n, where n is a number
    def __init__(self, n: float) -> None:
        if not isinstance(n, int | float | np.integer | np.floating):
            raise TypeError(f"Pow: the exponent must be a number, not {type(n).__name__}\n  try: x ** 2")
        self.n = n

    def forward(self, x: Array) -> Any:
        return x**self.n

    def backward(self, gy: Array) -> Any:
        if self.n == 0:  # 0 * x^-1 is not a number at x = 0
            return np.zeros_like(gy)
        return gy * self.n * (1.0 * self.input.data) ** (self.n - 1)  # 1.0: integers have no negative powers


Variable.__neg__ = lambda x: Neg()(x)
Variable.__add__ = lambda x, y: Add()(x, x._operand(y))
Variable.__radd__ = lambda x, y: Add()(x._operand(y), x)
Variable.__sub__ = lambda x, y: Sub()(x, x._operand(y))
Variable.__rsub__ = lambda x, y: Sub()(x._operand(y), x)
Variable.__mul__ = lambda x, y: Mul()(x, x._operand(y))
Variable.__rmul__ = lambda x, y: Mul()(x._operand(y), x)
Variable.__truediv__ = lambda x, y: Div()(x, x._operand(y))
Variable.__rtruediv__ = lambda x, y: Div()(x._operand(y), x)
Variable.__pow__ = lambda x, n: Pow(n)(x)


def square(x: Any) -> Variable:
    """x^2, for example ``square(Variable(np.array(3.0)))``."""
    return Square()(x)


def exp(x: Any) -> Variable:
    """e^x, for example ``exp(Variable(np.array(0.0)))``."""
    return Exp()(x)


def numerical_diff(f: Callable[[Variable], Variable], x: Variable, eps: float = 1e-4) -> Array:
    """The derivative of the sum of ``f(x)`` without `backward`: (f(x + eps) - f(x - eps)) / (2 eps), one element at a
    time.

    It calls ``f`` twice for each element, and its error is of the order of eps^2: good for checking gradients.

    >>> print(numerical_diff(square, Variable(np.array(2.0))))
    4.000000000004
    """
    grad = np.zeros(x.data.shape)
    for index in np.ndindex(x.data.shape):
        below, above = np.array(x.data, float), np.array(x.data, float)
        below[index] -= eps
        above[index] += eps
        grad[index] = np.sum((f(Variable(above)).data - f(Variable(below)).data) / (2 * eps))
    return grad
