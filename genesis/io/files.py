"""`save` and `load`: which format, and where the bytes go to and come from."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from types import ModuleType
from typing import IO, Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.graph.tensor import Tensor
from genesis.io import safetensors
from genesis.io.atomic import replacing
from genesis.io.location import CallersError, Placement, placement
from genesis.io.pytorch import files as pytorch
from genesis.io.pytorch import legacy
from genesis.io.source import Damaged, Source, reading

_PYTORCH = (".pt", ".pth", ".bin")  # suffixes of files that PyTorch reads
_ENCODINGS = ("utf-8", "ascii", "latin1", "bytes")


def save(
    obj: Any,
    f: Any,
    metadata: dict[str, str] | None = None,
    *,
    format: str | None = None,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, and nested containers of tensors, NumPy values, numbers and strings, to a file.

    The file appears whole or not at all: what is written goes to a temporary file that takes the name at the end.
    Symbolic links are followed; a file that exists keeps its mode and owner; pipes and character devices are written
    to. Tensors that share memory share it after `load`. A flat dict of tensors makes a plain safetensors file, which
    every reader of the format understands; what else there is, is described in the header. Names that end in ``.pt``,
    ``.pth`` or ``.bin`` make files that ``torch.load`` of PyTorch reads; NumPy arrays are tensors there, and NumPy
    scalars numbers. They say whether a tensor was on a GPU, where `load` puts it again, as do others but those that are asked to
    be safetensors, by a name that ends in ``.safetensors`` or ``format``: `load` puts what they hold on the CPU unless it is
    told otherwise.

    Args:
        obj: tensors, parameters, NumPy arrays and scalars, None, numbers, strings, bytes, dtypes, devices, and lists,
            tuples, sets, dicts and OrderedDicts of them; in PyTorch's format, which a file then has unless ``format``
            says otherwise, also objects that Python can pickle
        f: a path, or a binary file object with ``write``
        metadata: strings for the header of a safetensors file
        format: "safetensors" or "torch", whatever the name
        pickle_module, pickle_protocol: PyTorch's; what is written does not depend on them, and each version of PyTorch
            since 1.6 reads it

    Raises:
        TypeError: something that cannot be saved
        ValueError: a name that safetensors files reserve (``__metadata__``, ``genesis.structure``), or an unknown
            format
        RuntimeError: a tensor without data (of the meta device)
        OSError: the folder or the file cannot be written to, or is no file

    >>> import genesis, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> genesis.save({"w": genesis.ones(2)}, path); genesis.load(path)
    {'w': tensor([1., 1.])}
    """
    if isinstance(metadata, ModuleType):  # pickle, which PyTorch has in this place
        metadata = None
    free = format is None and not _name(f).endswith(".safetensors")  # nobody asked for that format
    chosen = _format(f) if format is None else format
    write = _writer(obj, metadata, chosen, format is None, free)  # what cannot be saved is refused here
    try:
        with _opened(f) as file:
            write(lambda piece: _write_all(file, piece))
    except OSError as error:
        del obj, write  # a program that keeps the error keeps no tensors
        raise error.with_traceback(None) from None


def _name(f: Any) -> str:
    name = f if isinstance(f, str | bytes | os.PathLike) else getattr(f, "name", "")
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""


def _format(f: Any) -> str:
    return "torch" if _name(f).endswith(_PYTORCH) else "safetensors"


def _writer(
    obj: Any, metadata: dict[str, str] | None, format: str, free: bool, devices: bool
) -> Callable[[Callable[[Any], None]], None]:
    if format == "torch":
        if metadata:
            raise ArgumentValueError(
                message(
                    "save",
                    "PyTorch's format has no metadata",
                    hint='format="safetensors", or a dict around what is saved',
                )
            )
        return pytorch.writer(obj)
    if format != "safetensors":
        raise ArgumentValueError(message("save", f"format {format!r} is not known", hint='"safetensors" or "torch"'))
    try:
        pieces = safetensors.pieces(obj, metadata, devices)
    except ArgumentError:
        if not free or metadata:
            raise
        return pytorch.writer(obj)  # it holds objects of the program's classes

    def write(put: Callable[[Any], None]) -> None:
        for piece in pieces:
            put(piece)

    return write


def _opened(f: Any) -> contextlib.AbstractContextManager[IO[bytes]]:
    if isinstance(f, str | bytes | os.PathLike):
        return replacing(os.fsdecode(f))
    if callable(getattr(f, "write", None)) and not isinstance(f, io.TextIOBase):
        return contextlib.nullcontext(f)
    hint = 'open(path, "wb")' if isinstance(f, io.TextIOBase) else "a path, or a file opened with open(path, 'wb')"
    raise ArgumentError(message("save", f"cannot write to {type(f).__name__}", hint=hint))


def _write_all(file: Any, piece: Any) -> None:
    view = memoryview(piece)
    while len(view):
        written = file.write(view)
        if type(written) is not int or written >= len(view):  # only raw files write less than they are given
            return
        view = view[written:]


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
    device: Any = None,
) -> Any:
    """Read what `save` wrote, any safetensors file, or a checkpoint of PyTorch (``.pt``, ``.pth``,
    ``pytorch_model.bin``).

    The content says which. Of a checkpoint's pickle only tensors, containers and numbers are built, by an interpreter
    that can call nothing else; ``weights_only=False`` also makes objects of classes that the program has imported: empty
    ones that get their state. Nothing that a file names is imported or called, but for ``__setstate__`` of such a class, and
    for what the program itself says is safe (``torch.serialization.add_safe_globals``).
    Files of a megabyte
    and more are mapped into memory: their pages are read when they are used, and writing to a tensor does not change
    the file. Do not let another program write *into* a file that is mapped (`save` does not, it replaces files);
    ``mmap=False`` reads everything at once.

    Args:
        f: a path, or a binary file object with ``read``
        map_location: a device, a dict from devices to devices, or a callable of a storage and the device it was on,
            that returns a storage or None
        mmap: True maps files of any size, False none
        encoding: of byte strings that Python 2 wrote ("utf-8", "ascii", "latin1"); "bytes" leaves them as they are
        device: another name of ``map_location``

    Raises:
        ValueError: a file of another kind, or one that is cut off or damaged in any way, or needs more than tensors and
            containers; the message names it and says what is wrong
        RuntimeError: tensors that were saved on a device that is not here, and no ``map_location``
        OSError: the file cannot be read

    >>> import genesis, io
    >>> file = io.BytesIO()
    >>> genesis.save([genesis.ones(2), "text", 3], file); _ = file.seek(0)
    >>> genesis.load(file)
    [tensor([1., 1.]), 'text', 3]
    """
    _check_options(pickle_module, weights_only, mmap)
    if encoding.lower() not in _ENCODINGS:
        raise ArgumentValueError(
            message("load", f"encoding {encoding!r} is not supported", hint=" or ".join(_ENCODINGS))
        )
    if device is not None and map_location is not None:
        raise ArgumentValueError(message("load", "device and map_location are two names of one argument"))
    where = placement(device if map_location is None else map_location)
    try:
        with reading(f, mmap) as source:
            return _read(source, where, encoding.lower(), weights_only is False)
    except CallersError as error:
        raise error.error from None


def _check_options(pickle_module: Any, weights_only: Any, mmap: Any) -> None:
    for name, value in (("weights_only", weights_only), ("mmap", mmap)):
        if value is not None and not isinstance(value, bool):
            raise ArgumentError(message("load", f"{name} must be True, False or None, got {type(value).__name__}"))
    if pickle_module is not None and getattr(pickle_module, "__name__", None) != "pickle":
        raise UnsupportedError(
            message("load", "pickle_module is not supported: nothing is ever unpickled by Python", hint="leave it out")
        )


def _read(source: Source, where: Placement, encoding: str, objects: bool) -> Any:
    if safetensors.looks_like(source) or source.size < 8:
        return safetensors.read(source, lambda tensor, location: _moved(tensor, location, where))
    start = source.read(0, min(source.size, len(legacy.START)))
    if start.startswith(b"PK\x03\x04"):
        return pytorch.read(source, where, encoding, objects)
    if start == legacy.START:
        return legacy.read(source, where, encoding)
    raise Damaged(_what_is(source))


def _moved(tensor: Tensor, location: str, where: Placement) -> Tensor:
    target = where(tensor.numpy_view(), location).device
    return tensor if target.type == "cpu" else tensor.to(device=target)  # type: ignore[attr-defined]


def _what_is(source: Source) -> str:
    """What a file that cannot be read looks like."""
    start = source.read(0, min(source.size, 8))
    for sign, kind in ((b"\x80", "a pickle, which is never loaded"), (b"\x93NUMPY", "a NumPy file"),
                       (b"{", "a text file"), (b"\x89HDF", "an HDF5 file"), (b"GGUF", "a GGUF file")):  # fmt: skip
        if start.startswith(sign):
            return f"is neither a safetensors file nor a PyTorch checkpoint, it looks like {kind}"
    return "is neither a safetensors file nor a PyTorch checkpoint"
