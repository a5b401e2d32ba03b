"""``python -m genesis.ops``: the matrix of ops and what each has."""

from __future__ import annotations

from genesis.core.op import matrix


def main() -> None:
    rows = matrix()
    columns = list(rows[0])
    cells = [[("yes" if v else "-") if isinstance(v, bool) else str(v) for v in row.values()] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    for line in [columns, ["-" * w for w in widths], *cells]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(f"\n{len(rows)} ops")


if __name__ == "__main__":
    main()
