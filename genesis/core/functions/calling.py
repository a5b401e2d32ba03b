"""`Function.apply` of one class, made of source text at its first call: for the number of arguments that its forward has,
and with nothing left to ask that can be known.

For a forward of two arguments it begins

    def call(a0=MISSING, a1=MISSING, /, *rest, **kwargs):
        global users
        if a1 is MISSING or rest or kwargs or ACTIVE or LEVELS or PACKING:
            return general(cls, given((a0, a1), rest), kwargs)
        try:
            edges = a0._node if a0.__class__ is Tensor else edge(a0), a1._node if a1.__class__ is Tensor else edge(a1)
        except Unusual:
            return general(cls, (a0, a1), {})
"""

from __future__ import annotations

import dis
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genesis.core.call.generated import generated
from genesis.core.call.halves import F32, F64
from genesis.core.functions.captures import may_reach_tensors
from genesis.core.functions.general import apply_general, optional_gradients
from genesis.core.functions.results import KINDS, check_unrecorded_writes, finished, is_in, watch_views
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import next_number
from genesis.core.graph.site import LIBRARY, user_site
from genesis.core.graph.switches import ACTIVE, LEVELS, PACKING
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import INFERENCE, WRITES

if TYPE_CHECKING:
    from genesis.core.functions.function import Function

MISSING: Any = inspect.Parameter.empty  # a class, so that no argument is it by accident
SIGNATURE = inspect.signature(lambda *args, **kwargs: None)

_HEAD = """\
def call({parameters}):
    global users
    if {misfit}kwargs or ACTIVE or LEVELS or PACKING:
        return general(cls, {given}, kwargs)
    try:
        edges = {edges}
    except Unusual:
        return general(cls, {args}, {{}})
    mode = recording()
    if not mode or {none_needed}:
        return unrecorded(cls, {args}, mode)
    node = make_node()
    node._hooks = node._outputs = None
    node._saved = ()
    node._edges = edges
    node._epoch = epoch = writes[0]
    try:  # the mode is changed inside: Ctrl-C may come with the end of any call
        set_mode(False)
        result = forward({passed})
    finally:
        set_mode(mode)
    if {last} is None:
        node._optional = optional({args}, {{}}, {count})
    node._number = next_number()
    frame = _frame(1)
    node._code = code = frame.f_code
    node._at = frame.f_lasti
    if code is not users:
        if LIBRARY[code.co_filename]:
            node._code, node._at = user_site(frame.f_back)
        else:
            users = code
"""

# a new tensor, as usual: not one of the arguments or on memory of theirs, and nothing but arguments and tensors with
# history is saved
_TAIL = """\
    if (
        result.__class__ is not Tensor
        or epoch is not writes[0]
        or result._node is not None
        or result._view is not None
        or {attributes}{is_result}
    ):
        return finished(node, {args}, {{}}, result, epoch)
    array = result._array
    node._shape = array.shape
    node._dtype = dtype = array.dtype
    if dtype is not F32 and dtype is not F64:
        return finished(node, {args}, {{}}, result, epoch)
    for t in node._saved:
        if t is not None and (
            t.__class__ is not Tensor
            or (t._node is None and (t._counter is INFERENCE or ({is_none})))
        ):
            return finished(node, {args}, {{}}, result, epoch)
    result._node = node
    return result
"""

_ALWAYS_GENERAL = "def call(*args, **kwargs):\n    return general(cls, args, kwargs)\n"


class Unusual(Exception):
    """An argument that may hold tensors."""


def apply_of(cls: type[Function]) -> Callable[..., Any]:
    """`apply` of one class: everything it needs is in the globals of its own."""
    scope = {
        "ACTIVE": ACTIVE, "F32": F32, "F64": F64, "INFERENCE": INFERENCE, "LEVELS": LEVELS, "LIBRARY": LIBRARY,
        "MISSING": MISSING, "PACKING": PACKING, "Tensor": Tensor, "Unusual": Unusual, "_frame": sys._getframe,
        "is_in": is_in, "cls": cls, "edge": edge_of, "finished": finished, "general": apply_general,
        "given": given, "make_node": cls._ctx, "next_number": next_number, "optional": optional_gradients,
        "recording": grad_mode.get, "set_mode": grad_mode.set, "unrecorded": unrecorded, "user_site": user_site,
        "users": None, "writes": WRITES,
    }  # fmt: skip
    apply = generated(lambda: _prepared(cls, scope), "apply", f"<genesis {cls.__name__}.apply>", scope)
    apply.__qualname__ = f"{cls.__qualname__}.apply"
    apply.__module__ = cls.__module__
    apply.__self__ = cls  # type: ignore[attr-defined]  # as of the class method that it stands for
    apply.__signature__ = SIGNATURE  # type: ignore[attr-defined]
    return apply


def _prepared(cls: type[Function], scope: dict[str, Any]) -> str:
    """The text for a class as it is at its first call; its methods go into the scope."""
    cls._watched = cls.capture or may_reach_tensors(cls.forward)
    if cls._split or cls._watched:
        return _ALWAYS_GENERAL
    scope["forward"] = cls.forward
    return text(_arity(cls.forward), _may_set_attributes(cls.forward))


def text(arity: int | None, attributes: bool) -> str:
    """``apply`` of a forward with so many parameters, each without a default (None: any number); ``attributes``: it may
    put something on its context.
    """
    names = [f"a{i}" for i in range(arity or 0)]
    listed = "".join(f"{n}, " for n in names)
    parts = {"args": f"({listed})", "given": f"given(({listed}), rest)", "count": str(arity), "last": "a0",
             "attributes": "node.__dict__\n        or " if attributes else ""}  # fmt: skip
    if arity is None:
        parts |= {
            "parameters": "*args, **kwargs", "misfit": "not args or ", "given": "args", "args": "args",
            "edges": "[a._node if a.__class__ is Tensor else edge(a) for a in args]", "none_needed": "not any(edges)",
            "passed": "node, *args", "last": "args[-1]", "count": "len(args)",
            "is_result": "(None in edges and is_in(result, args))", "is_none": "not is_in(t, args)",
        }  # fmt: skip
    else:
        parts |= {
            "parameters": "".join(f"{n}=MISSING, " for n in names) + "/, *rest, **kwargs",
            "misfit": f"{names[-1]} is MISSING or rest or ",
            "edges": "".join(f"{n}._node if {n}.__class__ is Tensor else edge({n}), " for n in names),
            "none_needed": "(" + " and ".join(f"edges[{i}] is None" for i in range(arity)) + ")",
            "passed": f"node, {listed}".rstrip(", "), "last": names[-1],
            "is_result": " or ".join(f"result is {n}" for n in names),
            "is_none": " and ".join(f"t is not {n}" for n in names),
        }  # fmt: skip
    return (_HEAD + _TAIL).format(**parts)


def _arity(forward: Callable[..., Any]) -> int | None:
    """How many arguments a forward takes after its context, if that is always the same number, and a small one."""
    code = getattr(forward, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return None
    if getattr(forward, "__defaults__", None) or hasattr(forward, "__wrapped__") or inspect.ismethod(forward):
        return None
    return code.co_argcount - 1 if 1 < code.co_argcount <= 9 else None


def edge_of(argument: Any) -> Any:
    """The edge of an argument whose class is not `Tensor` itself: that of a subclass, or None of a plain value."""
    if isinstance(argument, Tensor):
        return argument._node
    if KINDS[argument.__class__] is not None:
        raise Unusual
    return None


def given(args: tuple[Any, ...], rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*[a for a in args if a is not MISSING], *rest)


def unrecorded(cls: type[Function], args: tuple[Any, ...], mode: bool) -> Any:
    """The call where no input needs a gradient, or nothing is recorded."""
    ctx = cls._ctx()
    ctx._begin((None,) * len(args))
    epoch = ctx._epoch
    try:
        grad_mode.set(False)
        result = cls.forward(ctx, *args)
    finally:
        grad_mode.set(mode)
    for kept in ctx._saved:
        if kept.__class__ is not Tensor:
            ctx._code, ctx._at = None, -1
            ctx.check_saved()
    if epoch is not WRITES[0]:
        check_unrecorded_writes(cls, args, epoch)
    if result.__class__ is not Tensor or result._view is not None:
        watch_views(result)
    return result


def _may_set_attributes(forward: Callable[..., Any]) -> bool:
    """Whether a forward may put something on its ctx; False only if its code does nothing with it but save for
    backward.
    """
    code = getattr(forward, "__code__", None)
    if code is None or not code.co_argcount or code.co_varnames[0] in code.co_cellvars:
        return True
    name = code.co_varnames[0]
    instructions = list(dis.get_instructions(code))
    for instruction, following in itertools.pairwise(instructions):
        used = instruction.argval == name or (isinstance(instruction.argval, tuple) and name in instruction.argval)
        if used and (
            instruction.opname != "LOAD_FAST" or following.argval not in ("save_for_backward", "needs_input_grad")
        ):
            return True
    return False
