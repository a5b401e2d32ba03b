"""The command line: ``genesis demo`` and ``genesis doctor``.

`demo`      the main job, told in three parts     `doctor`   what is installed and what each part adds
`stages`    the three parts themselves            `terminal` `svg` `report`   how results are shown
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    import genesis

    parser = argparse.ArgumentParser(prog="genesis", description="Genesis, a deep learning framework in pure Python.")
    parser.add_argument("--version", action="version", version=f"genesis {genesis.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser(
        "demo", help="train on real handwritten digits: read them, draw them, invent a gradient (under a minute)"
    )
    demo.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default 0)")
    demo.add_argument("--fast", action="store_true", help="a few seconds with shorter training; its bars are lower")
    demo.add_argument(
        "--out", default="genesis-demo", help="folder for model.safetensors and report.html (default genesis-demo)"
    )
    demo.add_argument("--json", action="store_true", help="print the results as JSON and nothing else")
    demo.add_argument("--show-code", action="store_true", help="print the code of each part before it runs")
    commands.add_parser("doctor", help="versions, processor, BLAS and threads, optional parts")
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command == "doctor":
        from genesis.cli.doctor import doctor

        return doctor()
    from genesis.cli.demo import run

    return run(options)
