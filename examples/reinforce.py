"""A policy learns to balance a pole by trying (Williams 1992).

    python examples/reinforce.py [picture.svg]

Thirty-two poles at once, at most 100 steps each. With a file name, how long they stood is drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone
from genesis.distributions import Categorical

POLES, STEPS, PUSH, SECONDS = 32, 100, 10.0, 0.02


def moved(state, right):
    """The cart and the pole after a push to the right or to the left: (n, 4) of x, its speed, angle, its speed."""
    x, dx, a, da = state.unbind(1)
    force = torch.where(right, PUSH, -PUSH)
    pull = (force + 0.05 * da.square() * a.sin()) / 1.1
    dda = (9.8 * a.sin() - a.cos() * pull) / (0.5 * (4 / 3 - 0.1 * a.cos().square() / 1.1))
    ddx = pull - 0.05 * dda * a.cos() / 1.1
    return torch.stack([x + SECONDS * dx, dx + SECONDS * ddx, a + SECONDS * da, da + SECONDS * dda], 1)


def played(policy):
    """The logarithms of the probabilities of what was done, and which poles still stood: (STEPS, POLES) each."""
    state, standing = (torch.rand(POLES, 4) - 0.5) / 10, torch.ones(POLES)
    logs, alive = [], []
    for _ in range(STEPS):
        choice = Categorical(logits=policy(state))
        right = choice.sample()
        logs.append(choice.log_prob(right))
        alive.append(standing)
        state = moved(state, right > 0)
        standing = standing * ((state[:, 0].abs() < 2.4) & (state[:, 2].abs() < 0.21)).float()
    return torch.stack(logs), torch.stack(alive)


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
history = []

for episode in tqdm(range(31), disable=None, leave=False):
    logs, alive = played(policy)
    to_come = alive.flip(0).cumsum(0).flip(0)  # how long each pole stood from each step on
    mean = (to_come * alive).sum(1, keepdim=True) / alive.sum(1, keepdim=True).clamp(min=1)
    loss = -(logs * (to_come - mean) * alive).sum() / alive.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(alive.sum(0).mean().item())
    if episode % 10 == 0:
        tqdm.write(f"episode {episode:2d}  the poles stood {history[-1]:5.1f} of {STEPS} steps")

if len(sys.argv) > 1:
    line = Series("steps", range(len(history)), history)
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart([line], "how long poles stood", "episode", "steps")))
