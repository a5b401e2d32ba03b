"""A differentiable operation of your own, checked, and used in a network."""

import genesis as torch


class Clip(torch.Function):
    """Limit values to [-1, 1], but let the gradient through as if they had not been limited."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, g):
        return g


class Power(torch.Function):
    """x to the power of n, with the true derivative."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None  # None: n is a number, not a tensor


if __name__ == "__main__":
    x = torch.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    Clip.apply(x).sum().backward()
    print("straight through:", x.grad)

    print("the rule of Power is right:", torch.autograd.gradcheck(lambda x: Power.apply(x, 3), x))

    (first,) = torch.autograd.grad(Power.apply(x, 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    print("second derivative, 6 x:", second)
