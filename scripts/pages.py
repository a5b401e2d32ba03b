"""What the rendered pages have beside the files of `docs`: front page, benchmarks, table of ops, reference.

mkdocs calls the functions whose names begin with ``on_`` (`mkdocs.yml`, ``hooks``). Ops and methods are made when Genesis
is imported, so the reference asks the objects themselves for their signatures and docstrings, and keeps to ``__all__``.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from latex2mathml.converter import convert
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import genesis  # noqa: E402
from genesis.core.call.op import REGISTRY  # noqa: E402
from genesis.ops.matrix import matrix  # noqa: E402

MODULES = (
    "genesis", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrize", "nn.utils.prune", "optim",
    "optim.lr_scheduler", "optim.swa_utils", "autograd", "autograd.graph", "autograd.functional",
    "autograd.forward_ad", "func", "compiler", "jit", "profiler", "utils.data", "utils.checkpoint", "utils.tensorboard",
    "utils.tensorboard.summary",
    "datasets", "io", "linalg", "fft", "special", "sparse", "masked", "signal.windows", "distributions", "distributed", "distributed.nn",
    "distributions.transforms", "distributions.constraints", "amp", "debug", "onnx", "sklearn", "pytorch", "interop",
    "overrides", "library", "devices", "testing", "base.errors",
)  # fmt: skip
LEFT_OUT = {"array_api", "cli", "data", "tiny"}  # names of the standard, commands, utils.data, a page of the guide
MODULES += tuple(sorted(set(genesis._LAZY) - LEFT_OUT - {module.split(".")[0] for module in MODULES}))  # what is new
OUTSIDE = {
    "README.md": "index.md",
    **{f"benchmarks/{name}.md": f"benchmarks/{name}.md" for name in ("README", "accuracy", "programs", "libraries")},
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
SECTION = re.compile(r"^(Args|Raises|Returns|Yields|Shape|Attributes|Note|Example|Examples):\s*$")


# mathematics: $...$ in docstrings and pages, as MathML, which needs no script


class _Mathematics(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override] # noqa: N802
        return self.md.htmlStash.store(convert(m[1].replace("\\\\", "\\"))), m.start(0), m.end(0)


class _MathExtension(Extension):
    def extendMarkdown(self, md: Any) -> None:  # noqa: N802
        md.inlinePatterns.register(_Mathematics(r"(?<![\\$\w])\$([^$\n]+?)\$(?![\w$])", md), "mathematics", 185)


def on_config(config: Any) -> Any:
    config.markdown_extensions.append(_MathExtension())
    guide = re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / "guide" / "README.md").read_text(encoding="utf-8"))
    config.nav = [
        {"Genesis": "index.md"},
        {"Guide": ["guide/README.md", *[f"guide/{name}" for name in guide]]},
        {"Reference": [f"reference/{name}.md" for name in (*MODULES[:1], "Tensor", *MODULES[1:])]},
        {"Tables": ["ops.md", "pytorch.md", "scale.md", *[name for name in OUTSIDE.values() if name != "index.md"]]},
        {"Inside": ["ARCHITECTURE.md", *_pages("decisions"), "mutation_study.md", "verify_study.md"]},
    ]
    return config


def _pages(folder: str) -> list[str]:
    return [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


# links: those out of `docs` lead to the copies here, or are words where the site has no such file


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    source = next((k for k, v in OUTSIDE.items() if v == page.file.src_uri), posixpath.join("docs", page.file.src_uri))

    def link(m: re.Match[str]) -> str:
        path, _, anchor = m[1].partition("#")
        if not path or ":" in path:
            return m[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target not in OUTSIDE and not target.startswith("docs/"):
            return f"](missing:{target})"
        inside = OUTSIDE.get(target) or target.removeprefix("docs/")
        here = posixpath.dirname(page.file.src_uri) or "."
        return f"]({posixpath.relpath(inside, here)}{'#' * bool(anchor)}{anchor})"

    text = markdown if page.file.src_uri.startswith("reference/") else LINK.sub(link, markdown)
    return re.sub(r"\[([^\]]*)\]\(missing:[^)]*\)", r"\1", text)


# pages that are made


def on_files(files: Any, config: Any) -> Any:
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text(encoding="utf-8")))
    files.append(File.generated(config, "ops.md", content=table_of_ops()))
    for module in MODULES:
        files.append(File.generated(config, f"reference/{module}.md", content=reference(module)))
    files.append(File.generated(config, "reference/Tensor.md", content=reference_of_tensor()))
    return files


def table_of_ops() -> str:
    """Every op of the registry, with what it has."""
    yes = lambda value: value if isinstance(value, str) else "yes" if value else ""  # noqa: E731
    shown = ("kind", "vjp", "jvp", "vmap", "in-place")
    rows = []
    for row in matrix():
        cells = [f"`{row['op']}`", *[yes(row[key]) for key in shown], first_sentence(REGISTRY[row["op"]].doc or "")]
        rows.append(f"| {' | '.join(cells)} |")
    head = "| op | kind | gradient | forward mode | vmap | in place | |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    title = f"# Operations\n\nThe {len(rows)} ops of the registry; `python -m genesis.ops` prints the table."
    return f"{title}\n\n{head}" + "\n".join(rows)


def first_sentence(doc: str) -> str:
    return re.split(r"(?<=[.:])\s|\n\n", inspect.cleandoc(doc), maxsplit=1)[0].replace("\n", " ").replace("|", "\\|")


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names of a module that are its own offer: functions and classes, sorted."""
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("genesis")
    ]
    names = [*names, *getattr(module, "_LAZY_NAMES", ())]  # such as genesis.compile
    for name in sorted(set(names), key=str.lower):
        value = getattr(module, name, None)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType):
            yield name, value


def reference(path: str) -> str:
    name = path if path == "genesis" else f"genesis.{path}"
    module = importlib.import_module(name)
    parts = [f"# {name}\n", markdown_of(inspect.getdoc(module) or "") if name != "genesis" else ""]
    parts += [entry(f"{name}.{key}", key, value) for key, value in public(module)]
    return "\n".join(parts)


def reference_of_tensor() -> str:
    """The methods of tensors: each is the function of its name, with the tensor as the first argument."""
    own = [(k, getattr(genesis.Tensor, k, None)) for k in sorted(dir(genesis.Tensor)) if not k.startswith("_")]
    methods = [entry(f"Tensor.{k}", k, v) for k, v in own if callable(v)]
    return "\n".join(["# genesis.Tensor\n", markdown_of(inspect.getdoc(genesis.Tensor) or ""), *methods])


def entry(title: str, name: str, value: Any) -> str:
    """The signature and the docstring of a function, or of a class and of its methods."""
    head = f"## {name} {{ #{name} }}\n\n```python\n{title}{signature(value)}\n```\n"
    parts = [head, markdown_of(inspect.getdoc(value) or "")]
    if inspect.isclass(value) and not title.startswith("Tensor."):
        for key, method in vars(value).items():
            if not key.startswith("_") and inspect.isfunction(method) and method.__doc__:
                parts += [f"**`{key}{signature(method)}`**\n", markdown_of(inspect.getdoc(method) or "")]
    return "\n".join(parts)


def signature(value: Any) -> str:
    try:
        return re.sub(r"'", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def markdown_of(doc: str) -> str:
    """A docstring as Markdown: examples and indented blocks as code, sections as lists."""
    blocks, section = [], ""
    for block in re.split(r"\n\s*\n", doc):
        lines = block.split("\n")
        if SECTION.match(lines[0]):
            section, lines = lines[0].strip(), lines[1:]
            blocks.append(f"**{section}**")
            blocks.append(items(lines))
        elif lines[0].lstrip().startswith(">>>"):
            code = inspect.cleandoc("\n".join(lines))
            blocks.append(f"```pycon\n{code}\n```")
        elif lines[0].startswith("    "):
            blocks.append("```text\n" + inspect.cleandoc(block) + "\n```")
        elif all(line.lstrip().startswith("`") for line in lines):
            blocks.append("\n".join(f"- {line.strip()}" for line in lines))
        else:
            blocks.append(block.replace("*", "\\*"))
    return "\n\n".join(b for b in blocks if b) + "\n"


def items(lines: list[str]) -> str:
    """The entries of a section; a line that is indented further goes on with the one before."""
    entries: list[str] = []
    for line in lines:
        if line.startswith("     ") and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            head, colon, rest = line.strip().partition(": ")
            entries.append(f"- `{head}`: {rest}" if colon and "`" not in head else f"- {line.strip()}")
    return "\n".join(entries)
