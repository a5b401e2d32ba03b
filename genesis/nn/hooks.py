"""Hooks around modules: what `Module.__call__` does when there are any.

Backward hooks stand on two boundaries: the tensors that go in pass through one identity node, those that come out
through another. The gradients at the first are the module's ``grad_input``, those at the second its ``grad_output``,
whatever structure the module takes and returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.core.functions.function import Function
from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import changes


class ModuleHooks:
    """The hooks of one module, or of all: (hook, with_kwargs, always_call) by registration."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, Any] = {}
        self.forward: dict[int, Any] = {}
        self.backward_pre: dict[int, Any] = {}
        self.backward: dict[int, Any] = {}
        self.state_pre: dict[int, Any] = {}  # see `nn/state_hooks.py`
        self.state_post: dict[int, Any] = {}
        self.load_pre: dict[int, Any] = {}
        self.load_post: dict[int, Any] = {}


class HooksOf(MutableMapping[int, Any]):
    """The hooks of one kind by registration, as ``module._forward_hooks``: they can be counted, read and taken away."""

    def __init__(self, entries: dict[int, Any]) -> None:
        self._entries = entries

    def __getitem__(self, key: int) -> Any:
        return self._entries[key][0]

    def __setitem__(self, key: int, hook: Any) -> None:
        self._entries[key] = (hook, False, False)

    def __delitem__(self, key: int) -> None:
        del self._entries[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"OrderedDict({list(self.items())})"


# PyTorch's names of the kinds
KINDS = {"_forward_pre_hooks": "forward_pre", "_forward_hooks": "forward", "_backward_pre_hooks": "backward_pre",
         "_backward_hooks": "backward"}  # fmt: skip

EVERY_MODULE: list[ModuleHooks] = []  # hooks on every module, see `register_module_forward_hook` and its kin


def hooks_of(module: Any) -> ModuleHooks:
    if module._hooks is None:
        module._hooks = ModuleHooks()
    return module._hooks  # type: ignore[no-any-return]


def changing(module: Any) -> ModuleHooks:
    """The hooks of a module, one more of which is about to be registered."""
    changes(module, f"a hook is registered on a {type(module).__name__}")
    return hooks_of(module)


def add(
    hooks: dict[int, Any],
    hook: Callable[..., Any],
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> RemovableHandle:
    before = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, (hook, with_kwargs, always_call))
    hooks.update(before)
    return handle


class _OnEveryModule(RemovableHandle):
    """With the last hook goes what every call of a module looks at."""

    __slots__ = ()

    def remove(self) -> None:
        super().remove()
        if EVERY_MODULE and not any([getattr(EVERY_MODULE[0], kind) for kind in KINDS.values()]):
            EVERY_MODULE.clear()


def _every(kind: str) -> Callable[..., RemovableHandle]:
    def register(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
        if not EVERY_MODULE:
            EVERY_MODULE.append(ModuleHooks())
        return _OnEveryModule(getattr(EVERY_MODULE[0], kind), (hook, with_kwargs, always_call))

    register.__name__ = f"register_module_{kind}_hook"
    register.__doc__ = f"Register a {kind.replace('_', '-')} hook on every module; it runs before the module's own."
    return register


register_module_forward_pre_hook = _every("forward_pre")
register_module_forward_hook = _every("forward")
register_module_full_backward_pre_hook = _every("backward_pre")
register_module_full_backward_hook = _every("backward")


register_module_backward_hook = register_module_full_backward_hook

REGISTRATION: dict[str, dict[int, Any]] = {"parameter": {}, "buffer": {}, "module": {}}


def _at_registration(kind: str) -> Callable[..., RemovableHandle]:
    def register(hook: Callable[..., Any]) -> RemovableHandle:
        return add(REGISTRATION[kind], hook)

    register.__name__ = f"register_module_{kind}_registration_hook"
    register.__doc__ = (
        f"Call ``hook(module, name, {kind})`` whenever any module gets a {kind}; what it returns takes its place."
    )
    return register


register_module_parameter_registration_hook = _at_registration("parameter")
register_module_buffer_registration_hook = _at_registration("buffer")
register_module_module_registration_hook = _at_registration("module")


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What is registered, after the hooks on that."""
    for hook, *_ in list(REGISTRATION[kind].values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def call_with_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], function: Callable[..., Any] | None = None
) -> Any:
    """``module.forward(*args, **kwargs)``, or a function in its place, between its hooks."""
    sets = [*EVERY_MODULE, *([module._hooks] if module._hooks is not None else [])]
    args, kwargs = _before(module, sets, args, kwargs)
    pre = [entry[0] for s in sets for entry in s.backward_pre.values()]
    post = [entry[0] for s in sets for entry in s.backward.values()]
    boundary = _Boundary(module, pre, post) if (pre or post) and grad_mode.get() else None
    if boundary is not None and post:
        args = boundary.enter(args)
    forward = [entry for s in sets for entry in s.forward.values()]
    try:
        result = (module.forward if function is None else function)(*args, **kwargs)
    except BaseException:
        for hook, with_kwargs, always in forward:
            if always:
                hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        raise
    for hook, with_kwargs, _ in forward:
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    return result if boundary is None else boundary.leave(result)


def _before(
    module: Any, sets: list[ModuleHooks], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for hook, with_kwargs, _ in [entry for s in sets for entry in s.forward_pre.values()]:
        changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if changed is None:
            continue
        if with_kwargs:
            args, kwargs = changed
        else:
            args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


class _Pass(Function):
    """Tensors as they are, through one node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gs: Tensor | None) -> tuple[Tensor | None, ...]:
        return gs


class _Boundary:
    """The two identity nodes around one call of a module, and what is known so far of its gradients."""

    def __init__(self, module: Any, pre: list[Any], post: list[Any]) -> None:
        self.module, self.pre, self.post = module, pre, post
        self.inside = False  # whether an input requires grad, so that grad_input will be known
        self.grad_output: Any = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        def inside(indices: list[int], structure: TreeDef) -> Callable[..., Any]:
            self.inside = True
            return lambda gs, _: self.arrived_inside(gs, indices, structure)

        return _through(args, inside)  # type: ignore[no-any-return]

    def leave(self, result: Any) -> Any:
        return _through(result, lambda indices, structure: lambda _, gs: self.arrived_outside(gs, indices, structure))

    def arrived_outside(self, gs: tuple[Any, ...], indices: list[int], structure: TreeDef) -> tuple[Any, ...]:
        for hook in self.pre:
            changed = hook(self.module, _shaped(gs, indices, structure))
            if changed is not None:
                gs = _picked(changed, indices, structure)
        self.grad_output = _shaped(gs, indices, structure)
        if not self.inside:
            for hook in self.post:
                hook(self.module, (None,), self.grad_output)
            self.grad_output = None
        return gs

    def arrived_inside(self, gs: tuple[Any, ...], indices: list[int], structure: TreeDef) -> tuple[Any, ...]:
        # in a double backward gradients reach the input that did not come through the output
        if self.grad_output is None:
            return gs
        for hook in self.post:
            changed = hook(self.module, _shaped(gs, indices, structure), self.grad_output)
            if changed is not None:
                gs = _picked(changed, indices, structure)
        self.grad_output = None
        return gs


def _through(value: Any, hook: Callable[[list[int], TreeDef], Callable[..., Any]]) -> Any:
    """The value, its tensors that require grad led through one node; ``hook`` makes the hook of that node."""
    leaves, structure = tree_flatten(value)
    indices = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad]
    if not indices:
        return value
    through = _Pass.apply(*[leaves[i] for i in indices])
    for i, x in zip(indices, through, strict=True):
        leaves[i] = x
    through[0].grad_fn.register_hook(hook(indices, structure))
    return tree_unflatten(leaves, structure)


def _shaped(gs: tuple[Any, ...], indices: list[int], structure: TreeDef) -> Any:
    """Gradients in the structure of their tensors, a single one and lists as a tuple."""
    leaves: list[Any] = [None] * structure.num_leaves
    for index, g in zip(indices, gs, strict=True):
        leaves[index] = g
    tree = tree_unflatten(leaves, structure)
    return (tree,) if structure.kind is None else tuple(tree) if type(tree) is list else tree


def _picked(changed: Any, indices: list[int], structure: TreeDef) -> tuple[Any, ...]:
    """The gradients at these places, from what a hook returned."""
    from genesis.base.pytree import flatten_up_to

    if structure.kind is None:
        changed = changed[0] if isinstance(changed, tuple | list) else changed
    elif isinstance(changed, Tensor):
        changed = (changed,)
    leaves = flatten_up_to(structure, changed)
    return tuple([leaves[i] for i in indices])
