"""`Function`: a differentiable operation of your own, in two static methods.

    class Square(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    y = Square.apply(x)

``ctx`` *is* the node of the recorded graph, so a user's function and a built-in op are the same thing to the
engine. The results are tracked whatever computed them (NumPy, ctypes, ...), because an *input* needs grad.
"""

from __future__ import annotations

import difflib
import dis
import inspect
import itertools
import sys
import weakref
from abc import ABCMeta
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from genesis.arrays.protocol import NeedsValues
from genesis.arrays.spec import spec_of
from genesis.base.errors import ArgumentError, GraphError, InplaceError, message
from genesis.base.pytree import TreeDef, is_container, tree_flatten, tree_unflatten
from genesis.core.call.casts import cast_for
from genesis.core.call.halves import F32, F64
from genesis.core.call.overrides import inside_forward
from genesis.core.call.recording import refuse_inference
from genesis.core.call.views import check_writable, guarded, rebase, watch
from genesis.core.functions import opaque, second_order
from genesis.core.functions.captures import captured, may_reach_tensors, place_key, watch_reads
from genesis.core.functions.context import FunctionCtx, HoldingCtx, hold_attributes
from genesis.core.graph import autocast
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.modes import grad_mode, watchers
from genesis.core.graph.node import INFERENCE, WRITES, Node, Output, next_number
from genesis.core.graph.saved import pack
from genesis.core.graph.site import LIBRARY, user_site
from genesis.core.graph.switches import ACTIVE, LEVELS, OVERRIDES
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.core.layers.function_rules import applied, layers_of, no_jvp, no_vmap

if TYPE_CHECKING:
    from genesis.core.functions.typed import Apply


class _Kinds(dict[type, Any]):
    """For each class of argument that is no tensor: None for a value, CONTAINER for a structure of tensors, OBJECT for
    what may hide some.
    """

    def __missing__(self, kind: type) -> Any:
        plain = kind.__module__ in ("builtins", "numpy", "genesis.base.dtypes", "genesis.base.device") or issubclass(
            kind, int | float | str
        )
        self[kind] = found = CONTAINER if is_container(kind) else None if plain else OBJECT
        return found


CONTAINER, OBJECT = object(), object()
KINDS = _Kinds()


class Function(metaclass=ABCMeta):  # so that nodes of the graph are instances of it, without inheriting: see below
    """Base class of differentiable operations: subclass it, write `forward` and `backward`, call `apply`.

    Arguments and results may be tensors, plain values, and containers of them (lists, tuples, dictionaries,
    dataclasses); ``backward`` gets one gradient for each result, and returns one for each argument in the argument's
    structure, or a dictionary by name.

    >>> import genesis
    >>> class Cube(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * g
    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward(); x.grad
    tensor(12.)
    """

    # under autocast: "low", "float32", "promote", a dtype, or "preserve" (no casts at all)
    amp_policy: ClassVar[Any] = None

    # tensors that forward reads from outside get gradients, too: backward returns them by name
    capture: ClassVar[bool] = False

    # as in PyTorch; without it, a forward that needs values runs sample by sample
    generate_vmap_rule: ClassVar[bool] = False

    _watched: ClassVar[bool] = True  # whether forward may read tensors that are no arguments
    _ctx: ClassVar[type[FunctionCtx]]
    _holding: ClassVar[type[FunctionCtx]]  # the same for a call that put tensors on attributes
    _run: ClassVar[Callable[..., Any]]
    _split: ClassVar[bool] = False  # forward(*args) and setup_context(ctx, inputs, output)
    _signature: ClassVar[inspect.Signature | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_definition(cls)
        cls._split = cls.setup_context is not Function.setup_context  # type: ignore[attr-defined]
        cls._signature = None
        members = {"__slots__": (), "_function": cls, "op_name": cls.__name__}
        cls._ctx = type(cls.__name__ + "Backward", (FunctionCtx,), members)
        run = _compiled(cls, cls._ctx)
        cls._run = static = staticmethod(run)
        if "apply" not in vars(cls):
            cls.apply = static
            return
        for base in cls.__mro__[1:]:  # super().apply(...) must run this class, not the base
            if base is not Function and "_run" in vars(base) and vars(base).get("apply") is vars(base)["_run"]:
                del base.apply  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise ArgumentError(
            message(name, "a Function is not instantiated", hint=f"make its methods static and call {name}.apply(...)")
        )

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; keep what backward needs in ``ctx``. Without ``ctx`` where `setup_context` is defined."""
        raise NotImplementedError(
            f"{_function_of(ctx)}.forward is not implemented: define a static forward(ctx, *args)"
        )

    if not TYPE_CHECKING:  # type checkers tell from it which signature `forward` has, see `core/functions/typed.py`

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            """Keep what backward needs, for a `forward` that has no ``ctx``."""
            raise NotImplementedError("Function.setup_context is not implemented")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient for each argument of forward, None where there is none."""
        raise NotImplementedError(
            f"{_function_of(ctx)}.backward is not implemented: define a static backward(ctx, *grad_outputs)"
        )

    jvp = staticmethod(no_jvp)
    vmap = staticmethod(no_vmap)

    if TYPE_CHECKING:
        apply: ClassVar[Apply]
    else:

        @classmethod
        def apply(cls, *args: Any, **kwargs: Any) -> Any:
            """Run forward, unrecorded, and record one node if an input needs a gradient."""
            if cls is Function:
                raise NotImplementedError(
                    message(
                        "Function.apply",
                        "Function is the base class and computes nothing by itself",
                        hint="class Double(genesis.Function): ..., with a static forward(ctx, x) and backward(ctx, "
                        "g); then Double.apply(x)",
                    )
                )
            return cls._run(*args, **kwargs)

    @classmethod
    def _bind(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """The call in the order of forward's signature, the default values filled in."""
        if cls._signature is None:
            signature = inspect.signature(cls.forward)
            if not cls._split:
                signature = signature.replace(parameters=list(signature.parameters.values())[1:])
            cls._signature = signature
        try:
            bound = cls._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                message(f"{cls.__name__}.apply", str(error), [("forward", str(cls._signature))])
            ) from None
        bound.apply_defaults()
        return bound

    @classmethod
    def _holding_ctx(cls) -> type[FunctionCtx]:
        if "_holding" not in vars(cls):
            members = {"__slots__": (), "saved_variables": property(HoldingCtx.saved_variables_)}
            cls._holding = type(cls._ctx.__name__, (HoldingCtx, cls._ctx), members)
        return cls._holding

    @classmethod
    def _parameter_name(cls, place: int) -> str:
        """What forward calls its argument at a place (without ctx)."""
        parameters = list(inspect.signature(cls.forward).parameters.values())[0 if cls._split else 1 :]
        several = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), len(parameters))
        if place >= several < len(parameters):
            return f"{parameters[several].name}[{place - several}]"
        return parameters[place].name if place < len(parameters) else f"argument {place}"

    @classmethod
    def _input_name(cls, ctx: FunctionCtx, place: int) -> str:
        """What an input of one call is called in errors."""
        return cls._parameter_name(place)

    @classmethod
    def _rerun(cls, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """What forward saves, by the names that `core/functions/second_order.py` uses; called while recording."""
        ctx = cls._ctx()
        ctx._edges = ctx._saved = ()
        if cls._split:
            cls.setup_context(ctx, tuple(arguments), cls.forward(*arguments, **keywords))  # type: ignore[attr-defined]
        else:
            cls.forward(ctx, *arguments, **keywords)
        kept: tuple[Any, ...] = ctx._saved
        found = {f"saved tensor {i}": t for i, t in enumerate(kept)}
        for name, value in ctx.__dict__.items():
            leaves = tree_flatten(value)[0]
            found.update(
                {
                    f"ctx.{name}" if len(leaves) == 1 else f"ctx.{name}, tensor {i}": leaf
                    for i, leaf in enumerate(leaves)
                }
            )
        return found


Function.register(Node)  # `isinstance(y.grad_fn, genesis.Function)`, of built-in ops and of yours

_frame = sys._getframe


def _function_of(ctx: Any) -> str:
    """The name of the class that a context belongs to."""
    return getattr(getattr(ctx, "_function", Function), "__name__", "Function")


def _compiled(cls: type[Function], make_node: type[FunctionCtx]) -> Callable[..., Any]:
    """`apply` of one class: everything it needs is a free variable, which costs half of looking it up on the class."""
    split, sets_attributes = cls._split, cls._split or _may_set_attributes(cls.forward)
    recording, set_mode, kinds, writes = grad_mode.get, grad_mode.set, KINDS, WRITES
    slow, first = True, True
    users: Any = None  # the code that called last, known not to be this package's own

    def apply(*args: Any, **kwargs: Any) -> Any:
        nonlocal slow, first, users
        if kwargs or slow or ACTIVE or LEVELS:
            if first:
                cls._watched = cls.capture or may_reach_tensors(cls.forward)
                first, slow = False, split or cls._watched
            return _apply(cls, args, kwargs)
        edges = []
        needed = False
        for a in args:
            if isinstance(a, Tensor):
                edge = a._node
                edges.append(edge)
                if edge is not None:
                    needed = True
            elif kinds[a.__class__] is None:
                edges.append(None)
            else:
                return _apply(cls, args, kwargs)
        ctx = make_node()
        ctx._hooks = None
        ctx._saved = ()
        mode = recording()
        needed = needed and mode
        ctx._edges = edges if needed else [None] * len(edges)  # type: ignore[assignment]
        ctx._epoch = epoch = writes[0]
        try:  # the mode is changed inside: Ctrl-C may come with the end of any call
            set_mode(False)
            result = cls.forward(ctx, *args)
        finally:
            set_mode(mode)
        if not needed:
            for kept in ctx._saved:  # type: ignore[var-annotated]
                if kept.__class__ is not Tensor:
                    ctx._code, ctx._at = None, -1
                    ctx.check_saved()
            if epoch is not writes[0]:
                _check_unrecorded_writes(cls, args, epoch)
            if result.__class__ is not Tensor or result._view is not None:
                _watch_views(result)
            return result
        if a is None:
            ctx._optional = _optional(args, {}, len(args))
        ctx._number = next_number()
        frame = _frame(1)
        ctx._code = code = frame.f_code
        ctx._at = frame.f_lasti
        if code is not users:
            if LIBRARY[code.co_filename]:
                ctx._code, ctx._at = user_site(frame.f_back)
            else:
                users = code
        if (
            result.__class__ is not Tensor
            or epoch is not writes[0]
            or result._node is not None
            or result._view is not None
        ):
            return _finish(ctx, args, {}, result, epoch)
        array = result._array
        ctx._shape = array.shape
        ctx._dtype = dtype = array.dtype
        if (dtype is not F32 and dtype is not F64) or (sets_attributes and ctx.__dict__):
            return _finish(ctx, args, {}, result, epoch)
        for a in args:
            if a is result:
                return _finish(ctx, args, {}, result, epoch)
        saved: tuple[Any, ...] = ctx._saved
        for t in saved:
            if t is None or (t.__class__ is Tensor and t._node is not None):
                continue
            for a in args:  # an input that needs no gradient, or something that has to be looked at
                if a is t and t.__class__ is Tensor and t._counter is not INFERENCE:
                    break
            else:
                return _finish(ctx, args, {}, result, epoch)
        result._node = ctx  # one new tensor, as usual
        return result

    apply.__qualname__ = f"{cls.__qualname__}.apply"
    apply.__module__ = cls.__module__
    apply.__doc__ = Function.apply.__doc__
    apply.__self__ = cls  # type: ignore[attr-defined]  # as of the class method that it stands for
    return apply


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


def _check_definition(cls: type[Function]) -> None:
    """Mistakes that can be seen when the class is made."""
    own = vars(cls)
    if "vjp" in own:
        if "backward" in own:
            raise ArgumentError(
                message(cls.__name__, "defines both backward and vjp, two names of one method", hint="keep one")
            )
        cls.backward = own["vjp"]  # type: ignore[method-assign]
    for name, value in own.items():
        if callable(getattr(value, "__func__", value)) and name not in _KNOWN and not name.startswith("__"):
            close = difflib.get_close_matches(name, ("forward", "backward", "setup_context"), 1, 0.85)
            if close and close[0] not in own:
                raise ArgumentError(message(cls.__name__, f"defines {name!r}", hint=f"did you mean {close[0]!r}?"))
    forward = own.get("forward")
    function = getattr(forward, "__func__", forward)
    if "setup_context" not in own and cls.setup_context is Function.setup_context and inspect.isfunction(function):  # type: ignore[attr-defined]
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise ArgumentError(
                message(cls.__name__, "forward has no parameter for the context", hint="def forward(ctx, ...)")
            )


_KNOWN = {"forward", "backward", "vjp", "jvp", "vmap", "setup_context", "apply"}


# ---- the general call: keywords, containers, setup_context


def _apply(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`apply` in general; in a trace as the computation that it is, or else as one call (`core/functions/opaque.py`)."""
    if not ACTIVE or tracer.get() is None:
        return _apply_here(cls, args, kwargs)
    try:
        return _apply_here(cls, args, kwargs)
    except NeedsValues:
        if LEVELS and layers_of(tree_flatten((args, kwargs))[0]) is not None:
            raise
        return opaque.traced(cls, args, kwargs)


def _apply_here(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`apply` inside transforms by their rules, under overrides, or as it is."""
    if LEVELS:
        leaves = [
            x
            for a in (*args, *kwargs.values())
            for x in (tree_flatten(a)[0] if KINDS[a.__class__] is CONTAINER else (a,))
        ]
        if layers_of(leaves) is not None:
            with inside_forward() if OVERRIDES else nullcontext():
                return applied(cls, _apply_plain, args, kwargs)
    if OVERRIDES:
        with inside_forward():
            return _apply_plain(cls, args, kwargs)
    return _apply_plain(cls, args, kwargs)


def _optional(inputs: Sequence[Any], keywords: dict[str, Any], given: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Arguments whose gradients backward may leave out: the last ones, if None or plain and not ``given`` by position;
    all plain keywords.
    """
    values = [*inputs, *keywords.values()]
    plain = [not any(isinstance(x, Tensor) for x in tree_flatten(value)[0]) for value in values]
    first = len(values)
    while first and (values[first - 1] is None or (plain[first - 1] and first > given)):
        first -= 1
    return tuple(range(first, len(values))), tuple(i for i in range(len(inputs), len(values)) if plain[i])


def _apply_plain(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], given: int | None = None) -> Any:
    given = len(args) if given is None else given  # how many arguments were given by position
    keywords: dict[str, Any] = {}
    inputs = args
    if kwargs or cls._split:
        bound = cls._bind(args, kwargs)
        inputs, keywords = bound.args, bound.kwargs
    mode = autocast.state() if ACTIVE else None
    if mode is not None and cls.amp_policy is not None:
        values = inputs
        if cls.amp_policy != "preserve":
            values = cast_for(cls.amp_policy, (*inputs, *keywords.values()), mode)
        with autocast.restored(None):
            return _apply_plain(
                cls, values[: len(inputs)], dict(zip(keywords, values[len(inputs) :], strict=False)), given
            )
    edges: list[Any] = []
    structures: list[TreeDef | None] = []
    leaves: list[Any] = []
    for value in (*inputs, *keywords.values()):
        items, structure = tree_flatten(value) if KINDS[value.__class__] is CONTAINER else ([value], None)
        if not any(isinstance(item, Tensor) for item in items):
            items, structure = [None], None  # sizes, names: a plain value
        leaves += items
        structures.append(structure)
        edges += [item._node if isinstance(item, Tensor) else None for item in items]
    ctx = cls._ctx()
    ctx._hooks, ctx._saved = None, ()
    recording = grad_mode.get() and any(e is not None for e in edges)
    ctx._edges = tuple(edges) if recording else (None,) * len(edges)
    if any(s is not None for s in structures):
        ctx._structures = tuple(structures)
    epoch = WRITES[0]
    watched = grad_mode.get() and (
        cls._watched
        or any([KINDS[a.__class__] is OBJECT and not isinstance(a, Tensor) for a in (*inputs, *keywords.values())])
    )
    outside = grad_mode.get()
    try:
        grad_mode.set(False)
        with watch_reads(edges) if watched else nullcontext() as reads:
            if cls._split:
                result = cls.forward(*inputs, **keywords)
                cls.setup_context(ctx, inputs, result)  # type: ignore[attr-defined]
            else:
                result = cls.forward(ctx, *inputs, **keywords)
    finally:
        grad_mode.set(outside)
    if reads:
        recording = _take_captured(ctx, reads, edges, inputs, keywords)
    for observer in watchers.get() if ACTIVE else ():
        observer.function_result(cls, [*inputs, *keywords.values()], result)
    if recording and (bool(kwargs) or cls._split or (inputs and inputs[-1] is None)):
        ctx._optional = _optional(inputs, keywords, given)
    ctx._number = next_number()
    ctx._code, ctx._at = user_site(_frame(2))
    if not recording:
        ctx.check_saved()
        _check_unrecorded_writes(cls, leaves, epoch)
        _watch_views(result)
        return result
    ctx._hooks = SPECIAL
    if mode is not None:
        ctx._autocast = mode._replace(cache=None)
    return _finish(ctx, inputs, keywords, result, epoch, leaves)


def _take_captured(
    ctx: FunctionCtx, reads: dict[Any, Any], edges: list[Any], inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> bool:
    """Tensors that forward used without being given them: refused, or made inputs of the node."""
    cls = ctx._function
    given = inputs if cls._split else (None, *inputs)
    known = {place_key(t._node): name for name, t in captured(cls.forward, (*given, *keywords.values()))}
    names = [known.get(key, "a tensor") for key in reads]
    if not cls.capture or "a tensor" in names:
        listed = " and ".join(names)
        raise GraphError(
            message(
                f"{cls.__name__}.forward",
                f"uses {listed}, which {'requires' if len(names) == 1 else 'require'} grad but "
                f"{'is no argument' if len(names) == 1 else 'are no arguments'}: "
                f"{'its gradient' if len(names) == 1 else 'their gradients'} would be lost",
                operands=[(name, f"{list(e._shape)}") for name, e in zip(names, reads.values(), strict=True)],
                hint=f"pass it to apply, or use {names[0]}.detach(); with `capture = True` in the class backward may "
                f"return {{'{names[0]}': gradient}}",
            )
        )
    ctx._edges = (*edges, *reads.values())
    ctx._captured = tuple(names)
    return True


def _finish(
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    result: Any,
    epoch: int,
    leaves: Sequence[Any] | None = None,
) -> Any:
    """Give the results their history, and take care of what was saved."""
    inputs = args if leaves is None else leaves
    written = _check_written(ctx, inputs, epoch) if epoch is not WRITES[0] or ctx._dirty else []
    ctx._epoch = WRITES[0]
    results, structure = [result], None
    if not isinstance(result, Tensor):
        results, structure = (
            tree_flatten(result) if result.__class__ is not tuple or not _flat(result) else (list(result), PLAIN_TUPLE)
        )
        if not any([isinstance(r, Tensor) for r in results]):
            return result
    outs = [r if not isinstance(r, Tensor) or (written and is_in(r, written)) else _fresh(r, inputs) for r in results]
    first = next(r for r in outs if isinstance(r, Tensor))
    ctx._shape, ctx._dtype = first._array.shape, first._array.dtype
    if structure is not None:
        ctx._outputs = [(r._array.shape, r._array.dtype) if isinstance(r, Tensor) else None for r in outs]  # type: ignore[assignment]
        ctx._hooks = SPECIAL
        if structure is not PLAIN_TUPLE and (
            structure.kind not in (tuple, list) or any(child.kind is not None for child in structure.children)
        ):
            ctx._result = structure
    _keep(ctx, args, keywords, inputs, results, written)
    for index, (raw, out) in enumerate(zip(results, outs, strict=True)):
        if (
            isinstance(out, Tensor)
            and _carries_grad(out)
            and not (ctx._non_differentiable and is_in(raw, ctx._non_differentiable))
        ):
            edge = ctx if structure is None else Output(ctx, index)
            if written and is_in(out, written):
                rebase(out, edge)
            else:
                out._node = edge
    ctx.__dict__.pop("_non_differentiable", None)
    ctx.__dict__.pop("_dirty", None)
    return (
        outs[0] if structure is None else tuple(outs) if structure is PLAIN_TUPLE else tree_unflatten(outs, structure)
    )


PLAIN_TUPLE = TreeDef(tuple)  # stands for a tuple of tensors and values, the usual result of several


def _flat(results: tuple[Any, ...]) -> bool:
    return all([isinstance(r, Tensor) or KINDS[r.__class__] is not CONTAINER for r in results])


def _keep(
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    inputs: Sequence[Any],
    results: list[Any],
    written: list[Tensor],
) -> None:
    """Find out where the saved tensors come from (`core/functions/second_order.py`); a saved output is kept as a
    detached twin.
    """
    ctx.check_saved()
    refuse_inference(ctx.op_name, ctx._saved)
    constants = ctx.__dict__.pop("_constants", ())

    def origin(t: Tensor) -> Any:
        return second_order.origin_of(t, inputs, results, constants)

    saved: tuple[Any, ...] = ctx._saved
    # not just inputs with history
    if saved and (ACTIVE or not all([isinstance(t, Tensor) and t._node is not None for t in saved])):
        origins = [origin(t) if isinstance(t, Tensor) else None for t in ctx._saved]
        ctx._saved = tuple(
            [
                t._alias(None) if isinstance(o, int) and t._node is None else t
                for t, o in zip(ctx._saved, origins, strict=True)
            ]
        )
        if any(o is not None for o in origins):
            ctx._origins = tuple(origins)
        if ACTIVE:
            pack(ctx)
    elif ACTIVE:
        pack(ctx)
    if ctx.__dict__:
        hold_attributes(ctx, origin)
    found = [*ctx._origins, *(o for held in (ctx._held or {}).values() for o in held[2])]
    if any(o is second_order.INTERMEDIATE for o in found) and not written:
        weak: Callable[[Any], Any] = lambda a: weakref.ref(a) if isinstance(a, Tensor) else a
        ctx._hooks = SPECIAL
        ctx._call = second_order.Call([weak(a) for a in args], {k: weak(a) for k, a in keywords.items()}, ctx._epoch)


def is_in(t: Any, tensors: Sequence[Any]) -> bool:
    """Membership by identity (``in`` would compare elements)."""
    return any(other is t for other in tensors)


def _carries_grad(t: Tensor) -> bool:
    return t._array.dtype.kind in "fc" or t.dtype.is_floating_point


def _fresh(r: Tensor, args: Sequence[Any]) -> Tensor:
    """An output that is an input, or a view of one, becomes a tensor of its own on the same memory, and is not written
    to in place.
    """
    if r._node is None and r._view is None:
        for a in args:
            if a is r:
                break
        else:
            return r
    return guarded(r._alias(None), r)


def _watch_views(result: Any) -> None:
    """Results on the memory of inputs without history: these may get one, and then the results' is not known."""
    if grad_mode.get():
        for r in tree_flatten(result)[0]:
            if (
                isinstance(r, Tensor)
                and r._view is not None
                and not r._view.recorded
                and r._counter is not None
                and r._counter is not INFERENCE
            ):
                watch(r, r._counter)


def _check_unrecorded_writes(cls: type[Function], args: Sequence[Any], epoch: int) -> None:
    """An input without history that was written to may be a view of something that has one."""
    if grad_mode.get():
        for t in args:
            if isinstance(t, Tensor) and t._view is not None and t._counter is not None and t._counter.stamp > epoch:
                check_writable(t, cls.__name__, False)


def _check_written(ctx: FunctionCtx, args: Sequence[Any], epoch: int) -> list[Tensor]:
    """The inputs that forward wrote to, declared with `mark_dirty` or found by the time of their last write."""
    name = ctx._function.__name__
    tensors = [a for a in args if isinstance(a, Tensor) and a._counter is not None]
    written = [t for t in tensors if t._counter.stamp > epoch]  # type: ignore[union-attr]
    for t in ctx._dirty:
        if not is_in(t, written):
            raise InplaceError(
                message(
                    name,
                    "mark_dirty names a tensor that forward did not write to",
                    operands=[("tensor", spec_of(t._array))],
                )
            )
    for t in written:
        check_writable(t, f"{name}.forward", True)
    return written
