"""``python -m genesis.ops``: the matrix of ops and what each has."""

from __future__ import annotations

import os
import sys

from genesis.ops.matrix import matrix


def main() -> None:
    """Print the matrix; a reader that closes early, such as `head`, ends it in silence."""
    try:
        _print()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        sys.exit(141)  # what a process that SIGPIPE ended returns


def _print() -> None:
    rows = matrix()
    columns = list(rows[0])
    cells = [[("yes" if v else "-") if isinstance(v, bool) else str(v) for v in row.values()] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    for line in [columns, ["-" * w for w in widths], *cells]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(f"\n{len(rows)} ops")


if __name__ == "__main__":
    main()
