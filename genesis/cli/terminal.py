"""Showing things in a terminal: drawings, bars, headings; plain lines where there is none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from genesis.base.text import for_stream


class Terminal:
    """What the output can show: a live terminal or not, Unicode or ASCII, colour or not; ``quiet`` shows nothing."""

    def __init__(self, quiet: bool = False, stream: Any = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.quiet = quiet
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.unicode = "utf" in (getattr(self.stream, "encoding", None) or "").lower()
        self.colour = self.live and "NO_COLOR" not in os.environ
        self.width = min(shutil.get_terminal_size((80, 24)).columns, 100)

    def line(self, text: str = "") -> None:
        if not self.quiet:
            self.stream.write(for_stream(text, self.stream) + "\n")
            self.stream.flush()

    def _style(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def heading(self, number: int, title: str, lead: str) -> None:
        """A part's title and what it is about."""
        rule = ("─" if self.unicode else "-") * max(4, self.width - len(title) - 6)
        self.line()
        self.line(self._style("1;36", f"{number}  {title} ") + self._style("2", rule))
        self.line("   " + lead)

    def result(self, ok: bool, text: str) -> None:
        """What was reached, and whether it is enough."""
        mark = ("✓" if ok else "✗") if self.unicode else ("ok  " if ok else "FAIL")
        self.line("   " + self._style("1;32" if ok else "1;31", mark) + " " + text)

    def code(self, source: str) -> None:
        """Source code, set off from the text."""
        bar = "│" if self.unicode else "|"
        for row in source.rstrip().splitlines():
            self.line("   " + self._style("2", bar) + " " + self._style("33", row))

    def progress(self, items: Iterable[Any], total: int, label: str, note: Any = None) -> Iterator[Any]:
        """Go through items with a bar; without a terminal, with a line at each quarter. ``note()`` is shown beside it."""
        if self.quiet:
            yield from items
        elif self.live:
            from tqdm import tqdm

            with tqdm(
                items,
                total=total,
                desc="   " + label,
                ascii=not self.unicode,
                ncols=self.width,
                leave=False,
                file=self.stream,
            ) as bar:
                for i, item in enumerate(bar):
                    yield item
                    if note is not None and i % 10 == 0:
                        bar.set_postfix_str(note(), refresh=False)
        else:
            marks = {max(1, round(total * q / 4)) for q in range(1, 5)}
            for i, item in enumerate(items, 1):
                yield item
                if i in marks:
                    self.line(f"   {label}: {i} of {total}" + (f", {note()}" if note is not None else ""))

    def images(self, images: np.ndarray[Any, Any], columns: int | None = None) -> None:
        """Small greyscale pictures in rows, two pixels to a character cell."""
        if self.quiet:
            return
        n, height, width = images.shape
        per_row = columns or max(1, (self.width - 3) // (width * (1 if self.unicode else 2) + 2))
        for start in range(0, n, per_row):
            row = images[start : start + per_row]
            for y in range(0, height, 2 if self.unicode else 1):
                self.line("   " + "  ".join(self._strip(image, y) for image in row))
            self.line()

    def _strip(self, image: np.ndarray[Any, Any], y: int) -> str:
        if not self.unicode:
            return "".join("##" if v > 0.5 else ".." if v > 0.15 else "  " for v in image[y])
        if self.colour:
            cells = [f"\033[38;5;{_grey(a)};48;5;{_grey(b)}m▀" for a, b in zip(image[y], image[y + 1], strict=True)]
            return "".join(cells) + "\033[0m"
        blocks = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
        return "".join(blocks[bool(a > 0.4), bool(b > 0.4)] for a, b in zip(image[y], image[y + 1], strict=True))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Columns, aligned."""
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            self.line("   " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


def _grey(value: float) -> int:
    """One of the 24 greys of the 256-colour palette."""
    return 232 + round(float(np.clip(value, 0, 1)) * 23)
