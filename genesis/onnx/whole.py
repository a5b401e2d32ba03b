"""Composites that ONNX has an operator for: a trace for an export keeps each as one call.

Elsewhere a composite is recorded as the primitives that it is made of. Here functions are put in the place of those in
`CONDITIONS` for as long as the export traces; each has the composition recorded, so that its result is known, and then
replaces it by one call, ``whole.<name>`` with the arguments in the order of the signature. Where the condition of a
composite says no, the composition stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from genesis.arrays.spec import Spec
from genesis.base.device import META
from genesis.core.call.fused import FUSED
from genesis.core.call.kinds.others import FUSION
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.overrides import add, kernel_form, take_away
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.jit.program import Call
from genesis.jit.traced import Cell, Traced

Condition = Callable[..., bool]


def always(*args: Any) -> bool:
    """Every call of the composite."""
    return True


CONDITIONS: dict[str, Condition] = {}


def whole(*names: str, when: Condition = always) -> None:
    """Keep composites as one call where ``when(*arguments)`` says so."""
    CONDITIONS.update(dict.fromkeys(names, when))


_open: ContextVar[bool] = ContextVar("genesis_onnx_open", default=False)


def is_in_onnx_export() -> bool:
    """Whether the code that asks runs inside of `export`.

    >>> import genesis
    >>> genesis.onnx.is_in_onnx_export()
    False
    """
    return _open.get()


@contextmanager
def kept_whole() -> Iterator[None]:
    """While this is open, the traces of this thread keep composites whole."""
    with ExitStack() as stack:
        for name, condition in CONDITIONS.items():
            op = REGISTRY[name]
            FUSED.setdefault(f"whole.{name}", _as_op(op))
            function = _recorder(op, condition)
            add(op, function)
            stack.callback(take_away, op, function)
        stack.callback(_open.reset, _open.set(True))
        yield


def _recorder(op: Op, condition: Condition) -> Callable[..., Any]:
    plain, signature = kernel_form(op.call), op.signature

    def recorded(*args: Any, **kwargs: Any) -> Any:
        active: Any = tracer.get()
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = [value for name, value in bound.arguments.items() if name not in ("inplace", "out")]
        if active is None or bound.arguments.get("inplace") or not condition(*given):
            return plain(*args, **kwargs)
        values = tuple([active.var(value) for value in given])
        begun = len(active.calls)
        result = plain(*args, **kwargs)
        results = result if isinstance(result, tuple) else (result,)
        outs = tuple([active.var(x) for x in results])
        del active.calls[begun:]
        active.calls.append(Call(f"whole.{op.name}", values, outs, active._site()))
        made = tuple([_result(active, var) for var in outs])
        return made if isinstance(result, tuple) else made[0]

    return recorded


def _as_op(op: Op) -> Op:
    """The composite as an op of programs; what it gives is asked of tensors without data."""
    signature = op.signature
    parameters = [p for p in signature.parameters.values() if p.name not in ("inplace", "out")]

    def infer(*specs: Any) -> list[Spec]:
        given = {
            p.name: wrap(Spec(a.shape, a.dtype, META)) if isinstance(a, Spec) else a
            for p, a in zip(parameters, specs, strict=True)
        }
        result = kernel_form(op.call)(**given)
        return [x._array for x in (result if isinstance(result, tuple) else (result,))]

    return Op(f"whole.{op.name}", FUSION, signature.replace(parameters=parameters), op.meaning, infer=infer)


def _result(active: Any, var: Any) -> Tensor:
    return wrap(Traced(active, Cell(var), var.spec))
