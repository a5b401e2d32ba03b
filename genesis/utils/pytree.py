"""Nested containers of tensors: flatten, rebuild, map; and `register_pytree_node` for classes of your own."""

from genesis.base.pytree import TreeDef, register_pytree_node, tree_flatten, tree_map, tree_unflatten

__all__ = ["TreeDef", "register_pytree_node", "tree_flatten", "tree_map", "tree_unflatten"]
