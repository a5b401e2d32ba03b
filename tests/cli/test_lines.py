"""What ranks print and leave, as ``genesis run`` reads it: in any pieces, and whatever it is."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading

import pytest

from genesis.cli import launch, notes, rank
from genesis.cli.lines import Lines, Pieces
from genesis.cli.mpiexec import MPICH, OPEN_MPI

NOTE = notes.Note(1, 2.5, "ValueError: h\u00e9re", 'Traceback\n  File "a b", line 1\nValueError: h\u00e9re\n')
WRITTEN = f"{notes.PRINTED}{notes.text_of(NOTE)}"


class Stream:
    """A pipe in which there are so many bytes at each time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size

    def read1(self, most):
        return self._data.read(min(most, self._size))


def marked(kind, *pieces):
    """What the launcher of MPI makes of pieces of ranks: it marks each, and each line in them."""
    begin = {MPICH: "\x1e%d\x1f", OPEN_MPI: "[1,%d]<stderr>: "}[kind]
    out = b""
    for number, piece in pieces:
        for line in (piece if isinstance(piece, bytes) else piece.encode()).splitlines(keepends=True):
            out += (b"" if number is None else (begin % number).encode()) + line
    return out


def copied(kind, data, size=1 << 16, logs=None, to=None):
    lines, to = Lines(kind, logs), to or io.StringIO()
    lines.stream(Stream(data, size), to)
    return to.getvalue().splitlines(), lines


kinds = pytest.mark.parametrize("kind", [MPICH, OPEN_MPI], ids=["MPICH", "Open MPI"])
sizes = pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1 << 16])


@kinds
@sizes
def test_lines_that_come_in_pieces_are_those_of_their_ranks(kind, size):
    data = marked(
        kind, (0, "genesis.base.errors"), (1, WRITTEN[:40]), (0, "."), (0, "DistributedError"), (1, WRITTEN[40:]),
        (0, ": here\n\n"), (1, "\n"), (None, "mpiexec: signal 9\n"), (0, "[r1] x\n"), (1, "no end"), (0, "none [1,"),
    )  # fmt: skip
    shown, lines = copied(kind, data, size)
    assert shown == [
        "[r0] genesis.base.errors.DistributedError: here",
        "[r0] ",
        "[r0] [r1] x",
        "[r0] none [1,",
        "[r1] no end",
    ]
    assert lines.notes == [NOTE] and lines.others == ["mpiexec: signal 9\n"]


@kinds
def test_a_note_is_read_whatever_stands_beside_it(kind):
    data = marked(kind, (1, "\r 10%"), (1, f"{WRITTEN}{WRITTEN} and more\n"), (0, "well\n"), (None, f"{WRITTEN}\n"))
    shown, lines = copied(kind, data)
    assert shown == ["[r1]  10% and more", "[r0] well"] and lines.notes == [NOTE] * 3


@pytest.mark.parametrize(
    "said",
    [
        "genesis note ", "genesis note {", "genesis note 3", "genesis note {}", "genesis note null and void",
        WRITTEN[:-1], WRITTEN.replace("2.5", '"2.5"'), WRITTEN.replace('"rank"', '"rang"'), "genesis note " + "[" * 100_000,
    ],
    ids=range(9),
)  # fmt: skip
def test_what_is_no_note_is_text(said):
    shown, lines = copied(MPICH, marked(MPICH, (1, f"{said}\n")))
    assert shown == [f"[r1] {said}"] and lines.notes == []
    assert copied(MPICH, marked(MPICH, (1, f"{said} {WRITTEN}\n")))[1].notes == [NOTE]


def test_bars_of_progress_are_lines():
    data = marked(MPICH, (0, "\r 10%"), (0, "\r 20%"), (1, "50%\r"), (0, "\r100%\n"), (1, "100%\r\n"))
    shown, lines = copied(MPICH, data)
    assert shown == ["[r0]  10%", "[r1] 50%", "[r0]  20%", "[r0] 100%", "[r1] 100%"] and lines.others == []
    pieces = Pieces(MPICH)
    assert list(pieces.lines(marked(MPICH, (1, "50%\r")))) == [("1", b"50%")]  # at once, not with the next


def test_characters_in_pieces_and_bytes_that_are_none(monkeypatch):
    monkeypatch.setattr("locale.getpreferredencoding", lambda *_: "utf-8")
    data = marked(MPICH, (0, b"\xc3"), (1, b"\xff\n"), (0, b"\xa9\n"))
    assert copied(MPICH, data)[0] == ["[r1] \ufffd", "[r0] \u00e9"]
    narrow = io.TextIOWrapper(io.BytesIO(), "ascii")
    Lines(MPICH, None).stream(Stream(data, 100), narrow)
    assert narrow.buffer.getvalue() == b"[r1] ?\n[r0] ?\n"


def test_a_stream_is_read_though_nothing_can_be_written(tmp_path, capsys):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    (tmp_path / "rank0.log").mkdir()
    source = Stream(marked(MPICH, (0, "a\nb\n"), (1, f"{WRITTEN}\n")), 100)
    (lines := Lines(MPICH, str(tmp_path))).stream(source, Full())
    assert lines.notes == [NOTE] and source.read1(1) == b""
    assert capsys.readouterr().err.count("genesis run: no more is written to the logs: ") == 1


def test_a_note_is_printed_in_one_piece_and_not_where_the_program_prints():
    program = f"""
import io, sys
from genesis.cli import notes
sys.stderr = io.StringIO()
notes.print_note(notes.Note{tuple(NOTE)!r})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, f"{WRITTEN}\n")


def test_a_note_is_left_though_the_error_cannot_be_shown(monkeypatch):
    def shown(*_):
        raise BrokenPipeError

    left = []
    monkeypatch.setattr(sys, "excepthook", shown)
    rank._note_failures(left.append, 3)
    with pytest.raises(BrokenPipeError):
        sys.excepthook(ValueError, ValueError("here"), None)
    assert left[0][::2] == (3, "ValueError: here")


def test_the_last_screen_goes_by_what_can_be_read(tmp_path):
    for name, text in [
        ("0.json", notes.text_of(NOTE)[:50]),
        ("1.json", notes.text_of(NOTE)),
        ("2.json", ""),
        ("0.pid", ""),
    ]:
        (tmp_path / name).write_text(text)
    (tmp_path / "0.doing").write_bytes(b"\xff.py:3")
    (tmp_path / "3.doing").mkdir()
    screen = launch._screen(str(tmp_path), [], 1)
    assert screen.startswith("genesis run: rank 1 failed first\nTraceback\n") and screen.endswith("\ufffd.py:3")
    screen = launch._screen(str(tmp_path), ["exited on signal 50, PID 7\n"], 178, (), ["0"])  # that has no name
    assert re.match("genesis run: rank 0 was killed by signal 50, last seen at", screen)


def test_files_of_a_rank_do_not_meet(tmp_path):
    """A thread says what the rank does, and meanwhile its program ends."""
    over = threading.Event()

    def beside():
        while not over.is_set():
            notes.leave(tmp_path / "0.doing", "train.py:\udcff" + "x" * 10_000)

    (thread := threading.Thread(target=beside)).start()
    try:
        for number in range(300):
            notes.leave(tmp_path / f"0.{notes.ENDED}", str(number))
            assert notes.left(str(tmp_path), notes.ENDED) == {"0": str(number)}
            assert set(map(len, notes.left(str(tmp_path), "doing").values())) <= {10_015}
    finally:
        over.set()
        thread.join()
    assert sorted(os.listdir(tmp_path)) == ["0.doing", "0.ended"]
    notes.leave(tmp_path / "nowhere" / "0.pid", "7")
    assert notes.left(str(tmp_path / "nowhere"), "pid") == {}
