"""CRCs of memory are zlib's."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from genesis.kernels.llvm import crc, native


@pytest.mark.parametrize("way", ["wide", "narrow", "zlib"])
@pytest.mark.parametrize("size", [0, 1, 127, 128, 511, 512, 1023, 1024, 1025, 5000, 100_003])
def test_a_crc_is_zlibs(monkeypatch, size, way):
    """By the longest vectors that there are, by those of 128 bits, and where there is no product of polynomials."""
    host = native.host()
    if way == "narrow" and (host is None or not host.has("pclmul")):
        pytest.skip("the processor does not multiply polynomials")
    if way == "narrow":
        monkeypatch.setattr(crc, "_fold", lambda: (native.nest("crc_fold", crc.code(1), 2, 1), 128))
    if way == "zlib":
        monkeypatch.setattr(crc, "_fold", lambda: (None, 0))
    memory = np.random.default_rng(0).integers(0, 256, size + 3, np.uint8)
    for begin in (0, 3):  # at any address
        data = memory[begin : begin + size].data
        for before in (0, 1, 0x12345678, 0xFFFFFFFF):
            assert crc.crc32(data, before) == zlib.crc32(data, before)
    assert crc.crc32(memory.tobytes()) == crc.crc32(memory[5:].data, zlib.crc32(memory[:5].data))


@pytest.mark.parametrize("way", ["wide", "narrow", "zlib"])
@pytest.mark.parametrize("size", [0, 1, 63, 128, 511, 1024, 1100, 1600, 100_003])
def test_a_copy_has_every_byte_and_their_crc(monkeypatch, size, way):
    """From and to any address, and nothing beside it is written."""
    host = native.host()
    if way == "narrow" and (host is None or not host.has("pclmul")):
        pytest.skip("the processor does not multiply polynomials")
    if way == "narrow":
        monkeypatch.setattr(crc, "_fold", lambda copies: (native.nest("crc_fold", crc.code(1, True), 3, 1), 128))
    if way == "zlib":
        monkeypatch.setattr(crc, "_fold", lambda copies: (None, 0))
    memory = np.random.default_rng(0).integers(1, 256, size + 3, np.uint8)
    for begin, to in ((0, 0), (3, 0), (0, 1), (3, 61)):
        room, source = np.zeros(size + 200, np.uint8), memory[begin : begin + size]
        assert crc.copy(room[to : to + size], source, 77) == zlib.crc32(source.data, 77)
        assert room[to : to + size].tobytes() == source.tobytes()
        assert not room[:to].any() and not room[to + size :].any()
