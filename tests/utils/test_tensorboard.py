"""What is written is what TensorBoard reads."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import genesis
from genesis.utils.tensorboard import SummaryWriter


@pytest.fixture
def read():
    pytest.importorskip("tensorboard", reason="reads the files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return EventAccumulator(str(folder)).Reload()

    return read


def test_what_is_written_is_read(tmp_path, read):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", genesis.tensor(0.5) ** step, step)
        writer.add_histogram("weights", genesis.arange(10.0), 1)
        writer.add_text("note", "**good**", 2)
        writer.add_image("picture", genesis.rand(3, 4, 5), 0)
        writer.add_image("grey", np.zeros((4, 5), np.uint8), dataformats="HW")
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 7)
    found = read(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.25)]
    histogram = found.Histograms("weights")[0].histogram_value
    assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (10.0, 45.0, 0.0, 9.0)
    assert sum(histogram.bucket) == 10
    picture = found.Images("picture")[0]
    assert (picture.height, picture.width) == (4, 5) and picture.encoded_image_string[:4] == b"\x89PNG"
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"**good**"
    assert [e.value for e in read(tmp_path / "both_b").Scalars("both")] == [2.0]


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda w: w.add_scalar("x", genesis.ones(2)), TypeError, "add_scalar: scalar_value must be one number"),
        (lambda w: w.add_scalar("x", "y"), TypeError, "scalar_value must be numbers, got 'y'"),
        (lambda w: w.add_scalar(3, 1.0), TypeError, "add_scalar: tag must be a string, got int"),
        (lambda w: w.add_image("x", genesis.ones(2, 4, 5)), RuntimeError, "a picture has 1, 3 or 4 channels, got 2"),
        (lambda w: w.add_image("x", genesis.ones(4, 5)), RuntimeError, "CHW are 3 dimensions, the picture has 2"),
        (lambda w: w.add_image("x", genesis.ones(4, 5), dataformats="WX"), ValueError, "unknown dataformats 'WX'"),
        (lambda w: w.add_text("x", 3), TypeError, "add_text: expected a string, got int"),
        (lambda w: w.add_histogram("x", []), ValueError, "add_histogram: there are no values"),
    ],
)
def test_errors(write, error, words, tmp_path):
    pytest.importorskip("tensorboard", reason="writes the files")
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=words):
        write(writer)


def test_without_the_package(tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ModuleNotFoundError, match=r"(?s)SummaryWriter: needs the package tensorboard.*pip install"):
        SummaryWriter(tmp_path)
