"""The messages that TensorBoard reads, by their names: its modules are imported when a writer needs them."""

from __future__ import annotations

import importlib
from typing import Any

from genesis.base.errors import MissingImport, message

_MODULES = {
    "compat.proto.attr_value_pb2": "AttrValue",
    "compat.proto.event_pb2": "Event SessionLog TaggedRunMetadata",
    "compat.proto.config_pb2": "RunMetadata",
    "compat.proto.graph_pb2": "GraphDef",
    "compat.proto.node_def_pb2": "NodeDef",
    "compat.proto.step_stats_pb2": "DeviceStepStats StepStats",
    "compat.proto.summary_pb2": "HistogramProto Summary SummaryMetadata",
    "compat.proto.tensor_pb2": "TensorProto",
    "compat.proto.tensor_shape_pb2": "TensorShapeProto",
    "compat.proto.versions_pb2": "VersionDef",
    "plugins.custom_scalar.layout_pb2": "Category Chart Layout MarginChartContent MultilineChartContent",
    "plugins.hparams.api_pb2": "DataType Experiment HParamInfo MetricInfo MetricName Status",
    "plugins.hparams.plugin_data_pb2": "HParamsPluginData SessionEndInfo SessionStartInfo",
    "plugins.mesh.plugin_data_pb2": "MeshPluginData",
    "plugins.pr_curve.plugin_data_pb2": "PrCurvePluginData",
    "plugins.projector.projector_config_pb2": "EmbeddingInfo ProjectorConfig",
    "plugins.text.plugin_data_pb2": "TextPluginData",
    "summary.writer.event_file_writer": "EventFileWriter",
    "summary.writer.record_writer": "RecordWriter",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def tensorboard(name: str) -> Any:
    """A module of the package tensorboard.

    Raises:
        ModuleNotFoundError: it is not installed
    """
    try:
        return importlib.import_module(f"tensorboard.{name}")
    except ModuleNotFoundError as error:
        raise MissingImport(
            message("SummaryWriter", f"needs the package tensorboard ({error})", hint="pip install tensorboard")
        ) from error


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(tensorboard(_MODULE_OF[name]), name)
