"""Importing Genesis is light."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from types import ModuleType

import pytest


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


def test_machine_code_is_read_when_it_is_used():
    code = """
import sys, genesis
from genesis.base.late import LateModule
late = [name for name, module in sys.modules.items() if type(module) is LateModule]
print("genesis.kernels.llvm.loops" in late, "genesis.kernels.native.runtime" in late)
from genesis.kernels.llvm import loops
import genesis.kernels.llvm.loops
print(type(loops) is LateModule, loops is sys.modules["genesis.kernels.llvm.loops"] is genesis.kernels.llvm.loops)
print(loops.available.__module__, type(loops) is type(sys), loops.__spec__.name, loops.__package__)
print("function" in vars(sys.modules["genesis.kernels.llvm.native"]), hasattr(loops, "nothing"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True True",
        "True True",
        "genesis.kernels.llvm.loops True genesis.kernels.llvm.loops genesis.kernels.llvm",
        "True False",
    ]


def test_late_modules_of_a_package(tmp_path, monkeypatch):
    from genesis.base.late import LateModule, late_modules

    package = tmp_path / "with_late_ones"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "slow.py").write_text(
        "import time\nruns = 1\ntime.sleep(0.05)\nfrom with_late_ones import slow\nlast = slow.runs\n"
    )
    (package / "broken.py").write_text("first = 1\n1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    whole = importlib.import_module("with_late_ones")
    try:
        late_modules("with_late_ones", "slow broken gone")
        seen: list[int] = []
        threads = [threading.Thread(target=lambda: seen.append(whole.slow.last)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [1] * 4 and type(whole.slow) is ModuleType
        for _ in range(2):  # it stays as it is, and says so again
            with pytest.raises(ZeroDivisionError):
                whole.broken.first  # noqa: B018
        assert type(whole.broken) is LateModule
        with pytest.raises(ModuleNotFoundError, match="No module named 'with_late_ones.gone'"):
            whole.gone.anything  # noqa: B018
    finally:
        for name in [name for name in sys.modules if name.startswith("with_late_ones")]:
            del sys.modules[name]
