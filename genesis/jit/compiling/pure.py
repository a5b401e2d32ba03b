"""Functions in C, and of Python's library: which of them a compiled call need not do again, for they change nothing."""

from __future__ import annotations

from collections import deque
from types import ModuleType
from typing import Any

import numpy as np

from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import HostNumber
from genesis.jit.compiling.writers import ARRAY_WRITES, OF_OPERATOR
from genesis.jit.compiling.young import is_young

# modules of Python whose functions only build objects, or call what they are given
BUILDING = frozenset(
    [
        "contextlib",
        "functools",
        "collections",
        "typing",
        "abc",
        "_collections_abc",
        "enum",
        "dataclasses",
        "copy",
        "copyreg",
        "inspect",
        "types",
        "weakref",
        "operator",
        "numbers",
        "re",
        "string",
        "itertools",
        "_weakrefset",
        "reprlib",
        "keyword",
        "fractions",
        "statistics",
        "warnings",
    ]
)
_BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "ascii",
        "bin",
        "callable",
        "chr",
        "dir",
        "divmod",
        "format",
        "getattr",
        "hasattr",
        "hash",
        "hex",
        "id",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "max",
        "min",
        "oct",
        "ord",
        "pow",
        "repr",
        "round",
        "sorted",
        "sum",
        "vars",
        "locals",
        "globals",
        "__build_class__",
        "__import__",
        "reversed",
    ]
)
_MODULES = frozenset(
    [
        "math",
        "cmath",
        "operator",
        "_operator",
        "itertools",
        "functools",
        "_functools",
        "collections",
        "_collections",
        "copy",
        "re",
        "_sre",
        "_abc",
        "_struct",
        "_typing",
        "numpy",
        "sys",
    ]
)
_VALUES = (str, bytes, int, float, complex, bool, tuple, frozenset, range, slice, type(None), type, property)
_READS = {
    list: {"copy", "count", "index"},
    dict: {"get", "items", "keys", "values", "copy", "fromkeys"},
    set: {
        "copy",
        "difference",
        "intersection",
        "isdisjoint",
        "issubset",
        "issuperset",
        "symmetric_difference",
        "union",
    },
    deque: {"copy", "count", "index"},
}


def is_pure(function: Any) -> bool:
    """Whether a call of a function in C changes nothing that was there before."""
    name, owner = getattr(function, "__name__", "?"), getattr(function, "__self__", None)
    if function in OF_OPERATOR:
        pure = False
    elif owner is None or isinstance(owner, ModuleType):
        module = (getattr(function, "__module__", None) or getattr(owner, "__name__", "") or "").partition(".")
        pure = name in _BUILTINS if module[0] == "builtins" else module[0] in _MODULES and "random" not in module[2]
    elif isinstance(owner, np.ndarray | np.generic):
        pure = name not in ARRAY_WRITES or is_young(owner)
    elif isinstance(owner, (Tensor, *_VALUES)) or name in ("__init__", "__new__", "__init_subclass__"):
        pure = True
    else:
        pure = only_reads(owner, name) or is_young(owner)
    return pure


def only_reads(owner: Any, name: str) -> bool:
    """Whether a method of a container leaves it as it is."""
    return any([isinstance(owner, kind) and name in reads for kind, reads in _READS.items()])


def takes_floats(function: Any) -> bool:
    """Whether a function in C may look into floats, past the methods that they have."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, HostNumber):
        return True
    module = getattr(function, "__module__", None) or (owner.__name__ if isinstance(owner, ModuleType) else "")
    return module.partition(".")[0] in ("math", "cmath", "numpy", "struct", "_struct", "_statistics")
