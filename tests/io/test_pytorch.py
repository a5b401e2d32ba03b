"""PyTorch's files, both ways: what it writes is read, and what is written it reads with `weights_only=True`."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hostile_checkpoints import legacy, named, storage, tensor, text, zipped

import genesis
from genesis.base import dtypes
from genesis.base.errors import FileFormatError

FORMATS = [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}, {"pickle_protocol": 5}]


def through(value):
    """What comes back of a value."""
    file = io.BytesIO()
    genesis.save(value, file, format="torch")
    file.seek(0)
    return genesis.load(file)


def from_torch(value, **options):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return genesis.load(file)


def to_torch(value):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    genesis.save(value, file, format="torch")
    file.seek(0)
    return torch.load(file, weights_only=True)


# ---- without PyTorch


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.short)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)])
def test_round_trip(tmp_path, dtype, shape):
    x = genesis.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).to(dtype)
    genesis.save({"x": x, "t": genesis.ones(2, 3).t()}, tmp_path / "a.pt")
    back = genesis.load(tmp_path / "a.pt")
    assert back["x"].dtype is dtype and back["x"].shape == x.shape and genesis.equal(back["x"], x)
    assert back["t"].stride() == (1, 3)
    back["x"].zero_()


VALUES = [
    None,
    True,
    3,
    255,
    256,
    -1,
    2**31,
    -(2**80),
    0.1,
    1 - 2j,
    "text",
    "\ud800 \u0000",
    b"\x00\xff",
    bytearray(b"ab"),
    {1, 2},
    (),
    [],
    {},
    [1, (2, [{"a": (None,)}])],
    {1: "a", None: "b", (1, "x"): "c"},
    genesis.Size([2, 3]),
    genesis.float16,
    genesis.device("cpu"),
    OrderedDict(a=1, b=OrderedDict()),
    Counter("abca"),
    list(range(1000)),
]


# whose order differs between processes
@pytest.mark.parametrize("value", VALUES, ids=lambda v: "a set" if isinstance(v, set) else repr(v)[:30])
def test_values(value):
    back = through([value, value])
    assert back == [value, value] and type(back[0]) is type(value)


def test_numpy_values_become_tensors_and_numbers():
    back = through(
        {
            "array": np.arange(6).reshape(2, 3)[:, ::-1],
            "scalar": np.float32(1.5),
            "half": genesis.ones(1).bfloat16().numpy()[0],
        }
    )
    assert (
        back["array"].tolist() == [[2, 1, 0], [5, 4, 3]]
        and back["scalar"] == 1.5
        and back["half"] == 1.0
        and type(back["half"]) is float
    )


def test_sharing_of_memory_and_objects():
    w, inner = genesis.arange(6.0).reshape(2, 3), [1]
    back = through(
        {
            "a": w,
            "row": w[1],
            "t": w.t(),
            "same": w,
            "mixed": w.numpy().view(np.int32),
            "lists": [inner, inner],
            "alone": genesis.arange(1000)[:2],
        }
    )
    back["a"].fill_(0.0)
    assert (
        back["row"].tolist() == [0] * 3
        and back["t"][2, 1].item() == 0
        and back["same"] is back["a"]
        and back["mixed"].tolist() == [[0] * 3] * 2
    )
    assert back["lists"][0] is back["lists"][1] and back["t"].stride() == (1, 3)
    file = io.BytesIO()
    genesis.save(genesis.arange(100_000)[:2], file, format="torch")
    assert len(file.getvalue()) < 2000


def test_large_files_are_mapped(tmp_path):
    genesis.save({"x": genesis.ones(1_000_000), "y": genesis.arange(3)}, tmp_path / "x.pth")
    for mmap in (None, True, False):
        back = genesis.load(tmp_path / "x.pth", mmap=mmap)
        back["x"].add_(1.0)
        assert back["x"][5].item() == 2 and back["y"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(tmp_path / "x.pth") as archive:
        assert archive.testzip() is None
        whole = (tmp_path / "x.pth").read_bytes()
        for info in archive.infolist():
            name_size, extra_size = struct.unpack("<HH", whole[info.header_offset + 26 : info.header_offset + 30])
            assert (info.header_offset + 30 + name_size + extra_size) % 64 == 0


def test_the_name_or_the_argument_decide_the_format(tmp_path):
    for name, argument, start in (
        ("a.pt", None, b"PK"),
        ("a.pth", None, b"PK"),
        ("pytorch_model.bin", None, b"PK"),
        ("a.pt", "safetensors", b"8\0"),
        ("a", "torch", b"PK"),
    ):
        genesis.save({"x": genesis.ones(1)}, tmp_path / name, format=argument)
        assert (tmp_path / name).read_bytes()[: len(start)] == start or argument == "safetensors"
        assert genesis.load(tmp_path / name)["x"].item() == 1
        with open(tmp_path / name, "wb") as file:
            genesis.save({"x": genesis.ones(1)}, file, format=argument)
        assert genesis.load(tmp_path / name)["x"].item() == 1
    with pytest.raises(ValueError, match='format \'zip\' is not known\n  try: "safetensors" or "torch"'):
        genesis.save({}, tmp_path / "x", format="zip")
    with pytest.raises(ValueError, match="PyTorch's format has no metadata"):
        genesis.save({}, tmp_path / "x.pt", {"a": "b"})


def test_refusals_name_what_was_refused(tmp_path):
    file = io.TextIOWrapper(io.BytesIO())
    for name, words in (
        (
            "os system",
            r"needs os.system, which is neither a tensor nor a container: it was refused, and nothing was run\n  "
            r"try: in the program",
        ),
        (
            "torch.nn.modules.linear Linear",
            r"needs torch.nn.modules.linear.Linear, .*\n  try: .* save model.state_dict\(\)",
        ),
        ("torch._utils _rebuild_sparse_tensor", "holds a sparse tensor"),
        ("torch float4_e2m1fn_x2", "holds tensors of torch.float4_e2m1fn_x2"),
    ):
        (tmp_path / "f.pt").write_bytes(zipped(b"\x80\x02" + named(name) + b")R."))
        with pytest.raises(FileFormatError, match=r"^load: \S*f.pt " + words):
            genesis.load(tmp_path / "f.pt")
    for wrong in (lambda: 0, {object(): 1}, 2**10_000, np.array(["text"]), {"file": file}):
        with pytest.raises((TypeError, ValueError), match=r"save: |dtype: "):
            through(wrong)
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper than 100, or one contains itself"):
        through(loop)


def test_archives():
    honest = b"\x80\x02" + tensor() + b"."
    assert genesis.load(io.BytesIO(zipped(honest))).shape == (2, 3)
    compressed, twice, program = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", honest)
        archive.writestr("archive/data/0", b"\0" * 10_000_000)
    with zipfile.ZipFile(twice, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("archive/data.pkl", honest)
        archive.writestr("archive/data.pkl", honest)
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("archive/data.pkl", honest)
        archive.writestr("archive/constants.pkl", honest)
    overlap = bytearray(zipped(honest, [b"\0" * 64, b"\0" * 64]))
    second = overlap.rfind(b"PK\x01\x02")
    first = overlap.rfind(b"PK\x01\x02", 0, second)
    overlap[second + 42 : second + 46] = overlap[first + 42 : first + 46]
    damaged = bytearray(zipped(honest))
    damaged[damaged.find(b"\0" * 64) + 3] = 1
    for data, words in (
        (compressed.getvalue(), "is compressed or encrypted"),
        (twice.getvalue(), "is there twice"),
        (program.getvalue(), "is a TorchScript program"),
        (overlap, "overlap"),
        (damaged, "the checksum of 'archive/data/0' is wrong"),
        (zipped(b"").replace(b"data.pkl", b"data.pk1"), "no PyTorch checkpoint"),
        (zipped(honest, byteorder=b"middle"), "byte order"),
        (zipped(honest, [b"\0" * 60]), "storage '0' has 60 bytes, 64 were expected"),
        (zipped(honest, []), "storage '0' has 0 bytes, 64 were expected"),
    ):
        with pytest.raises(FileFormatError, match=words):
            genesis.load(io.BytesIO(bytes(data)))


def test_the_other_byte_order():
    data = np.arange(16, dtype=">f4").tobytes()
    assert genesis.load(io.BytesIO(zipped(b"\x80\x02" + tensor() + b".", [data], byteorder=b"big"))).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_parts_of_storages_in_the_old_format():
    part = b"(" + text("7") + b"K\x02K\x06t"
    pickle = (
        b"\x80\x02" + named("torch._utils _rebuild_tensor") + b"(" + storage(more=part) + b"K\x01K\x02\x85K\x01\x85tR."
    )
    assert genesis.load(io.BytesIO(legacy(pickle, [np.arange(16, dtype=np.float32).tobytes()]))).tolist() == [3, 4]


def test_every_length():
    file = io.BytesIO()
    genesis.save({"x": genesis.arange(6.0), "n": [1, 2]}, file, format="torch")
    for whole in (file.getvalue(), legacy(b"\x80\x02" + tensor(more=b"N") + b".")):
        genesis.load(io.BytesIO(whole))
        for n in range(len(whole)):
            with pytest.raises(FileFormatError, match="^load: the BytesIO "):
                genesis.load(io.BytesIO(whole[:n]))


def test_a_device_that_is_not_here():
    data = zipped(b"\x80\x02" + tensor(location="cuda:0") + b".")
    with pytest.raises(
        RuntimeError, match='load: the tensors were saved on cuda:0, which is not available\n  try: map_location="cpu"'
    ):
        genesis.load(io.BytesIO(data))
    for where in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert genesis.load(io.BytesIO(data), map_location=where).device.type == "cpu"
    assert genesis.load(io.BytesIO(data), "meta").is_meta


@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_hostile_files_under_an_audit_hook(count):
    script = Path(__file__).parent / "hostile_checkpoints.py"
    # errors look into no frames
    done = subprocess.run(
        [sys.executable, str(script), "0", str(count)],
        capture_output=True,
        text=True,
        env={**os.environ, "GENESIS_FULL_TRACEBACK": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) >= count and "nothing else happened" in done.stdout


def test_the_audit_hook_sees_what_it_is_there_for():
    code = "import sys; sys.path.insert(0, '.'); import hostile_checkpoints as h, pickle; sys.addaudithook(h.hook); h.WATCH[0] = True\n"
    code += "try: pickle.loads(b'cos\\nsystem\\n.')\nexcept RuntimeError as e: h.WATCH[0] = False; print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert "the audit hook saw pickle.find_class" in done.stdout, done.stderr


# ---- with PyTorch


@pytest.mark.parity
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.short)
def test_every_dtype_both_ways(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype.name)
    theirs = {
        "x": (torch.arange(6) % 2).reshape(2, 3).to(kind),
        "zero": torch.ones((), dtype=kind),
        "empty": torch.empty(0, 3, dtype=kind),
    }
    for options in FORMATS:
        ours = from_torch(theirs, **options)
        for name, t in theirs.items():
            assert (
                ours[name].dtype is dtype and ours[name].shape == tuple(t.shape) and ours[name].tolist() == t.tolist()
            )
    back = to_torch(ours)
    for name, t in theirs.items():
        assert back[name].dtype is kind and torch.equal(back[name], t)


@pytest.mark.parity
@pytest.mark.parametrize("options", FORMATS, ids=str)
def test_what_pytorch_writes(options):
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0).reshape(2, 3, 4)
    tagged = torch.nn.Parameter(torch.ones(2))
    tagged.note = "mine"
    given = {
        "base": base,
        "view": base[1, :, 1::2],
        "transposed": base.transpose(0, 2),
        "expanded": torch.ones(1).expand(3),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(base[0]),
        "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False),
        "tagged": tagged,
        "conj": torch.tensor([1 + 2j]).conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
        "buffer": torch.nn.Buffer(torch.ones(1)),
        "meta": torch.ones(2, 3, device="meta"),
        "size": base.shape,
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "values": [
            1,
            2.5,
            None,
            True,
            "x",
            (1, (2,)),
            {3: 4},
            {5},
            frozenset({6}),
            1j,
            b"\xff",
            bytearray(b"z"),
            2**70,
        ],
        "ordered": OrderedDict(b=1, a=2),
        "default": defaultdict(list, {"k": [1]}),
        "count": Counter("aab"),
        "array": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.eye(2)),
        "scalar": np.float64(2.5),
        "bools": np.array([True]),
        "big": np.arange(3, dtype=">i4"),
    }
    ours = from_torch(given, **options)
    for name in ("base", "view", "transposed", "expanded", "conj", "negative", "leaf", "parameter", "frozen", "tagged"):
        assert ours[name].tolist() == given[name].tolist() and ours[name].requires_grad == given[name].requires_grad, (
            name
        )
        assert name == "negative" or ours[name].stride() == given[name].stride(), name
    assert [type(ours[n]) for n in ("parameter", "frozen", "tagged", "leaf")] == [genesis.nn.Parameter] * 3 + [
        genesis.Tensor
    ] and ours["tagged"].note == "mine"
    assert (
        ours["meta"].is_meta
        and ours["size"] == (2, 3, 4)
        and type(ours["size"]) is genesis.Size
        and ours["dtype"] is genesis.bfloat16
    )
    for name in ("values", "ordered", "default", "count"):
        assert ours[name] == given[name] and type(ours[name]) is type(given[name])
    for name in ("array", "f", "scalar", "bools", "big"):
        assert type(ours[name]) is type(given[name]) and np.array_equal(ours[name], given[name])
    with genesis.no_grad():
        ours["base"].zero_()
    assert float(ours["view"].sum()) == float(ours["parameter"].sum()) == 0


@pytest.mark.parity
def test_what_pytorch_reads():
    torch = pytest.importorskip("torch")
    base = genesis.arange(24.0).reshape(2, 3, 4)
    given = {
        "base": base,
        "view": base[1, :, 1::2],
        "transposed": base.transpose(0, 2),
        "parameter": genesis.nn.Parameter(base[0]),
        "leaf": genesis.ones(2, requires_grad=True),
        "flipped": genesis.from_numpy(np.arange(3.0)[::-1]),
        "ints": base.numpy().view(np.int32),
        "values": VALUES[:-1],
        "meta": genesis.ones(2, device="meta"),
        "u16": genesis.ones(2, dtype=genesis.uint16),
        "same": base,
    }
    theirs = to_torch(given)
    for name in ("base", "view", "transposed", "parameter", "leaf", "flipped", "ints", "u16"):
        assert theirs[name].tolist() == given[name].tolist(), name
    assert theirs["view"].stride() == (4, 2) and theirs["transposed"].stride() == (1, 4, 12)
    assert (
        isinstance(theirs["parameter"], torch.nn.Parameter)
        and theirs["leaf"].requires_grad
        and theirs["meta"].is_meta
        and theirs["same"] is theirs["base"]
    )
    with torch.no_grad():
        theirs["base"].zero_()
    assert theirs["view"].sum() == theirs["parameter"].sum() == theirs["ints"].sum() == 0
    expected = [v for v in VALUES[:-1] if not isinstance(v, genesis.Size | dtypes.dtype | genesis.device)]
    assert [v for v in theirs["values"] if not isinstance(v, torch.Size | torch.dtype | torch.device)] == expected


def models(lib):
    lib.manual_seed(0)
    return lib.nn.Sequential(
        lib.nn.Linear(4, 8),
        lib.nn.LayerNorm(8),
        lib.nn.Embedding(5, 8),
        lib.nn.BatchNorm1d(8),
        lib.nn.Linear(8, 8, bias=False),
    )


@pytest.mark.parity
@pytest.mark.parametrize("options", FORMATS[:2], ids=str)
def test_a_model_and_its_optimizer_go_to_genesis_and_back(tmp_path, options):
    torch = pytest.importorskip("torch")
    theirs, ours = models(torch), models(genesis)
    step = torch.optim.AdamW(theirs.parameters(), lr=0.01)
    theirs[0](torch.ones(2, 4)).square().sum().backward()
    step.step()
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin", **options)
    state = genesis.load(tmp_path / "pytorch_model.bin")
    assert type(state) is OrderedDict and state._metadata[""] == {"version": 1}
    ours.load_state_dict(state)
    for (name, p), q in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert p.tolist() == q.tolist(), name
    torch.save({"optimizer": step.state_dict(), "epoch": 3}, tmp_path / "o.pt", **options)
    checkpoint = genesis.load(tmp_path / "o.pt")
    assert list(checkpoint["optimizer"]["state"]) == list(step.state_dict()["state"])
    mine = genesis.optim.AdamW(ours.parameters(), lr=0.5)
    mine.load_state_dict(checkpoint["optimizer"])
    assert mine.param_groups[0]["lr"] == 0.01
    # and back
    genesis.save({"model": ours.state_dict(), "optimizer": checkpoint["optimizer"]}, tmp_path / "back.pt")
    for mmap in (False, True):
        back = torch.load(tmp_path / "back.pt", weights_only=True, mmap=mmap)
        fresh = models(torch)
        fresh.load_state_dict(back["model"])
        assert all(
            torch.equal(a, b) for a, b in zip(fresh.state_dict().values(), theirs.state_dict().values(), strict=True)
        )
        torch.optim.AdamW(fresh.parameters()).load_state_dict(back["optimizer"])


@pytest.mark.parity
def test_what_pytorch_writes_and_genesis_has_not():
    torch = pytest.importorskip("torch")
    for value, words in (
        (torch.eye(2).to_sparse(), "a sparse tensor"),
        (torch.empty(2, dtype=torch.float4_e2m1fn_x2), "float4_e2m1fn_x2"),
        (torch.nn.Linear(1, 1), "needs torch.nn.modules.linear.Linear"),
        (Path("x"), "needs pathlib"),
        (torch.ones(2).untyped_storage(), "holds TypedStorage itself"),
    ):
        with pytest.raises(FileFormatError, match=words):
            from_torch(value)


@pytest.mark.parity
def test_checksums_that_pytorch_did_not_write():
    torch = pytest.importorskip("torch")
    torch.serialization.set_crc32_options(False)
    try:
        assert from_torch(torch.ones(3)).tolist() == [1, 1, 1]
    finally:
        torch.serialization.set_crc32_options(True)
