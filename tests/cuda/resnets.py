"""Residual networks of He et al. (2015), of 18 and of 50 layers, as reference models of budgets."""

from __future__ import annotations

import genesis
from genesis import nn
from genesis.nn import functional as F


def normed(channels, out, size, stride=1):
    return nn.Sequential(nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


class Layer(nn.Module):
    """Convolutions of these (kernel, stride, channels), and a way around them."""

    def __init__(self, channels, convolutions):
        super().__init__()
        ways, out, stride = [], channels, 1
        for size, step, more in convolutions:
            ways.append(normed(out, more, size, step))
            out, stride = more, stride * step
        self.ways = nn.ModuleList(ways)
        self.around = nn.Identity() if (channels, stride) == (out, 1) else normed(channels, out, 1, stride)

    def forward(self, x):
        y = x
        for way in self.ways[:-1]:
            y = F.relu(way(y))
        return F.relu(self.ways[-1](y) + self.around(x))


def resnet(depth, classes=1000):
    counts, wide = {18: ((2, 2, 2, 2), 1), 50: ((3, 4, 6, 3), 4)}[depth]
    layers, channels = [normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for i, count in enumerate(counts):
        width = 64 << i
        for j in range(count):
            stride = 2 if i and not j else 1
            within = [(3, stride, width), (3, 1, width)]
            if wide > 1:
                within = [(1, 1, width), (3, stride, width), (1, 1, wide * width)]
            layers.append(Layer(channels, within))
            channels = wide * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def training(depth, batch, form=genesis.channels_last):
    """A step in bfloat16 with momentum, and its arguments."""
    model = resnet(depth).to("cuda").to(memory_format=form)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def step(x, y):
        optimizer.zero_grad()
        with genesis.autocast("cuda", genesis.bfloat16):
            z = model(x)
        loss = F.cross_entropy(z.float(), y)
        loss.backward()
        optimizer.step()
        return loss

    x = genesis.zeros(batch, 3, 224, 224, device="cuda").to(memory_format=form)
    return step, x, genesis.zeros(batch, dtype=genesis.int64, device="cuda")
