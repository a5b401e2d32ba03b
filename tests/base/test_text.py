"""Reports in terminals and notebooks of every kind: nothing raw, nothing that an ASCII output cannot show."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import genesis
from genesis import Function, nn
from genesis.base.errors import message
from genesis.base.text import Printed, Table, for_stream, name_of, page, visible
from genesis.debug import saved_memory

ODD = 'a\x1b[31m\x07<b>&"\u202e\x9b\n'


def reports():
    """One of every kind, with a name in it that is not to be trusted where there is one."""
    model = nn.Sequential()
    model.add_module(ODD.replace(".", ""), nn.Linear(3, 2))
    x = genesis.ones(2, 3, requires_grad=True)
    run = lambda k: (model(x) * k).exp().sum()  # noqa: E731
    first, second = (genesis.autograd.record(run(k)) for k in (1.0, 1.5))
    with genesis.autograd.profile() as profile:
        run(1.0).backward()
    odd = type(
        ODD,
        (Function,),
        {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, g: g * 2)},
    )
    return {
        "summary": nn.summary(model, input_size=(2, 3)),
        "verify": genesis.autograd.verify(odd, genesis.ones(2, dtype=genesis.float64, requires_grad=True)),
        "profile": profile,
        "record": first,
        "step": first[0],
        "diff": genesis.autograd.diff(first, second),
        "saved": saved_memory(run(1.0)),
        "explain": genesis.autograd.explain(x, run(1.0)),
        "trace": genesis.jit.trace(run, 1.0),
        "draw": genesis.draw(odd.apply(x).sum() + run(1.0), params={ODD: x, **dict(model.named_parameters())}),
        "traced": genesis.jit.trace(run, 1.0).draw(),
    }


@pytest.fixture(scope="module")
def all_reports():
    return reports()


def test_every_report_is_shown_by_notebooks_with_what_it_prints(all_reports):
    for name, report in all_reports.items():
        markup = report._repr_html_()
        assert visible(markup) == markup and "<b>&" not in markup, name
        root = ET.fromstring(markup)  # well formed: everything is escaped
        shown = "".join(root.itertext())
        if name not in ("draw", "traced"):
            words = [w for w in str(report).split() if w[0].isalnum() and w not in ("try:", "norm")]
            assert all(w.rstrip(":") in shown for w in words), (name, [w for w in words if w.rstrip(":") not in shown])


def test_nothing_raw_is_printed(all_reports):
    for name, report in all_reports.items():
        assert visible(str(report)) == str(report), name
    assert "a\\x1b[31m" in str(all_reports["summary"]) and "a\\x1b[31m" in str(all_reports["draw"])
    assert visible(all_reports["draw"].dot) == all_reports["draw"].dot
    model = nn.Sequential()
    model.add_module("red\x1b[31m", nn.Linear(1, 1))
    assert "(red\\x1b[31m): Linear" in repr(model)
    with pytest.raises(RuntimeError, match=r"odd\\x1b\[2J"):
        model.load_state_dict({"odd\x1b[2J": genesis.ones(1)})
    assert message("f", "a\x1b\x00b\nc") == "f: a\\x1b\\x00b\nc"


def test_every_report_prints_where_the_output_is_ascii():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_text as t\n"
        "for report in t.reports().values(): print(report); repr(report); report._repr_html_()\n"
        "print(t.nn.summary(t.nn.Sequential(t.nn.Linear(1, 1)), input_size=(1, 1)))"
    )
    for more in (
        {"PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ):
        environment = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "PYTHONIOENCODING")} | more
        done = subprocess.run(
            [sys.executable, "-c", program, os.path.dirname(__file__)],
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii() and b"`- 0" in done.stdout and b"\x1b" not in done.stdout
        assert b"\\u2500" not in done.stdout  # lines are drawn with ASCII, not as escapes


def test_warnings_with_names_are_escaped():
    from genesis.core.graph.site import warn_user

    with pytest.warns(UserWarning, match=r"^odd\\x1b name$"):
        warn_user("odd\x1b name")


def test_text_for_a_stream():
    class Ascii:
        encoding = "ascii"

    assert for_stream("└─ ✓ a … → é", Ascii()) == "`- ok a ... -> \\xe9"
    assert for_stream("└─ é", None) == "└─ é"
    assert name_of("two\nlines\tand\x7f") == "two\\nlines\\tand\\x7f"
    assert visible("\ud800 \u2028 é 日本") == "\\ud800 \\u2028 é 日本"


def test_tables_escape_every_cell():
    bad = "<script>\x1b"
    root = ET.fromstring(page(Table(bad, (bad,), [(bad,)], (bad,), (0,))))
    assert "".join(root.itertext()).count("<script>\\x1b") == 4 and not list(root.iter("script"))

    class Plain(Printed):
        def _text(self):
            return bad

    assert (
        Plain()._repr_html_() == '<div class="genesis-report"><pre>&lt;script&gt;\\x1b</pre></div>'
        and repr(Plain()) == "<script>\\x1b"
    )
