"""The public names of PyTorch 2.13 for the CPU, module by module; ``torch.Tensor`` holds those of the class."""

from __future__ import annotations

import functools
import json
from pathlib import Path

VERSION = "2.13.0"


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """For each module its names."""
    stored: dict[str, str] = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
    return {module: frozenset(words.split()) for module, words in stored.items()}


def is_module(dotted: str) -> bool:
    """Whether PyTorch has a module of this name, as far as is known here."""
    known = names()
    return (dotted in known and dotted != "torch.Tensor") or any(each.startswith(dotted + ".") for each in known)


def exists(module: str, name: str) -> bool:
    """Whether a module of PyTorch has this name."""
    return name in names().get(module, ()) or is_module(f"{module}.{name}")


# packages that have all names of the modules in them
_HOUSES = (
    "torch.amp", "torch.autograd", "torch.cpu.amp", "torch.distributions", "torch.multiprocessing", "torch.nn.parallel",
    "torch.nn.utils", "torch.profiler", "torch.signal.windows", "torch.utils.tensorboard",
)  # fmt: skip


def house(module: str) -> str:
    """The package that a module shares its names with, as ``torch.distributions.normal`` does; or nothing."""
    parent = module.rpartition(".")[0]
    return parent if parent in _HOUSES or module == "torch.functional" else ""
