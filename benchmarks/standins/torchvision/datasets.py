"""Small sets of pictures with classes that can be told apart, the same at each run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


class Pictures(Dataset):
    """A set of `train` or test pictures of `shape`, brighter where their class says so."""

    shape: tuple[int, ...] = (28, 28)
    classes: Any = tuple(str(n) for n in range(10))

    def __init__(
        self,
        root: str = "",
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
        **ignored: Any,
    ) -> None:
        rng = np.random.default_rng(int(train))
        self.transform, self.target_transform, self.train = transform, target_transform, train
        targets = rng.integers(0, len(self.classes), 1024 if train else 256)
        patterns = np.random.default_rng(7).integers(0, 200, (len(self.classes), *self.shape))
        noise = rng.integers(0, 56, (len(targets), *self.shape))
        self.pictures = (patterns[targets] + noise).astype(np.uint8)
        self.data, self.targets = torch.from_numpy(self.pictures), torch.from_numpy(targets)

    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture, target = Image.fromarray(self.pictures[index]), int(self.targets[index])
        return (
            self.transform(picture) if self.transform else picture,
            self.target_transform(target) if self.target_transform else target,
        )


class MNIST(Pictures):
    pass


class FashionMNIST(Pictures):
    pass


class CIFAR10(Pictures):
    shape = (32, 32, 3)
    classes = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class CIFAR100(CIFAR10):
    classes = tuple(str(n) for n in range(100))


class KMNIST(Pictures):
    pass


class FakeData(Pictures):
    shape = (224, 224, 3)

    def __init__(
        self, size: int = 1000, image_size: Any = (3, 224, 224), num_classes: int = 10, transform: Any = None, **o: Any
    ) -> None:
        self.shape, self.classes = (*image_size[1:], image_size[0]), tuple(range(num_classes))
        super().__init__(transform=transform)
        self.pictures = self.pictures[:size]


class ImageFolder(Dataset):
    def __init__(self, root: str, *args: Any, **options: Any) -> None:
        raise FileNotFoundError(f"no such folder of pictures: {root}")
