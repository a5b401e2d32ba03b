"""Graphs for TensorBoard: of a traced model, in boxes named after its modules, and of an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.base.text import name_of
from genesis.core.call.refusal import described
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.jit.arguments import Var, shown, variables
from genesis.jit.binding import Graph
from genesis.jit.guards import Guards
from genesis.jit.program import Call, Program
from genesis.jit.tracer import Tracer
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.messages import shape_of
from genesis.utils.tensorboard.pictures import package

_PRODUCER = 22  # the version of TensorFlow's graphs that PyTorch writes


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[Any, Any]:
    """A model as TensorBoard's graph: what it does in evaluation, operation by operation.

    Args:
        model: a module, or a function
        args: a tensor, or a tuple or list of the arguments
        verbose: print the traced graph
        use_strict_trace: not used: containers may change in a trace

    Returns:
        ``GraphDef``, and ``RunMetadata`` with a device

    Raises:
        TypeError: no model, or no arguments
        RuntimeError: the model cannot be traced
    """
    if not callable(model):
        raise ArgumentError(message("add_graph", f"expected a module, got {described(model)}"))
    if args is None:
        raise ArgumentError(message("add_graph", "input_to_model is needed: what the model is called with"))
    if not isinstance(args, Tensor | Mapping | tuple | list):
        raise ArgumentError(message("add_graph", f"input_to_model must be a tensor or a tuple, got {described(args)}"))
    given = tuple(args) if isinstance(args, tuple | list) else (args,)
    trace, scopes = _traced(model, given)
    if verbose:
        print(trace)
    stats = protos.StepStats(dev_stats=[protos.DeviceStepStats(device="/device:CPU:0")])
    return _definition(_nodes(trace, _titles(model, trace), scopes, model)), protos.RunMetadata(step_stats=stats)


def load_onnx_graph(fname: str | os.PathLike[str]) -> Any:
    """The graph of an ONNX file.

    Raises:
        ModuleNotFoundError: the package onnx is not installed
    """
    onnx = package("onnx", "add_onnx_graph", "onnx").load(os.fspath(fname)).graph
    nodes = []
    for value in (*onnx.input, *onnx.output):
        kind = value.type.tensor_type
        nodes.append(_node(value.name, "Variable", [], dtype=protos.AttrValue(type=kind.elem_type),
                           shape=protos.AttrValue(shape=shape_of(tuple([d.dim_value for d in kind.shape.dim])))))  # fmt: skip
    for node in onnx.node:
        attributes = [" = ".join([str(value) for _, value in a.ListFields()]) for a in node.attribute]
        nodes.append(_node(node.output[0], node.op_type, node.input,
                           parameters=protos.AttrValue(s=", ".join(attributes).encode())))  # fmt: skip
    return _definition(nodes)


def _definition(nodes: Sequence[Any]) -> Any:
    return protos.GraphDef(node=nodes, versions=protos.VersionDef(producer=_PRODUCER))


def _node(name: str, op: str, inputs: Sequence[str], **attr: Any) -> Any:
    return protos.NodeDef(name=name, op=op, input=inputs, attr=attr)


# ---- a trace that knows which modules are called


class _Scoped(Tracer):
    """A trace that notes for each call which module's call it is part of, by the module's name."""

    def __init__(self, name: str, guards: Guards) -> None:
        super().__init__(name, guards)
        self.modules: list[str] = []
        self.scopes: dict[Var, str] = {}

    def _call(self, name: str, args: tuple[Any, ...]) -> tuple[Var, ...]:
        outs = super()._call(name, args)
        self.scopes[outs[0]] = self.modules[-1] if self.modules else ""
        return outs

    @contextmanager
    def watching(self, model: Any) -> Iterator[None]:
        """While this is open, calls of the model's modules are noted."""
        with ExitStack() as hooks:
            for name, module in _modules(model).items():
                before = module.register_forward_pre_hook(lambda *_, name=name: self.modules.append(name))
                after = module.register_forward_hook(lambda *_: self._leave(), always_call=True)
                hooks.callback(before.remove)
                hooks.callback(after.remove)
            yield

    def _leave(self) -> None:
        self.modules.pop()


def _modules(model: Any) -> dict[str, Any]:
    return dict(model.named_modules()) if hasattr(model, "named_modules") else {}


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """While this is open, all modules are in evaluation; then each is what it was."""
    training = [module for module in _modules(model).values() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _traced(model: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Graph, dict[Var, str]]:
    recording = _Scoped(getattr(model, "__name__", type(model).__name__), Guards(model))
    with _evaluating(model), recording.watching(model), no_grad():
        return recording.run(model, args, {}), recording.scopes


# ---- names


def _titles(model: Any, trace: Graph) -> dict[str, str]:
    """What modules are called in the picture, by their names: ``Linear[0]`` for a layer that is named ``body.0``."""
    modules = _modules(model) or {"": model}
    return {
        name: name_of(f"{type(module).__name__}[{name.rpartition('.')[2]}]" if name else trace.name)
        for name, module in modules.items()
    }


def _path(titles: Mapping[str, str], name: str) -> str:
    """A module's name as nested boxes: ``Net/Sequential[body]/Linear[0]``."""
    parts = name.split(".") if name else []
    owners = [".".join(parts[:i]) for i in range(len(parts) + 1)]
    return "/".join([titles[owner] for owner in owners if owner in titles])


def _names(trace: Graph, titles: Mapping[str, str], scopes: Mapping[Var, str], model: Any) -> dict[Var, str]:
    """What each variable is called in the picture."""
    program = trace.program
    names = {var: f"input/{program.name_of(var)}" for var in program.arguments}
    owned = [*getattr(model, "named_parameters", tuple)(), *getattr(model, "named_buffers", tuple)()]
    known = {id(tensor): name for name, tensor in owned}
    for var, tensor in trace.captured:
        owner, _, last = known.get(id(tensor), program.name_of(var)).rpartition(".")
        names[var] = f"{_path(titles, owner)}/{last}"
    for call in program.calls:
        path = _path(titles, scopes.get(call.outs[0], ""))
        for i, var in enumerate(call.outs):
            names[var] = f"{path}/{call.op}_{program.name_of(call.outs[0])[1:]}" + (f":{i}" if i else "")
    for var in program.outside:
        names.setdefault(var, f"{_path(titles, '')}/{program.name_of(var)}")
    return names


def _nodes(trace: Graph, titles: Mapping[str, str], scopes: Mapping[Var, str], model: Any) -> list[Any]:
    program, names = trace.program, _names(trace, titles, scopes, model)
    ends = variables(program.results)
    used = {var for call in program.calls for var in call.inputs} | set(ends)
    captured = set(program.captured)
    nodes = []
    for var in program.outside:
        if var in used:
            op = "IO Node" if var in program.arguments else "Parameter" if var in captured else "Constant"
            nodes.append(_node(names[var], op, [], **_attributes(var, "")))
    for call in program.calls:
        inputs = [names[var] for var in call.inputs]
        nodes.append(_node(names[call.outs[0]], call.op, inputs, **_attributes(call.outs[0], _options(program, call))))
    for i, var in enumerate(ends, 1):
        nodes.append(_node(f"output/output.{i}", "IO Node", [names[var]], **_attributes(var, "")))
    return nodes


def _options(program: Program, call: Call) -> str:
    """The arguments that are no tensors."""
    return ", ".join([shown(a, program.name_of) for a in call.args if not variables((a,))])


def _attributes(var: Var, text: str) -> dict[str, Any]:
    value = protos.AttrValue
    shapes = value.ListValue(shape=[shape_of(tuple(var.spec.shape))])
    return {"attr": value(s=text.encode()), "_output_shapes": value(list=shapes)}
