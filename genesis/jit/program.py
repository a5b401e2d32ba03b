"""Programs: what a trace records, what passes change, what a compiler is given. Data, and nothing else.

A program is a list of calls in an order in which they can run. A call is the name of an op and its arguments, of which
`arguments` has the
grammar. Every variable has a spec and is assigned once; a value never changes. What is outside stands at the border as
variables, too: arguments of the call, captured tensors, constants, numbers of the host, gradients of leaves. What goes
out: results, and writes into arguments, captured tensors and gradients. Which tensors, functions and streams these are,
the program does not know: see `binding`.

So a program can be compared, hashed (`digest`), printed, stored (`save`, `load`) and bound to other tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import GraphError, message
from genesis.base.text import Printed
from genesis.core.call.kernels import op_named
from genesis.core.call.op import Op
from genesis.core.call.strides import with_strides
from genesis.core.graph.site import Site
from genesis.jit.arguments import Var, refused, renamed, shown, variables
from genesis.jit.storage import Region, regions


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an op: ``outs = op(*args)``."""

    op: str
    args: tuple[Any, ...]
    outs: tuple[Var, ...]
    site: Site | None = None

    @property
    def inputs(self) -> list[Var]:
        """The variables among the arguments."""
        return variables(self.args)

    def renamed(self, f: Callable[[Var], Var]) -> Call:
        """The same call of other variables; the call itself where none is another."""
        args = renamed(self.args, f)
        return self if args == self.args else replace(self, args=args)


@dataclass(frozen=True, slots=True)
class Write:
    """What a call leaves behind in a tensor of the outside.

    ============  ====================================================================================
    kind          ``index`` counts           ``value`` is
    ============  ====================================================================================
    argument      the arguments              what the memory holds now
    captured      the captured tensors       what the memory holds now
    grad          the leaves                 what the memory of ``.grad`` holds now; of a new tensor if there was none
    new grad      the leaves                 a new ``.grad``
    no grad       the leaves                 None, and so is the ``.grad``
    ============  ====================================================================================
    """

    kind: str
    index: int
    value: Var | None

    @property
    def of_gradient(self) -> bool:
        return self.kind.endswith("grad")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of the outside whose ``.grad`` the function reads or changes."""

    # which tensor: one of the arguments ("argument"), of the captured ones ("captured"), or ("other") none of these
    kind: str
    index: int
    spec: Spec
    var: (
        Var | None
    )  # the ``.grad`` at the beginning of a call; where there is none, -0.0: adding to that changes nothing
    present: bool | None  # whether there was one, if the function asked


@dataclass(frozen=True, slots=True)
class Alias:
    """Whose memory a result is: ``steps`` (view ops) lead from the root to it.

    The root is one of the arguments, a captured tensor, the ``.grad`` of a leaf ("grad"), another result ("result": the
    same tensor), or memory that several results share, or of which one is a part with gaps ("made").
    """

    kind: str
    index: int
    steps: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    same: bool = False  # the very tensor, not another one on its memory


@dataclass(frozen=True, eq=False, repr=False)
class Program(Printed):
    """Calls of ops, from variables of the outside to results and writes. Two are equal if they compute the same in the
    same way.
    """

    name: str
    calls: tuple[Call, ...]
    arguments: tuple[Var, ...]  # the tensors among the arguments, in order
    captured: tuple[Var, ...] = ()
    constants: tuple[tuple[Var, np.ndarray[Any, Any]], ...] = ()
    numbers: tuple[tuple[Var, int], ...] = ()  # and how many of the counts have gone up when each is asked for
    counts: int = 0  # how many entries of dictionaries go up by one
    streams: tuple[int, ...] = ()  # by how many blocks a call moves each stream of random numbers
    leaves: tuple[Leaf, ...] = ()
    results: tuple[Any, ...] = ()  # variables, and plain values
    writes: tuple[Write, ...] = ()
    made: tuple[Var, ...] = ()  # memory that several results share
    aliases: tuple[tuple[int, Alias], ...] = ()  # the results that are no memory of their own, by index
    laid_out: bool = False  # whether results depend on how arguments are laid out in memory

    # ---- comparing and storing

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides about numbers, the same in every process; the names and lines of the function are
        left out.

        >>> import genesis
        >>> f, g = (genesis.jit.trace(lambda x: x * 2 + 1, genesis.ones(n)).program for n in (3, 3))
        >>> f.digest == g.digest, f == g
        (True, True)
        """
        from genesis.jit.stored import digest

        return digest(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def save(self, path: Any) -> None:
        """Write the program to a file: a zip archive of ``program.json`` and of the bytes of its constants."""
        from genesis.jit.stored import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> Program:
        """Read what `save` wrote; no code is run.

        Raises:
            RuntimeError: the file is no program, is damaged, or uses an op that is not declared here
        """
        from genesis.jit.stored import load

        return load(path)

    def bind(self, captured: Any = (), **binding: Any) -> Any:
        """The program with tensors in place of its captured ones, as a graph that can be replayed.

        Args:
            captured: a tensor for each captured variable, in order
            numbers, counts, streams, others: functions, ``(dictionary, key)``, generators, leaves that are not
            captured; see `Binding`

        Raises:
            TypeError: another number of one of them
            RuntimeError: a tensor of another shape or dtype

        >>> import genesis
        >>> w = genesis.ones(2)
        >>> program = genesis.jit.trace(lambda x: x * w, genesis.ones(2)).program
        >>> program.bind([genesis.tensor([3., 4.])]).replay(genesis.ones(2))
        tensor([3., 4.])
        """
        from genesis.jit.binding import bound

        return bound(self, captured=captured, **binding)

    # ---- asking

    def verify(self) -> Program:
        """Check the program, and return it: arguments are of the grammar, every variable is assigned once and before it
        is used, specs are what the ops infer, views lie in memory as their specs say, and what goes out is assigned.

        Raises:
            RuntimeError: the first call that is wrong, and why
        """
        return self.verified(())

    def verified(self, inferred_before: Iterable[Call]) -> Program:
        """`verify`, where the arguments and specs of some calls were looked at when these were made."""
        trusted = set(map(id, inferred_before))
        outside = list(self.outside)
        known = set(outside)
        if len(known) != len(outside):
            raise GraphError(message("verify", "a variable stands for two things of the outside"))
        for call in self.calls:
            self._verify_arguments(call, known, id(call) in trusted)
            for var in call.outs:
                if var in known:
                    raise self._wrong(call, f"{self.name_of(var)} is assigned twice")
                known.add(var)
            specs = [v.spec for v in call.outs] if id(call) in trusted else self._inferred(call)
            if [(s.shape, s.dtype) for s in specs] != [(v.spec.shape, v.spec.dtype) for v in call.outs]:
                raise self._wrong(call, f"{call.op} infers {', '.join(map(str, specs))}")
            region = self.regions.get(call.outs[0])
            if region is not None and not _lies(call.outs[0].spec, region):
                raise self._wrong(
                    call,
                    f"{self.name_of(call.outs[0])} has strides {strides_of(call.outs[0].spec)}, as a view of "
                    f"{self.name_of(region.root)} it has {region.strides}",
                )
        for var in self.ends:
            if var not in known:
                raise GraphError(message("verify", f"the result {self.name_of(var)} is not assigned"))
        return self

    def _verify_arguments(self, call: Call, known: set[Var], trusted: bool) -> None:
        wrong = None if trusted else refused(call.args)
        if wrong is not None:
            raise self._wrong(
                call,
                f"an argument of {call.op} is {wrong[0]!r}, and a {type(wrong[0]).__name__} is no argument of a "
                "program",
            )
        if not trusted and op_named(call.op) is None:
            raise self._wrong(call, f"there is no op {call.op}")
        for var in call.inputs:
            if var not in known:
                raise self._wrong(call, f"{call.op} uses {self.name_of(var)}, which nothing before it assigns")

    def _inferred(self, call: Call) -> list[Spec]:
        try:
            return inferred(call)
        except Exception as error:
            raise self._wrong(call, f"{call.op} does not take these arguments: {error}") from error

    def _wrong(self, call: Call, text: str) -> GraphError:
        return GraphError(message("verify", text, [("call", self.line(call))]))

    @property
    def outside(self) -> Iterator[Var]:
        """The variables that come from outside."""
        yield from (*self.arguments, *self.captured, *[v for v, _ in self.constants], *[v for v, _ in self.numbers])
        yield from [leaf.var for leaf in self.leaves if leaf.var is not None]

    @property
    def ends(self) -> list[Var]:
        """The variables that leave the program."""
        return [*variables(self.results), *self.made, *[w.value for w in self.writes if w.value is not None]]

    @cached_property
    def ended(self) -> list[list[Var]]:
        """For each call the variables that nothing needs after it."""
        needed, ended = set(self.ends), []
        for call in reversed(self.calls):
            last = {v for v in (*call.inputs, *call.outs) if v not in needed}
            needed |= last
            ended.append(list(last))
        return ended[::-1]

    @cached_property
    def regions(self) -> dict[Var, Region]:
        """The memory of the values that have none of their own: views, as a part of the value at their root. All others
        have memory of their own.

        >>> import genesis
        >>> program = genesis.jit.trace(lambda x: x.t()[1] * 1, genesis.ones(2, 3)).program
        >>> [(region.root is program.arguments[0], region.offset, region.strides) for region in program.regions.values()]
        [(True, 0, (1, 3)), (True, 4, (3,))]
        """
        return regions(self.calls)

    def count(self, op: str | None = None) -> int:
        """How many calls there are (of one op)."""
        return len(self.calls) if op is None else sum(call.op == op for call in self.calls)

    def with_calls(self, calls: Sequence[Call], **changes: Any) -> Program:
        """The same program with other calls."""
        return replace(
            self,
            calls=tuple(calls),
            **{name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()},
        )

    # ---- printing

    @cached_property
    def names(self) -> dict[Var, str]:
        gradients = [leaf.var for leaf in self.leaves if leaf.var is not None]
        groups = (
            ("x", self.arguments),
            ("w", self.captured),
            ("c", [v for v, _ in self.constants]),
            ("n", [v for v, _ in self.numbers]),
            ("g", gradients),
            ("%", [v for call in self.calls for v in call.outs]),
        )
        return {v: f"{letter}{i}" for letter, group in groups for i, v in enumerate(group)}

    def name_of(self, var: Var) -> str:
        return self.names.get(var, repr(var))

    def line(self, call: Call) -> str:
        """A call as a line of code."""
        outs = ", ".join(f"{self.name_of(v)}: {v.spec}{self._part(v)}" for v in call.outs)
        text = f"{outs} = {call.op}({', '.join(shown(a, self.name_of) for a in call.args)})"
        return text if call.site is None else f"{text:<72}  # {call.site.short}"

    def _part(self, var: Var) -> str:
        region = self.regions.get(var)
        return "" if region is None else f" of {self.name_of(region.root)}"

    def target(self, w: Write) -> str:
        """What a write changes, by name."""
        if w.of_gradient:
            return self.gradient_of(self.leaves[w.index])
        return self.name_of((self.arguments if w.kind == "argument" else self.captured)[w.index])

    def gradient_of(self, leaf: Leaf) -> str:
        """The .grad of a leaf, by name."""
        if leaf.kind == "other":
            return f"({leaf.spec}).grad"
        return self.name_of((self.arguments if leaf.kind == "argument" else self.captured)[leaf.index]) + ".grad"

    def _text(self) -> str:
        parameters = [f"{self.name_of(v)}: {v.spec}" for v in self.arguments]
        lines = [f"def {self.name}({', '.join(parameters)}):"]
        lines += [f"    {self.name_of(v)}: {v.spec} = captured tensor" for v in self.captured]
        lines += [
            f"    {self.name_of(x.var)}: {x.var.spec} = {self.gradient_of(x)}" for x in self.leaves if x.var is not None
        ]
        lines += [
            f"    {self.name_of(v)}: {v.spec} = constant" + (f" {array.tolist()}" if array.size <= 4 else "")
            for v, array in self.constants
        ]
        lines += [f"    {self.name_of(v)} = number of the host" for v, _ in self.numbers]
        lines += ["    " + self.line(call) for call in self.calls]
        lines += [
            f"    {self.target(w)} <- {'None' if w.value is None else self.name_of(w.value)}" for w in self.writes
        ]
        results = self.results if len(self.results) != 1 else self.results[0]
        return "\n".join([*lines, f"    return {shown(results, self.name_of)}"])

    def __repr__(self) -> str:
        return f"<program of {self.name}: {len(self.calls)} calls, {len(self.arguments)} arguments, {len(self.captured)} captured tensors>"


def _lies(spec: Spec, region: Region) -> bool:
    """Whether a spec has the strides of its region; those of dimensions of one element, or of none, mean nothing."""
    return 0 in spec.shape or all(
        [n == 1 or s == t for n, s, t in zip(spec.shape, strides_of(spec), region.strides, strict=True)]
    )


def repeatable(call: Call) -> bool:
    """Whether the same inputs always give the same results: not of random ops, and of users' operations nobody knows."""
    return op_of(call).kind.repeatable


def inferred(call: Call) -> list[Spec]:
    """The specs of a call's results, from its op."""
    op = op_of(call)
    specs = renamed(call.args, lambda var: var.spec if var.spec.device.type != "meta" else 1.0)
    results = op.kind.infer(op, specs)
    return list(results) if isinstance(results, tuple | list) else [with_strides(op, specs, results)]


def op_of(call: Call) -> Op:
    op = op_named(call.op)
    assert op is not None, call.op
    return op


def takes_tensor(op: Op, index: int) -> bool:
    """Whether an op takes a tensor, or a sequence of tensors, as this argument."""
    return index in op.tensors or (op.variadic and index == 0)
