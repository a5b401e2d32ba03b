"""Compiled steps kept on disk, so that the next process need not plan, write code and compile it.

A file belongs to a program as it was traced: its name is a digest of that, of this package and of the processor. It
holds the program of the step, the data of `compiled`, and the name of the machine code, which is in a file of its
own beside it (see `genesis.kernels.llvm.objects`). What is damaged, or made for something else, is not used.
"""

from __future__ import annotations

import functools
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import genesis
from genesis.base.dtypes import as_np
from genesis.jit import stored
from genesis.jit.binding import Graph
from genesis.jit.lowering import pairs
from genesis.jit.lowering.compiled import Begin, Compiled, End, Host, Row, Where
from genesis.jit.lowering.step import Step, device_of, step_of
from genesis.jit.passes import optimized
from genesis.jit.program import Program
from genesis.kernels.llvm import loops, native, objects
from genesis.kernels.llvm.units import FLOAT32

_DECIDE = "arrays", "base", "core", "jit", "kernels", "ops"  # rooms: a program is traced already, with all of its steps
BF16 = as_np("bfloat16")
_KINDS = ("arena", "outside", "result", "number", "constant", "host", "flag", "stream")


def lowered(graph: Graph) -> tuple[Graph, Step]:
    """A traced graph after the passes, and its step; out of a file if there is one.

    >>> import genesis
    >>> graph = genesis.jit.trace(lambda x: x * 2 + 1, genesis.ones(3))
    >>> _, step = lowered(graph)
    >>> step.run([genesis.ones(3).numpy()])[0]
    array([3., 3., 3.], dtype=float32)
    """
    if not loops.available() or objects.folder() is None or device_of(graph.program) is not None:
        graph = optimized(graph)
        return graph, step_of(graph.program)
    how = multiplied(graph.program)
    name = objects.name_of("step", graph.program.digest, version(), how, *native.target(), suffix=objects.STEP)
    kept = _load(name, graph)
    if kept is not None:
        return kept
    after = optimized(graph)
    step = Step(after.program)
    if step.compiled is not None:
        objects.save(name, _content(graph.program, step.program, step.compiled))
    return after, step


def multiplied(program: Program) -> str:
    """The unit by which products of bfloat16 numbers are computed; empty where there are none."""
    short = any([v.spec.dtype == BF16 for call in program.calls for v in call.inputs])
    return "" if not short else pairs.unit(loops.width() // 4) or FLOAT32


@functools.cache
def version() -> str:
    """A digest of what the files of this package are that decide how a program is computed: when they were changed, and
    how long they are.
    """
    folder = os.path.dirname(genesis.__file__)
    files = [file for room in _DECIDE for file in _files(os.path.join(folder, room))]
    seen = [(path, status.st_mtime_ns, status.st_size) for path, status in files]
    return objects.name_of(repr(sorted(seen)))


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The modules in a folder and those below, with what is known of them."""
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            yield entry.path, entry.stat()
        elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)


# ---- files: the length of the JSON, the JSON, the bytes of constants


def _content(before: Program, after: Program, step: Compiled) -> bytes:
    captured, numbers = list(before.captured), [v for v, _ in before.numbers]
    constants = [stored.bytes_of(array) for _, array in after.constants]
    lines = {call.site: i for i, call in reversed(list(enumerate(before.calls)))}
    data = {
        "program": stored.to_data(after) | {"sites": [lines.get(call.site) for call in after.calls]},
        "captured": [captured.index(v) for v in after.captured],
        "numbers": [numbers.index(v) for v, _ in after.numbers],
        "constants": [len(part) for part in constants],
        "object": native.object_name(step.code),
        "step": to_plain(step),
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *constants])


def _load(name: str, graph: Graph) -> tuple[Graph, Step] | None:
    content = objects.load(name)
    if content is None:
        return None
    (length,) = struct.unpack_from("<Q", content)
    data = json.loads(content[8 : 8 + length])
    parts, at = [], 8 + length
    for size in data["constants"]:
        parts.append(content[at : at + size])
        at += size
    lines = [call.site for call in graph.program.calls]  # those of this program: the digest leaves them out
    data["program"]["sites"] = [None if i is None else lines[i] for i in data["program"]["sites"]]
    data["program"]["name"] = graph.program.name
    program = stored.from_data(data["program"], parts)
    compiled = from_plain(data["step"])
    names = list(dict.fromkeys([row.function for row in compiled.rows]))
    functions = native.kept_addresses(data["object"], names) if names else []
    if functions is None:
        return None
    binding = replace(
        graph.binding,
        captured=tuple([graph.binding.captured[i] for i in data["captured"]]),
        numbers=tuple([graph.binding.numbers[i] for i in data["numbers"]]),
    )
    return Graph(program, binding), Step(program, kept=(compiled, dict(zip(names, functions, strict=True))))


def to_plain(step: Compiled) -> dict[str, Any]:
    """A step without its code, in lists, dictionaries, strings and numbers."""
    return {
        "rows": [[row.function, row.cell, row.chunks, row.title] for row in step.rows],
        "parts": [_part_to_plain(part) for part in step.parts],
        "cells": list(chain.from_iterable([_where(w) for w in step.cells])),
        "takes": [stored.spec_to_data(spec) for spec in step.takes],
        "written": [int(flag) for flag in step.written],
        "returns": [stored.spec_to_data(spec) for spec in step.returns],
        "numbers": step.numbers,
        "hosts": step.hosts,
        "size": step.size,
        "checks": [step.checks, step.flags],
        "refusal": None if step.refusal is None else _host_to_plain(step.refusal),
        "streams": step.streams,
    }


def from_plain(data: dict[str, Any]) -> Compiled:
    """What `to_plain` was given, without its code."""
    cells = data["cells"]
    return Compiled(
        "",
        tuple([Row(*row) for row in data["rows"]]),
        tuple([_part_from_plain(part) for part in data["parts"]]),
        tuple([Where(_KINDS[kind], *at) for kind, *at in zip(cells[::3], cells[1::3], cells[2::3], strict=True)]),
        tuple([stored.spec_from_data(spec) for spec in data["takes"]]),
        tuple([bool(flag) for flag in data["written"]]),
        tuple([stored.spec_from_data(spec) for spec in data["returns"]]),
        data["numbers"],
        data["hosts"],
        data["size"],
        *data["checks"],
        None if data["refusal"] is None else _host_from_plain(data["refusal"]),
        data["streams"],
    )


def _where(where: Where) -> list[int]:
    return [_KINDS.index(where.kind), where.index, where.offset]


def _part_to_plain(part: Any) -> Any:
    if isinstance(part, Host):
        return _host_to_plain(part)
    if isinstance(part, End):
        return {"ends": part.number, "op": part.op}
    if isinstance(part, Begin):
        border = [[*_where(where), stored.spec_to_data(spec)] for where, spec in (part.given, part.made)]
        return {"begins": part.number, "program": stored.to_data(part.program), "border": border}
    return list(part)


def _part_from_plain(data: Any) -> Any:
    if isinstance(data, list):
        return data[0], data[1]
    if "ends" in data:
        return End(data["ends"], data["op"])
    if "begins" not in data:
        return _host_from_plain(data)
    given, made = [(Where(_KINDS[kind], *at), stored.spec_from_data(spec)) for kind, *at, spec in data["border"]]
    return Begin(data["begins"], stored.from_data(data["program"], []), given, made)


def _host_to_plain(host: Host) -> dict[str, Any]:
    return {
        "program": stored.to_data(host.program),
        "inputs": [[*_where(where), stored.spec_to_data(spec)] for where, spec in host.inputs],
        "outputs": list(host.outputs),
        "cells": [[index, list(cells), list(offsets)] for index, cells, offsets in host.cells],
        "over": list(host.over),
        "count": host.count,
    }


def _host_from_plain(data: dict[str, Any]) -> Host:
    return Host(
        stored.from_data(data["program"], []),
        tuple([(Where(_KINDS[kind], *at), stored.spec_from_data(spec)) for kind, *at, spec in data["inputs"]]),
        tuple(data["outputs"]),
        tuple([(index, tuple(cells), tuple(offsets)) for index, cells, offsets in data["cells"]]),
        tuple(data["over"]),
        data["count"],
    )
