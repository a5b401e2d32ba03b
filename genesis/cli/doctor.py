"""``genesis doctor``: versions, processor, BLAS and threads, optional parts and what each would add."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path

import numpy as np

import genesis
from genesis.cli.terminal import Terminal

OPTIONAL = {
    "llvmlite": "compiled kernels: large outer products, as in per-sample gradients, twice as fast",
    "torch": "comparison with PyTorch in tests and benchmarks",
    "pytest": "the tests",
    "scipy": "more references in the tests",
}


def doctor() -> int:
    """Print what is here; 1 if something is wrong."""
    terminal = Terminal()
    rows = [("genesis", f"{genesis.__version__}  {Path(genesis.__file__).parent}"), ("python", f"{platform.python_version()}  {sys.executable}")]
    rows += [(name, _version(name) or "missing") for name in ("numpy", "ml_dtypes", "safetensors", "tqdm")]
    rows += [("system", f"{platform.system()} {platform.release()} {platform.machine()}"), ("processor", f"{os.cpu_count()} cores; {_features()}")]
    rows += [("BLAS", _blas()), ("threads", _threads())]
    terminal.table(rows)
    terminal.line()
    terminal.table([(name, _version(name) or "not installed", "adds " + what) for name, what in OPTIONAL.items()])
    problems = [f"{name} is missing: pip install {name}" for name in ("numpy", "ml_dtypes", "safetensors", "tqdm") if not _version(name)]
    problems += other_owners()
    terminal.line()
    for problem in problems:
        terminal.result(False, problem)
    if not problems:
        terminal.result(True, "everything that Genesis needs is here")
    return 1 if problems else 0


def other_owners() -> list[str]:
    """Warnings about other distributions that install the import name ``genesis``."""
    owners = importlib.metadata.packages_distributions().get("genesis", [])
    others = sorted({name for name in owners if name.lower() != "genesis"})
    return [f"the distribution {name!r} also owns the import name genesis: pip uninstall {name}" for name in others]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _features() -> str:
    """Vector instructions that NumPy found."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as found
    except ImportError:
        return "unknown features"
    wanted = ("AVX2", "FMA3", "AVX512F", "AVX512_SPR", "ASIMD", "NEON", "SVE")
    return ", ".join(name for name in wanted if found.get(name)) or "no vector extensions"


def _blas() -> str:
    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _threads() -> str:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    found = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return ", ".join(found) or "as the BLAS chooses"
