"""How one graph of a compiled function is made: the function is traced, statements that Python does at each call are taken
out of it, and floats that change are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from genesis.arrays.protocol import NeedsValues
from genesis.base import dtypes
from genesis.base.device import get_default_device, set_default_device
from genesis.base.errors import GenesisError, GraphError, UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tracing import Dependable, depends
from genesis.jit.binding import Graph
from genesis.jit.compiling.begun import Begun
from genesis.jit.compiling.checks import Given
from genesis.jit.compiling.containers import containers_in, within
from genesis.jit.compiling.deciding import only_decides
from genesis.jit.compiling.division import divided, undivided
from genesis.jit.compiling.effects import Watch
from genesis.jit.compiling.entries import Entry, key_of
from genesis.jit.compiling.granted import granted, leave_changes
from genesis.jit.compiling.joint import Decided, Joint, JointTracer
from genesis.jit.compiling.leaves import Asked, NotKept
from genesis.jit.compiling.library import told_of
from genesis.jit.compiling.slots import UNREAD, Slot, Slots, overlapping
from genesis.jit.compiling.statements import Functions, rewritten
from genesis.jit.compiling.stops import Anew, Conflict, Effect, Late, Leaked, Moving, Stopped
from genesis.jit.compiling.surroundings import changed, surroundings
from genesis.jit.compiling.taken import Taken
from genesis.jit.compiling.unknown import refuse_unnamed, slots_of, unknown
from genesis.jit.compiling.values import HostValue, ValueNeeded
from genesis.jit.guards import Guards
from genesis.jit.numbers import Decision, Formula, StillFloat, identity, read_by
from genesis.jit.numbers import Entry as NumberEntry
from genesis.jit.program import Program

STATEMENTS = 24  # that Python does at each call
LOOKED_INTO = "something looks into a number that changes, past its methods"
RAW = 1.3e200, -7.7e-200  # what numbers are for functions in C: no program has such
compiling: ContextVar[bool] = ContextVar("genesis_compiling", default=False)


class Tracing:
    """What is known of one function for its next graph.

    Args:
        name: of the function, in what is said of it
        original: the function as it was
        fullgraph: whether Python may do nothing at each call

    Attributes:
        read: floats of the outside that graphs ask for, for they change
        read_arguments: those among the arguments, and whole numbers that only decide: (structure, index)
        tried: whole numbers among these that may do more than decide: no graph may be able to ask for them
        constant: those of both that no graph can ask for
        taken: the statements that Python does
        keeps: whether what computes with numbers is kept, too
        begun: what traces have set up since the last call
        slots: what the function sets and goes on from; None: statements that set something are kept for Python
        kept_statements: those that are, for a trace could not run them
        draws: whether graphs take random numbers of Python and NumPy; `drawn` are those of the last trace
    """

    def __init__(self, name: str, original: Callable[..., Any], fullgraph: bool) -> None:
        self.name, self.original, self.fullgraph = name, original, fullgraph
        self.read: dict[Any, NumberEntry] = {}
        self.read_arguments: set[Any] = set()
        self.tried: set[Any] = set()
        self.constant: set[Any] = set()
        self.taken = Taken()
        self.keeps = not fullgraph
        self.begun: list[Begun] = []
        self.slots: tuple[Slot, ...] | None = () if not fullgraph else None
        self.draws = True
        self.drawn: dict[int, Any] | None = None
        self.kept_statements: set[Any] = set()

    # ---- floats that change

    def ask_for(self, entry: NumberEntry) -> None:
        """A float of the outside is another one than in a trace before."""
        if entry.identity() not in self.constant:
            self.read.setdefault(entry.identity(), entry)

    def ask_for_argument(self, structure: Any, i: int, kind: type) -> None:
        """An argument is another number than before."""
        if (structure, i) not in self.constant:
            self.read_arguments.add((structure, i))
            if kind is not float and not self._only_decides(structure, i):
                self.tried.add((structure, i))

    def _only_decides(self, structure: Any, i: int) -> bool:
        """Whether Python only decides by an argument; what it prints of it is taken out of the function."""
        prints = only_decides(self.original, structure, i)
        if prints is None or (prints and self.fullgraph):
            return False
        return all([self.taken.take_one([print]) for print in prints])

    def key(self, leaves: list[Any], structure: Any) -> Any:
        """What calls of one graph have in common."""
        return key_of(leaves, structure, self.read_arguments)

    def with_numbers(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, Entry]:
        """A graph that asks for the floats that change, as far as that can be; and its key."""
        while self.read or self.read_arguments:
            before = set(self.read)
            try:
                return key, self.entry(leaves, args, kwargs)
            except Leaked as leak:
                constant = leak.args[0] & before
            except Exception:
                constant = set()
            constant = constant or (self.tried & self.read_arguments)
            self.constant |= constant or (set(self.read) | self.read_arguments)
            self.read = {at: entry for at, entry in self.read.items() if at not in self.constant}
            self.read_arguments -= self.constant
            key = self.key(leaves, key[0])
        try:
            return key, self.entry(leaves, args, kwargs)
        except Leaked:  # of a number that is asked for since then
            raise NotKept(LOOKED_INTO) from None

    def forget_unused(self) -> bool:
        """Empty what was set up and not used in the call that has ended; whether there was such."""
        begun, self.begun = self.begun, []
        return any([state.forget_unused() for state in begun])

    # ---- a graph

    def entry(self, leaves: list[Any], args: Any, kwargs: Any, first: bool = False) -> Entry:
        """Trace and compile; what Python has to do at each call is taken out of the function, statement by statement.

        Args:
            first: it is the first call of all
        """
        taken, keeps = self.taken, self.keeps
        self.taken, self.ran = taken.copied(), False
        self.functions = Functions()
        try:
            return self._attempted(args, kwargs, first)
        except (Exception, Stopped, Leaked, Conflict, Anew, Moving) as error:
            if first or not self.ran or (isinstance(error, Stopped) and error.args[0].unknown):
                raise
        slots, self.slots, self.draws, self.taken, self.keeps = self.slots, None, False, taken, keeps
        try:
            return self._attempted(args, kwargs, first)
        except BaseException:
            self.slots, self.draws = slots, True
            raise

    def _attempted(self, args: Any, kwargs: Any, first: bool) -> Entry:
        """Trace until no more statements have to be taken out of the function."""
        for _ in range(STATEMENTS):
            watch, token = self.taken.watch(), compiling.set(True)
            loaded = tuple([slot.loaded() for slot in self.slots or ()])
            call = (*args, *loaded), kwargs
            given = self._given(args, kwargs, loaded)
            self.drawn = dict[int, Any]() if self.draws else None
            try:
                with rewritten(self.taken.statements.values(), self.functions):
                    traced, decided = self._traced(watch, call, loaded, given)
                    graph = traced.forward if isinstance(traced, Joint) else traced
                    for slot in overlapping(decided.slots, loaded, graph, tree_flatten((args, kwargs))[0]):
                        slot.unread = True
                        raise Late(self.slots)
                    if slots := slots_of(decided.calls, graph.binding, self.read):
                        watch = self.taken.watch()
                        with unknown(slots):
                            self._traced(watch, call, loaded, given)
                    if self.read or given or self.drawn:
                        self._refuse_looks(told(traced, decided), call, loaded, given)
                if not graph.program.calls and any([call.number is None for call in decided.calls]):
                    raise NotKept(f"Python does all of it, at {decided.calls[0].title}")
                if first and _holds_once(graph.program):
                    raise NotKept("it asks for gradients that are there from the second call on")
                return Entry(traced, self.original, tree_flatten(call)[0], decided, given)
            except Late as late:
                (self.slots,) = late.args
            except Moving as moving:
                held, name, text = moving.args
                entry = NumberEntry(held, (name,), text)
                if entry.identity() in self.constant or entry.identity() in self.read:
                    raise NotKept(f"{text} is read and changed") from None
                self.read[entry.identity()] = entry
            except (Exception, Stopped, Conflict, Anew) as error:
                if isinstance(error, Stopped):
                    error.args = (watch,)
                if self._keeps_failed(watch, error):
                    continue
                if not isinstance(error, Stopped | ValueNeeded | NeedsValues | Conflict | Anew):
                    raise
                if watch.unknown or self.fullgraph or not self._take(watch, error):
                    if isinstance(error, Conflict):
                        raise NotKept(f"{error.args[1]} is read, which a statement changes that Python does") from None
                    if isinstance(error, Anew):
                        raise NotKept(
                            f"{error.args[1].name} is made anew at each call, a statement changes it"
                        ) from None
                    raise
            finally:
                compiling.reset(token)
        raise NotKept(f"Python does more than {STATEMENTS} things")

    def _keeps_failed(self, watch: Watch, error: BaseException) -> bool:
        """Keep the statement for Python that a trace could not run, unless the error comes of another one that can be taken
        out; whether there was such.
        """
        if self.failed is None or self.failed in self.kept_statements or watch.unknown:
            return False
        count = self.taken.count
        effect = isinstance(error, Stopped) and self.taken.take(watch, error) and self.taken.count > count
        if not effect:
            self.kept_statements.add(self.failed)
            self.slots = ()
        return True

    def _refuse_looks(self, seen: Any, call: Any, loaded: tuple[Any, ...], given: dict[int, Given]) -> None:
        """Trace once more, with other numbers for functions in C: refuse a function that ``seen`` is not true of then."""
        try:
            again = told(*self._traced(self.taken.watch(), call, loaded, given, RAW[1]))
        except (Exception, Stopped, Conflict, Anew, Moving):
            again = None
        if again != seen:
            raise NotKept(LOOKED_INTO)

    def _take(self, watch: Watch, error: BaseException) -> bool:
        """Have Python do at each call what an error comes from; whether that can be."""
        if self.taken.take(watch, error):
            return True
        if self.keeps and isinstance(error, ValueNeeded):
            self.keeps = False  # graphs hold for the numbers then
            return True
        return False

    def _given(self, args: Any, kwargs: Any, loaded: tuple[Any, ...]) -> dict[int, Given]:
        """The numbers among the arguments that the graph is to ask for, and all of those in slots."""
        holder = dict[int, float]()
        leaves, structure = tree_flatten((args, kwargs))
        of_slots, count = tree_flatten(loaded)[0], len(tree_flatten(args)[0])
        read = {i: x for i, x in enumerate(leaves) if (structure, i) in self.read_arguments}
        read = {i if i < count else i + len(of_slots): x for i, x in read.items()}
        read |= dict(enumerate(of_slots, count))
        holder.update({i: x for i, x in read.items() if type(x) in (float, int)})
        return {i: Given(holder, i) for i in holder}

    def _traced(
        self, watch: Watch, call: Any, loaded: tuple[Any, ...], given: dict[int, Given], raw: float = RAW[0]
    ) -> tuple[Graph | Joint, Decided]:
        guards, read = Guards(self.original), tuple(self.read.values())
        guards.names.leave(read)
        tracer, watch.numbers = JointTracer(self.name, guards), bool(read or given)
        tracer.watch, tracer.raw = watch, raw if watch.numbers else None
        tracer.hosts.drawn.numbers, tracer.hosts.drawn.raw = self.drawn, raw
        tracer.values.keeps_statements, watch.changed = self.keeps, tracer.hosts.kept
        slots = tracer.hosts.slots = Slots(self.slots or ())
        tracer.hosts.keeps, watch.slots = None if self.slots is None else self.kept_statements, slots
        tracer.loads, self.failed = tuple([x is not UNREAD for x in loaded]), None
        (args, kwargs), count = call, len(call[0]) - len(loaded)

        def run(*args: Any, **kwargs: Any) -> Any:
            if given:
                args, kwargs = _asked_for(tracer, args, kwargs, given)
            args, inner = args[:count], args[count:]
            tracer.hosts.containers = [*containers_in(args), *[c for x in kwargs.values() for c in containers_in(x)]]
            watch.given = {id(x) for x in within((args, kwargs))}
            for thing in (getattr(self.original, "__self__", None), *tree_flatten((args, kwargs))[0]):
                if isinstance(thing, Dependable):
                    depends(thing)
            opened.enter_context(watch)
            with read_by(tracer, read), slots.holding(inner), tracer.hosts.standing_in(), _same_modes():
                result = self.original(*args, **kwargs)
                watch.settle()
                return (result, slots.end(result, tracer.hosts.containers)) if slots.every else result

        kept = surroundings([(self.name, self.original), ("an argument", (args, kwargs))])
        with ExitStack() as opened:
            opened.enter_context(told_of())
            try:
                graph = tracer.run(run, args, kwargs)
            except BaseException as error:
                watch.forget_cached()
                changed(kept)
                drawn = any([call.drawn for call in tracer.hosts.calls])
                if drawn and isinstance(error, GenesisError) and HostValue.__name__ in str(error):
                    raise ValueNeeded(str(error)).with_traceback(error.__traceback__) from None
                raise
            finally:  # traces count writes, too
                self.ran, self.failed = self.ran or bool(slots.has_run or self.drawn), tracer.hosts.failed
                self.begun = [Begun(*held) for held in (*[(b.state, b.states) for b in self.begun], *tracer.begun)]
        if titles := changed(kept):
            raise GraphError(f"{titles[0]} changes, and nothing shows where: a compiled call would not do it again")
        if watch.effect is not None:
            raise GraphError(not_again(watch.effect))
        refuse_unnamed(tracer.hosts.calls, watch)
        for one in self.taken.statements.values():
            names = one.only_kept(tracer.hosts.run)
            guards.names.leave_named([f"{name}, which {one.code.co_name} captures," for name in names])
        leave_changes(graph, tracer, watch)
        taken = (
            *graph.binding.guards,
            *granted(watch, graph, tracer.still),
            *tracer.masks,
            *[StillFloat(entry) for entry in read],
        )
        graph = Graph(graph.program, replace(graph.binding, guards=taken))
        if not tracer.outputs:
            _refuse_arguments(graph.program)
            return undivided(tracer, graph)
        joint = divided(tracer, graph)
        _refuse_arguments(joint.forward.program)
        return joint, joint.decided


def told(traced: Graph | Joint, decided: Decided) -> Any:
    """What a trace says of numbers: equal for two of them in which these are the same."""
    graph, programs = traced, list[Program]()
    if isinstance(traced, Joint):
        graph, programs = traced.forward, [traced.backward]
    numbers = [identity(ask) for ask in graph.binding.numbers if isinstance(ask, NumberEntry | Formula)]
    decisions = [(guard.ask.identity(), guard.answer) for guard in graph.binding.guards if isinstance(guard, Decision)]
    plain = [call.plain for call in decided.calls]
    returned = [x.leaf for x in graph.binding.objects.values() if isinstance(x, HostValue)]
    numbers += [identity(leaf.ask) for leaf in returned if isinstance(leaf, Asked)]
    return [p.digest for p in (graph.program, *programs)], numbers, decisions, repr((decided.answers, plain))


def not_again(effect: Effect) -> str:
    """Why a function with an effect is not compiled."""
    return f"{effect}: a compiled call would not do it again"


@contextmanager
def _same_modes() -> Iterator[None]:
    """Refuse a function that leaves other modes behind than there were, and set them back: a call would not set them."""
    modes = grad_mode.get(), dtypes.get_default_dtype(), get_default_device()
    try:
        yield
        if modes != (grad_mode.get(), dtypes.get_default_dtype(), get_default_device()):
            text = "it sets whether gradients are recorded, the default dtype or the default device"
            raise GraphError(message("compile", text, hint="set it in a with block, or outside"))
    finally:
        grad_mode.set(modes[0])
        dtypes.set_default_dtype(modes[1])
        set_default_device(modes[2])


def _holds_once(program: Program) -> bool:
    """Whether the graph of a first call holds for no other: it asked for a gradient that was not there, and is now."""
    begun = {w.index for w in program.writes if w.kind in ("grad", "new grad")}
    return any([leaf.present is False and i in begun for i, leaf in enumerate(program.leaves)])


def _refuse_arguments(program: Program) -> None:
    """Calls know no gradients of arguments."""
    if any(leaf.kind == "argument" for leaf in program.leaves):
        raise UnsupportedError(message("compile", "the .grad of an argument is looked at, or changes"))


def _asked_for(tracer: JointTracer, args: Any, kwargs: Any, given: dict[int, Given]) -> Any:
    """The arguments, with numbers of the host for some floats."""
    leaves, structure = tree_flatten((args, kwargs))
    for i, where in given.items():
        whole = type(leaves[i]) is int
        leaves[i] = tracer.reads(NumberEntry(where.holder, (where.index,), f"argument {i}"), whole)
    return tree_unflatten(leaves, structure)
