"""Gradients of your own from rules in forward mode: the tangent of the value along tangents of the arguments.

    `custom_jvp`        ``f.defjvp(rule)``, ``f.defjvps(...)``                           as in JAX
    `custom_function`   ``@f.vjp``, ``@f.jvp``; without rules, the ordinary gradient   as in MLX

A tangent is linear in the arguments' tangents, so reverse mode is its transpose: backward runs the rule, recorded, and
differentiates ``<g, tangent>`` with respect to the tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.autograd.forms.custom import Rule, WithStatics, describe, is_pair
from genesis.autograd.forms.rules import Differentiable, Pulled
from genesis.autograd.gradients import grad
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import enable_grad, grad_mode
from genesis.core.graph.tensor import Tensor


class custom_jvp(WithStatics):
    """A function whose rule is its derivative along a direction: ``f.defjvp(rule)``.

    ``rule(primals, tangents)`` returns the value and its tangent. The tangent is linear in the tangents of the
    arguments, so backward is its transpose: the gradient of ``<g, tangent>`` with respect to the tangents.

    ``f.defjvps(*jvps)`` is short for a sum over arguments: ``jvp_i(tangent_i, value, *primals)``, None for zero.

    Args:
        nondiff_argnums, nondiff_argnames: arguments without gradients; ``rule(*nondiff, primals, tangents)``

    Raises:
        TypeError: no rule was defined, or it does not return a pair
        ValueError: the rule's tangent is not zero for zero tangents, so it is not linear
        RuntimeError: an argument in nondiff_argnums requires grad; a captured tensor requires grad; wrong shapes

    Source: ``jax.custom_jvp``.

    >>> import genesis
    >>> @genesis.custom_jvp
    ... def f(x, y):
    ...     return x.sin() * y
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x, y), (dx, dy) = primals, tangents
    ...     return f(x, y), x.cos() * dx * y + x.sin() * dy
    >>> x, y = genesis.tensor(0.0, requires_grad=True), genesis.tensor(3.0)
    >>> f(x, y).backward(); x.grad
    tensor(3.)
    """

    rule: Rule | None = None

    def defjvp(self, rule: Rule) -> Rule:
        """Define the rule; usable as a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *jvps: Rule | None) -> None:
        """Define one rule for each argument."""

        def rule(*parts: Any) -> tuple[Any, Any]:
            *static, primals, tangents = parts
            if len(jvps) != len(primals):
                raise ArgumentError(message(self.name, f"defjvps has {len(jvps)} rules for {len(primals)} arguments"))
            value = self(*self._together(static, primals))
            terms = [
                f(t, value, *primals) for f, t in zip(jvps, tangents, strict=True) if f is not None and t is not None
            ]
            return value, sum(terms[1:], terms[0]) if terms else tree_map(lambda y: y * 0, value)

        self.rule = rule

    def _together(self, static: Sequence[Any], primals: Sequence[Any]) -> list[Any]:
        rest, kept = iter(primals), iter(static)
        return [next(kept) if i in self.statics else next(rest) for i in range(len(static) + len(primals))]

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if self.rule is None:
            raise ArgumentError(message(self.name, "it has no rule yet", hint=f"{self.name}.defjvp(rule)"))
        if kwargs:
            raise ArgumentError(
                message(
                    self.name,
                    f"{next(iter(kwargs))} is keyword-only, the rule would not see it",
                    hint="make it positional",
                )
            )
        return self.function(*args, **kwargs), (*self.split(args), len(args))

    def pull(self, pulled: Pulled) -> Any:
        static, primals, count = pulled.kept
        assert self.rule is not None
        return self.joined(transposed(self.name, self.rule, static, primals, pulled.grads), count)


def transposed(name: str, rule: Rule, static: Sequence[Any], primals: tuple[Any, ...], grads: Sequence[Tensor]) -> Any:
    """The gradients of ``<g, tangent>`` with respect to the tangents: reverse mode out of a forward-mode rule."""
    recording = grad_mode.get()
    leaves, structure = tree_flatten(primals)
    with enable_grad():
        tangents = [_tangent(x) for x in leaves]
        result = rule(*static, primals, tree_unflatten(tangents, structure))
        if not is_pair(result):
            raise ArgumentError(
                message(
                    name,
                    f"the jvp rule returned {describe(result)}, expected the value and its tangent",
                    hint="return value, tangent",
                )
            )
        out = [t for t in tree_flatten(result[1])[0] if isinstance(t, Tensor)]
        _check_tangents(name, out, grads)
        pairs = [(t, g) for t, g in zip(out, grads, strict=True) if t.requires_grad]
        wanted = [t for t in tangents if t is not None]
        gradients: Sequence[Tensor | None] = [None] * len(wanted)
        if pairs and wanted:
            gradients = grad(
                [t for t, _ in pairs], wanted, [g for _, g in pairs], create_graph=recording, allow_unused=True
            )
    rest = iter(gradients)
    return [
        tree_unflatten([None if t is None else next(rest) for t in part], spec)
        for part, spec in _by_argument(tangents, structure)
    ]


def _by_argument(leaves: list[Any], structure: Any) -> list[tuple[list[Any], Any]]:
    rest = iter(leaves)
    return [([next(rest) for _ in range(child.num_leaves)], child) for child in structure.children]


def _tangent(x: Any) -> Tensor | None:
    """A zero tangent to differentiate with respect to; None for what has no tangent."""
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.is_complex()):
        return None
    return x._zeros(tuple(x._array.shape), x._array.dtype).requires_grad_()


def _check_tangents(name: str, out: list[Tensor], grads: Sequence[Tensor]) -> None:
    if len(out) != len(grads):
        raise ArgumentError(message(name, f"the jvp rule returned {len(out)} tangents for {len(grads)} values"))
    for t, g in zip(out, grads, strict=True):
        if t.shape != g.shape:
            raise ShapeError(message(name, f"the tangent has shape {list(t.shape)}, the value has {list(g.shape)}"))
        if bool((t.detach().abs() > 0).any()):  # nan (0 * inf) says nothing
            raise ArgumentValueError(
                message(name, "the jvp rule is not linear: its tangent is not zero for zero tangents",
                        hint="every term of it must have one tangent as a factor")
            )  # fmt: skip


class custom_function(Differentiable):
    """A function that may be given rules: ``@f.vjp`` or ``@f.jvp``; without one it is differentiated as it stands.

    ``vjp(primals, cotangent, output)`` returns the gradients, ``jvp(primals, tangents)`` the tangent of the value. With
    one argument these are the argument's own, with several they are tuples.

    Raises:
        RuntimeError: a captured tensor requires grad; wrong gradients

    Source: ``mlx.core.custom_function``.

    >>> import genesis
    >>> @genesis.autograd.custom_function
    ... def twice(x):
    ...     return x * 2
    >>> @twice.vjp
    ... def twice_vjp(x, g, out):
    ...     return g * 10  # not its derivative, so that one sees the rule at work
    >>> x = genesis.tensor(1.0, requires_grad=True)
    >>> twice(x).backward(); x.grad
    tensor(10.)
    """

    vjp_rule: Rule | None = None
    jvp_rule: Rule | None = None

    def vjp(self, rule: Rule) -> Rule:
        """Define the reverse-mode rule."""
        self.vjp_rule = rule
        return rule

    def jvp(self, rule: Rule) -> Rule:
        """Define the forward-mode rule; backward is its transpose where there is no `vjp`."""
        self.jvp_rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vjp_rule is None and self.jvp_rule is None:
            return self.function(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value = self.function(*args, **kwargs)
        return value, (args, value if self.vjp_rule is not None else None)

    def pull(self, pulled: Pulled) -> Any:
        args, value = pulled.kept
        bare = lambda values: values[0] if len(values) == 1 else values
        if self.vjp_rule is not None:
            return self.vjp_rule(bare(args), pulled.g, value)
        rule = lambda primals, tangents: (None, self.jvp_rule(bare(primals), bare(tangents)))  # type: ignore[misc]
        return transposed(self.name, rule, (), args, pulled.grads)


explain_all(globals(), "custom_function")
