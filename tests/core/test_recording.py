"""A node of the graph is made in one function, and in the fast paths, which say the same."""

from __future__ import annotations

import ast
from pathlib import Path

import genesis
from genesis.core.functions.calling import text

CORE = Path(genesis.__file__).parent
FIELDS = {"_at", "_code", "_dtype", "_edges", "_epoch", "_hooks", "_number", "_saved", "_shape"}
FAST = {("core/call/fast.py", "call"), ("core/call/fast.py", "operator")}


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def own(function: ast.FunctionDef) -> list[ast.AST]:
    """What is in a function, without what is in functions inside."""
    found, ahead = [], list(function.body)
    while ahead:
        node = ahead.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef):
            ahead.extend(ast.iter_child_nodes(node))
    return found


def fields(function: ast.FunctionDef) -> set[str]:
    """The fields of a node that a function sets."""
    stores = (n for n in own(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in stores if n.attr in FIELDS}


def test_the_fields_are_those_of_a_node():
    slots = set(genesis.core.graph.node.Node.__slots__) - {"__weakref__"}
    assert slots == FIELDS


def test_nodes_are_made_in_one_function_and_in_the_fast_paths():
    makers = set()
    for path in sorted(CORE.rglob("*.py")):
        if path.name != "tiny.py":
            file = path.relative_to(CORE).as_posix()
            makers |= {(file, f.name) for f in functions(path) if {"_number", "_code"} <= fields(f)}
    # a Function in general has its context before it has a result
    assert makers == {*FAST, ("core/graph/node.py", "recorded"), ("core/functions/general.py", "_apply_plain")}


def test_the_fast_paths_set_every_field_in_the_same_way():
    blocks = set()
    written = [f for file, name in FAST for f in functions(CORE / file) if f.name == name and "_number" in fields(f)]
    assert len(written) == len(FAST)
    # `apply` of a Function is written for its number of arguments
    made = [ast.parse(text(arity, attributes)).body[0] for arity in (None, 1, 2, 8) for attributes in (False, True)]
    for function in (*written, *made):
        assert fields(function) == FIELDS
        (body,) = [
            body
            for node in ast.walk(function)
            for body in (getattr(node, "body", []),)
            if isinstance(body, list) and any(ast.unparse(s).endswith("_number = next_number()") for s in body)
        ]
        start = next(i for i, s in enumerate(body) if ast.unparse(s).endswith("_number = next_number()"))
        block = "\n".join(ast.unparse(s) for s in body[start : start + 5])
        blocks.add(block)
    assert len(blocks) == 1
    assert next(iter(blocks)).splitlines()[-1].strip() == "users = code"
