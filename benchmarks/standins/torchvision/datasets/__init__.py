"""Small sets of pictures with classes that can be told apart, the same at each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

import torchvision

__path__ = [
    *__path__,
    *(p + "/datasets" for p in torchvision.__path__[1:]),
]  # its other sets, by the names of their files


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


class Split(Pictures):
    """A set whose part is named."""

    def __init__(self, root: str = "", split: str = "train", transform: Any = None, **options: Any) -> None:
        options.pop("train", None)
        super().__init__(root, not split.startswith(("test", "val")), transform, **options)

    labels = property(lambda self: np.asarray(self.targets))


class SVHN(Split):
    shape = (32, 32, 3)


class STL10(Split):
    shape = (96, 96, 3)


class CelebA(Split):
    shape = (218, 178, 3)


class EMNIST(Pictures):
    pass


class USPS(Pictures):
    shape = (16, 16)


class ImageFolder(Dataset):
    """The pictures of a folder that has a folder for each class."""

    def __init__(self, root: str, transform: Any = None, target_transform: Any = None, **ignored: Any) -> None:
        if not Path(root).is_dir():
            raise FileNotFoundError(f"no such folder of pictures: {root}")
        self.root, self.transform, self.target_transform = root, transform, target_transform
        self.classes = sorted(p.name for p in Path(root).iterdir() if p.is_dir())
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        files = sorted(p for p in Path(root).rglob("*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
        self.samples = self.imgs = [(str(p), self.class_to_idx[p.relative_to(root).parts[0]]) for p in files]
        self.targets = [target for _, target in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        file, target = self.samples[index]
        picture = Image.open(file).convert("RGB")
        return (
            self.transform(picture) if self.transform else picture,
            self.target_transform(target) if self.target_transform else target,
        )
