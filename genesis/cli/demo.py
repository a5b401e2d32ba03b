"""``genesis demo``: four parts on real handwritten digits, a saved model and a report. It is also a self-test."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import genesis
from genesis import Tensor
from genesis.base.text import for_stream, name_of
from genesis.cli import breaking, stages, svg, two_ranks
from genesis.cli.doctor import DISTRIBUTION, threads
from genesis.cli.report import Card, Section, write_report
from genesis.cli.stages import Outcome
from genesis.cli.terminal import Terminal
from genesis.datasets import digits
from genesis.debug import Drawing, draw
from genesis.jit.lowering.explain import Explanation
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

PARTS: list[tuple[str, str, str, Callable[[Terminal, bool], Outcome], Any]] = [
    (
        "reading",
        "Reading",
        "A small network learns to read 1,442 real handwritten digits; 355 are held out to test it.",
        stages.reading,
        stages.train_reader,
    ),
    (
        "writing",
        "Writing",
        "A flow-matching model learns to draw digits from noise.",
        stages.writing,
        stages.train_painter,
    ),
    (
        "own_gradient",
        "Your own gradient",
        "Rounding has no derivative. A function of your own gives it one:",
        stages.own_gradient,
        stages.Round,
    ),
    (
        "breaking",
        "Breaking",
        "A training is killed in the middle of a step, and started again. Nothing is lost.",
        breaking.breaking,
        breaking.train_breakable,
    ),
]


def run(options: Namespace) -> int:
    """Run the demo; 0 if every bar was met, 1 if not, 2 if the folder cannot be written to, 130 after Ctrl-C."""
    terminal = Terminal(quiet=options.json)
    folder = Path(options.out)
    problem = unwritable(folder)
    if problem:
        print(
            for_stream(
                f"genesis demo: cannot write to {name_of(folder)}: {problem}\n  try: genesis demo --out "
                "some/other/folder"
            )
        )
        return 2
    genesis.manual_seed(options.seed)
    started = time.perf_counter()
    terminal.line(
        "Steps of training are compiled."
        if loops.available()
        else f'Steps of training run op by op: pip install "{DISTRIBUTION}[jit]" compiles them.'
    )
    outcomes: dict[str, Outcome] = {}
    seconds: dict[str, float] = {}
    saved: list[str] = []
    try:
        for number, (name, title, lead, stage, code) in enumerate(PARTS, 1):
            terminal.heading(number, title, lead)
            if options.show_code and name != "own_gradient":
                terminal.code(stages.source_of(code))
            begun = time.perf_counter()
            outcomes[name] = stage(terminal, options.fast)
            seconds[name] = time.perf_counter() - begun
            for ok, text in outcomes[name].bars:
                terminal.result(ok, text)
            if "model" in outcomes[name].material:
                saved = save_models(folder, outcomes)
    except KeyboardInterrupt:
        terminal.line(
            f"\n   Stopped. Done: {', '.join(outcomes) or 'nothing yet'}. Saved: "
            f"{name_of(', '.join(saved)) or 'nothing'}."
        )
        return 130
    total = time.perf_counter() - started
    report = folder / "report.html"
    make_report(report, outcomes, seconds, total, options)
    met = all(ok for outcome in outcomes.values() for ok, _ in outcome.bars)
    finish(terminal, options, outcomes, seconds, total, met, [*saved, str(report)])
    return 0 if met else 1


def unwritable(folder: Path) -> str:
    """Why a folder cannot be written to; found out before anything is trained."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)


def save_models(folder: Path, outcomes: dict[str, Outcome]) -> list[str]:
    """All models so far, in one file."""
    state = {
        f"{name}.{key}": value
        for name, o in outcomes.items()
        if "model" in o.material
        for key, value in o.material["model"].state_dict().items()
    }
    path = folder / "model.safetensors"
    genesis.save(state, path, {"made by": f"genesis {genesis.__version__} demo"})
    return [str(path)]


def finish(
    terminal: Terminal,
    options: Namespace,
    outcomes: dict[str, Outcome],
    seconds: dict[str, float],
    total: float,
    met: bool,
    files: list[str],
) -> None:
    """The last lines, or the JSON."""
    if options.json:
        numbers = {
            name: o.numbers | {"seconds": round(seconds[name], 2), "met": all(ok for ok, _ in o.bars)}
            for name, o in outcomes.items()
        }
        print(
            json.dumps(
                {
                    "seed": options.seed,
                    "fast": options.fast,
                    "met": met,
                    "seconds": round(total, 2),
                    **numbers,
                    "files": files,
                },
                indent=2,
            )
        )
        return
    terminal.line()
    terminal.result(met, f"{'all bars met' if met else 'not every bar was met'} in {total:.0f} seconds")
    terminal.line(
        "   What is small about it: 8 by 8 pixels, 1,797 digits, networks of under 200,000 numbers. Figures are of "
        "held-out digits."
    )
    for file in files:
        terminal.line(f"   {name_of(file)}")


# ---- the report


def one_step() -> Drawing:
    """The graph that one training step of the reader records, with everything in its module's frame."""
    images, labels = digits("test")
    model = stages.reader().eval()

    def step(x: Tensor, y: Tensor) -> Tensor:
        prediction = model(x)
        return F.cross_entropy(prediction, y)

    return draw(step, images[:4], labels[:4], params=model, expand=True)


def make_report(
    path: Path, outcomes: dict[str, Outcome], seconds: dict[str, float], total: float, options: Namespace
) -> None:
    """Write report.html."""
    r, w, g, b = (outcomes[name] for name, *_ in PARTS)
    cards = [
        Card(f"{r.numbers['accuracy']:.1%}", "of held-out digits read right", r.bars[0][0]),
        Card(f"{w.numbers['recognised']:.1%}", "of 500 drawings recognised", w.bars[0][0]),
        Card(
            "passes" if g.numbers["gradient_passes"] else "fails",
            "the check of the new gradient",
            bool(g.numbers["gradient_passes"]),
        ),
        Card(
            "same bits" if b.numbers["same_bits"] else "lost",
            "after kill -9 and going on",
            all(ok for ok, _ in b.bars),
        ),
        Card(f"{total:.0f} s", "for everything, on this machine's processor"),
    ]
    sections = [
        _reading_section(r),
        _writing_section(w),
        _gradient_section(g),
        _breaking_section(b),
        _graph_section(),
        *([_compiled_section(r.material["compiled"])] if "compiled" in r.material else []),
        *([_ranks_section()] if two_ranks.installed() else []),
        _time_section(seconds, total),
    ]
    note = "fast mode, with lower bars" if options.fast else "full mode"
    lead = f"genesis {genesis.__version__} on 1,797 real handwritten digits, seed {options.seed}, {note}. All figures are of digits that were held out."
    footer = (
        "Digits: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning "
        "Repository (1998), DOI 10.24432/C50P49, "
        "CC BY 4.0. What is small about it: 8 by 8 pixels and networks of under 200,000 numbers."
    )
    write_report(path, "What Genesis learned", lead, cards, sections, footer)


def _reading_section(r: Outcome) -> Section:
    epochs = list(range(1, len(r.material["losses"]) + 1))
    loss = svg.line_chart(
        [svg.Series("training loss", epochs, r.material["losses"])], "Training loss by epoch", "epoch", "loss"
    )
    held = svg.line_chart(
        [svg.Series("held-out accuracy", epochs, r.material["held"])],
        "Held-out accuracy by epoch",
        "epoch",
        "accuracy",
        0.97,
    )
    figures = [
        (loss, "Loss on the training digits."),
        (held, "Accuracy on the held-out fifth; the dashed line is the bar of 97%."),
    ]
    figures.append(
        (
            svg.confusion_matrix(r.material["counts"], [str(i) for i in range(10)], "Confusion matrix"),
            "What was written, and what was read.",
        )
    )
    if len(r.material["wrong"]):
        figures.append(
            (
                svg.image_grid(r.material["wrong"], "Digits read wrong", r.material["wrong_captions"]),
                "All the digits it got wrong.",
            )
        )
    return Section("Reading", r.bars[0][1][0].upper() + r.bars[0][1][1:] + ".", figures)


def _writing_section(w: Outcome) -> Section:
    chart = svg.line_chart(
        [svg.Series("flow-matching loss", w.material["steps"], w.material["losses"])],
        "Flow-matching loss",
        "step",
        "loss",
    )
    grid = svg.image_grid(w.material["drawings"], "Drawn digits", columns=10)
    lead = ". ".join(text[0].upper() + text[1:] for _, text in w.bars) + "."
    return Section(
        "Writing",
        lead,
        [(grid, "Drawn from noise, 0 to 9 in each row."), (chart, "Mean squared error of the velocity.")],
    )


def _gradient_section(g: Outcome) -> Section:
    epochs = list(range(1, len(g.material["losses"]) + 1))
    chart = svg.line_chart(
        [svg.Series("training loss", epochs, g.material["losses"])], "Training through Round", "epoch", "loss"
    )
    lead = ". ".join(text[0].upper() + text[1:] for _, text in g.bars) + "."
    return Section(
        "Your own gradient",
        lead,
        [(chart, "A network of rounded signals learns, because Round passes the gradient on.")],
        g.material["code"],
    )


def _breaking_section(b: Outcome) -> Section:
    runs = [
        ("without kill -9", b.material["whole"]),
        ("killed", b.material["killed"]),
        ("went on", b.material["resumed"]),
    ]
    chart = svg.line_chart(
        [svg.Series(name, each.steps, each.losses) for name, each in runs],
        "Training loss by step, with and without kill -9",
        "step",
        "loss",
    )
    rows = [
        ("process", "began after step", "ended after step", "sha256 of weights and optimizer"),
        *[
            (
                name,
                str(each.began),
                str(each.steps[-1] if each.steps else each.began),
                each.sha256 or "killed by SIGKILL",
            )
            for name, each in runs
        ],
    ]
    lead = ". ".join(text[0].upper() + text[1:] for _, text in b.bars) + "."
    caption = "The killed training and the one that went on lie on the one that nobody killed, value by value."
    return Section("Breaking", lead, [(chart, caption)], b.material["code"], rows)


def _compiled_section(told: Explanation) -> Section:
    captions = {
        "timeline": "The phases of one step, each as wide as it takes long.",
        "memory": "The memory of the step: phases go to the right, and a value is a rectangle as long as it is needed.",
        "roofline": "Operations for each byte to the right, operations in a second upwards: what reaches the roof is as "
        "fast as the fastest phases.",
    }
    figures = [(told.pictures[name], caption) for name, caption in captions.items()]
    lead = "What genesis.compile made of one training step of the reader, forward, backward and AdamW."
    return Section("One step, compiled", lead, figures, str(told))


def _graph_section() -> Section:
    picture = one_step()
    return Section(
        "One step, recorded",
        "What one forward pass of the reader records for backward, as genesis.draw shows it.",
        [
            (
                picture.svg,
                "Values flow downwards, frames are modules. Each box has its shape, what it saves for backward, and "
                "the line that recorded it.",
            )
        ],
    )


def _ranks_section() -> Section:
    picture, told = two_ranks.step_of_two_ranks()
    title, lead = "One step of two processes", "Two processes train one network, each on digits of its own."
    if not picture:
        return Section(title, f"{lead} This could not be drawn here: {told}")
    caption = (
        "For each rank, above what it computes and where it waits for the other, below the gradients on their way. "
        "Where those lie below backward they cost nothing."
    )
    return Section(title, lead, [(picture, caption)], stages.source_of(two_ranks.train_step))


def _time_section(seconds: dict[str, float], total: float) -> Section:
    rows = [
        ("part", "seconds"),
        *((name.replace("_", " "), f"{s:.1f}") for name, s in seconds.items()),
        ("all", f"{total:.1f}"),
    ]
    return Section("Time", f"Training and testing together, in this run, on {machine()}.", table=rows)


def machine() -> str:
    """What the times belong to: ``x86_64, 2 cores, BLAS threads as the BLAS chooses; Genesis 0.1.0, Python 3.12.1,
    NumPy 2.3.0, Linux``.
    """
    versions = f"Genesis {genesis.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, {platform.system()}"
    return f"{platform.machine()}, {os.cpu_count()} cores, BLAS threads {threads()}; {versions}"
