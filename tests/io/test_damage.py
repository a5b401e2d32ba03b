"""Damaged and hostile safetensors files: always one class of error, which names the file; never a crash, a hang, or
much memory.
"""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import tracemalloc

import pytest

import genesis
from genesis.base.errors import FileFormatError


def saved(value):
    file = io.BytesIO()
    genesis.save(value, file)
    return file.getvalue()


VALUE = {
    "x": genesis.arange(6.0).reshape(2, 3),
    "half": genesis.ones(3).half(),
    "n": [1, {"deep": (genesis.zeros(()), "text")}],
}


def attempt(data):
    """What `load` makes of the bytes: a value or `FileFormatError`; anything else fails the test."""
    try:
        return genesis.load(io.BytesIO(data))
    except FileFormatError as error:
        assert str(error).startswith("load: the BytesIO "), error
        assert len(str(error)) < 1000
        return None


def test_every_length():
    for value in (VALUE, {"x": genesis.ones(3)}):
        whole = saved(value)
        for n in range(len(whole)):
            assert attempt(whole[:n]) is None
        assert attempt(whole + b"\0") is None
        assert attempt(whole) is not None


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes(seed):
    rng = random.Random(seed)
    whole = saved(VALUE)
    size = int.from_bytes(whole[:8], "little")
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            data[rng.randrange(8 + size)] = rng.choice([rng.randrange(256), *b'0129-+.eE{}[]",:\\'])
        attempt(bytes(data))


def made(header, payload=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + payload


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def structured(tree, payload=b"\0" * 8, shape=(2,)):
    return made(
        {
            "__metadata__": {"genesis.structure": tree if isinstance(tree, str) else json.dumps(tree)},
            "t": entry("F32", shape, (0, len(payload))),
        },
        payload,
    )


HOSTILE = {
    "a huge header": (2**63).to_bytes(8, "little") + b"{}",
    "a header longer than the file": (50).to_bytes(8, "little") + b"{}",
    "not UTF-8": made(b'{"\xff\xfe": 1}'),
    "nested too deep": made(b'{"a":' + b"[" * 100_000),
    "a list": made([]),
    "duplicate names": made(
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b"1",
    ),
    "many duplicates": made(b"{" + b",".join(b'"%d":1' % i for i in range(50_000)) + b',"49999":1}'),
    "duplicate keys of an entry": made(b'{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "an unknown dtype": made({"a": entry("F4", [4])}, b"1234"),
    "a dtype that is a list": made({"a": entry(["F32"])}, b"1234"),
    "negative offsets": made({"a": entry(offsets=[-4, 0])}, b"1234"),
    "offsets backwards": made({"a": entry(shape=[0], offsets=[4, 4]), "b": entry(offsets=[4, 0])}, b"1234"),
    "overlap": made({"a": entry(), "b": entry()}, b"1234"),
    "a hole": made({"a": entry(), "b": entry(offsets=[8, 12])}, b"1" * 12),
    "beyond the end": made({"a": entry(shape=[2**40], offsets=[0, 2**42])}, b"1234"),
    "an overflowing shape": made({"a": entry(shape=[2**61, 2**61, 16], offsets=[0, 0])}, b""),
    "a negative size": made({"a": entry(shape=[-1, -1])}, b"1234"),
    "a float size": made({"a": entry(shape=[1.0])}, b"1234"),
    "a bool size": made({"a": entry(shape=[True])}, b"1234"),
    "a huge number": made(b'{"a":{"dtype":"U8","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,1]}}', b"1"),
    "many dimensions": made({"a": entry(shape=[1] * 65)}, b"1234"),
    "the wrong size": made({"a": entry(shape=[2])}, b"1234"),
    "no shape": made({"a": {"dtype": "F32"}}),
    "an entry that is null": made({"a": None}),
    "metadata that are numbers": made({"__metadata__": {"a": 1}}),
    "metadata that are a list": made({"__metadata__": []}),
    "a structure that is no JSON": structured("{"),
    "a structure nested too deep": structured('{"list":[' * 50_000),
    "a structure nested deep": structured('{"list":[' * 900 + "]}" * 900),
    "an unknown kind": structured({"os.system": "true"}),
    "an empty node": structured({}),
    "an unknown tensor": structured({"tensor": "u"}),
    "a tensor that is a list": structured({"tensor": ["t"]}),
    "a view outside": structured({"tensor": "t", "dtype": "float32", "shape": [3], "offset": 0, "strides": [4]}),
    "a view before": structured({"tensor": "t", "dtype": "float32", "shape": [1], "offset": -4, "strides": [4]}),
    "a view backwards": structured({"tensor": "t", "dtype": "float32", "shape": [2], "offset": 4, "strides": [-4]}),
    "a view of huge strides": structured(
        {"tensor": "t", "dtype": "float32", "shape": [2], "offset": 0, "strides": [2**61]}
    ),
    "a view of too many elements": structured(
        {"tensor": "t", "dtype": "float32", "shape": [2**40, 2**40], "offset": 0, "strides": [0, 0]}
    ),
    "a view without a dtype": structured({"tensor": "t", "shape": [1], "strides": [0]}),
    "a view of fewer strides": structured(
        {"tensor": "t", "dtype": "float32", "shape": [1, 1], "offset": 0, "strides": [0]}
    ),
    "an integer that requires grad": structured(
        {"tensor": "t", "dtype": "int32", "shape": [1], "offset": 0, "strides": [4], "requires_grad": True}
    ),
    "a scalar of two elements": structured({"tensor": "t", "is": "scalar"}),
    "a key that is a list": structured({"dict": [[[1], {"value": 1}]]}),
    "a key twice": structured({"dict": [["a", {"value": 1}], ["a", {"value": 2}]]}),
    "a set of lists": structured({"set": [{"list": []}]}),
    "a set of tuples of lists": structured({"set": [{"tuple": [{"list": []}]}]}),
    "no base64": structured({"bytes": "???"}),
    "a device that does not exist": structured({"device": "abacus"}),
    "a dtype that does not exist": structured({"dtype": "float7"}),
    "a huge complex": structured({"complex": [10**400, 0]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name):
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="^load: the BytesIO "):
            genesis.load(io.BytesIO(HOSTILE[name]))
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mmap", [None, True, False])
def test_the_message_names_the_file_and_the_damage(tmp_path, mmap):
    genesis.save({"x": genesis.ones(500_000)}, tmp_path / "weights")
    data = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(data[:-4])
    with pytest.raises(
        FileFormatError,
        match=r"^load: \S*weights is cut off or damaged: its tensors have 2000000 bytes, 1999996 are there",
    ):
        genesis.load(tmp_path / "weights", mmap=mmap)
    with pytest.raises(FileNotFoundError):
        genesis.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        genesis.load(tmp_path)


PEAK = """
import resource, sys, genesis
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
genesis.io; genesis.load(sys.argv[1]); before = peak()
state = genesis.load(sys.argv[2], mmap={"None": None, "True": True, "False": False}[sys.argv[3]])
loaded = peak()
total = sum(int(t[::512].sum().item()) for t in state.values())  # every page of it
print(total, loaded - before, peak() - before)
"""


@pytest.mark.parametrize("mmap", [None, True, False])
@pytest.mark.parametrize("suffix", ["", ".pt"])
def test_peak_memory(tmp_path, mmap, suffix):
    size = 64_000_000
    genesis.save({"a": genesis.ones(1)}, tmp_path / ("small" + suffix))
    genesis.save({str(i): genesis.ones(size // 16) for i in range(4)}, tmp_path / ("large" + suffix))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path / ("small" + suffix), tmp_path / ("large" + suffix), str(mmap)],
        capture_output=True,
        text=True,
        check=True,
    )
    total, loaded, used = map(int, done.stdout.split())
    assert total == 4 * -(-size // 16 // 512)
    assert used < 1.1 * size
    lazy = mmap is True or (mmap is None and not suffix)  # an archive's checksums are compared, unless mmap=True
    assert not lazy or loaded < 0.1 * size


def test_writing_to_a_mapped_tensor_leaves_the_file_alone_and_a_new_file_the_tensor(tmp_path):
    genesis.save({"x": genesis.ones(1000)}, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    x = genesis.load(tmp_path / "f", mmap=True)["x"]
    x.add_(1.0)
    assert (tmp_path / "f").read_bytes() == before
    y = genesis.load(tmp_path / "f", mmap=True)["x"]
    genesis.save({"x": x}, tmp_path / "f")
    assert y.sum().item() == 1000 and genesis.load(tmp_path / "f")["x"].sum().item() == 2000


def test_unaligned_tensors_of_other_writers():
    header = {"b": entry("U8", [1], [0, 1]), "x": entry("F32", [2], [1, 9]), "z": entry("C64", [1], [9, 17])}
    back = genesis.load(io.BytesIO(made(header, b"\1" + genesis.tensor([1.0, 2.0, 3.0, 4.0]).numpy().tobytes())))
    assert (back["x"] + 1).tolist() == [2, 3] and back["z"].tolist() == [3 + 4j] and list(back) == ["b", "x", "z"]
