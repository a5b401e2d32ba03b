"""Every dotted ``genesis.…`` name in docstrings and pages is the name of something."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import genesis

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"(?<![\w./@-])genesis(?:\.[A-Za-z_]\w*)+")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]
MODULES = sorted((ROOT / "genesis").rglob("*.py"))
MADE_UP = {
    "genesis.ops.example.cube", "genesis.ops.example.scale", "genesis.ops.example.triple", "genesis.ops.mylib.scale", "genesis.triple",  # registered by the example
    "genesis.structure",  # a key in the header of a file
}  # fmt: skip


def resolves(name: str) -> bool:
    """Whether a name is a module or an attribute of one, imported as far as it goes."""
    parts = name.split(".")
    found: object = genesis
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
        else:
            found = getattr(found, part)
    return True


def docstrings(path: Path) -> str:
    """The docstrings of a module."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [
        ast.get_docstring(node, clean=False)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kinds)
    ]
    return "\n".join(text for text in found if text)


def unknown(text: str) -> list[str]:
    return sorted({name for name in NAME.findall(text) if not resolves(name)} - MADE_UP)


def test_wrong_names_are_found():
    assert unknown("see `genesis.autograd.rules`, `genesis.nn.Linear` and genesis.core.graph.tensor.Tensor.data.") == [
        "genesis.autograd.rules"
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages(path):
    assert unknown(path.read_text()) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_docstrings(path):
    assert unknown(docstrings(path)) == []


# Ours: arrays of NumPy have them, they go with a function, or they are the other half of one.
METHODS = {
    "angle_",
    "astype",
    "concatenate",
    "copy",
    "fill",
    "flat",
    "fmax_",
    "fmin_",
    "gate",
    "bounded_log",
    "bounded_log1p",
    "log1pexp",
    "log1pexp_",
    "tanh_rest",
    "tanh_rest_",
    "sigmoid_gradient",
    "tanh_gradient",
    "times_sigmoid",
    "times_tanh_log1pexp",
    "logaddexp2_",
    "logaddexp_",
    "maximum_",
    "minimum_",
    "normal_cdf",
    "numpy_view",
    "polygamma_of",
    "std_mean",
    "strides",
    "to_device",
    "tobytes",
    "var_mean",
    "view_shape",
    "zero_grad",
}


@pytest.mark.parity
def test_tensors_have_no_methods_that_are_only_ours():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    public = {name for name in dir(genesis.Tensor) if not name.startswith("_")}
    assert public - set(dir(torch.Tensor)) <= METHODS


LISTED = {"datasets", "core/call/kinds", "io/pytorch", "jit/passes", "nn/utils", "optim/schedules"}  # by folder only


def test_the_rooms_name_every_file():
    rooms = (ROOT / "docs" / "ARCHITECTURE.md").read_text().partition("## Rooms")[2].split("```")[1]
    assert len(set(rooms.splitlines())) == len(rooms.splitlines())
    for before, several, after in re.findall(r"(\w*)\{([\w,]+)\}(\w*)", rooms):
        rooms += " ".join(["", *(before + each + after for each in several.split(","))])
    package = ROOT / "genesis"
    files = {path.stem for path in MODULES if path.parent.relative_to(package).as_posix() not in LISTED}
    assert sorted(files - {"__init__", "__main__"} - set(re.findall(r"\w+", rooms))) == []


# Names that say nothing to a reader who knows the field: what each stands for has a word in docs/ARCHITECTURE.md.
BANNED = {"_one_further", "born", "co", "honest", "its", "touched", "twin", "twins", "untouched"}
# an edge, an index, a device, a line, a result, ...: said as what it is, in parts of names, too
VAGUE = {"found", "place", "places"}
PUBLIC = {"mask_places", "max_places", "wrong_places"}  # ops, and a module
PUBLIC_OF = {
    "ops/indexing/index.py": {"place"},  # an op
    "pytorch/check.py": {"places"},  # a field of a public record, which others read
}


def identifiers(source: str) -> dict[str, int]:
    """The names that code gives or uses, each with a line."""
    kinds: dict[type, str] = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.keyword: "arg"}
    kinds |= {ast.FunctionDef: "name", ast.ClassDef: "name", ast.alias: "asname"}
    nodes = [node for node in ast.walk(ast.parse(source)) if type(node) in kinds]
    named = [(getattr(node, kinds[type(node)]), node.lineno) for node in nodes]
    return {name: line for name, line in named if name is not None}


def banned(source: str, words: set[str]) -> list[str]:
    return [f"line {line}: {name}" for name, line in identifiers(source).items() if name.strip("_").lower() in words]


def vague(source: str, public: set[str]) -> list[str]:
    names = identifiers(source).items()
    return [f"line {line}: {name}" for name, line in names if VAGUE & {*name.lower().split("_")} and name not in public]


def test_banned_names_are_found():
    assert banned("def f(co):\n    x._born = twin()\n", BANNED) == ["line 1: co", "line 2: _born", "line 2: twin"]
    assert vague("import a as found\nclass Place: ...\n", set()) == ["line 2: Place", "line 1: found"]
    assert vague("at_place = placed\nplaces = _found", {"places"}) == ["line 1: at_place", "line 2: _found"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_identifiers(path):
    source = path.read_text()
    public = PUBLIC | PUBLIC_OF.get(path.relative_to(ROOT / "genesis").as_posix(), set())
    assert banned(source, BANNED) + vague(source, public) == []
