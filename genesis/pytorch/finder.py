"""``import torch`` gives Genesis: modules under PyTorch's names, made when they are imported."""

from __future__ import annotations

import dis
import functools
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from genesis.base.deterministic import switches
from genesis.base.errors import ArgumentValueError, MissingImport, message
from genesis.pytorch.libraries import of_a_library
from genesis.pytorch.modules import find, has_module
from genesis.pytorch.names import exists, names
from genesis.pytorch.reasons import why_absent
from genesis.pytorch.stand_ins.common import absent

# as in ``optim.__dict__[name]``
_LISTED = ("torch.distributions", "torch.nn", "torch.optim")

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class TorchModule(ModuleType):
    """A module of PyTorch's name, whose attributes are Genesis's."""

    __path__: list[str] = []  # it may have modules inside

    def __getattr__(self, name: str) -> Any:
        if (self.__name__, name) == ("torch.backends.cudnn", "deterministic"):
            return switches.cudnn
        if name == "__all__":  # for ``from torch.nn import *``
            return [n for n in names().get(self.__name__, ()) if hasattr(self, n)]
        try:
            value = find(self.__name__, name)
        except AttributeError as error:
            importer = sys._getframe(1)
            if not _imports(importer):
                raise
            if of_a_library(importer):
                return absent(f"{self.__name__}.{name}", why_absent(f"{self.__name__}.{name}"))
            if exists(self.__name__, name):
                raise MissingImport(str(error)) from None  # Python would say less
            raise
        if self.__name__ != "torch.ops":  # programs declare and remove operations
            setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, TorchModule) and self._has_function(name):
            return  # ``import torch.nn.utils.weight_norm`` leaves the function of that name where it is
        if (self.__name__, name) == ("torch.backends.cudnn", "deterministic"):
            switches.cudnn = bool(value)
            return
        super().__setattr__(name, value)

    def _has_function(self, name: str) -> bool:
        try:
            return not isinstance(find(self.__name__, name), ModuleType)
        except AttributeError:
            return False

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__getattr__("__all__")})

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' of Genesis>"


def _imports(frame: Any) -> bool:
    """Whether a frame stands at a ``from ... import name``."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and code[at] == _IMPORT_FROM


def _importer() -> tuple[Any, bool]:
    """The frame whose ``import`` looks for a module, behind those of Python's own machinery; and whether it is a
    ``from ... import name``, which may mean a module of that name.
    """
    frame, named = sys._getframe(2), False
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        named = named or frame.f_code.co_name == "_handle_fromlist"
        frame = frame.f_back
    return frame, named


class _Finder(MetaPathFinder, Loader):
    """Finds ``torch`` and what is in it, and ``functorch``, which PyTorch brings along."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "functorch":
            return ModuleSpec(fullname, self, origin="genesis")
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        if not has_module(fullname):
            importer, named = _importer()
            if not of_a_library(importer):
                raise MissingImport(f"{fullname} is not in Genesis: {why_absent(fullname)}")
            if named:
                return None  # the name is asked for next
        return ModuleSpec(fullname, self, origin="genesis", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name) if spec.name == "functorch" else TorchModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Attributes are found when they are asked for, but for modules that programs look through with ``vars``."""
        if module.__name__ == "functorch":
            functions = importlib.import_module("genesis.pytorch.functorch")
            vars(module).update((name, getattr(functions, name)) for name in ("__all__", *functions.__all__))
        if module.__name__.startswith("torch.utils.tensorboard") and importlib.util.find_spec("tensorboard") is None:
            text = "torch.utils.tensorboard needs the package tensorboard"  # programs go without it where this fails
            raise MissingImport(message("import", text, hint="pip install tensorboard"))
        if module.__name__.startswith(_LISTED):
            for name in module.__all__:
                getattr(module, name)


_finder = _Finder()


def module(dotted: str) -> ModuleType:
    """A module of PyTorch; where ``import torch`` does not give Genesis, one that no import finds."""
    return importlib.import_module(dotted) if _finder in sys.meta_path else _aside(dotted)


@functools.cache
def _aside(dotted: str) -> ModuleType:
    made = _finder.create_module(ModuleSpec(dotted, _finder))
    _finder.exec_module(made)
    return made


def as_torch() -> ModuleType:
    """Let ``import torch`` and its modules give Genesis from here on, in a notebook or a script; returns the module ``torch``.

    Names that are not there raise an error that says why, and what to write instead; ``genesis check script.py`` lists
    them before anything runs.

    Raises:
        ValueError: PyTorch itself was imported before

    >>> import genesis
    >>> from genesis.pytorch import installed
    >>> with installed():
    ...     import torch.nn.functional as F
    ...     F.relu(genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    real = sys.modules.get("torch")
    if real is not None and not isinstance(real, TorchModule):
        raise ArgumentValueError(
            message(
                "as_torch",
                f"PyTorch {getattr(real, '__version__', '')} is imported already",
                hint="call genesis.as_torch() before the first `import torch`, in a new process",
            )
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    return importlib.import_module("torch")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("torch", "functorch")


@contextmanager
def installed() -> Iterator[ModuleType]:
    """`as_torch` for a block, even where PyTorch is imported; after it, ``torch`` is what it was before.

    >>> from genesis.pytorch import installed
    >>> with installed() as torch:
    ...     torch.zeros(2)
    tensor([0., 0.])
    """
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
    finders = list(sys.meta_path)
    try:
        yield as_torch()
    finally:
        sys.meta_path[:] = finders
        for name in list(filter(_is_ours, sys.modules)):
            del sys.modules[name]
        sys.modules.update(before)
