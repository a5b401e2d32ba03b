"""``torch.hub``: models and weights that are on this machine, where PyTorch would look for them; nothing is downloaded."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

import genesis
from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.pytorch.stand_ins.common import Values, values

_HINT = "build the model in the program, and torch.load its weights"
_chosen: list[str] = []  # what set_dir was given


def get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of what was downloaded before."""
    return _chosen[-1] if _chosen else os.path.join(get_torch_home(), "hub")


def set_dir(d: str) -> None:
    _chosen[:] = [os.path.expanduser(d)]


def _missing(name: str, path: Path) -> UnsupportedError:
    return UnsupportedError(message(f"torch.hub.{name}", f"nothing is downloaded, and there is no {path}", hint=_HINT))


def load_state_dict_from_url(
    url: str, model_dir: Any = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """The weights of a URL, if they were downloaded before."""
    path = Path(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or os.path.basename(urlparse(url).path))
    if not path.exists():
        raise _missing("load_state_dict_from_url", path)
    return genesis.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    raise UnsupportedError(message("torch.hub.download_url_to_file", "nothing is downloaded"))


# ---- models of a repository, by its hubconf.py


def _folder(name: str, repo: str, source: str) -> Path:
    """Where a repository lies: as given, or ``owner_name_branch`` among those that were downloaded."""
    if source not in ("github", "local"):
        raise ArgumentValueError(message(f"torch.hub.{name}", f'source is "github" or "local", got {source!r}'))
    if source == "local":
        return Path(repo).expanduser()
    path, _, branch = repo.partition(":")
    stem = path.replace("/", "_")
    folders = [Path(get_dir(), f"{stem}_{each}") for each in ([branch] if branch else ["main", "master"])]
    return next((each for each in folders if each.is_dir()), folders[0])


def _entries(name: str, repo: str, source: str) -> ModuleType:
    file = _folder(name, repo, source) / "hubconf.py"
    if not file.exists():
        raise _missing(name, file)
    spec = importlib.util.spec_from_file_location("hubconf", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


def _entry(name: str, repo: str, source: str, model: str) -> Callable[..., Any]:
    entry = getattr(_entries(name, repo, source), model, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return entry  # type: ignore[no-any-return]


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None, force_reload: bool = False,
         verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """What the function ``model`` of a repository's hubconf.py gives."""
    return _entry("load", repo_or_dir, source, model)(*args, **kwargs)


def names_of_models(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
                    verbose: bool = True) -> list[str]:  # fmt: skip
    """The functions of a hubconf.py."""
    entries = vars(_entries("list", github, "github")).items()
    return [name for name, value in entries if callable(value) and not name.startswith("_")]


def help_of(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
            trust_repo: Any = None) -> str | None:  # fmt: skip
    """The docstring of a model's function."""
    return _entry("help", github, "github", model).__doc__


@values("torch.hub")
def _hub() -> Values:
    return {
        "load": load, "list": names_of_models, "help": help_of, "get_dir": get_dir, "set_dir": set_dir,
        "_get_torch_home": get_torch_home, "load_state_dict_from_url": load_state_dict_from_url,
        "download_url_to_file": download_url_to_file, "HASH_REGEX": re.compile(r"-([a-f0-9]*)\."), "urlparse": urlparse,
    }  # fmt: skip


values("torch.utils.model_zoo")(lambda: {"load_url": load_state_dict_from_url})
