"""Statements that Python runs at every call of a compiled function: a trace does not enter them, it keeps them.

    loss.backward()                                         loss.backward()
                                                            def statement(): losses.append(loss.item())
    losses.append(loss.item())                becomes       host(statement)
    optimizer.step()                                        optimizer.step()

The function is written anew for the trace, out of its source. `host` tells the trace of the statement, and where no trace is
being made it runs it.
"""

from __future__ import annotations

import ast
import copy
import gc
import inspect
import linecache
import textwrap
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from genesis.core.graph.tracing import tracer

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Assert)
_IN_BRANCHES = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert, ast.If, ast.Pass)
_REFUSED = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_ON_TENSORS = ("backward", "step", "zero_grad")  # of the trace itself: they need histories
_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)
_RETURNED = "_returned_"  # before the line and column of something, in the name of the variable that it is assigned to
STATEMENT = "statement"
KNOWN: dict[tuple[str, int, str], ast.stmt] = {}  # those that were taken out: by file, line, and name of the function


class NoStatement(Exception):
    """There is no source, or nothing that can be taken out of it."""


def host(statement: FunctionType, own: tuple[str, ...], sets: tuple[str, ...]) -> Any:
    """Run a statement, or tell the trace of it.

    Args:
        own: the variables of the function among those that it reads and sets
        sets: those that it sets
    """
    active = tracer.get()
    return statement() if active is None else active.hosts.statement(statement, own, sets)


class Rewritten:
    """The code of a function in which some statements are taken out.

    Attributes:
        now: the code
        statements: those that were taken out, by line and column
    """

    def __init__(self, code: CodeType) -> None:
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise NoStatement
        self.code, self.now = code, code
        self.tree = parsed(code)
        self.statements: dict[tuple[int, int], ast.stmt] = {}

    def copied(self) -> Rewritten:
        """The same, in which more statements may be taken out."""
        made = copy.copy(self)
        made.statements = dict(self.statements)
        return made

    def take(self, line: int, column: int | None) -> None:
        """Take out the statement at a position; without a column, of the statements of the line one that writes."""
        every = [s for s in _statements(self.tree, ()) if s.lineno <= line <= (s.end_lineno or 0)]
        if column is not None:
            here = [s for s in every if _holds(s, line, column)]
        elif len(every) > 1:
            outer = {n for s in ast.walk(self.tree) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names}
            here = [s for s in every if isinstance(s, _SIMPLE) and _writes(s, outer)]
        else:
            here = every
        taken = [(s.lineno, s.col_offset) in self.statements for s in here]
        if any(taken) and (column is not None or all(taken)):
            return
        here = [s for s, done in zip(here, taken, strict=True) if not done]
        if here and isinstance(here[-1], ast.Return) and column is not None and self._splits(here[-1]):
            return self.take(line, column)
        for statement in here[:-1] if column is None and len(every) > 1 else ():
            self._take([statement])
        self._take(here)

    def _splits(self, statement: ast.Return) -> bool:
        """Name what is returned in tuples, lists and dictionaries, so that one of these can be taken out, as the second in
        ``return loss, scores.numpy()``; whether there is such.
        """
        if not isinstance(statement.value, _DISPLAYS):
            return False
        splitting = _Splitting(statement)
        self.tree = splitting.visit(copy.deepcopy(self.tree))
        return splitting.count > 0

    def take_reads(self, text: str) -> None:
        """Take out what reads something, as ``self.count``; the outermost ``if`` that decides by it."""
        self._take([s for s in self._open() if isinstance(s, (*_SIMPLE, ast.If)) and _reads(s, text)][:1])

    def take_sets(self, name: str) -> None:
        """Take out the first statement that sets a variable."""
        self._take([s for s in self._open() if isinstance(s, _SIMPLE) and name in _names_set(s)][:1])

    @property
    def codes(self) -> set[CodeType]:
        """The code now, and that of functions in it."""
        return {self.now, *_codes(self.now)}

    def names(self, run: Collection[Any] = ()) -> set[str]:
        """The names that are read outside of what was taken out.

        Args:
            run: statements that were, and that a trace has run: by file, line, and name of the function
        """
        file = self.code.co_filename
        kept = [s for s in self.statements.values() if (file, s.lineno, _name_of(s)) not in run]
        taken = {id(n) for s in kept for n in ast.walk(s)}
        names = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in taken]
        return {n.id for n in names if isinstance(n.ctx, ast.Load)}

    def only_kept(self, run: Collection[Any]) -> list[str]:
        """The variables of outer functions that nothing but these statements reads, those that a trace has run apart."""
        read = self.names(run)
        return [name for name in self.code.co_freevars if name not in read]

    def _open(self) -> Iterator[ast.stmt]:
        """The statements that are not taken out, outer ones first."""
        return _statements(self.tree, self.statements)

    def _take(self, statements: list[ast.stmt]) -> None:
        if not statements or not isinstance(statements[-1], (*_SIMPLE, ast.If)) or not _can_be_taken(statements[-1]):
            raise NoStatement
        statement = statements[-1]
        self.statements[statement.lineno, statement.col_offset] = statement
        self.now = self._compiled()
        KNOWN[self.code.co_filename, statement.lineno, _name_of(statement)] = statement

    def _compiled(self) -> CodeType:
        function = _Taking(self).visit(copy.deepcopy(self.tree))
        free = [name for name in self.code.co_freevars if name != "__class__"]
        outer: Any = ast.parse(f"def outer({', '.join(free)}): pass").body[0]
        outer.body = [function]
        owner = self.code.co_qualname.rpartition(".")[0].rpartition(".")[2]
        if owner.isidentifier() and ("__class__" in self.code.co_freevars or _is_private(self.tree)):
            wrapper: Any = ast.parse(f"class {owner}: pass").body[0]
            wrapper.body, outer.body = [function], [wrapper]
        module = compile(ast.fix_missing_locations(ast.Module([outer], [])), self.code.co_filename, "exec")
        new = next(
            c for c in _codes(module) if c.co_name == self.code.co_name and c.co_firstlineno >= self.code.co_firstlineno
        )
        if new.co_freevars != self.code.co_freevars:
            raise NoStatement
        return new


class _Splitting(ast.NodeTransformer):
    """Puts assignments of what is returned before a ``return``."""

    def __init__(self, statement: ast.Return) -> None:
        self.at, self.count = (statement.lineno, statement.col_offset), 0

    def visit_Return(self, node: ast.Return) -> Any:  # noqa: N802
        if (node.lineno, node.col_offset) != self.at:
            return node
        parts = list[ast.stmt]()
        node.value = self._named(node.value, parts)
        self.count = len(parts)
        node.lineno, node.col_offset = (
            node.end_lineno or node.lineno,
            node.end_col_offset or 0,
        )  # none of their positions
        return [*parts, node]

    def _named(self, node: Any, parts: list[ast.stmt]) -> Any:
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Tuple | ast.List) and not any([isinstance(x, ast.Starred) for x in node.elts]):
            node.elts = [self._named(x, parts) for x in node.elts]
        elif isinstance(node, ast.Dict) and all([isinstance(key, ast.Constant) for key in node.keys]):
            node.values = [self._named(x, parts) for x in node.values]
        else:
            name = f"{_RETURNED}{node.lineno}_{node.col_offset}"
            parts.append(
                ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), node)], node), node)
            )
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return node


class _Taking(ast.NodeTransformer):
    """Puts functions in the place of statements."""

    def __init__(self, rewritten: Rewritten) -> None:
        self.statements, code = rewritten.statements, rewritten.code
        names = {n.id for n in ast.walk(rewritten.tree) if isinstance(n, ast.Name)}
        self.own = {*code.co_varnames, *code.co_cellvars, *[name for name in names if name.startswith(_RETURNED)]}
        self.free = set(code.co_freevars)
        self.declared = {n for s in ast.walk(rewritten.tree) if isinstance(s, ast.Global) for n in s.names}

    def visit(self, node: Any) -> Any:
        if not isinstance(node, ast.stmt) or (node.lineno, node.col_offset) not in self.statements:
            return super().generic_visit(node)
        set_here, used = _names_set(node), {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        own = sorted(set_here & self.own)
        lines = [f"if False: {name} = None" for name in own]
        inside = [f"nonlocal {name}" for name in (*own, *sorted(set_here & self.free))]
        inside += [f"global {name}" for name in sorted(set_here & self.declared)]
        lines += [f"def {_name_of(node)}():", *[f"    {line}" for line in inside], "    pass"]
        call = f"__import__({__name__!r}, fromlist=['host']).host({_name_of(node)}, {tuple(sorted(used & self.own))}, {tuple(own)})"
        lines.append(f"return {call}" if isinstance(node, ast.Return) else call)
        made: Any = ast.parse("\n".join(lines)).body
        made[-2].body[-1:] = [_without_annotation(node)]
        for part in (*made[:-2], made[-1], made[-2], *made[-2].body[:-1]):
            for inner in ast.walk(part) if part is not made[-2] else [part]:
                inner.lineno = inner.end_lineno = node.lineno
        return made


# ---- trees


def _without_annotation(statement: ast.stmt) -> ast.stmt:
    """``x: int = 1`` as ``x = 1``: a name that is declared as another function's has no annotation."""
    if not isinstance(statement, ast.AnnAssign) or statement.value is None:
        return statement
    return ast.copy_location(ast.Assign([statement.target], statement.value), statement)


def _name_of(statement: ast.stmt) -> str:
    """The name of the function that stands for a statement: there may be several on a line."""
    return f"{STATEMENT}_{statement.col_offset}"


def parsed(code: CodeType) -> Any:
    """The function in its source, without decorators, annotations and defaults: these are evaluated already."""
    linecache.checkcache(code.co_filename)
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        raise NoStatement from None
    function: Any = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef) or function.name != code.co_name:
        raise NoStatement
    ast.increment_lineno(tree, first - 1)
    function.decorator_list, function.returns = [], None
    arguments = function.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(None) for d in arguments.kw_defaults]
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    indent = len(lines[0]) - len(lines[0].lstrip())
    for node in ast.walk(function):
        if hasattr(node, "col_offset"):
            node.col_offset, node.end_col_offset = node.col_offset + indent, (node.end_col_offset or 0) + indent
    return function


def _statements(node: Any, taken: Iterable[tuple[int, int]]) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            continue
        if isinstance(child, ast.stmt):
            if (child.lineno, child.col_offset) in taken:
                continue
            yield child
        yield from _statements(child, taken)


def _holds(statement: ast.stmt, line: int, column: int) -> bool:
    begin = statement.lineno, statement.col_offset
    return begin <= (line, column) <= (statement.end_lineno or 0, statement.end_col_offset or 0)


def _writes(statement: ast.stmt, outer: set[str]) -> bool:
    """Whether a statement writes to objects, or to names of other functions."""
    stores = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store | ast.Del)]
    return any([not isinstance(n, ast.Name) or n.id in outer for n in stores])


def _can_be_taken(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, _REFUSED) or (isinstance(node, ast.Name) and node.id == "super"):
            return False
        if isinstance(statement, ast.If) and isinstance(node, ast.stmt) and not isinstance(node, _IN_BRANCHES):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _ON_TENSORS or (name.endswith("_") and not name.endswith("__")):
                return False
    return True


def _reads(statement: ast.stmt, text: str) -> bool:
    return any(
        [
            ast.unparse(n) == text
            for n in ast.walk(statement)
            if isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Load)
        ]
    )


def _names_set(statement: ast.stmt) -> set[str]:
    """The names that a statement sets, those of comprehensions apart."""
    inner = {id(n) for c in ast.walk(statement) if isinstance(c, ast.comprehension) for n in ast.walk(c.target)}
    names = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {n.id for n in names if id(n) not in inner}


def _is_private(tree: Any) -> bool:
    names = [
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)
    ]
    return any([name.startswith("__") and not name.endswith("__") for name in names])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


# ---- functions


class Functions:
    """Those that have some code, found among all objects there are when a code is first asked for (0.1 s where these are a
    million), and then among those that were made since: while the collector waits, these are in the young generations.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[CodeType, WeakSet[FunctionType]]] = {}
        self._collections = _collections()

    def of(self, codes: Collection[CodeType]) -> list[FunctionType]:
        if self._collections != _collections():  # what was young may be old
            self._known, self._collections = {}, _collections()
        known = {id(code) for code in codes if id(code) in self._known}
        anew = {id(code): code for code in codes if id(code) not in self._known}
        functions = [f for at in known for f in self._known[at][1] if id(f.__code__) == at]
        if known:
            young = [*gc.get_objects(generation=0), *gc.get_objects(generation=1)]
            functions += [f for f in young if type(f) is FunctionType and id(f.__code__) in known]
        if anew:
            self._known |= {at: (code, WeakSet()) for at, code in anew.items()}
            for f in gc.get_referrers(*anew.values()):
                if type(f) is FunctionType and id(f.__code__) in anew:
                    self._known[id(f.__code__)][1].add(f)
                    functions.append(f)
        return functions


def _collections() -> list[int]:
    """How often the collector looked at what is older than young."""
    return [generation["collections"] for generation in gc.get_stats()[1:]]


@contextmanager
def rewritten(codes: Iterable[Rewritten], functions: Functions) -> Iterator[None]:
    """Functions have their new code, for a block."""
    changed: list[tuple[FunctionType, CodeType]] = []
    known = {id(one.code): one for one in codes}
    try:
        for f in functions.of([one.code for one in known.values()]):
            if id(f.__code__) in known:  # it may be found twice
                changed.append((f, f.__code__))
                f.__code__ = known[id(f.__code__)].now
        yield
    finally:
        for f, code in changed:
            f.__code__ = code
