"""Machine code on disk: used again, and only what is whole and the user's own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from genesis.cli import main
from genesis.kernels.llvm import elf, loops, native, objects
from genesis.kernels.llvm.nests import Code

compiled = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    where = tmp_path / "kept"
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(where))
    return where


def _doubled(number):
    """A new function each time: it multiplies by ``number``."""
    code = Code(4)
    with code.loop("0", "%n", "4") as i:
        code.store(code.mul(code.load("%x", i.index), code.constant(number)), "%x", i.index)
    run = native.nest("scale", code.function("scale", ["x"], ["n"]), 1, 1)
    x = np.ones(8, np.float32)
    run(x.ctypes.data, 8)
    return x.tolist()


@compiled
def test_it_is_compiled_once(folder, monkeypatch):
    assert _doubled(3.0) == [3.0] * 8
    (kept,) = objects.files()
    assert kept.parent == folder and kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(native, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert _doubled(3.0) == [3.0] * 8


@compiled
@pytest.mark.parametrize("damage", ["shorter", "changed", "empty", "another"])
def test_damaged_files_are_compiled_again(folder, damage):
    _doubled(5.0)
    (kept,) = objects.files()
    content = kept.read_bytes()
    broken = {
        "shorter": content[:-7],
        "changed": content[:-1] + bytes([content[-1] ^ 1]),
        "empty": b"",
        "another": b"x" * 99,
    }
    kept.write_bytes(broken[damage])
    assert _doubled(5.0) == [5.0] * 8
    assert kept.read_bytes() == content  # and written again


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners of files are POSIX's")
def test_what_others_could_have_written_is_not_used(folder):
    objects.save("a.o", b"code")
    assert objects.load("a.o") == b"code"
    (folder / "a.o").chmod(0o666)
    assert objects.load("a.o") is None
    (folder / "a.o").chmod(0o600)
    folder.chmod(0o777)
    assert objects.load("a.o") is None
    objects.save("b.o", b"code")
    assert not (folder / "b.o").exists()
    folder.chmod(0o700)
    (folder / "c.o").symlink_to(folder / "a.o")
    assert objects.load("c.o") is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for where in ("", str(tmp_path / "file")):
        monkeypatch.setenv("GENESIS_CACHE_DIR", where)
        objects.save("a.o", b"code")
        assert objects.load("a.o") is None and objects.files() == []


def test_the_oldest_go_first(folder, monkeypatch):
    monkeypatch.setattr(objects, "LIMIT", 3 * 132)
    monkeypatch.setattr(objects, "EVERY", 2)
    for i in range(5):
        objects.save(f"{i}.o", bytes(100))
        os.utime(folder / f"{i}.o", (i, i))
    assert [path.name for path in objects.files()] == ["2.o", "3.o", "4.o"]
    monkeypatch.setattr(objects, "EVERY", 3)
    objects.save("5.o", bytes(100))
    assert len(objects.files()) == 4  # it is looked at when there are so many more
    objects.save("6.o", bytes(100))
    objects.save("7.o", bytes(100))
    assert [path.name for path in objects.files()] == ["5.o", "6.o", "7.o"]
    assert not list(folder.glob("*.part"))


def test_threads_that_write_the_same(folder):
    threads = [threading.Thread(target=objects.save, args=("a.o", bytes([i]) * 10_000)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(objects.load("a.o"))) == 1 and len(list(folder.iterdir())) == 1


@compiled
def test_another_process_uses_them(folder):
    _doubled(7.0)
    program = """
from tests.kernels.test_objects import _doubled
from genesis.kernels.llvm import native
native._compiled = None
assert _doubled(7.0) == [7.0] * 8
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command(folder, capsys, monkeypatch):
    objects.save("a.o", bytes(2016))
    assert main(["cache"]) == 0
    assert f"1 files, 2 KiB, in {folder}" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0 and objects.files() == []
    assert "1 files removed" in capsys.readouterr().out
    monkeypatch.setenv("GENESIS_CACHE_DIR", "")
    assert main(["cache"]) == 0 and "nothing is kept" in capsys.readouterr().out


def test_names_depend_on_everything():
    names = {objects.name_of(*parts) for parts in (("a", "b"), ("ab",), ("a", "c"), ("a",), ("b", "a"))}
    assert len(names) == 5


# ---- object files that are brought into memory without LLVM

here = pytest.mark.skipif(
    not (loops.available() and elf.here()), reason="object files of Linux on x86-64, and llvmlite"
)
WAVE = """
@table = private constant [2 x double] [double 3.0, double 5.0]
declare double @sin(double)
define void @wave(ptr %x) {
  %a = load double, ptr %x
  %s = call double @sin(double %a)
  %i = fptosi double %a to i64
  %bit = and i64 %i, 1
  %at = getelementptr double, ptr @table, i64 %bit
  %t = load double, ptr %at
  %c = fmul double %s, 0.12345
  %y = call double @added(double %c, double %t)
  store double %y, ptr %x
  ret void
}
define double @added(double %a, double %b) noinline {
  %c = fadd double %a, %b
  ret double %c
}
"""


def _called(address, value):
    x = np.array([value])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(x.ctypes.data)
    return x[0]


@here
def test_an_object_file_is_put_in_place_without_llvm():
    content = native._compiled(native.binding(), WAVE)
    (at,) = elf.loaded(content, ["wave"])
    for value in (0.5, 1.5, 3.25):
        expected = np.sin(value) * 0.12345 + (3.0 if int(value) % 2 == 0 else 5.0)
        assert abs(_called(at, value) - expected) < 1e-15
    assert elf.loaded(content, ["another"]) is None
    assert elf.loaded(content[:4] + b"\1" + content[5:], ["wave"]) is None
    assert elf.loaded(b"", ["wave"]) is None


@here
@pytest.mark.parametrize(
    "code",
    [
        "@state = global i64 0\ndefine void @f(ptr %x) {\n store i64 1, ptr @state\n store double 2.0, ptr %x\n ret void\n}",
        "declare void @nobody_has_this()\ndefine void @f(ptr %x) {\n call void @nobody_has_this()\n ret void\n}",
    ],
)
def test_what_takes_more_is_left_to_llvm(code):
    assert elf.loaded(native._compiled(native.binding(), code), ["f"]) is None
    if "state" in code:
        assert _called(native.address("f", code), 1.0) == 2.0


@here
def test_llvmlite_is_not_imported_where_all_code_is_kept(folder):
    program = """
import sys
from tests.kernels.test_objects import _doubled
assert _doubled(9.0) == [9.0] * 8
print("llvmlite" in sys.modules)
"""
    seen = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.strip())
    assert seen == ["True", "False"]
    objects.clear()
    assert list(folder.iterdir()) == []


@compiled
def test_an_older_llvmlite_is_as_none(folder):
    """Numba 0.61 brings llvmlite 0.44, which does not read this code."""
    program = """
import llvmlite.binding
llvmlite.binding.llvm_version_info = (15, 0, 7)
import warnings
import genesis as torch
from genesis.kernels.llvm import loops, native
assert native.binding() is None and native.host() is None and not loops.available()
x = torch.randn(200, 200)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(torch.compile(lambda x: torch.relu(x @ x).sum())(x).item() == torch.relu(x @ x).sum().item())
print([str(each.message).splitlines()[0] for each in said])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same, said = done.stdout.splitlines()
    assert same == "True" and "no llvmlite, or one older than 0.45" in said
    objects.save(objects.name_of("host", native._seen() or "", suffix=objects.HOST), b"0.44.0\x0015.0.7\0a\0b\0")
    native.host.cache_clear()
    try:
        assert native._seen() is None or native.host() is None
    finally:
        native.host.cache_clear()
