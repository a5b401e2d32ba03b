"""A module that several processes train, each on its part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from genesis.base.device import device
from genesis.base.errors import ArgumentError, ArgumentValueError, DistributedError, UnsupportedError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_map
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.nn.compiled import OptimizedModule
from genesis.nn.hooks import call_with_hooks
from genesis.nn.module import Module
from genesis.nn.parallel.buckets import Buckets
from genesis.nn.parallel.shards import Shards

_groups = Late("genesis.distributed.groups")
_collectives = Late("genesis.distributed.nn.ops")
_environment = Late("genesis.distributed.environment")
_join, _models = Late("genesis.distributed.algorithms.join"), Late("genesis.distributed.algorithms.models")
_CAP = 25  # MiB


class DistributedDataParallel(Module):
    """A module whose gradients are the mean of those of all ranks, which therefore stay equal: $g = \\frac{1}{n} \\sum_r
    g_r$.

    Each rank computes on its part of the batch. Gradients are combined in buckets while backward still runs; ``.grad``
    are views of the buckets. Parameters and buffers are those of rank 0 at the beginning, buffers at each forward.

    Args:
        module: what is trained, with at least one parameter that requires grad; it is the attribute ``module``, and
            names in ``state_dict()`` begin with ``module.``
        process_group: the ranks; all of them by default
        bucket_cap_mb: about how large a bucket is, 25 MiB where nothing is said
        broadcast_buffers: make buffers those of rank 0 before each forward
        init_sync: make parameters and buffers those of rank 0 now
        find_unused_parameters: the loss may not depend on all parameters; those that no rank used keep what is in ``.grad``
        static_graph: accepted as ``find_unused_parameters``
        device_ids: the one device that the module is on, to which inputs are then moved; None: inputs come as they are
        output_device: the same device, or None
        gradient_as_bucket_view: accepted, they are
        dim, check_reduction: accepted for PyTorch's sake
        shards: ours: divide the batch into so many logical shards, a power of two, whatever the number of ranks: 1, 2, ...
            ranks end in the same bits, and compute as so many ranks would; inputs and outputs have the rows of the
            batch as their first dimension. What ``GENESIS_SHARDS`` says in the environment, where it is not given

    Raises:
        RuntimeError: there is no process group; ranks have other parameters; (in backward) no gradient came for a parameter
        NotImplementedError: (in backward) gradients with a history, or sparse ones

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> model = genesis.nn.parallel.DistributedDataParallel(genesis.nn.Linear(2, 1))
    >>> model(genesis.ones(4, 2)).mean().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        super().__init__()
        name = "DistributedDataParallel"
        if not isinstance(module, Module):
            raise ArgumentError(message(name, f"expected a module, got {type(module).__name__}"))
        self.device = _one_device(name, module, device_ids, output_device)
        cap = _CAP if bucket_cap_mb is None else bucket_cap_mb
        if not cap > 0:
            raise ArgumentValueError(message(name, f"bucket_cap_mb is {bucket_cap_mb}, expected more than 0"))
        named = [(key, p) for key, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise ArgumentValueError(
                message(name, "no parameter of the module requires grad", hint="the module itself")
            )
        self.module, self.process_group = module, _groups.group_of(name, process_group)
        self.device_ids = None if self.device is None else [self.device.index]
        self.dim, self.output_device = dim, self.device
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = True, True
        self._together, self._join_config = self.process_group.size() > 1, _join.Config()
        shards = _environment.logical_ranks() if shards is None else shards
        if shards is not None:
            _check_shards(named)
        self.shards = None if shards is None else Shards(shards, self.process_group)
        self._cap, self._trained = int(cap * 2**20), named
        if self._together:
            if init_sync:
                _models.share([*module.parameters(), *module.buffers()], self.process_group)
            self._begin()

    def _begin(self) -> None:
        changing = self.find_unused_parameters
        unused, in_tree = changing or self.static_graph, bool(self.shards)
        buckets = Buckets(self._trained, self.process_group, self._cap, unused, in_tree, changing)
        object.__setattr__(self, "_buckets", buckets)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives; the backward through it combines gradients, unless this is inside of `no_sync`."""
        return self._around(self.module, inputs, kwargs)

    def _around(self, module: Module, inputs: Any, kwargs: Any) -> Any:
        """The same by a module in place of its own, which may be the same one compiled."""
        if self.device is not None:
            inputs, kwargs = tree_map(self._moved, (inputs, kwargs))
        root = _models.begun(self) if self._join_config.enable else 0
        if self._together and self.require_backward_grad_sync:
            buffers = list(self.module.buffers()) if self.broadcast_buffers else []
            if buffers:
                _models.share(buffers, self.process_group, root)
            if grad_mode.get():
                self._buckets.prepare()
        elif self._together:
            self._buckets.expected = False
        if self.shards is not None and grad_mode.get():
            return self.shards(module, inputs, kwargs)
        return module(*inputs, **kwargs)

    # ---- compiled: the module inside; what is around it looks at this call, and at the ranks

    def _made_compiled(self, options: dict[str, Any]) -> Any:
        return Around(self, options)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the forward of the module inside in place, see `genesis.compile`, which says what the arguments are."""
        self.module.compile(*args, **kwargs)

    def _moved(self, x: Any) -> Any:
        return x.to(self.device, non_blocking=True) if isinstance(x, Tensor) else x

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forward and backward in here add to this rank's own gradients; the first backward after it combines the sums.

        >>> import genesis, genesis.distributed as dist
        >>> dist.init_process_group()
        >>> model = genesis.nn.parallel.DistributedDataParallel(genesis.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(genesis.ones(4, 2)).mean().backward()
        >>> model(genesis.ones(4, 2)).mean().backward(); model.module.weight.grad
        tensor([[2., 2.]])
        >>> dist.destroy_process_group()
        """
        if self.shards is not None:
            text = "gradients of several batches are added in another order for another number of ranks"
            raise UnsupportedError(
                message("no_sync", text, hint="no shards (and no GENESIS_SHARDS), or one backward for each step")
            )
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def combine_in_next_backward(self) -> None:
        """Let the next backward combine the sums, although its forward was inside of `no_sync`: stages of a pipeline have
        forwards of other batches in between.
        """
        if self._together:
            self._buckets.prepare()

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch measures by itself, and trainers look into: nothing, `genesis.profiler` does."""
        return {}

    def register_comm_hook(self, state: object, hook: Callable[[Any, Any], Any]) -> None:
        """Let a function combine gradients: ``hook(state, bucket)`` returns a future of what takes the place of
        ``bucket.buffer()``, a `genesis.distributed.GradBucket` with the gradients of this rank, which are no mean yet.

        `genesis.distributed.algorithms.ddp_comm_hooks.default_hooks` has some, whose state is a process group or None.
        A step with such a backward is not compiled.

        Raises:
            RuntimeError: there is a hook already
            NotImplementedError: with logical shards

        >>> import genesis, genesis.distributed as dist
        >>> from genesis.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> dist.init_process_group()
        >>> model = genesis.nn.parallel.DistributedDataParallel(genesis.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        >>> model(genesis.ones(4, 2)).mean().backward()
        >>> dist.destroy_process_group()
        """
        name = "register_comm_hook"
        if not callable(hook):
            raise ArgumentError(message(name, f"hook is {type(hook).__name__}, expected a function"))
        if self.shards is not None:
            text = "gradients of logical shards are added in one tree"
            raise UnsupportedError(message(name, text, hint="no shards, or no hook"))
        if not self._together:  # a world of one combines nothing, but by a hook
            self._together = True
            self._begin()
        if self._buckets.hook is not None:
            raise DistributedError(message(name, "there is a hook already", hint="one function that does both"))
        self._buckets.hook = partial(hook, state)

    # ---- ranks that have more steps than others

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """In here ranks may have different numbers of steps; `genesis.distributed.algorithms.Join` of this model alone.

        >>> import genesis, genesis.distributed as dist
        >>> dist.init_process_group()
        >>> model = genesis.nn.parallel.DistributedDataParallel(genesis.nn.Linear(2, 1))
        >>> with model.join():
        ...     model(genesis.ones(4, 2)).mean().backward()
        >>> dist.destroy_process_group()
        """
        return _join.Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """What a rank that has no step left does: it adds zeros to the gradients of the others."""
        return _models.Hook(self, **kwargs)

    @property
    def join_device(self) -> Any:
        """The device of the module's first parameter."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group


class Around:
    """What `genesis.compile` makes of such a module: the module inside compiled, and around it what this one does."""

    def __init__(self, outer: DistributedDataParallel, options: dict[str, Any]) -> None:
        self.outer, self.inner = outer, OptimizedModule(outer.module, **options)
        self.explain = self.inner.explain

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if ACTIVE:  # inside of what is traced it is a part of that
            return self.outer(*inputs, **kwargs)
        self.inner.__dict__["training"] = self.outer.module.training
        return call_with_hooks(self.outer, inputs, kwargs, self._forward)

    def _forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.outer._around(self.inner, inputs, kwargs)


def _one_device(name: str, module: Module, device_ids: Any, output_device: Any) -> Any:
    """The device that the module is on, if it was named; None where none was."""
    named = [*(device_ids or ()), *([] if output_device is None else [output_device])]
    if not named:
        return None
    asked = {str(device("cuda", each) if isinstance(each, int) else device(each)) for each in named}
    there = {str(each.device) for each in [*module.parameters(), *module.buffers()]}
    if len(asked) > 1 or len(device_ids or [0]) > 1 or asked != there:
        text = f"device_ids={device_ids!r}, output_device={output_device!r}, and the module is on {', '.join(sorted(there))}"
        raise ArgumentValueError(message(name, text, hint="module.to(device) and device_ids=[its index], or None"))
    return device(asked.pop())


def _check_shards(named: Any) -> None:
    """Shards are summed in memory of the CPU."""
    elsewhere = [f"{key} on {p.device}" for key, p in named if p.device.type != "cpu"]
    if elsewhere:
        raise UnsupportedError(
            message(_NAME, f"shards are summed on the CPU, {elsewhere[0]}", hint="shards=None, or module.to('cpu')")
        )


_NAME = "DistributedDataParallel"

explain_all(globals())
