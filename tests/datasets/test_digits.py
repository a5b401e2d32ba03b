"""The digits: the file is the one that was published, the split is fixed and fair."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest

import genesis


def test_the_file_is_unchanged():
    data = files("genesis.datasets").joinpath("digits.bin.gz").read_bytes()
    assert hashlib.sha256(data).hexdigest() == "b508b4f324a791510eda456e789a11e808069126463db70a9ddce6f638f9814e"


def test_images_labels_and_split():
    images, labels = genesis.datasets.digits()
    assert (
        images.shape == (1797, 8, 8)
        and images.dtype is genesis.float32
        and float(images.min()) >= 0
        and float(images.max()) == 1
    )
    assert genesis.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    train, test = genesis.datasets.digits("train"), genesis.datasets.digits("test")
    assert len(train[0]) + len(test[0]) == 1797 and len(test[0]) == 355
    assert all(
        0.18 < n / m < 0.21
        for n, m in zip(genesis.bincount(test[1]).tolist(), genesis.bincount(labels).tolist(), strict=True)
    )
    with pytest.raises(ValueError, match="split must be None, 'train' or 'test', got 'valid'"):
        genesis.datasets.digits("valid")
