"""Names of torch.fx that libraries import although they are not public."""

from __future__ import annotations

import importlib
from typing import Any

from genesis.pytorch.stand_ins.common import Values, as_it_is, from_module, values

values("torch.fx.graph_module")(
    from_module(
        "genesis.fx.graph_module", "_CodeOnlyModule", "_USER_PRESERVED_ATTRIBUTES_KEY", "_assign_attr", "_copy_attr"
    )
)
values("torch.fx._compatibility")(lambda: {"compatibility": lambda is_backward_compatible: as_it_is})


@values("torch.fx.graph")
def _graph() -> Values:
    codegen, naming = (importlib.import_module(f"genesis.fx.{name}") for name in ("codegen", "naming"))
    return {
        "_PyTreeCodeGen": codegen.PyTreeCodeGen, "_PyTreeInfo": codegen.PyTreeInfo, "magic_methods": codegen.MAGIC,
        "inplace_methods": codegen.INPLACE, "_Namespace": naming.Namespace, "_snake_case": naming.snake_case,
    }  # fmt: skip


@values("torch.fx.node")
def _node() -> Values:
    naming, node = (importlib.import_module(f"genesis.fx.{name}") for name in ("naming", "node"))
    return {
        "Argument": Any,
        "_get_qualified_name": naming.qualified_name,
        "_side_effectful_functions": node.SIDE_EFFECTS,
    }


@values("torch.fx.passes.shape_prop")
def _shape_prop() -> Values:
    return {"_extract_tensor_metadata": importlib.import_module("genesis.fx.passes.shape_prop").extract_tensor_metadata}


@values("torch.fx._symbolic_trace")
def _symbolic_trace() -> Values:
    patching = importlib.import_module("genesis.fx.patching")
    return {
        "_wrapped_fns_to_patch": patching.WRAPPED,
        "_find_proxy": patching.first_proxy,
        "_Patcher": patching.Patcher,
    }
