"""What the author of a device needs: a class of arrays, their memory, and kernels for ops. ``docs/guide/devices.md``
builds one.

    class MyArray(DeviceArray): ...             shape, dtype, device, base
    class MyMemory(Memory): ...                 eight methods, see `genesis.arrays.memory`
    register(MyMemory())                        from now on genesis.device("mine") is there
    for op in primitives(): attach(op, MyArray, kernel_of(op))

`genesis.testing.check_memory` and `genesis.testing.check_device` say whether a device does what Genesis expects of one.
"""

from __future__ import annotations

from genesis.arrays.memory import DeviceArray, Memory, memory_of, register
from genesis.core.call.kernels import attach, on_host
from genesis.core.call.kinds import OPAQUE
from genesis.core.call.op import REGISTRY, Op


def primitives() -> list[Op]:
    """The ops that a device needs kernels for: all but composites, users' own, and those that every device has from its
    memory (`clone`, ``.to``).

    >>> [op.name for op in primitives()][:3]
    ['abs', 'acos', 'acosh']
    """
    return sorted(
        [
            op
            for op in REGISTRY.values()
            if not (op.kind.composed or op.kind.draws or op.kind is OPAQUE) and DeviceArray not in op.kernels
        ],
        key=lambda op: op.name,
    )


__all__ = ["DeviceArray", "Memory", "attach", "memory_of", "on_host", "primitives", "register"]
