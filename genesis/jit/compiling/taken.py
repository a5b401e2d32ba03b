"""The statements that are taken out of a compiled function, for Python does them at each call: which these are is found out
one by one, where a trace cannot go on.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from genesis.jit.compiling.effects import Lines, Watch
from genesis.jit.compiling.statements import NoStatement, Rewritten
from genesis.jit.compiling.stops import Anew, Conflict, Set, Stopped, position


class Taken:
    """Those of one function, and what calls that were watched have shown of the program.

    Attributes:
        statements: them, by code
        codes: code without effects
        lines: those that write to objects
        seen: what else is known of lines
    """

    def __init__(self) -> None:
        self.statements: dict[Any, Rewritten] = {}
        self.codes: set[CodeType] = set()
        self._met: set[CodeType] = set()
        self.lines: set[tuple[str, int]] = set()
        self.seen = Lines()

    def copied(self) -> Taken:
        """The same, in which more statements may be taken out."""
        made = Taken()
        made.statements = {code: one.copied() for code, one in self.statements.items()}
        made.codes, made._met, made.lines, made.seen = self.codes, self._met, self.lines, self.seen
        return made

    @property
    def count(self) -> int:
        return sum([len(one.statements) for one in self.statements.values()])

    def met(self, code: CodeType | None) -> None:
        """A trace met code that had not run before. Where that happens again, calls as they are do not run it, as what asks
        ``is_compiling()`` decides: a trace enters it.
        """
        if code in self._met:
            self.codes.add(code)
        elif code is not None:
            self._met.add(code)

    def learn(self, watch: Watch) -> None:
        """A call as it is was watched."""
        self.codes |= watch.codes
        self.lines |= watch.writes

    def watch(self) -> Watch:
        """What looks on while the function is traced, which knows what runs then."""
        by_code = {code: r for r in self.statements.values() for code in r.codes}
        watch = Watch(self.codes.union([code for code, r in by_code.items() if r.code in self.codes]))
        watch.seen = self.seen
        watch.lines, watch.names = self.lines, lambda code: by_code[code].names() if code in by_code else None
        return watch

    def take(self, watch: Watch, error: BaseException) -> bool:
        """Take the statement out that an error comes from; whether that can be."""
        lines, tb = list[Any](), error.__traceback__
        while tb is not None:
            code = tb.tb_frame.f_code
            lines += [(code, position(code, tb.tb_lasti))] if watch.is_of_program(code) else []
            tb = tb.tb_next
        lines.reverse()
        if isinstance(error, Stopped) and watch.effects:
            lines = list(watch.effects.values())[-1]  # an effect may be seen when code begins or ends
        if isinstance(error, Conflict | Anew):
            return self.take_one([error.args])
        if self.take_one(lines[:1]):
            return True
        if isinstance(error, Stopped) and lines and lines[0][0] not in self.codes:
            watch.unknown = True  # what else it does is to be seen before the statement that calls it is taken out
            return False
        return self.take_one(lines[1:])

    def take_one(self, lines: list[tuple[Any, Any]]) -> bool:
        """Take out the statement of the first line (or what reads a name) where that can be."""
        by_code = {code: r for r in self.statements.values() for code in r.codes} | self.statements
        for code, line in lines:
            try:
                known = by_code.get(code) or Rewritten(code)
                if isinstance(line, Set):
                    known.take_sets(line.name)
                elif isinstance(line, str):
                    known.take_reads(line)
                else:
                    known.take(*line)
            except NoStatement:
                continue
            self.statements[known.code] = known
            return True
        return False
