"""Traced functions in files: the program and the tensors that it captured, so that another process can call it.

A file is a zip archive: that of a program (see `stored`), ``graph.json`` with the structure of arguments and results,
and ``captured/0``, ``captured/1``, ... with the bytes of the captured tensors. No code is in it, and none is run.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.errors import GraphError, message
from genesis.base.late import Late
from genesis.base.pytree import LEAF, TreeDef
from genesis.core.graph.generator import Generator, default_generator
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var, from_plain, refused, to_plain
from genesis.jit.binding import Graph, bound
from genesis.jit.stored import archive_at, array_of, bytes_of, parts_of, program_of

if TYPE_CHECKING:
    import zipfile
else:
    zipfile = Late("zipfile")

FORMAT = "genesis graph 1"
CONTAINERS: dict[str, type[Any]] = {"tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict}


def save(graph: Graph, path: Any) -> None:
    """Write a traced function to a file, with the tensors that it captured; `load` makes it callable again.

    Args:
        graph: what `trace` gave
        path: the file, by its path

    Raises:
        RuntimeError: it has what no file has a form for: gradients, numbers that the host is asked for (a learning
            rate), results that are objects of Python. Of such a trace `Program.save` stores the program alone.

    >>> import genesis, os, tempfile
    >>> model = genesis.nn.Linear(2, 1)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.graph")
    >>> genesis.jit.trace(model, genesis.ones(1, 2)).save(path)
    >>> again = genesis.jit.load(path)
    >>> genesis.equal(again(genesis.ones(1, 2)), model(genesis.ones(1, 2)))
    True
    """
    if not isinstance(graph, Graph):
        raise GraphError(
            message("save", f"a {type(graph).__name__} is no traced function", hint="jit.trace(function, *args)")
        )
    _refuse(graph)
    data = json.dumps(_to_data(graph), indent=1, allow_nan=False)
    with archive_at(path) as archive:
        for name, part in parts_of(graph.program):
            archive.writestr(name, part)
        archive.writestr("graph.json", data)
        for i, x in enumerate(graph.binding.captured):
            archive.writestr(f"captured/{i}", bytes_of(x.detach().cpu().numpy()))


def load(path: Any) -> Graph:
    """Read a traced function that `save` wrote, as a graph that can be called; no code is run.

    Random numbers are drawn from the default generator, where the function drew from it.

    Raises:
        RuntimeError: the file is no traced function, is damaged, or uses an op that is not declared here
    """
    try:
        with zipfile.ZipFile(path) as archive:
            program = program_of(archive, path)
            if "graph.json" not in archive.namelist():
                text = "this is a program without its tensors"
                raise GraphError(message("load", text, [("file", path)], "jit.Program.load, and bind"))
            data = json.loads(archive.read("graph.json"))
            if data["format"] != FORMAT:
                text = f"the format is {data['format']!r}, this version reads {FORMAT!r}"
                raise GraphError(message("load", text, [("file", path)]))
            captured = [
                wrap(np.array(array_of(var.spec, archive.read(f"captured/{i}"))))
                for i, var in enumerate(program.captured)
            ]
        return _of_data(program, captured, data)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        text = f"this is no traced function, or a damaged one: {error}"
        raise GraphError(message("load", text, [("file", path)])) from None


def _of_data(program: Any, captured: list[Tensor], data: Any) -> Graph:
    streams = [
        default_generator if state is None else Generator().set_state(_state(state)) for state in data["streams"]
    ]
    graph = bound(program, captured=captured, streams=streams)
    plain = tuple([from_plain(value, _no_variables) for value in data["plain"]])
    binding = replace(
        graph.binding, structure_in=_structure(data["in"]), structure_out=_structure(data["out"]), plain=plain
    )
    return Graph(program, binding)


def _refuse(graph: Graph) -> None:
    """Refuse what no file has a form for."""
    program, binding = graph.program, graph.binding
    wrong = {
        "gradients of tensors": program.leaves,
        "numbers of the host, as an optimizer's learning rate": program.numbers,
        "counts, as those of an optimizer's steps": binding.counts,
        "hooks": [hook for hooks in binding.hooks for hook in hooks],
        "results that are objects of Python": [x for x in binding.objects.values() if not _is_plain(x)],
        "arguments that are objects of Python": [x for x in binding.plain if not _is_plain(x)],
    }
    for what, there in wrong.items():
        if there:
            text = f"{program.name} has {what}, which no file has a form for"
            raise GraphError(message("save", text, hint="graph.program.save(path) stores the program alone"))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Var) and refused(value) is None


# ---- to lists and dictionaries, and back


def _to_data(graph: Graph) -> dict[str, Any]:
    binding = graph.binding
    states = [None if g is default_generator else g.get_state().tolist() for g in binding.streams]
    return {
        "format": FORMAT,
        "in": _plain_structure(binding.structure_in),
        "out": _plain_structure(binding.structure_out),
        "plain": [to_plain(value, _no_variables) for value in binding.plain],
        "streams": states,
    }


def _no_variables(_: Any) -> Any:
    raise TypeError("a variable where there is none")


def _state(numbers: list[int]) -> Tensor:
    return wrap(np.array(numbers, np.uint8))


def _plain_structure(tree: TreeDef) -> Any:
    if tree.kind is None:
        return None
    name = tree.kind.__name__
    if CONTAINERS.get(name) is not tree.kind:
        text = f"an argument or a result is a {name}: in files there are tuples, lists and dictionaries"
        raise GraphError(message("save", text, hint="return a tuple, or a dictionary"))
    keys = None if tree.rest is None else [to_plain(key, _no_variables) for key in tree.rest]
    return [name, keys, [_plain_structure(child) for child in tree.children]]


def _structure(data: Any) -> TreeDef:
    if data is None:
        return LEAF
    name, keys, children = data
    parts = tuple([_structure(child) for child in children])
    rest = None if keys is None else tuple([from_plain(key, _no_variables) for key in keys])
    return TreeDef(CONTAINERS[name], rest, parts, sum([part.num_leaves for part in parts]))
