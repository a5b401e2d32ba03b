"""Stands for torchvision, which exists for PyTorch only: enough of it for programs that load digits or small pictures, which are drawn here."""

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
__version__ = "0.0"
