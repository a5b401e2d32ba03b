"""Transforms of pictures that programs for digits and small pictures use."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from PIL import Image


class InterpolationMode:
    BILINEAR, BICUBIC, NEAREST = Image.BILINEAR, Image.BICUBIC, Image.NEAREST


class Compose:
    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    def __call__(self, picture: Any) -> Any:
        values = np.asarray(picture)
        values = values[:, :, None] if values.ndim == 2 else values
        return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)).astype(np.float32) / 255)


class ToPILImage:
    def __call__(self, values: Any) -> Any:
        array = (np.asarray(values.detach()) * 255).astype(np.uint8)
        return Image.fromarray(array.transpose(1, 2, 0).squeeze())


class Normalize:
    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)

    def __call__(self, values: Any) -> Any:
        return (values - self.mean) / self.std


class Resize:
    def __init__(self, size: Any, interpolation: Any = Image.BILINEAR) -> None:
        self.size, self.interpolation = size, interpolation

    def __call__(self, picture: Any) -> Any:
        height, width = (self.size, self.size) if isinstance(self.size, int) else self.size
        return picture.resize((width, height), self.interpolation)


Scale = Resize


class Lambda:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, picture: Any) -> Any:
        return self.function(picture)


class Pad:
    def __init__(self, padding: int) -> None:
        self.padding = padding

    def __call__(self, picture: Any) -> Any:
        values, n = np.asarray(picture), self.padding
        return Image.fromarray(np.pad(values, [(n, n), (n, n)] + [(0, 0)] * (values.ndim - 2)))


class RandomHorizontalFlip:
    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, picture: Any) -> Any:
        return picture.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < self.p else picture


class RandomRotation:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __call__(self, picture: Any) -> Any:
        return picture.rotate(random.uniform(-self.degrees, self.degrees))


class RandomCrop:
    def __init__(self, size: Any, padding: int = 0) -> None:
        self.size, self.pad = (size, size) if isinstance(size, int) else size, Pad(padding)

    def __call__(self, picture: Any) -> Any:
        picture = self.pad(picture)
        (width, height), (h, w) = picture.size, self.size
        top, left = random.randint(0, height - h), random.randint(0, width - w)
        return picture.crop((left, top, left + w, top + h))


class CenterCrop(RandomCrop):
    def __call__(self, picture: Any) -> Any:
        (width, height), (h, w) = picture.size, self.size
        top, left = (height - h) // 2, (width - w) // 2
        return picture.crop((left, top, left + w, top + h))
