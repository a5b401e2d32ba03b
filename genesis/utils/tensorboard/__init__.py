"""Numbers, pictures and texts of a run, in files that TensorBoard shows. Needs the package ``tensorboard``.

`writer`      `SummaryWriter`: a call for each kind
`files`       event files
`summary`     the messages: scalars, tensors, histograms, pictures, sounds, texts
`charts`      ... charts, curves of precision and recall, meshes
`hparams`     ... hyperparameters
`graph`       ... models and ONNX files
`embedding`   points for the projector
`pictures`    arrays as PNG and GIF
`values`      what users give, checked
`messages`    what messages have in common
`protos`      the classes of messages, from the package
"""

from __future__ import annotations

from genesis.utils.tensorboard.files import FileWriter, RecordWriter
from genesis.utils.tensorboard.writer import SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
