"""Calls in chunks, with memory of their own."""

import ctypes

import numpy as np
import pytest

import genesis
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import loops, native
from genesis.kernels.llvm.nests import Code
from genesis.kernels.native.chunked import Calls, Signature, Words, calls, kernel

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")

# out[i] += scale x[table[i]] + spare[i], and spare[i] counts the calls
NAME, POINTERS, INTEGERS = "chunked_probe", ("x", "out", "spare", "table"), ("count", "scale")


def probe():
    code = Code(1)
    scale = code.put("sitofp i64 %scale to float")
    with code.loop("0", "%count", "1") as i:
        x = code.put(f"load float, ptr {code.at('%x', code.number('%table', i.index))}")
        at, spare = code.at("%out", i.index), code.at("%spare", i.index)
        before, kept = (code.put(f"load float, ptr {p}") for p in (at, spare))
        value = code.put(f"fadd float {code.put(f'fmul float {x}, {scale}')}, {kept}")
        code.lines.append(f"  store float {code.put(f'fadd float {before}, {value}')}, ptr {at}")
        code.lines.append(f"  store float {code.put(f'fadd float {kept}, 1.0')}, ptr {spare}")
    return code.definition(NAME, POINTERS, INTEGERS, private=True)


def words(chunks, table):
    made = Words(Signature(NAME, POINTERS, INTEGERS, 2, 1))
    for c in range(chunks):
        for part in range(2):  # two calls of a chunk, one after the other
            made.call((0, 4 * (2 * c + part) * len(table)), (0,), (table,), (len(table), c + 1))
        made.end()
    return made


def expected(x, table, chunks):
    first = [x[table] * (c + 1) for c in range(chunks)]
    return np.array([[f, f + 1] for f in first])  # the second call sees what the first has left


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_chunk_has_memory_of_its_own(threads):
    x, table, chunks = np.arange(1, 6, dtype="f"), np.array([4, 0, 2]), 7
    made = words(chunks, table)
    want = expected(x, table, chunks)
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(threads)
        for _ in range(5):  # each with fresh memory, for this function does not leave it as it was
            out = np.zeros((chunks, 2, 3), "f")
            Calls(probe(), made, 12).run(x.ctypes.data, out.ctypes.data)
            left = out - want
            assert (left >= 0).all()
            assert (left == left[..., :1]).all()  # as many calls as this memory has seen
            assert threads > 1 or (left[:, 0, 0] == 2 * np.arange(chunks)).all()
    finally:
        genesis.set_num_threads(before)


def test_as_a_kernel_whose_words_are_in_the_code():
    x, table, chunks = np.arange(1, 6, dtype="f"), np.array([4, 0, 2]), 3
    made = words(chunks, table)
    code = f"{probe()}\n{calls(made.signature)}\n{kernel('probe_kernel', made.signature, made.array(), 64)}"
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(native.address("probe_kernel", code))
    out, scratch = np.zeros((chunks, 2, 3), "f"), memory.aligned((chunks, 16), np.dtype("f"))
    scratch.fill(9)
    addresses = np.array([a.ctypes.data for a in (x, out, scratch)])
    for c in reversed(range(chunks)):
        run(addresses.ctypes.data, c)
    np.testing.assert_array_equal(out, expected(x, table, chunks))


@pytest.mark.parametrize("known", [True, False])
def test_arrays_are_given_as_they_are_or_by_their_addresses(known, monkeypatch):
    x, table, chunks = np.arange(1, 6, dtype="f"), np.array([4, 0, 2]), 7
    out = np.zeros((chunks + 2, 2, 3), "f")
    monkeypatch.setattr(native, "ARRAY_DATA", native.ARRAY_DATA if known else 0)
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(1)
        x.flags.writeable = False
        Calls(probe(), words(chunks, table), 12).on(x, out[1:-1])  # a view begins where its elements do
    finally:
        genesis.set_num_threads(before)
    np.testing.assert_array_equal(out[[0, -1]], 0)
    left = out[1:-1] - expected(x, table, chunks)
    np.testing.assert_array_equal(left[:, 0, 0], 2 * np.arange(chunks))
