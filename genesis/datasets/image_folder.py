"""Pictures in folders, one folder for each class; decoded by the package ``pillow``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, FileFormatError, MissingImport, message
from genesis.core.graph.tensor import Tensor, wrap

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")


def read_image(path: str | os.PathLike[str], mode: str = "RGB") -> Tensor:
    """A picture as float32 (channels, height, width) from 0 to 1.

    Args:
        path: the file
        mode: "RGB", "RGBA", or "L" for one channel of grey

    Raises:
        ModuleNotFoundError: the package ``pillow`` is not there
        ValueError: the file is no picture, or an unknown mode
    """
    try:
        image = importlib.import_module("PIL.Image")
    except ModuleNotFoundError as error:
        text = f"needs the package pillow ({error})"
        raise MissingImport(message("read_image", text, hint='pip install "genesis-dl[images]"')) from error
    if mode not in ("RGB", "RGBA", "L"):
        raise ArgumentValueError(message("read_image", f"mode must be 'RGB', 'RGBA' or 'L', got {mode!r}"))
    try:
        with image.open(path) as opened:
            pixels = np.asarray(opened.convert(mode), np.float32)
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError) as error:
        raise FileFormatError(
            message("read_image", f"this is no picture: {error}", [("file", os.fspath(path))])
        ) from error
    pixels = pixels.reshape(*pixels.shape[:2], -1) / np.float32(255)
    return wrap(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


class ImageFolder:
    """The pictures of a folder that has a folder for each class, as pairs of picture and number of the class.

    Args:
        root: the folder; pictures are also looked for in folders inside those of the classes
        transform: applied to the picture, a tensor (channels, height, width) from 0 to 1
        target_transform: applied to the number
        loader: what makes a picture of a path; `read_image` unless given
        extensions: endings of pictures
        is_valid_file: says of a path whether it is one, instead of the endings
        allow_empty: whether a class may have no pictures

    Attributes:
        classes: names of the folders, in order; class_to_idx: their numbers
        samples: the paths and numbers; targets: the numbers

    Raises:
        FileNotFoundError: there is no such folder, no class in it, or a class without pictures

    >>> import genesis, os, tempfile
    >>> root = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(os.path.join(root, name))
    ...     open(os.path.join(root, name, "1.png"), "w").close()
    >>> images = genesis.datasets.ImageFolder(root, loader=lambda path: os.path.basename(path))
    >>> images.classes, len(images), images[1]
    (['cat', 'dog'], 2, ('1.png', 1))
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] = read_image,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        extensions: tuple[str, ...] = ENDINGS,
    ) -> None:
        self.root, self.loader = os.fspath(root), loader
        self.transform, self.target_transform = transform, target_transform
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(message("ImageFolder", f"{self.root} has no folders, one for each class"))
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        accepts = is_valid_file or (lambda path: path.lower().endswith(extensions))
        self.samples: list[tuple[str, int]] = []
        for name, i in self.class_to_idx.items():
            paths = sorted(str(p) for p in Path(self.root, name).rglob("*") if p.is_file() and accepts(str(p)))
            if not paths and not allow_empty:
                raise FileNotFoundError(
                    message("ImageFolder", f"the class {name} has no pictures", [("folder", self.root)])
                )
            self.samples += [(path, i) for path in paths]
        self.targets = [i for _, i in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = self.loader(path)
        image = image if self.transform is None else self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        return f"ImageFolder({self.root!r}: {len(self)} pictures of {len(self.classes)} classes)"
