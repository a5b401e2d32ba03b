"""Training steps of a program as functions: what `genesis.compile` decorates in a program that was written with it in mind.

A step is what stands in one suite from where gradients are forgotten, or what is differentiated is computed, to `step()` of an optimizer behind
`backward()`. It becomes a function of its own, in front of the statement at the top of the file that it stood in; what it reads that is local comes
as arguments, what it sets is returned.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

REFUSED = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.FunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Delete, ast.Import, ast.ImportFrom)  # fmt: skip
DATA = ("next", "from_numpy", "Variable", "to", "cuda", "type", "get_batch", "sample", "randint", "float", "long")


def outlined(source: str) -> str:
    """The program with its steps as functions; as it was, where there are none."""
    tree = ast.parse(source)
    body: list[ast.stmt] = []
    count = 0
    for statement in tree.body:
        for suite, local in list(_suites(statement, None)):
            made = _outline(suite, local or _counted(tree), f"outlined_step_{count}")
            if made is not None:
                body.append(made)
                count += 1
        body.append(statement)
    tree.body = body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if count else source


def _suites(node: ast.AST, local: set[str] | None) -> Iterator[tuple[list[ast.stmt], set[str] | None]]:
    """The lists of statements below a node, inner ones first, with the names that are local there (None: at the top)."""
    if isinstance(node, ast.FunctionDef):
        local = (local or set()) | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)} | set(_set(node.body))
    for child in ast.iter_child_nodes(node):
        yield from _suites(child, local)
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if isinstance(suite, list) and isinstance(node, ast.For | ast.While | ast.With | ast.FunctionDef | ast.If):
            yield suite, local


def _counted(tree: ast.Module) -> set[str]:
    """What loops outside of functions set: global, but another value in each step."""
    loops = [
        n
        for s in tree.body
        if not isinstance(s, ast.FunctionDef | ast.ClassDef)
        for n in ast.walk(s)
        if isinstance(n, ast.For | ast.While)
    ]
    return set(_set(loops))


def _outline(suite: list[ast.stmt], local: set[str], name: str) -> ast.FunctionDef | None:
    """Put a call in the place of the step in a suite; the function that it calls."""
    ends = [i for i, s in enumerate(suite) if _method(s) == "step"]
    backwards = [i for i, s in enumerate(suite) if _method(s) == "backward" and any(i < end for end in ends)]
    if not backwards:
        return None
    end = next(e for e in ends if e > backwards[-1])
    part = suite[_begin(suite, backwards[0]) : end + 1]
    inside = [n for s in part for n in ast.walk(s)]
    loops = [n for s in part for n in ast.walk(s) if isinstance(n, ast.For | ast.While)]
    leaving = any(isinstance(n, ast.Break | ast.Continue) for n in inside) and not loops
    if leaving or any(isinstance(n, REFUSED) for n in inside):
        return None
    outputs = sorted(set(_set(part)))
    certain: set[str] = set()
    reads: set[str] = set()
    for statement in part:
        loaded = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        loaded |= {s.target.id for s in ast.walk(statement) if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name)}  # fmt: skip
        reads |= loaded - certain
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            certain |= set(_set([statement]))
    if set(outputs) - certain:  # set on some ways only
        return None
    inputs = sorted(n for n in reads if (n in outputs or n in local) and not hasattr(builtins, n))
    function = ast.parse(f"@__import__('torch').compile\ndef {name}({', '.join(inputs)}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [*part, *ast.parse(f"return ({''.join(n + ', ' for n in outputs)})").body]
    call = f"{name}({', '.join(inputs)})"
    start = suite.index(part[0])
    suite[start : end + 1] = ast.parse(f"({''.join(n + ', ' for n in outputs)}) = {call}" if outputs else call).body
    return function


def _begin(suite: list[ast.stmt], backward: int) -> int:
    """Where the step begins whose `backward` is there."""
    zero = [i for i, s in enumerate(suite[:backward]) if _method(s) == "zero_grad"]
    start = backward
    while (
        start and isinstance(suite[start - 1], ast.Assign | ast.Expr | ast.AugAssign) and not _is_data(suite[start - 1])
    ):
        start -= 1
    return min([start, *zero[:1]])


def _is_data(statement: ast.stmt) -> bool:
    calls = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call)]
    names = {f.id if isinstance(f, ast.Name) else f.attr for f in calls if isinstance(f, ast.Name | ast.Attribute)}
    is_print = isinstance(statement, ast.Expr) and "print" in names
    return is_print or (bool(names & set(DATA)) and "backward" not in names)


def _method(statement: ast.stmt) -> str:
    """The method that a statement is a call of."""
    value = getattr(statement, "value", None) if isinstance(statement, ast.Expr | ast.Assign) else None
    return value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""


def _set(statements: list[ast.stmt]) -> Iterator[str]:
    """The names that statements set, without those of functions and comprehensions in them."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield from (a.asname or a.name.split(".")[0] for a in node.names)
        waiting += ast.iter_child_nodes(node)
