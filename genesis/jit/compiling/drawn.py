"""Statements that draw random numbers of NumPy, or of Python's `random`, and do nothing else:

    z = torch.from_numpy(np.random.normal(0, 1, (8, 100))).float()

A trace does such a statement once, to see what it gives, and sets the random numbers back to where they were. A compiled
call does it before all that is computed, and a tensor that it gives is one more argument of the graph; where it is another
kind of tensor than in the trace, the call is one for another graph, and the random numbers are set back, too.
"""

from __future__ import annotations

import ast
import os
import random
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, snapshot
from genesis.base.errors import message
from genesis.base.pytree import tree_flatten
from genesis.base.tracebacks import LIBRARY
from genesis.core.functions.captures import contents
from genesis.core.graph.generator import generators
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import PLAIN, tracer
from genesis.jit.compiling.checks import Given, Looks
from genesis.jit.compiling.deciding import LARGEST
from genesis.jit.compiling.leaves import UNKNOWN, Argument, HostCall, Leaf, NotKept, Result
from genesis.jit.compiling.positions import Position
from genesis.jit.compiling.stops import Leaked, Stopped
from genesis.jit.compiling.values import HostValue
from genesis.jit.compiling.words import COMPUTED, Reading
from genesis.jit.compiling.writers import writers_of
from genesis.jit.compiling.young import is_held, is_young
from genesis.jit.memory import Capture
from genesis.jit.numbers import Entry
from genesis.jit.traced import Traced

_SHAPES = ("shape", "size", "dim", "ndim", "numel", "dtype")  # of a tensor: the same at each call of a graph
_SETTING = {"seed", "shuffle", "set_state", "setstate", "set_bit_generator", "get_bit_generator"}
_UNSEEN = {"getattr", "eval", "exec", "attrgetter", "methodcaller", "__getattribute__", "__dict__", "vars", "globals"}
_MAKING = ("genesis.ops.", "genesis.pytorch.modules", "genesis.pytorch.stand_ins.devices", "genesis.core.graph.tensor")


class Drawn:
    """The statements of a trace that draw, and the arguments that they give."""

    def __init__(self, tracer: Any, calls: list[HostCall]) -> None:
        self.tracer, self.calls, self._is_over = tracer, calls, False
        self._began: Position | None = None
        self.numbers: dict[int, Any] | None = None  # those that were drawn, by call; None: the trace takes none
        self.raw: float | None = None  # see `AskedNumbers.raw`

    def given(
        self, call: HostCall, statement: ast.stmt, reading: Reading, reads: Mapping[Leaf, Any]
    ) -> tuple[Any, ...] | None:
        """What the last statement returns and sets, if it does no more than draw and can come before all that is computed;
        so can all before it. None if not.

        Args:
            reads: what its variables are, by what stands for that
        """
        does_more = call.told or call.changes or call.sets or call.unknown or call.writes or call.raises
        if self._is_over or does_more or not all([other.drawn for other in self.calls[:-1]]):
            return None
        examples = {leaf: self._example(leaf, x) for leaf, x in reads.items()}
        behind = any(call.stamp[:2]) or call.assigned
        others = [x for leaf, x in examples.items() if isinstance(leaf, Result)]
        if any([x is None for x in examples.values()]) or not may_be_drawn(statement, reading):
            return None
        if behind and not is_apart(statement, reading, others):
            return None
        self._began = self._began or Position()
        function, cells = call.build(lambda leaf: examples[leaf] if isinstance(leaf, Leaf) else leaf)
        given = tried(self.tracer.watch, function, cells, reading.statement.__code__)
        call.drawn, call.draws = given is not None, call.draws and given is None
        return given

    def number(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> Any:
        """What stands for a random number, which the graph asks for; None if this is no number, or cannot be drawn before
        all that is computed.
        """
        given = (*args, *kwargs.values())
        plain = all([type(x) in PLAIN for x in given]) and not (self._is_over or self.numbers is None)
        if not plain or not all([other.drawn for other in self.calls]):
            return None
        before = Position()
        value = function(*args, **kwargs)
        if type(value) is not float and (type(value) is not int or abs(value) >= LARGEST):
            before.restore()
            return None
        self._began = self._began or before
        title, index = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}", len(self.calls)
        drawing = partial(function, *args, **kwargs) if given else function
        call = HostCall(title, lambda now: (drawing, ()))
        call.drawn, call.number, self.numbers[index] = True, Given(self.numbers, index), value
        call.plain, call.of_python = list(given), getattr(function, "__self__", None) is random._inst  # type: ignore[attr-defined]
        self.tracer.hosts._keep(call, [])
        self.tracer.raw, self.tracer.watch.numbers = self.raw, True
        return self.tracer.reads(Entry(self.numbers, (index,), f"{function.__name__}() at {title}"), type(value) is int)

    def _example(self, leaf: Leaf, x: Any) -> Any:
        """What a leaf is in the trace; None if that is not known."""
        if isinstance(leaf, Argument) and x._node is None:
            return wrap(self.tracer.arguments[leaf.index].array)
        return x.example if isinstance(leaf, Result) else None

    def result(self, call: HostCall, leaf: Result, x: Any) -> Any:
        """What stands for what a statement gives: a tensor that it has made is one more argument."""
        if not is_own(x):
            return HostValue(leaf, call.title, x)
        call.gives.append((leaf.index, Looks.of(x)))
        return self.tracer.takes(x)

    def count(self) -> int:
        """How many statements come before all that is computed for what they give."""
        return max([i + 1 for i, call in enumerate(self.calls) if call.is_asked], default=0)

    def _arguments(self) -> list[Capture]:
        count = sum([len(call.gives) for call in self.calls])
        return self.tracer.arguments[len(self.tracer.arguments) - count :]  # type: ignore[no-any-return]

    def refuse_shared(self, value: HostValue, title: str) -> None:
        """Refuse to read an array in whose memory a tensor looks, which is another one in the graph."""
        held = [x._array if isinstance(x, Tensor) else x for x in tree_flatten(value.example)[0]]
        arrays = [x for x in (y.array for y in self._arguments()) if isinstance(x, np.ndarray)]
        if any([np.may_share_memory(x, y) for x in held if isinstance(x, np.ndarray) for y in arrays]):
            raise NotKept(message("compile", f"an array is read at {title} that shares its memory with a tensor"))

    def settle(self) -> None:
        """The function has returned; what runs behind it, in its backward, comes too late."""
        self._is_over = True
        if any([argument.cell.written for argument in self._arguments()]):
            text = "a tensor that is made of random numbers of NumPy or Python is written to"
            raise NotKept(message("compile", text))

    def restore(self) -> None:
        """Random numbers are where they were before the trace."""
        if self._began is not None:
            self._began.restore()


def draws(function: Any) -> bool:
    """Whether it draws from the random numbers whose `Position` is known."""
    source, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    return name not in _SETTING and (source is random._inst or source is np.random.mtrand._rand)  # type: ignore[attr-defined]


def may_be_drawn(statement: ast.stmt, reading: Reading) -> bool:
    """Whether a statement, by its words, sets variables or returns something, and calls nothing that does more than draw or
    make something. (What it does is looked at besides, see `tried`.)
    """
    code = reading.statement.__code__
    names = {name for inner in codes_of(code) for name in inner.co_names}
    if names & (_SETTING | _UNSEEN) or not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return):
        return False
    if any([writers_of(inner) for inner in codes_of(code)]):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Lambda | ast.IfExp | ast.BoolOp) or (isinstance(node, ast.comprehension) and node.ifs):
            return False  # what it does is seen of one call only
        if isinstance(node, ast.keyword) and node.arg in ("out", "generator", None):
            return False
        if isinstance(node, ast.Call) and not _may_be_called(reading.value(node.func), node.func):
            return False
    return True


def _may_be_called(function: Any, name: ast.expr) -> bool:
    """Of this package only what makes tensors; methods of what a call has given; what others do is seen."""
    is_method = isinstance(name, ast.Attribute)
    while isinstance(name, ast.Attribute | ast.Subscript):
        name = name.value
    if function is UNKNOWN:
        return is_method and not isinstance(name, ast.Name)
    if function is COMPUTED:
        return True
    if isinstance(function, FunctionType | type):
        module = function.__module__ or ""
        ours = module.partition(".")[0] == "genesis" or (
            isinstance(function, FunctionType) and LIBRARY[function.__code__.co_filename]
        )
        return not ours or (f"{module}.".startswith(_MAKING) and "random" not in module)
    return isinstance(function, BuiltinFunctionType) or type(function).__module__ == "numpy" or draws(function)


def is_apart(statement: ast.stmt, reading: Reading, examples: Iterable[Any]) -> bool:
    """Whether a statement looks at no tensor from outside, so that it may come before what is written to these.

    Args:
        examples: of what it reads that others give
    """
    if any([not isinstance(x, (*PLAIN, np.generic)) and not (type(x) is np.ndarray and is_young(x)) for x in examples]):
        return False
    inner = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
    ends = [n for n in ast.walk(statement) if isinstance(n, ast.Name | ast.Attribute) and id(n) not in inner]
    return all([_is_apart(reading.value(n), n) for n in ends if isinstance(n.ctx, ast.Load)])


def _is_apart(value: Any, node: ast.expr) -> bool:
    if value is COMPUTED or isinstance(value, (ModuleType, type, FunctionType)) or draws(value):
        return True
    if type(value).__module__ == "numpy" and callable(value):
        return True
    if value is UNKNOWN:  # a method of what a call has given
        while isinstance(node, ast.Attribute):
            node = node.value
        return not isinstance(node, ast.Name)
    if type(value) in (list, tuple):
        return all([type(x) in PLAIN for x in value])
    if isinstance(value, BuiltinFunctionType):
        return isinstance(value.__self__, ModuleType | type | None)
    return type(value) in PLAIN


def shape_of(x: Any, name: str, statement: ast.stmt) -> Any:
    """The value of a variable; of a tensor of the trace that a statement only asks for its shape, another one of that."""
    uses = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
    asked = [n.value for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr in _SHAPES]
    if (
        not isinstance(x, Tensor)
        or not isinstance(x._array, Traced)
        or not all([any([n is y for y in asked]) for n in uses])
    ):
        return x
    return wrap(np.broadcast_to(np.zeros((), x._array.dtype), x._array.shape))


def codes_of(code: CodeType) -> set[CodeType]:
    """Code, and that of functions in it."""
    return {code}.union(*[codes_of(x) for x in code.co_consts if isinstance(x, CodeType)])


def tried(
    watch: Any, function: Callable[[], Any], cells: Collection[CellType], code: CodeType
) -> tuple[Any, ...] | None:
    """What a statement returns, and what it sets, if it does no more than draw; None if it would do more, and has not."""
    before, streams = Position(), [(g, g._seed, g._block) for g in generators]
    try:
        with watch.drawing(codes_of(code)):
            result = copy_context().run(_outside, function)
        if all([(g._seed, g._block) == (seed, block) for g, seed, block in streams]):
            return result, *[contents(cell) for cell in cells]
    except (Exception, Stopped, Leaked):
        pass
    before.restore()
    for g, seed, block in streams:
        if (g._seed, g._block) != (seed, block):
            g._seed = seed
            g._position(block)
    return None


def _outside(function: Callable[[], Any]) -> Any:
    """Call a function as if no trace were made."""
    tracer.set(None)
    snapshot.set(None)
    return function()


def is_own(x: Any) -> bool:
    """Whether something is a new tensor without a history, in whose memory nothing looks that was there before."""
    if type(x) is not Tensor or x._node is not None or x.is_inference():
        return False
    if not isinstance(x._array, np.ndarray | DeviceArray):
        return False
    if not is_young(x):
        return False
    counts = _references(x)  # before a variable here is one more
    owner = x._array if x._array.base is None else x._array.base
    alone = counts[0] <= _ALONE[0] and (owner is x._array or counts[1] <= _ALONE[1])
    return alone or (isinstance(owner, np.ndarray) and owner.base is None and not is_held(owner))


def _references(x: Tensor) -> tuple[int, int]:
    """How often the array of a tensor and the one that owns its memory are counted."""
    return sys.getrefcount(x._array), sys.getrefcount(x._array.base)


_ALONE = _references(wrap(np.empty(2)[:1]))
