"""``__torch_function__``: classes that say what the functions of Genesis do with their objects.

A subclass of `Tensor` gets results of its own class, or with a ``__torch_function__`` whatever that returns. Programs
without such a class pay nothing: when the first one is defined, the code of the public functions is exchanged for one
that looks at the classes of its arguments first (about 0.3 us), as `core/call/overrides.py` does for single ops. An object
of any other class with a ``__torch_function__`` is met where a function fails on it.

Inside of `disabled`, in a backward, and in the methods that a class inherits, nothing is looked at.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any

from genesis.base.errors import ArgumentError, UnsupportedError, message
from genesis.base.locks import process_lock
from genesis.core.call.generated import give_text, is_late
from genesis.core.call.op import REGISTRY
from genesis.core.call.refusal import ANSWERS
from genesis.core.graph.engine import current
from genesis.core.graph.parameter import Buffer, Parameter
from genesis.core.graph.tensor import Tensor


class _Kinds(set[type]):
    """A set that can be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class _Modes(list[Any]):
    """A list that can be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


MODES = _Modes()  # that are open, in any thread
_open_modes: ContextVar[tuple[Any, ...]] = ContextVar("genesis_torch_function_modes", default=())
KINDS = _Kinds()  # classes whose objects are asked, as far as any is known
ROUTED: dict[FunctionType, FunctionType] = {}  # functions whose code was exchanged, with what they did
_ready: dict[FunctionType, tuple[FunctionType, CodeType, inspect.Signature]] = {}  # what they are exchanged for
_names: dict[FunctionType, Callable[..., Any]] = {}  # what a function is called to users: x + y is Tensor.add
_off: ContextVar[bool] = ContextVar("genesis_torch_function_off", default=False)
_changing = process_lock()

# methods that are no ops, and whose results are of the class; other methods of `core/graph` are left alone
_PLAIN = {"detach", "__len__", "__repr__"}
_KEPT = {"as_subclass"}
_MODULES = ("genesis", "genesis.nn.functional", "genesis.linalg", "genesis.fft", "genesis.special")


@contextmanager
def disabled() -> Iterator[None]:
    """Inside, functions do what they do with tensors of any class.

    >>> import genesis
    >>> with disabled():
    ...     genesis.ones(1) + 1
    tensor([2.])
    """
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def is_disabled() -> bool:
    return _off.get()


def default_torch_function(
    cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """What `Tensor` does: the function, and tensors among its results become those of the class."""
    if not all([issubclass(cls, kind) for kind in types]):
        return NotImplemented
    with disabled():
        result = func(*args, **(kwargs or {}))
        given = {id(x) for x in _flat([*args, *(kwargs or {}).values()])}
        return _converted(result, cls, given)


def no_torch_function(
    cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """What `Parameter` does: the function, whose results are plain tensors."""
    with disabled():
        return func(*args, **(kwargs or {}))


def _converted(value: Any, cls: type, given: set[int]) -> Any:
    if isinstance(value, Tensor):
        if isinstance(value, cls) or not issubclass(cls, Tensor):
            return value
        if value.__class__ is Tensor and id(value) not in given and value.__dict__ == {}:
            try:
                value.__class__ = cls  # it is new: nobody else has it
            except TypeError:  # the class has slots
                return as_subclass(value, cls)
            return value
        return as_subclass(value, cls)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_converted(x, cls, given) for x in value])
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__(_converted(x, cls, given) for x in value)
    return value


def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
    """The same tensor as an object of a subclass: it shares memory and history.

    Raises:
        TypeError: not a subclass of `Tensor`

    >>> import genesis
    >>> type(genesis.ones(2).as_subclass(genesis.nn.Parameter)).__name__
    'Parameter'
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise ArgumentError(message("as_subclass", f"expected a subclass of Tensor, got {cls!r}"))
    out = object.__new__(cls)
    out._array, out._node, out._counter, out._view = self._array, self._node, self._shared_counter(), self._view
    out._array = self._array
    return out


def make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a subclass on the memory of a tensor: what ``torch.Tensor._make_subclass`` is."""
    own = getattr(cls, "__torch_dispatch__", None)
    if own is not None and getattr(own, "__name__", "") != "_disabled_torch_dispatch_impl":
        _no_wrappers(cls)
    out = as_subclass(data.detach(), cls)
    return out.requires_grad_() if require_grad else out


def _no_wrappers(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(
        message(
            cls.__name__,
            "__torch_dispatch__ of a class is not asked, and tensors without memory that hold others are not there",
            hint="define __torch_function__, or open a TorchDispatchMode",
        )
    )


# ---- which arguments are asked


def _flat(values: Iterable[Any]) -> list[Any]:
    every: list[Any] = []
    for x in values:
        every += x if x.__class__ is list or x.__class__ is tuple else [x]
    return every


def asked(value: Any) -> bool:
    """Whether the class of a value says what functions do with it."""
    function = getattr(type(value), "__torch_function__", None)
    if function is None or _off.get():
        return False
    return type(value) is not Tensor and getattr(function, "__func__", function) is not no_torch_function


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The values that are asked, one of each class: subclasses before what they derive from, else in order."""
    asked_ones: list[Any] = []
    for x in values:
        if asked(x) and type(x) not in [type(y) for y in asked_ones]:
            at = next((i for i, y in enumerate(asked_ones) if issubclass(type(x), type(y))), len(asked_ones))
            asked_ones.insert(at, x)
    return asked_ones


def handled(func: Callable[..., Any], relevant: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the classes of these arguments make of a call.

    Raises:
        TypeError: none of them knows
    """
    return _answered(func, overloaded(relevant), args, kwargs)


def _answered(func: Callable[..., Any], asked_ones: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple([type(x) for x in asked_ones])
    for x in asked_ones:
        result = type(x).__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(func, "__name__", str(func))
    if name.startswith("__") and name.endswith("__"):
        return NotImplemented  # Python asks the other operand, and says that there is no such operation
    raise ArgumentError(
        message(name, f"no implementation found: {', '.join(t.__name__ for t in types)} returned NotImplemented")
    )


def _dispatch(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with an argument of one of `KINDS`, or while a mode is open."""
    original = ROUTED.get(function, function)  # another thread may have restored it since the call began
    relevant = _flat([*args, *kwargs.values()])
    modes = _open_modes.get()
    if modes and not _off.get() and current() is None:
        return _asked_mode(modes, _names.get(function, function), relevant, args, kwargs)
    asked_ones = [] if _off.get() or current() is not None else overloaded(relevant)
    if not asked_ones:
        return original(*args, **kwargs)
    return _answered(_names.get(function, function), asked_ones, args, kwargs)


def _asked_mode(modes: tuple[Any, ...], func: Any, relevant: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the innermost mode makes of a call; inside of it those around it are asked."""
    types = tuple([type(x) for x in overloaded(relevant)])
    token = _open_modes.set(modes[:-1])
    try:
        result = modes[-1].__torch_function__(func, types, args, kwargs)
    finally:
        _open_modes.reset(token)
    if result is NotImplemented:
        name = getattr(func, "__name__", str(func))
        raise ArgumentError(message(name, f"the mode {type(modes[-1]).__name__} returned NotImplemented"))
    return result


def answer_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of a call that failed: ``(result,)`` if an argument that is no tensor has a ``__torch_function__``, else None."""
    if not any([not isinstance(x, Tensor) and asked(x) for x in _flat([*args, *kwargs.values()])]):
        return None
    relevant = _flat([*args, *kwargs.values()])
    for x in overloaded(relevant):
        add_kind(type(x))  # from now on before anything is tried
    return (handled(function, relevant, args, kwargs),)


# ---- the exchange of code

# the names in the code are such as no closure has
_TEMPLATE = """
def make({free}):
    def call(*_args, **_kwargs):
        if 0: return ({free})
        _kinds, _function, _original, _dispatch, _modes = "kinds", "function", "original", "dispatch", "modes"
        if _modes:
            return _dispatch(_function, _args, _kwargs)
        for _x in _args:
            _kind = _x.__class__
            if _kind in _kinds or (
                (_kind is list or _kind is tuple) and not _kinds.isdisjoint([_y.__class__ for _y in _x])
            ):
                return _dispatch(_function, _args, _kwargs)
        for _x in _kwargs.values():
            _kind = _x.__class__
            if _kind in _kinds or (
                (_kind is list or _kind is tuple) and not _kinds.isdisjoint([_y.__class__ for _y in _x])
            ):
                return _dispatch(_function, _args, _kwargs)
        return _original(*_args, **_kwargs)
    return call
"""
_SLOTS = (
    "kinds",
    "function",
    "original",
    "dispatch",
    "modes",
)  # a constant of that code, for which the objects are put


@functools.cache
def _general(free: tuple[str, ...]) -> CodeType:
    scope: dict[str, Any] = {}
    text = _TEMPLATE.format(free=", ".join([*free, ""]))
    exec(compile(text, __file__, "exec"), scope)  # of this package, for those that look at who runs; so is code inside
    return scope["make"](*free).__code__  # type: ignore[no-any-return]


def _routing(function: FunctionType, original: FunctionType) -> CodeType:
    """Code in the place of a function's own, with the same free variables."""
    mine = function.__code__
    code = _general(mine.co_freevars)
    constants = tuple([(KINDS, function, original, _dispatch, MODES) if c == _SLOTS else c for c in code.co_consts])
    return code.replace(
        co_consts=constants, co_name=mine.co_name, co_qualname=mine.co_qualname, co_filename=mine.co_filename
    )


def _route(function: FunctionType) -> None:
    if function in ROUTED:
        return
    before, late = _ready.get(function), is_late(function)
    if before is not None and before[0].__code__ is function.__code__ and not late:  # it was exchanged before
        ROUTED[function], function.__code__, signature = before
        function.__signature__ = signature  # type: ignore[attr-defined]
        return
    signature = inspect.signature(function)  # of one that was not called yet it is worked out when somebody asks
    original = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__, original.__qualname__ = function.__kwdefaults__, function.__qualname__
    if late:  # its signature is asked for of it
        original.__annotations__ = function.__annotations__
        original.__dict__.update({k: v for k, v in function.__dict__.items() if k != "__signature__"})
        give_text(original)
    ROUTED[function] = original
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__code__ = _routing(function, original)
    _ready[function] = original, function.__code__, signature


def overridable() -> dict[Any, dict[str, Callable[..., Any]]]:
    """The functions that a class may say something about, by the module or class that has them."""
    by_owner: dict[Any, dict[str, Callable[..., Any]]] = {}
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is not None:
            public = {k: v for k, v in vars(module).items() if isinstance(v, FunctionType) and not k.startswith("_")}
            by_owner[module] = {k: v for k, v in public.items() if hasattr(v, "op") or _of_tensors(v)}
    methods: dict[str, Callable[..., Any]] = {
        k: v for k, v in vars(Tensor).items() if isinstance(v, FunctionType) and _is_op(k, v)
    }
    return by_owner | {Tensor: methods}


def _public() -> Iterator[FunctionType]:
    yield from [op.call for op in REGISTRY.values() if isinstance(op.call, FunctionType)]
    for owner, functions in overridable().items():
        for name, function in functions.items():
            if owner is Tensor:
                _call(name, function)  # type: ignore[arg-type]
            yield function  # type: ignore[misc]


def _call(name: str, method: FunctionType) -> None:
    """Settle under which name classes see a method."""
    word = name.strip("_")
    plain = _OPERATORS.get(name, getattr(Tensor, word, None) if word in _SAME and not name.startswith("__r") else None)
    if name.startswith("__") and plain is not None:
        _names[method] = getattr(Tensor, plain) if isinstance(plain, str) else plain
    elif name.startswith("__") or method.__name__.startswith(("_", "<")):
        method.__name__ = name


_SAME = frozenset(
    ("add", "sub", "mul", "matmul", "pow", "neg", "abs", "lt", "le", "gt", "ge", "ne", "eq")
)  # x + y is x.add(y) to them
_OPERATORS = {"__radd__": "add", "__rmul__": "mul", "__truediv__": "div", "__itruediv__": "div_"}
_OPERATORS |= {f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")}


def _is_op(name: str, method: FunctionType) -> bool:
    if name in _KEPT or (name.startswith("_") and not name.startswith("__")):
        return name in _PLAIN
    if not str(method.__module__ or "genesis.core.call").startswith("genesis."):  # generated ones are of no module
        return False  # a program put it there
    return name in _PLAIN or not str(method.__module__).startswith("genesis.core.graph")


def _of_tensors(function: FunctionType) -> bool:
    """Whether a function takes tensors, and computes with them."""
    return any(
        part in str(p.annotation)
        for p in inspect.signature(function).parameters.values()
        for part in ("Tensor", "Array")
    )


def add_kind(cls: type, everywhere: bool = False) -> None:
    """Ask the objects of a class from now on; ``everywhere`` those of symbols, which functions without tensors ask, too."""
    with _changing:
        if not ROUTED:
            for function in list(_public()):
                _route(function)
        for function in _others() if everywhere else ():
            _route(function)
        KINDS.add(cls)


def remove_kinds(kinds: Iterable[type]) -> None:
    """Undo `add_kind`."""
    with _changing:
        KINDS.difference_update(kinds)
        if not MODES and not KINDS:
            _restore()


def open_mode(mode: Any) -> None:
    """Ask a mode about every call of this thread, those that make tensors included."""
    with _changing:
        for function in [*_public(), *_makers()]:
            _route(function)
        MODES.append(mode)
    _open_modes.set((*_open_modes.get(), mode))


def close_mode(mode: Any) -> None:
    """Undo `open_mode`; once there is neither a mode nor a class, functions are as they were."""
    modes = _open_modes.get()
    at = max([i for i, each in enumerate(modes) if each is mode], default=0)
    _open_modes.set(modes[:at])
    with _changing:
        MODES[:] = [each for each in MODES if each is not mode]
        if not MODES and not KINDS:
            _restore()


def _makers() -> list[FunctionType]:
    """Functions that make tensors of none."""
    rooms = [m for name, m in sys.modules.items() if name.startswith("genesis.ops.creation.")]
    public = vars(sys.modules["genesis"])
    listed = [public.get(name) for room in rooms for name in getattr(room, "__all__", ())]
    return [v for v in listed if isinstance(v, FunctionType)]


def _others() -> list[FunctionType]:
    """Public functions that have sizes, numbers or any tensors among their arguments, but for questions about classes."""
    rooms = [vars(sys.modules[name]) for name in _MODULES if name in sys.modules]
    public = [v for room in rooms for k, v in room.items() if not k.startswith(("_", "is_", "set_", "get_"))]
    return [v for v in public if isinstance(v, FunctionType)]


def take_away() -> None:
    """Ask no class any more, as if none had been defined: for tests."""
    with _changing:
        KINDS.clear()
        _restore()


def _restore() -> None:
    for function, original in ROUTED.items():
        function.__code__ = original.__code__
        if is_late(original):
            give_text(function)
            continue
        function.__defaults__, function.__kwdefaults__ = original.__defaults__, original.__kwdefaults__
        del function.__signature__  # type: ignore[attr-defined]
    ROUTED.clear()


# ---- subclasses of Tensor


def _subclassed(cls: type[Tensor], **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    function: Any = cls.__torch_function__  # type: ignore[attr-defined]
    if function.__func__ is not no_torch_function:
        add_kind(cls)
    if "__new__" in vars(cls):
        cls._made = True
        if str(cls.__init__.__module__).startswith("genesis.") and not cls.__module__.startswith("genesis."):
            cls.__init__ = _after_new(cls.__init__)  # type: ignore[method-assign]
        Tensor.__new__ = staticmethod(_constructed)  # type: ignore[method-assign, assignment]


def _constructed(cls: type[Tensor], *data: Any, **kwargs: Any) -> Tensor:
    """``super().__new__(cls, data)`` of a class that makes its objects there; elsewhere ``__init__`` does."""
    out = object.__new__(cls)
    if cls._made:
        next(init for kind, init in _INITS.items() if issubclass(cls, kind))(out, *data, **kwargs)
    return out


def _after_new(init: Any) -> Any:
    """The ``__init__`` of a class with a ``__new__`` of its own: what that has made stays, whatever its arguments are."""

    @functools.wraps(init)
    def made(self: Tensor, *args: Any, **kwargs: Any) -> None:
        if not hasattr(self, "_array"):
            init(self, *args, **kwargs)

    return made


_INITS: dict[type, Any] = {kind: kind.__init__ for kind in (Parameter, Buffer, Tensor)}


ANSWERS.append(answer_of)
Tensor.__init_subclass__ = classmethod(_subclassed)  # type: ignore[assignment, arg-type]
Tensor.__torch_function__ = classmethod(default_torch_function)  # type: ignore[attr-defined]
Parameter.__torch_function__ = classmethod(no_torch_function)  # type: ignore[attr-defined]
Buffer.__torch_function__ = classmethod(no_torch_function)  # type: ignore[attr-defined]
for _name, _method in (
    ("as_subclass", as_subclass), ("_make_subclass", staticmethod(make_subclass)),
    ("_make_wrapper_subclass", staticmethod(_no_wrappers)),
):  # fmt: skip
    setattr(Tensor, _name, _method)
