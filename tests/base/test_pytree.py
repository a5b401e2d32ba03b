"""Trees: every container comes back as it was, and what is not one is a leaf."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field

import pytest

from genesis.base import pytree
from genesis.base.pytree import register_pytree_node, tree_flatten, tree_map, tree_unflatten

Point = namedtuple("Point", "x y")


@dataclass(frozen=True, slots=True)
class Batch:
    image: object
    label: int

    def __post_init__(self):
        assert self.image != "refused"


@dataclass
class Cache:
    keys: list
    size: int = field(init=False, default=0)


@dataclass
class Output(OrderedDict):
    loss: object = None
    logits: object = None

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            if getattr(self, name) is not None:
                self[name] = getattr(self, name)

    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]


class Special(list):
    pass


@pytest.mark.parametrize("tree, leaves, drawn", [
    (3, [3], "*"),
    (None, [None], "*"),
    ([], [], "[]"),
    ([1, [2, (3,)], ()], [1, 2, 3], "[*, [*, (*,)], ()]"),
    ({"b": 1, "a": [2]}, [1, 2], "{'b': *, 'a': [*]}"),
    (OrderedDict(w=1, b=2), [1, 2], "OrderedDict(*, *)"),
    (Point(1, Point(2, 3)), [1, 2, 3], "Point(*, Point(*, *))"),
    (Batch([1, 2], 3), [1, 2, 3], "Batch([*, *], *)"),
    (Cache([1]), [1, 0], "Cache([*], *)"),
    ("text", ["text"], "*"),
    (Special([1, 2]), [[1, 2]], "*"),
    (Batch, [Batch], "*"),
], ids=str)  # fmt: skip
def test_there_and_back(tree, leaves, drawn):
    found, structure = tree_flatten(tree)
    assert found == leaves
    assert str(structure) == drawn
    assert structure.num_leaves == len(leaves)
    again = tree_unflatten(found, structure)
    assert again == tree
    assert type(again) is type(tree)


def test_map_over_several_trees():
    tree = {"a": [1, Point(2, 3)], "b": Batch(4, 5)}
    assert tree_map(lambda x, y: x * 10 + y, tree, tree) == {"a": [11, Point(22, 33)], "b": Batch(44, 55)}


def test_map_does_not_run_the_constructor():
    assert tree_map(lambda x: "refused", Batch(1, 2)).image == "refused"


def test_a_dictionary_whose_items_are_fields():
    again = tree_map(lambda x: x and x * 10, Output(logits=[1, 2]))
    assert (again.loss, again.logits, list(again.items()), again[0]) == (
        None,
        [10, 20],
        [("logits", [10, 20])],
        [10, 20],
    )


def test_is_leaf():
    assert tree_flatten([(1, 2), [3]], is_leaf=lambda x: isinstance(x, tuple))[0] == [(1, 2), 3]
    assert tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


@pytest.mark.parametrize("a, b", [([1, 2], [1]), ([1], (1,)), ({"a": 1}, {"b": 1}), (Point(1, 2), (1, 2))], ids=str)
def test_trees_of_different_structure(a, b):
    assert tree_flatten(a)[1] != tree_flatten(b)[1]
    with pytest.raises(ValueError, match=r"tree_map: the trees differ in structure\n  first .*\n  other "):
        tree_map(lambda x, y: x, a, b)


@pytest.mark.parametrize("leaves", [[1], [1, 2, 3]])
def test_wrong_number_of_leaves(leaves):
    with pytest.raises(ValueError, match=f"got {len(leaves)} leaves for 2 places\n  structure \\[\\*, \\*\\]"):
        tree_unflatten(leaves, tree_flatten([1, 2])[1])


def test_registered_class(monkeypatch):
    class Pair:
        def __init__(self, a, b, name):
            self.a, self.b, self.name = a, b, name

    monkeypatch.setattr(pytree, "_RULES", dict(pytree._RULES))
    register_pytree_node(Pair, lambda p: ((p.a, p.b), p.name), lambda children, name: Pair(*children, name))
    pair = tree_map(lambda x: x + 1, [Pair(1, [2], "p")])[0]
    assert (pair.a, pair.b, pair.name) == (2, [3], "p")
    assert tree_flatten(Pair(1, 2, "p"))[1] != tree_flatten(Pair(1, 2, "q"))[1]
    with pytest.raises(ValueError, match="register_pytree_node: Pair is registered already"):
        register_pytree_node(Pair, lambda p: ((), None), lambda children, rest: None)
