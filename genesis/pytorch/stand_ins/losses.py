"""Functions that ``torch`` has besides those of ``torch.nn.functional``, with arguments of their own: how a loss is reduced
is a number, a switch says whether one trains.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from genesis.core.call.out import takes_out
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.stand_ins.common import Values, values

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(number: int) -> str:
    if number not in (0, 1, 2):
        raise ValueError(f"{number} is not a valid value for reduction")
    return _REDUCTIONS[number]


def _functional() -> Any:
    return importlib.import_module("genesis.nn.functional")


def _losses() -> Values:
    f = _functional()

    def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None,
                                         reduction: int = 1) -> Tensor:  # fmt: skip
        word = _reduction(reduction)
        return f.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=word)

    def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
        total = f.kl_div(input, target, reduction="none", log_target=log_target)
        return total.mean() if reduction == 1 else total.sum() if reduction == 2 else total  # without a warning

    def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
                 reduction: int = 1, zero_infinity: bool = False) -> Tensor:  # fmt: skip
        word = _reduction(reduction)
        return f.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity)

    def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
        return f.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))

    def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                            reduction: int = 1) -> Tensor:  # fmt: skip
        return f.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))

    def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                              reduction: int = 1) -> Tensor:  # fmt: skip
        return f.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))

    def poisson_nll_loss(
        input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
    ) -> Tensor:
        return f.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))

    def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                            eps: float = 1e-6, swap: bool = False, reduction: int = 1) -> Tensor:  # fmt: skip
        word = _reduction(reduction)
        return f.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=word)

    return _named(
        binary_cross_entropy_with_logits, kl_div, ctc_loss, hinge_embedding_loss, margin_ranking_loss, cosine_embedding_loss,
        poisson_nll_loss, triplet_margin_loss,
    )  # fmt: skip


def _named(*functions: Callable[..., Any]) -> Values:
    return {f.__name__: f for f in functions}


def _dropouts() -> Values:
    f = _functional()

    def forms(name: str, call: Callable[..., Any]) -> Values:
        return {
            name: lambda input, p, train: call(input, p, train),
            f"{name}_": lambda input, p, train: call(input, p, train, True),
        }

    return {
        **forms("alpha_dropout", f.alpha_dropout), **forms("feature_alpha_dropout", f.feature_alpha_dropout),
        "feature_dropout": lambda input, p, train: _channels_dropped(input, p, train),
        "feature_dropout_": lambda input, p, train: input.copy_(_channels_dropped(input, p, train)),
    }  # fmt: skip


def _channels_dropped(input: Any, p: float, train: bool) -> Any:
    """Whole channels (N, C, ...) become zeros."""
    if not train:
        return input
    mask = _functional().dropout(input.detach().new_ones((*input.shape[:2], *[1] * (input.ndim - 2))), p, True)
    return input * mask


def _layers() -> Values:
    f, genesis = _functional(), importlib.import_module("genesis")

    def instance_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
                      momentum: float, eps: float, cudnn_enabled: bool = False) -> Tensor:  # fmt: skip
        return f.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)

    def embedding_bag(weight: Tensor, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
                      sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
                      padding_idx: Any = None) -> Any:  # fmt: skip
        word = ("sum", "mean", "max")[mode]
        out = f.embedding_bag(indices, weight, offsets, None, 2.0, scale_grad_by_freq, word, sparse, per_sample_weights,
                              include_last_offset, padding_idx)  # fmt: skip
        return out, *_bags_of(indices, offsets, include_last_offset, padding_idx)

    def _bags_of(indices: Any, offsets: Any, last: bool, padding_idx: Any) -> Any:
        ends = offsets[1:] if last else genesis.cat([offsets[1:], offsets.new_full((1,), indices.numel())])
        sizes = ends - offsets[: len(ends)]
        bags = genesis.repeat_interleave(genesis.arange(len(sizes)), sizes)
        if padding_idx is not None:
            kept = indices[: len(bags)] != padding_idx
            sizes = sizes.new_zeros(sizes.shape).index_add(0, bags, kept.to(sizes.dtype))
        return bags, sizes, offsets.new_zeros(len(sizes))

    def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
        return f.affine_grid(theta, size, align_corners)

    def grid_sampler(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
        return f.grid_sample(input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)

    def embedding_renorm_(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
        f.embedding(indices, self, None, max_norm, norm_type)
        return self

    def max_pool1d_with_indices(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return f.max_pool1d(input, *args, **{**kwargs, "return_indices": True})

    return {
        **_named(instance_norm, embedding_bag, affine_grid_generator, grid_sampler, embedding_renorm_,
                 max_pool1d_with_indices),
        "grid_sampler_2d": grid_sampler, "grid_sampler_3d": grid_sampler,
    }  # fmt: skip


def _native() -> Values:
    """What the kernels of PyTorch give: the result, and what they keep for the backward."""
    f, genesis = _functional(), importlib.import_module("genesis")

    def native_dropout(input: Any, p: float, train: bool | None) -> Any:
        if train is False:
            return input, genesis.ones_like(input, dtype=genesis.bool)
        mask = genesis.rand_like(input.detach()) >= p
        return input * mask / (1 - p) if p < 1 else input * 0, mask

    def _rows(x: Any, count: int, each: int, eps: float) -> Any:
        flat = x.reshape(count, each)
        return flat.mean(1), (flat.var(1, unbiased=False) + eps).rsqrt()

    def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        shape = tuple(input.shape[: input.ndim - len(normalized_shape)])
        mean, rstd = _rows(input.detach(), genesis.Size(shape).numel(), genesis.Size(normalized_shape).numel(), eps)
        kept = (*shape, *[1] * len(normalized_shape))
        return f.layer_norm(input, normalized_shape, weight, bias, eps), mean.reshape(kept), rstd.reshape(kept)

    def native_group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:  # noqa: N803
        mean, rstd = _rows(input, N * group, C // group * HxW, eps)
        return f.group_norm(input, group, weight, bias, eps), mean.reshape(N, group), rstd.reshape(N, group)

    @takes_out
    def native_batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                          momentum: float, eps: float) -> Any:  # fmt: skip
        out = f.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
        each = input.numel() // max(input.shape[1], 1)
        kept = (
            _rows(input.detach().transpose(0, 1), input.shape[1], each, eps) if training else (input.new_empty(0),) * 2
        )
        return out, *kept

    def batch_norm_update_stats(input: Any, running_mean: Any, running_var: Any, momentum: float) -> Any:
        channels = input.transpose(0, 1).reshape(input.shape[1], -1)
        mean, var = channels.mean(1), channels.var(1, unbiased=False)
        for running, now in ((running_mean, mean), (running_var, channels.var(1))):
            if running is not None:
                running.mul_(1 - momentum).add_(now.detach() * momentum)
        return mean, var

    return _named(native_dropout, native_layer_norm, native_group_norm, native_batch_norm, batch_norm_update_stats) | {
        "native_norm": lambda input, p=2, *a, **k: genesis.norm(input, p)
    }


@values("torch")
def _torch() -> Values:
    return {**_losses(), **_dropouts(), **_layers(), **_native()}


def _with_indices(name: str) -> Callable[..., Any]:
    def pool(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(_functional(), name)(input, *args, **{**kwargs, "return_indices": True})

    pool.__name__ = pool.__qualname__ = f"{name}_with_indices"
    return pool


_POOLS = ("max_pool", "adaptive_max_pool", "fractional_max_pool")


@values("torch.nn.functional")
def _nn_functional() -> Values:
    names = [f"{kind}{n}d" for kind in _POOLS for n in (1, 2, 3) if (kind, n) != ("fractional_max_pool", 1)]

    def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
        assert isinstance(arg, int) or len(arg) == 2, message.format(arg_name)

    def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str,
                         func_name: str) -> Any:  # fmt: skip
        def chosen(*args: Any, **kwargs: Any) -> Any:
            positional = args[arg_index] if len(args) > arg_index else default
            return (if_true if kwargs.get(arg_name, positional) else if_false)(*args, **kwargs)

        chosen.__name__, chosen.__module__ = func_name, module_name
        return chosen

    def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
        out = _grouped(mat_a, mat_b, offs)
        out = out if bias is None else out + bias
        return out if out_dtype is None else out.to(out_dtype)

    return {
        **{f"{name}_with_indices": _with_indices(name) for name in names},
        "GRID_SAMPLE_INTERPOLATION_MODES": {"bilinear": 0, "nearest": 1, "bicubic": 2},
        "GRID_SAMPLE_PADDING_MODES": {"zeros": 0, "border": 1, "reflection": 2},
        **{f"BroadcastingList{n}": list for n in (1, 2, 3)},
        **_named(assert_int_or_pair, boolean_dispatch, grouped_mm),
    }  # fmt: skip


def _grouped(a: Any, b: Any, offs: Any) -> Any:
    """Products of groups of rows (or columns, or of what is summed over) that end at ``offs``, each with a matrix."""
    genesis = importlib.import_module("genesis")
    if offs is None:
        return genesis.bmm(a, b)
    ends = [int(n) for n in offs.tolist()]
    parts = list(zip([0, *ends[:-1]], ends, strict=True))
    if a.ndim == 2 and b.ndim == 3:  # (sum m, k) and (g, k, n)
        return genesis.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(parts)])
    if a.ndim == 3:  # (g, m, k) and (k, sum n)
        return genesis.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)], 1)
    return genesis.stack([a[:, i:j] @ b[i:j] for i, j in parts])
