"""Saving and loading, in the safetensors format, never pickle.

`files`   `save` and `load`     `atomic`   a file that is there whole or not at all
"""

from __future__ import annotations

from genesis.io.atomic import write_atomically
from genesis.io.files import load, save

__all__ = ["load", "save", "write_atomically"]
