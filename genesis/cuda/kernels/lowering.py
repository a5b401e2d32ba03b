"""From a call of an op to launches of kernels: the rules of the compiler (`genesis.jit.lowering`), applied to one call.

16-bit floats are read, computed in float32, and rounded once when they are stored. A Python float that an elementwise op
is called with is a parameter of the kernel: another number needs no other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, spec_of
from genesis.base.device import CPU
from genesis.base.errors import UnsupportedError
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import Op
from genesis.core.call.scalars import Expression
from genesis.cuda.arrays import CudaArray, laid_so, used
from genesis.cuda.kernels.host import arrays_in
from genesis.cuda.kernels.signatures import remember
from genesis.cuda.launch.kernel import Kernel, Launched
from genesis.cuda.layouts import Layout, layout
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Stream, current
from genesis.jit.arguments import Var
from genesis.jit.lowering import reductions as _of_reductions  # noqa: F401, rules are declared when these are imported
from genesis.jit.lowering import scalar_code, triton_code
from genesis.jit.lowering import steps as _of_steps  # noqa: F401
from genesis.jit.lowering.assemble import assembled, flat
from genesis.jit.lowering.beside import halved
from genesis.jit.lowering.groups import Group, without_ones
from genesis.jit.lowering.loops import For, Load, Nest, Statement, Store, Total, Value, arguments
from genesis.jit.lowering.parts import RULES, Memory, Part, Unknown, supports
from genesis.jit.lowering.pointwise import elementwise
from genesis.jit.program import Call

NUMBER = Spec((), np.dtype(np.float64))
NONE: frozenset[int] = frozenset()
EXACT = {"nan_to_num", "nextafter"}  # ops that mean another thing of 16-bit floats than of float32
# besides elementwise ops: those whose rule needs nothing but its operands' layout
RULED = frozenset(
    {
        "sum", "mean", "nansum", "prod", "amax", "amin", "argmax", "argmin", "any", "all", "norm", "var", "std", "logsumexp",
        "softmax", "log_softmax", "centered", "deviation", "root_mean_square", "standardized", "cat", "pad_dim",
        "constant_pad_nd",
    }
)  # fmt: skip
PROCESSORS = 132  # of an H100: what has fewer programs is divided, where it can be
MOST = 1 << 31  # elements: counts in kernels have 32 bits
Launch = tuple[Launched, tuple[int, int, int], tuple[int, ...], tuple[int, ...]]
Lying = tuple[tuple[int, ...], Any, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class Step:
    """A launch: what its operands are, by kind and number ("in", "out", memory "between", or the "number" that is an
    argument of the call), and how long it is.
    """

    kernel: Kernel
    operands: tuple[tuple[str, int], ...]
    count: int


class Launches:
    """What a call does, for operands that are laid out in this way.

    Args:
        args: those of such a call, or what stands for them
        outs, between: how its results, and memory between its launches, are laid out
        many: whether the op gives several arrays
    """

    def __init__(
        self, steps: Sequence[Step], args: Sequence[Any], outs: Sequence[Spec], between: Sequence[Spec], many: bool
    ) -> None:
        self.steps, self.many = steps, many
        self._ready: dict[tuple[Layout, ...], Ready] = {}
        self.flat = not any([isinstance(a, tuple | list) and [*arrays_in(a)] for a in args])
        self.outs = [(spec.shape, spec.dtype, spec.strides) for spec in outs]
        self.between = [(spec.shape, spec.dtype, spec.strides) for spec in between]
        inputs = len([*arrays_in(args)])
        # where the values of its launches are: addresses, then arguments
        first = {"in": 0, "out": inputs, "between": inputs + len(outs), "number": inputs + len(outs) + len(between)}
        self.launched = []
        for step in steps:
            grid = step.kernel.code.grid(step.count)
            at = tuple([first[kind] + i for kind, i in step.operands])
            if grid:  # of no elements nothing is computed
                self.launched.append((step.kernel, (grid, 1, 1), at, (step.count,) if step.kernel.told else ()))

    def run(self, args: tuple[Any, ...]) -> Any:
        return self.ready([*arrays_in(args)]).run(args)

    def into(self, args: tuple[Any, ...], outs: list[CudaArray]) -> None:
        """Compute results where they are to be."""
        arrays = [*arrays_in(args), *outs]
        self.ready(arrays).into(args, arrays)

    def ready(self, arrays: list[CudaArray]) -> Ready:
        """The same, prepared for operands that lie as these."""
        lying = tuple([a.layout for a in arrays])
        ready = self._ready.get(lying)
        if ready is None:
            made = Ready(arrays[0].storage.on, self.launched, self.outs, self.between, self.many, self.flat)
            ready = remember(self._ready, lying, made)
        return ready


class Ready:
    """The launches of a call whose operands lie in a known way on a device: what differs between calls are addresses, floats
    that are parameters, and the stream.

    Args:
        launched: of each launch the kernel, the grid, which of the addresses of operands, results and memory between, and
            of the arguments, it has, and numbers that are the same in all calls
        outs, between: shapes, dtypes and strides of the results, and of memory between launches
        many: whether the op gives several arrays
        flat: whether no argument is a list of arrays
    """

    def __init__(
        self, on: Device, launched: Sequence[Launch], outs: Sequence[Lying], between: Sequence[Lying] = (),
        many: bool = False, flat: bool = True,
    ) -> None:  # fmt: skip
        self.on, self.many, self.flat = on, many, flat
        self.outs = [layout(on, *out) for out in outs]
        self.between = [layout(on, *each) for each in between]
        self.launched = [(kernel, grid, _picked(at), count) for kernel, grid, at, count in launched]
        self.prepared: list[tuple[Any, ...]] = []  # by the first call
        self.alone: tuple[Any, ...] | None = (
            None  # that of one launch which has all operands and the one result in order
        )

    def run(self, args: tuple[Any, ...]) -> Any:
        on = self.on
        stream, values = current(on), []
        for array in args if self.flat else arrays_in(args):
            if array.__class__ is CudaArray:
                storage = array.storage
                if storage.stream is not stream:
                    storage.used_on(stream)
                values.append(array.address)
        if self.alone is not None:
            out = laid_so(self.outs[0], stream)
            function, grid, block, shared, parameters, count = self.alone
            values = (*values, out.address, *count)
            on.enter().launch(function, grid, block, shared, stream.handle, parameters, values)
            return out
        outs = [laid_so(each, stream) for each in self.outs]
        values += [out.address for out in outs]
        self._launch(stream, values, args)
        return tuple(outs) if self.many else outs[0]

    def of_two(self, x: CudaArray, other: CudaArray) -> Any:
        """`run` for two arrays (a tenth of an addition less)."""
        if self.alone is None:
            return self.run((x, other))
        on = self.on
        stream = current(on)
        if x.storage.stream is not stream:
            x.storage.used_on(stream)
        if other.storage.stream is not stream:
            other.storage.used_on(stream)
        out = laid_so(self.outs[0], stream)
        function, grid, block, shared, parameters, count = self.alone
        values = x.address, other.address, out.address, *count
        on.enter().launch(function, grid, block, shared, stream.handle, parameters, values)
        return out

    def into(self, args: tuple[Any, ...], arrays: list[CudaArray]) -> None:
        """Launch, for operands and results."""
        stream = used(*arrays)
        self._launch(stream, [array.address for array in arrays], args)

    def _launch(self, stream: Stream, values: list[Any], args: tuple[Any, ...]) -> None:
        if self.between:
            between = [laid_so(each, stream) for each in self.between]
            values += [array.address for array in between]
        addresses = len(values)
        values += args
        handle, driver = stream.handle, self.on.enter()
        for function, grid, block, shared, parameters, picked, count in self.prepared or self._prepare(
            values, addresses
        ):
            driver.launch(function, grid, block, shared, handle, parameters, picked(values) + count)

    def _prepare(self, values: list[Any], addresses: int) -> list[tuple[Any, ...]]:
        made = [
            (kernel.prepared(self.on, grid, picked(values) + count), picked, count)
            for kernel, grid, picked, count in self.launched
        ]
        flat = [(*prepared[2:], picked, count) for prepared, picked, count in made]
        if all([prepared.lasting for prepared, _, _ in made]):
            self.prepared = flat
            if len(flat) == len(self.outs) == 1 and not (self.many or self.between):
                *first, picked, count = flat[0]
                if picked(range(len(values))) == tuple(range(addresses)):
                    self.alone = *first, count
        return flat


def now(result: Any, *args: Any) -> Any:
    """What a kernel that is written by hand gives, where it may give launches for its arguments."""
    return result.run(args) if result.__class__ is Ready else result


def _picked(at: tuple[int, ...]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Gives the values at these positions."""
    return itemgetter(*at) if len(at) > 1 else lambda values: tuple([values[i] for i in at])


# ---- lowering


def lowered(op: Op, args: tuple[Any, ...]) -> Launches | None:
    """The launches of a call; None if there is no kernel for it."""
    arrays = list(arrays_in(args))
    if op.name in EXACT and any([x.dtype in HALVES for x in arrays]):
        return None
    if not op.kind.aligned and op.name not in RULED:
        return None
    outs = results_of(op, args)
    many = isinstance(op.kind.infer(op, [_specs_in(a) for a in args]), tuple | list)
    if all([0 in spec.shape for spec in outs]):
        return Launches((), args, outs, (), many)  # there is nothing to compute
    if any([x.size == 0 or x.size >= MOST or min(x.strides, default=0) < 0 for x in arrays]):
        return None
    return launches(op.name, args, outs, many, numbers_of(op, args))


def results_of(op: Op, args: tuple[Any, ...]) -> list[Spec]:
    """How the results of a call are laid out."""
    given = [_specs_in(a) for a in args]
    specs = op.kind.infer(op, given)
    return [_laid_out(op, given, spec) for spec in (specs if isinstance(specs, tuple | list) else (specs,))]


def numbers_of(op: Op, args: tuple[Any, ...]) -> frozenset[int]:
    """The positions of Python floats in the place of tensors."""
    return frozenset([i for i in op.tensors if type(args[i]) is float]) if op.kind.aligned else NONE


def launches(
    name: str, args: tuple[Any, ...], outs: list[Spec], many: bool, parameters: frozenset[int] = NONE
) -> Launches | None:
    """The launches of a call that gives results like these; ``parameters`` are the positions of floats that are parameters
    of kernels.
    """
    before = supports.set(_supports)
    try:
        return _Lowering(args, outs, parameters).launches(name, many)
    except (Unknown, UnsupportedError):
        return None
    finally:
        supports.reset(before)


def _supports(name: str, dtype: Any) -> bool:
    """What the CPU has code for, of which the emitter knows what it can print, and what Triton has besides."""
    return scalar_code.supports(name, dtype) or triton_code.supports(name, dtype)


def _specs_in(value: Any) -> Any:
    if isinstance(value, CudaArray):
        return Spec(value.shape, value.dtype, value.device, value.strides)
    return type(value)([_specs_in(v) for v in value]) if isinstance(value, tuple | list) else value


def _laid_out(op: Op, given: list[Any], result: Spec) -> Spec:
    return Spec(result.shape, result.dtype, CPU, op.kind.strides(op, given, spec_of(result)))


def _wide(spec: Spec) -> Spec:
    return Spec(spec.shape, F32 if spec.dtype in HALVES else spec.dtype, CPU, spec.strides)


class _Lowering:
    def __init__(self, args: tuple[Any, ...], outs: list[Spec], parameters: frozenset[int]) -> None:
        self.known: dict[Var, tuple[str, int]] = {}  # what each variable is
        self.dtypes: dict[Var, Any] = {}  # in memory
        self.numbers: set[Var] = set()
        self.outs, self.given = outs, args
        self.args = tuple([self._parameter(i) if i in parameters else self._argument(a) for i, a in enumerate(args)])
        self.results = tuple([self._variable("out", spec) for spec in outs])
        self.between: list[Spec] = []

    def _variable(self, kind: str, spec: Spec) -> Var:
        var = Var(_wide(spec))
        self.known[var] = kind, sum([k == kind for k, _ in self.known.values()])
        self.dtypes[var] = spec.dtype
        return var

    def _parameter(self, position: int) -> Var:
        var = Var(NUMBER)
        self.known[var], self.dtypes[var] = ("number", position), NUMBER.dtype
        self.numbers.add(var)
        return var

    def _argument(self, value: Any) -> Any:
        if isinstance(value, CudaArray):
            return self._variable("in", _specs_in(value))
        return type(value)([self._argument(v) for v in value]) if isinstance(value, tuple | list) else value

    def launches(self, name: str, many: bool) -> Launches:
        parts = RULES.get(name, elementwise)(Memory({}, self.numbers), Call(name, self.args, self.results))
        if not all([isinstance(part, Part) for part in parts]):
            raise Unknown("a kernel of its own")
        groups = _grouped([without_ones(part) for part in parts])  # type: ignore[arg-type]
        stored = {var for group in groups for var in group.given}
        steps = [step for group in groups for step in self._steps(group, stored)]
        return Launches(steps, self.given, self.outs, self.between, many)

    def _steps(self, group: Group, stored: set[Var]) -> list[Step]:
        told = flat(group, stored)
        if told is not None:
            nest, operands, count = told
            return [self._step(nest, operands, count)]
        return [self._step(nest, operands, 0) for nest, operands in assembled(group, stored, PROCESSORS)]

    def _step(self, nest: Nest, operands: list[Var], count: int) -> Step:
        for var in operands:
            if var not in self.known:
                self.known[var], self.dtypes[var] = ("between", len(self.between)), var.spec.dtype
                self.between.append(var.spec)
        memory = in_memory(nest, [self.dtypes[var] for var in operands])
        kinds = tuple([self.known[var] for var in operands])
        kernel = Kernel(memory, frozenset([i for i, (kind, _) in enumerate(kinds) if kind == "number"]))
        _ = kernel.code  # it can be printed
        return Step(kernel, kinds, count)


def _grouped(parts: Sequence[Part]) -> list[Group]:
    """A group of each part; sums of columns beside those that read the same elements."""
    groups: list[Group] = []
    for part in parts:
        halves = halved(part, PROCESSORS)
        if halves is not None and any(not group.takes(halves[0]) for group in groups):
            part = halves[1]
            if any(group.joins and not group.takes(part) for group in groups):
                continue
        groups.append(Group(part))
    return groups


def in_memory(nest: Nest, dtypes: list[Any]) -> Nest:
    """The loops over memory of other dtypes, with conversions where it is read and written."""
    if list(nest.operands) == dtypes:
        return nest
    done: dict[Value, Value] = {}

    def value(v: Value) -> Value:
        if v not in done:
            done[v] = _converted(v, value, dtypes)
        return done[v]

    def statement(s: Statement) -> Statement:
        if isinstance(s, For):
            return replace(s, body=tuple(map(statement, s.body)), totals=tuple([value(t) for t in s.totals]))  # type: ignore[misc]
        given, dtype = value(s.value), dtypes[s.operand]
        stored = given if given.dtype == dtype else Expression("cast", (given,), dtype)
        return Store(s.operand, s.at, stored, s.index, s.step, s.adds)

    return Nest(tuple(dtypes), tuple(map(statement, nest.body)), nest.chunks)


def _converted(v: Value, value: Any, dtypes: list[Any]) -> Value:
    if isinstance(v, Load):
        if dtypes[v.operand] == v.dtype:
            return v
        return Expression("cast", (Load(v.operand, v.at, dtypes[v.operand], v.index, v.step),), v.dtype)
    if isinstance(v, Total):
        return Total(v.op, value(v.value), v.axes)
    if not isinstance(v, Expression) or not arguments(v):
        return v
    return Expression(v.name, tuple([value(a) if isinstance(a, Value) else a for a in v.args]), v.dtype)
