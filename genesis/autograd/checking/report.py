"""The table that `verify` returns: one row for each check, with words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from genesis.base.errors import GraphError
from genesis.base.text import Printed, Table


class VerifyError(GraphError):
    """A differentiation rule did not pass; the message is the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One check: what happened, in words, and the likely repair."""

    check: str
    status: Literal["passed", "failed", "skipped"]
    words: str = ""
    repair: str = ""
    kind: str = ""  # one word for what is wrong, for programs


def passed(check: str, words: str = "") -> Row:
    return Row(check, "passed", words)


def skipped(check: str, why: str) -> Row:
    return Row(check, "skipped", why)


def failed(check: str, kind: str, words: str, repair: str = "") -> Row:
    return Row(check, "failed", words, repair, kind)


@dataclass(frozen=True, slots=True, repr=False)
class Report(Printed):
    """The result of `verify`: true when nothing failed; printed, it is a table.

    >>> print(Report("Square", 0, [passed("gradient of `x`"), failed("leaks", "leak", "the output stays alive", "save it")]))
    verify Square: 1 of 2 checks failed (seed 0)
      passed   gradient of `x`
      FAILED   leaks            the output stays alive
                                try: save it
    """

    name: str
    seed: int
    rows: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> list[Row]:
        """The rows that failed, the most telling first."""
        return [row for row in self.rows if row.status == "failed"]

    @property
    def kinds(self) -> list[str]:
        """What is wrong, one word for each failure: ``factor``, ``transposed``, ``stale``, ..."""
        return list(dict.fromkeys(row.kind for row in self.failures))

    def __getitem__(self, check: str) -> Row:
        """The row of a check, by its name."""
        for row in self.rows:
            if row.check == check:
                return row
        raise KeyError(f"no check {check!r}; there are {', '.join(row.check for row in self.rows)}")

    def _table(self) -> Table:
        done = [row for row in self.rows if row.status != "skipped"]
        bad = len(self.failures)
        head = f"verify {self.name}: " + (
            f"{bad} of {len(done)} checks failed" if bad else f"all {len(done)} checks passed"
        )
        rows = [
            ("FAILED" if row.status == "failed" else row.status, row.check, row.words, row.repair) for row in self.rows
        ]
        return Table(f"{head} (seed {self.seed})", ("", "check", "what was found", "try"), rows)

    def _text(self) -> str:
        table = self._table()
        width = max((len(row.check) for row in self.rows), default=0)
        lines = [table.title]
        for status, check, words, repair in table.rows:
            lines.append(f"  {status:8} {check:{width}}  {words}".rstrip())
            if repair:
                lines.append(f"{'':11}{'':{width}}  try: {repair}")
        return "\n".join(lines)

    def raise_(self) -> Report:
        """Raise `VerifyError` with the table if something failed; returns the report."""
        if self.failures:
            raise VerifyError(str(self))
        return self
