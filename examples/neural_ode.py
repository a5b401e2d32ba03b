"""A network is the law of a spiral's motion; gradients come from a second motion, backwards (Chen et al. 2018).

    python examples/neural_ode.py [picture.svg]

The adjoint is a Function of one's own: no state between the ends is kept. With a file name, both spirals are drawn.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone


def rk4(f, y, h, steps):
    """Follow y' = f(y), where y is a tuple of tensors, by Runge and Kutta's steps."""

    def ahead(k, c):
        return tuple(a + c * b for a, b in zip(y, k, strict=True))

    for _ in range(steps):
        k1 = f(y)
        k2 = f(ahead(k1, h / 2))
        k3 = f(ahead(k2, h / 2))
        k4 = f(ahead(k3, h))
        y = tuple(a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4, strict=True))
    return y


class Motion(torch.autograd.Function):
    """Where points are after a time; backward follows the point, its adjoint and the gradient of the weights back."""

    @staticmethod
    def forward(ctx, law, x, h, steps, *weights):
        ctx.law, ctx.h, ctx.steps = law, h, steps
        (end,) = rk4(lambda y: (law(y[0]),), (x,), h, steps)
        ctx.save_for_backward(end, *weights)
        return end

    @staticmethod
    def backward(ctx, g):
        end, *weights = ctx.saved_tensors

        def back(y):
            with torch.enable_grad():
                x = y[0].detach().requires_grad_()
                v = ctx.law(x)
            gx, *gw = torch.autograd.grad(v, [x, *weights], y[1])
            return (v.detach(), -gx, *[-each for each in gw])

        start = (end, g, *[torch.zeros_like(w) for w in weights])
        _, gx, *gw = rk4(back, start, -ctx.h, ctx.steps)
        return None, gx, None, None, *gw


torch.manual_seed(0)
h, steps = 0.05, 3
turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
truth = [torch.tensor([[2.0, 0.0]])]
for _ in range(80):
    truth += rk4(lambda y: (y[0] ** 3 @ turn.t(),), (truth[-1],), h / 2, 2)
truth = torch.cat(truth)  # (81, 2)

law = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2))
weights = list(law.parameters())

(direct,) = rk4(lambda y: (law(y[0]),), (truth[:4],), h, steps)
through = torch.autograd.grad(direct.sum(), weights)
adjoint = torch.autograd.grad(Motion.apply(law, truth[:4], h, steps, *weights).sum(), weights)
error = max((a - b).abs().max().item() for a, b in zip(through, adjoint, strict=True))
print(f"the adjoint differs by {error:.0e} from the gradient through all steps")

optimizer = torch.optim.Adam(weights, lr=2e-2)
for step in tqdm(range(201), disable=None, leave=False):
    at = torch.randint(len(truth) - steps, (32,))
    loss = (Motion.apply(law, truth[at], h, steps, *weights) - truth[at + steps]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        tqdm.write(f"step {step:3d}  loss {loss.item():.4f}")

if len(sys.argv) > 1:
    learned = [truth[:1]]
    with torch.no_grad():
        for _ in range(80):
            learned += rk4(lambda y: (law(y[0]),), (learned[-1],), h, 1)
    lines = [
        Series(name, x[:, 0].tolist(), x[:, 1].tolist())
        for name, x in (("true", truth), ("learned", torch.cat(learned)))
    ]
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart(lines, "a spiral", "x", "y")))
