"""The op record: everything there is to say about an operation, said in one block.

An op is declared once, in `genesis/ops`, by the function of its kind (`core/call/kinds/`). The declaration makes the
record,
the public function with its real signature, the method (and its in-place form) on `Tensor`, and the
`Node` class that stands for it in the graph.

    exp = unary("exp", np.exp, vjp=lambda g, out: g * out, doc="...")

    @reduction(vjp={"input": lambda g, input_shape, dim, keepdim: restore(g, input_shape, dim)})
    def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
        '''Documentation...'''
        return np.add.reduce(input, axis=dim, dtype=dtype, keepdims=keepdim)

A gradient rule is a function of ``g`` and, *by name*, of what it needs: inputs, other arguments, ``out``
(the result; ``outs`` for the list of several), ``<input>_shape``, or of a list of inputs ``<inputs>_shapes`` and
``<inputs>_wanted`` (which of them need a gradient). The names are the declaration of what is saved: nothing else is kept,
and only for the inputs that need a gradient. Rules are written in Genesis ops, so they can be
differentiated, traced and batched like any other code.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from genesis.base.errors import DTypeError, message
from genesis.core.call.generated import LateSignature, generated, spelled
from genesis.core.call.halves import HALVES, HalfNode
from genesis.core.call.kind import Kind, kind_named
from genesis.core.graph.node import ComplexNode, Node, Rule, VariadicNode, compiled_when_needed
from genesis.core.graph.tensor import Tensor

REGISTRY: dict[str, Op] = {}

Samples = Callable[[Any], Iterable["Case"]]


@dataclass(frozen=True, slots=True)
class Case:
    """One call of an op, as its samples and wrong inputs give it."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def case(*args: Any, **kwargs: Any) -> Case:
    """``case(t(2, 3), dim=1)``: call the op with these arguments."""
    return Case(args, kwargs)


@dataclass(frozen=True, slots=True)
class Fail:
    """A call that must fail: how to make its arguments, the exception, and words of its message."""

    make: Callable[[Any], Case]
    error: type[Exception]
    match: str


@dataclass(slots=True, eq=False)
class Op:
    """Everything about one operation."""

    name: str
    kind: Kind  # elementwise, reduction, view, contraction, indexing, random, composite, ...: may be given by name
    signature: inspect.Signature
    meaning: Callable[..., Any]  # NumPy arrays in, NumPy arrays out: the oracle and the fallback
    infer: Callable[..., Any] | None = None  # specs in, specs out; raises the errors users see
    vjp: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    samples: Samples | None = None
    fails: tuple[Fail, ...] = ()
    dtypes: str = "f"  # kinds that the samples are tried with: f floating, c complex, i integer, b bool
    autocast: str = "promote"  # what autocast does with it: see `core/call/casts.py`
    holomorphic: bool = True  # false: complex gradients are written out by the rule itself
    # forward mode, where the kind's rule is not the one: "linear", or see `core/call/kind.py`
    jvp: str | Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None  # vmap, where the kind's rule is not the one: see `core/call/kind.py`
    decompose: Callable[..., Any] | None = None  # for vmap: the op as a function of others
    # of results without data, where the kind does not know: from the arguments
    strides: Callable[..., Any] | None = None
    put: Callable[..., Any] | None = None  # views: see `core/call/kinds/view.py`
    core: tuple[int | None, ...] = ()  # contractions: see `core/call/kinds/contraction.py`
    spare: tuple[int, ...] = ()
    added: str | None = None
    added_dim: int | None = None
    result: str | Callable[..., Any] = "same"  # elementwise: how the result's dtype follows from the operands'
    dtypes_met: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # ... for operands that came, see `in_memory`
    # composites of 16-bit floats: "wide", "input" or "alike"; "exact": rules of other ops; see `core/call/halves.py`
    halves: str = ""
    quiet: bool = (
        False  # its kernels move and compare numbers: NumPy has nothing to warn of, they run as they are (0.5 us less)
    )
    written: tuple[str, ...] = ()  # parameters that such a composite writes to: it gets them as they are
    # what runs on NumPy arrays: the meaning, or what was attached (`core/call/kernels.py`)
    kernel: Callable[..., Any] = field(default=lambda: None)
    silent: Callable[..., Any] = field(default=lambda: None)  # the same without NumPy's warnings, for the lanes
    # (out, *args): begins to compute into memory that is given, which may be that of the operand, and returns what has
    # `advance` and `wait`; None: nothing goes on beside the program
    begins: Callable[..., Any] | None = None
    kernels: dict[type, Any] = field(default_factory=dict)  # what was attached, by the class of arrays
    # what computes on arrays of devices, by their class: looked up once, see `core/call/computing.py`
    on_devices: dict[type, Callable[..., Any]] = field(default_factory=dict)
    shortcuts: list[Callable[[Any], None]] = field(default_factory=list)  # tell the fast paths of another kernel
    torch_name: str | None = None  # where PyTorch's name differs; "" when it has no such function
    module: str = ""
    call: Callable[..., Any] = field(default=lambda: None)  # the public function
    run: Callable[..., Any] = field(default=lambda: None)  # run(op, args), from `core/call/dispatch.py`
    node: type[Node] | None = None  # None: never recorded
    complex_node: type[Node] | None = None  # the same for complex results, where rules are conjugated
    # and for 16-bit floats, where rules compute in float32: see `core/call/halves.py`
    half_node: type[Node] | None = None
    tensors: tuple[int, ...] = ()  # which parameters are tensors
    variadic: bool = False  # the first parameter is a sequence of tensors
    saves: tuple[tuple[str, str, int, frozenset[int]], ...] = ()  # see `_plan_saves`
    save: Callable[..., Any] | None = None  # compiled from them by `core/call/recording.py`
    inplace: bool = False
    plain: bool = False  # elementwise, one or two tensors and nothing else: the layout of the fast paths

    def __post_init__(self) -> None:
        self.kind = kind_named(self.kind)

    def __repr__(self) -> str:
        return f"<op {self.name}{self.signature}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        signature = self.signature
        return signature.names if isinstance(signature, LateSignature) else tuple(signature.parameters)

    @property
    def annotations(self) -> list[str]:
        """What is written behind the names of its parameters."""
        if isinstance(self.signature, LateSignature):
            return self.signature.annotations
        return [str(p.annotation) for p in self.signature.parameters.values()]

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.call) or ""


def samples(call: Callable[..., Any], cases: Samples) -> None:
    """Give an op the calls that the generated tests make of it."""
    call.op.samples = cases  # type: ignore[attr-defined]


def wrong_inputs(call: Callable[..., Any], *cases: Fail | tuple[Callable[[Any], Any], type[Exception], str]) -> None:
    """Give an op calls that it refuses: ``(lambda t: case(t(3), dim=3), IndexError, "dim 3 is out of range")``."""
    call.op.fails = tuple([case if isinstance(case, Fail) else Fail(*case) for case in cases])  # type: ignore[attr-defined]


def register(op: Op, module: str) -> None:
    """Enter an op in the registry; declaring the same thing twice, or half, is an error at import."""
    assert op.name not in REGISTRY, f"op {op.name!r} is declared twice: {REGISTRY[op.name].module} and {module}"
    assert op.call.__doc__, f"op {op.name!r} has no documentation"
    assert op.kind.composed or op.infer is not None, f"op {op.name!r} has no infer"
    unknown = set(op.vjp).difference(op.names)
    assert not unknown, f"op {op.name!r} has a rule for an unknown input: {unknown}"
    op.module = module
    REGISTRY[op.name] = op


def prepare_record(op: Op) -> None:
    """Derive what recording needs: which parameters are tensors, the node class, and what is saved."""
    parameters, annotations = op.names, op.annotations
    op.tensors = tuple([i for i, annotation in enumerate(annotations) if "Array" in annotation])
    op.variadic = bool(parameters) and "Sequence[Array]" in annotations[0]
    if not op.vjp:
        return
    names = [parameters[i] for i in op.tensors]
    rules = [op.vjp.get(name) for name in names]
    op.saves, picks = _plan_saves(op, rules, parameters)
    op.plain = op.kind.aligned and len(op.tensors) == len(parameters) <= 2
    if op.plain:  # the fast paths save all operands, then the result
        layout = [*names, "out"]
        picks = [() if r is None else tuple(layout.index(n) for n in _asked_for(r)) for r in rules]
    op.node = node_class(op, names, tuple(None if r is None else Rule(r, p) for r, p in zip(rules, picks, strict=True)))


def _asked_for(rule: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a rule's parameters after the gradient."""
    if isinstance(rule, FunctionType) and not hasattr(rule, "__wrapped__"):
        return rule.__code__.co_varnames[1 : rule.__code__.co_argcount]  # a tenth of the time of a signature
    return tuple(inspect.signature(rule).parameters)[1:]


def _plan_saves(op: Op, rules: list[Any], parameters: Sequence[str]) -> tuple[Any, list[tuple[int, ...]]]:
    """From the names in the rules: (name, source, index of the parameter, which rules use it), ``out`` or ``outs`` last."""
    needs = [() if rule is None else _asked_for(rule) for rule in rules]
    order = sorted({name for need in needs for name in need}, key=lambda name: (name in ("out", "outs"), name))
    saves = []
    for name in order:
        users = frozenset(i for i, need in enumerate(needs) if name in need)
        if name in ("out", "outs"):
            saves.append((name, name, -1, users))
        elif name in parameters:
            index = parameters.index(name)
            saves.append((name, "tensor" if index in op.tensors else "value", index, users))
        else:
            stem, _, what = name.rpartition("_")
            assert what in ("shape", "shapes", "wanted") and stem in parameters, (
                f"op {op.name!r}: a rule asks for unknown {name!r}"
            )
            saves.append((name, what, parameters.index(stem), users))
    return tuple(saves), [tuple(order.index(name) for name in need) for need in needs]


def node_class(op: Op, names: list[str], rules: tuple[Rule | None, ...]) -> type[Node]:
    """The class of the op's nodes: ``add`` -> ``AddBackward``."""
    title = "".join(part.capitalize() for part in op.name.split("_")) + "Backward"
    members = {
        "__slots__": () if op.kind.aligned else ("_outputs",),
        "op": op, "op_name": op.name, "rules": rules, "input_names": tuple(names),
        "_frees": any(source in ("tensor", "out", "outs") for _, source, _, _ in op.saves),
        "sums_broadcasts": op.kind.aligned,
        "saves_out": any(source in ("out", "outs") for _, source, _, _ in op.saves),
    }  # fmt: skip
    if not op.variadic:
        members["_pull"] = compiled_when_needed(rules, bool(members["saves_out"]))  # type: ignore[assignment]
    return type(title, (VariadicNode if op.variadic else Node,), members)


def node_for(op: Op, dtype: Any) -> type[Node]:
    """The class of the op's nodes for results of a dtype; those of complex and 16-bit floats are made when needed."""
    node = op.node
    assert node is not None
    if dtype.kind == "c":
        if op.complex_node is None:
            if "c" not in op.dtypes and op.holomorphic:
                hint = "take real and imaginary part: genesis.view_as_real(x)"
                raise DTypeError(message(op.name, "it has no gradient for complex numbers", hint=hint))
            op.complex_node = _with(ComplexNode, node) if op.holomorphic else node
        return op.complex_node
    if dtype in HALVES:
        if op.half_node is None:
            op.half_node = _with(HalfNode, node) if node._frees else node
        return op.half_node
    return node


def _with(variant: type[Node], node: type[Node]) -> type[Node]:
    return type(node.__name__, (variant, node), {"__slots__": ()})


_GUARD = """    except Exception as error:
        from genesis.core.call.refusal import refuse_op
        answer = refuse_op(_op.name, ARGS, error)
        if answer is not None:
            return answer[0]
        raise
"""


def public_function(
    op: Op, body: str | Callable[[], str], names: Mapping[str, Any], extra: str = ""
) -> Callable[..., Any]:
    """``def name(signature): body``: a real signature costs nothing per call, ``*args`` would (160 ns). A body that is
    a function is asked for its text when the text is compiled.
    """
    scope: dict[str, Any] = {"_op": op, **names}

    def source() -> str:
        parts, first = spelled(op.signature.parameters.values(), scope, op.name, extra)
        text = body if isinstance(body, str) else body()
        guarded = "    try:\n" + textwrap.indent(text, "    ") + _GUARD  # costs nothing while calls succeed
        given = ", ".join(op.signature.parameters)  # handed on one by one, which takes less than as a tuple
        whole = guarded.replace("*ARGS", given).replace("ARGS", f"({given},)")
        return f"def call({', '.join(parts)}):\n{first}{whole}"

    function = generated(source, op.name, f"<genesis op {op.name}>", scope)
    function.__doc__ = op.meaning.__doc__
    return function


def positional(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with its keyword-only parameters positional: kernels are called with plain tuples."""
    code = function.__code__
    if not code.co_kwonlyargcount:
        return function
    count = code.co_argcount + code.co_kwonlyargcount
    plain = FunctionType(
        code.replace(co_argcount=count, co_kwonlyargcount=0),
        function.__globals__,
        function.__name__,
        None,
        function.__closure__,
    )
    plain.__doc__ = function.__doc__
    return plain


def attach_methods(op: Op, call: Callable[..., Any], operators: Iterable[str] = (), inplace: Any = None) -> None:
    """Make an op whose first parameter is ``input`` a method of `Tensor`, and give it its operators."""
    if op.names[:1] == ("input",) and not hasattr(Tensor, op.name):
        setattr(Tensor, op.name, call)
    for name in operators:
        setattr(Tensor, name, getattr(call, "operator", call))
    if inplace is not None:
        op.inplace = True
        setattr(Tensor, op.name + "_", inplace)
