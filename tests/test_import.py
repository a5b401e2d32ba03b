"""Importing Genesis is light."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType


def test_import_loads_nothing_heavy():
    heavy = [
        "torch",
        "scipy",
        "llvmlite",
        "triton",
        "sklearn",
        "tqdm",
        "safetensors",
        "genesis.cli",
        "genesis.nn",
        "genesis.testing",
    ]
    spared = ["hashlib", "tempfile", "shutil", "random", "difflib", "string", "json"]  # half a millisecond to five each
    code = (
        f"import numpy, sys; before = set(sys.modules); import genesis; new = set(sys.modules) - before; "
        f"print([m for m in {heavy} if m in sys.modules] + [m for m in {spared} if m in new])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_transforms_work_after_nothing_but_an_import():
    code = """
import genesis
x = genesis.ones(2)
print(genesis.func.vmap(genesis.exp)(x).shape, genesis.func.jvp(genesis.exp, (x,), (x,))[1].shape)
print(genesis.jit.trace(genesis.exp, x).replay(x).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("genesis.Size([2])") == 3


def test_public_names_exist():
    import genesis

    missing = [name for name in genesis.__all__ if not hasattr(genesis, name)]
    assert missing == []
    assert len(set(genesis.__all__)) == len(genesis.__all__)


def test_dir_is_what_is_public():
    import genesis

    hidden = {
        "annotations",
        "sys",
        "importlib",
        "ModuleType",
        "TYPE_CHECKING",
        "Any",
        "arrays",
        "base",
        "core",
        "kernels",
    }
    assert not hidden & set(dir(genesis))
    assert set(genesis.__all__) <= set(dir(genesis))
    unlisted = [
        name
        for name, value in vars(genesis).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in genesis.__all__
    ]
    assert set(unlisted) <= hidden | set(genesis.ops.registered_functions())
    assert genesis.nn.Linear and genesis.optim.AdamW and genesis.data.DataLoader and genesis.save


def test_transforms_work_in_a_process_that_imports_nothing_else():
    code = "import genesis; print(genesis.func.vmap(lambda x: x * 2)(genesis.ones(2)).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.0, 2.0]"
