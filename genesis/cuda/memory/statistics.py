"""How much memory is in use, and how often the driver was asked for it: plain numbers, kept as blocks come and go."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Gauge:
    """A quantity: what it is, the most that it was, and what was added (``allocated``) and taken in all."""

    current: int = 0
    peak: int = 0
    freed: int = 0
    before: int = 0  # what it was when counting began

    @property
    def allocated(self) -> int:
        return self.current - self.before + self.freed

    def reset_totals(self) -> None:
        self.before, self.freed = self.current, 0


GAUGES = {
    "allocation": "blocks in use",
    "allocated_bytes": "their bytes",
    "requested_bytes": "bytes that were asked for",
    "segment": "segments of the driver",
    "reserved_bytes": "their bytes",
    "active": "blocks in use, kept for the next call of their size, or waiting for another stream",
    "active_bytes": "their bytes",
}
COUNTS = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free")


@dataclass(slots=True)
class Statistics:
    """The gauges of an allocator, and how often it did what takes long."""

    gauges: dict[str, Gauge] = field(default_factory=lambda: {name: Gauge() for name in GAUGES})
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    def of_blocks(self) -> tuple[Gauge, Gauge, Gauge]:
        """How many blocks are in use, their bytes, and the bytes that were asked for: what every tensor changes."""
        gauges = self.gauges
        return gauges["allocation"], gauges["allocated_bytes"], gauges["requested_bytes"]

    def add(self, **amounts: int) -> None:
        for name, amount in amounts.items():
            gauge = self.gauges[name]
            gauge.current = current = gauge.current + amount
            if current > gauge.peak:
                gauge.peak = current

    def take(self, **amounts: int) -> None:
        for name, amount in amounts.items():
            gauge = self.gauges[name]
            gauge.current -= amount
            gauge.freed += amount

    def reset_peaks(self) -> None:
        for gauge in self.gauges.values():
            gauge.peak = gauge.current

    def reset_totals(self) -> None:
        """Count what is added, taken and tried from now on."""
        for gauge in self.gauges.values():
            gauge.reset_totals()
        self.counts.update(dict.fromkeys(COUNTS, 0))

    def as_dict(self) -> dict[str, int]:
        """Under PyTorch's names, ``allocated_bytes.all.peak`` and so on."""
        out = {}
        for name, gauge in self.gauges.items():
            for part in ("current", "peak", "allocated", "freed"):
                out[f"{name}.all.{part}"] = getattr(gauge, part)
        return {**dict(sorted(out.items())), **self.counts}
