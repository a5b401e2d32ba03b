"""Noise flows into two moons: a network learns the velocity (Lipman et al. 2023).

    python examples/flow_matching.py [picture.svg]

With a file name, the ways of some points are drawn into it.
"""

import math
import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone


def moons(n):
    """Points of two half circles that reach into each other, (n, 2)."""
    angle, upper = torch.rand(n) * math.pi, torch.randint(2, (n,)).float()
    x = torch.where(upper > 0, angle.cos(), 1 - angle.cos())
    y = torch.where(upper > 0, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


def distance(a, b):
    """The energy distance of two samples: zero if they are of one distribution."""
    return 2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()


@torch.no_grad()
def flow(velocity, x, steps=20):
    """Where points go from time 0 to 1, in Heun's steps: (steps + 1, n, 2)."""
    path = [x]
    for i in range(steps):
        t, h = torch.full((len(x), 1), i / steps), 1 / steps
        v = velocity(torch.cat([x, t], 1))
        x = x + h / 2 * (v + velocity(torch.cat([x + h * v, t + h], 1)))
        path.append(x)
    return torch.stack(path)


torch.manual_seed(0)
velocity = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(velocity.parameters(), lr=5e-3)
noise = torch.randn(500, 2)
print(f"noise   distance to the moons {distance(noise, moons(500)):.3f}")

for step in tqdm(range(801), disable=None, leave=False):
    start, end, t = torch.randn(256, 2), moons(256), torch.rand(256, 1)
    on_the_way = (1 - t) * start + t * end
    loss = (velocity(torch.cat([on_the_way, t], 1)) - (end - start)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 400 == 0:
        tqdm.write(f"step {step:3d}  loss {loss.item():.3f}")

path = flow(velocity, noise)
print(f"flowed  distance to the moons {distance(path[-1], moons(500)):.3f}")

if len(sys.argv) > 1:
    ways = [Series("", path[:, i, 0].tolist(), path[:, i, 1].tolist()) for i in range(40)]
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart(ways, "from noise to moons", "x", "y")))
