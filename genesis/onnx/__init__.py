"""Models as ONNX files, under PyTorch's names: `export`.

`exporting`      the call: arguments, names, the file
`tracing`        the program, at several sizes where dimensions are dynamic
`whole`          the composites that stay one node
`builder`        nodes, initializers, and the table of what lowers each op

The rooms of the table, by subject: `elementwise`, `activations`, `reductions`, `shapes`, `indexing`, `products`,
`spatial`, `normalization`, `recurrent`. Needs the package ``onnx`` (``pip install "genesis-dl[onnx]"``) when it is called.
"""

from __future__ import annotations

from genesis.onnx.exporting import ONNXProgram, export
from genesis.onnx.whole import is_in_onnx_export

__all__ = ["ONNXProgram", "export", "is_in_onnx_export"]
