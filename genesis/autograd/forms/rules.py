"""A function with a gradient rule of its own: what `custom_gradient`, `custom_vjp` and `custom_jvp` have in common.

A `Differentiable` says how to compute a value, what to keep for backward, and how to get gradients from that.
A call of it becomes one node, a `Function` named after it:

1. The value is computed on *detached* arguments with recording on. Nothing is recorded, then, but what comes from
   tensors that require grad and are no arguments: a gradient that the rule would lose is seen, not guessed.
2. What is kept is taken apart (closures too): every tensor in it is saved by the node, as an input or an output.
3. In backward it is put together again from what was saved.

**Second derivatives.** A rule that keeps nothing but arguments and outputs is differentiated as it stands. One that
keeps intermediate values would see constants in them: when its gradient is to be recorded (``create_graph=True``) the
value is computed once more, recorded, with the same random numbers, and the rule works on what that run kept.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.dual import Dual
from genesis.autograd.forms.captures import used_variables
from genesis.autograd.forms.closures import global_tensors, take_apart
from genesis.base.dtypes import dtype
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, InplaceError, message
from genesis.base.pytree import LEAF, TreeDef, flatten_up_to, tree_flatten, tree_unflatten
from genesis.core.functions.function import Function
from genesis.core.graph.generator import default_generator
from genesis.core.graph.modes import LEVELS, grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.layers.function_rules import derived, layers_of

_LEAVES = (Tensor, int, float, str, type(None))  # arguments that are no containers, at a glance
# captured values that cannot hide a tensor
_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    slice,
    range,
    dtype,
    np.dtype,
    np.generic,
    np.ndarray,
    np.ufunc,
    ModuleType,
    BuiltinFunctionType,
)


def _is_plain(x: Any) -> bool:
    return isinstance(x, (*_PLAIN, np.random.Generator))


class Differentiable:
    """A function and its rule; subclasses are the ways of writing the rule."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError(message(type(self).__name__, f"expected a function, got {type(function).__name__}"))
        functools.update_wrapper(self, function)
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__).strip("<>")
        self.node = type(self.name, (Recorded,), {"rule": self, "__doc__": f"The node class of `{self.name}`."})

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = self.bound(args, kwargs)
        if LEVELS:
            leaves, structure = _flat(args, kwargs)
            layer = layers_of(leaves, Dual)
            if layer is not None:  # forward mode follows from the rule
                return derived(self, leaves, structure, layer.level)
        return record(self, args, kwargs) if grad_mode.get() else self.primal(*args, **kwargs)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in the order of the signature, however they were passed: a rule's gradients have that order."""
        try:
            signature = inspect.signature(self.function)
        except (ValueError, TypeError):  # functions written in C may have none
            return args, kwargs
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    # ---- what a way of writing rules says

    def primal(self, *args: Any, **kwargs: Any) -> Any:
        """The value alone, where nothing is recorded."""
        return self.function(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The value, and what `pull` is to be given."""
        raise NotImplementedError

    def untracked(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The same where no argument requires grad: the rule is not needed."""
        return self.primal(*args, **kwargs), None

    def pull(self, pulled: Pulled) -> Any:
        """One gradient for each argument; a pair of these and the variables' gradients where there are variables."""
        raise NotImplementedError

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse a call before anything is computed."""

    def sources(self) -> list[Callable[..., Any]]:
        """The functions whose closures and globals the value may be computed from."""
        return [self.function]

    def takes_variables(self, kept: Any) -> bool:
        """Whether the rule has gradients for tensors that are not arguments."""
        return False

    def capture_hint(self, name: str) -> str:
        return f"pass {name} as an argument, or use {name}.detach() if it is a constant"


class Pulled(NamedTuple):
    """What a rule works on in backward."""

    kept: Any
    g: Any  # in the structure of the value
    grads: tuple[Any, ...]  # the same as a flat tuple, of tensors only
    needs: list[bool]  # for each argument, whether its gradient is wanted
    variables: list[Tensor]


class Call:
    """One call: how the rule's arguments and what it kept come out of what the node saved."""

    __slots__ = (
        "arguments",
        "exact",
        "holes",
        "kept",
        "outs",
        "rebuild",
        "rng",
        "rule",
        "saved",
        "structure",
        "tensors",
        "value",
        "variables",
    )

    rule: Differentiable
    structure: TreeDef  # of (args, kwargs)
    tensors: list[int]  # which of its leaves are tensors
    value: TreeDef  # of the result
    holes: list[bool]  # which leaves of the result are tensors
    outs: list[Tensor]  # the results, on their way through Function.forward
    saved: list[Tensor]  # what to save, on its way through Function.forward
    arguments: list[tuple[int, Any]]  # for each leaf: its place in `saved`, or -1 and the leaf itself
    kept: list[tuple[int, Any]]  # the same for what was kept
    rebuild: Callable[[list[Any]], Any]
    exact: bool  # what was kept are arguments, results and constants: differentiable as it stands
    variables: list[int]  # places in `saved`
    rng: tuple[int, int] | None  # seed and position of the default generator before the call, if the call moved it

    def counts(self) -> list[int]:
        """The number of leaves of each argument."""
        if self.structure is _of_leaves(self.structure.num_leaves):
            return [1] * self.structure.num_leaves
        return [argument.num_leaves for part in self.structure.children for argument in part.children]

    def again(self, saved: list[Tensor]) -> Any:
        """What the rule keeps when its value is computed recorded, from the arguments themselves."""
        args, kwargs = _built(_filled(self.arguments, saved), self.structure)
        try:
            with _random_state(self.rng):
                return self.rule.forward(*args, **kwargs)[1]
        except GraphError as error:
            error.add_note(
                f"{self.rule.name} keeps intermediate values: it was run once more, recorded, to differentiate its "
                "gradient"
            )
            raise


class Recorded(Function):
    """The node of a `Differentiable`; its inputs are the leaves of the arguments, then whatever else is saved."""

    rule: Differentiable

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        call: Call = inputs[-1]
        ctx.call, ctx.count = call, len(inputs)
        outs, call.outs = call.outs, []  # kept by `save_for_backward` only, or the node would hold what it made
        ctx.save_for_backward(*call.saved)
        call.saved = []
        return outs[0] if len(outs) == 1 else tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call: Call = ctx.call
        saved = _readable(ctx.saved_tensors)
        again = grad_mode.get() and not call.exact
        kept = call.again(saved) if again else call.rebuild(_filled(call.kept, saved))
        parts = iter(grads)
        g = (
            grads[0]
            if call.value is LEAF
            else tree_unflatten([next(parts) if is_tensor else None for is_tensor in call.holes], call.value)
        )
        variables = [saved[i] for i in call.variables]
        result = call.rule.pull(Pulled(kept, g, grads, _needs(call, ctx.needs_input_grad), variables))
        extra: list[Any] = []
        if variables:
            result, extra = _pair(call.rule.name, result, len(variables))
        gradients = [*spread(call, result, ctx.needs_input_grad), *extra]
        return (*gradients, *[None] * (ctx.count - len(gradients)))

    @classmethod
    def _input_name(cls, ctx: Any, index: int) -> str:
        call: Call = ctx.call
        names = _names(cls.rule.function, call)
        return names[index] if index < len(names) else f"variable {index - len(names)}"


def _names(function: Callable[..., Any], call: Call) -> list[str]:
    """For each leaf of the arguments of a call, the name of its parameter."""
    positional = len(call.structure.children[0].children)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        parameters = []
    names = []
    for i, count in enumerate(call.counts()):
        if i < positional:
            at = parameters[min(i, len(parameters) - 1)] if parameters else None
            several = at is not None and at.kind is at.VAR_POSITIONAL
            name = f"argument {i}" if at is None else f"{at.name}[{i - parameters.index(at)}]" if several else at.name
        else:
            name = str(call.structure.children[1].rest[i - positional])
        names += [name] if count == 1 else [f"{name} (tensor {k} in it)" for k in range(count)]
    return names


def _readable(saved: tuple[Any, ...]) -> list[Tensor]:
    """Saved tensors to compute with: without history where nothing is recorded, and where there can be none."""
    recording = grad_mode.get()
    return [t if t._node is None or (recording and t._array.dtype.kind not in "biu") else t.detach() for t in saved]


def _filled(sources: list[tuple[int, Any]], saved: list[Tensor]) -> list[Any]:
    return [leaf if i < 0 else saved[i] for i, leaf in sources]


def _needs(call: Call, needs: tuple[bool, ...]) -> list[bool]:
    rest = iter(needs)
    return [any([next(rest) for _ in range(n)]) for n in call.counts()]


@contextlib.contextmanager
def _random_state(before: tuple[int, int] | None) -> Iterator[None]:
    if before is None:
        yield
        return
    now = default_generator.get_state()
    default_generator.set_state(wrap(np.array(before, dtype="<u8").view(np.uint8)))
    try:
        yield
    finally:
        default_generator.set_state(now)


# ---- a call


def record(rule: Differentiable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the value, and make one node for it if an argument or a variable of the rule requires grad."""
    rule.check(args, kwargs)
    leaves, structure = _flat(args, kwargs)
    tracked = [x for x in leaves if isinstance(x, Tensor) and x._node is not None]
    versions = [x._version for x in tracked]
    rng = default_generator._seed, default_generator._block
    detached = [x.detach() if isinstance(x, Tensor) and x._node is not None else x for x in leaves]
    inner_args, inner_kwargs = _built(detached, structure)
    value, kept = (rule.forward if tracked else rule.untracked)(*inner_args, **inner_kwargs)
    _refuse_writes(rule, tracked, versions)
    values, value_structure = ([value], LEAF) if isinstance(value, Tensor) else tree_flatten(value)
    results = [v for v in values if isinstance(v, Tensor)]
    variables = used_variables(rule, results, args, kept)
    if not (tracked or variables) or not results:
        return value
    call = Call()
    call.rule, call.structure, call.value = rule, structure, value_structure
    call.tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    call.holes = [isinstance(v, Tensor) for v in values]
    given = {id(each): x for each, x in zip(detached, leaves, strict=True)}
    call.outs = [
        given[id(v)] if id(v) in given else v if v._view is not None and v._node is None else v.detach()
        for v in results
    ]
    call.rng = None if rng == (default_generator._seed, default_generator._block) else rng
    extra = _plan(call, leaves, detached, results, kept, variables)
    outs = rule.node.apply(*leaves, *variables, *extra, call)
    rest = iter([outs] if isinstance(outs, Tensor) else outs)
    return tree_unflatten(
        [next(rest) if is_tensor else v for v, is_tensor in zip(values, call.holes, strict=True)], value_structure
    )


@functools.lru_cache
def _of_leaves(count: int) -> TreeDef:
    """The structure of positional arguments none of which is a container, the same object for the same count."""
    return tree_flatten(((None,) * count, {}))[1]


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], TreeDef]:
    if not kwargs and all(isinstance(x, _LEAVES) for x in args):
        return list(args), _of_leaves(len(args))
    return tree_flatten((args, kwargs))


def _built(leaves: list[Any], structure: TreeDef) -> tuple[Any, dict[str, Any]]:
    if structure is _of_leaves(len(leaves)):
        return leaves, {}
    args, kwargs = tree_unflatten(leaves, structure)
    return args, kwargs


def _refuse_writes(rule: Differentiable, tracked: list[Tensor], versions: list[int]) -> None:
    for x, before in zip(tracked, versions, strict=True):
        if x._version != before:
            raise InplaceError(
                message(
                    rule.name,
                    "the function writes in place to an argument that requires grad",
                    [("argument", x._spec())],
                    "write to a clone() and return it",
                )
            )


def _plan(
    call: Call, leaves: list[Any], detached: list[Any], results: list[Tensor], kept: Any, variables: list[Tensor]
) -> list[Tensor]:
    """Where all that was kept will be found in backward; returns the tensors that are saved besides inputs and outputs."""
    known = {id(x): x for x in leaves} | {id(each): x for each, x in zip(detached, leaves, strict=True)}
    known |= {id(v): out for v, out in zip(results, call.outs, strict=True)} | {id(v): v for v in variables}
    kept_leaves, call.rebuild = take_apart(kept)
    unknown = [x for x in kept_leaves if id(x) not in known and not _is_plain(x)]
    # from where the function was written
    outer = {id(x) for f in call.rule.sources() for x in take_apart(f)[0]} if unknown else set()
    call.exact = all(id(x) in outer or (isinstance(x, Tensor) and x._array.dtype.kind in "biu") for x in unknown)
    numbers: dict[int, int] = {}  # id of a tensor -> its place in call.saved
    call.saved, extra = [], []

    def source(x: Any) -> tuple[int, Any]:
        if not isinstance(x, Tensor):
            return -1, x
        real = known.get(id(x))
        if real is None:
            real = known[id(x)] = x if id(x) in outer or x.is_leaf else x.detach()
            extra.append(real)
        if id(real) not in numbers:
            numbers[id(real)] = len(call.saved)
            call.saved.append(real)
        return numbers[id(real)], None

    call.kept = [source(x) for x in kept_leaves]
    call.arguments = [] if call.exact else [source(x) for x in leaves]
    call.variables = [source(x)[0] for x in variables]
    for x in global_tensors(kept):  # read by name in backward; saved so that a write to them is noticed
        source(x)
    return extra


# ---- gradients, one for each leaf of the arguments


def _pair(name: str, result: Any, count: int) -> tuple[Any, list[Any]]:
    if not (isinstance(result, tuple | list) and len(result) == 2):
        raise GraphError(
            message(
                name,
                f"the gradient function was given variables and returned {type(result).__name__}, expected a pair",
                hint="return (gradients, variable_gradients)",
            )
        )
    gradients = [result[1]] if isinstance(result[1], Tensor) or result[1] is None else list(result[1])
    if len(gradients) != count:
        raise GraphError(
            message(name, f"the gradient function returned {len(gradients)} variable gradients for {count} variables",
                    hint="return one for each of variables, in their order")
        )  # fmt: skip
    return result[0], gradients


def spread(call: Call, result: Any, needs: tuple[bool, ...]) -> list[Any]:
    """Gradients as a rule returned them, put at the leaves of the arguments.

    One for each argument (a container in the argument's structure, or None), or one for each tensor; a single one need
    not be in a tuple. None for arguments beyond those that were passed is dropped; keyword-only arguments that need no
    gradient may be left out.
    """
    items = list(result) if isinstance(result, tuple | list) else [result]
    counts = call.counts()
    positional = len(call.structure.children[0].children)
    if len(items) > len(counts) and all(item is None for item in items[len(counts) :]):
        items = items[: len(counts)]
    if len(items) == positional < len(counts) and not any(needs[sum(counts[:positional]) : sum(counts)]):
        items += [None] * (len(counts) - positional)
    if len(items) == len(counts):
        if all(n == 1 and (g is None or isinstance(g, Tensor)) for g, n in zip(items, counts, strict=True)):
            return items
        arguments = [argument for part in call.structure.children for argument in part.children]
        with contextlib.suppress(ArgumentValueError):
            return [g for argument, item in zip(arguments, items, strict=True) for g in flatten_up_to(argument, item)]
    if any(isinstance(item, Mapping) for item in items):
        raise GraphError(
            message(call.rule.name, "the rule returned a dictionary that is not like the argument",
                    operands=[("arguments", call.structure), ("gradients", tree_flatten(result)[1])],
                    hint="return gradients under the argument's keys; None where there is none")
        )  # fmt: skip
    flat = tree_flatten(result)[0]
    for leaves in (range(sum(counts)), call.tensors):
        if len(flat) == len(leaves):
            at = dict(zip(leaves, flat, strict=True))
            return [at.get(i) for i in range(sum(counts))]
    raise GraphError(
        message(call.rule.name, f"the rule returned {len(items)} gradients for {len(counts)} arguments",
                hint="return one for each argument, None where there is none")
    )  # fmt: skip
