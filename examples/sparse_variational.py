"""A Gaussian process of many points, told by few: a sparse variational model (Hensman et al. 2013).

    python examples/sparse_variational.py [picture.svg]

Sixteen inducing points stand for a thousand. With a file name, the curve and its uncertainty are drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone

MANY, FEW, BATCH = 1000, 16, 128


class SparseProcess(nn.Module):
    """Values at a few places are jointly normal, q(u) = N(m, S S^T), whitened; all others follow from them."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.linspace(-3, 3, FEW))
        self.mean, self.root = nn.Parameter(torch.zeros(FEW)), nn.Parameter(torch.eye(FEW))
        self.log_length, self.log_noise = nn.Parameter(torch.tensor(-0.5)), nn.Parameter(torch.tensor(-1.0))

    def kernel(self, a, b):
        return torch.exp(-0.5 * ((a[:, None] - b) / self.log_length.exp()).square())

    def forward(self, x):
        """Mean and variance of the process at x, each (n,)."""
        factor = torch.linalg.cholesky(self.kernel(self.places, self.places) + 1e-4 * torch.eye(FEW))
        share = torch.linalg.solve_triangular(factor, self.kernel(self.places, x), upper=False)  # (FEW, n)
        spread = share.t() @ self.root.tril()
        return share.t() @ self.mean, 1 - share.square().sum(0) + spread.square().sum(1)

    def divergence(self):
        """From q to the prior of the whitened values, a standard normal."""
        root = self.root.tril()
        logs = root.diagonal().abs().log().sum()
        return 0.5 * (root.square().sum() + self.mean.square().sum() - FEW) - logs

    def negative_elbo(self, x, y):
        """For each point: how unlikely it is, and its part of the divergence."""
        mean, variance = self(x)
        noise = (2 * self.log_noise).exp()
        unlikely = 0.5 * ((y - mean).square() + variance) / noise + self.log_noise + 0.919
        return unlikely.mean() + self.divergence() / MANY


torch.manual_seed(0)
x = torch.rand(MANY) * 6 - 3
y = torch.sin(3 * x) * torch.exp(-0.2 * x.square()) + 0.2 * torch.randn(MANY)
model = SparseProcess()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)

for step in tqdm(range(301), disable=None, leave=False):
    at = torch.randint(MANY, (BATCH,))
    loss = model.negative_elbo(x[at], y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        tqdm.write(f"step {step:3d}  nats per point {loss.item():.3f}  noise {model.log_noise.exp().item():.2f}")

if len(sys.argv) > 1:
    with torch.no_grad():
        grid = torch.linspace(-3, 3, 100)
        mean, variance = model(grid)
        curves = (("mean", mean), ("upper", mean + 2 * variance.sqrt()), ("lower", mean - 2 * variance.sqrt()))
        lines = [Series(name, grid.tolist(), curve.tolist()) for name, curve in curves]
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart(lines, "a function, and how sure of it", "x", "y")))
