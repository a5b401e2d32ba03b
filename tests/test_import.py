"""Importing Genesis is light."""

from __future__ import annotations

import subprocess
import sys


def test_import_loads_nothing_heavy():
    heavy = ["torch", "scipy", "llvmlite", "triton", "sklearn", "tqdm", "safetensors", "genesis.cli", "genesis.nn", "genesis.testing"]
    code = f"import genesis, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_exist():
    import genesis

    missing = [name for name in genesis.__all__ if not hasattr(genesis, name)]
    assert missing == []
    assert genesis.nn.Linear and genesis.optim.AdamW and genesis.data.DataLoader and genesis.save
