"""Smaller names of autograd, func, nn, checkpoint and data."""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import genesis
from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.base.pytree import is_container, rule_of
from genesis.core.graph.saved import saved_tensors_hooks
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.stand_ins.common import NoEffect, Values, as_it_is, nothing, values

# ---- autograd


class InplaceFunction(genesis.Function):
    """A `Function` of PyTorch's first years, which remembers whether it writes in place."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Inside, what is saved for backward is a copy: writes in place change nothing of it."""
    with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        yield NoEffect()


@values("torch.autograd.function")
def _function() -> Values:
    node = importlib.import_module("genesis.core.graph.node").Node
    return {"InplaceFunction": InplaceFunction, "NestedIOFunction": genesis.Function, "BackwardCFunction": node,
            "FunctionMeta": type(genesis.Function)}  # fmt: skip


@values("torch.autograd")
def _autograd() -> Values:
    return {
        "NestedIOFunction": genesis.Function,
        "variable": lambda data, requires_grad=False: data.requires_grad_(requires_grad),
    }


@values("torch.autograd.graph")
def _graph() -> Values:
    return {
        "allow_mutation_on_saved_tensors": allow_mutation_on_saved_tensors, "region_activation_memory_budget": NoEffect,
        "set_override_stale_capture_stream": nothing, "set_warn_on_accumulate_grad_stream_mismatch": nothing,
    }  # fmt: skip


# ---- func


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Dimensions named, split, joined and put in another order: ``"b (h w) c -> b c h w"``.

    >>> import genesis
    >>> from genesis.pytorch.stand_ins.training import rearrange
    >>> rearrange(genesis.ones(2, 6), "b (h w) -> h b w", h=3).shape
    genesis.Size([3, 2, 2])
    """
    x = genesis.stack(list(tensor)) if isinstance(tensor, list | tuple) else tensor
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise ArgumentValueError(message("rearrange", f"the pattern has no '->': {pattern!r}"))
    before, after = _axes(left), _axes(right)
    rest = x.ndim - sum(group != ["*"] for group in before)
    before, after = ([g for group in groups for g in _spread(group, rest)] for groups in (before, after))
    sizes = _sizes(x.shape, before, axes_lengths, pattern)
    names = [name for group in before for name in group]
    if len(before) != x.ndim or sorted(names) != sorted([name for group in after for name in group]):
        raise ArgumentValueError(message("rearrange", f"{pattern!r} does not fit {list(x.shape)}"))
    x = x.reshape([sizes[name] for name in names])
    x = x.permute([names.index(name) for group in after for name in group])
    return x.reshape([math.prod([sizes[name] for name in group]) for group in after])


def _axes(text: str) -> list[list[str]]:
    """The groups of names of one side: ``"b (h w) 1"`` is [["b"], ["h", "w"], []]."""
    groups = re.findall(r"\([^()]*\)|\S+", text)
    return [["*"] if group == "..." else [n for n in group.strip("()").split() if n != "1"] for group in groups]


def _spread(group: list[str], rest: int) -> list[list[str]]:
    names = [f"...{i}" for i in range(rest)]
    if group == ["*"]:
        return [[name] for name in names]
    return [[name for part in group for name in (names if part == "..." else [part])]]


def _sizes(shape: Any, groups: list[list[str]], given: dict[str, int], pattern: str) -> dict[str, int]:
    sizes = dict(given)
    for n, group in zip(shape, groups, strict=False):
        unknown = [name for name in group if name not in sizes]
        known = math.prod([sizes[name] for name in group if name in sizes])
        if len(unknown) == 1 and known and n % known == 0:
            sizes[unknown[0]] = n // known
        elif unknown or known != n:
            raise ArgumentValueError(message("rearrange", f"{pattern!r} does not fit {list(shape)} with {given}"))
    return sizes


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Batch norms without running statistics, which no transform could write to."""
    for module in root.modules():
        if isinstance(module, (genesis.nn.BatchNorm1d, genesis.nn.BatchNorm2d, genesis.nn.BatchNorm3d)):
            module.track_running_stats, module.num_batches_tracked = False, None
            module.running_mean = module.running_var = None
    return root


@values("torch.func")
def _func() -> Values:
    return {"rearrange": rearrange, "functionalize": lambda func, *, remove="mutations": func,
            "replace_all_batch_norm_modules_": replace_all_batch_norm_modules_}  # fmt: skip


# ---- nn


@values("torch.nn.parameter")
def _parameter() -> Values:
    mixin = importlib.import_module("genesis.nn.uninitialized").Uninitialized
    return {"UninitializedTensorMixin": mixin, "is_lazy": lambda param: isinstance(param, mixin)}


@values("torch.nn.utils")
def _nn_utils() -> Values:
    nn = genesis.nn

    def converted(*kinds: type) -> Callable[..., Any]:
        def convert(module: Any, memory_format: Any) -> Any:
            for each in module.modules():
                if isinstance(each, kinds):
                    each.weight.data = each.weight.detach().clone().contiguous(memory_format=memory_format)
            return module

        return convert

    return {
        "convert_conv2d_weight_memory_format": converted(nn.Conv2d, nn.ConvTranspose2d),
        "convert_conv3d_weight_memory_format": converted(nn.Conv3d, nn.ConvTranspose3d),
    }


@values("torch.nn.parallel")
def _parallel() -> Values:
    def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
        given = [x if isinstance(x, list | tuple) else (x,) for x in inputs]
        options = kwargs_tup or [{}] * len(given)
        return [module(*x, **o) for module, x, o in zip(modules, given, options, strict=True)]

    return {"parallel_apply": parallel_apply}


# ---- checkpoint


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where none of the inputs requires grad, so that a checkpoint has no gradient."""
    if not any([x.requires_grad for x in inputs if isinstance(x, Tensor)]):
        text = "None of the inputs have requires_grad=True. Gradients will be None"
        importlib.import_module("warnings").warn(text, stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without history that require grad as before."""
    if not isinstance(inputs, tuple):
        raise GraphError(message("detach_variable", f"expected a tuple of tensors, got {type(inputs).__name__}"))
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


class DefaultDeviceType:
    """The kind of device whose random state a checkpoint keeps: the CPU's is kept always."""

    _default = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default


@values("torch.utils.checkpoint")
def _checkpoint() -> Values:
    return {
        "CheckpointError": GraphError, "DefaultDeviceType": DefaultDeviceType, "GraphExecGroup": NoEffect,
        "SAC_IGNORED_OPS": set(), "check_backward_validity": check_backward_validity, "detach_variable": detach_variable,
        "get_device_states": lambda *args: ([], []), "set_device_states": nothing, "set_checkpoint_debug_enabled": NoEffect,
        "set_checkpoint_early_stop": NoEffect,
    }  # fmt: skip


# ---- data


class IterDataPipe(genesis.data.IterableDataset):  # type: ignore[type-arg]
    """A stream whose steps are methods: what `functional_datapipe` names is called on any stream."""

    _functions: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._functions:
            return functools.partial(type(self)._functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any, *args: Any, **kwargs: Any) -> None:
        cls._functions[function_name] = cls_to_register


class MapDataPipe(genesis.data.Dataset):  # type: ignore[type-arg]
    """`IterDataPipe` of a dataset with numbers."""

    _functions: dict[str, Any] = {}
    __getattr__ = IterDataPipe.__getattr__
    register_datapipe_as_function = classmethod(IterDataPipe.register_datapipe_as_function.__func__)  # type: ignore[attr-defined]


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Any], Any]:
    """Name a step: ``pipe.name(...)`` is ``Class(pipe, ...)``."""

    def decorate(cls: Any) -> Any:
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(name, cls)  # type: ignore[attr-defined]
        return cls

    return decorate


@values("torch.utils.data")
def _data() -> Values:
    return {
        "IterDataPipe": IterDataPipe, "MapDataPipe": MapDataPipe, "DFIterDataPipe": IterDataPipe, "DataChunk": list,
        "functional_datapipe": functional_datapipe, "argument_validation": as_it_is, "runtime_validation": as_it_is,
        "non_deterministic": as_it_is, "runtime_validation_disabled": NoEffect, "guaranteed_datapipes_determinism": NoEffect,
    }  # fmt: skip


# ---- trees, hooks and counters of torch.utils


class MappingKey(NamedTuple):
    """Where a leaf of a tree is: under a key of a dict."""

    key: Any


class _Nodes:
    """Classes of containers, and how each is flattened, as libraries look them up that flatten trees in their own way."""

    def __contains__(self, kind: type) -> bool:
        return is_container(kind)

    def __getitem__(self, kind: type) -> SimpleNamespace:
        rule = rule_of(kind)
        if rule is None:
            raise KeyError(kind)
        flatten, unflatten = rule
        return SimpleNamespace(
            type=kind,
            flatten_fn=lambda tree: (list(flatten(tree)[0]), flatten(tree)[1]),
            unflatten_fn=lambda children, rest: unflatten(kind, list(children), rest),
        )


@values("torch.utils._pytree")
def _pytree() -> Values:
    base = importlib.import_module("genesis.base.pytree")
    flat = base.tree_flatten

    def leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
        return flat(tree, is_leaf)[0]  # type: ignore[no-any-return]

    def tree_map_(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
        base.tree_map(func, tree, *rests, is_leaf=is_leaf)
        return tree

    def tree_map_only(kind: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
        kinds = kind if isinstance(kind, type | tuple) else None
        fits = kind if kinds is None else lambda x: isinstance(x, kinds)
        return base.tree_map(lambda x: func(x) if fits(x) else x, tree, is_leaf=is_leaf)

    def register(cls: type, flatten_fn: Any, unflatten_fn: Any, **options: Any) -> None:
        base.register_pytree_node(cls, flatten_fn, unflatten_fn)

    return {
        "tree_flatten": flat, "tree_unflatten": base.tree_unflatten, "tree_map": base.tree_map, "tree_leaves": leaves,
        "tree_iter": lambda tree, is_leaf=None: iter(leaves(tree, is_leaf)), "tree_map_": tree_map_,
        "tree_structure": lambda tree, is_leaf=None: flat(tree, is_leaf)[1], "tree_map_only": tree_map_only,
        "tree_any": lambda pred, tree, is_leaf=None: any([pred(x) for x in leaves(tree, is_leaf)]),
        "tree_all": lambda pred, tree, is_leaf=None: all([pred(x) for x in leaves(tree, is_leaf)]),
        "TreeSpec": base.TreeDef, "LeafSpec": lambda: flat(None)[1], "PyTree": Any, "register_pytree_node": register,
        "_register_pytree_node": register, "Context": Any, "SUPPORTED_NODES": _Nodes(), "_get_node_type": type,
        "MappingKey": MappingKey,
        "_dict_flatten": lambda d: (list(d.values()), list(d)),
        "_dict_flatten_with_keys": lambda d: ([(MappingKey(key), value) for key, value in d.items()], list(d)),
        "_dict_unflatten": lambda values, context: dict(zip(context, values, strict=True)),
    }  # fmt: skip


@values("torch.utils.hooks")
def _hooks() -> Values:
    handle = importlib.import_module("genesis.core.graph.hooks").RemovableHandle
    return {"RemovableHandle": handle, "unserializable_hook": as_it_is, "warn_if_has_hooks": nothing}


@values("torch.utils.weak")
def _weak() -> Values:
    weakref = importlib.import_module("weakref")
    keys = weakref.WeakKeyDictionary  # tensors are equal to themselves alone here
    return {
        "WeakIdKeyDictionary": keys,
        "WeakTensorKeyDictionary": keys,
        "TensorWeakRef": weakref.ref,
        "WeakIdRef": weakref.ref,
    }


@values("torch.utils.flop_counter")
def _flops() -> Values:
    module = importlib.import_module("genesis.debug.flop_counter")
    return {name: getattr(module, name) for name in module.__all__}
