"""1,797 handwritten digits of 8 by 8 pixels; origin and licence in DIGITS_LICENSE.md."""

from __future__ import annotations

import gzip
from importlib.resources import files

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor, wrap

COUNT, PIXELS = 1797, 64


def _rows() -> np.ndarray:  # type: ignore[type-arg]
    """A row for each digit: 64 pixels of 0 to 16, then the label; kept as gzipped bytes."""
    data = gzip.decompress(files("genesis.datasets").joinpath("digits.bin.gz").read_bytes())
    return np.frombuffer(data, np.uint8).reshape(COUNT, PIXELS + 1)


def held_out(labels: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Which fifth of the digits is held out: the same in every run, and a fifth of each class."""
    shuffled = np.random.Generator(np.random.Philox(1797)).permutation(len(labels))
    mask = np.zeros(len(labels), bool)
    for label in range(10):
        members = shuffled[labels[shuffled] == label]
        mask[members[: len(members) // 5]] = True
    return mask


def digits(split: str | None = None) -> tuple[Tensor, Tensor]:
    """Images, float32 (n, 8, 8) from 0 (paper) to 1 (ink), and labels, int64 (n,).

    Args:
        split: None for all 1,797; "train" or "test" for four fifths and the held-out fifth, a fixed choice with the
            classes in equal parts

    Raises:
        ValueError: another split

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository
        (1998).

    >>> import genesis
    >>> images, labels = genesis.datasets.digits()
    >>> images.shape, labels[:5]
    (genesis.Size([1797, 8, 8]), tensor([0, 1, 2, 3, 4]))
    """
    if split not in (None, "train", "test"):
        raise ArgumentValueError(message("digits", f"split must be None, 'train' or 'test', got {split!r}"))
    rows = _rows()
    images, labels = rows[:, :PIXELS].reshape(-1, 8, 8).astype(np.float32) / 16, rows[:, PIXELS].astype(np.int64)
    if split is not None:
        chosen = held_out(labels) == (split == "test")
        images, labels = images[chosen], labels[chosen]
    return wrap(images), wrap(labels)
