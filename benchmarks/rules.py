"""Differentiation rules that are right: what `genesis.autograd.verify` must pass, and what `mutations.py` seeds bugs
into.

Each is a `Function` as users write it, with the arguments to try it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import genesis
from genesis import Function


@dataclass(frozen=True, slots=True)
class Good:
    """A right rule and its arguments."""

    rule: type[Function]
    make: Callable[[], tuple[Any, ...]]

    @property
    def name(self) -> str:
        return self.rule.__name__


RULES: list[Good] = []


def t(*shape: int, low: float = -2.0, high: float = 2.0, kind: str = "f") -> Any:
    """Float64 values, or complex128 ones, that are the same in every run and stay away from zero and from ties."""
    rng = np.random.Generator(np.random.Philox(sum(shape) + 7 * len(shape) + round(10 * low) + 1000))
    count = int(np.prod(shape))
    spread = lambda: rng.permutation(
        low + (high - low) * (np.arange(count) + rng.uniform(0.3, 0.7, count)) / max(count, 1)
    )  # noqa: E731
    values = spread() + 1j * spread() if kind == "c" else spread()
    return genesis.from_numpy(np.ascontiguousarray(values.reshape(shape)))


def positive(*shape: int) -> Any:
    return t(*shape, low=0.5, high=2.0)


def rule(*makers: Callable[[], Any]) -> Callable[[type[Function]], type[Function]]:
    """Enter a rule: one maker for each argument."""

    def enter(cls: type[Function]) -> type[Function]:
        RULES.append(Good(cls, lambda: tuple(m() for m in makers)))
        return cls

    return enter


# ---- one tensor, element by element


def elementwise(
    name: str,
    forward: Callable[[Any], Any],
    factor: Callable[[Any, Any], Any],
    make: Callable[[], Any],
    save: str = "x",
) -> None:
    """``y = f(x)`` with ``gx = g * factor(x, y)``; saves the input or the output."""

    def run(ctx: Any, x: Any) -> Any:
        y = forward(x)
        ctx.save_for_backward(x if save == "x" else y)
        return y

    def back(ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        return g * factor(v, v)

    cls = type(name, (Function,), {"forward": staticmethod(run), "backward": staticmethod(back)})
    RULES.append(Good(cls, lambda: (make(),)))


elementwise("Square", lambda x: x * x, lambda x, _: 2 * x, lambda: t(4, 3))
elementwise("Cube", lambda x: x**3, lambda x, _: 3 * x * x, lambda: t(5))
elementwise("Sine", lambda x: x.sin(), lambda x, _: x.cos(), lambda: t(3, 4))
elementwise("Exp", lambda x: x.exp(), lambda _, y: y, lambda: t(4, 4), "y")
elementwise("Log", lambda x: x.log(), lambda x, _: 1 / x, lambda: positive(3, 5))
elementwise("Reciprocal", lambda x: 1 / x, lambda _, y: -y * y, lambda: t(3, 3), "y")
elementwise("Sqrt", lambda x: x.sqrt(), lambda _, y: 0.5 / y, lambda: positive(6), "y")
elementwise("Tanh", lambda x: x.tanh(), lambda _, y: 1 - y * y, lambda: t(4, 3), "y")
elementwise("Sigmoid", lambda x: x.sigmoid(), lambda _, y: y * (1 - y), lambda: t(3, 3), "y")
elementwise("Softplus", lambda x: (1 + x.exp()).log(), lambda x, _: x.sigmoid(), lambda: t(3, 4))
elementwise("ReLU", lambda x: x.clamp(0), lambda x, _: (x > 0).to(x.dtype), lambda: t(4, 5))
elementwise("Swish", lambda x: x * x.sigmoid(), lambda x, _: x.sigmoid() * (1 + x * (1 - x.sigmoid())), lambda: t(2, 6))
elementwise(
    "LeakyReLU",
    lambda x: genesis.where(x > 0, x, 0.1 * x),
    lambda x, _: genesis.where(x > 0, 1.0, 0.1).to(x.dtype),
    lambda: t(5, 3),
)
elementwise("Gaussian", lambda x: (-x * x).exp(), lambda x, _: -2 * x * (-x * x).exp(), lambda: t(4, 3))
elementwise("HardClip", lambda x: x.clamp(-1, 1), lambda x, _: ((x > -1) & (x < 1)).to(x.dtype), lambda: t(4, 4))


@rule(lambda: t(3, 4), lambda: 3)
class Power(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


@rule(lambda: t(3, 3))
class NumpySine(Function):
    """Computed outside Genesis, forward and backward in operations of it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return genesis.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


@rule(lambda: t(2, 3))
class DoubleInplace(Function):
    """Writes to its input and returns it."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g


# ---- two tensors


@rule(lambda: t(3, 4), lambda: t(3, 4, low=-1.9))
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


@rule(lambda: t(2, 5), lambda: positive(2, 5))
class Divide(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, -g * a / (b * b)


@rule(lambda: t(4, 3), lambda: t(3))
class AddBias(Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(0)


@rule(lambda: t(4, 3), lambda: t(4, 1))
class ScaleRows(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, (g * x).sum(1, keepdim=True)


@rule(lambda: t(5), lambda: t(5, low=-1.7))
class Dot(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a * b).sum()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


@rule(lambda: t(3), lambda: t(4))
class Outer(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.unsqueeze(1) * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b, g.t() @ a


@rule(lambda: t(3, 4), lambda: t(4, 5))
class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.t(), a.t() @ g


@rule(lambda: t(3, 3), lambda: t(3, 3, low=-1.8))
class SquareMatMul(MatMul):
    pass


@rule(lambda: t(2, 3, 4), lambda: t(2, 4, 2))
class BatchMatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.transpose(1, 2), a.transpose(1, 2) @ g


@rule(lambda: t(5, 3), lambda: t(4, 3), lambda: t(4))
class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        out = x @ weight.t()
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight, g.t() @ x, g.sum(0)


@rule(lambda: t(4, 3), lambda: t(5, 3), lambda: None)
class LinearWithoutBias(Linear):
    @staticmethod
    def backward(ctx, g):
        return (*Linear.backward(ctx, g)[:2], None)


@rule(lambda: t(4, 3), lambda: t(4, 3, low=-1.6))
class MaximumOf(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return genesis.maximum(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * (a > b).to(g.dtype), g * (a <= b).to(g.dtype)


@rule(lambda: t(3, 4), lambda: t(3, 4, low=-1.5), lambda: 0.3)
class Lerp(Function):
    @staticmethod
    def forward(ctx, a, b, weight):
        ctx.weight = weight
        return a + weight * (b - a)

    @staticmethod
    def backward(ctx, g):
        return g * (1 - ctx.weight), g * ctx.weight, None


# ---- reductions


@rule(lambda: t(4, 3))
class SumAll(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.size)


@rule(lambda: t(4, 3))
class MeanRows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape
        return x.mean(1)

    @staticmethod
    def backward(ctx, g):
        return (g / ctx.size[1]).unsqueeze(1).expand(ctx.size)


@rule(lambda: t(3, 5))
class SumOfSquares(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@rule(lambda: t(3, 4))
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.logsumexp(1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g.unsqueeze(1) * (x - y.unsqueeze(1)).exp()


@rule(lambda: t(7))
class Norm(Function):
    @staticmethod
    def forward(ctx, x):
        y = (x * x).sum().sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x / y


@rule(lambda: t(3, 4))
class RowMax(Function):
    @staticmethod
    def forward(ctx, x):
        values, index = x.max(1, keepdim=True)
        ctx.save_for_backward(index)
        ctx.size = x.shape
        return values

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return genesis.zeros(ctx.size, dtype=g.dtype).scatter(1, index, g)


@rule(lambda: t(2, 6))
class CumulativeSum(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(1).cumsum(1).flip(1)


# ---- normalisation and losses


@rule(lambda: t(3, 4))
class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(1, keepdim=True))


@rule(lambda: t(4, 3))
class LogSoftmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.log_softmax(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g - y.exp() * g.sum(1, keepdim=True)


def normalised(x: Any) -> tuple[Any, Any]:
    centred = x - x.mean(-1, keepdim=True)
    scale = ((centred * centred).mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / scale, scale


@rule(lambda: t(4, 6), lambda: positive(6), lambda: t(6))
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return normalised(x)[0] * weight + bias

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        unit, scale = normalised(x)
        h = g * weight
        gx = (h - h.mean(-1, keepdim=True) - unit * (h * unit).mean(-1, keepdim=True)) / scale
        return gx, (g * unit).sum(0), g.sum(0)


@rule(lambda: t(4, 5), lambda: positive(5))
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x / ((x * x).mean(-1, keepdim=True) + 1e-6).sqrt() * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        scale = ((x * x).mean(-1, keepdim=True) + 1e-6).sqrt()
        unit, h = x / scale, g * weight
        return (h - unit * (h * unit).mean(-1, keepdim=True)) / scale, (g * unit).sum(0)


@rule(lambda: t(5, 3), lambda: t(5, 3, low=-1.4))
class MeanSquaredError(Function):
    @staticmethod
    def forward(ctx, output, target):
        ctx.save_for_backward(output, target)
        return ((output - target) ** 2).mean()

    @staticmethod
    def backward(ctx, g):
        output, target = ctx.saved_tensors
        gx = 2 * g * (output - target) / output.numel()
        return gx, -gx


@rule(lambda: t(4, 3), lambda: genesis.tensor([0, 2, 1, 2]))
class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return -logits.log_softmax(1).gather(1, target.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, g):
        logits, target = ctx.saved_tensors
        index = target.unsqueeze(1)
        hot = genesis.zeros(logits.shape, dtype=logits.dtype).scatter(
            1, index, genesis.ones(index.shape, dtype=logits.dtype)
        )
        return g * (logits.softmax(1) - hot) / len(target), None


# ---- shapes and indices


@rule(lambda: t(3, 4))
class Transpose(Function):
    @staticmethod
    def forward(ctx, x):
        return x.t()

    @staticmethod
    def backward(ctx, g):
        return g.t()


@rule(lambda: t(3, 4))
class Flip(Function):
    @staticmethod
    def forward(ctx, x):
        return x.flip(1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(1)


@rule(lambda: t(5, 3), lambda: genesis.tensor([0, 4, 4, 2]))
class Rows(Function):
    """Indexing, with a row taken twice."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.size = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return genesis.zeros(ctx.size, dtype=g.dtype).index_add(0, index, g), None


@rule(lambda: t(4, 3), lambda: t(2, 3))
class Concatenate(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.split = a.shape[0]
        return genesis.cat([a, b])

    @staticmethod
    def backward(ctx, g):
        return g[: ctx.split], g[ctx.split :]


@rule(lambda: t(6, 2), lambda: 4)
class Split(Function):
    @staticmethod
    def forward(ctx, x, n):
        return x[:n].clone(), x[n:].clone()

    @staticmethod
    def backward(ctx, ga, gb):
        return genesis.cat([ga, gb]), None


@rule(lambda: t(3, 4))
class SineAndCosine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, gs, gc):
        (x,) = ctx.saved_tensors
        return gs * x.cos() - gc * x.sin()


@rule(lambda: t(4, 3))
class MeanAndVariance(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        mean = x.mean(1)
        return mean, ((x - mean.unsqueeze(1)) ** 2).mean(1)

    @staticmethod
    def backward(ctx, gm, gv):
        (x,) = ctx.saved_tensors
        n = x.shape[1]
        return gm.unsqueeze(1) / n + gv.unsqueeze(1) * 2 * (x - x.mean(1, keepdim=True)) / n


@rule(lambda: t(2, 7), lambda: t(3))
class Conv1d(Function):
    """A valid cross-correlation of each row with one kernel, written as shifted products."""

    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        n = x.shape[1] - kernel.shape[0] + 1
        if n < 1:
            raise ValueError(f"a kernel of {kernel.shape[0]} is longer than a row of {x.shape[1]}")
        out = x[:, 0:n] * kernel[0]
        for i in range(1, kernel.shape[0]):
            out = out + x[:, i : i + n] * kernel[i]
        return out

    @staticmethod
    def backward(ctx, g):
        x, kernel = ctx.saved_tensors
        n, k = g.shape[1], kernel.shape[0]
        pad = lambda i: genesis.cat([g.new_zeros(g.shape[0], i), g, g.new_zeros(g.shape[0], k - 1 - i)], 1)  # noqa: E731
        gx = pad(0) * kernel[0]
        for i in range(1, k):
            gx = gx + pad(i) * kernel[i]
        return gx, genesis.stack([(g * x[:, i : i + n]).sum() for i in range(k)])


# ---- complex numbers


@rule(lambda: t(3, 2, kind="c"), lambda: t(3, 2, low=-1.5, kind="c"))
class ComplexMultiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.conj(), g * a.conj()


@rule(lambda: t(4, kind="c"))
class ComplexSquare(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z.conj()


@rule(lambda: t(3, kind="c"))
class SquaredModulus(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return (z * z.conj()).real

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z
