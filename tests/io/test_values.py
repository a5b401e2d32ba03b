"""What can be saved comes back as it was: values of every kind, shared memory, parameters, from and to anything with
read and write.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from safetensors.numpy import load as load_reference

import genesis
from genesis.base import dtypes


def through(value, **options):
    file = io.BytesIO()
    genesis.save(value, file)
    file.seek(0)
    return genesis.load(file, **options)


VALUES = [
    None,
    True,
    3,
    -(2**80),
    0.1,
    float("inf"),
    1 - 2j,
    "text",
    "\ud800 \u0000",
    b"\x00\xff",
    bytearray(b"ab"),
    {1, 2},
    frozenset({3}),
    (),
    [],
    {},
    [1, (2, [3, {"a": {"b": (None,)}}])],
    {1: "a", None: "b", (1, ("x", 2.5)): "c", "": 4},
    genesis.Size([2, 3]),
    genesis.float16,
    genesis.device("cpu"),
    OrderedDict(a=1, b=OrderedDict()),
]


# whose order differs between processes
@pytest.mark.parametrize("value", VALUES, ids=lambda v: "a set" if isinstance(v, set) else repr(v)[:30])
def test_values(value):
    back = through(value)
    assert back == value and type(back) is type(value)
    inside = through({"here": [value]})["here"][0]
    assert inside == value and type(inside) is type(value)


def test_nan_and_minus_zero():
    back = through([float("nan"), -0.0])
    assert back[0] != back[0] and str(back[1]) == "-0.0"


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.short)
def test_numpy_values(dtype):
    array = np.array([[0, 1], [1, 0]]).astype(dtype.np)
    back = through({"array": array, "scalar": array[0, 1], "zero": array[0, 0].reshape(())})
    assert type(back["array"]) is np.ndarray and back["array"].dtype == array.dtype and (back["array"] == array).all()
    assert isinstance(back["scalar"], np.generic) and back["scalar"].dtype == array.dtype and back["scalar"] == 1
    assert back["zero"].shape == ()
    swapped = through(
        {"big": np.arange(3, dtype=">i4"), "tensor": genesis.from_numpy(np.arange(3.0).astype(">f8").astype("=f8"))}
    )
    assert swapped["big"].tolist() == [0, 1, 2] and swapped["tensor"].tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="object"):
        through(np.array([object()]))


def test_layouts():
    x = genesis.arange(24.0).reshape(2, 3, 4)
    given = {
        "transposed": x.permute(2, 0, 1),
        "step": x[:, ::2, 1:],
        "expanded": genesis.ones(1).expand(3),
        "numpy": x.numpy()[::-1],
        "empty": x[:0],
    }
    for name, value in given.items():
        back = through({"v": value})["v"]
        assert back.shape == value.shape and (np.asarray(back) == np.asarray(value)).all(), name


def test_shared_memory_stays_shared():
    w = genesis.arange(6.0).reshape(2, 3)
    given = {"a": w, "tied": w, "row": w[1], "t": w.t(), "alone": genesis.ones(2), "left": w[:, :2]}
    back = through(given)
    assert all(genesis.equal(back[k], given[k]) for k in given)
    back["tied"].fill_(7.0)
    assert (
        back["a"].tolist() == [[7] * 3] * 2
        and back["row"].tolist() == [7] * 3
        and back["t"][2, 1].item() == 7
        and back["left"][1, 1].item() == 7
    )
    assert back["alone"].tolist() == [1, 1]
    x, z = genesis.arange(6.0), genesis.zeros(2, dtype=genesis.complex128)
    parts = through({"low": x[:4], "high": x[2:], "z": z, "real": genesis.from_numpy(z.numpy().view(np.float64))})
    parts["low"].zero_()
    parts["real"].fill_(1.0)
    assert parts["high"].tolist() == [0, 0, 4, 5] and parts["z"].tolist() == [1 + 1j] * 2


def test_views_of_one_memory_that_do_not_overlap_make_a_plain_file():
    w = genesis.arange(8.0).reshape(2, 4)
    file = io.BytesIO()
    genesis.save({"q": w[:, :2], "k": w[:, 2:], "first": w[0, 0]}, file)
    plain = load_reference(file.getvalue())
    assert plain["k"].tolist() == [[2, 3], [6, 7]]
    file = io.BytesIO()
    genesis.save({"q": w[:, :2], "k": w[:, 2:]}, file)
    size = int.from_bytes(file.getvalue()[:8], "little")
    assert "__metadata__" not in json.loads(file.getvalue()[8 : 8 + size])
    genesis.save(genesis.arange(1_000_000)[:2], file := io.BytesIO())
    assert len(file.getvalue()) < 300  # of a view only what it shows


def test_parameters_and_requires_grad():
    tied = genesis.nn.Parameter(genesis.ones(2))
    back = through(
        [
            tied,
            genesis.nn.Parameter(genesis.ones(1), requires_grad=False),
            genesis.ones(1, requires_grad=True),
            tied,
            genesis.ones(1) * 2,
        ]
    )
    assert [type(t) for t in back] == [genesis.nn.Parameter] * 2 + [
        genesis.Tensor,
        genesis.nn.Parameter,
        genesis.Tensor,
    ]
    assert [t.requires_grad for t in back] == [True, False, True, True, False]
    with genesis.no_grad():
        back[0].fill_(5.0)
    assert back[3].tolist() == [5, 5]


def test_a_state_dict_is_a_plain_file_and_an_ordered_dict():
    model = genesis.nn.Sequential(genesis.nn.Linear(2, 3), genesis.nn.LayerNorm(3))
    file = io.BytesIO()
    genesis.save(model.state_dict(), file)
    assert set(load_reference(file.getvalue())) == set(model.state_dict())
    back = through(model.state_dict())
    assert type(back) is OrderedDict and list(back) == list(model.state_dict())
    assert model.load_state_dict(back).missing_keys == []


def test_file_objects(tmp_path):
    for buffering in (-1, 0):
        with open(tmp_path / "f", "wb", buffering=buffering) as file:
            file.write(b"before")
            genesis.save({"x": genesis.arange(5)}, file)
        with open(tmp_path / "f", "rb", buffering=buffering) as file:
            file.seek(6)
            assert genesis.load(file)["x"].tolist() == [0, 1, 2, 3, 4]
    with (
        open(tmp_path / "t", "w") as text,
        pytest.raises(TypeError, match=r"save: cannot write to TextIOWrapper\n  try: open\(path, \"wb\"\)"),
    ):
        genesis.save({}, text)
    with open(tmp_path / "t") as text, pytest.raises(TypeError, match=r"load: cannot read from TextIOWrapper"):
        genesis.load(text)
    for wrong in (3, None, object()):
        with pytest.raises(TypeError, match="save: cannot write to"):
            genesis.save({}, wrong)
        with pytest.raises(TypeError, match="load: cannot read from"):
            genesis.load(wrong)
    genesis.save({}, str(tmp_path / "s"))
    genesis.save({}, bytes(tmp_path / "s"))
    assert genesis.load(str(tmp_path / "s")) == genesis.load(bytes(tmp_path / "s")) == {}

    class Pipe:  # neither seek nor readinto
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def read(self, n=-1):
            return self.data.read(n)

    file = io.BytesIO()
    genesis.save([genesis.ones(2)], file)
    assert genesis.load(Pipe(file.getvalue()))[0].tolist() == [1, 1]


def test_refusals():
    for name in ("__metadata__", "genesis.structure"):
        with pytest.raises(ValueError, match=f"save: the name '{name}' is reserved"):
            genesis.save({name: genesis.ones(1)}, io.BytesIO())
        with pytest.raises(ValueError, match="is reserved"):
            genesis.save({}, io.BytesIO(), {name: "x"})
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="save: containers are nested deeper than 100, or one contains itself"):
        through(loop)
    for wrong in ([lambda: 0], {object(): 1}, 2**10_000):
        with pytest.raises((TypeError, ValueError), match="save: "):
            through(wrong)


def test_map_location():
    given = {"x": genesis.ones(2), "n": 3}
    for where in (
        "cpu",
        genesis.device("cpu"),
        {"cuda:0": "cpu"},
        lambda storage, location: storage,
        lambda storage, location: None,
        lambda s, _: s.cpu(),
    ):
        assert through(given, map_location=where)["x"].tolist() == [1, 1]
    for where in (
        "meta",
        {"cpu": "meta"},
        lambda storage, location: storage.to("meta") if location == "cpu" and storage.nbytes() == 8 else storage,
    ):
        back = through(given, map_location=where)
        assert back["x"].device.type == "meta" and back["x"].shape == (2,) and back["n"] == 3
    assert through(given, device="meta")["x"].is_meta
    with pytest.raises(RuntimeError, match="cuda:0 is not available"):
        through(given, map_location="cuda:0")
    with pytest.raises(RuntimeError, match="cuda:0 is not available"):
        through(given, map_location=lambda storage, _: storage.cuda(0))
    with pytest.raises(ZeroDivisionError):
        through(given, map_location=lambda *_: 1 / 0)
    with pytest.raises(TypeError, match="map_location returned int"):
        through(given, map_location=lambda *_: 3)
    with pytest.raises(TypeError, match="map_location must be a device"):
        through(given, map_location=2.5)


def test_copies_and_pickles(tmp_path):
    model = genesis.nn.Linear(2, 3)
    for format, name in (("safetensors", "a"), ("torch", "b")):
        genesis.save(dict(model.named_parameters()), tmp_path / name, format=format)
        loaded = genesis.load(tmp_path / name, mmap=True)
        for again in (copy.copy(loaded), copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
            for key, p in model.named_parameters():
                assert (
                    type(again[key]) is genesis.nn.Parameter
                    and again[key].requires_grad
                    and genesis.equal(again[key], p)
                )
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert genesis.equal(again(genesis.ones(2)), model(genesis.ones(2)))


def test_options(tmp_path):
    genesis.save({"x": genesis.ones(2)}, tmp_path / "f")
    for options in (
        {"weights_only": True},
        {"weights_only": False},
        {"mmap": True},
        {"mmap": False},
        {"pickle_module": pickle},
    ):
        assert genesis.load(tmp_path / "f", **options)["x"].tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="pickle_module"):
        genesis.load(tmp_path / "f", pickle_module=object())
    with pytest.raises(TypeError, match="mmap must be True, False or None, got str"):
        genesis.load(tmp_path / "f", mmap="yes")
    with pytest.raises(ValueError, match="only a file that is given by its path can be mapped"):
        through({}, mmap=True)
