"""Train a small network on real handwritten digits, the way it is written for PyTorch."""

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.data import DataLoader, TensorDataset
from genesis.datasets import digits

torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(*digits("train")), batch_size=64, shuffle=True)
images, labels = digits("test")

for epoch in tqdm(range(10), disable=None, leave=False):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(images).argmax(1) == labels).float().mean()
    tqdm.write(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  held-out accuracy {accuracy:.1%}")
