"""Exported models compute what the models do: every layer, dynamic sizes, 16-bit floats, old and new opsets."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

pytest.importorskip("onnx", reason="exports are ONNX files")

import onnx
from layers import LAYERS, ids, x
from onnx.reference import ReferenceEvaluator

import genesis
from genesis import nn
from genesis.base.pytree import tree_flatten
from genesis.core.call.op import REGISTRY
from genesis.onnx.builder import TABLE
from genesis.onnx.whole import CONDITIONS
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of

CTC = "what it does follows from the lengths, which are values"
OTHER_AXES = {  # which axis of the inputs the examples lie along, where it is not the first
    **{name: 1 for name in LAYERS if name.startswith(("RNN(", "LSTM(", "GRU(")) and "batch_first" not in name},
    "MultiheadAttention": 1,
}
ONE_SIZE = {  # layers that are for one number of examples
    "FractionalMaxPool2d": "its random numbers have a row for each example",
    "FractionalMaxPool3d": "the same",
    "CTCLoss": CTC,
}


def flat(values):
    return [v for v in tree_flatten(values)[0] if v is not None]


def run(program, *inputs):
    """What ONNX Runtime makes of a model, or the reference where that is missing or lacks a kernel."""
    names = [i.name for i in program.model_proto.graph.input]
    feeds = {name: v.detach().numpy() for name, v in zip(names, inputs, strict=True)}
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return ReferenceEvaluator(program.model_proto).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def check(program, model, *inputs, tolerance=2e-5):
    with genesis.no_grad():
        want = flat(model(*inputs))
    got = run(program, *flat(inputs))
    assert len(got) == len(want)
    for a, w in zip(got, want, strict=True):
        w = w.detach().numpy()
        assert (a.shape, a.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(a.astype(np.float64), w.astype(np.float64), rtol=tolerance, atol=tolerance)


def made(name):
    make, inputs = LAYERS[name]
    model = make()
    return (model.eval() if isinstance(model, nn.Module) else model), inputs


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "CTCLoss"])
def test_layer(name):
    model, inputs = made(name)
    check(genesis.onnx.export(model, inputs), model, *inputs)


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ONE_SIZE])
def test_layer_at_another_number_of_examples(name):
    model, inputs = made(name)
    axis = OTHER_AXES.get(name, 0)
    axes = {f"input_{i}": {axis: "batch"} for i in range(len(flat(inputs)))}
    program = genesis.onnx.export(model, inputs, dynamic_axes=axes)
    check(program, model, *[genesis.cat([v, v, v], axis) for v in flat(inputs)])


def test_what_needs_values_is_refused():
    model, inputs = made("CTCLoss")
    with pytest.raises(RuntimeError, match="being traced"):
        genesis.onnx.export(model, inputs)


def test_every_layer_is_here():
    """Layers of `nn` that compute and are in no row, each with its reason."""
    elsewhere = {
        "Buffer", "Container", "DataParallel", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList",
        "RNNBase", "RNNCellBase", "Summary", "UninitializedBuffer", "UninitializedParameter", "LazyModuleMixin",
        "BroadcastWarning", "LinearCrossEntropyOptions",
    }  # fmt: skip
    here = {name.partition("(")[0] for name in LAYERS}
    public = {n for n in nn.__all__ if isinstance(getattr(nn, n), type) and n[0].isupper() and not n.startswith("Lazy")}
    assert public - here - elsewhere == set()


# ---- ops


def test_the_table_has_names_of_ops_only():
    assert TABLE.keys() - REGISTRY.keys() == set()
    assert CONDITIONS.keys() - TABLE.keys() == set()


ALONE = {  # ops whose samples ask for what a model would not
    "transfer": "between devices",
    "mask_places": "needs a mask with a known number of elements",
}


@pytest.mark.parametrize("name", sorted(TABLE.keys() - CONDITIONS.keys() - ALONE.keys()))
def test_op(name):
    """The samples of every primitive in the table, where they are of float32."""
    op = REGISTRY[name]
    for case in list(samples_of(op, Maker(genesis.float32)))[:4]:
        if np.dtype(np.complex128) in case.args:
            continue  # ONNX has no operators for complex numbers
        tensors = [v for v in tree_flatten((case.args, dict(case.kwargs)))[0] if isinstance(v, genesis.Tensor)]
        plain, structure = tree_flatten((case.args, dict(case.kwargs)))

        def model(*given, plain=plain, structure=structure):
            rest = iter(given)
            leaves = [next(rest) if isinstance(v, genesis.Tensor) else v for v in plain]
            args, kwargs = genesis.base.pytree.tree_unflatten(leaves, structure)
            return op.call(*args, **kwargs)

        check(genesis.onnx.export(model, tuple(tensors)), model, *tensors, tolerance=1e-4)


def test_an_op_without_a_form_is_named_with_its_line():
    def model(v):
        return genesis.special.digamma(v)

    with pytest.raises(NotImplementedError, match=r"no lowering of digamma to ONNX\n.*\n.*test_onnx.py:\d+ in model"):
        genesis.onnx.export(model, x(3))


# ---- whole models


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(4, 3)

    def forward(self, v):
        return self.head(self.features(v).mean((2, 3)))


def test_names_are_those_of_the_state_dict():
    model = Net().eval()
    program = genesis.onnx.export(model, x(2, 1, 8, 8), input_names=["image"], output_names=["scores"])
    graph = program.model_proto.graph
    assert {k for k in model.state_dict() if "num_batches" not in k} <= {i.name for i in graph.initializer}
    assert ([i.name for i in graph.input], [o.name for o in graph.output]) == (["image"], ["scores"])
    assert [n.op_type for n in graph.node] == [
        "Conv",
        "BatchNormalization",
        "Relu",
        "MaxPool",
        "ReduceMean",
        "Gemm",
        "Identity",
    ]


def test_dynamic_images():
    model = Net().eval()
    axes = {"image": {0: "batch", 2: "height", 3: "width"}}
    program = genesis.onnx.export(model, x(1, 1, 8, 8), input_names=["image"], dynamic_axes=axes)
    shape = program.model_proto.graph.input[0].type.tensor_type.shape
    assert [d.dim_param or d.dim_value for d in shape.dim] == ["batch", 1, "height", "width"]
    check(program, model, x(3, 1, 13, 6))


def test_dynamic_steps():
    model = nn.LSTM(5, 6, 2, bidirectional=True)
    program = genesis.onnx.export(model, x(4, 2, 5), dynamic_axes={"input_0": {0: "steps", 1: "batch"}})
    assert sum(n.op_type == "LSTM" for n in program.model_proto.graph.node) == 4
    for shape in ((7, 3, 5), (1, 1, 5), (2, 5, 5)):
        check(program, model, x(*shape))


def test_dynamic_text():
    """A decoder: embedding, positions that are counted, a causal mask, a size that is a product of two."""

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(7, 8), nn.Embedding(64, 8)
            self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

        def forward(self, v):
            t = v.shape[1]
            mask = genesis.ones(t, t, dtype=genesis.bool).triu(1)
            out = self.block(self.token(v) + self.place(genesis.arange(t)), src_mask=mask)
            return out.reshape(-1, 8) @ self.token.weight.t()

    model = Decoder().eval()
    axes = {"ids": {0: "batch", 1: "time"}}
    program = genesis.onnx.export(model, ids(2, 4), input_names=["ids"], dynamic_axes=axes)
    check(program, model, ids(3, 9))


def test_a_size_that_decides_is_refused():
    def model(v):
        return v.sum(0) if v.shape[0] > 3 else v[0] * 2

    with pytest.raises(NotImplementedError, match="other things at other sizes of the dynamic axes"):
        genesis.onnx.export(model, x(2, 3), dynamic_axes={"input_0": [0]})


def test_tensors_that_a_size_decides_on_are_refused():
    short, long = x(3), x(3) * 2

    def model(v):
        return v * (long if v.shape[0] > 3 else short)

    with pytest.raises(NotImplementedError, match="the model uses other tensors at other sizes of the dynamic axes"):
        genesis.onnx.export(model, x(2, 3), dynamic_axes={"input_0": [0]})


def test_a_size_that_is_no_product_is_refused():
    with pytest.raises(NotImplementedError, match="no sum of products|cannot be exported where a dynamic size decides"):
        genesis.onnx.export(
            lambda v: v.reshape(2, -1)[:, : int(math.sqrt(v.shape[0]))], x(4, 4), dynamic_axes={"input_0": [0]}
        )


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16, genesis.float64])
def test_element_types(dtype):
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3)).to(dtype)
    program = genesis.onnx.export(model, x(2, 6).to(dtype))
    kinds = {i.data_type for i in program.model_proto.graph.initializer if i.name.endswith("weight")}
    assert kinds == {onnx.helper.np_dtype_to_tensor_dtype(model[0].weight.detach().numpy().dtype)}
    got = ReferenceEvaluator(program.model_proto).run(None, {"input_0": x(2, 6).to(dtype).numpy()})[0]
    want = model(x(2, 6).to(dtype)).detach().double().numpy()
    tolerance = 1e-10 if dtype is genesis.float64 else 0.05
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


NEWEST = onnx.defs.onnx_opset_version()


@pytest.mark.parametrize("opset", range(11, NEWEST + 1))
def test_opsets(opset):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GELU(), nn.GroupNorm(2, 4), nn.GELU("tanh"), nn.AdaptiveAvgPool2d(1), nn.Mish(),
                          nn.Flatten(), nn.Linear(4, 2), nn.Softmax(-1))  # fmt: skip
    program = genesis.onnx.export(model, x(2, 1, 8, 8), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    onnx.checker.check_model(program.model_proto, full_check=True)
    check(program, model, x(2, 1, 8, 8))


SINCE = {  # what older versions have no form of: the version that has one
    **{f"bitwise_{name}": 18 for name in ("and", "not", "or", "xor")},
    **dict.fromkeys(["fold_columns", "Fold"], 18),
    **dict.fromkeys(["place", "scatter_sum"], 16),
    "scatter_combined": 18,
    "einsum_terms": 12,
}


def at(opset, name, monkeypatch, test):
    """Run a test whose exports are of a version; what it has no form of is refused with both numbers."""
    export = genesis.onnx.export
    with monkeypatch.context() as patch:
        patch.setattr(genesis.onnx, "export", lambda *args, **options: export(*args, opset_version=opset, **options))
        if opset >= SINCE.get(name, 0):
            return test(name)
        with pytest.raises(NotImplementedError, match=f"needs opset_version {SINCE[name]} or later, this is {opset}"):
            test(name)
    return None


@pytest.mark.parametrize("opset", [11, 13, 15, 17, NEWEST])
def test_layers_at_other_opsets(opset, monkeypatch):
    for name in LAYERS:
        if name != "CTCLoss":
            at(opset, name, monkeypatch, test_layer)


@pytest.mark.parametrize("opset", [11, 13, 16, NEWEST])
def test_ops_at_other_opsets(opset, monkeypatch):
    for name in sorted(TABLE.keys() - CONDITIONS.keys() - ALONE.keys()):
        at(opset, name, monkeypatch, test_op)


@pytest.mark.parametrize("opset", [11, 14])
def test_dynamic_sizes_at_old_opsets(opset, monkeypatch):
    for name in (
        "TransformerEncoderLayer",
        "LSTM(batch_first=True, bias=False)",
        "LayerNorm((4, 6), 0.001)",
        "Softmax(1)",
    ):
        at(opset, name, monkeypatch, test_layer_at_another_number_of_examples)
    at(opset, "", monkeypatch, lambda _: test_dynamic_text())


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_dynamic_sizes_at_an_old_opset(name):
    call = lambda v: getattr(genesis, name)(v, 1)  # noqa: E731
    program = genesis.onnx.export(call, x(3, 4), opset_version=11, dynamic_axes={"input_0": [0, 1]})
    check(program, call, x(5, 3))


def test_types_that_an_old_opset_does_not_take_are_refused():
    with pytest.raises(NotImplementedError, match="opset_version 11 does not take what the model has"):
        genesis.onnx.export(genesis.relu, genesis.arange(3), opset_version=11)


def test_training_mode_is_left_as_it_was_and_files_are_written(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    model[1].eval()
    genesis.onnx.export(model, x(2, 4), tmp_path / "model.onnx")
    assert [m.training for m in model.modules()] == [True, True, False, True]
    buffer = io.BytesIO()
    program = genesis.onnx.export(model, (x(2, 4),), buffer)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    assert buffer.getvalue() == program.model_proto.SerializeToString()


def test_parameters_as_inputs_and_arguments_by_name():
    model = nn.Linear(4, 3)
    program = genesis.onnx.export(model, x(2, 4), export_params=False)
    assert [i.name for i in program.model_proto.graph.input] == ["input_0", "weight", "bias"]
    double = genesis.onnx.export(lambda a, b: a - b, (x(3),), kwargs={"b": x(4)[:3]}, input_names=["a"])
    assert [i.name for i in double.model_proto.graph.input] == ["a", "input_1"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"opset_version": 10}, ValueError, "opset_version must be one of 11 to [0-9]+ .*, got 10"),
        ({"opset_version": 99}, ValueError, "opset_version must be one of 11 to [0-9]+ .*, got 99"),
        ({"input_names": ["a", "b"]}, ValueError, "input_names has 2 names"),
        ({"dynamic_axes": {"x": [0]}}, ValueError, "dynamic_axes names 'x', the inputs are input_0"),
        ({"dynamic_axes": {"input_0": [2]}}, ValueError, "input_0 has 2 dimensions, dynamic_axes names 2"),
    ],
)
def test_wrong_arguments(options, error, words):
    with pytest.raises(error, match=words):
        genesis.onnx.export(nn.Linear(4, 3), x(2, 4), **options)


def test_writes_are_refused():
    count = genesis.zeros(1)

    def model(v):
        count.add_(1)
        return v + count

    with pytest.raises(RuntimeError, match="the model writes to tensors of its own"):
        genesis.onnx.export(model, x(1))


def test_ops_are_what_they_were_after_an_export():
    genesis.onnx.export(nn.SiLU(), x(3))
    from genesis.core.graph import switches

    assert not switches.OVERRIDES and not switches.ACTIVE
