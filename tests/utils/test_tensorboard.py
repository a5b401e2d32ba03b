"""What is written is what TensorBoard reads; what is wrong is refused before anything is written."""

from __future__ import annotations

import doctest
import io
import sys
import warnings
import wave

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.utils import tensorboard
from genesis.utils.tensorboard import SummaryWriter, summary
from genesis.utils.tensorboard.pictures import make_grid, video_frames


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
        writer.add_tensor("all", genesis.tensor([[1.5, 2.0]]), 3)
    found = read(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.25)]
    histogram = found.Histograms("weights")[0].histogram_value
    assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (10.0, 45.0, 0.0, 9.0)
    assert sum(histogram.bucket) == 10
    picture = found.Images("picture")[0]
    assert (picture.height, picture.width) == (4, 5) and picture.encoded_image_string[:4] == b"\x89PNG"
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"**good**"
    assert found.Tensors("all")[0].tensor_proto.float_val == [1.5, 2.0]
    assert [e.value for e in read(tmp_path / "both_b").Scalars("both")] == [2.0]


def test_what_is_read_of_pictures_and_sounds(tmp_path, read):
    pillow = pytest.importorskip("PIL.Image")
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    videos = colours[np.random.default_rng(0).integers(0, 4, (3, 5, 6, 8))].transpose(0, 1, 4, 2, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("picture", genesis.tensor(videos[0, 0]))
        writer.add_video("video", genesis.tensor(videos), fps=5)
        writer.add_audio("sound", genesis.tensor([[0.0, 1.0, -1.0, 0.5]]), 1, 8000)
    found = read(tmp_path)
    picture = pillow.open(io.BytesIO(found.Images("picture")[0].encoded_image_string))
    assert np.array_equal(np.asarray(picture), videos[0, 0].transpose(1, 2, 0))
    video = pillow.open(io.BytesIO(found.Images("video")[0].encoded_image_string))
    assert (video.n_frames, video.info["duration"], video.size) == (5, 200, (32, 6))
    for i in range(5):
        video.seek(i)
        side_by_side = np.concatenate([*videos[:, i].transpose(0, 2, 3, 1), np.zeros((6, 8, 3), np.uint8)], 1)
        assert np.array_equal(np.asarray(video.convert("RGB")), side_by_side)
    sound = found.Audio("sound")[0]
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnframes(), file.getnchannels()) == (8000, 4, 1)
        assert np.frombuffer(file.readframes(4), "<i2").tolist() == [0, 32767, -32767, 16383]


def test_grids():
    ones = np.ones((3, 1, 2, 2), np.uint8)
    assert make_grid(ones, 2)[0].tolist() == [[1, 1, 1, 1]] * 2 + [[1, 1, 0, 0]] * 2
    frames = video_frames(np.arange(6, dtype=np.uint8).reshape(6, 1, 1, 1, 1), "add_video")
    assert frames[0, :, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout())
        self.head = nn.Linear(4, 2)

    def forward(self, x, scale):
        return self.head(self.body(x)) * scale, x.sum()


def test_graphs(tmp_path, read, capsys):
    model = Net()
    model.body[2].eval()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (genesis.ones(5, 3), genesis.tensor(2.0)), verbose=True)
    assert "linear" in capsys.readouterr().out
    assert model.training and model.body.training and not model.body[2].training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    found = read(tmp_path)
    nodes = {node.name: node for node in found.Graph().node}
    assert {name.rpartition("_")[0]: [*node.input] for name, node in nodes.items() if node.op == "linear"} == {
        "Net/Sequential[body]/Linear[0]/linear": ["input/x0", *[f"Net/Sequential[body]/Linear[0]/{p}" for p in ("weight", "bias")]],
        "Net/Linear[head]/linear": ["Net/Sequential[body]/ReLU[1]/relu_1", "Net/Linear[head]/weight", "Net/Linear[head]/bias"],
    }  # fmt: skip
    shape = nodes["Net/Linear[head]/weight"].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [2, 4]
    assert [nodes[f"output/output.{i}"].input[0].partition("_")[0] for i in (1, 2)] == ["Net/mul", "Net/sum"]
    assert all(name in nodes for node in nodes.values() for name in node.input)
    assert found.RunMetadata("step1").step_stats.dev_stats[0].device == "/device:CPU:0"


def test_graph_of_a_model_that_fails(tmp_path):
    pytest.importorskip("tensorboard", reason="writes the files")
    model = Net()
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError):
        writer.add_graph(model, (genesis.ones(5, 4), genesis.tensor(2.0)))
    assert model.training and not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_graph_of_a_function_and_of_several_results(tmp_path, read):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(lambda x: genesis.linalg.eigh(x)[1] + 1, genesis.eye(2))
    nodes = {node.op: node for node in read(tmp_path).Graph().node}
    assert nodes["add"].input[0] == f"{nodes['hermitian_eigenvectors'].name}:1"


def test_onnx_graphs(tmp_path, read):
    pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    genesis.onnx.export(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (genesis.ones(2, 3),), path)
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_onnx_graph(path)
    ops = [node.op for node in read(tmp_path / "run").Graph().node]
    assert ops.count("Variable") == 2 and {"Gemm", "Relu"} <= {*ops}


def test_hyperparameters(tmp_path, read):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": genesis.tensor(0.5), "name": "adam", "left": None}, {"loss": 2.0}, run_name="one")
    found = read(tmp_path / "one")
    assert [e.value for e in found.Scalars("loss")] == [2.0]
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    start = HParamsPluginData.FromString(found.PluginTagToContent("hparams")["_hparams_/session_start_info"])
    values = start.session_start_info.hparams
    assert {*values} == {"lr", "name"} and values["lr"].number_value == 0.5 and values["name"].string_value == "adam"


def test_points(tmp_path, read):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]), ["a", "b"], genesis.rand(2, 1, 9, 4), 3)
        with pytest.warns(UserWarning, match="is written again"):
            writer.add_embedding(np.ones((1, 2)), global_step=3)
    assert (tmp_path / "00003" / "default" / "tensors.tsv").read_text() == "1.0\t1.0\n"
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.count("embeddings {") == 2 and "single_image_dim: 9" in config


def test_figures(tmp_path, read):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figures = [pyplot.figure(figsize=(1, 2), dpi=50) for _ in range(2)]
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("one", figures[0], close=False)
        writer.add_figure("two", figures)
    assert not pyplot.get_fignums()
    sizes = [(i.height, i.width) for tag in ("one", "two") for i in read(tmp_path).Images(tag)]
    assert sizes == [(100, 50), (100, 100)]


def test_one_can_go_on_after_closing(tmp_path, read):
    writer = SummaryWriter(tmp_path)
    assert writer.all_writers == {str(tmp_path): writer.file_writer}
    writer.close()
    assert writer.all_writers is writer.file_writer is None
    writer.flush()
    writer.close()
    writer.add_scalar("a", 1.0)
    writer.close()
    assert len(read(tmp_path).Scalars("a")) == 1


def test_samples_that_are_too_loud(tmp_path):
    pytest.importorskip("tensorboard", reason="writes the files")
    with SummaryWriter(tmp_path) as writer:
        with pytest.warns(UserWarning, match="cut off"):
            writer.add_audio("s", genesis.tensor([[2.0, -np.inf]]))
        with pytest.warns(UserWarning, match="2 labels for 1 boxes are left out"):
            writer.add_image_with_boxes("p", np.ones((3, 4, 4)), np.ones((1, 4)), labels=["a", "b"])


def numbers(n):
    return genesis.ones(n)


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda w: w.add_scalar("x", numbers(2)), TypeError, "add_scalar: scalar_value must be one number"),
        (lambda w: w.add_scalar("x", "y"), TypeError, "scalar_value must be numbers, got 'y'"),
        (lambda w: w.add_scalar("x", genesis.empty(1, device="meta")), ValueError, "a meta tensor, which has no data"),
        (lambda w: w.add_scalar(3, 1.0), TypeError, "add_scalar: tag must be a string, got int"),
        (lambda w: w.add_scalar("x", 1.0, "y"), TypeError, "global_step must be numbers, got 'y'"),
        (lambda w: w.add_scalar("x", 1.0, np.nan), ValueError, "global_step must be finite, got nan"),
        (lambda w: w.add_scalar("x", 1.0, 1, "now"), TypeError, "walltime must be numbers, got 'now'"),
        (lambda w: w.add_scalars("x", {"a": 1.0, "b": None}), TypeError, "scalar_value must be numbers, got None"),
        (lambda w: w.add_scalars("x", {"a": 1.0}, "y"), TypeError, "add_scalars: global_step must be numbers"),
        (lambda w: w.add_scalars("x", [1.0]), TypeError, r"tag_scalar_dict must be a dictionary, got \[1.0\]"),
        (lambda w: w.add_tensor("x", 1.0), TypeError, "add_tensor: expected a tensor, got 1.0"),
        (lambda w: w.add_tensor("x", numbers(1).to(genesis.uint16)), ValueError, "x is genesis.uint16, which"),
        (lambda w: w.add_image("x", genesis.ones(5, 4, 5)), RuntimeError, "has 1, 2, 3 or 4 channels, got 5"),
        (lambda w: w.add_image("x", genesis.ones(3, 0, 5)), RuntimeError, r"has at least one pixel, got \(0, 5\)"),
        (lambda w: w.add_image("x", genesis.ones(4, 5)), RuntimeError, "CHW are 3 dimensions, the picture has 2"),
        (lambda w: w.add_image("x", numbers(4), dataformats="WX"), ValueError, "unknown dataformats 'WX'"),
        (lambda w: w.add_image("x", numbers(4), dataformats="HHW"), ValueError, "unknown dataformats 'HHW'"),
        (lambda w: w.add_image("x", numbers(4), dataformats=3), ValueError, "unknown dataformats 3"),
        (lambda w: w.add_images("x", genesis.ones(2, 4, 3, 3)), RuntimeError, r"\(N, 1 or 3, H, W\) with N > 0, got"),
        (lambda w: w.add_image_with_boxes("x", genesis.ones(3, 4, 4), numbers(4)), RuntimeError, r"\(N, 4\): xmin"),
        (lambda w: w.add_image_with_boxes("x", genesis.ones(3, 4, 4), genesis.ones(1, 4), rescale=0.1), ValueError,
         "rescale 0.1 leaves no pixels"),
        (lambda w: w.add_figure("x", 3), TypeError, "expected a figure of matplotlib, or a list, got 3"),
        (lambda w: w.add_video("x", genesis.ones(3, 4, 5)), RuntimeError, r"got \(3, 4, 5\)"),
        (lambda w: w.add_video("x", genesis.ones(1, 2, 3, 4, 5), fps=0), ValueError, "fps must be positive, got 0"),
        (lambda w: w.add_audio("x", genesis.ones(2, 5)), RuntimeError, r"a sound is \(1, samples\)"),
        (lambda w: w.add_audio("x", numbers(5) * np.nan), ValueError, "some samples are NaN"),
        (lambda w: w.add_audio("x", numbers(5), sample_rate=0), ValueError, "sample_rate must be positive, got 0"),
        (lambda w: w.add_text("x", 3), TypeError, "add_text: text_string must be a string, got int"),
        (lambda w: w.add_histogram("x", []), ValueError, "add_histogram: there are no values"),
        (lambda w: w.add_histogram("x", numbers(3), bins="best"), ValueError, "no histogram of these values with bins"),
        (lambda w: w.add_histogram("x", numbers(3), bins=[2, 3]), ValueError, "no value is in any of the bins"),
        (lambda w: w.add_histogram("x", numbers(3), max_bins=0), ValueError, "max_bins must be at least 1, got 0"),
        (lambda w: w.add_histogram("x", numbers(3) * np.inf, bins="auto"), ValueError, "no histogram of these values"),
        (lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1, 2], [1]), ValueError, r"limits \(2,\) and counts \(1,\)"),
        (lambda w: w.add_hparams({"a": 1}, [1]), TypeError, "metric_dict must be a dictionary"),
        (lambda w: w.add_hparams({"a": []}, {}), ValueError, "'a' must be a number, a bool, a string or a tensor"),
        (lambda w: w.add_hparams({1: 2}, {}), TypeError, "a key of hparam_dict must be a string, got int"),
        (lambda w: w.add_hparams({"a": 1}, {}, {"b": [1]}), TypeError, "'b', which is no hyperparameter"),
        (lambda w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}), TypeError, "must be a list of int, as the value is"),
        (lambda w: w.add_hparams({"a": 1}, {"m": "x"}), TypeError, "scalar_value must be numbers"),
        (lambda w: w.add_hparams({"a": 1}, {}, global_step="x"), TypeError, "add_hparams: global_step must be numbers"),
        (lambda w: w.add_graph(3, numbers(1)), TypeError, "add_graph: expected a module, got 3"),
        (lambda w: w.add_graph(nn.Linear(1, 1)), TypeError, "input_to_model is needed"),
        (lambda w: w.add_graph(nn.Linear(1, 1), 3), TypeError, "input_to_model must be a tensor or a tuple, got 3"),
        (lambda w: w.add_graph(lambda x: x.item(), numbers(1)), RuntimeError, "trace"),
        (lambda w: w.add_onnx_graph("nowhere.onnx"), FileNotFoundError, "nowhere.onnx"),
        (lambda w: w.add_embedding(numbers(3)), RuntimeError, r"mat is \(points, dimensions\), got \(3,\)"),
        (lambda w: w.add_embedding(genesis.ones(2, 3), ["a"]), RuntimeError, "2 data points and 1 labels"),
        (lambda w: w.add_embedding(genesis.ones(1, 3), 3), TypeError, "metadata must be a list, got 3"),
        (lambda w: w.add_embedding(genesis.ones(1, 3), [["a"]], metadata_header=["b", "c"]), ValueError, "2 columns"),
        (lambda w: w.add_embedding(genesis.ones(1, 3), None, genesis.ones(2, 3, 4, 4)), RuntimeError, "2 pictures"),
        (lambda w: w.add_pr_curve("x", numbers(3), numbers(2)), RuntimeError, r"got \(3,\) and \(2,\)"),
        (lambda w: w.add_pr_curve("x", numbers(3), numbers(3) * 2), ValueError, "predictions must be from 0 to 1"),
        (lambda w: w.add_pr_curve("x", numbers(3), numbers(3), weights=[1, 2]), RuntimeError, "a weight for each"),
        (lambda w: w.add_pr_curve("x", numbers(3), numbers(3), num_thresholds=1), ValueError, "at least 2, got 1"),
        (lambda w: w.add_pr_curve_raw("x", *[[1, 2]] * 5, [1]), RuntimeError, "six rows of one length are needed"),
        (lambda w: w.add_custom_scalars({"a": 3}), TypeError, r"layout\['a'\] must be a dictionary, got 3"),
        (lambda w: w.add_custom_scalars({"a": {"b": 3}}), TypeError, r"chart 'b' must be \[kind, tags\], got 3"),
        (lambda w: w.add_custom_scalars({"a": {"b": ["Pie", []]}}), ValueError, "(?s)chart 'b' is 'Pie'.*Multiline or"),
        (lambda w: w.add_custom_scalars_marginchart(["a"]), ValueError, "three tags, value, lower and upper; got 1"),
        (lambda w: w.add_custom_scalars_multilinechart("abc"), TypeError, "must be a list of strings, got 'abc'"),
        (lambda w: w.add_mesh("x", genesis.ones(4, 3)), RuntimeError, r"each part is \(batch, N, 3\), got \(4, 3\)"),
        (lambda w: w.add_mesh("x", None), TypeError, "vertices must be numbers, got None"),
        (lambda w: w.add_mesh("x", genesis.ones(1, 4, 3), config_dict={"a": {1}}), TypeError, "is not what JSON can say"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_before_anything_is_written(write, error, words, tmp_path):
    pytest.importorskip("tensorboard", reason="writes the files")
    with SummaryWriter(tmp_path) as writer:
        writer.flush()
        before = [(path, path.read_bytes() if path.is_file() else b"") for path in sorted(tmp_path.rglob("*"))]
        with pytest.raises(error, match=words):
            write(writer)
    assert [(path, path.read_bytes() if path.is_file() else b"") for path in sorted(tmp_path.rglob("*"))] == before


def test_the_example(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    exec(doctest.script_from_examples(SummaryWriter.__doc__), {"SummaryWriter": SummaryWriter})
    assert [e.value for e in read(tmp_path / "runs/first").Scalars("loss")] == [1.0, 0.5, 0.25]


def test_the_default_folder(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="writes the files")
    monkeypatch.chdir(tmp_path)
    SummaryWriter(comment="-first").close()
    assert [path.name.endswith("-first") for path in (tmp_path / "runs").iterdir()] == [True]


def test_without_the_package(tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for write in (
        lambda: SummaryWriter(tmp_path),
        lambda: summary.scalar("x", 1.0),
        lambda: tensorboard.RecordWriter(None),
    ):
        with pytest.raises(ModuleNotFoundError, match=r"(?s)SummaryWriter: needs the package tensorboard.*pip install"):
            write()
