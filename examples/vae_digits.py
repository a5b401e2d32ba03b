"""A variational autoencoder learns to draw digits (Kingma and Welling 2014).

    python examples/vae_digits.py [picture.svg]

With a file name, digits that it made up are drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import image_grid, standalone
from genesis.data import DataLoader, TensorDataset
from genesis.datasets import digits
from genesis.nn import functional as F

HIDDEN, CODE = 128, 8


class VAE(nn.Module):
    """A picture is encoded as a normal distribution; a draw of that is decoded."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64), nn.Unflatten(1, (8, 8)))

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (log_var / 2).exp()  # the draw has a gradient
        return self.decoder(code), mean, log_var


def negative_elbo(x, logits, mean, log_var):
    """How badly the picture is restored, plus how far its code is from a standard normal; for each picture."""
    restored = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum()
    return (restored + divergence) / len(x)


torch.manual_seed(0)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(digits("train")[0]), batch_size=64, shuffle=True)

for epoch in tqdm(range(15), disable=None, leave=False):
    total = 0.0
    for (x,) in loader:
        loss = negative_elbo(x, *model(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    if epoch % 7 == 0:
        tqdm.write(f"epoch {epoch:2d}  nats per digit {total:.2f}")

if len(sys.argv) > 1:
    with torch.no_grad(), open(sys.argv[1], "w") as file:
        made_up = model.decoder(torch.randn(30, CODE)).sigmoid()
        file.write(standalone(image_grid(made_up.numpy(), "digits that nobody wrote")))
