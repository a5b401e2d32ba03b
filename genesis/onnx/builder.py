"""An ONNX graph while it is made, and the table of what lowers each op.

A lowering is a function of a `Builder` and of the arguments of a call, in which tensors are `Value`s:

    @lowers("silu", "times_sigmoid")
    def _(b, x):
        return b.node("Mul", x, b.node("Sigmoid", x))

It gives the name of the result, or a tuple of them.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import DTypeError, MissingImport, UnsupportedError, message
from genesis.jit.arguments import Var
from genesis.jit.program import Call
from genesis.onnx.older import FORMS
from genesis.onnx.tracing import Dim, Steps, Traces, expression, printed

Lowering = Callable[..., Any]
TABLE: dict[str, Lowering] = {}
INT64 = np.dtype(np.int64)


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a lowering in the table, for one op or several."""

    def enter(lowering: Lowering) -> Lowering:
        assert not TABLE.keys() & set(names), f"two lowerings of {TABLE.keys() & set(names)}"
        TABLE.update(dict.fromkeys(names, lowering))
        return lowering

    return enter


def package() -> Any:
    """The package ``onnx``."""
    try:
        return importlib.import_module("onnx")
    except ModuleNotFoundError as error:
        raise MissingImport(
            message("export", f"needs the package onnx ({error})", hint='pip install "genesis-dl[onnx]"')
        ) from error


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph: its name, element type, and shape, in which a dynamic size is a `Dim`."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Any, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def floating(self) -> bool:
        return dtypes.from_numpy(self.dtype).is_floating_point


class Builder:
    """Nodes and initializers, in order."""

    def __init__(self, traces: Traces, opset: int) -> None:
        self.onnx = package()
        self.traces, self.opset = traces, opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.values: dict[Var, Value] = {}
        self.names: set[str] = set()
        self.constants: dict[Any, str] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}  # of the constants, by their names
        self.extents: dict[tuple[int, ...], str] = {}  # scalars in the graph that are dynamic numbers
        self.out: Value | None = None  # what the call that is lowered gives: for its dtype and shape
        self.outs: tuple[Value, ...] = ()

    # ---- names and types

    def fresh(self, stem: str) -> str:
        """A name that nothing has yet."""
        name, i = stem, 0
        while name in self.names:
            i += 1
            name = f"{stem}_{i}"
        self.names.add(name)
        return name

    def code(self, dtype: Any) -> int:
        """The number of an element type in ONNX."""
        try:
            return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        except (KeyError, ValueError):
            raise DTypeError(
                message("export", f"ONNX has no element type for {dtypes.from_numpy(np.dtype(dtype))}")
            ) from None

    # ---- tensors

    def initializer(self, array: Any, name: str) -> str:
        """A tensor of the file under a name."""
        name = self.fresh(name)
        self.initializers.append(self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A small constant; equal ones are one initializer."""
        _refuse_dims(value)
        array = np.asarray(value, dtype)
        key = array.dtype.str, str(array.dtype), array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = self.initializer(array, "constant")
            self.arrays[self.constants[key]] = array
        return self.constants[key]

    def numbers(self, name: str) -> list[Any]:
        """The numbers of a `constant`, by its name."""
        return self.arrays[name].tolist()  # type: ignore[no-any-return]

    def ints(self, values: Sequence[Any]) -> str:
        """A 1-d tensor of int64, any of which may be dynamic."""
        if not any([isinstance(v, Dim) for v in values]):
            return self.constant(list(values), INT64)
        one = [self.node("Unsqueeze", self.extent(v), self.constant([0], INT64)) if isinstance(v, Dim)
               else self.constant([v], INT64) for v in values]  # fmt: skip
        return one[0] if len(one) == 1 else self.node("Concat", *one, axis=0)

    def extent(self, dim: Any) -> str:
        """A 0-d int64 tensor of the graph: a dynamic number, as an expression of the dynamic sizes."""
        if not isinstance(dim, Dim):
            return self.constant(dim, INT64)
        if dim.values not in self.extents:
            terms = expression(dim, self.traces.sizes)
            if terms is None:
                raise UnsupportedError(message("export", f"a size is {list(dim.values)} where the dynamic sizes are "
                                                         f"{[list(s) for s in self.traces.sizes]}: no sum of products of them"))  # fmt: skip
            self.extents[dim.values] = self._sum(terms)
        return self.extents[dim.values]

    def _sum(self, terms: list[tuple[int, tuple[int, ...]]]) -> str:
        total = None
        for weight, factors in terms:
            term = None if weight == 1 and factors else self.constant(weight, INT64)
            for i in factors:
                size = self.extents[tuple([s[i] for s in self.traces.sizes])]
                term = size if term is None else self.node("Mul", term, size)
            total = term if total is None else self.node("Add", total, term)
        assert total is not None
        return total

    def scalar(self, value: Any, dtype: Any) -> str:
        """A number as a 0-d tensor."""
        if isinstance(value, Dim):
            return self.node("Cast", self.extent(value), to=self.code(dtype))
        return self.constant(value, dtype)

    def operand(self, x: Any, dtype: Any) -> str:
        """A tensor or a number as an input of a dtype."""
        return self.cast(x, dtype) if isinstance(x, Value) else self.scalar(x, dtype)

    def cast(self, x: Value, dtype: Any) -> str:
        """The same numbers in another dtype."""
        return x.name if x.dtype == dtype else self.node("Cast", x, to=self.code(dtype))

    def shape_of(self, shape: Sequence[Any]) -> str:
        """A shape for Reshape; with one dynamic size it is a constant, with -1 in its place."""
        if sum(isinstance(n, Dim) for n in shape) == 1 and 0 not in shape:
            return self.constant([-1 if isinstance(n, Dim) else n for n in shape], INT64)
        return self.ints(shape)

    # ---- nodes

    def node(self, op: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node; inputs are values, names, or None for what is left out. Gives its name, or a tuple of several."""
        since, form = FORMS.get(op, (0, None))
        if form is not None and self.opset < since:
            return form(self, op, *inputs, **({"outputs": outputs} if outputs != 1 else {}), **attributes)
        return self.emit(op, *inputs, outputs=outputs, domain=domain, **attributes)

    def emit(self, op: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """`node`, as the operator is in all versions."""
        if not domain and not self.onnx.defs.has(op, self.opset, ""):
            raise self.lacks(op, next(v for v in itertools.count(self.opset) if self.onnx.defs.has(op, v, "")))
        names = ["" if x is None else x.name if isinstance(x, Value) else x for x in inputs]
        while names and not names[-1]:
            names.pop()
        _refuse_dims(list(attributes.values()))
        outs = [self.fresh(op.lower()) for _ in range(outputs)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(self.onnx.helper.make_node(op, names, outs, self.fresh(f"node_{op}"), domain=domain, **kept))
        return outs[0] if outputs == 1 else tuple(outs)

    def lacks(self, what: str, since: int) -> UnsupportedError:
        """The error for what the version does not have."""
        text = f"{what} needs opset_version {since} or later, this is {self.opset}"
        return UnsupportedError(message("export", text))

    def reshape(self, x: Any, shape: Sequence[Any]) -> str:
        return self.node("Reshape", x, self.shape_of(shape))

    def unsqueeze(self, x: Any, *dims: int) -> str:
        return self.node("Unsqueeze", x, self.constant(list(dims), INT64))

    def slice(self, x: Any, dim: int, start: Any, stop: Any, step: Any = 1) -> str:
        return self.node("Slice", x, self.ints([start]), self.ints([stop]), self.ints([dim]), self.ints([step]))

    def reduced(self, op: str, x: Any, dims: Sequence[int], keepdim: bool) -> str:
        """Reduce over dims; of a 0-d tensor over none."""
        axes = self.constant([] if isinstance(x, Value) and not x.rank else list(dims), INT64)
        return self.node(op, x, axes, keepdims=int(keepdim), noop_with_empty_axes=1)

    # ---- calls

    def lower(self, call: Call) -> None:
        """Add the nodes of a call."""
        lowering = TABLE.get(call.op.removeprefix("whole."))
        if lowering is None:
            raise UnsupportedError(_says(call, f"there is no lowering of {call.op.removeprefix('whole.')} to ONNX"))
        self.outs = tuple([self._value(v, "") for v in call.outs])
        self.out = self.outs[0]
        try:
            results = lowering(self, *[self._argument(a) for a in call.args])
        except UnsupportedError as error:
            raise UnsupportedError(_says(call, str(error).removeprefix("export: "))) from None
        except TypeError as error:
            if not any([isinstance(n, Dim) for a in call.args for n in _flat(a)]) and not any(
                [isinstance(n, Dim) for v in (*call.inputs, *call.outs) for n in self.traces.shapes[v]]
            ):
                raise
            text = f"{call.op.removeprefix('whole.')} cannot be exported where a dynamic size decides what it does"
            raise UnsupportedError(_says(call, text)) from error
        for var, name in zip(call.outs, results if isinstance(results, tuple) else (results,), strict=True):
            self.values[var] = self._value(var, name)

    def _value(self, var: Var, name: str) -> Value:
        return Value(name, var.spec.dtype, self.traces.shapes[var])

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Var):
            return self.values[value]
        if isinstance(value, tuple | list):
            return type(value)([self._argument(v) for v in value])
        return value


def _says(call: Call, text: str) -> str:
    where = [] if call.site is None else [("at", str(call.site))]
    return message("export", text, [("call", printed(call)), *where])


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [x for v in value for x in _flat(v)]
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    return [value.count, value.value] if isinstance(value, Steps) else [value]


def _refuse_dims(value: Any) -> None:
    if isinstance(value, list | tuple | Dim) and any([isinstance(v, Dim) for v in _flat(value)]):
        raise TypeError("a dynamic size is no constant")
