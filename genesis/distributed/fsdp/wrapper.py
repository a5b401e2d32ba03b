"""`FullyShardedDataParallel`: `fully_shard` as a module around a module, and states of whole tensors."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.distributed.checkpoint.state_dict import StateDictOptions, named, numbered
from genesis.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from genesis.distributed.fsdp.sharding import FSDPModule, fully_shard
from genesis.distributed.groups import group_of
from genesis.distributed.movement import broadcast
from genesis.nn.module import Module
from genesis.nn.utils.clip import clip_grad_norm_

_NAME = "FullyShardedDataParallel"


class ShardingStrategy(enum.Enum):
    """What is divided: FULL_SHARD parameters, too, SHARD_GRAD_OP as well, but whole from forward to backward; HYBRID_SHARD
    and _HYBRID_SHARD_ZERO2 the same among some ranks, of which there are replicas.
    """

    FULL_SHARD = "full shard"
    SHARD_GRAD_OP = "shard grad op"
    NO_SHARD = "no shard"
    HYBRID_SHARD = "hybrid shard"
    _HYBRID_SHARD_ZERO2 = "hybrid shard zero2"


class BackwardPrefetch(enum.Enum):
    """Accepted: the layer before is gathered while one computes its backward."""

    BACKWARD_PRE = "before"
    BACKWARD_POST = "after"


class StateDictType(enum.Enum):
    """What a state has: whole tensors, or this rank's rows."""

    FULL_STATE_DICT = "whole"
    LOCAL_STATE_DICT = "rows"
    SHARDED_STATE_DICT = "rows, with full_tensor()"


@dataclass
class CPUOffload:
    """With ``offload_params`` as `CPUOffloadPolicy`."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """As `MixedPrecisionPolicy`; buffers keep their dtype."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class FullStateDictConfig:
    """With ``rank0_only`` the others get nothing."""

    offload_to_cpu: bool = False
    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig:
    """Nothing to say."""

    offload_to_cpu: bool = False


@dataclass
class FullOptimStateDictConfig(FullStateDictConfig):
    """The same of the state of an optimizer."""


@dataclass
class ShardedOptimStateDictConfig(ShardedStateDictConfig):
    """Nothing to say."""


class FullyShardedDataParallel(Module):
    """A module around a module whose parameters are divided among the ranks: `fully_shard` in another form.

    It is the attribute ``module``. ``state_dict()`` has whole tensors under the module's own names, and
    `state_dict_type` says otherwise.

    Args:
        module: what is sharded, in place
        process_group: the ranks; all of them by default. device_mesh: the same as a mesh of one dimension, or of two,
            replicas and shards, for the hybrid strategies
        sharding_strategy: FULL_SHARD by default; SHARD_GRAD_OP keeps parameters whole between forward and backward
        auto_wrap_policy: which modules inside are sharded by themselves, see `genesis.distributed.fsdp.wrap`
        mixed_precision: dtypes of parameters in forward and of gradients on their way
        sync_module_states: make parameters and buffers those of rank 0 first
        ignored_modules, ignored_states: what stays as it is
        param_init_fn, device_id: None. cpu_offload: accepted where parameters are in the memory of the CPU
        backward_prefetch, forward_prefetch, limit_all_gathers, use_orig_params: accepted for PyTorch's sake

    Raises:
        TypeError: not a module
        NotImplementedError: offloading from a device, strategies of another kind

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.fsdp import FullyShardedDataParallel
    >>> dist.init_process_group()
    >>> model = FullyShardedDataParallel(genesis.nn.Linear(2, 1))
    >>> model(genesis.ones(4, 2)).shape, list(model.state_dict())
    (genesis.Size([4, 1]), ['weight', 'bias'])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., bool] | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError(message(_NAME, f"expected a module, got {type(module).__name__}"))
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
        if strategy is ShardingStrategy.NO_SHARD:
            hint = "ShardingStrategy.FULL_SHARD; DistributedDataParallel divides nothing"
            raise UnsupportedError(message(_NAME, f"{strategy} is not supported", hint=hint))
        if hybrid and getattr(device_mesh, "ndim", 1) != 2:
            text = f"{strategy} needs a mesh of two dimensions, of replicas and of shards"
            hint = "device_mesh=init_device_mesh('cpu', (replicas, shards))"
            raise UnsupportedError(message(_NAME, text, hint=hint))
        if param_init_fn is not None:
            text = "parameters are made before they are divided"
            raise UnsupportedError(message(_NAME, text, hint="param_init_fn=None"))
        mesh = process_group if device_mesh is None else device_mesh
        if sync_module_states:
            members = group_of(_NAME, process_group)
            for each in (*module.parameters(), *module.buffers()):
                broadcast(each.detach(), group=members, group_src=0)
        held = [*(ignored_modules or ()), *(ignored_states or ())]
        ignored = {p for each in held for p in ([each] if isinstance(each, Tensor) else each.parameters())}
        given = MixedPrecision() if mixed_precision is None else mixed_precision
        full = strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)
        chosen = [] if auto_wrap_policy is None else chosen_by(module, auto_wrap_policy, set(map(id, ignored)), set())
        policy = MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None, given.cast_root_forward_inputs)
        offload = CPUOffloadPolicy() if cpu_offload is not None and cpu_offload.offload_params else OffloadPolicy()
        options: dict[str, Any] = {
            "mesh": mesh,
            "mp_policy": policy,
            "offload_policy": offload,
            "ignored_params": ignored,
        }
        for inner in chosen:
            if inner is not module:
                fully_shard(inner, reshard_after_forward=full, **options)
        fully_shard(module, reshard_after_forward=False, **options)
        self.module = module
        self._state_type: StateDictType = StateDictType.FULL_STATE_DICT
        self._rank0_only = self._optim_rank0_only = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """What the module has: programs ask the wrapper for its layers."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":  # not there yet
                raise
            return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        """A layer of a module that is a sequence."""
        return self.module[key]

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backwards in here add up, whole, in each rank; the first after it combines the sums."""
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """`genesis.nn.utils.clip_grad_norm_` of all parameters: the norm is that of the rows of all ranks."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Parameters are whole in here; with ``writeback`` what is written to them stays. All ranks call it."""
        states = [m._sharded for m in module.modules() if isinstance(m, FSDPModule)]
        groups = [state.group for state in states if state.group is not None]
        for group in groups:
            group.unshard()
        try:
            yield
            if writeback:
                with no_grad():
                    for part in [part for group in groups for part in group.parts]:
                        part.shard.to_local().copy_(part.whole[part.sharding.begin : part.sharding.end])  # type: ignore[attr-defined]
        finally:
            for group in groups:
                group.reshard()

    # ---- states

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Any, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Iterator[None]:
        """States of modules and optimizers in here have whole tensors, or this rank's rows."""
        wrappers = _wrappers(module)
        if not isinstance(state_dict_type, StateDictType):
            text = f"expected a StateDictType, got {state_dict_type!r}"
            raise ArgumentValueError(message("state_dict_type", text, hint="StateDictType.FULL_STATE_DICT"))
        before = [(m._state_type, m._rank0_only, m._optim_rank0_only) for m in wrappers]
        only = [getattr(config, "rank0_only", False) for config in (state_dict_config, optim_state_dict_config)]
        for m in wrappers:
            m._state_type, m._rank0_only, m._optim_rank0_only = state_dict_type, *only
        try:
            yield
        finally:
            for m, known in zip(wrappers, before, strict=True):
                m._state_type, m._rank0_only, m._optim_rank0_only = known

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """The state of the module, of whole tensors (then all ranks call it) or of this rank's rows."""
        state = self.module.state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        if self._state_type is StateDictType.FULL_STATE_DICT:
            for name, value in list(state.items()):
                if isinstance(value, Tensor) and value._layout is not None:
                    state[name] = value.full_tensor()  # type: ignore[attr-defined]
            if self._rank0_only and group_of(_NAME).rank():
                state.clear()
        return state  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take over a state of the module: of whole tensors, or of this rank's rows."""
        return self.module.load_state_dict(state_dict, strict)

    @staticmethod
    def optim_state_dict(model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer, with the names of parameters as the plain module has them.

        Of whole tensors, or of this rank's rows: `state_dict_type` says it. All ranks call it.

        Args:
            model: whose parameters are optimized
            optim: the optimizer
            optim_state_dict: its state, where it was taken already
            group: accepted for PyTorch's sake

        Raises:
            TypeError: the optimizer has parameters that the model does not have

        >>> import genesis, genesis.distributed as dist
        >>> from genesis.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> dist.init_process_group()
        >>> model = FSDP(genesis.nn.Linear(2, 1))
        >>> optimizer = genesis.optim.Adam(model.parameters())
        >>> model(genesis.ones(4, 2)).sum().backward(); optimizer.step()
        >>> state = FSDP.optim_state_dict(model, optimizer)
        >>> list(state["state"]), state["state"]["weight"]["exp_avg"].shape
        (['weight', 'bias'], genesis.Size([1, 2]))
        >>> optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, state))
        >>> dist.destroy_process_group()
        """
        wrappers = _wrappers(model)
        whole = not wrappers or wrappers[0]._state_type is StateDictType.FULL_STATE_DICT
        own = optim.state_dict() if optim_state_dict is None else optim_state_dict
        state = named(model, optim, own, StateDictOptions(full_state_dict=whole))
        absent = whole and wrappers and wrappers[0]._optim_rank0_only and group_of(_NAME).rank()
        return {} if absent else state

    @staticmethod
    def optim_state_dict_to_load(
        model: Any, optim: Any, optim_state_dict: Any, is_named_optimizer: bool = False, load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What ``optim.load_state_dict`` takes, of a state that `optim_state_dict` gave in any number of ranks, of whole
        tensors or of these ranks' rows; with ``load_directly`` it is loaded, too.

        Raises:
            TypeError: the state has no group for a parameter
        """
        state = numbered(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(state)
        return state


def _wrappers(module: Any) -> list[FullyShardedDataParallel]:
    return [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]


def chosen_by(module: Any, policy: Callable[..., bool], ignored: set[int], known: set[int]) -> list[Any]:
    """The modules that a policy names, those inside first."""
    if id(module) in known:
        return []
    known.add(id(module))
    chosen: list[Any] = []
    own = [p for p in module.parameters() if id(p) not in ignored]
    if policy(module=module, recurse=True, nonwrapped_numel=sum([p.numel() for p in own])):
        for child in module.children():
            chosen += chosen_by(child, policy, ignored, known)
    covered = {id(p) for inner in chosen for p in inner.parameters()}
    left = sum([p.numel() for p in own if id(p) not in covered])
    return [*chosen, module] if policy(module=module, recurse=False, nonwrapped_numel=left) else chosen


explain_all(globals())
