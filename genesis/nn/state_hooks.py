"""Hooks around the state of modules: before and after it is collected, before and after it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.tracing import goes_through
from genesis.nn.hooks import add, hooks_of


def _none(hooks: Any) -> bool:
    return hooks is None


def local_metadata(module: Any) -> dict[str, Any]:
    """What hooks are told of a module's state besides its tensors."""
    return {} if module._version is None else {"version": module._version}


class StateHooks:
    """The part of `Module` that is about hooks of its state."""

    _hooks: Any

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects the module's tensors."""
        return add(hooks_of(self).state_pre, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when the module's tensors, and those below, are in
        the state; it may change the state in place.
        """
        return add(hooks_of(self).state_post, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The same; what the hook returns takes the state's place."""
        return add(hooks_of(self).state_post, hook, with_kwargs=True)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before a state is loaded; it may change the (copied) state and the lists in place.
        """
        return add(hooks_of(self).load_pre, hook, with_kwargs=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """The same, without the module unless ``with_module``."""
        return add(hooks_of(self).load_pre, hook, with_kwargs=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after a state was loaded; it may change the two lists in place, which
        ``strict`` looks at afterwards.
        """
        return add(hooks_of(self).load_post, hook)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Called for each module before a state is loaded; subclasses may change the (copied) state and the lists."""


def before_load(module: Any, state: Mapping[str, Any], strict: bool) -> tuple[Mapping[str, Any], tuple[list[str], ...]]:
    """The state after all pre-hooks, and what they say is missing, unexpected or wrong."""
    told: tuple[list[str], ...] = ([], [], [])
    copied: Any = None
    for path, m in module.named_modules(remove_duplicate=False):
        own = type(m)._load_from_state_dict is not StateHooks._load_from_state_dict
        if not own and (_none(m._hooks) or not m._hooks.load_pre):
            continue
        if copied is None:
            copied = dict(state)
        given = (copied, f"{path}." if path else "", local_metadata(m), strict, *told)
        for hook, with_module, _ in [] if _none(m._hooks) else list(m._hooks.load_pre.values()):
            hook(m, *given) if with_module else hook(*given)
        if own:
            m._load_from_state_dict(*given)
    return state if copied is None else copied, told


def after_load(module: Any, keys: Any) -> bool:
    """Call the post-hooks of all modules below and of this one; whether there are any."""
    called = False
    for m in reversed(list(module.modules())):
        for hook, *_ in [] if _none(m._hooks) else list(m._hooks.load_post.values()):
            called = True
            if hook(m, keys) is not None:
                raise RuntimeError("a hook after load_state_dict changes the lists in place, it must return None")
    return called


def has_load_post_hooks(module: Any) -> bool:
    return any([m._hooks is not None and m._hooks.load_post for m in module.modules()])


def collect(module: Any, state: Any, prefix: str, keep_vars: bool) -> Any:
    """Put the tensors of a module, and of those below, into ``state``, between its hooks."""
    goes_through(module)
    hooks = module._hooks
    for hook, *_ in [] if _none(hooks) else list(hooks.state_pre.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(state, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, replaces, _ in [] if _none(hooks) else list(hooks.state_post.values()):
        changed = hook(module, state, prefix, local_metadata(module))
        if changed is not None:
            if not replaces:
                raise RuntimeError("a hook after state_dict changes the state in place, it must return None")
            state = changed
    return state
