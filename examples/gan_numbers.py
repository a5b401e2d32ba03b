"""Two networks play: one makes numbers, the other tells them from real ones (Goodfellow et al. 2014).

    python examples/gan_numbers.py [picture.svg]

The real ones have two peaks. With a file name, both histograms are drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import Series, line_chart, standalone
from genesis.nn import functional as F


def real(n):
    """Half of the numbers near -2, half near 2."""
    return torch.randn(n, 1) * 0.4 + torch.randint(2, (n, 1)).float() * 4 - 2


def network(inputs):
    return nn.Sequential(
        nn.Linear(inputs, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
    )


torch.manual_seed(0)
maker, judge = network(4), network(1)
make = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.9))
tell = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.9))
true, false = torch.ones(128, 1), torch.zeros(128, 1)

for step in tqdm(range(801), disable=None, leave=False):
    made = maker(torch.randn(128, 4))
    judged = F.binary_cross_entropy_with_logits(judge(real(128)), true)
    judged = judged + F.binary_cross_entropy_with_logits(judge(made.detach()), false)
    tell.zero_grad()
    judged.backward()
    tell.step()
    believed = F.binary_cross_entropy_with_logits(judge(made), true)  # the maker wants to be believed
    make.zero_grad()
    believed.backward()
    make.step()
    if step % 200 == 0:
        tqdm.write(f"step {step:3d}  judge {judged.item():.3f}  maker {believed.item():.3f}")

with torch.no_grad():
    made, wanted = maker(torch.randn(2000, 4)), real(2000)
print(
    f"made: mean {made.mean():.2f}, spread {made.std():.2f}; real: mean {wanted.mean():.2f}, spread {wanted.std():.2f}"
)

if len(sys.argv) > 1:
    middles = [-3.8 + 0.4 * i for i in range(20)]
    lines = [
        Series(name, middles, torch.histc(x, 20, -4, 4).tolist()) for name, x in (("made", made), ("real", wanted))
    ]
    with open(sys.argv[1], "w") as file:
        file.write(standalone(line_chart(lines, "numbers, made and real", "number", "how many")))
