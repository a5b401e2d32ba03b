"""Charts of several scalars, curves of precision and recall, and meshes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.messages import one_value, shape_of
from genesis.utils.tensorboard.values import Array, dictionary, make_np, strings, text, whole_number


def custom_scalars(layout: Mapping[str, Mapping[str, Any]]) -> Any:
    """Which scalars share a chart.

    Args:
        layout: ``{category: {chart: ["Multiline", [tag, ...]], chart: ["Margin", [value, lower, upper]]}}``

    Raises:
        TypeError: another structure
        ValueError: another kind of chart, or a margin of not three tags
    """
    categories = [
        protos.Category(
            title=title, chart=[_chart(name, *_kind_and_tags(name, chart)) for name, chart in charts.items()]
        )
        for title, charts in [
            (title, dictionary(charts, "add_custom_scalars", f"layout[{title!r}]"))
            for title, charts in dictionary(layout, "add_custom_scalars", "layout").items()
        ]
    ]
    content = protos.Layout(category=categories).SerializeToString()
    proto = protos.TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=shape_of(()))
    return one_value("custom_scalars__config__", "add_custom_scalars", "custom_scalars", tensor=proto)


def _kind_and_tags(name: str, chart: Any) -> tuple[str, list[str]]:
    call = "add_custom_scalars"
    if not isinstance(chart, list | tuple) or len(chart) != 2:
        raise ArgumentError(message(call, f"chart {name!r} must be [kind, tags], got {described(chart)}"))
    kind, tags = chart[0], strings(chart[1], call, f"the tags of {name!r}")
    if kind not in ("Multiline", "Margin"):
        raise ArgumentValueError(message(call, f"chart {name!r} is {described(kind)}", hint="Multiline or Margin"))
    if kind == "Margin" and len(tags) != 3:
        raise ArgumentValueError(message(call, f"a margin has three tags, value, lower and upper; got {len(tags)}"))
    return kind, tags


def _chart(title: str, kind: str, tags: list[str]) -> Any:
    if kind == "Multiline":
        return protos.Chart(title=title, multiline=protos.MultilineChartContent(tag=tags))
    margin = protos.MarginChartContent
    series = margin.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return protos.Chart(title=title, margin=margin(series=[series]))


def _curve(tag: str, call: str, num_thresholds: int, rows: Array) -> Any:
    content = protos.PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    proto = protos.TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=shape_of(rows.shape))
    return one_value(tag, call, "pr_curves", content, tensor=proto)


def _thresholds(num_thresholds: Any, call: str) -> int:
    """How many there are; of more than 127 as many, as in PyTorch."""
    count = whole_number(num_thresholds, call, "num_thresholds")
    if count < 2:
        raise ArgumentValueError(message(call, f"num_thresholds must be at least 2, got {count}"))
    return min(count, 127)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """A curve of precision and recall that is computed already: six rows, with a number for each threshold."""
    call = "add_pr_curve_raw"
    given = {"tp": tp, "fp": fp, "tn": tn, "fn": fn, "precision": precision, "recall": recall}
    rows = [make_np(row, call, what) for what, row in given.items()]
    if {row.shape for row in rows} != {(len(rows[0]),)}:
        shapes = ", ".join(str(row.shape) for row in rows)
        raise ShapeError(message(call, f"six rows of one length are needed, got {shapes}"))
    return _curve(tag, call, _thresholds(num_thresholds, call), np.stack(rows))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall at each of some thresholds.

    Args:
        tag: its name
        labels: what is true: 0 or 1 for each element
        predictions: from 0 to 1, of the same shape
        num_thresholds: from 0 to 1, in equal steps; at most 127
        weights: of the elements; None counts each as 1

    Raises:
        ValueError: labels or predictions that are not such
        RuntimeError: of different shapes
    """
    count = _thresholds(num_thresholds, "add_pr_curve")
    return _curve(tag, "add_pr_curve", count, compute_curve(labels, predictions, count, weights))


def compute_curve(labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Array:
    """True and false positives, true and false negatives, precision and recall ``(6, num_thresholds)``.

    >>> compute_curve([1, 0, 1], [0.9, 0.6, 0.2], 3)[:2]
    array([[2., 1., 0.],
           [1., 1., 0.]])
    """
    call = "add_pr_curve"
    true = make_np(labels, call, "labels").astype(np.float64)
    predicted = make_np(predictions, call, "predictions")
    weight = np.float64(1) if weights is None else make_np(weights, call, "weights").astype(np.float64)
    if true.shape != predicted.shape or not true.size:
        raise ShapeError(
            message(call, f"a label for each prediction is needed, got {true.shape} and {predicted.shape}")
        )
    for what, values in (("labels", true), ("predictions", predicted)):
        if not ((values >= 0) & (values <= 1)).all():
            raise ArgumentValueError(message(call, f"{what} must be from 0 to 1"))
    if weight.size != 1 and weight.shape != true.shape:
        raise ShapeError(message(call, f"a weight for each prediction is needed, got {weight.shape}"))
    buckets = np.floor(predicted * (num_thresholds - 1)).astype(np.int32)

    def at_least(weights: Array) -> Array:
        """The weight of what is predicted to be at each threshold or above."""
        counts, _ = np.histogram(buckets, num_thresholds, (0, num_thresholds - 1), weights=weights)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(true * weight), at_least((1 - true) * weight)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision, recall = tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Mapping[str, Any] | None,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """Points in space, or triangles between them.

    Args:
        tag: its name
        vertices: ``(batch, N, 3)``
        colors: ``(batch, N, 3)``, from 0 to 255, or None
        faces: ``(batch, triangles, 3)``, indices of vertices, or None
        config_dict: classes of three.js and their options
        display_name, description: what is shown of it

    Raises:
        RuntimeError: other shapes
        TypeError: a configuration that is no JSON
    """
    call, kinds = "add_mesh", protos.MeshPluginData
    try:
        config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ArgumentError(message(call, f"config_dict is not what JSON can say ({error})")) from error
    parts = [
        (make_np(x, call, what), kind)
        for what, x, kind in (("vertices", vertices, kinds.VERTEX), ("faces", faces, kinds.FACE), ("colors", colors, kinds.COLOR))
        if x is not None or what == "vertices"
    ]  # fmt: skip
    for array, kind in parts:
        if array.ndim != 3 or array.shape[2] != 3 or array.shape[0] != parts[0][0].shape[0]:
            what = kinds.ContentType.Name(kind).lower()
            raise ShapeError(message(call, f"each part is (batch, N, 3), got {array.shape} for {what}"))
    plugin = protos.tensorboard("plugins.mesh.metadata")
    present = plugin.get_components_bitmask([kind for _, kind in parts])
    values = []
    for array, kind in parts:
        metadata = plugin.create_summary_metadata(
            text(tag, call), display_name, kind, present, array.shape, description, json_config=config
        )
        proto = protos.TensorProto(
            dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=shape_of(array.shape)
        )
        values.append(protos.Summary.Value(tag=plugin.get_instance_name(tag, kind), tensor=proto, metadata=metadata))
    return protos.Summary(value=values)


explain_all(globals())
