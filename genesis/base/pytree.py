"""Nested containers, flattened to a list of leaves and rebuilt.

Containers are lists, tuples, named tuples, dictionaries, ordered dictionaries, dataclass instances, and the
classes given to `register_pytree_node`. Everything else is a leaf: tensors, numbers, None, and instances of
subclasses of the containers, which may carry more than their items.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from genesis.base.errors import ArgumentValueError, message

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]  # a container -> its children, and whatever else it holds
Unflatten = Callable[[type[Any], list[Any], Any], Any]  # its class, the children, the rest -> the container


@dataclasses.dataclass(frozen=True, slots=True)
class TreeDef:
    """The structure of a tree without its leaves, printed ``{'w': *, 'b': [*, *]}``."""

    kind: type[Any] | None = None  # None for a leaf
    rest: Any = None
    children: Sequence[TreeDef] = ()
    num_leaves: int = -1  # counted, if it is not said

    def __post_init__(self) -> None:
        if self.num_leaves < 0:
            count = 1 if self.kind is None else sum([child.num_leaves for child in self.children])
            object.__setattr__(self, "num_leaves", count)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        items = [str(child) for child in self.children]
        if self.kind is dict:
            return "{" + ", ".join(f"{key!r}: {item}" for key, item in zip(self.rest, items, strict=True)) + "}"
        if self.kind is list:
            return f"[{', '.join(items)}]"
        name = "" if self.kind is tuple else self.kind.__name__
        return f"{name}({', '.join(items)}{',' if self.kind is tuple and len(items) == 1 else ''})"


LEAF = TreeDef()


def _fields(tree: Any) -> tuple[list[Any], Any]:
    names = tuple(field.name for field in dataclasses.fields(tree))
    return [getattr(tree, name) for name in names], names


def _fill(kind: type[Any], children: list[Any], names: Any) -> Any:
    # not __init__, which may refuse leaves that are not of the declared types
    tree = kind.__new__(kind)  # type: ignore[call-overload]
    for name, child in zip(names, children, strict=True):
        object.__setattr__(tree, name, child)
    return tree


def _fields_and_items(tree: Any) -> tuple[list[Any], Any]:
    children, names = _fields(tree)
    return children, (*names, *[key for key in tree if key in names])


def _fill_items(kind: type[Any], children: list[Any], rest: Any) -> Any:
    """A dictionary whose items are fields of a dataclass as well, as outputs of models are."""
    names, keys = rest[: len(children)], rest[len(children) :]
    tree = _fill(kind, children, names)
    put = OrderedDict.__setitem__ if issubclass(kind, OrderedDict) else dict.__setitem__  # not the one of its class
    for key in keys:
        put(tree, key, children[names.index(key)])
    return tree


_SEQUENCE: tuple[Flatten, Unflatten] = (lambda tree: (tree, None), lambda kind, children, _: kind(children))
_MAPPING: tuple[Flatten, Unflatten] = (
    lambda tree: (tree.values(), tuple(tree)),
    lambda kind, children, keys: kind(zip(keys, children, strict=True)),
)
_NAMED: tuple[Flatten, Unflatten] = (lambda tree: (tree, None), lambda kind, children, _: kind(*children))
_DATACLASS: tuple[Flatten, Unflatten] = (_fields, _fill)
_DICTIONARY_OF_FIELDS: tuple[Flatten, Unflatten] = (_fields_and_items, _fill_items)
_RULES: dict[type[Any], tuple[Flatten, Unflatten]] = {
    list: _SEQUENCE, tuple: _SEQUENCE, dict: _MAPPING, OrderedDict: _MAPPING,
}  # fmt: skip


def rule_of(kind: type[Any]) -> tuple[Flatten, Unflatten] | None:
    """How the instances of a class are flattened and made again; None of leaves."""
    if kind in _RULES:
        return _RULES[kind]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):  # named tuples have no common base class
        return _NAMED
    if not dataclasses.is_dataclass(kind):
        return None
    return _DICTIONARY_OF_FIELDS if issubclass(kind, dict) else _DATACLASS


def is_container(kind: type[Any]) -> bool:
    """Whether the instances of a class are flattened."""
    return rule_of(kind) is not None


def register_pytree_node(
    kind: type[Any],
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[list[Any], Any], Any],
) -> None:
    """Make the instances of a class containers.

    Args:
        flatten: instance -> (children, rest); `rest` is what is not a child, comparable with ``==``
        unflatten: (children, rest) -> instance

    Raises:
        ValueError: the class is registered already
    """
    if kind in _RULES:
        raise ArgumentValueError(message("register_pytree_node", f"{kind.__name__} is registered already"))
    _RULES[kind] = (flatten, lambda _, children, rest: unflatten(children, rest))


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves from left to right, and the structure that puts them back.

    Args:
        is_leaf: called on every sub-tree; where it is true, the sub-tree is a leaf

    >>> leaves, structure = tree_flatten({"w": 1, "b": [2, (3,)]})
    >>> leaves, print(structure)
    {'w': *, 'b': [*, (*,)]}
    ([1, 2, 3], None)
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    rule = rule_of(type(tree))
    if rule is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    before = len(leaves)
    items, rest = rule[0](tree)
    children = tuple([_flatten(item, leaves, is_leaf) for item in items])
    return TreeDef(type(tree), rest, children, len(leaves) - before)


def tree_unflatten(leaves: Iterable[Any], structure: TreeDef) -> Any:
    """The tree of a structure and as many leaves as it has places.

    >>> tree_unflatten([10, 20], tree_flatten({"w": 1, "b": [2]})[1])
    {'w': 10, 'b': [20]}

    Raises:
        ValueError: there are more or fewer leaves
    """
    leaves = list(leaves)
    if len(leaves) != structure.num_leaves:
        raise ArgumentValueError(
            message("tree_unflatten", f"got {len(leaves)} leaves for {structure.num_leaves} places",
                    [("structure", structure)])
        )  # fmt: skip
    return _unflatten(iter(leaves), structure)


def _unflatten(leaves: Any, structure: TreeDef) -> Any:
    if structure.kind is None:
        return next(leaves)
    rule = rule_of(structure.kind)
    assert rule is not None
    return rule[1](structure.kind, [_unflatten(leaves, child) for child in structure.children], structure.rest)


def flatten_up_to(structure: TreeDef, tree: Any) -> list[Any]:
    """One item for each leaf of a structure, from a tree of that structure; None stands for a sub-tree of them.

    >>> flatten_up_to(tree_flatten({"w": 1, "b": [2, 3]})[1], {"w": 10, "b": None})
    [10, None, None]

    Raises:
        ValueError: the tree is of another structure
    """
    if structure.kind is None:
        return [tree]
    if tree is None:
        return [None] * structure.num_leaves
    if structure.kind is dict and isinstance(tree, dict) and set(tree) <= set(structure.rest):
        tree = {key: tree.get(key) for key in structure.rest}
    rule = rule_of(type(tree))
    same = type(tree) is structure.kind or (type(tree) in (tuple, list) and structure.kind in (tuple, list))
    items, rest = rule[0](tree) if rule is not None and same else ((), None)
    items = list(items)
    if not same or rest != structure.rest or len(items) != len(structure.children):
        raise ArgumentValueError(
            message(
                "flatten_up_to", f"expected {structure}, got {tree_flatten(tree)[1] if rule else type(tree).__name__}"
            )
        )
    return [leaf for child, item in zip(structure.children, items, strict=True) for leaf in flatten_up_to(child, item)]


def tree_map(f: Callable[..., Any], tree: Any, *others: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of ``f(leaf, *leaves at the same place of the others)``.

    >>> tree_map(lambda x, y: x + y, {"w": 1, "b": [2]}, {"w": 10, "b": [20]})
    {'w': 11, 'b': [22]}

    Raises:
        ValueError: the trees differ in structure
    """
    leaves, structure = tree_flatten(tree, is_leaf)
    columns: list[Sequence[Any]] = [leaves]
    for other in others:
        column, other_structure = tree_flatten(other, is_leaf)
        if other_structure != structure:
            raise ArgumentValueError(
                message("tree_map", "the trees differ in structure", [("first", structure), ("other", other_structure)])
            )
        columns.append(column)
    return tree_unflatten([f(*items) for items in zip(*columns, strict=True)], structure)
