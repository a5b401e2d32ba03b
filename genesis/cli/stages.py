"""Three of the demo's parts: reading digits, drawing digits, and a gradient of your own.

Each part trains a model, measures it on digits that were held out, and returns what it found; showing is left to
`demo.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import genesis
from genesis import Tensor, nn
from genesis.cli.terminal import Terminal
from genesis.data import DataLoader, TensorDataset
from genesis.datasets import digits
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

BATCH = 64  # digits that the reader learns from at a time


@dataclass(slots=True)
class Outcome:
    """What a part reached: its bars as (met, sentence), numbers for the JSON, and material for the report."""

    bars: list[tuple[bool, str]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    material: dict[str, Any] = field(default_factory=dict)


def reader() -> nn.Module:
    """A small network that reads digits."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


@genesis.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The part of digits read right."""
    model.eval()
    right = (model(images).argmax(1) == labels).float().mean()  # type: ignore[attr-defined]
    model.train()
    return float(right)


class Training(NamedTuple):
    """The loss of each epoch, and the step that was called for each batch."""

    losses: list[float]
    step: Any


def train_reader(
    model: nn.Module, epochs: int, terminal: Terminal, label: str, after_epoch: Callable[[float], None] | None = None
) -> Training:
    """Ordinary training: batches, loss, backward, step."""
    images, labels = digits("train")
    loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True)
    optimizer = genesis.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    losses: list[float] = []

    @genesis.compile(disable=not loops.available())
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in terminal.progress(range(epochs), epochs, label, lambda: f"loss {losses[-1]:.3f}"):
        total = 0.0
        for x, y in loader:
            total += float(step(x, y))
        schedule.step()
        losses.append(total / len(loader))
        if after_epoch is not None:
            after_epoch(losses[-1])
    return Training(losses, step)


def reading(terminal: Terminal, fast: bool) -> Outcome:
    """Part one: a network learns to read; at least 97% of the held-out digits."""
    out, bar, epochs = Outcome(), 0.90 if fast else 0.97, 8 if fast else 40
    images, labels = digits("test")
    terminal.images(images[:8].numpy(), 8)
    model = reader()
    held: list[float] = []
    training = train_reader(model, epochs, terminal, "training", lambda _: held.append(accuracy(model, images, labels)))
    if loops.available():
        batch = [x[:BATCH] for x in digits("train")]
        (out.material["compiled"],) = training.step.explain(*batch, times=True).steps[0]
    model.eval()
    with genesis.no_grad():
        read = model(images).argmax(1)
    reached = float((read == labels).float().mean())
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (labels.numpy(), read.numpy()), 1)
    wrong = np.flatnonzero(read.numpy() != labels.numpy())
    out.bars.append((reached >= bar, f"reads {reached:.1%} of {len(labels)} held-out digits (needed: {bar:.0%})"))
    out.numbers = {"accuracy": reached, "held_out": len(labels), "wrong": len(wrong)}
    out.material |= {
        "model": model, "losses": training.losses, "held": held, "counts": counts, "wrong": images.numpy()[wrong],
        "wrong_captions": [f"{labels[int(i)].item()} as {read[int(i)].item()}" for i in wrong],
    }  # fmt: skip
    return out


class Painter(nn.Module):
    """The velocity with which noise should move to become a digit: of a picture, a time in [0, 1] and a class."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(64 + 16 + 10, width), nn.Linear(width, 64)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.register_buffer("frequencies", (2.0 ** genesis.arange(8).float()).unsqueeze(0), persistent=False)

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        waves = t * self.frequencies
        h = F.silu(self.enter(genesis.cat([x, waves.sin(), waves.cos(), label], 1)))
        for block in self.blocks:
            h = h + F.silu(block(h))
        return self.leave(h)


def train_painter(model: Painter, steps: int, terminal: Terminal) -> list[float]:
    """Flow matching (Lipman et al. 2022): on the straight way from noise to a digit, learn the direction."""
    images, labels = digits("train")
    pictures, classes = images.reshape(-1, 64) * 2 - 1, F.one_hot(labels, 10).float()
    optimizer = genesis.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    schedule = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses: list[float] = []

    @genesis.compile(disable=not loops.available())
    def step() -> Tensor:
        chosen = genesis.randint(len(pictures), (128,))
        digit, noise, t = pictures[chosen], genesis.randn(128, 64), genesis.rand(128, 1)
        label = classes[chosen] * (genesis.rand(128, 1) > 0.1)  # sometimes without its class, for guidance
        loss = F.mse_loss(model(noise * (1 - t) + digit * t, t, label), digit - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in terminal.progress(range(steps), steps, "training", lambda: f"loss {np.mean(losses[-100:]):.3f}"):
        losses.append(float(step()))
        schedule.step()
    return losses


@genesis.no_grad()
def draw(model: Painter, labels: Tensor, steps: int = 24, guidance: float = 1.6) -> Tensor:
    """Digits of given classes, from noise, with the midpoint rule; guided towards the class (Ho and Salimans 2022)."""
    label = F.one_hot(labels, 10).float()
    x = genesis.randn(len(labels), 64)

    def velocity(x: Tensor, time: float) -> Tensor:
        t = genesis.full((len(labels), 1), time)
        free = model(x, t, label * 0)
        return free + guidance * (model(x, t, label) - free)

    for i in range(steps):
        half = x + velocity(x, i / steps) * (0.5 / steps)
        x = x + velocity(half, (i + 0.5) / steps) * (1 / steps)
    return ((x + 1) / 2).clamp(0, 1)


@genesis.no_grad()
def nearest(pictures: Tensor, references: Tensor) -> tuple[Tensor, Tensor]:
    """Distance to the nearest reference picture, and which one it is."""
    squares = (pictures**2).sum(1, keepdim=True) + (references**2).sum(1) - 2 * pictures @ references.t()
    least = squares.min(1)
    return least.values.clamp(min=0).sqrt(), least.indices


def writing(terminal: Terminal, fast: bool) -> Outcome:
    """Part two: a model learns to draw; a judge that never saw it recognises 95% of 500 drawings, none of them a copy."""
    out, bar, steps = Outcome(), 0.60 if fast else 0.95, 500 if fast else 3500
    model = Painter()
    losses = train_painter(model, steps, terminal)
    wanted = genesis.arange(500) % 10
    drawings = draw(model, wanted)
    held_images, held_labels = digits("test")
    train_images, _ = digits("train")
    _, judged = nearest(drawings, held_images.reshape(-1, 64))
    recognised = float((held_labels[judged] == wanted).float().mean())
    distance, _ = nearest(drawings, train_images.reshape(-1, 64))
    copies = int((distance < 0.25).sum())
    terminal.images(drawings[:10].reshape(-1, 8, 8).numpy(), 10)
    out.bars.append(
        (
            recognised >= bar,
            f"a nearest-neighbour judge of held-out digits recognises {recognised:.1%} of 500 drawings (needed: "
            f"{bar:.0%})",
        )
    )
    out.bars.append(
        (
            copies == 0,
            f"none is a copy: the closest is {float(distance.min()):.2f} from any training digit (a copy would be "
            "under 0.25)",
        )
    )
    out.numbers = {"recognised": recognised, "drawings": 500, "copies": copies, "closest": float(distance.min())}
    smooth = [float(np.mean(losses[max(0, i - 50) : i + 1])) for i in range(0, len(losses), max(1, len(losses) // 60))]
    out.material = {
        "model": model,
        "losses": smooth,
        "steps": list(range(0, len(losses), max(1, len(losses) // 60))),
        "drawings": drawings.reshape(-1, 8, 8).numpy()[:60],
    }
    return out


class Round(genesis.Function):
    """Rounding, whose derivative is 0 almost everywhere; this one passes the gradient straight through."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Rounded(nn.Module):
    """A reader whose inner signals are whole numbers from 0 to 3: it can only be trained through `Round`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 256), nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        signal = Round.apply(self.first(x.flatten(1)).clamp(0, 3))
        return self.last(signal)


def own_gradient(terminal: Terminal, fast: bool) -> Outcome:
    """Part three: a `Function` of your own; its gradient is checked, and a network with it inside trains."""
    out, bar, epochs = Outcome(), 0.85 if fast else 0.93, 6 if fast else 25
    terminal.code(source_of(Round))
    x = genesis.tensor([0.2, 1.7, -2.4], requires_grad=True)
    y = Round.apply(x)
    y.backward(genesis.tensor([1.0, 2.0, 3.0]))
    right = y.tolist() == [0.0, 2.0, -2.0] and x.grad is not None and x.grad.tolist() == [1.0, 2.0, 3.0]
    out.bars.append((right, "checked: 0.2, 1.7, -2.4 round to 0, 2, -2, and a gradient of 1, 2, 3 passes unchanged"))
    smooth = genesis.autograd.gradcheck(lambda v: Round.apply(v) * 0 + v.sin(), x)
    refused = not genesis.autograd.gradcheck(Round.apply, x, raise_exception=False)
    out.bars.append(
        (smooth and refused, "gradcheck agrees that it is not the true derivative, which is 0, and passes a true one")
    )
    images, labels = digits("test")
    model = Rounded()
    losses = train_reader(model, epochs, terminal, "training through it").losses
    reached = accuracy(model, images, labels)
    out.bars.append(
        (reached >= bar, f"a network of rounded signals trains through it and reads {reached:.1%} (needed: {bar:.0%})")
    )
    out.numbers = {"accuracy": reached, "gradient_passes": right, "gradcheck_refuses": refused}
    out.material = {"losses": losses, "code": source_of(Round)}
    return out


def source_of(thing: Any) -> str:
    """The source code of a function or class."""
    return inspect.getsource(thing)
