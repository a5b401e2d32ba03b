"""Event files, which TensorBoard reads while they are written."""

from __future__ import annotations

import os
import time
from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.values import one_number, whole_number


def RecordWriter(writer: Any) -> Any:  # noqa: N802
    """A writer of records, with their lengths and checksums, into a file that is open: the package's own class.

    Args:
        writer: a binary file

    Raises:
        ModuleNotFoundError: the package tensorboard is not installed
    """
    return protos.RecordWriter(writer)


class FileWriter:
    """Writes messages to an event file, from a thread of its own.

    Args:
        log_dir: the folder
        max_queue: how many messages wait at most
        flush_secs: for how many seconds they wait at most
        filename_suffix: the end of the file's name

    Raises:
        ModuleNotFoundError: the package tensorboard is not installed
    """

    def __init__(
        self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = protos.EventFileWriter(os.fspath(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an ``Event`` message; its time is now, if no other is given."""
        event.wall_time = time.time() if walltime is None else one_number(walltime, "add_event", "walltime")
        if step is not None:
            event.step = whole_number(step, "add_event", "global_step")
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a ``Summary`` message."""
        self.add_event(protos.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple[Any, Any], walltime: float | None = None) -> None:
        """Write a ``GraphDef`` message, and a ``RunMetadata`` message."""
        graph, stats = graph_profile
        self.add_onnx_graph(graph, walltime)
        run = protos.TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(protos.Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a ``GraphDef`` message."""
        self.add_event(protos.Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on after `close`, in another file of the folder."""
        self.event_writer.reopen()


explain_all(globals())
