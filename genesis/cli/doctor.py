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
from genesis.base.blas import blas_threads
from genesis.cli.terminal import Terminal

DISTRIBUTION = "genesis-dl"
NEEDED = ("numpy", "ml_dtypes", "tqdm")
OPTIONAL = {  # what each adds, and the command that installs it
    "llvmlite": (
        "machine code: genesis.compile, convolutions, pooling, recurrent layers, functions, steps of Adam",
        f'pip install "{DISTRIBUTION}[jit]"',
    ),
    "onnx": ("genesis.onnx", f'pip install "{DISTRIBUTION}[onnx]"'),
    "scikit-learn": ("genesis.sklearn, and data sets", f'pip install "{DISTRIBUTION}[sklearn]"'),
    "pillow": ("pictures: genesis.datasets.ImageFolder", f'pip install "{DISTRIBUTION}[images]"'),
    "cuda-bindings": ("GPUs of NVIDIA: genesis.cuda", f'pip install "{DISTRIBUTION}[cuda]"'),
    "triton": ("kernels for GPUs of NVIDIA", f'pip install "{DISTRIBUTION}[cuda]"'),
    "nvmath-python": (
        "products, Fourier transforms and factors of matrices on GPUs by NVIDIA's libraries",
        f'pip install "{DISTRIBUTION}[cuda-libraries]"',
    ),
    "nvidia-cudnn-frontend": (
        "attention and convolutions on GPUs by cuDNN",
        f'pip install "{DISTRIBUTION}[cuda-libraries]"',
    ),
    "nccl4py": ("tensors on GPUs of several processes, by NCCL", f'pip install "{DISTRIBUTION}[cuda-libraries]"'),
    "tensorboard": ("genesis.utils.tensorboard", "pip install tensorboard"),
    "mkdocs-material": ("rendered pages of genesis docs, from the source", 'pip install -e ".[docs]"'),
    "torch": ("comparison with PyTorch in tests and benchmarks", "pip install torch==2.13.0"),
    "pytest": ("the tests", f'pip install "{DISTRIBUTION}[test]"'),
    "einops": ("its tests with Genesis tensors", f'pip install "{DISTRIBUTION}[test]"'),
}

LEAST = {"llvmlite": "0.45"}  # older ones are not used: see `genesis.kernels.llvm.native`


def doctor() -> int:
    """Print what is here; 1 if something is wrong."""
    terminal = Terminal()
    rows = [
        ("genesis", f"{genesis.__version__}  {Path(genesis.__file__).parent}"),
        ("python", f"{platform.python_version()}  {sys.executable}"),
    ]
    rows += [(name, _version(name) or "missing") for name in NEEDED]
    rows += [
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("processor", f"{os.cpu_count()} cores; {_features()}"),
    ]
    rows += [("BLAS", _blas()), ("threads", threads()), ("GPU", gpus())]
    terminal.table(rows)
    terminal.line()
    terminal.table([optional_row(name) for name in OPTIONAL])
    problems = [f"{name} is missing: pip install {name}" for name in NEEDED if not _version(name)]
    problems += other_owners()
    terminal.line()
    for problem in problems:
        terminal.result(False, problem)
    if not problems:
        terminal.result(True, "everything that Genesis needs is here")
    return 1 if problems else 0


def optional_row(name: str) -> tuple[str, str, str]:
    """An optional part: its version, or the command that installs it, and what it adds."""
    what, command = OPTIONAL[name]
    version = _version(name)
    if version and _numbers(version) < _numbers(LEAST.get(name, "0")):
        return name, f"{version}, too old", f"{LEAST[name]} or newer adds {what}: {command}"
    return name, version or "not installed", f"adds {what}" + ("" if version else f": {command}")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2] if part.isdecimal()]


def other_owners() -> list[str]:
    """Warnings about other distributions that install the import name ``genesis``."""
    owners = importlib.metadata.packages_distributions().get("genesis", [])
    others = sorted({name for name in owners if name.lower().replace("_", "-") != DISTRIBUTION})
    return [
        f"the distribution {name!r} also owns the import name genesis: pip uninstall {name}, then pip install "
        f"--force-reinstall {DISTRIBUTION}"
        for name in others
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _features() -> str:
    """Vector instructions that NumPy found."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:
        return "unknown features"
    wanted = ("AVX2", "FMA3", "AVX512F", "AVX512_SPR", "ASIMD", "NEON", "SVE")
    return ", ".join(name for name in wanted if features.get(name)) or "no vector extensions"


def _blas() -> str:
    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    threads = blas_threads()
    counted = "" if threads is None else f"; {threads} of its threads for NumPy, 1 inside Genesis"
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip() + counted


def gpus() -> str:
    """The GPUs, or why there are none."""
    from genesis import cuda

    names = [cuda.get_device_name(index) for index in range(cuda.device_count())]
    return ", ".join(names) or f"none: {cuda.why_unavailable()}"


def threads() -> str:
    """How many threads the BLAS was told to use."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    variables = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return ", ".join([f"{genesis.get_num_threads()} for one operation (genesis.set_num_threads)", *variables])
