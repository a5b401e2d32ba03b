"""Whole numbers among the arguments that Python only decides by, as ``if (i + 1) % 4 == 0``: one graph serves all of them for
which it would decide in the same way.

What else is done with a whole number may look into it in C, as an index, a shape or a key does, and nobody would notice:
so it is looked for in the source.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from genesis.base.pytree import TreeDef
from genesis.jit.compiling.statements import NoStatement, parsed
from genesis.jit.compiling.stops import Position

LARGEST = 1 << 53  # of the whole numbers that floats are exact for
_COMPUTED = ast.Add | ast.Sub | ast.Mult | ast.Mod | ast.FloorDiv
_COMPARED = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
_BRANCHES = ast.If | ast.While | ast.IfExp


def only_decides(
    function: Callable[..., Any], structure: TreeDef, index: int
) -> list[tuple[CodeType, Position]] | None:
    """Whether an argument of a function, a leaf of ``(args, kwargs)``, is used in conditions only, and printed.

    Returns:
        where it is printed: Python has to do that; None if it is used otherwise
    """
    own = function.__func__ if isinstance(function, MethodType) else function
    name = _name_of(function, structure, index)
    if name is None or not isinstance(own, FunctionType) or name in own.__code__.co_cellvars:
        return None
    try:
        tree = parsed(own.__code__)
    except NoStatement:
        return None
    shadowed = "print" in own.__globals__ or "print" in (*own.__code__.co_varnames, *own.__code__.co_freevars)
    prints = [] if shadowed else [s for s in ast.walk(tree) if _is_print(s) and name in _names(s)]
    printed = {id(n) for s in prints for n in ast.walk(s)}
    if not all([decides or id(n) in printed for n, decides in _uses(tree, False) if n.id == name]):
        return None
    return [(own.__code__, (s.lineno, s.col_offset)) for s in prints]


def _is_print(node: Any) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _name_of(function: Callable[..., Any], structure: TreeDef, index: int) -> str | None:
    """The parameter that an argument is for; None of what is inside of one, or one of several."""
    positional, named = structure.children
    children, kinds, at = [*positional.children, *named.children], inspect.Parameter, 0
    for i, child in enumerate(children):
        if at == index and child.kind is None:
            if i >= len(positional.children):
                name = named.rest[i - len(positional.children)]
                return name if name in inspect.signature(function).parameters else None
            plain = [p.name for p in inspect.signature(function).parameters.values()
                     if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]  # fmt: skip
            return plain[i] if i < len(plain) else None
        at += child.num_leaves
    return None


def _uses(node: ast.AST, decides: bool) -> Iterator[tuple[ast.Name, bool]]:
    """The names in a tree, and whether Python only decides by each."""
    if isinstance(node, ast.Name):
        yield node, decides and isinstance(node.ctx, ast.Load)
        return
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _uses(child, _goes_on(node, field, decides))


def _goes_on(node: ast.AST, field: str, decides: bool) -> bool:
    """Whether Python only decides by a part of a tree, if it does by the whole."""
    if isinstance(node, _BRANCHES) and field == "test":
        return True
    if isinstance(node, ast.BoolOp):
        return decides
    if isinstance(node, ast.UnaryOp):
        return decides and isinstance(node.op, ast.Not | ast.USub)
    if isinstance(node, ast.Compare):
        return decides and all([isinstance(op, _COMPARED) for op in node.ops])
    return decides and isinstance(node, ast.BinOp) and isinstance(node.op, _COMPUTED)
