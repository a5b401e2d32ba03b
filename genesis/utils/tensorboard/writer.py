"""`SummaryWriter`: what a run is watched by, written with a call for each kind."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.utils.tensorboard import embedding as embeddings
from genesis.utils.tensorboard import protos, summary
from genesis.utils.tensorboard.files import FileWriter
from genesis.utils.tensorboard.graph import graph, load_onnx_graph
from genesis.utils.tensorboard.pictures import figure_to_image
from genesis.utils.tensorboard.values import dictionary, text, whole_number


class SummaryWriter:
    """Writes what a run is watched by into a folder of event files.

    Each call makes its message first: wrong input is an error, and nothing is written. Numbers, pictures and sounds are
    tensors, arrays, or lists; ``tag`` names what is written, ``global_step`` says when in the run it was,
    ``walltime`` is the time in seconds since 1970, now if it is not given.

    Args:
        log_dir: the folder; None is one of ``runs/``, named after the time and the machine
        comment: behind that name
        purge_step: what was written at this step and later is not shown: a run goes on from there
        max_queue: how many messages wait at most
        flush_secs: for how many seconds they wait at most
        filename_suffix: the end of the files' names

    Raises:
        ModuleNotFoundError: the package tensorboard is not installed

    >>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 0.5 ** step, step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = None if purge_step is None else whole_number(purge_step, "SummaryWriter", "purge_step")
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder itself; a new one after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._file(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                started = protos.SessionLog(status=protos.SessionLog.START)
                self.file_writer.add_event(protos.Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(protos.Event(step=self.purge_step, session_log=started))
                self.purge_step = None
        return self.file_writer

    def _file(self, folder: str | os.PathLike[str]) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, message: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(message, global_step, walltime)

    def get_logdir(self) -> str | os.PathLike[str]:
        """The folder of the run."""
        return self.log_dir

    # ---- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number, in float32 (in float64 where ``new_style`` and ``double_precision`` say so)."""
        message = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(message, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one chart: each in a folder of its own, as PyTorch has them."""
        walltime = time.time() if walltime is None else walltime
        global_step = _step(global_step, "add_scalars")
        beginning = (
            f"{self._get_file_writer().get_logdir()}/{text(main_tag, 'add_scalars', 'main_tag').replace('/', '_')}"
        )
        values = dictionary(tag_scalar_dict, "add_scalars", "tag_scalar_dict")
        messages = {f"{beginning}_{tag}": summary.scalar(main_tag, value) for tag, value in values.items()}
        for folder, message in messages.items():
            if self.all_writers is not None and folder not in self.all_writers:
                self.all_writers[folder] = self._file(folder)
            self.all_writers[folder].add_summary(message, global_step, walltime)  # type: ignore[index]

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """A whole tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How numbers are distributed: ``bins`` as ``numpy.histogram`` has them, or "tensorflow" for `default_bins`,
        of which at most ``max_bins`` are kept apart.
        """
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that is counted already: the upper end of each bucket, and how many values are in it."""
        message = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(message, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """A row of the table of hyperparameters, in a folder of its own: ``run_name``, or the time."""
        messages = list(summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete))
        messages += [summary.scalar(tag, value) for tag, value in metric_dict.items()]
        name, global_step = (
            text(run_name or str(time.time()), "add_hparams", "run_name"),
            _step(global_step, "add_hparams"),
        )
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), name)) as run:
            for message in messages:
                run._add(message, global_step)

    # ---- pictures and sounds

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: uint8, or numbers from 0 to 1; ``dataformats`` names its dimensions, in any order."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Pictures of one size as a grid, eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """A picture with boxes ``(N, 4)``: xmin, ymin, xmax, ymax; and a label for each."""
        message = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(message, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib, or a list of them as a grid; each is closed then, unless ``close`` is False."""
        dataformats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Videos ``(N, time, channels, height, width)`` in a grid, as a GIF of ``fps`` frames a second."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound ``(1, samples)``: numbers from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    # ---- texts and graphs

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, which may be Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """What a model does with ``input_to_model`` (a tensor, or a tuple of arguments), in boxes of its modules."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_onnx_graph(self, prototxt: str | os.PathLike[str]) -> None:
        """The graph of an ONNX file."""
        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    # ---- points, curves and charts

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Points for the projector: ``mat`` (points, dimensions), a label for each in ``metadata`` (several with
        ``metadata_header``), and a small picture for each in ``label_img`` (points, channels, height, width).
        """
        new = embeddings.embedding(mat, metadata, label_img, global_step, tag, metadata_header)
        if not hasattr(self, "_projector_config"):
            self._projector_config = protos.ProjectorConfig()
        embeddings.write(self._get_file_writer().get_logdir(), new, self._projector_config)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of predictions from 0 to 1, where ``labels`` says what is true (1) and what is not."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A curve of precision and recall that is computed already."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        message = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of several scalars, by their tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of a scalar between two others: three tags, value, lower and upper."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Which scalars share a chart: ``{category: {chart: ["Multiline" or "Margin", tags]}}``; once for a run."""
        self._add(summary.custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points in space ``(batch, N, 3)``, with colours, or triangles between them by indices."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # ---- the files

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files; another call opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _step(global_step: Any, call: str) -> int | None:
    return None if global_step is None else whole_number(global_step, call, "global_step")


def _default_bins() -> list[float]:
    """Limits of buckets that grow by a tenth each, from 1e-12 to 1e20 and to both sides of zero."""
    bins = [1e-12]
    while bins[-1] * 1.1 < 1e20:
        bins.append(bins[-1] * 1.1)
    return [-limit for limit in reversed(bins)] + [0.0] + bins


explain_all(globals())
