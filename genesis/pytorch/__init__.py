"""Programs that were written for PyTorch: run as they are, and read for what is not there.

`modules`  the modules of PyTorch and what stands for each     `reasons`  what is absent or different, and what to write instead
`finder`   how ``import torch`` finds them                     `names`    the public names of PyTorch 2.13
`run`      ``genesis run script.py --torch``                   `check`    ``genesis check script.py``
`children` processes that such a script starts
`libraries` what libraries import that is absent              `vision`   torchvision's operations
"""

from __future__ import annotations

from genesis.pytorch.finder import as_torch, installed

__all__ = ["as_torch", "installed"]
