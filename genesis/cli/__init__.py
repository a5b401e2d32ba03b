"""The command line: ``genesis demo``, ``doctor``, ``docs``, ``cache``, and ``run`` and ``check`` (of `genesis.pytorch`).

`demo`      the main job, told in four parts      `doctor`   what is installed and what each part adds
`stages`    three of the parts, `breaking` the fourth   `terminal` `svg` `report`   how results are shown
`docs`      the pages in a browser        `jobs` `launch` `mpiexec` `rank`   `run` in several ranks
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    import genesis

    parser = argparse.ArgumentParser(prog="genesis", description="Genesis, a deep learning framework in pure Python.")
    parser.add_argument("--version", action="version", version=f"genesis {genesis.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser(
        "demo",
        help="train on real handwritten digits: read them, draw them, invent a gradient, survive kill -9 (under a minute)",
    )
    demo.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default 0)")
    demo.add_argument("--fast", action="store_true", help="a few seconds with shorter training; its bars are lower")
    demo.add_argument(
        "--out", default="genesis-demo", help="folder for model.safetensors and report.html (default genesis-demo)"
    )
    demo.add_argument("--json", action="store_true", help="print the results as JSON and nothing else")
    demo.add_argument("--show-code", action="store_true", help="print the code of each part before it runs")
    commands.add_parser("doctor", help="versions, processor, BLAS and threads, optional parts")
    cache = commands.add_parser("cache", help="machine code that is kept on disk, so that it is not compiled again")
    cache.add_argument("--clear", action="store_true", help="remove it")
    pages = commands.add_parser("docs", help="the guide and the reference in a browser; rendered where mkdocs is")
    pages.add_argument("--out", default="genesis-docs", help="folder for the rendered pages (default genesis-docs)")
    pages.add_argument("--no-open", action="store_true", help="say where they are, open nothing")
    script = commands.add_parser(
        "run", help="run a script, also in several ranks; with --torch, `import torch` gives Genesis"
    )
    script.add_argument(
        "-n", "--ranks", type=int, default=1, metavar="N", help="in so many processes (genesis.distributed)"
    )
    script.add_argument("--hosts", metavar="A,B", help="the machines that mpiexec starts them on (default this one)")
    script.add_argument("--max-restarts", type=int, default=0, metavar="K", help="start again after a failure")
    script.add_argument("--logs", metavar="FOLDER", help="keep what each rank prints in FOLDER/rank0.log and so on")
    script.add_argument("--torch", action="store_true", help="programs written for PyTorch run as they are")
    script.add_argument("script", help="a Python file, or a folder with a __main__.py")
    script.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv")
    check = commands.add_parser(
        "check", help="the names of PyTorch that programs use, and which are absent; runs nothing"
    )
    check.add_argument("paths", nargs="+", help="files or folders")
    check.add_argument("--all", action="store_true", help="list the names that work, too")
    check.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command == "doctor":
        from genesis.cli.doctor import doctor

        return doctor()
    if options.command == "cache":
        return _cache(options)
    if options.command == "docs":
        from genesis.cli.docs import docs

        return docs(options.out, not options.no_open)
    if options.command == "run":
        return _run(options)
    if options.command == "check":
        return _check(options)
    from genesis.cli.demo import run

    return run(options)


def _cache(options: argparse.Namespace) -> int:
    from genesis.kernels.llvm import objects

    where = objects.folder()
    if where is None:
        print("nothing is kept: GENESIS_CACHE_DIR is empty, or there is no home folder")
    elif options.clear:
        print(f"{objects.clear()} files removed from {where}")
    else:
        kept = [path.stat().st_size for path in objects.files()]
        print(f"{len(kept)} files, {sum(kept) / 1024:.0f} KiB, in {where}; genesis cache --clear removes them")
    return 0


def _run(options: argparse.Namespace) -> int:
    """A script: in this process, or in those that a launcher of MPI starts; one that shall be started again is not this."""
    torch = options.torch or "--torch" in options.arguments[:1]
    arguments = [a for i, a in enumerate(options.arguments) if i or a != "--torch"]
    if options.ranks == 1 and options.hosts is None is options.logs and not options.max_restarts:
        from genesis.pytorch.run import run

        if any(["RANK" in name or name == "SLURM_PROCID" for name in os.environ]):  # of mpiexec, srun and others
            from genesis.cli.rank import announce

            announce()
        return run(options.script, arguments, torch)
    from genesis.cli.jobs import Job
    from genesis.cli.launch import error_of
    from genesis.cli.lines import forget_unwritten

    numbers = (options.hosts, options.logs, options.max_restarts)
    status = error_of(Job(options.script, arguments, options.ranks, torch, *numbers))
    forget_unwritten()
    return status


def _check(options: argparse.Namespace) -> int:
    from genesis.pytorch.check import report

    try:
        text, status = report(options.paths, options.json, options.all)
    except (OSError, SyntaxError) as error:
        print(f"genesis check: {error}", file=sys.stderr)
        return 2
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader closed early, as `head` does; the interpreter flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status
