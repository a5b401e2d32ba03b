"""Parameters and buffers whose shape the first input of their layer tells."""

from __future__ import annotations

from typing import Any

from genesis.base import dtypes
from genesis.base.errors import GraphError, message
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nn.parameter import Buffer, Parameter
from genesis.ops.creation.create import empty


class Uninitialized:
    """A parameter or buffer without a shape, until `materialize` gives it one."""

    __slots__ = ()
    becomes: type = Tensor

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give it memory of a shape; what is in it is not set."""
        dtype = dtypes.from_numpy(self._array.dtype) if dtype is None else dtype
        self.data = empty(tuple(shape), dtype=dtype, device=self.device if device is None else device)
        self.__class__ = self.becomes

    @property
    def shape(self) -> Any:
        raise GraphError(
            message(
                type(self).__name__,
                "it has no shape before the first call of its layer",
                hint="call the model once, with an input",
            )
        )

    def detach(self) -> Any:
        """Itself: there are no values to share."""
        return self

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        """One of another dtype, or on another device."""
        like = wrap(self._array).to(*args, **kwargs)  # type: ignore[attr-defined]
        return type(self)(device=like.device, dtype=like.dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter whose shape the first input of its layer tells.

    >>> import genesis
    >>> p = genesis.nn.UninitializedParameter()
    >>> p.materialize((2, 3)); type(p).__name__, p.shape
    ('Parameter', genesis.Size([2, 3]))
    """

    __slots__ = ()
    becomes = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(Uninitialized, Buffer):
    """A buffer whose shape the first input of its layer tells.

    >>> import genesis
    >>> b = genesis.nn.UninitializedBuffer()
    >>> b.materialize((2,)); b.shape
    genesis.Size([2])
    """

    __slots__ = ()
    becomes = Buffer

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        super().__init__(empty(0, device=device, dtype=dtype), persistent=persistent)
        if requires_grad:
            self.requires_grad_()


explained(UninitializedBuffer)
