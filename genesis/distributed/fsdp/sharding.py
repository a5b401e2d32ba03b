"""`fully_shard`: modules whose parameters are divided among the ranks, and whole while they compute."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.base.pytree import tree_map
from genesis.core.call.refusal import explain_all
from genesis.core.graph import engine
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import depends, tracer
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.fsdp.group import BACKWARDS, ShardedGroup
from genesis.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from genesis.distributed.fsdp.saved import Handles
from genesis.distributed.fsdp.traced import whole_in_a_trace
from genesis.distributed.fsdp.units import Part
from genesis.distributed.groups import ProcessGroup, group_of
from genesis.nn.container import ModuleDict, ModuleList
from genesis.nn.module import Module

_NAME = "fully_shard"
_GIVEN: WeakValueDictionary[int, Parameter] = WeakValueDictionary()  # parameters as they were before, while they live


class UnshardHandle:
    """What `FSDPModule.unshard` returns: ``wait()`` ends when the parameters are whole."""

    def __init__(self, group: ShardedGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the parameters are whole."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


class _State:
    """What a sharded module knows besides its group."""

    def __init__(self, group: ShardedGroup | None, policy: MixedPrecisionPolicy, reshard: bool | None) -> None:
        self.group, self.policy, self.reshard = group, policy, reshard
        self.ahead: list[ShardedGroup] = []  # what is gathered while this one computes
        self.running = 0  # forwards, one in the other
        self.into = None if policy.param_dtype is None else dtypes.as_dtype(policy.param_dtype)
        self.out = None if policy.output_dtype is None else dtypes.as_dtype(policy.output_dtype)

    def casts(self, dtype: Any, tree: Any) -> Any:
        return tree if dtype is None else tree_map(functools.partial(_in_dtype, dtype), tree)


class FSDPModule:
    """What `fully_shard` makes a module, besides what it was: a call gathers its parameters, and gives them back."""

    _sharded: _State

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _forward(self, super().__call__, args, kwargs)  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> Any:
        text = "a sharded module cannot be copied: its parameters are gathered into memory of their own"
        raise UnsupportedError(message(type(self).__name__, text, hint="copy it before fully_shard, or load its state"))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Make this module's own parameters whole; with ``async_op`` begin to, and return what can be waited for."""
        group = self._sharded.group
        handle = UnshardHandle(group)
        if async_op:
            if group is not None:
                group.begin()
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Give this module's whole parameters back."""
        if self._sharded.group is not None:
            self._sharded.group.reshard()

    def _all(self, recurse: bool) -> Iterator[_State]:
        for module in self.modules() if recurse else [self]:  # type: ignore[attr-defined]
            if isinstance(module, FSDPModule):
                yield module._sharded

    def _groups(self, recurse: bool) -> Iterator[ShardedGroup]:
        return (state.group for state in self._all(recurse) if state.group is not None)

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backwards combine gradients. Without it those of several batches add up, whole, in each rank."""
        for group in self._groups(recurse):
            group.sync = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backwards combine gradients with those of ranks that have the same rows. Without it those of several
        batches add up, each rank having its rows of them, and the first backward with it combines the sums.
        """
        for group in self._groups(recurse):
            group.replicated = requires_all_reduce

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted: each backward ends with all gradients in the shards."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are given back after a forward, and gathered again for its backward."""
        for state in self._all(recurse):
            state.reshard = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters are given back after a backward."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """The modules whose parameters begin to be gathered when this one's forward begins."""
        self._sharded.ahead = _groups_of("set_modules_to_forward_prefetch", modules)

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """The modules whose parameters begin to be gathered when this one's are there for its backward; the one before
        in the order of forwards, where nothing is said.
        """
        if self._sharded.group is not None:
            self._sharded.group.next_in_backward = _groups_of("set_modules_to_backward_prefetch", modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by, in place of the number of ranks."""
        if self._sharded.group is not None:
            self._sharded.group.factor = float(factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor


def fully_shard(
    module: Any,
    *,
    mesh: Any = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Tensor] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Divide the parameters of a module among the ranks: each keeps $1/n$ of the rows, of their gradients, and so of
    the state of an optimizer that is made afterwards.

    A call of the module gathers its parameters, and gives them back when it ends; backward gathers them again, and
    scatters the mean of the gradients. Parameters of modules inside that were sharded before are theirs; so shard the
    layers of a network first, the network last: one layer at a time is whole. The module stays what it is, and becomes
    an `FSDPModule`, too. Parameters keep their names; each is a `DTensor`, which has the shape of the
    whole one; ``to_local()`` are this rank's rows, as ``chunk`` divides them, and ``full_tensor()`` is all of it.

    Args:
        module: what is sharded in place; or a list of modules whose parameters belong together
        mesh: the ranks, a group or a mesh of one dimension; all of them by default. Of two dimensions, replicas and shards:
            rows are divided along the second, and along the first ranks have the same ones
        reshard_after_forward: give parameters back after forward; by default all but the outermost module do
        mp_policy: dtypes of parameters in forward and of gradients on their way
        ignored_params: parameters that stay as they are
        shard_placement_fn, dp_mesh_dims: None: rows are what is divided, among ranks of one dimension
        offload_policy: `CPUOffloadPolicy` where parameters are in the memory of the CPU, and so shards

    Raises:
        TypeError: not a module
        ValueError: the module is sharded already, or one of its parameters in another module; a container that is
            never called
        NotImplementedError: a parameter without dimensions, another dimension than rows, offloading from a device; (in
            backward) gradients with a history, or sparse ones

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.fsdp import fully_shard
    >>> dist.init_process_group()
    >>> layer = fully_shard(genesis.nn.Linear(2, 1))
    >>> layer(genesis.ones(4, 2)).mean().backward()
    >>> layer.weight.grad.full_tensor()
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    modules = list(module) if isinstance(module, list | tuple) else [module]
    policy = MixedPrecisionPolicy() if mp_policy is None else mp_policy
    _check(modules, reshard_after_forward, shard_placement_fn, dp_mesh_dims)
    ignored = {id(p) for p in ignored_params or ()}
    parts = _parts(modules, _mesh(mesh), policy, ignored)
    reduce_dtype = None if policy.reduce_dtype is None else dtypes.as_np(policy.reduce_dtype)
    if isinstance(offload_policy, CPUOffloadPolicy):
        for part in parts:
            part.stay_on_cpu()
    group = ShardedGroup(parts, reduce_dtype) if parts else None
    for each in modules:
        object.__setattr__(each, "_sharded", _State(group, policy, _as_bool(reshard_after_forward)))
        each.__class__ = _class_of(type(each))
        each.register_state_dict_pre_hook(_before_state)
        each.register_state_dict_post_hook(functools.partial(_after_state, _names(each, parts)))
        each.register_load_state_dict_pre_hook(_before_load)
        for inner in each.modules():
            if inner is not each and isinstance(inner, FSDPModule) and inner._sharded.reshard is None:
                inner._sharded.reshard = True
    return module


def _as_bool(reshard: bool | int | None) -> bool | None:
    return None if reshard is None else bool(reshard)


def _check(modules: Sequence[Any], reshard: Any, placement: Any, dims: Any) -> None:
    for each in modules:
        if not isinstance(each, Module):
            raise ArgumentError(message(_NAME, f"expected a module, got {type(each).__name__}"))
        if isinstance(each, ModuleList | ModuleDict) and type(each).forward is Module.forward:
            text = f"{type(each).__name__} is never called, so its parameters would never be whole"
            raise ArgumentValueError(message(_NAME, text, hint="shard the modules in it"))
        if isinstance(each, FSDPModule):
            raise ArgumentValueError(message(_NAME, f"{type(each).__name__} is sharded already", hint="once each"))
    if placement is not None:
        text = "parameters are divided along their first dimension only"
        raise UnsupportedError(message(_NAME, text, hint="shard_placement_fn=None"))
    if dims is not None:
        raise UnsupportedError(message(_NAME, "ranks have one dimension", hint="dp_mesh_dims=None"))
    if type(reshard) is int and reshard > 1:
        text = f"reshard_after_forward={reshard} would keep parameters among some ranks only"
        raise UnsupportedError(message(_NAME, text, hint="True or False"))


def _mesh(given: Any) -> DeviceMesh:
    if given is None or isinstance(given, ProcessGroup):
        return mesh_of(group_of(_NAME, given))
    if not isinstance(given, DeviceMesh) or given.ndim > 2:
        text = f"mesh is {given!r}, expected a group of ranks, or a mesh of one dimension or of two"
        raise UnsupportedError(message(_NAME, text, hint="mesh=None for all ranks"))
    group_of(_NAME, given.get_group(given.ndim - 1))
    return given


def _parts(modules: Sequence[Any], mesh: DeviceMesh, policy: MixedPrecisionPolicy, ignored: set[int]) -> list[Part]:
    """The parameters that are these modules' own, each once."""
    owners: dict[int, tuple[str, Parameter, list[tuple[Any, str]]]] = {}
    for root in modules:
        for path, module in root.named_modules():
            for name, p in module._parameters.items():
                if p is None or id(p) in ignored or _is_sharded(p, mesh):
                    continue
                full = f"{path}.{name}" if path else name
                if _GIVEN.get(id(p)) is p:
                    text = f"{full} was sharded with another module, and is shared with this one"
                    raise ArgumentValueError(
                        message(_NAME, text, hint="fully_shard([one, other]) shards both together")
                    )
                owners.setdefault(id(p), (full, p, []))[2].append((module, name))
    dtype = None if policy.param_dtype is None else dtypes.as_np(policy.param_dtype)
    parts = []
    for full, p, having in owners.values():
        floating = p.is_floating_point()
        parts.append(Part(full, p, having, mesh, dtype if floating else None))
    for _, p, _ in owners.values():
        _GIVEN[id(p)] = p
    return parts


def _is_sharded(p: Parameter, mesh: DeviceMesh) -> bool:
    """Whether its rows are divided by `fully_shard` already; parts of layers (`parallelize_module`) have rows, too."""
    at = p._sharding
    return at is not None and (
        at.within is not None or list(at.members.ranks) == list(mesh.get_group(mesh.ndim - 1).ranks)
    )


@functools.cache
def _class_of(kind: type) -> type:
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})


def _groups_of(name: str, modules: list[Any]) -> list[ShardedGroup]:
    for each in modules:
        if not isinstance(each, FSDPModule):
            raise ArgumentError(
                message(name, f"{type(each).__name__} is not sharded", hint="fully_shard(module) first")
            )
    return [each._sharded.group for each in modules if each._sharded.group is not None]


# ---- a forward


def _forward(module: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call of a sharded module: its parameters are whole in it."""
    state: _State = module._sharded
    if state.into is not None and state.policy.cast_forward_inputs:
        args, kwargs = state.casts(state.into, args), state.casts(state.into, kwargs)
    if tracer.get() is not None:
        with _whole_in_a_trace(state.group):
            return state.casts(state.out, call(*args, **kwargs))
    again = engine.current() is not None  # a checkpoint computes anew
    if not again:
        BACKWARDS.clear()
    group, records = state.group, grad_mode.get()
    state.running += 1
    try:
        if group is not None:
            group.unshard()
            if again:
                BACKWARDS.uses(group)
            if records and not any([part.whole.requires_grad for part in group.parts]):
                _reshard_behind(group, args, kwargs)
        for other in state.ahead:
            other.begin()
        with Handles(group) if records else nullcontext():
            out = call(*args, **kwargs)
    finally:
        state.running -= 1
        if group is not None and not state.running and not again:
            if state.reshard and not _shared_forward(group, module):
                group.reshard()
            if records:
                BACKWARDS.order.append(group)
    return state.casts(state.out, out)


def _shared_forward(group: ShardedGroup, module: Any) -> bool:
    """Whether another module of the group still runs."""
    others = {id(owner): owner for part in group.parts for owner, _ in part.owners}
    return any([isinstance(m, FSDPModule) and m is not module and m._sharded.running for m in others.values()])


def _reshard_behind(group: ShardedGroup, args: Any, kwargs: Any) -> None:
    """Frozen parameters have no gradients whose coming would end their use in backward: those of the inputs do."""

    def given_back(x: Any) -> Any:
        if isinstance(x, Tensor) and x._node is not None and not x._node.is_leaf:
            x.register_hook(lambda g: group.reshard() if group.reshard_after_backward else None)
        return x

    tree_map(given_back, (args, kwargs))


@contextmanager
def _whole_in_a_trace(group: ShardedGroup | None) -> Iterator[None]:
    if group is None:
        yield
        return
    group.reshard()
    for part in group.parts:
        for owner, _ in part.owners:
            depends(owner)
    try:
        for part in group.parts:
            whole = whole_in_a_trace(part, group.reduce_dtype, group.factor)
            for owner, name in part.owners:
                owner._parameters[name] = whole
        yield
    finally:
        for part in group.parts:
            part.put(False)


def _in_dtype(dtype: Any, x: Any) -> Any:
    return x.to(dtype=dtype) if isinstance(x, Tensor) and x.is_floating_point() else x


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let another method of a sharded module compute with whole parameters, as its call does.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.fsdp import fully_shard, register_fsdp_forward_method
    >>> class Scaled(genesis.nn.Linear):
    ...     def twice(self, x):
    ...         return 2 * self.forward(x)
    >>> dist.init_process_group()
    >>> layer = fully_shard(Scaled(2, 3)); register_fsdp_forward_method(layer, "twice")
    >>> layer.twice(genesis.ones(2)).shape
    genesis.Size([3])
    >>> dist.destroy_process_group()
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)
    if not callable(method):
        raise ArgumentValueError(message("register_fsdp_forward_method", f"{method_name!r} is not a method"))

    @functools.wraps(method)
    def whole(*args: Any, **kwargs: Any) -> Any:
        return _forward(module, method, args, kwargs)

    object.__setattr__(module, method_name, whole)


# ---- states


def _names(module: Any, parts: Sequence[Part]) -> list[tuple[str, Part]]:
    """The names in the state of a module, each with its part."""
    by_owner = {(id(owner), name): part for part in parts for owner, name in part.owners}
    return [
        (f"{path}.{name}" if path else name, by_owner[id(inner), name])
        for path, inner in module.named_modules(remove_duplicate=False)
        for name in inner._parameters
        if (id(inner), name) in by_owner
    ]


def _before_state(module: Any, prefix: str, keep_vars: bool) -> None:
    module.reshard()


def _after_state(names: Sequence[tuple[str, Part]], module: Any, state: Any, prefix: str, metadata: Any) -> None:
    for name, part in names:
        if getattr(state.get(prefix + name), "_layout", None) is None:
            state[prefix + name] = part.shard.detach()


def _before_load(module: Any, *others: Any) -> None:
    module.reshard()


explain_all(globals())
