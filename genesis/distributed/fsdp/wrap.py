"""Which modules inside a network are sharded by themselves, under the names of ``torch.distributed.fsdp.wrap``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LARGE = int(1e8)  # elements, as PyTorch has it


class ModuleWrapPolicy:
    """Modules of these classes.

    >>> import genesis
    >>> ModuleWrapPolicy({genesis.nn.Linear})(genesis.nn.Linear(2, 2), False)
    True
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self.module_classes = tuple(module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self.module_classes)


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]
) -> bool:
    """Modules of the classes of a network's layers."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = _LARGE,
    force_leaf_modules: Any = None,
    exclude_wrap_modules: Any = None,
) -> bool:
    """Modules with at least so many elements in parameters that no module inside has by itself."""
    if recurse:
        return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(force_leaf_modules or ()))
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(exclude_wrap_modules or ()))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """All modules."""
    return True


__all__ = ["ModuleWrapPolicy", "always_wrap_policy", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy"]
