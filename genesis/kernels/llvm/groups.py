"""LLVM code for group norm of float32 arrays (examples, channels, places): as `channels`, which see.

A group is ``examples`` channels that are next to each other; of each array of numbers for channels there are
``channels`` groups, then they begin again.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.kernels.llvm.channels import SIZES, Channels

FORWARD = ("x", "weight", "bias", "rows", "out", "root", "eps")
BACKWARD = ("g", "rows", "weight", "root", "gx", "along", "total")

__all__ = ["BACKWARD", "FORWARD", "SIZES", "backward", "forward"]


def forward(lanes: int) -> str:
    """The function ``forward``: groups from ``first`` to ``last``."""
    code = _Groups(lanes)
    eps = code.put("load double, ptr %eps, align 8")
    with code.loop("%first", "%last", "1") as group:
        middle, variance = code.mean_and_variance(group.index)
        mean = code.everywhere(middle)
        root = code.put(f"call double @llvm.sqrt.f64(double {code.put(f'fadd double {variance}, {eps}')})")
        code.put_number(root, "%root", group.index)
        scale = code.everywhere(code.put(f"fdiv double 1.0, {root}"))
        with code.loop("0", "%examples", "1") as member:
            parameter = code.parameter(group.index, member.index)
            w, b = code.spread("%weight", parameter), code.spread("%bias", parameter)

            def write(at: str, new: str | None, s: Sequence[str], w: str = w, b: str = b) -> list[str]:
                row = code.narrow(code.wide_two("fmul", code.away(at, mean), scale))
                code.store(row, "%rows", at)
                code.store(code.fma(row, w, b), "%out", at)
                return []

            code.vectors(code.start(group.index, member.index), write, [])
    return code.function("forward", FORWARD, SIZES)


def backward(lanes: int) -> str:
    """The function ``backward``: the gradient, and for each channel of each example the sums of ``g rows`` and of ``g``."""
    code, fresh = _Groups(lanes), "zeroinitializer"

    def add(at: str, new: str | None, s: Sequence[str]) -> list[str]:
        g, row = code.wide(code.load("%g", at)), code.wide(code.load("%rows", at))
        return [code.counted("fadd", s[0], code.wide_two("fmul", g, row), new), code.counted("fadd", s[1], g, new)]

    with code.loop("%first", "%last", "1") as group:
        with code.loop("0", "%examples", "1", [fresh, fresh], code.doubles) as member:
            sums = code.vectors(code.start(group.index, member.index), add, [fresh, fresh])
            w = code.wide(code.spread("%weight", code.parameter(group.index, member.index)))
            channel = code.add(code.times(group.index, "%examples"), member.index)
            for total, name in zip(sums, ("%along", "%total"), strict=True):
                code.put_number(code.total(total), name, channel)
            weighted = [code.wide_two("fmul", total, w) for total in sums]
            member.next = [code.wide_two("fadd", a, b) for a, b in zip(member.values, weighted, strict=True)]
        along, total = (code.mean(s) for s in member.values)
        less = code.put(f"fneg double {along}")
        factor = code.put(f"fdiv double 1.0, {code.double('%root', group.index)}")
        part, mean, scale = (code.narrow(code.everywhere(x)) for x in (less, total, factor))
        with code.loop("0", "%examples", "1") as member:
            own = code.spread("%weight", code.parameter(group.index, member.index))

            def write(at: str, new: str | None, s: Sequence[str], w: str = own) -> list[str]:
                change = code.minus(code.mul(code.load("%g", at), w), mean)
                code.store(code.mul(code.fma(code.load("%rows", at), part, change), scale), "%gx", at)
                return []

            code.vectors(code.start(group.index, member.index), write, [])
    return code.function("backward", BACKWARD, SIZES)


class _Groups(Channels):
    """Code that goes through all places of a group."""

    def start(self, channel: str, example: str) -> str:
        return self.times(self.add(self.times(channel, "%examples"), example), "%size")

    def parameter(self, group: str, member: str) -> str:
        """Which channel of the parameters a channel of a group is."""
        return self.add(self.times(self.put(f"srem i64 {group}, %channels"), "%examples"), member)
