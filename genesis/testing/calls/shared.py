"""What tables of valid calls share: how an input is made, what is done with a result."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import genesis
from genesis.core.call.op import Case, case
from genesis.testing.make import Maker

Calls = Callable[[Maker], list[Case]]
After = Callable[[Any, Maker], Any]


def parameter(t: Maker, *shape: int) -> Any:
    p = t(*(shape or (3,))).requires_grad_()
    p.grad = t(*p.shape)
    return p


def ran(*inputs: Callable[[Maker], Any]) -> After:
    return lambda module, t: module.to(genesis.float64)(*[make(t) for make in inputs])


def shaped(*shape: int) -> Callable[[Maker], Any]:
    return lambda t: t(*shape)


def unit(t: Maker) -> Any:
    return t(4, low=0.1, high=0.9)


def listed(loader: Any, t: Maker) -> list[Any]:
    return list(itertools.islice(loader, 100))  # an order may be as long as somebody asks for


def square(x: Any) -> Any:
    return (x * x).sum()


def double(x: Any) -> Any:
    return x * 2


def leaf(t: Maker) -> Any:
    return t(3).requires_grad_()


plain: Calls = lambda t: [case()]  # noqa: E731
