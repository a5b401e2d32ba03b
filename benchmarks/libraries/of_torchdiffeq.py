"""Solvers of torchdiffeq."""

import torch
import torchdiffeq
from tools import fill, fn, leaf, withgrad

for m in [
    "dopri5",
    "rk4",
    "euler",
    "midpoint",
    "adaptive_heun",
    "bosh3",
    "dopri8",
    "implicit_adams",
    "explicit_adams",
    "fehlberg2",
]:
    fn(
        "ode_" + m,
        lambda m=m: withgrad(
            lambda y: torchdiffeq.odeint(lambda t, y: -y + t, y, torch.linspace(0, 1, 5), method=m), leaf(3)
        ),
    )


class F_(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(3, 3)

    def forward(self, t, y):
        return torch.tanh(self.l(y))


def adj():
    f = F_()
    fill(f)
    y = leaf(2, 3)
    o = torchdiffeq.odeint_adjoint(f, y, torch.linspace(0, 1, 3))
    o.sum().backward()
    return o, y.grad, f.l.weight.grad


fn("ode_adjoint", adj)


def ev():
    t, y = torchdiffeq.odeint_event(
        lambda t, y: torch.stack([y[1], -torch.ones(())]),
        torch.tensor([1.0, 0.0]),
        torch.tensor(0.0),
        event_fn=lambda t, y: y[0],
        method="dopri5",
    )
    return t, y


fn("ode_event", ev)
