"""`autocast`: products in a low precision, losses in float32, everything else as it comes.

    with genesis.autocast(dtype=genesis.bfloat16):
        loss = loss_fn(model(x), y)
    loss.backward()

The policy of an op stands in its record (`core/call/op.py`), the casts are made on the general call path
(`core/call/operands.py`), so that ordinary calls pay nothing. Backward runs outside autocast; the backward of a user's
`Function` runs in the mode of its forward.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from genesis.base import dtypes
from genesis.base.device import MEMORIES, memory_named
from genesis.base.errors import ArgumentValueError, DeviceError, message
from genesis.core.call.casts import cast_for
from genesis.core.call.halves import HALVES
from genesis.core.call.refusal import switch
from genesis.core.graph import autocast as mode
from genesis.core.graph.autocast import Autocast
from genesis.core.graph.switches import ACTIVE


class autocast:
    """Context manager and decorator: ops inside compute in the precision that their policy gives.

    Args:
        device_type: "cpu", or another type of device, whose tensors are cast (it comes first in PyTorch, too); a dtype
            may be given in its place. Of GPUs, which are not there, nothing is cast, with a warning if ``enabled``
        dtype: the low precision, bfloat16 (the default) or float16; of any other nothing is cast, with a warning
        enabled: False turns an outer autocast off
        cache_enabled: cast each parameter once in a region rather than at every use

    Raises:
        RuntimeError: no type of device

    >>> import genesis
    >>> w = genesis.ones(2, 2)
    >>> with genesis.autocast():
    ...     (w @ w).dtype, (w @ w).prod().dtype
    (genesis.bfloat16, genesis.float32)
    """

    def __init__(
        self, device_type: Any = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = True
    ) -> None:
        if isinstance(device_type, dtypes.dtype):
            device_type, dtype = "cpu", device_type
        self.device = _type_of(device_type)
        self._there = memory_named(self.device) is not None
        self._enabled, self._caches = switch("autocast", "enabled", enabled), cache_enabled is not False
        self.fast_dtype = _chosen[0] if dtype is None else dtypes.as_dtype(dtype)
        why = None if self._there else f"there is no {self.device!r} here"
        if self.fast_dtype.np not in HALVES:
            why = why or f"{self.fast_dtype} is no low precision, as genesis.bfloat16 and genesis.float16 are"
        if self._enabled and why:
            warnings.warn(f"autocast: {why}, nothing is cast", stacklevel=2)
            self._enabled = False
        self._open: list[tuple[Any, Any]] = []

    def __enter__(self) -> autocast:
        region = False
        if self._enabled:
            region = Autocast(dtypes.as_np(self.fast_dtype), {} if self._caches else None, self.device)
            ACTIVE.append(region)
        # of a device that is not there, the mode stays what it is
        self._open.append((region, mode.current.set(region if self._there else mode.current.get())))
        return self

    def __exit__(self, *_: object) -> None:
        region, token = self._open.pop()
        if isinstance(region, Autocast):
            ACTIVE.pop()
            if region.cache is not None:
                region.cache.clear()
        mode.current.reset(token)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._caches):
                return function(*args, **kwargs)

        return wrapped


autocast_mode = autocast
_chosen = [dtypes.bfloat16]  # the low precision where none is given


_GPUS = ("cuda", "mps", "xpu", "hpu", "mtia", "xla")  # types that programs name, whether they are there or not


def _type_of(device_type: Any) -> str:
    """The type of a device."""
    name = str(device_type).partition(":")[0]
    if (name not in MEMORIES and name not in _GPUS) or name == "meta":
        raise DeviceError(message("autocast", f"{device_type!r} is no type of device", hint="device_type='cpu'"))
    return name


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether ops are being autocast here.

    >>> import genesis
    >>> genesis.is_autocast_enabled()
    False
    """
    return mode.state() is not None


def get_autocast_dtype(device_type: str = "cpu") -> dtypes.dtype:
    """The low precision of the open region, or the default one."""
    region = mode.state()
    return _chosen[0] if region is None else dtypes.from_numpy(region.dtype)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """The low precision where none is given, from now on."""
    if str(device_type).partition(":")[0] == "cpu":
        low = dtypes.as_dtype(dtype)
        if low.np not in HALVES:
            hint = "genesis.bfloat16 or genesis.float16"
            raise ArgumentValueError(message("set_autocast_dtype", f"{low} is no low precision", hint=hint))
        _chosen[0] = low
        if mode.default:
            set_default(False)
            set_default(True)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Autocast on the CPU wherever no context says otherwise; without a device it is that of GPUs, of which there are
    none.
    """
    if str(device_type) == "cpu":
        set_default(bool(enabled))


def set_default(enabled: bool) -> None:
    """Autocast wherever no context says otherwise: what ``genesis.enable_autocast = True`` does."""
    if enabled and not mode.default:
        region = Autocast(dtypes.as_np(_chosen[0]), None)
        ACTIVE.append(region)
        mode.default.append(region)
    elif not enabled and mode.default:
        mode.default.pop()
        ACTIVE.pop()


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """Decorator of a `Function`'s forward: with ``cast_inputs`` its floating inputs are cast and autocast is off
    inside.

    Without it the forward runs in the mode it is called in. (The class attribute ``amp_policy`` says the same without a
    decorator.)

    >>> import genesis
    >>> class Half(genesis.Function):
    ...     @staticmethod
    ...     @genesis.amp.custom_fwd(cast_inputs=genesis.bfloat16)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @genesis.amp.custom_bwd
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> with genesis.autocast():
    ...     Half.apply(genesis.ones(1)).dtype
    genesis.bfloat16
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        region = mode.state()
        if region is None or cast_inputs is None:
            return fwd(*args, **kwargs)
        dtype = dtypes.as_np(cast_inputs)
        cast = cast_for(dtypes.from_numpy(dtype), (*args, *kwargs.values()), region._replace(cache=None))
        with mode.restored(None):
            return fwd(*cast[: len(args)], **dict(zip(kwargs, cast[len(args) :], strict=True)))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cpu") -> Any:
    """Decorator of a `Function`'s backward, for PyTorch's sake: a backward always runs in the mode of its forward.

    >>> import genesis
    >>> genesis.amp.custom_bwd(len) is len
    True
    """
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
