"""The data sets that scikit-learn ships, as tensors."""

from __future__ import annotations

import importlib

import numpy as np

from genesis.base.errors import MissingImport, message
from genesis.core.graph.tensor import Tensor, wrap


def _loaded(name: str) -> tuple[Tensor, Tensor]:
    try:
        module = importlib.import_module("sklearn.datasets")
    except ModuleNotFoundError as error:
        text = f"needs the package scikit-learn ({error})"
        raise MissingImport(message(name, text, hint='pip install "genesis-dl[sklearn]"')) from error
    data, targets = getattr(module, f"load_{name}")(return_X_y=True)
    kind = np.int64 if np.asarray(targets).dtype.kind in "iu" else np.float32
    return wrap(np.array(data, np.float32, order="C")), wrap(np.array(targets, kind, order="C"))


def iris() -> tuple[Tensor, Tensor]:
    """150 flowers: four lengths, float32 (150, 4), and which of three species each is (Fisher 1936).

    Raises:
        ModuleNotFoundError: scikit-learn is not there
    """
    return _loaded("iris")


def wine() -> tuple[Tensor, Tensor]:
    """178 wines: 13 measurements, float32 (178, 13), and from which of three growers each is."""
    return _loaded("wine")


def breast_cancer() -> tuple[Tensor, Tensor]:
    """569 tumours: 30 measurements, float32 (569, 30), and whether each is benign (1)."""
    return _loaded("breast_cancer")


def diabetes() -> tuple[Tensor, Tensor]:
    """442 patients: ten measurements, float32 (442, 10), and how far the disease went in a year, float32 (442,)."""
    return _loaded("diabetes")


def linnerud() -> tuple[Tensor, Tensor]:
    """20 people: three exercises, float32 (20, 3), and three measurements, float32 (20, 3)."""
    return _loaded("linnerud")
