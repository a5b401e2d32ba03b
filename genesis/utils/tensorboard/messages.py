"""What most messages have in common."""

from __future__ import annotations

from typing import Any

from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.values import text


def one_value(tag: Any, call: str, plugin: str = "", content: bytes = b"", **value: Any) -> Any:
    """A summary with one value; ``plugin`` is the part of TensorBoard that shows it, where its kind does not say that."""
    if plugin:
        data = protos.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        value["metadata"] = protos.SummaryMetadata(plugin_data=data)
    return protos.Summary(value=[protos.Summary.Value(tag=text(tag, call), **value)])


def shape_of(shape: tuple[int, ...]) -> Any:
    """A shape as a message."""
    dim = protos.TensorShapeProto.Dim
    return protos.TensorShapeProto(dim=[dim(size=n) for n in shape])
