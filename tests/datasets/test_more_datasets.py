"""Folders of pictures, and the data sets of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import datasets
from genesis.data import DataLoader


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="decodes pictures")
    for i, name in enumerate(("cat", "dog")):
        (tmp_path / name / "more").mkdir(parents=True)
        for j in range(3):
            pixels = np.full((4, 5, 3), 80 * i + j, np.uint8)
            pixels[0, 1] = (255, 0, 51)
            image.fromarray(pixels).save(tmp_path / name / ("more" if j == 2 else ".") / f"{j}.png")
        (tmp_path / name / "notes.txt").write_text("no picture")
    return tmp_path


def test_image_folder(folder):
    images = datasets.ImageFolder(folder, transform=lambda x: x[:, :2], target_transform=float)
    assert images.classes == ["cat", "dog"] and len(images) == 6 and images.targets == [0, 0, 0, 1, 1, 1]
    x, y = images[4]
    assert x.shape == (3, 2, 5) and x.dtype == genesis.float32 and y == 1.0
    assert x[:, 0, 1].tolist() == pytest.approx([1, 0, 0.2]) and x[0, 1, 0].item() == pytest.approx(81 / 255)
    assert "6 pictures of 2 classes" in repr(images)
    batches = list(DataLoader(datasets.ImageFolder(folder), batch_size=4))
    assert [b.shape for b, _ in batches] == [(4, 3, 4, 5), (2, 3, 4, 5)]
    assert batches[0][1].tolist() == [0, 0, 0, 1]


def test_read_image(folder):
    path = folder / "cat" / "0.png"
    assert datasets.read_image(path, "L").shape == (1, 4, 5) and datasets.read_image(path, "RGBA").shape == (4, 4, 5)
    with pytest.raises(ValueError, match="mode must be 'RGB', 'RGBA' or 'L', got 'CMYK'"):
        datasets.read_image(path, "CMYK")
    with pytest.raises(ValueError, match="read_image: this is no picture"):
        datasets.read_image(folder / "cat" / "notes.txt")
    with pytest.raises(FileNotFoundError):
        datasets.read_image(folder / "none.png")


def test_folders_without_pictures(tmp_path):
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="has no folders, one for each class"):
        datasets.ImageFolder(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(FileNotFoundError, match="the class cat has no pictures"):
        datasets.ImageFolder(tmp_path)
    assert len(datasets.ImageFolder(tmp_path, allow_empty=True)) == 0


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("iris", [(150, 4), (150,)]),
        ("wine", [(178, 13), (178,)]),
        ("breast_cancer", [(569, 30), (569,)]),
        ("diabetes", [(442, 10), (442,)]),
        ("linnerud", [(20, 3), (20, 3)]),
    ],
)
def test_data_of_scikit_learn(name, shapes):
    load = getattr(pytest.importorskip("sklearn.datasets", reason="ships them"), f"load_{name}")
    x, y = getattr(datasets, name)()
    data, targets = load(return_X_y=True)
    assert [x.shape, y.shape] == shapes and x.dtype == genesis.float32
    np.testing.assert_allclose(x.numpy(), data, rtol=1e-6)
    np.testing.assert_allclose(y.numpy(), targets, rtol=1e-6)
    assert y.dtype == (genesis.float32 if name in ("diabetes", "linnerud") else genesis.int64)
