"""Reports as text and as parts of pages: what every terminal and every notebook can show.

Names come from users, files and other people's models: control characters in them are shown as escapes, and never sent
to a terminal or into a page. Where the output is ASCII, lines, arrows and marks are drawn with ASCII.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

# C0 and C1 controls and DEL, what turns the direction of text or breaks lines, lone surrogates, and what XML does not
# allow (compiled when it is used: 1 ms)
_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
_ASCII = str.maketrans(
    {
        "─": "-",
        "│": "|",
        "├": "|",
        "└": "`",
        "┌": "+",
        "┐": "+",
        "┘": "+",
        "═": "=",
        "…": "...",
        "→": "->",
        "←": "<-",
        "✓": "ok",
        "✗": "FAIL",
        "×": "x",
        "·": ".",
        "µ": "u",
        "μ": "u",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "±": "+-",
        "–": "-",
        "—": "-",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
    }
)


def visible(text: str) -> str:
    r"""The text with its control characters as escapes; ends of lines and tabs stay.

    >>> visible("red \x1b[31m")
    'red \\x1b[31m'
    """
    return text if text.isascii() and text.isprintable() else re.sub(_CONTROL, lambda c: ascii(c.group())[1:-1], text)


def name_of(text: object) -> str:
    r"""A name in one line: control characters, ends of lines and tabs as escapes.

    >>> name_of("two\nlines")
    'two\\nlines'
    """
    return visible(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def for_stream(text: str, stream: Any = None) -> str:
    """The text as a stream (the standard output) can show it: in ASCII where it is not Unicode."""
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


class Table(NamedTuple):
    """A report as a table: a title, the head, rows, and sentences below; columns of ``right`` are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    right: Sequence[int] = ()


_STYLE = (
    "<style>.genesis-report{overflow-x:auto;max-width:100%}.genesis-report table{border-collapse:collapse;font:13px "
    "ui-monospace,Menlo,Consolas,monospace}"
    ".genesis-report th,.genesis-report td{padding:2px 12px 2px 0;text-align:left;vertical-align:top;white-space:pre}"
    ".genesis-report th{border-bottom:1px solid currentColor}.genesis-report .number{text-align:right}"
    ".genesis-report .failed{color:#c2261c;font-weight:600}@media(prefers-color-scheme:dark){.genesis-report "
    ".failed{color:#ff7a6e}}</style>"
)


class Printed:
    """A report: subclasses say its text, and its table if it is one; it prints itself, and notebooks show it."""

    __slots__ = ()

    def _text(self) -> str:
        raise NotImplementedError

    def _table(self) -> Table | None:
        return None

    def __str__(self) -> str:
        return for_stream(visible(self._text()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        table = self._table()
        return (
            page(table)
            if table is not None
            else f'<div class="genesis-report"><pre>{_escaped(visible(self._text()))}</pre></div>'
        )


def _escaped(text: str) -> str:
    from html import escape  # its table of entities is for pages only

    return escape(text)


def _shown(text: str) -> str:
    return _escaped(name_of(text))


def page(table: Table) -> str:
    """A table as a part of a page, with every value escaped."""
    kinds = [' class="number"' if i in table.right else "" for i in range(len(table.head))]
    head = "".join(f"<th{kind}>{_shown(cell)}</th>" for cell, kind in zip(table.head, kinds, strict=True))
    rows = []
    for row in table.rows:
        marked = ' class="failed"' if "FAILED" in row else ""
        rows.append(
            f"<tr{marked}>"
            + "".join(f"<td{kind}>{_shown(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
            + "</tr>"
        )
    title = f"<p><b>{_shown(table.title)}</b></p>" if table.title else ""
    notes = "".join(f"<p>{_shown(note)}</p>" for note in table.notes)
    return f'<div class="genesis-report">{_STYLE}{title}<table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>{notes}</div>'
