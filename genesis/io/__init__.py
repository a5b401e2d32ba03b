"""Saving and loading, in the safetensors format and PyTorch's own, never with Python's pickle.

`files`        `save` and `load`                         `atomic`      a file that is there whole or not at all
`source`       bytes of files, mapped or read            `blocks`      memory that tensors share
`safetensors`  the format                                `structure`   nested values as JSON
`location`     devices that tensors are loaded to        `pytorch`     `.pt` and `.pth` files
"""

from __future__ import annotations

from genesis.io.atomic import write_atomically
from genesis.io.files import load, save

__all__ = ["load", "save", "write_atomically"]
