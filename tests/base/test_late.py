"""Modules that are imported when something of them is used."""

import sys
import threading
import types

import pytest

from genesis.base.late import Late


def module(tmp_path, monkeypatch, name, text):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Late(name)


def test_every_thread_waits_for_the_whole_module(tmp_path, monkeypatch):
    late = module(tmp_path, monkeypatch, "late_slow", "first = 1\nimport time\ntime.sleep(0.3)\nlast = 2\n")
    found = []
    threads = [threading.Thread(target=lambda: found.append((late.first, late.last))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(1, 2)] * 3


def test_a_module_that_uses_itself_is_not_kept_before_it_is_whole(tmp_path, monkeypatch):
    text = "from late_holder import late\nfirst = 1\nseen, kept = late.first, late._loaded\nlast = 2\n"
    late = module(tmp_path, monkeypatch, "late_circle", text)
    monkeypatch.setitem(sys.modules, "late_holder", types.SimpleNamespace(late=late))
    assert (late.last, late.seen, late.kept) == (2, 1, None)
    assert late._loaded is sys.modules["late_circle"]


def test_a_module_that_cannot_be_imported_is_asked_for_again(tmp_path, monkeypatch):
    late = module(tmp_path, monkeypatch, "late_wrong", "raise ValueError('not yet')\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            late.last  # noqa: B018
    (tmp_path / "late_wrong.py").write_text("last = 'it is there now'\n")
    assert late.last == "it is there now"
