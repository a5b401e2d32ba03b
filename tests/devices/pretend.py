"""A device for tests: NumPy arrays that nobody else can see. Using one where a NumPy array is expected, or the other
way round, is an error.
"""

from __future__ import annotations

import numpy as np

from genesis.devices import DeviceArray, Memory, attach, on_host, primitives, register


class PretendArray(DeviceArray):
    __slots__ = ("_hidden", "base", "device")

    def __init__(self, hidden, device, base=None):
        assert type(hidden) is np.ndarray
        self._hidden, self.device, self.base = hidden, device, base

    @property
    def shape(self):
        return self._hidden.shape

    @property
    def dtype(self):
        return self._hidden.dtype

    def __array__(self, *_, **__):
        raise AssertionError("a NumPy array was made of one of the pretend device's")

    def __getattr__(self, name):
        raise AssertionError(f"the pretend device's arrays were asked for {name!r}, as if they were NumPy's")


class PretendMemory(Memory):
    type, arrays = "pretend", PretendArray

    def count(self):
        return 2

    def empty(self, shape, dtype, device):
        return PretendArray(np.full(shape, 77).astype(dtype), device)

    def from_host(self, array, device):
        assert type(array) is np.ndarray
        return PretendArray(np.array(array, order="C", copy=True), device)

    def to_host(self, array):
        return array._hidden.copy()

    def copy(self, array):
        return PretendArray(array._hidden.copy(), array.device)

    def assign(self, target, source):
        assert target.device == source.device
        target._hidden[...] = source._hidden

    def strides(self, array):
        return tuple(step // array.dtype.itemsize for step in array._hidden.strides)

    def owner(self, array):
        return array if array.base is None else array.base


def _hidden(value, place):
    if isinstance(value, list | tuple):
        return type(value)(_hidden(v, place) for v in value)
    assert not isinstance(value, np.ndarray), "a NumPy array reached a kernel of the pretend device"
    if isinstance(value, PretendArray):
        assert value.device == place
        return value._hidden
    return value


def _first(value):
    if isinstance(value, PretendArray):
        return value
    for item in value if isinstance(value, list | tuple) else ():
        if (found := _first(item)) is not None:
            return found
    return None


def kernel_of(op):
    compute = on_host(op)

    def kernel(*args):
        first = _first(args)
        results = compute(*_hidden(args, first.device))

        def around(result):
            shared = op.kind.views and result.base is not None and np.may_share_memory(result, first._hidden)
            return PretendArray(
                np.asarray(result), first.device, (first if first.base is None else first.base) if shared else None
            )

        return tuple(around(r) for r in results) if isinstance(results, list | tuple) else around(results)

    return kernel


_attached = set()


def install():
    """Register the device, and its kernels of ops that have none yet: some ops are imported late."""
    from genesis.base.device import MEMORIES

    if "pretend" not in MEMORIES:
        register(PretendMemory())
    for op in primitives():
        if op.name not in _attached:
            _attached.add(op.name)
            attach(op, PretendArray, kernel_of(op))
