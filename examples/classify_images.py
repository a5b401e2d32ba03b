"""A convolutional network reads handwritten digits.

    python examples/classify_images.py [picture.svg]

With a file name, what was read as what is drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.cli.svg import confusion_matrix, standalone
from genesis.data import DataLoader, TensorDataset
from genesis.datasets import digits

torch.manual_seed(0)
model = nn.Sequential(
    nn.Unflatten(1, (1, 8)),  # (N, 8, 8) -> (N, 1, 8, 8)
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128, 10),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(*digits("train")), batch_size=64, shuffle=True)
images, labels = digits("test")

for epoch in tqdm(range(3), disable=None, leave=False):
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        read = model(images).argmax(1)
    tqdm.write(f"epoch {epoch + 1}  loss {loss.item():.3f}  held-out accuracy {(read == labels).float().mean():.1%}")

if len(sys.argv) > 1:
    counts = torch.zeros(10, 10).index_put((labels, read), torch.ones(len(labels)), accumulate=True)
    with open(sys.argv[1], "w") as file:
        file.write(standalone(confusion_matrix(counts.int().numpy(), "0123456789", "held-out digits")))
