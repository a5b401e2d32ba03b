"""Functions of Python's library and of NumPy that a trace is told of: of `math`, and those that draw a random number.

    rate = 0.5 * (1 + math.cos(math.pi * self.t / 100))        if random.random() < 0.5: ...        lam = np.random.beta(1, 1)

They are in C, and see of a number of the host only what it is now. So while a function is watched or traced the modules
have others under these names, which do the same for everybody else. A function that a program has under a name of its own
(``from math import cos``) is the one in C.
"""

from __future__ import annotations

import functools
import math
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from genesis.core.graph.tracing import HostNumber, tracer

_OF_FLOATS = (
    *("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "pow", "fabs", "hypot", "degrees", "radians", "copysign"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "fmod", "floor", "ceil"),
)  # fmt: skip
_DRAWING = (
    *("random", "uniform", "triangular", "randint", "randrange", "gauss", "normalvariate", "lognormvariate"),
    *("expovariate", "gammavariate", "betavariate", "paretovariate", "weibullvariate", "vonmisesvariate"),
)
_DRAWING_OF_NUMPY = (
    *("random", "random_sample", "rand", "uniform", "randint", "normal", "randn", "standard_normal", "beta", "gamma"),
    *("exponential", "lognormal", "poisson", "binomial", "geometric", "laplace", "triangular", "standard_gamma"),
)
_lock, _open = threading.Lock(), [0]


def _computing(function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        active = tracer.get() if any([x.__class__ is HostNumber for x in args]) else None
        return function(*args, **kwargs) if active is None else active.computed(function.__name__, args)

    return computed


def _drawing(function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        active = tracer.get()
        draw = None if active is None else getattr(active, "draws_number", None)
        return function(*args, **kwargs) if draw is None else draw(function, args, kwargs, sys._getframe(1))

    return drawn


@functools.cache
def _table() -> list[tuple[ModuleType, str, Any, Callable[..., Any]]]:
    """A module, a name in it, what is there, and what stands there meanwhile."""
    names = (math, _OF_FLOATS, _computing), (random, _DRAWING, _drawing), (np.random, _DRAWING_OF_NUMPY, _drawing)
    return [(m, name, getattr(m, name), make(getattr(m, name))) for m, all_names, make in names for name in all_names]


@contextmanager
def told_of() -> Iterator[None]:
    """A trace is told of calls of these functions, for a block."""
    with _lock:
        _open[0] += 1
        for module, name, there, instead in _table() if _open[0] == 1 else ():
            if getattr(module, name) is there:
                setattr(module, name, instead)
    try:
        yield
    finally:
        with _lock:
            _open[0] -= 1
            for module, name, there, instead in _table() if _open[0] == 0 else ():
                if getattr(module, name) is instead:
                    setattr(module, name, there)


@functools.cache
def _originals() -> dict[Any, Any]:
    return {instead: there for _, _, there, instead in _table()}


def original_of(x: Any) -> Any:
    """The function in C for one that stands in its place; anything else is itself."""
    return _originals().get(x, x) if type(x) is type(told_of) else x


def is_told(module: ModuleType, name: Any) -> bool:
    """Whether a trace is told of a function of a module."""
    return isinstance(name, str) and type(x := getattr(module, name, None)) is type(told_of) and x in _originals()
