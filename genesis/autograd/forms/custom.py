"""Gradients of your own as decorators: a closure, a pair of functions, a lambda for each argument.

    `custom_gradient`   the function returns ``(value, gradient function)``       as in TensorFlow
    `custom_vjp`        ``f.defvjp(fwd, bwd)``, with what bwd needs handed over   as in JAX
    `defvjp`            one lambda for each argument, run only if it is needed    as in HIPS autograd

Rules in forward mode are in `genesis.autograd.forms.transposed`.

All of them refuse to lose a gradient: a tensor that requires grad and is used, but is no argument, is an error that
names it. All can be differentiated twice (`genesis.autograd.forms.rules` says how). `Function` is the form with a
context.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from genesis.autograd.forms.rules import Differentiable, Pulled
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.refusal import expect_function, explain_all
from genesis.core.graph.tensor import Tensor

Rule = Callable[..., Any]


def is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


class custom_gradient(Differentiable):
    """A function that returns its value and the function of its gradient, ``(value, grad_fn)``.

    ``grad_fn(g)`` gets the gradient of the value (one argument for each tensor, if the value has several) and returns
    one gradient for each argument; a single one need not be in a tuple. It may use whatever the function computed.

    If ``grad_fn`` has a parameter ``variables``, it is given the tensors that require grad and were used without being
    arguments, and returns ``(gradients, variable_gradients)``.

    Raises:
        TypeError: the function does not return a value and a gradient function
        RuntimeError: a tensor that requires grad is used, is no argument, and ``grad_fn`` does not accept
            ``variables``; the number or the shape of the gradients is wrong

    Source: ``tf.custom_gradient``.

    >>> import genesis
    >>> @genesis.custom_gradient
    ... def log1pexp(x):
    ...     e = x.exp()
    ...     return e.log1p(), lambda g: g * (1 - 1 / (1 + e))  # e / (1 + e) would overflow to nan
    >>> x = genesis.tensor(100.0, requires_grad=True)
    >>> log1pexp(x).backward(); x.grad
    tensor(1.)
    """

    def primal(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)[0]

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result = self.function(*args, **kwargs)
        if not (is_pair(result) and callable(result[1])):
            raise ArgumentError(
                message(self.name, f"returned {describe(result)}, expected a value and the function of its gradient",
                        hint="return value, grad_fn")
            )  # fmt: skip
        return result[0], result[1]

    untracked = forward

    def pull(self, pulled: Pulled) -> Any:
        if pulled.variables:
            return pulled.kept(*pulled.grads, variables=pulled.variables)
        parameter = _variables_parameter(pulled.kept)
        if parameter is None or parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            return pulled.kept(*pulled.grads)
        gradients, _ = pulled.kept(*pulled.grads, variables=[])
        return gradients

    def takes_variables(self, kept: Any) -> bool:
        return _variables_parameter(kept) is not None

    def capture_hint(self, name: str) -> str:
        return f"pass {name} as an argument, give the gradient function a parameter variables, or use {name}.detach() if it is a constant"


def _variables_parameter(grad_fn: Any) -> inspect.Parameter | None:
    code = getattr(grad_fn, "__code__", None)
    if code is not None and "variables" not in code.co_varnames and not code.co_flags & inspect.CO_VARKEYWORDS:
        return None  # as nearly always; asking the signature takes longer than the rest of the call
    parameters = inspect.signature(grad_fn).parameters
    parameter = parameters.get("variables")
    return parameter or next((p for p in parameters.values() if p.kind is p.VAR_KEYWORD), None)


def describe(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


class WithStatics(Differentiable):
    """Rules that get some arguments as they are, apart from those that are differentiated."""

    def __init__(
        self, function: Rule, nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ) -> None:
        super().__init__(function)
        argnums = [nondiff_argnums] if isinstance(nondiff_argnums, int) else list(nondiff_argnums)
        for i in argnums:
            operator.index(i)
        names = [nondiff_argnames] if isinstance(nondiff_argnames, str) else list(nondiff_argnames)
        parameters = list(inspect.signature(function).parameters) if names or argnums else []
        for name in names:
            if name not in parameters:
                raise ArgumentValueError(
                    message(self.name, f"nondiff_argnames names {name!r}, which is not a parameter")
                )
            argnums.append(parameters.index(name))
        for i in argnums:
            if not -len(parameters) <= i < len(parameters):
                raise ArgumentValueError(message(self.name, f"nondiff_argnums names argument {i} of {len(parameters)}"))
        self.statics = tuple(sorted({i % len(parameters) for i in argnums}))

    def split(self, args: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments that are not differentiated, and the others."""
        static = [args[i] for i in self.statics if i < len(args)]
        return static, tuple(a for i, a in enumerate(args) if i not in self.statics)

    def joined(self, gradients: Any, count: int) -> Any:
        """Gradients with None at the places of arguments that have none."""
        if not self.statics:
            return gradients
        rest = iter(gradients if isinstance(gradients, tuple | list) else [gradients])
        return [None if i in self.statics else next(rest, None) for i in range(count)] + list(rest)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for i in self.statics:
            for x in tree_flatten(args[i])[0] if i < len(args) else ():
                if isinstance(x, Tensor) and x.requires_grad:
                    raise GraphError(
                        message(
                            self.name,
                            f"argument {i} is declared not to be differentiated, but it requires grad",
                            [(f"argument {i}", x._spec())],
                            "pass x.detach(), or take it out of nondiff_argnums",
                        )
                    )


class custom_vjp(WithStatics):
    """A function whose reverse-mode rule is a pair, ``f.defvjp(fwd, bwd)``.

    ``fwd(*args)`` returns the value and what bwd needs; ``bwd(residuals, g)`` returns a tuple of one gradient for each
    argument, in the argument's structure, None for zero. ``f`` itself computes the value where no gradient is wanted.

    Args:
        nondiff_argnums, nondiff_argnames: arguments without gradients (functions, numbers, options); ``bwd`` gets them
            before the residuals, ``bwd(*nondiff, residuals, g)``

    Raises:
        TypeError: no rule was defined, or ``fwd`` does not return a pair
        RuntimeError: an argument in nondiff_argnums requires grad; a captured tensor requires grad; wrong gradients

    Source: ``jax.custom_vjp``.

    >>> import genesis
    >>> @genesis.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (g.clamp(-1, 1),))
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> (clipped(x) * genesis.tensor([0.5, 30.0])).sum().backward(); x.grad
    tensor([0.5000, 1.0000])
    """

    fwd: Rule | None = None
    bwd: Rule | None = None

    def defvjp(self, fwd: Rule, bwd: Rule) -> None:
        """Define the rule: the forward function with residuals, and the gradient from them."""
        self.fwd, self.bwd = fwd, bwd

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if self.fwd is None:
            raise ArgumentError(message(self.name, "it has no rule yet", hint=f"{self.name}.defvjp(fwd, bwd)"))
        result = self.fwd(*args, **kwargs)
        if not is_pair(result):
            raise ArgumentError(
                message(
                    self.name,
                    f"the forward rule returned {describe(result)}, expected the value and the residuals",
                    hint="return value, residuals",
                )
            )
        return result[0], (result[1], self.split(args)[0], len(args))

    def sources(self) -> list[Rule]:
        return [self.function] if self.fwd is None else [self.fwd, self.function]

    def pull(self, pulled: Pulled) -> Any:
        residuals, static, count = pulled.kept
        assert self.bwd is not None
        return self.joined(self.bwd(*static, residuals, pulled.g), count)


class _PerArgument(Differentiable):
    makers: dict[int, Rule | None]

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value = self.function(*args, **kwargs)
        return value, (value, args, kwargs)

    def pull(self, pulled: Pulled) -> Any:
        value, args, kwargs = pulled.kept
        gradients: list[Any] = []
        for i, needed in enumerate(pulled.needs[: len(args)]):
            if needed and i not in self.makers:
                raise GraphError(
                    message(self.name, f"it has no rule for argument {i}, which requires grad", hint="give defvjp one")
                )
            maker = self.makers.get(i) if needed else None
            gradients.append(None if maker is None else maker(value, *args, **kwargs)(pulled.g))
        if any(pulled.needs[len(args) :]):
            raise GraphError(
                message(
                    self.name,
                    "a keyword-only argument requires grad, rules are for positional ones",
                    hint="pass it by position",
                )
            )
        return gradients + [None] * (len(pulled.needs) - len(args))


def defvjp(f: Rule, *makers: Rule | None, argnums: Sequence[int] | None = None) -> Differentiable:
    """A differentiable function out of ``f`` and one rule for each argument, attached from outside.

    ``maker(value, *args)`` returns the function ``g -> gradient`` of its argument; None means zero. A maker runs only
    if the gradient of its argument is wanted.

    Args:
        argnums: which arguments the makers belong to; the first ones by default

    Raises:
        ValueError: the numbers of makers and of argnums differ
        RuntimeError: an argument without a maker requires grad; a captured tensor requires grad; wrong gradients

    Source: ``autograd.extend.defvjp`` (HIPS autograd).

    >>> import genesis
    >>> product = genesis.autograd.defvjp(lambda x, y: x * y, lambda out, x, y: lambda g: g * y, lambda out, x, y: lambda g: g * x)
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> product(x, genesis.tensor(5.0)).backward(); x.grad
    tensor(5.)
    """
    indices = list(range(len(makers))) if argnums is None else list(argnums)
    if len(indices) != len(makers):
        raise ArgumentValueError(message("defvjp", f"{len(makers)} rules for {len(indices)} argnums"))
    for maker in makers:
        expect_function("defvjp", "a maker", f if maker is None else maker)
    made = _PerArgument(f)
    made.makers = dict(zip(indices, makers, strict=True))
    return made


explain_all(globals(), "custom_gradient", "WithStatics", "defvjp")
