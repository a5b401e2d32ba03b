"""Functions in namespaces without a name: what they see, and that no warning of theirs is given."""

from __future__ import annotations

import builtins
import dis
import gc
import warnings
from types import CodeType, FunctionType

import numpy as np

import genesis
from genesis.base import quiet


def read(code: CodeType) -> set[str]:
    """The names that a function, and those inside of it, look up in their module."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*[read(inner) for inner in code.co_consts if isinstance(inner, CodeType)])


def test_unnamed_functions_find_all_that_they_look_up():
    (genesis.ones(3, 4) @ genesis.ones(4, 3)).sum().mean()
    functions = [f for f in gc.get_objects() if type(f) is FunctionType and quiet._is_unnamed(f)]
    assert len(functions) > 50
    missing = {
        (f.__module__, f.__qualname__, name)
        for f in functions
        for name in read(f.__code__)
        if name not in f.__globals__ and not hasattr(builtins, name)
    }
    assert missing == set()


def added(x):
    return x + x


def test_silent_kernels():
    big = np.array([3e38], np.float32)
    others = [
        lambda x: added(x),  # a Python function in whose frame NumPy would warn
        lambda x: np.mean(np.stack([x, x])),  # and one of NumPy's own
        lambda x: (lambda: added(x))(),
        lambda x: quiet.quietly(added, x),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (np.square, lambda x: x + x, quiet.unnamed(added), *others):
            function = quiet.unnamed(lambda f, x: f(x))
            assert np.isinf(function(quiet.silent(kernel), big)).all()
    assert quiet.silent(np.square) is np.square
    assert all(quiet.silent(kernel).func is quiet.quietly for kernel in others[:3])
