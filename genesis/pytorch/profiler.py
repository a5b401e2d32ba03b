"""``torch.autograd.profiler.profile``, the older form of `genesis.profiler.profile`."""

from __future__ import annotations

from typing import Any

import genesis.profiler


class profile(genesis.profiler.profile):  # noqa: N801
    """Record what runs inside, unless ``enabled`` is False; options that are for GPUs have no effect.

    >>> import genesis
    >>> from genesis.pytorch.profiler import profile
    >>> with profile(record_shapes=True, use_cuda=False) as p:
    ...     y = genesis.ones(3).exp()
    >>> [event.key for event in p.key_averages() if event.key == "exp"]
    ['exp']
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, **others: Any) -> None:  # fmt: skip
        super().__init__(record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack)
        self.enabled = enabled

    def __enter__(self) -> profile:
        if self.enabled:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            self.stop()

    @property
    def function_events(self) -> list[genesis.profiler.Event]:
        """What was recorded."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all of it, in microseconds."""
        return self.key_averages().self_cpu_time_total

    def total_average(self) -> float:
        """The mean time of an event."""
        return self.key_averages().total_average()

    def table(self, *args: Any, **options: Any) -> str:
        """Each event in a line."""
        averages = genesis.profiler.Averages([genesis.profiler.Average([event]) for event in self.events()])
        return averages.table(*args, **options)

    def __str__(self) -> str:
        return self.table()
