"""Stands for torchvision: sets of small pictures that are drawn here in the place of what it downloads, and all else of it where it is
installed. Where it is not, enough for programs that load digits or small pictures."""

import sys
from pathlib import Path

_here = Path(__file__).resolve().parent
_installed = next(
    (
        p
        for p in (Path(entry or ".", "torchvision").resolve() for entry in sys.path)
        if p != _here and (p / "ops").is_dir()
    ),
    None,
)
# its own __init__ also loads what is compiled for one build of PyTorch: that is left out
__path__ = [str(_here), str(_installed or _here / "without")]

from torchvision import datasets, models, transforms, utils  # noqa: E402

__all__ = ["datasets", "models", "transforms", "utils"]
__version__ = "0.0"

if _installed:
    from torchvision import ops as ops
