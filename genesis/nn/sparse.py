"""Embeddings."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create
from genesis.ops.learning.embedding import embedding
from genesis.ops.learning.embedding_bag import embedding_bag


class _Table(Module):
    """Rows by number, with what `Embedding` and `EmbeddingBag` have in common."""

    def _make(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, weight: Any, made: Any) -> None:
        name = type(self).__name__
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentValueError(message(name, f"padding_idx is {padding_idx}, there are {num_embeddings} rows"))
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if weight is not None and tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ArgumentValueError(
                message(name, f"weight has shape {list(weight.shape)}, expected {[num_embeddings, embedding_dim]}")
            )
        given = weight is not None
        self.weight = Parameter(weight if given else create.empty(num_embeddings, embedding_dim, **made))
        if not given:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows anew, from a normal distribution; the row ``padding_idx`` is zero."""
        init.normal_(self.weight)
        at = self.weight._sharding
        by_row = at is not None and not at.dim
        row = self.padding_idx if self.padding_idx is None or not by_row else self.padding_idx - at.begin
        if row is not None and (not by_row or 0 <= row < at.rows):
            with no_grad():
                (self.weight if at is None else self.weight.to_local())[row] = 0.0  # type: ignore[attr-defined, index]

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, *args: Any, **kwargs: Any) -> Any:
        """A layer whose rows are those of a matrix; they are learned on unless ``freeze``. Other arguments as of the
        class.

        >>> import genesis
        >>> layer = genesis.nn.Embedding.from_pretrained(genesis.tensor([[1., 2.], [3., 4.]]))
        >>> layer(genesis.tensor([1]))
        tensor([[3., 4.]])
        """
        if not isinstance(embeddings, Tensor) or embeddings.ndim != 2:
            raise ArgumentError(message(f"{cls.__name__}.from_pretrained", "embeddings must be a matrix"))
        layer = cls(*embeddings.shape, *cls._ordered(args), _weight=embeddings, **kwargs)  # type: ignore[call-arg]
        layer.weight.requires_grad_(not freeze)
        return layer

    @classmethod
    def _ordered(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return args

    def extra_repr(self) -> str:
        names = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "mode": None,
                 "sparse": False}  # fmt: skip
        shown = [f"{n}={value!r}" for n, d in names.items() if (value := self.__dict__.get(n, d)) != d]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *shown])


class Embedding(_Table):
    """A learned row for each number; the row ``padding_idx`` is zero and stays so.

    >>> import genesis
    >>> genesis.nn.Embedding(10, 3)(genesis.tensor([1, 2])).shape
    genesis.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, {"device": device, "dtype": dtype})
        self.weight.requires_grad_(not _freeze)

    def forward(self, input: Tensor) -> Tensor:
        return embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of learned rows, for each bag of numbers: `embedding_bag`.

    Arguments as of `Embedding` and `genesis.nn.functional.embedding_bag`.

    >>> import genesis
    >>> layer = genesis.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer(genesis.tensor([1, 2, 4, 5]), genesis.tensor([0, 3])).shape
    genesis.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, {"device": device, "dtype": dtype})

    @classmethod
    def _ordered(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of the positional arguments, as the class takes them but without the matrix."""
        if len(args) > 5:
            raise ArgumentError(message("EmbeddingBag.from_pretrained", "give what comes after sparse by name"))
        return args

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip


explain_all(globals())
