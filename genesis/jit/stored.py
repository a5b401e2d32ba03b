"""Programs in files, and their digests.

A file is a zip archive: ``program.json``, and ``constants/0``, ``constants/1``, ... with the bytes of the constants,
row by row and little-endian. In the JSON a variable is its number (those of the outside first, in order, then the
results of calls) and an argument is what
`arguments.to_plain` says.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import device
from genesis.base.errors import GraphError, message
from genesis.base.late import Late
from genesis.core.graph.site import Site
from genesis.jit.arguments import Var, from_plain, to_plain
from genesis.jit.program import Alias, Call, Leaf, Program, Write

if TYPE_CHECKING:
    import zipfile
else:
    zipfile = Late("zipfile")

FORMAT = "genesis program 1"


def digest(program: Program) -> str:
    """A hash of what decides about numbers; neither names nor lines do."""
    data = to_data(program)
    del data["name"], data["sites"]
    sha = hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
    for _, array in program.constants:
        sha.update(bytes_of(array))
    return sha.hexdigest()


def save(program: Program, path: Any) -> None:
    """See `Program.save`."""
    with archive_at(path) as archive:
        for name, part in parts_of(program):
            archive.writestr(name, part)


@contextmanager
def archive_at(path: Any) -> Iterator[zipfile.ZipFile]:
    """A new archive, which has its name when it is complete."""
    temporary = f"{os.fspath(path)}.{os.getpid()}"
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            yield archive
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def parts_of(program: Program) -> Iterator[tuple[str, str | bytes]]:
    """What a file has of a program, by name."""
    yield "program.json", json.dumps(to_data(program), indent=1, allow_nan=False)
    for i, (_, array) in enumerate(program.constants):
        yield f"constants/{i}", bytes_of(array)


def load(path: Any) -> Program:
    """See `Program.load`."""
    try:
        with zipfile.ZipFile(path) as archive:
            return program_of(archive, path)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise GraphError(message("load", f"this is no program, or a damaged one: {error}", [("file", path)])) from None


def program_of(archive: zipfile.ZipFile, path: Any) -> Program:
    """The program in an archive."""
    data = json.loads(archive.read("program.json"))
    if data["format"] != FORMAT:
        text = f"the format is {data['format']!r}, this version reads {FORMAT!r}"
        raise GraphError(message("load", text, [("file", path)]))
    parts = [archive.read(f"constants/{i}") for i in range(len(data["constants"]))]
    return from_data(data, parts).verify()


# ---- to lists and dictionaries, and back


def to_data(program: Program) -> dict[str, Any]:
    """A program without the bytes of its constants, as what JSON knows."""
    numbers = {var: i for i, var in enumerate((*program.outside, *[v for call in program.calls for v in call.outs]))}
    number = numbers.__getitem__
    return {
        "format": FORMAT,
        "name": program.name,
        "arguments": [spec_to_data(v.spec) for v in program.arguments],
        "captured": [spec_to_data(v.spec) for v in program.captured],
        "constants": [spec_to_data(v.spec) for v, _ in program.constants],
        "numbers": [[spec_to_data(v.spec), after] for v, after in program.numbers],
        "counts": program.counts,
        "streams": list(program.streams),
        "leaves": [
            [x.kind, x.index, spec_to_data(x.spec), None if x.var is None else spec_to_data(x.var.spec), x.present]
            for x in program.leaves
        ],
        "calls": [
            [call.op, to_plain(call.args, number), [spec_to_data(v.spec) for v in call.outs]] for call in program.calls
        ],
        "results": [to_plain(r, number) for r in program.results],
        "writes": [[w.kind, w.index, None if w.value is None else number(w.value)] for w in program.writes],
        "made": [number(v) for v in program.made],
        "aliases": [
            [i, a.kind, a.index, [[name, to_plain(args, number)] for name, args in a.steps], a.same]
            for i, a in program.aliases
        ],
        "laid_out": program.laid_out,
        "sites": [None if call.site is None else list(call.site) for call in program.calls],
    }


def from_data(data: dict[str, Any], parts: list[bytes]) -> Program:
    """The program of `to_data`, and of the bytes of its constants."""
    variables: list[Var] = []

    def new(spec: Any) -> Var:
        variables.append(Var(spec_from_data(spec)))
        return variables[-1]

    def read(value: Any) -> Any:
        return from_plain(value, variables.__getitem__)

    arguments, captured = tuple([new(s) for s in data["arguments"]]), tuple([new(s) for s in data["captured"]])
    constants = tuple([_constant(new(spec), part) for spec, part in zip(data["constants"], parts, strict=True)])
    numbers = tuple([(new(spec), after) for spec, after in data["numbers"]])
    leaves = tuple(
        [
            Leaf(kind, index, spec_from_data(spec), None if var is None else new(var), present)
            for kind, index, spec, var, present in data["leaves"]
        ]
    )
    calls = []
    for (op, args, outs), site in zip(data["calls"], data["sites"], strict=True):
        given = read(args)  # before its results have numbers
        calls.append(Call(op, given, tuple([new(s) for s in outs]), None if site is None else Site(*site)))
    return Program(
        data["name"],
        tuple(calls),
        arguments,
        captured,
        constants,
        numbers,
        data["counts"],
        tuple(data["streams"]),
        leaves,
        results=tuple([read(r) for r in data["results"]]),
        writes=tuple(
            [Write(kind, index, None if value is None else variables[value]) for kind, index, value in data["writes"]]
        ),
        made=tuple([variables[i] for i in data["made"]]),
        aliases=tuple(
            [
                (i, Alias(kind, index, tuple([(name, read(args)) for name, args in steps]), same))
                for i, kind, index, steps, same in data["aliases"]
            ]
        ),
        laid_out=data["laid_out"],
    )


def _constant(var: Var, part: bytes) -> tuple[Var, np.ndarray[Any, Any]]:
    return var, array_of(var.spec, part)


def array_of(spec: Spec, part: bytes) -> np.ndarray[Any, Any]:
    """The array of some bytes."""
    array = np.frombuffer(part, spec.dtype.newbyteorder("<") if spec.dtype.kind in "iufc" else spec.dtype).astype(
        spec.dtype, copy=False
    )
    return array.reshape(spec.shape)


def bytes_of(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array, row by row and little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind in "iufc" else array
    return little.tobytes()


def spec_to_data(spec: Spec) -> list[Any]:
    """A spec as what JSON knows."""
    return [
        dtypes.from_numpy(spec.dtype).name,
        list(spec.shape),
        None if spec.strides is None else list(spec.strides),
        str(spec.device),
    ]


def spec_from_data(data: Any) -> Spec:
    """What `spec_to_data` was given."""
    kind, shape, strides, index = data
    return Spec(tuple(shape), _dtype(kind), _device(index), None if strides is None else tuple(strides))


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    return dtypes.as_np(dtypes.as_dtype(name))


@functools.cache
def _device(name: str) -> device:
    return device(name)
