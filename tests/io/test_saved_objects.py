"""Objects of a program's classes in PyTorch's files: written as Python's pickles have them, made again without a call."""

from __future__ import annotations

import argparse
import enum
import io
import pickle
import types
from collections import OrderedDict, namedtuple
from fractions import Fraction
from pathlib import Path

import pytest
from hostile_checkpoints import named, zipped

import genesis
from genesis import nn
from genesis.base.errors import FileFormatError
from genesis.io.pytorch.safe import clear_safe_globals, get_safe_globals, safe_globals

Point = namedtuple("Point", "x y")
CALLS = []


class Color(enum.Enum):
    RED = 1


class Options:
    def __init__(self, rate):
        CALLS.append("init")
        self.rate = rate


class Restored(Options):
    def __setstate__(self, state):
        self.rate = state["rate"] + 1


class Slots:
    __slots__ = ("a",)


class Attributes(dict):
    def __init__(self, rate):
        super().__init__(rate=rate)

    def __getattr__(self, name):
        return self[name]


class Lines(list):
    def __init__(self, *lines):
        CALLS.append("lines")
        super().__init__(lines)
        self.count = len(lines)


class Ordered(OrderedDict):
    pass


class Settings(types.SimpleNamespace):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.kind, self.act = nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear, nn.functional.relu

    def forward(self, x):
        return self.act(self.norm(self.layer(x)))


def written(value, **options):
    file = io.BytesIO()
    genesis.save(value, file, **options)
    file.seek(0)
    return file


def through(value, **options):
    return genesis.load(written(value, **options), weights_only=False)


def test_options_and_names():
    options = argparse.Namespace(rate=0.1, sizes=[1, 2], where=Path("a/b"), kind=nn.Linear, color=Color.RED)
    whole = through({"args": options, "point": Point(1, genesis.ones(2)), "weight": genesis.ones(2)})
    assert whole["args"] == options and whole["args"].kind is nn.Linear and whole["args"].color is Color.RED
    assert whole["point"].x == 1 and whole["point"].y.tolist() == [1.0, 1.0]


class Attribute:
    """What some versions of Python say that a member of an enumeration is."""

    def __init__(self, *args):
        self.args = args

    def __reduce__(self):
        return getattr, self.args


@pytest.mark.parity
@pytest.mark.parametrize("args", [(Color, "RED"), (Color, "mro"), (Color, "BLUE"), (Path, "home"), (Color,)])
def test_a_member_of_an_enumeration_may_be_an_attribute_of_it(args, tmp_path):
    """... and nothing else may be an attribute of something."""
    torch = pytest.importorskip("torch")
    torch.save({"color": Attribute(*args)}, tmp_path / "file.pt")
    if args == (Color, "RED"):
        assert genesis.load(tmp_path / "file.pt", weights_only=False)["color"] is Color.RED
    else:
        with pytest.raises(FileFormatError, match="refused"):
            genesis.load(tmp_path / "file.pt", weights_only=False)


@pytest.mark.parametrize("options", [{}, {"format": "torch"}])
def test_a_whole_module(options):
    net, x = Net().eval(), genesis.randn(4, 2)
    again = through(net, **options)
    assert type(again) is Net and not again.training and again(x).equal(net(x))
    again(x).sum().backward()
    assert again.layer.weight.grad is not None and net.layer.weight.grad is None


def test_nothing_is_called_but_setstate():
    CALLS.clear()
    values = [Options(1), Restored(1)]
    CALLS.clear()
    plain, restored = through(values)
    assert (plain.rate, restored.rate, CALLS) == (1, 2, [])


def test_objects_that_hold_themselves_and_tensors_that_share_memory():
    node = Options(genesis.arange(4.0))
    node.me, node.view = node, node.rate[1:3]
    again = through(node)
    assert again.me is again and again.view.tolist() == [1.0, 2.0]
    again.rate[1] = 7.0
    assert again.view.tolist() == [7.0, 2.0]


def test_an_optimizer_with_its_parameters():
    net = nn.Linear(2, 1)
    optimizer = genesis.optim.Adam(net.parameters(), lr=0.5)
    net(genesis.ones(1, 2)).sum().backward()
    optimizer.step()
    model, stepped = through((net, optimizer))
    assert stepped.param_groups[0]["params"][0] is model.weight and stepped.param_groups[0]["lr"] == 0.5
    assert stepped.state[model.weight]["exp_avg"].equal(optimizer.state[net.weight]["exp_avg"])


def test_without_weights_only_false_they_are_refused():
    for load in (genesis.load, lambda file: genesis.load(file, weights_only=True)):
        with pytest.raises(FileFormatError, match="needs argparse.Namespace, which is neither a tensor"):
            load(written(argparse.Namespace(a=1)))


@pytest.mark.parametrize(
    "data",
    [
        named("os system") + b"X\x04\x00\x00\x00true\x85R.",  # a function
        named("subprocess Popen") + b"X\x04\x00\x00\x00true\x85R.",  # a class with arguments
        named("builtins eval") + b"X\x01\x00\x00\x001\x85R.",
        named("not_imported_anywhere Class") + b")\x81.",
        named("argparse Namespace") + b")\x81K\x01b.",  # a state that is no dict
        b"K\x01K\x02b.",
        b"R.",
        b"b.",
    ],
)
def test_other_requests_are_refused(data, tmp_path):
    (tmp_path / "f.pt").write_bytes(zipped(b"\x80\x02" + data))
    with pytest.raises(FileFormatError):
        genesis.load(tmp_path / "f.pt", weights_only=False)


def test_what_cannot_be_saved():
    slots = Slots()
    slots.a = 1
    with pytest.raises(TypeError, match="cannot save .*<lambda> in PyTorch's format: it is not found as"):
        written({"f": lambda: 0})
    with pytest.raises(TypeError, match="cannot pickle .generator. object"):
        written(x for x in ())
    with pytest.raises(TypeError, match="cannot save Options"):
        written(Options(1), format="safetensors")
    with pytest.raises(FileFormatError, match="the state of Slots is no dict"):
        through(slots)


def test_pytorch_reads_them():
    torch = pytest.importorskip("torch")
    options = argparse.Namespace(rate=0.1, names=["a"])
    file = written({"args": options, "w": genesis.ones(2)}, format="torch")
    theirs = torch.load(file, weights_only=False)
    assert theirs["args"] == options and theirs["w"].tolist() == [1.0, 1.0]
    file = io.BytesIO()
    torch.save({"args": options, "point": Point(1, torch.ones(2))}, file)
    ours = genesis.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert ours["args"] == options and ours["point"].y.tolist() == [1.0, 1.0]


def test_containers_of_a_programs_own_classes_keep_their_class():
    """As a configuration whose entries are attributes, in a checkpoint."""
    CALLS.clear()
    whole = {
        "config": Attributes(0.5),
        "lines": Lines("a", "b"),
        "order": Ordered(b=1, a=2),
        "settings": Settings(on=True),
    }
    CALLS.clear()
    again = through(whole, format="torch")
    assert again["config"].rate == 0.5 and type(again["config"]) is Attributes
    assert again["lines"] == ["a", "b"] and again["lines"].count == 2 and type(again["lines"]) is Lines and not CALLS
    assert list(again["order"].items()) == [("b", 1), ("a", 2)] and type(again["order"]) is Ordered
    assert again["settings"] == Settings(on=True) and through([..., 1], format="torch") == [..., 1]
    with pytest.raises(FileFormatError, match="Attributes, which is neither a tensor nor a container"):
        genesis.load(written(whole, format="torch"))


def test_what_a_program_says_is_safe_is_made():
    file = written({"a": Fraction(1, 3), "b": Settings(on=True), "w": genesis.ones(2)}, format="torch")
    with safe_globals([Fraction, Settings]):
        again = genesis.load(file)
        assert get_safe_globals() == [Fraction, Settings]
    assert again["a"] == Fraction(1, 3) and again["b"].on is True and again["w"].tolist() == [1, 1]
    assert get_safe_globals() == []
    file.seek(0)
    with safe_globals([Fraction]), pytest.raises(FileFormatError, match="Settings"):
        genesis.load(file)
    file.seek(0)
    allowed = [(dict, "fractions.Fraction"), Settings]  # the name is that in the file
    with safe_globals(allowed), pytest.raises(TypeError):  # what is called is what the program says
        genesis.load(file)
    clear_safe_globals()


def test_arguments_of_torch_save():
    file = written([genesis.ones(1)], pickle_protocol=4, _use_new_zipfile_serialization=False)
    assert genesis.load(file)[0].tolist() == [1]
    out = io.BytesIO()
    genesis.save([3], out, pickle)
    out.seek(0)
    assert genesis.load(out) == [3]
