"""``genesis check script.py``: which names of PyTorch a program uses, and which of them are there. Nothing of it is run."""

from __future__ import annotations

import ast
import inspect
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from genesis.core.call.generated import compiled
from genesis.core.call.subclasses import ROUTED
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.modules import find
from genesis.pytorch.names import house, is_module, names
from genesis.pytorch.reasons import DIFFERENT, why_absent
from genesis.pytorch.stand_ins.common import Absent

WORKS, DIFFERS, ABSENT, UNREAD = "works", "differs", "absent", "unread"
# methods of tensors that other objects have under the same name, so that a use of one says nothing
_COMMON = frozenset(
    [
        "index",
        "indices",
        "layout",
        "map_",
        "name",
        "names",
        "new",
        "put",
        "resize",
        "set_",
        "solve",
        "storage",
        "unfold",
        "values",
        "apply_",
        "det",
        "qr",
        "svd",
    ]
)

_OF_EVERY_MODULE = frozenset(["__dict__", "__doc__", "__name__", "__path__"])

_MISLED = (
    "beside `import genesis as torch` it is PyTorch, or nothing: write torch.nn.Linear instead of an import, or call "
    "genesis.as_torch() before it, or `genesis run --torch`"
)


@dataclass(frozen=True)
class Use:
    """A name of PyTorch in a program: what it is called, what is said of it, and where it stands."""

    name: str
    state: str
    note: str
    places: tuple[str, ...] = ()


_Scope = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
)


def _own_names(scope: _Scope) -> set[str]:
    """The parameters of a function, and what is assigned in it; the variables of a comprehension."""
    arguments = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)} if hasattr(scope, "args") else set()
    stored = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outside = {name for n in ast.walk(scope) if isinstance(n, ast.Global) for name in n.names}
    return arguments | (stored - outside)


@dataclass
class _Name:
    """What is collected of one name."""

    lines: list[str] = field(default_factory=list)
    keywords: set[str] = field(default_factory=set)


class _Reader(ast.NodeVisitor):
    """Follows the names that imports of ``torch`` bind, through attributes and calls."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.bound: dict[str, str] = {}  # a name of the program, and what of torch it is
        self.names: dict[str, _Name] = {}
        self.methods: dict[str, _Name] = {}
        self.genesis_is_torch = False  # ``import genesis as torch``
        self.misled: list[str] = []  # lines that import from torch all the same

    def note(self, dotted: str, line: int) -> _Name:
        name = self.names.setdefault(dotted, _Name())
        name.lines.append(f"{self.file}:{line}")
        return name

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        for alias in node.names:
            self.genesis_is_torch |= alias.name == "genesis" and alias.asname == "torch"
            if alias.name == "torch" or alias.name.startswith("torch."):
                self.misled.append(f"{self.file}:{node.lineno}")
                self.bound[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                self.note(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802
        if node.level or node.module is None or node.module.split(".")[0] != "torch":
            return
        self.misled.append(f"{self.file}:{node.lineno}")
        for alias in node.names:
            if alias.name == "*":
                self.bound.update({name: f"{node.module}.{name}" for name in names().get(node.module, ())})
                self.note(node.module, node.lineno)
            else:
                dotted = f"{node.module}.{alias.name}"
                self.bound[alias.asname or alias.name] = dotted
                self.note(dotted, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        dotted = self.dotted(node)
        if dotted is not None:
            if isinstance(node.ctx, ast.Store) and state_of(dotted)[0] == ABSENT:  # a switch that the program sets
                dotted = dotted.rpartition(".")[0]
            self.note(dotted, node.lineno)
            return
        absent = node.attr in names()["torch.Tensor"] and not hasattr(Tensor, node.attr)
        if absent and node.attr not in _COMMON and not node.attr.startswith("_"):
            self.methods.setdefault(node.attr, _Name()).lines.append(f"{self.file}:{node.lineno}")
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802
        if isinstance(node.ctx, ast.Store):
            self._hide(node.id)

    def visit_FunctionDef(self, node: _Scope) -> None:  # noqa: N802
        """Names of its own that a function, a lambda or a comprehension has hide those of the program."""
        outside = self.bound
        own = _own_names(node)
        self.bound = {name: dotted for name, dotted in outside.items() if name not in own}
        self.generic_visit(node)
        imported = {name: dotted for name, dotted in self.bound.items() if name not in own}
        self.bound = {**outside, **imported}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._hide(node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802
        """What the body of a class binds is known in there."""
        outside = dict(self.bound)
        self.generic_visit(node)
        self.bound = outside
        self._hide(node.name)

    def _hide(self, name: str) -> None:
        """The name stands for something of the program from here on."""
        if self.bound.get(name, "torch") != "torch":
            del self.bound[name]

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815
    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_FunctionDef  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        dotted = self.dotted(node.func)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if dotted is not None and dotted.endswith(called):  # not a method of a class
            name = self.note(dotted, node.lineno)
            name.lines.pop()  # the function itself is visited next
            name.keywords.update(k.arg for k in node.keywords if k.arg is not None)
        self.generic_visit(node)

    def dotted(self, node: ast.AST) -> str | None:
        """The name of PyTorch that an expression stands for, if it is one."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.bound:
            return None
        dotted = self.bound[node.id]
        for part in reversed(parts):
            if not (is_module(dotted) or dotted == "torch.Tensor"):
                break  # an attribute of a function or of a class
            dotted = f"{dotted}.{part}"
        return dotted


def check(paths: Iterable[str]) -> list[Use]:
    """The names of PyTorch that programs use, files that could not be read and names that are absent first.

    Args:
        paths: files, or folders of which all Python files are read; one in a folder that is no Python of today, as many
            older programs are, has a line of its own, and the others are read

    Raises:
        OSError, SyntaxError: a file of ``paths`` that cannot be read, or is no Python

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     script = pathlib.Path(folder, "script.py")
    ...     _ = script.write_text("import torch\\ntorch.relu(torch.export.export)\\n")
    ...     [(use.name, use.state) for use in check([str(script)])]
    [('torch.export.export', 'absent'), ('torch', 'works'), ('torch.relu', 'works')]
    """
    seen: dict[str, _Name] = {}
    methods: dict[str, _Name] = {}
    misled: list[str] = []
    unread: list[Use] = []
    for file, named in _files(paths):
        reader = _Reader(str(file))
        try:
            reader.visit(ast.parse(file.read_bytes(), str(file)))
        except SyntaxError as error:
            if named:
                raise
            unread.append(Use(str(file), UNREAD, error.msg, (f"{file}:{error.lineno}",)))
            continue
        if reader.genesis_is_torch:
            misled += reader.misled
        for mine, theirs in ((seen, reader.names), (methods, reader.methods)):
            for name, each in theirs.items():
                whole = mine.setdefault(name, _Name())
                whole.lines += each.lines
                whole.keywords |= each.keywords
    uses = [_judged(name, each) for name, each in seen.items() if each.lines]
    uses += [
        Use(f"Tensor.{name}", ABSENT, "if this is a tensor: it has no such method here", tuple(each.lines))
        for name, each in methods.items()
    ]
    if misled:
        uses.append(Use("import torch", ABSENT, _MISLED, tuple(misled)))
    order = {ABSENT: 0, DIFFERS: 1, WORKS: 2}
    return unread + sorted(uses, key=lambda use: (order[use.state], use.name))


def _files(paths: Iterable[str]) -> Iterator[tuple[Path, bool]]:
    """The files to read, and whether they were named, not found in a folder."""
    for path in map(Path, paths):
        if not path.is_dir():
            yield path, True
            continue
        for folder, inside, files in os.walk(path):
            inside[:] = sorted(name for name in inside if not name.startswith((".", "__pycache__")))
            yield from ((Path(folder, name), False) for name in sorted(files) if name.endswith(".py"))


def _judged(name: str, each: _Name) -> Use:
    lines = tuple(dict.fromkeys(each.lines))
    state, note = state_of(name)
    known = _parameters(resolve(name)) if each.keywords and state != ABSENT else None
    unknown = [] if known is None else sorted(each.keywords - known)
    if unknown:
        state, note = DIFFERS, f"has no argument {', '.join(unknown)}"
    return Use(name, state, note, lines)


def state_of(dotted: str) -> tuple[str, str]:
    """Whether a name of PyTorch works, and what is to be said of it."""
    try:
        value = resolve(dotted)
    except AttributeError:
        return ABSENT, why_absent(dotted)
    if isinstance(value, Absent):
        return ABSENT, value.reason
    return (DIFFERS, DIFFERENT[dotted]) if dotted in DIFFERENT else (WORKS, "")


def resolve(dotted: str) -> Any:
    """What stands for a name of PyTorch.

    Raises:
        AttributeError: nothing
    """
    module, _, name = dotted.rpartition(".")
    if dotted == "torch" or is_module(dotted) or is_module(f"{house(module)}.{name}"):
        return dotted  # modules can be imported only where they stand for PyTorch's
    if name in _OF_EVERY_MODULE and is_module(module):
        return dotted
    return getattr(Tensor, name) if module == "torch.Tensor" else find(module, name)


def _parameters(value: Any) -> frozenset[str] | None:
    """The keywords that a call of this accepts; None where nothing is known of them."""
    try:
        called = compiled(ROUTED.get(value, value)) if inspect.isfunction(value) else value
        told = inspect.signature(value).parameters.values()
        taken = inspect.signature(called, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in (*told, *taken)):
        return None
    return frozenset(p.name for p in (*told, *taken) if p.kind is not p.POSITIONAL_ONLY)


def report(paths: Iterable[str], as_json: bool = False, every: bool = False) -> tuple[str, int]:
    """The table of `check`, of ``every`` name or of those that do not just work, and the exit status.

    That is 1 if a name is absent, or a file was not read.
    """
    uses = check(paths)
    status = int(any(use.state in (ABSENT, UNREAD) for use in uses))
    if as_json:
        return json.dumps([asdict(use) for use in uses], indent=1), status
    count = {state: sum(use.state == state for use in uses) for state in (WORKS, DIFFERS, ABSENT, UNREAD)}
    told = [use for use in uses if every or use.state != WORKS]
    width = max((len(use.name) for use in told), default=0)
    lines = [f"{use.state:8}{use.name:{width}}  {use.note}".rstrip() + f"\n{'':8}{_shown(use.places)}" for use in told]
    names = len(uses) - count[UNREAD]
    lines.append(f"{names} names of PyTorch: {count[WORKS]} work, {count[DIFFERS]} differ, {count[ABSENT]} are absent")
    if count[UNREAD]:
        lines.append(f"{count[UNREAD]} files are no Python of this version and were not read")
    return "\n".join(lines), status


def _shown(lines: tuple[str, ...]) -> str:
    return ", ".join(lines[:4]) + (f" and {len(lines) - 4} more" if len(lines) > 4 else "")
