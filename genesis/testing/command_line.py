"""The command line that all fuzzers share: how many programs, and from which seed."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any


def options(
    module: str,
    doc: str | None,
    arguments: Sequence[str] | None,
    many: int,
    what: str = "programs",
    **others: dict[str, Any],
) -> argparse.Namespace:
    """What ``python -m genesis.testing.<module>`` was asked for: ``--programs`` (or ``what``), ``--seed``, and
    ``others`` with what argparse takes for them.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m genesis.testing.{module}", description=(doc or "").partition("\n")[0]
    )
    parser.add_argument(f"--{what}", type=int, default=many, help=f"how many (default: {many})")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; the others follow")
    for name, given in others.items():
        parser.add_argument(f"--{name}", **given)
    return parser.parse_args(arguments)


def tell(counts: Counter[str]) -> None:
    """Print how many programs ended how."""
    for what, count in counts.most_common():
        print(f"{count:8d}  {what}")
