"""The demo as a user meets it: output, files, exit codes, and the report in a real browser where there is one."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import genesis
from genesis.cli import breaking, demo, main, two_ranks
from genesis.kernels.llvm import loops

BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")) if p), None)


def genesis_command(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "genesis", *args], capture_output=True, text=True, check=False, **kwargs
    )


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """One fast run, seen as JSON."""
    folder = tmp_path_factory.mktemp("demo")
    done = genesis_command("demo", "--fast", "--json", "--out", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, json.loads(done.stdout)


def test_numbers_and_files(fast):
    folder, found = fast
    assert found["met"] and found["fast"] and found["reading"]["held_out"] == 355 and found["writing"]["copies"] == 0
    assert found["breaking"]["same_bits"] and re.fullmatch(r"[0-9a-f]{64}", found["breaking"]["sha256"])
    assert sorted(p.name for p in folder.iterdir()) == ["model.safetensors", "report.html"]
    state = genesis.load(folder / "model.safetensors")
    assert state["reading.1.weight"].shape == (256, 64) and state["writing.leave.bias"].shape == (64,)


@pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
def test_the_report_shows_the_compiled_step(fast):
    """Its phases with their times, and as pictures: when they run, the memory, and how near each is to the fastest."""
    page = (fast[0] / "report.html").read_text(encoding="utf-8")
    section = page.partition("<h2>One step, compiled</h2>")[2].partition("</section>")[0]
    assert section.count("<svg") == section.count("<figcaption>") == 3
    assert "phases" in section and "adam" in section and ">time, " in section and "phase 0: " in section


@pytest.mark.skipif(not two_ranks.installed(), reason="there is no MPI")
def test_the_report_shows_a_step_of_two_processes(fast):
    """What each computes and what is on its way, by two lanes for each; both send gradients and go backward."""
    page = (fast[0] / "report.html").read_text(encoding="utf-8")
    section = page.partition("<h2>One step of two processes</h2>")[2].partition("</section>")[0]
    assert "<title>One step of 2 ranks</title>" in section and "def train_step" in section
    for kind in ("forward", "backward", "transfers"):
        heights = set(re.findall(rf' y="([\d.]+)"[^>]*><title>{kind}, [\d.]+ ms</title>', section))
        assert len(heights) == 2, (kind, section[-2000:])


@pytest.mark.parametrize(
    ("program", "told", "seconds"),
    [
        ("raise ValueError('no')", "ValueError: no", 60),
        ("pass", "it ended with 0", 60),
        ("import time; time.sleep(60)", "more than 1", 1),
    ],
)
def test_a_step_that_could_not_be_drawn(program, told, seconds, tmp_path, monkeypatch):
    if not two_ranks.installed():
        pytest.skip("there is no MPI")
    (tmp_path / "program.py").write_text(program)
    monkeypatch.setattr(two_ranks, "__file__", str(tmp_path / "program.py"))
    monkeypatch.setattr(two_ranks, "SECONDS", seconds)
    section = demo._ranks_section()
    assert told in section.lead and "could not be drawn" in section.lead and not section.figures


WATCHED = """
import sys
sys.addaudithook(lambda event, _: event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "webbrowser.")) and print(event, file=sys.stderr))
from genesis.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_same_seed_gives_the_same_numbers_without_a_socket(fast, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "demo", "--fast", "--json", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    trainings = 3 + two_ranks.installed()  # two that are broken, one that is not; one by two processes
    assert done.stderr.split() == ["subprocess.Popen"] * trainings
    again = json.loads(done.stdout)
    for part in ("reading", "writing", "own_gradient", "breaking"):
        a, b = fast[1][part], again[part]
        assert {k: v for k, v in a.items() if k != "seconds"} == {k: v for k, v in b.items() if k != "seconds"}


def test_plain_output_without_a_terminal_or_unicode(tmp_path):
    done = genesis_command(
        "demo", "--fast", "--show-code", "--out", str(tmp_path), env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "##" in done.stdout and "\033" not in done.stdout
    assert (
        "class Round(genesis.Function)" in done.stdout and "def train_reader" in done.stdout and "ok   " in done.stdout
    )


def test_an_unwritable_folder_is_an_error_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    done = genesis_command("demo", "--out", str(tmp_path / "file" / "x"))
    assert done.returncode == 2 and "cannot write to" in done.stdout and "try: genesis demo --out" in done.stdout
    assert "Reading" not in done.stdout


def test_interrupt_says_what_was_saved(tmp_path):
    command = [sys.executable, "-u", "-m", "genesis", "demo", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "Writing" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stdout.read()
    assert process.returncode == 130
    assert re.search(r"Stopped. Done: reading. Saved: .*model.safetensors", rest), rest
    assert (tmp_path / "model.safetensors").exists()


def test_a_missed_bar_makes_the_exit_code_nonzero(tmp_path, monkeypatch, capsys):
    def failing(terminal, fast):
        outcome = demo.Outcome(
            bars=[(False, "too low")], numbers={"accuracy": 0.1}, material={"model": genesis.nn.Linear(1, 1)}
        )
        return outcome

    monkeypatch.setattr(demo, "PARTS", [("reading", "Reading", "", failing, failing)])
    monkeypatch.setattr(demo, "make_report", lambda *args: None)
    assert main(["demo", "--out", str(tmp_path)]) == 1
    assert "FAIL too low" in capsys.readouterr().out.replace("✗", "FAIL")


def test_a_training_that_loses_something_fails(monkeypatch):
    """Bits that differ, and a training that begins anew, are what the bars are there for."""

    class Shown:
        def line(self, text=""):
            pass

    told, runs = breaking._told, []

    def other_bits(process):
        run = told(process)
        runs.append(run._replace(sha256=run.sha256 and run.sha256[::-1]) if len(runs) == 1 else run)
        return runs[-1]

    monkeypatch.setattr(breaking, "_told", other_bits)
    assert [ok for ok, _ in breaking.breaking(Shown(), True).bars] == [True, True, False]
    runs.append(None)
    monkeypatch.setattr(breaking, "_told", lambda process: told(process)._replace(began=0))
    assert [ok for ok, _ in breaking.breaking(Shown(), True).bars] == [True, False, True]


def test_report_is_self_contained(fast):
    page = (fast[0] / "report.html").read_text(encoding="utf-8")
    assert (
        not re.search(r"""(src|href)=["'](?!data:)""", page)
        and "<script" not in page
        and "@import" not in page
        and "url(http" not in page
    )
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) >= 7
    for svg in drawings:
        ET.fromstring(svg)
    for words in (
        "Reading",
        "Writing",
        "Your own gradient",
        "Breaking",
        "killed by SIGKILL",
        "One step, recorded",
        "Time",
        "CC BY 4.0",
        "class Round",
    ):
        assert words in page


def test_the_graph_of_the_report_shows_lines_and_modules(fast):
    page = (fast[0] / "report.html").read_text(encoding="utf-8")
    graph = ET.fromstring(re.search(r'<svg[^>]*class="gd".*?</svg>', page, re.S).group())
    words = [t.text for t in graph.iter("{http://www.w3.org/2000/svg}text")]
    assert {"1 Linear", "4 Linear", "7 Linear", "cross_entropy"} <= set(words) and not any(
        "genesis" in w for w in words
    )
    lines = [w for w in words if re.fullmatch(r"demo\.py:\d+", w)]
    assert len(lines) == 9 and len(set(lines)) == 2  # every operation: the line of the model, the line of the loss


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
def test_report_in_a_browser(fast, tmp_path):
    probe = tmp_path / "probe.html"
    page = (fast[0] / "report.html").read_text(encoding="utf-8")
    check = "<script>window.onload=()=>{document.title='wide:'+(document.documentElement.scrollWidth<=innerWidth)+' svg:'+[...document.querySelectorAll('svg')].every(s=>s.getBoundingClientRect().height>40)}</script>"
    probe.write_text(page.replace("</body>", check + "</body>"), encoding="utf-8")
    for width in (1280, 500):
        done = subprocess.run(
            [
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--window-size={width},900",
                "--virtual-time-budget=3000",
                "--dump-dom",
                f"file://{probe}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert "<title>wide:true svg:true</title>" in done.stdout


def test_doctor_and_help():
    done = genesis_command("doctor")
    assert done.returncode == 0 and "numpy" in done.stdout and "BLAS" in done.stdout and "cores" in done.stdout
    assert f"{genesis.get_num_threads()} for one operation" in done.stdout
    assert genesis_command("--version").stdout.strip() == f"genesis {genesis.__version__}"
    assert "--seed" in genesis_command("demo", "--help").stdout
    alone = genesis_command()
    assert alone.returncode == 0 and "doctor" in alone.stdout and alone.stderr == ""


def test_a_reader_of_the_matrix_may_close_early():
    reading, writing = os.pipe()
    os.close(reading)  # before the first line is written
    with open(writing, "wb") as out:
        done = subprocess.run([sys.executable, "-m", "genesis.ops"], stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b"" and done.returncode == 141


def test_the_times_of_the_report_name_the_machine(fast):
    page = (fast[0] / "report.html").read_text()
    assert (
        f"NumPy {np.__version__}" in page
        and f"Genesis {genesis.__version__}" in page
        and platform.machine() in page
        and "BLAS threads" in page
    )


def test_doctor_warns_of_another_owner_of_the_name(monkeypatch):
    from genesis.cli import doctor

    monkeypatch.setattr(
        doctor.importlib.metadata, "packages_distributions", lambda: {"genesis": ["genesis_dl", "genesis"]}
    )
    repair = "pip uninstall genesis, then pip install --force-reinstall genesis-dl"
    assert doctor.other_owners() == [f"the distribution 'genesis' also owns the import name genesis: {repair}"]


def test_doctor_says_which_command_installs_what(monkeypatch):
    from genesis.cli import doctor

    monkeypatch.setattr(doctor, "_version", lambda name: "")
    assert doctor.optional_row("llvmlite")[1:] == (
        "not installed",
        doctor.OPTIONAL["llvmlite"][0].join(["adds ", ': pip install "genesis-dl[jit]"']),
    )
    monkeypatch.setattr(doctor, "_version", lambda name: "0.44.0")
    version, what = doctor.optional_row("llvmlite")[1:]
    assert version == "0.44.0, too old" and what.startswith("0.45 or newer adds machine code")
    monkeypatch.setattr(doctor, "_version", lambda name: "9.9")
    assert all("pip install" not in text for name in doctor.OPTIONAL for text in doctor.optional_row(name))
