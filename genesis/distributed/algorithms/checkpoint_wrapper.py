"""Modules that keep only what they are called with, and compute the rest again in backward."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.distributed.fsdp.wrapper import chosen_by
from genesis.nn.module import Module
from genesis.utils.checkpoint import checkpoint


class CheckpointImpl(enum.Enum):
    """PyTorch's two ways to compute again; `genesis.utils.checkpoint.checkpoint` has one."""

    REENTRANT = 1
    NO_REENTRANT = 2


class CheckpointWrapper:
    """What a module becomes by `checkpoint_wrapper`, beside what it is."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._computed_again(super().forward, *args, **kwargs)  # type: ignore[attr-defined, misc]


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Any:
    """The module, which from now on keeps only what it is called with. Its parameters keep their names.

    Args:
        checkpoint_impl: accepted for PyTorch's sake
        checkpoint_fn: called with the forward and its arguments; `genesis.utils.checkpoint.checkpoint` where none is given
        checkpoint_fn_kwargs: more for that

    Raises:
        TypeError: no module

    >>> import genesis
    >>> from genesis.distributed.algorithms.checkpoint_wrapper import checkpoint_wrapper
    >>> layer = checkpoint_wrapper(genesis.nn.Linear(2, 1))
    >>> layer(genesis.ones(1, 2)).sum().backward(); layer.weight.grad
    tensor([[1., 1.]])
    """
    if not isinstance(module, Module):
        raise ArgumentError(message("checkpoint_wrapper", f"expected a module, got {type(module).__name__}"))
    if not isinstance(module, CheckpointWrapper):
        module.__class__ = _class_of(type(module))
    object.__setattr__(
        module, "_computed_again", functools.partial(checkpoint_fn or checkpoint, **checkpoint_fn_kwargs)
    )
    return module


@functools.cache
def _class_of(kind: Any) -> type:
    return type(f"Checkpoint{kind.__name__}", (CheckpointWrapper, kind), {"__module__": kind.__module__})


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable[[Any], Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Let modules inside of a model compute again what they do not keep.

    Args:
        checkpoint_wrapper_fn: what is done with each of them
        check_fn: which ones
        auto_wrap_policy: in its place: which ones, as a policy of ``genesis.distributed.fsdp.wrap`` says

    >>> import genesis
    >>> from genesis.distributed.algorithms.checkpoint_wrapper import apply_activation_checkpointing
    >>> model = genesis.nn.Sequential(genesis.nn.Linear(2, 2), genesis.nn.ReLU())
    >>> apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, genesis.nn.Linear)); type(model[0]).__name__
    'CheckpointLinear'
    """
    if auto_wrap_policy is None:
        inner = [each for each in model.modules() if each is not model and check_fn(each)]
    else:
        inner = [each for each in chosen_by(model, auto_wrap_policy, set(), set()) if each is not model]
    for each in inner:
        made = checkpoint_wrapper_fn(each)
        for parent in list(model.modules()) if made is not each else ():
            for name in [name for name, child in parent.named_children() if child is each]:
                setattr(parent, name, made)


__all__ = ["CheckpointImpl", "apply_activation_checkpointing", "checkpoint_wrapper"]
