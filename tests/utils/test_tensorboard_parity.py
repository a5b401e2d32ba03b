"""The events of a run are those that PyTorch writes for the same calls, byte for byte."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import genesis
import genesis.utils.tensorboard.summary as ours
from genesis.utils.tensorboard import SummaryWriter

torch = pytest.importorskip("torch", reason="writes the events that ours are compared with")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("tensorboard", reason="both write with it")
    import torch.utils.tensorboard.summary as theirs
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.random((3, 12, 10), np.float32)
BYTES = (PICTURE * 255).astype(np.uint8)
VALUES = RANDOM.standard_normal(1000)
COUNTS = RANDOM.integers(0, 9, (4, 5))
LABELS, PREDICTED = RANDOM.integers(0, 2, (3, 40)), RANDOM.random((3, 40), np.float32)
VERTICES = RANDOM.random((1, 4, 3), np.float32)
POINTS = RANDOM.standard_normal((3, 4)).astype(np.float32)

CALLS = {
    "scalar": lambda w, t: w.add_scalar("a/b", 0.1, 3),
    "scalar of a tensor": lambda w, t: w.add_scalar("/a", t(np.float32([[0.1]])), t(np.array(3)), walltime=12.5),
    "scalar of new style": lambda w, t: w.add_scalar("a", 0.1, new_style=True),
    "scalar in float64": lambda w, t: w.add_scalar("a", 0.1, new_style=True, double_precision=True),
    "scalar in float64, of old style": lambda w, t: w.add_scalar("a", 1e300 * 0 + 2, double_precision=True),
    "scalar that is infinite": lambda w, t: [w.add_scalar("a", x) for x in (np.nan, -np.inf, True, np.int64(3))],
    "scalars": lambda w, t: w.add_scalars("both/of", {"a": 1.0, "b": t(np.float64(2))}, 7, 1.5),
    "histogram": lambda w, t: w.add_histogram("h", t(VALUES), 1),
    "histogram of integers": lambda w, t: w.add_histogram("h", t(COUNTS)),
    "histogram of one value": lambda w, t: w.add_histogram("h", t(np.zeros(3))),
    "histogram of a scalar": lambda w, t: w.add_histogram("h", 2.5),
    "histogram of a list's bins": lambda w, t: w.add_histogram("h", t(VALUES), bins=[-3, -1, 0, 0.5, 4]),
    "histogram beyond its bins": lambda w, t: w.add_histogram("h", t(VALUES), bins=[0, 0.5, 1]),
    **{f"histogram by {rule}": lambda w, t, rule=rule: w.add_histogram("h", t(VALUES), bins=rule)
       for rule in ("auto", "fd", "doane", "scott", "rice", "sturges", "sqrt", 7)},
    **{f"histogram of {n} bins": lambda w, t, n=n: w.add_histogram("h", t(VALUES), 2, max_bins=n, walltime=1.0)
       for n in (1, 2, 7, 50, 511, 1000, 5000)},
    "raw histogram": lambda w, t: w.add_histogram_raw("h", 0, 4, 9, 12.5, 40, t(np.array([1.0, 2, 3])), [2, 3, 4], 5),
    "text": lambda w, t: w.add_text("note", "**größer**", 2),
    "picture": lambda w, t: w.add_image("p", t(PICTURE), 0),
    "picture in bytes": lambda w, t: w.add_image("p", t(BYTES.transpose(1, 2, 0)), 0, dataformats="HWC"),
    "picture beyond 1": lambda w, t: w.add_image("p", t(PICTURE * 3 - 1)),
    "picture of bools": lambda w, t: w.add_image("p", t(PICTURE > 0.5)),
    "grey picture": lambda w, t: w.add_image("p", t(PICTURE[:1])),
    "picture without channels": lambda w, t: w.add_image("p", t(PICTURE[0]), dataformats="WH"),
    "picture of four channels": lambda w, t: w.add_image("p", t(np.concatenate([BYTES, BYTES[:1]])), 0),
    "picture of two channels": lambda w, t: w.add_image("p", t(BYTES[:2]), 0),
    "pictures": lambda w, t: w.add_images("p", t(RANDOM_PICTURES), 0),
    "grey pictures": lambda w, t: w.add_images("p", t(RANDOM_PICTURES[:2, :1].transpose(0, 2, 3, 1)), dataformats="NHWC"),
    "boxes": lambda w, t: w.add_image_with_boxes("p", t(PICTURE), t(np.array([[1, 1, 8, 9], [0, 0, 3.5, 3]])), 1),
    "boxes with labels": lambda w, t: w.add_image_with_boxes(
        "p", t(np.tile(BYTES, (1, 8, 8))), t(np.array([[1, 30, 58, 69], [0, 0, 23, 40]])), rescale=2, labels=["cat", ""]),
    "box with a label": lambda w, t: w.add_image_with_boxes(
        "p", t(np.tile(BYTES, (1, 8, 8))), t(np.array([[1, 30, 58, 69]])), rescale=0.5, labels="cat"),
    "sound": lambda w, t: w.add_audio("s", t(RANDOM_SOUND), 1, 8000),
    "sound of integers": lambda w, t: w.add_audio("s", t(np.array([[1, 0, -1]]))),
    "custom scalars": lambda w, t: w.add_custom_scalars(
        {"one": {"a": ["Multiline", ["x", "y"]], "b": ["Margin", ["x", "y", "z"]]}, "two": {"c": ["Multiline", []]}}),
    "multiline chart": lambda w, t: w.add_custom_scalars_multilinechart(["a", "b"], "c", "d"),
    "margin chart": lambda w, t: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "curve": lambda w, t: w.add_pr_curve("c", t(LABELS), t(PREDICTED), 3),
    "weighted curve": lambda w, t: w.add_pr_curve("c", t(LABELS), t(PREDICTED), num_thresholds=20, weights=PREDICTED),
    "curve of many thresholds": lambda w, t: w.add_pr_curve("c", t(LABELS > 0), t(PREDICTED), num_thresholds=500),
    "raw curve": lambda w, t: w.add_pr_curve_raw("c", *[t(row) for row in np.arange(30.0).reshape(6, 5)], 1, 5),
    "mesh": lambda w, t: w.add_mesh("m", t(VERTICES), global_step=2),
    "coloured mesh": lambda w, t: w.add_mesh(
        "m", t(VERTICES), t((VERTICES * 255).astype(np.uint8)), t(np.array([[[0, 1, 2], [1, 2, 3]]])), {"b": 1, "a": {}}),
    "hyperparameters": lambda w, t: w.add_hparams(
        {"lr": 0.1, "n": 3, "name": "adam", "bias": True, "none": None, "t": t(np.array([2.5]))}, {"loss": 0.5, "acc": 1},
        run_name="run", global_step=4),
    "hyperparameters of domains": lambda w, t: w.add_hparams(
        {"lr": 0.1, "name": "adam", "b": False}, {}, {"lr": [0.1, 0.2], "name": ["adam", "sgd"], "b": [True]}, "run"),
    "points": lambda w, t: [w.add_embedding(t(POINTS)), w.add_embedding(t(POINTS), global_step=3, tag="a/b\\c%")],
    "points with labels": lambda w, t: w.add_embedding(
        t(POINTS), ["a", 2, "c"], t(RANDOM_PICTURES[:3].clip(0, 1)), global_step=12345),
    "points with columns": lambda w, t: w.add_embedding(
        t(POINTS.astype(np.float64)), [["a", 1], ["b", 2], ["c", 3]], tag="x", metadata_header=["name", "n"]),
    "after closing": lambda w, t: [w.add_scalar("a", 1), w.close(), w.add_scalar("a", 2)],
}  # fmt: skip
RANDOM_PICTURES = RANDOM.random((11, 3, 4, 4), np.float32) * 1.2
RANDOM_SOUND = (RANDOM.random((1, 200), np.float32) - 0.5) * 2
DTYPES = "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 bool complex64 complex128"


def written(folder: Path) -> list[tuple[str, object]]:
    """What is in the files of a folder, by their names; events without their time, if it is that of the test."""
    content = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder)
        if "tfevents" not in path.name:
            content.append((str(name), path.read_bytes()))
            continue
        for event in EventFileLoader(str(path)).Load():
            if event.wall_time > 100:
                event.wall_time = 0
            content.append((str(name.parent), event.SerializeToString(deterministic=True)))
    return sorted(content, key=lambda each: each[0])


@pytest.mark.parametrize("call", CALLS)
def test_events(call, tmp_path):
    for name, writer, tensor in (
        ("ours", SummaryWriter, genesis.tensor),
        ("theirs", torch.utils.tensorboard.SummaryWriter, torch.tensor),
    ):
        with writer(tmp_path / name) as w:
            CALLS[call](w, tensor)
    ours, theirs = written(tmp_path / "ours"), written(tmp_path / "theirs")
    assert len(theirs) > 1
    for a, b in zip(ours, theirs, strict=True):
        assert a == b, (Event.FromString(a[1]), Event.FromString(b[1]))


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_tensors(dtype):
    data = [[1.5, 0, -2], [3, 2, 1]] if dtype != "uint8" else [[1, 0, 200]]
    a = ours.tensor_proto("t", genesis.tensor(data).to(getattr(genesis, dtype)))
    assert a == theirs.tensor_proto("t", torch.tensor(data).to(getattr(torch, dtype)))
    one = ours.tensor_proto("t", genesis.tensor(1).to(getattr(genesis, dtype)))
    assert one == theirs.tensor_proto("t", torch.tensor(1).to(getattr(torch, dtype)))


def test_purged_steps(tmp_path):
    for name, writer in (("ours", SummaryWriter), ("theirs", torch.utils.tensorboard.SummaryWriter)):
        with writer(tmp_path / name, purge_step=5, filename_suffix=".x") as w:
            w.add_scalar("a", 1.0, 5)
            assert w.purge_step is None
    assert written(tmp_path / "ours") == written(tmp_path / "theirs")


def test_onnx_graphs(tmp_path):
    pytest.importorskip("onnx")
    from torch.utils.tensorboard._onnx_graph import load_onnx_graph as their_graph

    from genesis.utils.tensorboard.graph import load_onnx_graph

    path = tmp_path / "model.onnx"
    genesis.onnx.export(
        genesis.nn.Sequential(genesis.nn.Conv2d(2, 3, 3), genesis.nn.ReLU()), (genesis.ones(1, 2, 5, 5),), path
    )
    assert load_onnx_graph(path) == their_graph(str(path))


def test_what_both_have(tmp_path):
    """All public names, and their arguments with their defaults, in their order."""
    import inspect

    def signatures(thing, names):
        return {
            name: [(p.name, p.default) for p in inspect.signature(getattr(thing, name)).parameters.values()]
            for name in names
        }

    class_ = torch.utils.tensorboard.SummaryWriter
    methods = [name for name in vars(class_) if not name.startswith("_")] + ["__init__", "_get_file_writer"]
    assert signatures(SummaryWriter, methods) == signatures(class_, methods)
    writers = genesis.utils.tensorboard.FileWriter, torch.utils.tensorboard.FileWriter
    methods = [name for name in vars(writers[1]) if not name.startswith("_")]
    assert signatures(writers[0], methods) == signatures(writers[1], methods)
    assert signatures(ours, theirs.__all__).keys() == set(ours.__all__)
    with SummaryWriter(tmp_path / "ours") as a, class_(tmp_path / "theirs") as b:
        assert a.default_bins == b.default_bins
        a.add_scalars("x", {"y": 1}), b.add_scalars("x", {"y": 1})
        assert len(a.all_writers) == len(b.all_writers) == 2
        assert a.get_logdir() == tmp_path / "ours"
    assert a.all_writers is b.all_writers is None
