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

import inspect
from abc import ABCMeta
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from genesis.base.errors import ArgumentError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.generated import renew
from genesis.core.functions.calling import apply_of
from genesis.core.functions.context import FunctionCtx, HoldingCtx
from genesis.core.graph.node import Node
from genesis.core.layers.function_rules import no_jvp, no_vmap

if TYPE_CHECKING:
    from genesis.core.functions.typed import Apply


class FunctionClass(ABCMeta):  # so that nodes of the graph are instances of `Function`, without inheriting: see below
    """The class of Functions. What `apply` and the nodes know of a method is renewed when another is put there."""

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _PREPARED:
            _prepare(cls)

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        if name in _PREPARED:
            _prepare(cls)


_PREPARED = {"forward", "backward", "setup_context", "capture"}


class Function(metaclass=FunctionClass):
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

    _watched: ClassVar[bool]  # whether forward may read tensors that are no arguments
    _ctx: ClassVar[type[FunctionCtx]]
    _holding: ClassVar[type[FunctionCtx]]  # the same for a call that put tensors on attributes
    _run: ClassVar[Callable[..., Any]]
    _split: ClassVar[bool] = False  # forward(*args) and setup_context(ctx, inputs, output)
    _signature: ClassVar[inspect.Signature | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_definition(cls)
        members = {"__slots__": (), "_function": cls, "op_name": cls.__name__}
        cls._ctx = type(cls.__name__ + "Backward", (FunctionCtx,), members)
        run = apply_of(cls)
        run.__doc__ = Function.apply.__doc__
        cls._run = static = staticmethod(run)
        _prepare(cls)
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
    def _parameter_name(cls, index: int) -> str:
        """What forward calls its argument of this index (without ctx)."""
        parameters = list(inspect.signature(cls.forward).parameters.values())[0 if cls._split else 1 :]
        several = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), len(parameters))
        if index >= several < len(parameters):
            return f"{parameters[several].name}[{index - several}]"
        return parameters[index].name if index < len(parameters) else f"argument {index}"

    @classmethod
    def _input_name(cls, ctx: FunctionCtx, index: int) -> str:
        """What an input of one call is called in errors."""
        return cls._parameter_name(index)

    @classmethod
    def _rerun(cls, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """What forward saves, by the names that `core/functions/second_order.py` uses; called while recording."""
        ctx = cls._ctx()
        ctx._begin(())
        if cls._split:
            cls.setup_context(ctx, tuple(arguments), cls.forward(*arguments, **keywords))  # type: ignore[attr-defined]
        else:
            cls.forward(ctx, *arguments, **keywords)
        kept: tuple[Any, ...] = ctx._saved
        tensors = {f"saved tensor {i}": t for i, t in enumerate(kept)}
        for name, value in ctx.__dict__.items():
            leaves = tree_flatten(value)[0]
            tensors.update(
                {
                    f"ctx.{name}" if len(leaves) == 1 else f"ctx.{name}, tensor {i}": leaf
                    for i, leaf in enumerate(leaves)
                }
            )
        return tensors


Function.register(Node)  # `isinstance(y.grad_fn, genesis.Function)`, of built-in ops and of yours


def _function_of(ctx: Any) -> str:
    """The name of the class that a context belongs to."""
    return getattr(getattr(ctx, "_function", Function), "__name__", "Function")


def _prepare(cls: Any) -> None:
    """Take note of the methods of a class, and of those that inherit them."""
    if "_run" in vars(cls):
        cls._split = cls.setup_context is not Function.setup_context  # type: ignore[attr-defined]
        cls._signature = None
        cls._ctx._backward = _as_method(cls.backward)
        renew(cls._run)
    for inheriting in type.__subclasses__(cls):
        _prepare(inheriting)


def _as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a class attribute has to be, so that instances call ``function`` with themselves as the first argument."""
    return function if function.__class__ is FunctionType else lambda ctx, *gs: function(ctx, *gs)


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
        named = name in _KNOWN or hasattr(Function, name) or name.startswith("__")
        if not named and callable(getattr(value, "__func__", value)):
            import difflib

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
