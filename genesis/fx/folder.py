"""A graph as a package of Python with its numbers in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from genesis import io
from genesis.fx.naming import IMPORTS
from genesis.nn import conv, linear, norm

_SAID = (linear.Linear, conv.Conv1d, conv.Conv2d, conv.Conv3d, norm.BatchNorm1d, norm.BatchNorm2d, norm.BatchNorm3d)


def written(module: Any, folder: Path, name: str) -> None:
    """Write a GraphModule into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    io.save(module.state_dict(), folder / "state_dict.pt")
    lines = ["from pathlib import Path", "", IMPORTS, "from genesis.nn import *", "", "", f"class {name}(torch.nn.Module):",
             "    def __init__(self):", "        super().__init__()", "        folder = Path(__file__).parent"]  # fmt: skip
    for child, m in module.named_children():
        made = repr(m)
        if type(m) not in _SAID:
            io.save(m, folder / f"{child}.pt")
            made = f"torch.load(folder / '{child}.pt', weights_only=False)"
        lines.append(f"        setattr(self, '{child}', {made})")
    for kind, store in (("self.register_buffer", module._buffers), ("setattr", module._parameters)):
        for key, value in store.items():
            if value is not None:
                lines.append(f"        {_put(kind, key, value)}")
    lines.append("        self.load_state_dict(torch.load(folder / 'state_dict.pt'))")
    lines += [f"    {line}".rstrip() for line in module.code.splitlines()]
    (folder / "module.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")


def _put(kind: str, key: str, value: Any) -> str:
    empty = f"torch.empty({list(value.shape)}, dtype=torch.{str(value.dtype).rpartition('.')[2]})"
    if kind == "setattr":
        return f"setattr(self, '{key}', torch.nn.Parameter({empty}))"
    return f"self.register_buffer('{key}', {empty})"
