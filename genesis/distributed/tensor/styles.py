"""How layers are divided among ranks: what each computes of them, and how tensors lie before and after."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import depends
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.placements import Partial, Placement, Replicate, Shard
from genesis.distributed.sharded import Sharding
from genesis.distributed.tensor import distribute_tensor
from genesis.distributed.tensor.dtensor import Distributed, local_of
from genesis.distributed.tensor.exchange import copied, divided, moved
from genesis.distributed.tensor.parts import dropout_of_part, embedding_of_rows
from genesis.nn.dropout import Dropout
from genesis.nn.functional import linear
from genesis.nn.linear import Linear
from genesis.nn.sparse import Embedding


class ParallelStyle(abc.ABC):
    """How a layer is divided among ranks. One of your own has a method ``_apply(module, device_mesh)``, which changes the
    module and returns it.
    """

    src_data_rank: int | None = 0  # the rank whose values count; None: all have the same

    @abc.abstractmethod
    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any: ...

    def _instead(self, module: Any, computed: Callable[..., Any]) -> Any:
        """Let a module compute ``computed(forward, *args, **kwargs)``, where ``forward`` is what it did."""
        module.forward = functools.partial(computed, module.forward)
        return module


def taken(
    x: Any, mesh: DeviceMesh, said: Placement | None, to: Placement, terms: bool = False, width: int | None = None
) -> Any:
    """This rank's part of an input: of a `DTensor` one knows how it lies, of another tensor it is said; ``width`` is how long
    its last dimension is.
    """
    if isinstance(x, Distributed):
        return x.lying(mesh, (to,), terms)
    if not isinstance(x, Tensor) or said is None:
        return x
    last = said.is_shard() and said.dim % x.ndim == x.ndim - 1  # type: ignore[attr-defined]
    return moved(x, mesh, said, to, width if last else None, terms)


def given(x: Any, mesh: DeviceMesh, lies: Placement, to: Placement, length: int | None, local: bool) -> Any:
    """An output that lies in one way, as it is to be: this rank's part, or a `DTensor`."""
    if local:
        return moved(x, mesh, lies, to, length)
    shape = list(x.shape)
    if lies.is_shard() and length is not None:
        shape[lies.dim % x.ndim] = length
    return Distributed.around(x, mesh, (lies,), shape).redistribute(placements=(to,))


class _OfLayers(ParallelStyle):
    """A style of `Linear` and `Embedding`.

    Args:
        input_layouts: how inputs lie that do not say it themselves
        output_layouts: how the output is to lie
        use_local_output: whether the output is this rank's part, an ordinary tensor; else it is a `DTensor`
    """

    _usual: tuple[Placement, Placement]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.input_layouts, self.output_layouts = input_layouts or self._usual[0], output_layouts or self._usual[1]
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if not isinstance(module, Linear | Embedding):
            text = f"a {type(module).__name__}, and layers that are divided so are Linear and Embedding"
            raise UnsupportedError(
                message(type(self).__name__, text, hint="SequenceParallel(), or fully_shard(module)")
            )
        if isinstance(module, Embedding) and (
            module.max_norm is not None or module.scale_grad_by_freq or module.sparse
        ):
            text = "max_norm, scale_grad_by_freq and sparse look at whole rows, or at all words"
            raise UnsupportedError(message(type(self).__name__, text, hint="an Embedding without them"))
        if module.weight._layout is not None:
            raise ArgumentValueError(message(type(self).__name__, "the layer is divided already"))
        of_words = isinstance(module, Embedding)
        self._divide(module, device_mesh, of_words)
        return self._instead(module, functools.partial(self._computed, module, device_mesh, of_words))

    @abc.abstractmethod
    def _divide(self, layer: Any, mesh: DeviceMesh, of_words: bool) -> None:
        """Leave this rank's part of the parameters."""

    @abc.abstractmethod
    def _computed(self, layer: Any, mesh: DeviceMesh, of_words: bool, forward: Any, x: Any) -> Any:
        """The output of a layer that is divided."""

    def _leave(self, layer: Any, mesh: DeviceMesh, name: str, placement: Placement) -> None:
        p = getattr(layer, name, None)
        if p is not None:
            setattr(layer, name, distribute_tensor(p, mesh, [placement], src_data_rank=self.src_data_rank))


class ColwiseParallel(_OfLayers):
    """Each rank has some of the outputs of a `Linear`, by default of an input that all have: rows of the weight and of the
    bias, which are columns of the matrix that the input is multiplied by. Of an `Embedding` it has some columns.
    """

    _usual = Replicate(), Shard(-1)

    def _divide(self, layer: Any, mesh: DeviceMesh, of_words: bool) -> None:
        self._leave(layer, mesh, "weight", Shard(1 if of_words else 0))
        self._leave(layer, mesh, "bias", Shard(0))

    def _computed(self, layer: Any, mesh: DeviceMesh, of_words: bool, forward: Any, x: Any) -> Any:
        width = None if of_words else layer.in_features
        x = taken(x, mesh, self.input_layouts, Replicate(), not of_words, width)
        length = layer.embedding_dim if of_words else layer.out_features
        with _other_parameters(layer, local_of):
            out = forward(x)
        return given(out, mesh, Shard(-1), self.output_layouts, length, self.use_local_output)


class RowwiseParallel(_OfLayers):
    """Each rank has some of the inputs of a `Linear`, by default those that a layer of `ColwiseParallel` gives: columns of
    the weight. Outputs are summed over the ranks, then the bias is added, which all have. Of an `Embedding` it has some
    rows, and its ``input_layouts`` is to be ``Replicate()``.
    """

    _usual = Shard(-1), Replicate()

    def _divide(self, layer: Any, mesh: DeviceMesh, of_words: bool) -> None:
        self._leave(layer, mesh, "weight", Shard(0 if of_words else 1))
        self._leave(layer, mesh, "bias", Replicate())

    def _computed(self, layer: Any, mesh: DeviceMesh, of_words: bool, forward: Any, x: Any) -> Any:
        weight = local_of(layer.weight)
        if of_words:
            x = taken(x, mesh, self.input_layouts, Replicate())
            out, bias = (
                embedding_of_rows(x, weight, Sharding(layer.num_embeddings, mesh), layer.padding_idx),
                None,
            )
        else:
            x = _columns(x, layer, mesh, self.input_layouts)
            out, bias = linear(x, weight), layer.bias
        out, to = moved(out, mesh, Partial(), self.output_layouts), self.output_layouts
        if bias is not None and to.is_shard():  # each rank adds it to its own part
            own = to.dim % out.ndim == out.ndim - 1  # type: ignore[attr-defined]
            bias = divided(bias, Sharding(layer.out_features, mesh)) if own else copied(bias, mesh.get_group().key)
        out = out if bias is None else out + bias
        if self.use_local_output:
            return out
        width = layer.embedding_dim if of_words else layer.out_features
        return Distributed.around(out, mesh, (to,), [*x.shape[: None if of_words else -1], width])


def _columns(x: Any, layer: Any, mesh: DeviceMesh, said: Placement) -> Any:
    """This rank's columns of an input."""
    if not isinstance(x, Distributed) and said.is_shard() and said.dim % x.ndim == x.ndim - 1:  # type: ignore[attr-defined]
        return x  # as they came of another layer, which may have left some ranks less
    return taken(x, mesh, said, Shard(x.ndim - 1))


class SequenceParallel(ParallelStyle):
    """A layer that treats the examples of a sequence alike, as `LayerNorm`, `RMSNorm` and `Dropout` do: each rank computes for
    its part of the sequence. All have its parameters. Random numbers are those that one rank would draw.

    Args:
        sequence_dim: the dimension of the sequence
        use_local_output: whether the output is this rank's part, an ordinary tensor; else it is a `DTensor`
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        for owner in module.modules():
            for name, p in list(owner.named_parameters(recurse=False)):
                if p._layout is not None:
                    raise ArgumentValueError(message("SequenceParallel", f"{name} is divided already"))
                setattr(owner, name, distribute_tensor(p, device_mesh, [Replicate()], src_data_rank=self.src_data_rank))
        return self._instead(module, functools.partial(self._computed, module, device_mesh))

    def _computed(self, module: Any, mesh: DeviceMesh, forward: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        lies = Shard(self.sequence_dim)
        part, dim = taken(x, mesh, lies, lies), self.sequence_dim % x.ndim
        length = x.shape[dim] if isinstance(x, Distributed) else part.shape[dim] * mesh.size()
        if isinstance(module, Dropout):
            out = dropout_of_part(part, Sharding(length, mesh, dim), module.p, module.training)
        else:
            # each rank computes something of its own with the parameters: gradients are summed
            with _other_parameters(module, functools.partial(copied, key=mesh.get_group().key)):
                out = forward(part, *args, **kwargs)
        return given(out, mesh, lies, lies, length, self.use_local_output)


@contextmanager
def _other_parameters(module: Any, f: Callable[[Any], Any]) -> Iterator[None]:
    """Inside, a module computes with what a function makes of its parameters."""
    own = [(owner, name, p) for owner in module.modules() for name, p in owner._parameters.items() if p is not None]
    try:
        for owner, name, p in own:
            depends(owner)
            owner._parameters[name] = f(p)
        yield
    finally:
        for owner, name, p in own:
            owner._parameters[name] = p


Layouts = Placement | Sequence[Placement | None] | None


class PrepareModuleInput(ParallelStyle):
    """Inputs of a module are made to lie as it is told, before it computes.

    Args:
        input_layouts: how each of them lies that does not say it itself; None for what stays as it is
        desired_input_layouts: how each is to lie
        input_kwarg_layouts, desired_input_kwarg_layouts: the same of those by name
        use_local_output: whether the module is given its rank's part, ordinary tensors; else `DTensor`

    Raises:
        ValueError: another number of layouts than of wanted ones
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ) -> None:  # fmt: skip
        self.input_layouts, self.desired_input_layouts = _pair(
            type(self).__name__, input_layouts, desired_input_layouts
        )
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            text = f"layouts of {[*self.input_kwarg_layouts]}, and of {[*self.desired_input_kwarg_layouts]}"
            raise ArgumentValueError(message(type(self).__name__, text, hint="one for each in both"))
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return self._instead(module, functools.partial(self._computed, device_mesh))

    def _computed(self, mesh: DeviceMesh, forward: Any, *args: Any, **kwargs: Any) -> Any:
        if self.input_layouts is not None:
            args = _each("inputs", args, self.input_layouts, self.desired_input_layouts, mesh, self.use_local_output)
        for name, lies in self.input_kwarg_layouts.items():
            if name in kwargs:
                to = self.desired_input_kwarg_layouts[name]
                kwargs[name] = _lying(kwargs[name], mesh, lies, to, self.use_local_output)
        return forward(*args, **kwargs)


class PrepareModuleOutput(ParallelStyle):
    """Outputs of a module are made to lie as it is told.

    Args:
        output_layouts: how each of them lies that does not say it itself; None for what stays as it is
        desired_output_layouts: how each is to lie
        use_local_output: whether they are this rank's part, ordinary tensors; else `DTensor`

    Raises:
        ValueError: another number of layouts than of wanted ones
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        name = type(self).__name__
        self.output_layouts, self.desired_output_layouts = _pair(name, output_layouts, desired_output_layouts)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return self._instead(module, functools.partial(self._computed, device_mesh))

    def _computed(self, mesh: DeviceMesh, forward: Any, *args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        several = out if isinstance(out, tuple) else (out,)
        lie = _each("outputs", several, self.output_layouts, self.desired_output_layouts, mesh, self.use_local_output)
        return lie if isinstance(out, tuple) else lie[0]


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module; ``use_local_input`` is the first one's
    ``use_local_output``.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


def _pair(name: str, layouts: Layouts, wanted: Layouts) -> tuple[Any, Any]:
    """Both as tuples, or None."""
    first, second = [(x,) if isinstance(x, Placement) else None if x is None else tuple(x) for x in (layouts, wanted)]
    if (first is None) != (second is None) or (first is not None and len(first) != len(second or ())):
        text = f"layouts are {layouts}, wanted are {wanted}"
        raise ArgumentValueError(message(name, text, hint="as many of both"))
    return first, second


def _each(what: str, values: Sequence[Any], lie: Any, to: Any, mesh: DeviceMesh, local: bool) -> tuple[Any, ...]:
    if len(values) != len(lie):
        text = f"the module has {len(values)} {what}, and layouts of {len(lie)} are given"
        raise ArgumentError(message("parallelize_module", text, hint="None for what stays as it is"))
    return tuple([_lying(x, mesh, a, b, local) for x, a, b in zip(values, lie, to, strict=True)])


def _lying(x: Any, mesh: DeviceMesh, said: Placement | None, to: Placement | None, local: bool) -> Any:
    if said is None or to is None or not isinstance(x, Tensor):
        return x
    whole = x if isinstance(x, Distributed) else Distributed.even(x, mesh, (said,))
    out = whole.redistribute(placements=(to,))
    return out.to_local() if local else out


__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip

explain_all(globals())
