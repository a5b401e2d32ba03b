"""Views: ops whose result may share the memory of their input (`core/call/views.py` makes writes through them right).

They are linear. Their strides are what their meaning does to the input's, which NumPy computes where there is no
memory, too; an op whose meaning copies where it must (`reshape`) says it itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.spec import Spec
from genesis.core.call.kind import Along
from genesis.core.call.kinds.declare import Rules, primitive
from genesis.core.call.op import Op
from genesis.core.call.strides import strides_of_view


class View(Along):
    """The same elements, seen in another way."""

    views = linear = True

    def strides(self, op: Op, operands: Sequence[Any], result: Spec) -> tuple[int, ...] | None:
        return strides_of_view(op, *operands)


VIEW = View("view")


def view(vjp: Rules, *, infer: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Declare an op whose result may share the input's memory.

    Args:
        put: the inverse, ``(whole, part, *arguments) -> tensor``: ``whole`` where the elements that the view sees are those of
            ``part``; what a write through the view means where memory is not written to
        strides: ``(input, *arguments) -> strides`` of the result, from specs, where the meaning may copy; None where it
            does
    """
    options.setdefault("dtypes", "fcib")
    return primitive(VIEW, vjp, infer=infer, **options)
