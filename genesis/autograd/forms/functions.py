"""Four ops written out as `Function` classes: what a rule looks like in the fewest lines, and examples for
`register_function`.
"""

from __future__ import annotations

from typing import Any

from genesis import ops
from genesis.core.functions.context import FunctionCtx
from genesis.core.functions.function import Function
from genesis.core.graph.tensor import Tensor


class AddFunction(Function):
    """$a + b$; the gradient of either is $g$ (the engine sums it back over broadcast axes).

    >>> import genesis
    >>> a = genesis.ones(2, requires_grad=True)
    >>> AddFunction.apply(a, 1)
    tensor([2., 2.], grad_fn=<AddFunctionBackward>)
    """

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        return ops.add(a, b)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> Any:
        return grad_output, grad_output


class MulFunction(Function):
    """$a b$; the gradients are $g b$ and $g a$.

    >>> import genesis
    >>> a = genesis.full((2,), 3., requires_grad=True)
    >>> MulFunction.apply(a, a).sum().backward(); a.grad
    tensor([6., 6.])
    """

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return ops.mul(a, b)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> Any:
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a


class MatMulFunction(Function):
    """$A B$ of matrices or batches of them (at least 2-D); the gradients are $G B^T$ and $A^T G$.

    >>> import genesis
    >>> a, b = genesis.ones(2, 3, requires_grad=True), genesis.ones(3, 4)
    >>> MatMulFunction.apply(a, b).sum().backward(); a.grad
    tensor([[4., 4., 4.],
            [4., 4., 4.]])
    """

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return ops.matmul(a, b)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> Any:
        a, b = ctx.saved_tensors
        return grad_output @ b.transpose(-2, -1), a.transpose(-2, -1) @ grad_output


class ReluFunction(Function):
    """$\\max(x, 0)$; the gradient is $g$ where $x > 0$.

    >>> import genesis
    >>> ReluFunction.apply(genesis.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    @staticmethod
    def forward(ctx: FunctionCtx, input: Tensor) -> Tensor:
        ctx.save_for_backward(input)
        return ops.maximum(input, 0)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> Any:
        (input,) = ctx.saved_tensors
        return grad_output * (input > 0)
