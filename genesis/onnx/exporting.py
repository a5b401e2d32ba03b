"""`export`: a model as an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, UnsupportedError, message
from genesis.base.pytree import tree_flatten
from genesis.base.text import Printed
from genesis.core.graph.tensor import Tensor
from genesis.jit.arguments import Var, variables
from genesis.jit.program import Call
from genesis.onnx import (
    activations,
    elementwise,
    indexing,
    normalization,
    products,
    recurrent,
    reductions,
    shapes,
    spatial,
)
from genesis.onnx.builder import Builder, Value, package
from genesis.onnx.tracing import Traces, traced

ROOMS = (activations, elementwise, indexing, normalization, products, recurrent, reductions, shapes, spatial)
OLDEST, WRITTEN_FOR, USUAL = 11, 18, 20  # what lowerings write exists from 18 on


class ONNXProgram(Printed):
    """What `export` returns: the model as ONNX's message ``model_proto``."""

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto

    def save(self, destination: Any) -> None:
        """Write it to a file, by its path or open for bytes."""
        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
        else:
            with open(os.fspath(destination), "wb") as file:
                file.write(data)

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return f"<ONNX program: {len(graph.node)} nodes, {len(graph.initializer)} initializers>"

    def _text(self) -> str:
        return repr(self) + "\n" + "\n".join(
            f"  {', '.join(n.output)} = {n.op_type}({', '.join(n.input)})" for n in self.model_proto.graph.node
        )  # fmt: skip


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    export_params: bool = True,
    verbose: bool = False,
    do_constant_folding: bool = True,
    dynamo: bool = True,
) -> ONNXProgram:
    """Write a model as an ONNX graph: what it computes for inputs of the shapes of ``args``, in evaluation mode.

    The model is traced, so what is exported is the way that it takes with these arguments. Parameters and buffers are
    initializers under their names in the ``state_dict``. With ``dynamic_axes`` the model is traced at other sizes, too,
    and sizes in the graph follow those of its inputs; where they decide what is done, that is an error. Layers that ONNX
    has operators for become these (Conv, MaxPool, LSTM, LayerNormalization, Resize, ...), anything else what it is made
    of.

    Args:
        model: a module, or any function of tensors
        args: the arguments of an example, a tuple or one tensor; kwargs: those by name
        f: the file, by its path or open for bytes; None writes none
        input_names: names of the tensors among the arguments, ``input_0``, ... unless given
        output_names: names of the tensors of the result, ``output_0``, ... unless given
        opset_version: of ONNX's operators, from 11 to the newest that the package ``onnx`` has; 20 unless given. Before 18
            some ops have no form; the error says which version has
        dynamic_axes: ``{"x": {0: "batch"}}`` or ``{"x": [0]}``: by name of an input, axes whose size is left open; axes
            of one name have one size. Those of outputs follow by themselves.
        export_params: whether the file has the values of parameters; without them they are inputs
        verbose: print the graph
        do_constant_folding, dynamo: accepted, without effect: there is one way to export, and what is computed from
            parameters alone is left to the program that runs the file

    Returns:
        an `ONNXProgram`: its ``model_proto`` is ONNX's message, ``save(path)`` writes it

    Raises:
        ModuleNotFoundError: the package ``onnx`` is not there
        NotImplementedError: an op that has no form in ONNX; the message names it and the model's line
        RuntimeError: the model needs values of its inputs, or writes to tensors of its own

    >>> import genesis
    >>> model = genesis.nn.Sequential(genesis.nn.Linear(4, 3), genesis.nn.ReLU())
    >>> program = genesis.onnx.export(model, genesis.ones(2, 4), input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    ...                              )  # doctest: +SKIP
    >>> [node.op_type for node in program.model_proto.graph.node]  # doctest: +SKIP
    ['Shape', 'Gather', 'Gemm', 'Relu']
    """
    opset = _opset(opset_version)
    args = args if isinstance(args, tuple) else (args,)
    kwargs = dict(kwargs or {})
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    inputs = _names("input", input_names, len(tensors))
    with _evaluating(model):
        traces = traced(model, args, kwargs, _dynamic(dynamic_axes, inputs, tensors, output_names))
    program = ONNXProgram(_model(model, traces, opset, inputs, output_names, export_params))
    if verbose:
        print(program)
    if f is not None:
        program.save(f)
    return program


# ---- arguments


def _opset(version: Any) -> int:
    onnx = package()
    newest = onnx.defs.onnx_opset_version()
    if version is None:
        return USUAL
    if not isinstance(version, int) or not OLDEST <= version <= newest:
        text = f"opset_version must be one of {OLDEST} to {newest} (of onnx {onnx.__version__}), got {version!r}"
        raise ArgumentValueError(message("export", text, hint=f"{USUAL}"))
    return version


def _names(kind: str, given: Any, count: int) -> list[str]:
    names = [f"{kind}_{i}" for i in range(count)] if given is None else list(given)
    if len(names) > count or len(set(names)) != len(names):
        text = f"{kind}_names has {len(names)} names, {len(set(names))} of them different, for {count} tensors"
        raise ArgumentValueError(message("export", text))
    return names + [f"{kind}_{i}" for i in range(len(names), count)]


def _dynamic(axes: Any, inputs: list[str], tensors: list[Tensor], outputs: Any) -> dict[tuple[int, int], str]:
    """Names of the dynamic axes, by the number of the input and the axis."""
    dynamic: dict[tuple[int, int], str] = {}
    for name, given in (axes or {}).items():
        if name not in inputs:
            if name in (outputs or ()) or name.startswith("output_"):
                continue  # they follow
            raise ArgumentValueError(
                message(
                    "export", f"dynamic_axes names {name!r}, the inputs are {', '.join(inputs)}", hint="input_names"
                )
            )
        index = inputs.index(name)
        wanted = given if isinstance(given, Mapping) else {axis: f"{name}_dynamic_axes_{axis}" for axis in given}
        for axis, size in wanted.items():
            rank = tensors[index].ndim
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise ArgumentValueError(
                    message("export", f"{name} has {rank} dimensions, dynamic_axes names {axis!r}")
                )
            dynamic[index, axis % rank] = str(size)
    return dynamic


@contextmanager
def _evaluating(model: Any) -> Any:
    """The model and its parts in evaluation mode."""
    parts = list(model.modules()) if hasattr(model, "modules") else []
    modes = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


# ---- the graph


def _model(model: Any, traces: Traces, opset: int, inputs: list[str], output_names: Any, with_values: bool) -> Any:
    b = Builder(traces, opset)
    helper, program = b.onnx.helper, traces.graph.program
    results = _results(traces)
    outputs = _names("output", output_names, len(results))
    b.names.update(inputs, outputs)
    infos = [_info(b, name, var) for name, var in zip(inputs, program.arguments, strict=True)]
    for name, var in zip(inputs, program.arguments, strict=True):
        b.values[var] = b._value(var, name)
    _add_sizes(b, inputs)
    calls, needed = _needed(traces.calls, [v for v in results if v is not None])
    infos += _add_captured(b, model, needed, with_values)
    _add_constants(b, needed)
    for call in calls:
        b.lower(call)
    ends = []
    for name, var in zip(outputs, results, strict=True):
        b.nodes.append(helper.make_node("Identity", [b.values[var].name], [name]))
        ends.append(_info(b, name, var))
    graph = helper.make_graph(b.nodes, program.name, infos, ends, b.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="genesis")
    made.ir_version = min(made.ir_version, max(10, helper.find_min_ir_version_for(made.opset_import)))
    _check(b, made)
    return made


def _check(b: Builder, made: Any) -> None:
    """ONNX's own check; of old versions with the types of operands, of which they take fewer."""
    old = b.opset < WRITTEN_FOR
    try:
        b.onnx.checker.check_model(made, full_check=old)
    except b.onnx.shape_inference.InferenceError as error:
        text = f"opset_version {b.opset} does not take what the model has: {str(error).strip()}"
        raise UnsupportedError(message("export", text, hint=f"opset_version={WRITTEN_FOR} or later")) from error


def _results(traces: Traces) -> list[Var]:
    """The tensors that the model returns."""
    results = list(variables(traces.graph.program.results))
    if not results:
        raise GraphError(message("export", "the model returns no tensor"))
    return results


def _add_sizes(b: Builder, inputs: list[str]) -> None:
    """The dynamic sizes, read from the inputs that have them."""
    for i in range(len(b.traces.names)):
        values = tuple([s[i] for s in b.traces.sizes])
        for name, var in zip(inputs, b.traces.graph.program.arguments, strict=True):
            axis = next((a for a, n in enumerate(b.traces.shapes[var]) if getattr(n, "values", None) == values), None)
            if axis is not None:
                shape = b.node("Shape", name)
                b.extents[values] = b.node("Gather", shape, b.constant(axis, np.dtype(np.int64)))
                break


def _info(b: Builder, name: str, var: Var) -> Any:
    shape = [_label(b, n) for n in b.traces.shapes[var]]
    return b.onnx.helper.make_tensor_value_info(name, b.code(var.spec.dtype), shape)


def _label(b: Builder, size: Any) -> Any:
    """A size for the file: a number, or the name of a dynamic one; one that follows from several has no name."""
    if not hasattr(size, "values"):
        return size
    return next((n for i, n in enumerate(b.traces.names) if tuple([s[i] for s in b.traces.sizes]) == size.values), None)


def _needed(calls: Sequence[Call], results: list[Var]) -> tuple[list[Call], set[Var]]:
    """The calls that the results need, and all variables that these use."""
    wanted, kept = set(results), []
    for call in reversed(calls):
        if any([v in wanted for v in call.outs]):
            kept.append(call)
            wanted.update(call.inputs)
    return kept[::-1], wanted


def _add_captured(b: Builder, model: Any, needed: set[Var], with_values: bool) -> list[Any]:
    """Parameters and buffers under their names; without values they are inputs, which are returned."""
    names: dict[int, str] = {}
    if hasattr(model, "named_parameters"):
        for name, tensor in (
            *model.named_parameters(remove_duplicate=False),
            *model.named_buffers(remove_duplicate=False),
        ):
            names.setdefault(id(tensor), name)
    infos = []
    for var, tensor in b.traces.graph.captured:
        if var not in needed:
            continue
        name = names.get(id(tensor), "tensor")
        if with_values:
            b.values[var] = b._value(var, b.initializer(tensor.detach()._array, name))
        else:
            name = b.fresh(name)
            b.values[var] = Value(name, var.spec.dtype, var.spec.shape)
            infos.append(_info(b, name, var))
    return infos


def _add_constants(b: Builder, needed: set[Var]) -> None:
    for var, arrays in b.traces.constants.items():
        if var in needed:
            b.values[var] = b._value(var, _constant(b, var, arrays))


def _constant(b: Builder, var: Var, arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """A constant; where its shape depends on dynamic sizes it must be one number everywhere, or count."""
    first = arrays[0]
    if all([a.shape == first.shape and np.array_equal(a, first, equal_nan=first.dtype.kind == "f") for a in arrays]):
        return b.initializer(first, "constant")
    flat = first.reshape(-1)
    shape = b.traces.shapes[var]
    if all([a.size and (a == flat[0]).all() for a in arrays]):
        return b.node("Expand", b.constant(flat[0], first.dtype), b.ints(shape))
    counts = [np.arange(a.size).reshape(a.shape) for a in arrays]
    if all([np.array_equal(a, n) for a, n in zip(arrays, counts, strict=True)]):
        end = b.node("ReduceProd", b.ints(shape), keepdims=0)
        counted = b.node("Range", b.constant(0, np.dtype(np.int64)), end, b.constant(1, np.dtype(np.int64)))
        return b.node("Cast", b.reshape(counted, shape), to=b.code(first.dtype))
    raise ArgumentError(
        message("export", f"a constant {list(first.shape)} of the model has other numbers at other sizes of the dynamic axes",
                hint="pass it as an input, or leave the axis out of dynamic_axes")
    )  # fmt: skip
