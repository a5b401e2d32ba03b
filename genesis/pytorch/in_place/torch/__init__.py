"""What ``import torch`` finds first where this folder's is on the path of modules: it puts Genesis in its own place."""

import sys

if __name__ == "torch":
    from genesis.pytorch.children import as_torch_everywhere

    del sys.modules["torch"]
    as_torch_everywhere()
