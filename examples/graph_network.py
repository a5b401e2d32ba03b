"""A graph network finds groups of people by who knows whom (Kipf and Welling 2017).

    python examples/graph_network.py [picture.svg]

Of each group four people say where they belong. With a file name, the accuracy over time is drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone

PEOPLE, GROUPS, SAY = 120, 3, 4


def acquaintances(groups):
    """A random graph: people know each other with probability 0.15 within a group, 0.02 across."""
    chance = torch.where(groups[:, None] == groups, 0.15, 0.02)
    upper = (torch.rand(PEOPLE, PEOPLE) < chance).float().triu(1)
    return upper + upper.t()


class GraphNetwork(nn.Module):
    """Two rounds in which everybody hears the mean of what the people they know say."""

    def __init__(self, graph):
        super().__init__()
        known = graph + torch.eye(PEOPLE)  # and oneself
        degree = known.sum(1).rsqrt()
        self.register_buffer("mix", degree[:, None] * known * degree)
        self.first, self.second = nn.Linear(PEOPLE, 16), nn.Linear(16, GROUPS)

    def forward(self, x):  # (PEOPLE, PEOPLE) -> (PEOPLE, GROUPS)
        return self.mix @ self.second(torch.relu(self.mix @ self.first(x)))


torch.manual_seed(0)
groups = torch.arange(PEOPLE) % GROUPS
model, people = GraphNetwork(acquaintances(groups)), torch.eye(PEOPLE)
said = torch.arange(SAY * GROUPS)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
history = []

for epoch in tqdm(range(61), disable=None, leave=False):
    scores = model(people)
    loss = nn.functional.cross_entropy(scores[said], groups[said])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    right = (scores.argmax(1) == groups)[SAY * GROUPS :].float().mean().item()
    history.append(right)
    if epoch % 20 == 0:
        tqdm.write(f"epoch {epoch:2d}  loss {loss.item():.3f}  right about the others {right:.0%}")

if len(sys.argv) > 1:
    line = Series("others", range(len(history)), history)
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart([line], "groups of people", "epoch", "right")))
