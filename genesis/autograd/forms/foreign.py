"""Functions of NumPy, SciPy, Numba or C, made differentiable in one line.

`from_numpy` is for functions of arrays; `genesis.autograd.forms.native` has those of single numbers and of pointers.
The derivative is given in the form that is at hand:

    df=      for what works element by element: the derivative, ``df(*inputs)``
    vjp=     in general: ``vjp(g, *inputs, output)`` gives one gradient for each input, None for none
    jac=     the Jacobian ``jac(*inputs)``, of shape ``output.shape + input.shape``, or a sparse matrix

A tuple of ``df``, ``vjp`` or ``jac`` has one rule for each input, of which only those run that are needed. A rule may
itself be such a function with a derivative; then, and only then, there is a second derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, GraphError, InplaceError, ShapeError, UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_map
from genesis.core.call.refusal import explain_all
from genesis.core.functions.function import Function
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.products.einsum import tensordot

Rule = Callable[..., Any]


def expect_name(call: str, name: Any) -> None:
    """Refuse what is no name."""
    if name is not None and not isinstance(name, str):
        raise ArgumentError(message(call, f"name must be a string, got {type(name).__name__}"))


def from_numpy(
    f: Rule, df: Any = None, *, vjp: Any = None, jac: Any = None, ddf: Rule | None = None, name: str | None = None
) -> ForeignFunction:
    """A function on NumPy arrays and its derivative as a differentiable function on tensors.

    ``f`` gets the tensors' own memory as read-only arrays, and whatever else is passed as it is; what it returns (an
    array, a number, or a tuple of them) becomes tensors without a copy. Keyword arguments are handed to ``f`` and to
    the rules.

    Args:
        df, vjp, jac: the derivative in one of its forms, see above; a function or a tuple of one for each input
        ddf: the derivative of ``df``, for second derivatives of functions of one input
        name: for errors and ``grad_fn``; the function's own by default

    Raises:
        TypeError: more than one form of derivative, or what is no function
        RuntimeError: a derivative of another shape, the wrong number of them, or ``f`` writes to its input
        NotImplementedError: backward through a function without a derivative, or a second derivative without ``ddf``

    >>> import numpy as np, genesis
    >>> sinc = genesis.autograd.from_numpy(np.sinc, df=lambda x: (np.cos(np.pi * x) - np.sinc(x)) / x)
    >>> x = genesis.tensor([0.5, 1.0], requires_grad=True)
    >>> sinc(x).sum().backward(); x.grad
    tensor([-1.2732, -1.0000])
    """
    given = {form: rules for form, rules in (("df", df), ("vjp", vjp), ("jac", jac)) if rules is not None}
    expect_name("from_numpy", name)
    title = name or getattr(f, "__name__", type(f).__name__).strip("<>")
    if not callable(f):
        raise ArgumentError(message("from_numpy", f"expected a function, got {type(f).__name__}"))
    if len(given) > 1:
        raise ArgumentError(
            message("from_numpy", f"{' and '.join(given)} say the same in different forms", hint="give one of them")
        )
    if ddf is not None:
        if not callable(df):
            raise ArgumentError(
                message(
                    "from_numpy",
                    "ddf is the derivative of df, which is not one function",
                    hint="df=from_numpy(df, ddf)",
                )
            )
        given["df"] = from_numpy(df, ddf, name=f"{title}_df")
    form, rules = next(iter(given.items()), ("", ()))
    return ForeignFunction(f, form, rules, title)


class ForeignFunction:
    """A function on arrays that takes and gives tensors; made by `from_numpy`."""

    def __init__(self, f: Rule, form: str, rules: Any, name: str) -> None:
        functools.update_wrapper(self, f, updated=())
        self.f, self.form, self.name = f, form, name
        self.plain, self.of = f, ""  # for a rule: as it was given, and whose it is
        self.each = isinstance(rules, tuple | list)  # one rule for each input
        self.rules = [self._prepared(rule) for rule in (rules if self.each else [rules])]
        self.node = type(name, (ForeignNode,), {"__doc__": f"The node class of the foreign function `{name}`."})

    def _prepared(self, rule: Any) -> Any:
        """A rule as a function on tensors; one without a derivative of its own, if it is not such a function already."""
        if rule is None or isinstance(rule, ForeignFunction):
            return rule
        if not callable(rule):
            raise ArgumentError(message(self.name, f"{self.form}= is {type(rule).__name__}, expected a function"))
        made = ForeignFunction(_dense(rule) if self.form == "jac" else rule, "rule", (), f"{self.name}_{self.form}")
        made.of, made.plain = self.name, rule
        return made

    def __repr__(self) -> str:
        return f"<foreign function {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inner = [(key, x) for key, value in kwargs.items() for x in tree_flatten(value)[0]]
        inner += [
            (f"item of argument {i}", x)
            for i, a in enumerate(args)
            if not isinstance(a, Tensor)
            for x in tree_flatten(a)[0]
        ]
        for what, x in inner:
            if isinstance(x, Tensor) and x.requires_grad and grad_mode.get():
                raise GraphError(
                    message(
                        self.name,
                        f"{what} requires grad, only tensors that are positional arguments have gradients",
                        [(what, x._spec())],
                        "pass it by position, or detach() it",
                    )
                )
        return self.node.apply(*args, _Options(self, kwargs))

    # ---- values

    def compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arrays = [_read_only(x) if isinstance(x, Tensor) else tree_map(_read_only, x) for x in args]
        try:
            result = self.f(*arrays, **(tree_map(_read_only, kwargs) if kwargs else kwargs))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise InplaceError(
                message(self.name, "the function writes to its input", hint="let it work on x.copy()")
            ) from error
        given = [x for x in tree_flatten(arrays)[0] if isinstance(x, np.ndarray)]
        if isinstance(result, tuple | list):
            return tuple([None if y is None else self._tensor(y, given) for y in result])
        return None if result is None and self.form == "rule" else self._tensor(result, given)

    def _tensor(self, value: Any, given: list[np.ndarray[Any, Any]]) -> Tensor:
        number = isinstance(value, int | float | complex) and not isinstance(value, bool | np.generic)
        floating = [a.dtype for a in given if a.dtype.kind in "fc"]
        array = np.asarray(value, np.result_type(*floating, value) if number and floating else None)
        if array.dtype.kind not in "biufcV":
            raise ArgumentError(
                message(self.name, f"the function returned {type(value).__name__}, expected an array of numbers")
            )
        if not array.flags.writeable or any(np.may_share_memory(array, a) for a in given):
            array = array.copy()  # a result is not a window to an input, and can be written to
        return wrap(array)

    # ---- gradients

    def gradients(
        self, g: Any, inputs: tuple[Any, ...], output: Any, kwargs: dict[str, Any], needs: list[bool]
    ) -> list[Any]:
        """One for each input; in tensors, recorded where recording is on."""
        if self.form == "":
            raise UnsupportedError(
                message(self.name, "the function has no derivative", hint="from_numpy(f, df), or vjp= or jac=")
            )
        if self.form == "rule":
            raise UnsupportedError(
                message(self.of, f"a second derivative was asked for, and {self.name} has no derivative",
                        hint="give ddf=, or make the rule itself a from_numpy function with a derivative")
            )  # fmt: skip
        if self.each:
            return [self._one(i, g, inputs, output, kwargs) if needed else None for i, needed in enumerate(needs)]
        if self.form == "df" and len([x for x in inputs if isinstance(x, Tensor)]) > 1:
            raise GraphError(
                message(self.name, f"one df for {len(inputs)} inputs", hint="df=(df_0, df_1, ...), one for each input")
            )
        rule = self.rules[0]
        if self.form == "df":
            return [self._scaled(g, rule(*inputs, **kwargs), output) if needed else None for needed in needs]
        derivatives = (
            _pulled(rule, g, inputs, output, kwargs) if self.form == "vjp" else _jacobians(rule, inputs, kwargs)
        )
        derivatives = list(derivatives) if isinstance(derivatives, tuple) else [derivatives]
        if len(derivatives) != len(inputs):
            raise GraphError(
                message(
                    self.name,
                    f"{self.form} returned {len(derivatives)} gradients for {len(inputs)} inputs",
                    hint="return one for each, None for none",
                )
            )
        if self.form == "vjp":
            return [
                self._shaped(gx, x, i) if needed else None
                for i, (gx, x, needed) in enumerate(zip(derivatives, inputs, needs, strict=True))
            ]
        return [
            self._contracted(g, j, x, i) if needed else None
            for i, (j, x, needed) in enumerate(zip(derivatives, inputs, needs, strict=True))
        ]

    def _one(self, i: int, g: Any, inputs: tuple[Any, ...], output: Any, kwargs: dict[str, Any]) -> Any:
        if i >= len(self.rules):
            raise GraphError(
                message(self.name, f"input {i} requires grad, {self.form} has rules for {len(self.rules)} inputs")
            )
        rule = self.rules[i]
        if rule is None:
            return None
        if self.form == "df":
            return self._scaled(g, rule(*inputs, **kwargs), output)
        if self.form == "jac":
            return self._contracted(g, _jacobians(rule, inputs, kwargs), inputs[i], i)
        return self._shaped(_pulled(rule, g, inputs, output, kwargs), inputs[i], i)

    def _scaled(self, g: Any, slope: Tensor, output: Any) -> Tensor:
        if isinstance(g, tuple):
            raise GraphError(
                message(self.name, f"df is for one output, the function has {len(g)}", hint="give vjp= or jac=")
            )
        extra = slope.ndim > g.ndim or any(
            n not in (1, m) for n, m in zip(slope.shape[::-1], g.shape[::-1], strict=False)
        )
        if extra:
            raise ShapeError(
                message(self.name, f"df has shape {list(slope.shape)}, the output has {list(g.shape)}",
                        hint="df is for functions that work element by element; give vjp= or jac=")
            )  # fmt: skip
        return g * (slope.conj() if slope.is_complex() else slope)

    def _shaped(self, gx: Any, x: Any, i: int) -> Any:
        if gx is not None and isinstance(x, Tensor) and gx.shape != x.shape:
            raise ShapeError(
                message(
                    self.name,
                    f"vjp returned a gradient of shape {list(gx.shape)} for input {i}, which has {list(x.shape)}",
                    [(f"input {i}", x._spec())],
                    "return a gradient of the input's shape",
                )
            )
        return gx

    def _contracted(self, g: Any, jacobian: Any, x: Any, i: int) -> Any:
        """``sum over the output of g * jacobian``."""
        if jacobian is None or not isinstance(x, Tensor):
            return None
        if isinstance(g, tuple):
            raise GraphError(message(self.name, f"jac is for one output, the function has {len(g)}", hint="give vjp="))
        if tuple(jacobian.shape) == (g.numel(), x.numel()):  # a matrix, whatever the shapes are
            if not isinstance(jacobian, Tensor):
                return wrap(jacobian.conj().T @ g.numpy().reshape(-1)).reshape(x.shape)
            jacobian = jacobian.reshape(*g.shape, *x.shape)
        if tuple(jacobian.shape) != (*g.shape, *x.shape):
            raise ShapeError(
                message(
                    self.name,
                    f"jac has shape {list(jacobian.shape)} for input {i}, expected {[*g.shape, *x.shape]}, the "
                    "output's and the input's",
                    [("output", g._spec()), (f"input {i}", x._spec())],
                )
            )
        jacobian = jacobian.conj() if jacobian.is_complex() else jacobian
        return tensordot(g.to(jacobian.dtype), jacobian, g.ndim)


def _pulled(rule: Any, g: Any, inputs: tuple[Any, ...], output: Any, kwargs: dict[str, Any]) -> Any:
    """``vjp(g, *inputs, output)``; of several outputs, g and output are tuples."""
    if not isinstance(g, tuple):
        return rule(g, *inputs, output, **kwargs)
    n = len(g)
    regrouped = ForeignFunction(
        lambda *flat, **kw: rule.f(flat[:n], *flat[n:-n], flat[-n:], **kw), rule.form, (), rule.name
    )
    regrouped.of = rule.of
    return regrouped(*g, *inputs, *output, **kwargs)


def _jacobians(rule: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What jac gives, as tensors. Where nothing is recorded, a sparse matrix stays one."""
    if rule.form != "rule" or grad_mode.get():
        return rule(*inputs, **kwargs)
    jacobians = rule.plain(*tree_map(_read_only, inputs), **tree_map(_read_only, kwargs))
    several = isinstance(jacobians, tuple | list)
    parts = [j if j is None or _is_sparse(j) else rule._tensor(j, []) for j in (jacobians if several else [jacobians])]
    return tuple(parts) if several else parts[0]


def _is_sparse(j: Any) -> bool:
    # SciPy's matrices have no base class to ask for without importing SciPy
    return callable(getattr(j, "toarray", None))


def _dense(jac: Rule) -> Rule:
    """Jacobians as arrays, also where they are SciPy's sparse matrices."""

    def dense(*args: Any, **kwargs: Any) -> Any:
        jacobians = jac(*args, **kwargs)
        several = isinstance(jacobians, tuple | list)
        arrays = [
            None if j is None else j.toarray() if _is_sparse(j) else j for j in (jacobians if several else [jacobians])
        ]
        return tuple(arrays) if several else arrays[0]

    return dense


def _read_only(x: Any) -> Any:
    """A tensor as an array on the same memory that cannot be written to; anything else as it is."""
    if not isinstance(x, Tensor):
        return x
    array = x.detach().numpy().view()
    array.flags.writeable = False
    return array


class _Options:
    """What a foreign function's node needs besides tensors; a class, so that it is not taken for a container."""

    __slots__ = ("function", "kwargs")

    def __init__(self, function: ForeignFunction, kwargs: dict[str, Any]) -> None:
        self.function, self.kwargs = function, kwargs


class ForeignNode(Function):
    """The node of a `ForeignFunction`."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        *args, options = inputs
        ctx.options, ctx.count = options, len(inputs)
        result = options.function.compute(tuple(args), options.kwargs)
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.several = isinstance(result, tuple)
        outputs = [] if options.function.form != "vjp" else list(result) if ctx.several else [result]
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in args], *outputs)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved, count = ctx.saved_tensors, ctx.count - 1
        inputs = tuple([other if x is None else x for x, other in zip(saved[:count], ctx.others, strict=True)])
        g, output = (grads, saved[count:]) if ctx.several else (grads[0], saved[-1] if saved else None)
        function = ctx.options.function
        return (*function.gradients(g, inputs, output, ctx.options.kwargs, list(ctx.needs_input_grad[:count])), None)


explain_all(globals(), "from_numpy")
