"""What type checkers know of `Function.apply`: it takes what `forward` takes after ``ctx``, and returns what `forward`
returns.

Nothing of this runs. A class with `setup_context` has a `forward` without ``ctx``; that is the first form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Split(Protocol[P, R]):
    """A class whose `forward` has no context."""

    @staticmethod
    def forward(*args: P.args, **kwargs: P.kwargs) -> R: ...

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any, /) -> Any: ...


class WithContext(Protocol[P, R]):
    """A class whose `forward` has the context first."""

    @staticmethod
    def forward(ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Apply(Protocol):
    """`apply` of a class, by the signature of its `forward`."""

    @overload
    def __get__(self, instance: Any, owner: type[Split[P, R]]) -> Callable[P, R]: ...

    @overload
    def __get__(self, instance: Any, owner: type[WithContext[P, R]]) -> Callable[P, R]: ...
