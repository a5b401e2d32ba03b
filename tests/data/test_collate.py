"""From examples to batches."""

from __future__ import annotations

import collections
import types

import numpy as np
import pytest

import genesis
from genesis.data import default_collate, default_collate_fn_map, default_convert

Pair = collections.namedtuple("Pair", "a b")


class Bag(dict):
    pass


BATCHES = {
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.5, 2.5],
    "ints and floats": [1, 2.5],
    "strings": ["a", "b"],
    "bytes": [b"a", b"b"],
    "numpy numbers": [np.float32(1), np.float32(2)],
    "numpy bools": [np.bool_(True), np.bool_(False)],
    "arrays": [np.arange(3), np.arange(3)],
    "0-d arrays": [np.array(1.0), np.array(2.0)],
    "float16 arrays": [np.ones(2, np.float16)] * 2,
    "tuples": [(1, "a"), (2, "b")],
    "lists": [[1, 2.0], [3, 4.0]],
    "named tuples": [Pair(1, 2.0), Pair(3, 4.0)],
    "dicts": [{"x": 1, "y": [2, 3]}, {"x": 4, "y": [5, 6]}],
    "ordered": [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "defaultdict": [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "a dict of one's own": [Bag(a=1), Bag(a=2)],
    "read-only dicts": [types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})],
    "ranges": [range(2), range(2)],
    "deques": [collections.deque([1, 2]), collections.deque([3, 4])],
    "nothing in tuples": [(), ()],
    "deep": [{"x": (Pair(np.zeros(2), {"k": [1]}),)}] * 3,
    "big ints": [2**40, 1],
}


def described(value, library):
    if isinstance(value, library.Tensor):
        return str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return type(value).__name__, {k: described(v, library) for k, v in value.items()}
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, collections.abc.Sequence):
        return type(value).__name__, [described(v, library) for v in value]
    return value


@pytest.mark.parity
@pytest.mark.parametrize("batch", BATCHES)
def test_collate_and_convert_as_pytorch_does(batch):
    torch = pytest.importorskip("torch")
    data = BATCHES[batch]
    theirs = torch.utils.data.default_collate(data)
    assert described(default_collate(data), genesis) == described(theirs, torch)
    assert described(default_convert(data[0]), genesis) == described(torch.utils.data.default_convert(data[0]), torch)


def test_tensors():
    out = default_collate([{"x": genesis.ones(2), "y": genesis.tensor(1)}] * 3)
    assert out["x"].shape == (3, 2) and out["y"].tolist() == [1, 1, 1]
    x = genesis.ones(2, requires_grad=True)
    default_collate([x, x]).sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        ([None, None], TypeError, "default_collate: cannot batch None\n  try: "),
        ([{"x": [1, None]}] * 2, TypeError, r"cannot batch None at example\['x'\]\[1\]"),
        ([Pair(1, {"k": object()})] * 2, TypeError, r"cannot batch object at example\.b\['k'\]"),
        ([np.array(["a"])], TypeError, "cannot batch array of dtype <U1"),
        ([(np.array([None]),)], TypeError, r"cannot batch array of dtype object at example\[0\]"),
        (
            [(1, [1, 2]), (1, [1])],
            RuntimeError,
            r"lengths differ at example\[1\]: 2 in the first example, 1 in number 1 of the batch",
        ),
        (
            [genesis.ones(2), genesis.ones(3)],
            RuntimeError,
            r"shapes differ: \[2\] in the first example, \[3\] in number 1",
        ),
        (
            [(np.ones(2),), (np.ones((1, 2)),)],
            RuntimeError,
            r"shapes differ at example\[0\]: \[2\] in the first example, \[1, 2\]",
        ),
        ([1, None], TypeError, "types differ: int in the first example, NoneType in number 1"),
        ([genesis.ones(1), 3], TypeError, "types differ: Tensor in the first example, int in number 1"),
        ([{"a": 1}, {"b": 1}], TypeError, "number 1 of the batch has no key 'a', it has"),
        ([[1], 2], TypeError, "types differ: list in the first example, int in number 1"),
    ],
)
def test_what_cannot_be_batched_is_named_with_its_place(batch, error, words):
    with pytest.raises(error, match=words):
        default_collate(batch)


def test_types_of_one_s_own(monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, complex, lambda batch, *, collate_fn_map=None: sum(batch))
    assert default_collate([(1j, 1), (2j, 2)])[0] == 3j
