# Written by scripts/signatures; do not edit.
import builtins
from collections.abc import Sequence
from typing import Any

from genesis.core.graph.tensor import Tensor

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many nearly equal cells of (N, C, L) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.adaptive_avg_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many nearly equal cells of (N, C, H, W) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.adaptive_avg_pool2d(x, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many nearly equal cells of (N, C, D, H, W) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.adaptive_avg_pool3d(x, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: builtins.bool = ...) -> Any:
    """The largest elements of as many nearly equal cells of (N, C, L) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.adaptive_max_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: builtins.bool = ...) -> Any:
    """The largest elements of as many nearly equal cells of (N, C, H, W) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.adaptive_max_pool2d(x, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: builtins.bool = ...) -> Any:
    """The largest elements of as many nearly equal cells of (N, C, D, H, W) as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.adaptive_max_pool3d(x, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def affine_grid(theta: Tensor, size: Any, align_corners: builtins.bool | None = ...) -> Tensor:
    """The grid for `grid_sample` of affine maps (N, 2, 3), or (N, 3, 4) of volumes: where each place of an output of
    ``size`` (N, C, H, W) or (N, C, D, H, W) comes from.

    Raises:
        RuntimeError: maps that do not fit the size
        ValueError: another number of sizes

    >>> import genesis
    >>> turn = genesis.tensor([[[0., 1., 0.], [1., 0., 0.]]])
    >>> genesis.nn.functional.affine_grid(turn, (1, 1, 1, 2))
    tensor([[[[ 0.0000, -0.5000],
              [ 0.0000,  0.5000]]]])
    """
def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Elements become the limit of `selu` far below zero with probability ``p``, then all are scaled and shifted: mean 0
    and variance 1 stay (Klambauer et al. 2017).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.alpha_dropout(genesis.ones(2))
    tensor([1., 1.])
    """
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of each window of (N, C, L).

    Args:
        kernel_size, stride, padding: one number for all dimensions or one for each; the stride is the kernel's size
            unless given, the padding is zeros
        ceil_mode: whether a last window may reach beyond the padding
        count_include_pad: whether the padding counts in the mean

    Raises:
        RuntimeError: a shape, integers, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.avg_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """The mean of each window of (N, C, H, W).

    Args:
        kernel_size, stride, padding: one number for all dimensions or one for each; the stride is the kernel's size
            unless given, the padding is zeros
        ceil_mode: whether a last window may reach beyond the padding
        count_include_pad: whether the padding counts in the mean
        divisor_override: what the sums are divided by instead

    Raises:
        RuntimeError: a shape, integers, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.avg_pool2d(x, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """The mean of each window of (N, C, D, H, W).

    Args:
        kernel_size, stride, padding: one number for all dimensions or one for each; the stride is the kernel's size
            unless given, the padding is zeros
        ceil_mode: whether a last window may reach beyond the padding
        count_include_pad: whether the padding counts in the mean
        divisor_override: what the sums are divided by instead

    Raises:
        RuntimeError: a shape, integers, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.avg_pool3d(x, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = ..., bias: Tensor | None = ..., training: builtins.bool = ..., momentum: builtins.float | Tensor = ..., eps: builtins.float = ...) -> Tensor:
    """Normalise each channel (dim 1) by the batch's mean and variance, or in evaluation by the running ones (Ioffe and
    Szegedy 2015).

    In training the running statistics move by ``momentum`` towards the batch's (with the unbiased variance).

    Raises:
        ValueError: training with one value per channel

    >>> import genesis
    >>> genesis.nn.functional.batch_norm(genesis.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Cross entropy of probabilities, $-(y \\ln x + (1 - y) \\ln(1 - x))$; logarithms are not below -100.

    >>> import genesis
    >>> genesis.nn.functional.binary_cross_entropy(genesis.tensor([0.5]), genesis.tensor([1.]))
    tensor(0.6931)
    """
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., pos_weight: Tensor | None = ...) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; ``pos_weight`` scales the positive part.

    >>> import genesis
    >>> genesis.nn.functional.binary_cross_entropy_with_logits(genesis.tensor([0.]), genesis.tensor([1.]))
    tensor(0.6931)
    """
def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """$\\max(x, 0) + \\min(0, \\alpha (e^{x/\\alpha} - 1))$ (Barron 2017).

    >>> import genesis
    >>> genesis.celu(genesis.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
def celu_(input: Any, alpha: Any = ...) -> Any:
    """In-place form of `celu`: writes the result into this tensor and returns it."""
def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of ``groups`` groups in turns, (N, C, ...): what a convolution in groups needs after it (Zhang et al.
    2018).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of the groups

    >>> import genesis
    >>> genesis.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 1 spatial dimension: (N, C, L) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4), genesis.ones(3, 2, 2)
    >>> genesis.nn.functional.conv1d(x, w).shape
    genesis.Size([1, 3, 3])
    """
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 2 spatial dimensions: (N, C, H, W) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4), genesis.ones(3, 2, 2, 2)
    >>> genesis.nn.functional.conv2d(x, w).shape
    genesis.Size([1, 3, 3, 3])
    """
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: builtins.int = ...) -> Tensor:
    """Convolution over 3 spatial dimensions: (N, C, D, H, W) with weight (out, in / groups, *kernel).

    $y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.

    Args:
        bias: added to each of the output's channels
        stride, dilation: one number for all dimensions or one for each
        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4, 4), genesis.ones(3, 2, 2, 2, 2)
    >>> genesis.nn.functional.conv3d(x, w).shape
    genesis.Size([1, 3, 3, 3, 3])
    """
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: builtins.int = ...) -> Tensor:
    """`conv1d` of (time, batch, channels) with weight (kernel, in, out).

    >>> import genesis
    >>> genesis.conv_tbc(genesis.ones(4, 1, 2), genesis.ones(3, 2, 1), genesis.zeros(1)).shape
    genesis.Size([2, 1, 1])
    """
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 1 spatial dimension: (N, C, L) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4), genesis.ones(2, 3, 2)
    >>> genesis.nn.functional.conv_transpose1d(x, w).shape
    genesis.Size([1, 3, 5])
    """
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 2 spatial dimensions: (N, C, H, W) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4), genesis.ones(2, 3, 2, 2)
    >>> genesis.nn.functional.conv_transpose2d(x, w).shape
    genesis.Size([1, 3, 5, 5])
    """
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: builtins.int = ..., dilation: Any = ...) -> Tensor:
    """The transpose of a convolution (a gradient of one) over 3 spatial dimensions: (N, C, D, H, W) with weight (in, out / groups, *kernel).

    $y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there.

    Args:
        bias: added to each of the output's channels
        stride, padding, output_padding, dilation: one number for all dimensions or one for each; ``output_padding`` more at the end
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: $(n - 1) s - 2 p + d (k - 1) + 1 + e$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 2, 4, 4, 4), genesis.ones(2, 3, 2, 2, 2)
    >>> genesis.nn.functional.conv_transpose3d(x, w).shape
    genesis.Size([1, 3, 5, 5, 5])
    """
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$1 - \\cos(x_1, x_2)$ where y is 1, $\\max(0, \\cos(x_1, x_2) - margin)$ where y is -1.

    Inputs (N, D) and target (N,), or (D,) and a scalar.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> x = genesis.ones(1, 2)
    >>> genesis.nn.functional.cosine_embedding_loss(x, -x, genesis.tensor([1]))
    tensor(2.)
    """
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Cosine of the angle between vectors along ``dim``.

    >>> import genesis
    >>> genesis.nn.functional.cosine_similarity(genesis.tensor([[1., 0.]]), genesis.tensor([[1., 1.]]))
    tensor([0.7071])
    """
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., ignore_index: builtins.int = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., label_smoothing: builtins.float = ...) -> Tensor:
    """Cross entropy of logits with class indices or class probabilities.

    $-\\sum_c w_c y_c \\ln softmax(x)_c$, with $y$ the (smoothed) one-hot target or the given probabilities.

    Args:
        input: logits, (N, C, ...) or (C,)
        target: class indices (N, ...), or probabilities of the input's shape
        weight: one factor for each class
        ignore_index: targets that do not count
        label_smoothing: the part of the target spread evenly over all classes, in [0, 1]

    Raises:
        IndexError: a class out of range
        RuntimeError: shapes or dtypes that do not fit
        ValueError: smoothing outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.cross_entropy(genesis.tensor([[0., 0.]]), genesis.tensor([1]))
    tensor(0.6931)
    """
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: builtins.int = ..., reduction: builtins.str = ..., zero_infinity: builtins.bool = ...) -> Tensor:
    """Minus the log probability of the targets, over all alignments with the input (Graves et al. 2006).

    Args:
        log_probs: (T, N, C), logarithms of probabilities, or (T, C) without a batch
        targets: (N, S) padded, or (sum of the lengths,): class indices, without ``blank``
        input_lengths, target_lengths: N integers each
        reduction: "mean" divides each loss by its target's length (1, if that is 0) before
        zero_infinity: zeros for targets that do not fit into their input; else their loss is infinite

    Raises:
        RuntimeError: shapes, lengths or dtypes that do not fit

    >>> import genesis
    >>> log_probs = genesis.zeros(3, 1, 2).log_softmax(-1)
    >>> genesis.nn.functional.ctc_loss(log_probs, genesis.tensor([[1]]), [3], [1])
    tensor(0.2877)
    """
def dropout1d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels of (N, C, L) with probability ``p``, and scale the others by 1 / (1 - p) (Tompson et al.
    2015).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.dropout1d(genesis.ones(1, 1, 2), training=False).sum()
    tensor(2.)
    """
def dropout2d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels of (N, C, H, W) with probability ``p``, and scale the others by 1 / (1 - p) (Tompson et al.
    2015).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.dropout2d(genesis.ones(1, 1, 2, 2), training=False).sum()
    tensor(4.)
    """
def dropout3d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) with probability ``p``, and scale the others by 1 / (1 - p) (Tompson et al.
    2015).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.dropout3d(genesis.ones(1, 1, 2, 2, 2), training=False).sum()
    tensor(8.)
    """
def elu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """$x$ above zero, $\\alpha (e^x - 1)$ below (Clevert et al. 2015).

    >>> import genesis
    >>> genesis.nn.functional.elu(genesis.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
def elu_(input: Any, alpha: Any = ...) -> Any:
    """In-place form of `elu`: writes the result into this tensor and returns it."""
def embedding(input: Tensor, weight: Tensor, padding_idx: builtins.int | None = ..., max_norm: builtins.float | None = ..., norm_type: builtins.float = ..., scale_grad_by_freq: builtins.bool = ..., sparse: builtins.bool = ...) -> Tensor:
    """Rows of ``weight`` by number; the row ``padding_idx`` gets no gradient.

    Args:
        max_norm: rows that are looked up and whose ``norm_type``-norm is larger are scaled down to it, in place
        scale_grad_by_freq: the gradient of a row is divided by how often it was looked up
        sparse: the gradient of ``weight`` is a sparse tensor, of the rows that were looked up; not with
            ``scale_grad_by_freq``

    Raises:
        IndexError: a number without a row
        RuntimeError: numbers that are not integers, or a weight that is not a matrix

    >>> import genesis
    >>> genesis.nn.functional.embedding(genesis.tensor([1, 0]), genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = ..., max_norm: builtins.float | None = ..., norm_type: builtins.float = ..., scale_grad_by_freq: builtins.bool = ..., mode: builtins.str = ..., sparse: builtins.bool = ..., per_sample_weights: Tensor | None = ..., include_last_offset: builtins.bool = ..., padding_idx: builtins.int | None = ...) -> Tensor:
    """Rows of ``weight`` by number, and of each bag of numbers their sum, mean or maximum; zeros of an empty bag.

    Args:
        input: (B, n), bags of n numbers; or (N,), where ``offsets`` (B,) are the beginnings of the bags
        mode: "sum", "mean" or "max"; per_sample_weights: of "sum", a factor for each number
        include_last_offset: the last offset is the end of the last bag
        padding_idx: a number that does not count
        max_norm, norm_type, scale_grad_by_freq, sparse: as of `embedding`

    Raises:
        ValueError: shapes or a mode that do not fit
        RuntimeError, IndexError: offsets or numbers out of range

    >>> import genesis
    >>> weight = genesis.tensor([[1., 2.], [3., 4.], [5., 6.]])
    >>> genesis.nn.functional.embedding_bag(genesis.tensor([0, 1, 2]), weight, genesis.tensor([0, 2]))
    tensor([[2., 3.],
            [5., 6.]])
    """
def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """`alpha_dropout` of whole channels, (N, C, ...).

    Raises:
        ValueError: ``p`` outside [0, 1]
        RuntimeError: fewer than two dimensions

    >>> import genesis
    >>> genesis.nn.functional.feature_alpha_dropout(genesis.ones(1, 2))
    tensor([[1., 1.]])
    """
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """Images of ``output_size`` from windows in columns, added where they overlap: the transpose of `unfold`. What
    `genesis.nn.functional.fold` calls.

    Raises:
        RuntimeError: another shape or number of windows

    >>> import genesis
    >>> genesis.nn.functional.fold(genesis.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> Any:
    """The largest element of windows at random places, which shrink (N, C, H, W) by any factor (Graham 2014).

    Args:
        kernel_size: one number for all dimensions or one for each
        output_size, output_ratio: one of them: the sizes of the result, or their ratio to those of the input
        return_indices: give also where the elements are among all of the spatial dimensions, int64
        _random_samples: numbers in [0, 1) to use, of shape (N, C, 2)

    Raises:
        RuntimeError: a shape, or windows that do not fit
        ValueError: both sizes and ratio, or none

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.fractional_max_pool2d(x, 2, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> Any:
    """The largest element of windows at random places, which shrink (N, C, D, H, W) by any factor (Graham 2014).

    Args:
        kernel_size: one number for all dimensions or one for each
        output_size, output_ratio: one of them: the sizes of the result, or their ratio to those of the input
        return_indices: give also where the elements are among all of the spatial dimensions, int64
        _random_samples: numbers in [0, 1) to use, of shape (N, C, 3)

    Raises:
        RuntimeError: a shape, or windows that do not fit
        ValueError: both sizes and ratio, or none

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.fractional_max_pool3d(x, 2, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | builtins.float, full: builtins.bool = ..., eps: builtins.float = ..., reduction: builtins.str = ...) -> Tensor:
    """Negative log likelihood of a normal distribution, $\\frac{1}{2} (\\ln v + (x - y)^2 / v)$.

    Args:
        target: of the input's shape, or with sizes of 1, or 0-d for all
        var: $v$, but at least ``eps``: of the input's shape, without its last dimension or with one size of 1, or a
            number

    Raises:
        ValueError: a ``var`` that is negative, or of another shape
        RuntimeError: a ``target`` of another shape

    >>> import genesis
    >>> genesis.nn.functional.gaussian_nll_loss(genesis.ones(1), genesis.ones(1), genesis.ones(1))
    tensor(0.)
    """
def gelu(input: Tensor, approximate: builtins.str = ...) -> Tensor:
    """Gaussian error linear unit, $x \\Phi(x)$, or its tanh approximation (Hendrycks and Gimpel 2016).

    Raises:
        ValueError: ``approximate`` is neither "none" nor "tanh"

    >>> import genesis
    >>> genesis.nn.functional.gelu(genesis.tensor([-1., 1.]))
    tensor([-0.1587,  0.8413])
    """
def glu(input: Tensor, dim: builtins.int = ...) -> Tensor:
    """Gated linear unit, $a \\sigma(b)$ of the two halves along ``dim`` (Dauphin et al. 2016).

    Raises:
        RuntimeError: the size of ``dim`` is odd

    >>> import genesis
    >>> genesis.nn.functional.glu(genesis.tensor([1., 0.]))
    tensor([0.5000])
    """
def grid_sample(input: Tensor, grid: Tensor, mode: builtins.str = ..., padding_mode: builtins.str = ..., align_corners: builtins.bool | None = ...) -> Tensor:
    """The input (N, C, H, W) or (N, C, D, H, W) at the places of a grid (N, *out, 2 or 3), whose last dimension has x, y
    (and z) from -1 to 1.

    -1 and 1 are the middles of the first and last elements with ``align_corners``, else their outer edges. Differentiable
    for input and grid (Jaderberg et al. 2015).

    Args:
        mode: "bilinear" (between neighbours, in volumes, too), "nearest", or of images "bicubic"
        padding_mode: what is outside: "zeros", the last element ("border"), or as in a mirror at the edge ("reflection")

    Raises:
        RuntimeError: shapes or dtypes that do not fit
        ValueError: an unknown mode

    >>> import genesis
    >>> x = genesis.tensor([[[[1., 2.], [3., 4.]]]])
    >>> genesis.nn.functional.grid_sample(x, genesis.zeros(1, 1, 1, 2))
    tensor([[[[2.5000]]]])
    """
def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """Normalise groups of channels (dim 1) of each example (Wu and He 2018).

    Raises:
        RuntimeError: the channels cannot be divided into that many groups

    >>> import genesis
    >>> genesis.nn.functional.group_norm(genesis.tensor([[1., 3.]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
def gumbel_softmax(logits: Tensor, tau: builtins.float = ..., hard: builtins.bool = ..., eps: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """$softmax((x + g) / \\tau)$ with Gumbel noise $g = -\\ln(-\\ln u)$: nearly one-hot samples (Jang et al. 2017).

    Args:
        tau: from where on it is low, samples are nearly one-hot
        hard: one-hot samples, with the gradients of the soft ones
        eps: accepted for PyTorch's sake, without an effect

    >>> import genesis
    >>> genesis.nn.functional.gumbel_softmax(genesis.tensor([0., 1e4]), hard=True)
    tensor([0., 1.])
    """
def hardshrink(input: Tensor, lambd: builtins.float = ...) -> Tensor:
    """$x$ beyond ``lambd`` on both sides, zero between.

    >>> import genesis
    >>> genesis.hardshrink(genesis.tensor([-1., 0.25]))
    tensor([-1.,  0.])
    """
def hardsigmoid(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Piecewise linear sigmoid, 0 below -3, 1 above 3, $x / 6 + 1 / 2$ between.

    >>> import genesis
    >>> genesis.nn.functional.hardsigmoid(genesis.tensor([-4., 0.]))
    tensor([0.0000, 0.5000])
    """
def hardswish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """$x$ times `hardsigmoid` (Howard et al. 2019).

    >>> import genesis
    >>> genesis.nn.functional.hardswish(genesis.tensor([-4., 3.]))
    tensor([-0., 3.])
    """
def hardtanh(input: Tensor, min_val: builtins.float = ..., max_val: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Limit to a range, with slope 0 on its edges.

    >>> import genesis
    >>> genesis.nn.functional.hardtanh(genesis.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
def hardtanh_(input: Any, min_val: Any = ..., max_val: Any = ...) -> Any:
    """In-place form of `hardtanh`: writes the result into this tensor and returns it."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$x$ where y is 1, $\\max(0, margin - x)$ where y is -1, of distances x.

    >>> import genesis
    >>> genesis.nn.functional.hinge_embedding_loss(genesis.tensor([0.25, 0.25]), genesis.tensor([1, -1]))
    tensor(0.5000)
    """
def huber_loss(input: Tensor, target: Tensor, reduction: builtins.str = ..., delta: builtins.float = ..., weight: Tensor | None = ...) -> Tensor:
    """Squared error near zero, absolute error from ``delta`` on (Huber 1964).

    Raises:
        ValueError: ``delta`` is not positive

    >>> import genesis
    >>> genesis.nn.functional.huber_loss(genesis.tensor([1.]), genesis.tensor([4.]))
    tensor(2.5000)
    """
def instance_norm(input: Tensor, running_mean: Tensor | None = ..., running_var: Tensor | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., use_input_stats: builtins.bool = ..., momentum: builtins.float = ..., eps: builtins.float = ...) -> Tensor:
    """Normalise each channel of each example (N, C, ...) by its mean and variance (Ulyanov et al. 2016), or without
    ``use_input_stats`` by the running ones.

    Running statistics move by ``momentum`` towards the means over the examples.

    Raises:
        ValueError: one element for each channel
        RuntimeError: fewer than three dimensions; no running statistics where they are to be used

    >>> import genesis
    >>> genesis.nn.functional.instance_norm(genesis.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
def interpolate(input: Tensor, size: Any = ..., scale_factor: Any = ..., mode: builtins.str = ..., align_corners: builtins.bool | None = ..., recompute_scale_factor: builtins.bool | None = ..., antialias: builtins.bool = ...) -> Tensor:
    """Inputs (N, C, L), (N, C, H, W) or (N, C, D, H, W) in other sizes.

    The middle of the i-th result is at $(i + 1/2) / scale - 1/2$ among the inputs, or with ``align_corners`` at $i (n -
    1) / (m - 1)$, so that first and last elements meet.

    Args:
        size, scale_factor: one of them, one number or one for each dimension; sizes are $\\lfloor n \\cdot scale \\rfloor$
        mode: "nearest" (the element at $\\lfloor i / scale \\rfloor$), "nearest-exact" (the one nearest to the middle),
            "linear", "bilinear", "trilinear" (between neighbours, of one to three dimensions), "bicubic" (Keys 1981, with
            a = -3/4), "area" (means, as `adaptive_avg_pool2d`)
        recompute_scale_factor: use the ratio of the sizes in the place of ``scale_factor``
        antialias: where an image shrinks, take means over all that a result covers ("bilinear", "bicubic")

    Raises:
        NotImplementedError: an unknown mode, or one that is not for so many dimensions
        ValueError: both or none of size and scale_factor, or options that the mode does not have
        RuntimeError: sizes below one, or integers

    >>> import genesis
    >>> genesis.nn.functional.interpolate(genesis.tensor([[[0., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
def kl_div(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., log_target: builtins.bool = ...) -> Tensor:
    """Kullback and Leibler's divergence, $y (\\ln y - x)$ with x the log probabilities; also reduction "batchmean".

    >>> import genesis
    >>> genesis.nn.functional.kl_div(genesis.zeros(2), genesis.ones(2), reduction="sum")
    tensor(0.)
    """
def l1_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """Absolute error, $|x - y|$.

    >>> import genesis
    >>> genesis.nn.functional.l1_loss(genesis.tensor([1., 2.]), genesis.tensor([1., 4.]))
    tensor(1.)
    """
def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """$(x - \\bar x) / \\sqrt{var + eps} \\cdot w + b$ over the last dimensions (Ba et al. 2016).

    Raises:
        RuntimeError: ``normalized_shape`` is not the end of the input's shape

    >>> import genesis
    >>> genesis.nn.functional.layer_norm(genesis.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
def leaky_relu(input: Tensor, negative_slope: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """$x$ above zero, ``negative_slope`` $\\cdot x$ below.

    >>> import genesis
    >>> genesis.nn.functional.leaky_relu(genesis.tensor([-2., 2.]), 0.1)
    tensor([-0.2000,  2.0000])
    """
def leaky_relu_(input: Any, negative_slope: Any = ...) -> Any:
    """In-place form of `leaky_relu`: writes the result into this tensor and returns it."""
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = ..., weight: Tensor | None = ..., reduction: builtins.str = ..., ignore_index: builtins.int | None = ..., label_smoothing: builtins.float = ..., options: Any = ...) -> Tensor:
    """`cross_entropy` of `linear`, of logits $x W^T + b$; with ``options`` some rows at a time.

    Of the logits of many classes there is then only a part at a time: their loss is computed, and at once their share of
    the gradients, so that nothing is computed twice (with ``reduction="none"`` it is, in the backward). Derivatives of
    derivatives, and transforms, are those of the logits as a whole.

    Args:
        input: (N, I) or (I,); linear_weight: (C, I), or (C, d, ..., I) for targets (N, d, ...)
        linear_bias: (C,) or (C, d, ...); others as of `cross_entropy`
        options: `LinearCrossEntropyOptions`, or PyTorch's; of a linear_weight (C, I), class indices, and a weight without a gradient,
            otherwise with a warning that all is computed at once

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 3), genesis.zeros(2, 3)
    >>> genesis.nn.functional.linear_cross_entropy(x, w, genesis.tensor([1]))
    tensor(0.6931)
    """
def local_response_norm(input: Tensor, size: builtins.int, alpha: builtins.float = ..., beta: builtins.float = ..., k: builtins.float = ...) -> Tensor:
    """$x_c / (k + \\frac{\\alpha}{n} \\sum_{c'} x_{c'}^2)^\\beta$ with the sum over n = ``size`` channels around c
    (Krizhevsky et al. 2012).

    Raises:
        RuntimeError: fewer than three dimensions, or a size that is not positive

    >>> import genesis
    >>> genesis.nn.functional.local_response_norm(genesis.ones(1, 1, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000]]])
    """
def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Logarithm of the softmax along ``dim``, $x_i - \\ln \\sum_j e^{x_j}$.

    >>> import genesis
    >>> genesis.log_softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
def logsigmoid(input: Tensor) -> Tensor:
    """Stable $\\ln \\sigma(x)$.

    >>> import genesis
    >>> genesis.nn.functional.logsigmoid(genesis.tensor([0., 1.]))
    tensor([-0.6931, -0.3133])
    """
def lp_pool1d(input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """$(\\sum_w x^p)^{1/p}$ of each window of (N, C, L).

    Args:
        kernel_size, stride: one number for all dimensions or one for each; the stride is the kernel's size unless given

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.lp_pool1d(x, 2., 2).shape
    genesis.Size([1, 1, 2])
    """
def lp_pool2d(input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """$(\\sum_w x^p)^{1/p}$ of each window of (N, C, H, W).

    Args:
        kernel_size, stride: one number for all dimensions or one for each; the stride is the kernel's size unless given

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.lp_pool2d(x, 2., 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def lp_pool3d(input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """$(\\sum_w x^p)^{1/p}$ of each window of (N, C, D, H, W).

    Args:
        kernel_size, stride: one number for all dimensions or one for each; the stride is the kernel's size unless given

    Raises:
        RuntimeError: a shape or integers

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.lp_pool3d(x, 2., 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\max(0, -y (x_1 - x_2) + margin)$ for y of 1 or -1.

    >>> import genesis
    >>> genesis.nn.functional.margin_ranking_loss(genesis.ones(1), genesis.zeros(1), -genesis.ones(1))
    tensor(1.)
    """
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, L).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.max_pool1d(x, 2).shape
    genesis.Size([1, 1, 2])
    """
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, H, W).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.max_pool2d(x, 2).shape
    genesis.Size([1, 1, 2, 2])
    """
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of each window of (N, C, D, H, W).

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.max_pool3d(x, 2).shape
    genesis.Size([1, 1, 2, 2, 2])
    """
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """The elements of a pooled (N, C, L) where they were, and zeros elsewhere: the inverse of `max_pool1d` for
    the elements that it kept.

    Args:
        indices: what `max_pool1d` gave with ``return_indices=True``
        kernel_size, stride, padding: as they were there
        output_size: the size before, where several lead to the input's

    Raises:
        RuntimeError: shapes that differ, or a place outside of the output
        ValueError: a size that cannot be

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4)
    >>> genesis.nn.functional.max_unpool1d(x, genesis.zeros_like(x).long(), 1).shape
    genesis.Size([1, 1, 4])
    """
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """The elements of a pooled (N, C, H, W) where they were, and zeros elsewhere: the inverse of `max_pool2d` for
    the elements that it kept.

    Args:
        indices: what `max_pool2d` gave with ``return_indices=True``
        kernel_size, stride, padding: as they were there
        output_size: the size before, where several lead to the input's

    Raises:
        RuntimeError: shapes that differ, or a place outside of the output
        ValueError: a size that cannot be

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4)
    >>> genesis.nn.functional.max_unpool2d(x, genesis.zeros_like(x).long(), 1).shape
    genesis.Size([1, 1, 4, 4])
    """
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """The elements of a pooled (N, C, D, H, W) where they were, and zeros elsewhere: the inverse of `max_pool3d` for
    the elements that it kept.

    Args:
        indices: what `max_pool3d` gave with ``return_indices=True``
        kernel_size, stride, padding: as they were there
        output_size: the size before, where several lead to the input's

    Raises:
        RuntimeError: shapes that differ, or a place outside of the output
        ValueError: a size that cannot be

    >>> import genesis
    >>> x = genesis.ones(1, 1, 4, 4, 4)
    >>> genesis.nn.functional.max_unpool3d(x, genesis.zeros_like(x).long(), 1).shape
    genesis.Size([1, 1, 4, 4, 4])
    """
def mish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """$x \\tanh(\\ln(1 + e^x))$ (Misra 2019).

    >>> import genesis
    >>> genesis.nn.functional.mish(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8651])
    """
def mse_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """Squared error, $(x - y)^2$.

    >>> import genesis
    >>> genesis.nn.functional.mse_loss(genesis.tensor([1., 2.]), genesis.tensor([1., 4.]))
    tensor(2.)
    """
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: builtins.int, num_heads: builtins.int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: builtins.bool, dropout_p: builtins.float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: builtins.bool = ..., key_padding_mask: Tensor | None = ..., need_weights: builtins.bool = ..., attn_mask: Tensor | None = ..., use_separate_proj_weight: builtins.bool = ..., q_proj_weight: Tensor | None = ..., k_proj_weight: Tensor | None = ..., v_proj_weight: Tensor | None = ..., static_k: Tensor | None = ..., static_v: Tensor | None = ..., average_attn_weights: builtins.bool = ..., is_causal: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor | None]:
    """What `genesis.nn.MultiheadAttention` computes: projections into heads, attention in each, a projection of all.

    Args:
        query: (L, N, E), or (L, E) without a batch; key, value: (S, N, ...)
        in_proj_weight: (3E, E), for queries, keys and values; else the three ``*_proj_weight``
        bias_k, bias_v: (1, 1, E), one more key and its value; add_zero_attn: one more of zeros
        key_padding_mask: (N, S); attn_mask: (L, S) or (N * heads, L, S); bool ones are True where attention is not
            allowed, floating ones are added
        need_weights: give the weights, too, averaged over heads where ``average_attn_weights``
        static_k, static_v: (N * heads, S, E / heads) instead of the projected keys and values
        is_causal: a hint that ``attn_mask`` is causal; it must be given

    Returns:
        (L, N, E), and the weights (N, L, S) or (N, heads, L, S) or None

    Raises:
        RuntimeError: shapes or dtypes that do not fit
        ValueError: features that cannot be divided among the heads

    >>> import genesis
    >>> x, w = genesis.ones(3, 1, 2), genesis.ones(6, 2)
    >>> out, weights = genesis.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, w[:2], None)
    >>> out.shape, weights.shape
    (genesis.Size([3, 1, 2]), genesis.Size([1, 3, 3]))
    """
def multi_margin_loss(input: Tensor, target: Tensor, p: builtins.int = ..., margin: builtins.float = ..., weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\frac{1}{C} \\sum_{i \\ne y} w_y \\max(0, margin - x_y + x_i)^p$ of scores (N, C) or (C,) and classes y.

    Raises:
        RuntimeError: shapes that do not fit, or a class out of range
        ValueError: p is neither 1 nor 2

    >>> import genesis
    >>> genesis.nn.functional.multi_margin_loss(genesis.tensor([[0.5, 0.]]), genesis.tensor([0]))
    tensor(0.2500)
    """
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\frac{1}{C} \\sum_{j \\in y} \\sum_{i \\notin y} \\max(0, 1 - (x_j - x_i))$ of scores (N, C) or (C,).

    ``target`` has the input's shape: the classes of each row, up to the first -1.

    Raises:
        RuntimeError: shapes that do not fit, or a class out of range

    >>> import genesis
    >>> genesis.nn.functional.multilabel_margin_loss(genesis.tensor([0.5, 0., 0.]), genesis.tensor([0, -1, 1]))
    tensor(0.3333)
    """
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$-\\frac{1}{C} \\sum_i w_i (y_i \\ln \\sigma(x_i) + (1 - y_i) \\ln \\sigma(-x_i))$ over the last dimension.

    >>> import genesis
    >>> genesis.nn.functional.multilabel_soft_margin_loss(genesis.zeros(1, 2), genesis.ones(1, 2))
    tensor(0.6931)
    """
def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of ``groups`` groups in turns, (N, C, ...): what a convolution in groups needs after it (Zhang et al.
    2018).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of the groups

    >>> import genesis
    >>> genesis.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., ignore_index: builtins.int = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Negative log likelihood of class indices, $-w_{y} x_{y}$, averaged over the weights of those that count.

    Args:
        input: log probabilities, (N, C, ...) or (C,)
        target: class indices, (N, ...) or a scalar

    Raises:
        IndexError: a class out of range
        RuntimeError: shapes or dtypes that do not fit

    >>> import genesis
    >>> genesis.nn.functional.nll_loss(genesis.tensor([[-1., -2.]]), genesis.tensor([1]))
    tensor(2.)
    """
def normalize(input: Tensor, p: builtins.float = ..., dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Vectors along ``dim`` divided by their p-norm (but at least ``eps``).

    >>> import genesis
    >>> genesis.nn.functional.normalize(genesis.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
def one_hot(tensor: Tensor, num_classes: builtins.int = ...) -> Tensor:
    """Each number as a row of zeros with a one at its place, int64; as many classes as needed for -1.

    >>> import genesis
    >>> genesis.nn.functional.one_hot(genesis.tensor([1, 0]), 2)
    tensor([[0, 1],
            [1, 0]])
    """
def pad(input: Tensor, pad: Sequence[builtins.int], mode: builtins.str = ..., value: builtins.float | None = ...) -> Tensor:
    """A border around the last dimensions: ``pad`` has how many elements come before and after, for the last dimension
    first. Negative numbers take elements away.

    Args:
        mode: "constant" (``value``, 0 unless given); "reflect" (as in a mirror that the last element is on), "replicate"
            (the last element again) or "circular" (from the other side) of the last one to three dimensions

    Raises:
        RuntimeError: numbers that do not fit the dimensions
        NotImplementedError: a mode that is not one of these; the last three for other numbers of dimensions
        ValueError: a value with another mode than "constant"

    >>> import genesis
    >>> genesis.nn.functional.pad(genesis.tensor([[1., 2., 3.]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of $x_1 - x_2 + eps$ over the last dimension.

    >>> import genesis
    >>> genesis.nn.functional.pairwise_distance(genesis.tensor([[3., 4.]]), genesis.zeros(1, 2))
    tensor([5.0000])
    """
def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Raises:
        RuntimeError: not a floating matrix, or a negative p

    >>> import genesis
    >>> genesis.pdist(genesis.tensor([[0.], [1.], [3.]]))
    tensor([1., 3., 2.])
    """
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Images (..., C r², H, W) as (..., C, H r, W r): channels become places (Shi et al. 2016).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of r²

    >>> import genesis
    >>> genesis.pixel_shuffle(genesis.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """Images (..., C, H r, W r) as (..., C r², H, W): places become channels, the inverse of `pixel_shuffle`.

    Raises:
        RuntimeError: fewer than three dimensions, or sizes that are not a multiple of r

    >>> import genesis
    >>> genesis.pixel_unshuffle(genesis.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool = ..., full: builtins.bool = ..., size_average: builtins.bool | None = ..., eps: builtins.float = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Negative log likelihood of a Poisson distribution, $e^x - y x$ (or $x - y \\ln x$).

    >>> import genesis
    >>> genesis.nn.functional.poisson_nll_loss(genesis.zeros(1), genesis.ones(1))
    tensor(1.)
    """
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with learned slopes, one for all elements or one per channel (dim 1).

    Raises:
        RuntimeError: another number of weights

    >>> import genesis
    >>> genesis.prelu(genesis.tensor([-2., 2.]), genesis.tensor([0.5]))
    tensor([-1.,  2.])
    """
def relu6(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Rectifier with a ceiling, $\\min(\\max(x, 0), 6)$.

    >>> import genesis
    >>> genesis.nn.functional.relu6(genesis.tensor([-1., 3., 8.]))
    tensor([0., 3., 6.])
    """
def relu_(input: Any) -> Any:
    """In-place form of `relu`: writes the result into this tensor and returns it."""
def rms_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., eps: builtins.float | None = ...) -> Tensor:
    """$x / \\sqrt{mean(x^2) + eps} \\cdot w$ over the last dimensions (Zhang and Sennrich 2019); eps is the dtype's
    unless given.

    >>> import genesis
    >>> genesis.nn.functional.rms_norm(genesis.tensor([3., 3.]), (2,))
    tensor([1., 1.])
    """
def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) for each element in training, else with their mean (Xu et al.
    2015).

    Raises:
        ValueError: ``lower`` is above ``upper``

    >>> import genesis
    >>> genesis.nn.functional.rrelu(genesis.tensor([-4., 1.]), 0.1, 0.4)
    tensor([-1.,  1.])
    """
def rrelu_(input: Any, lower: Any = ..., upper: Any = ..., training: Any = ...) -> Any:
    """In-place form of `rrelu`: writes the result into this tensor and returns it."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = ..., dropout_p: builtins.float = ..., is_causal: builtins.bool = ..., scale: builtins.float | None = ..., enable_gqa: builtins.bool = ...) -> Tensor:
    """$softmax(Q K^T / \\sqrt d + mask) V$ (Vaswani et al. 2017).

    Args:
        query: (..., L, d); key: (..., S, d); value: (..., S, v); result: (..., L, v)
        attn_mask: bool (True takes part) or floating (added), broadcast to (..., L, S); a query that sees nothing gives
            zeros
        dropout_p: of the weights, also outside of training
        is_causal: position i sees positions up to i
        scale: instead of $1 / \\sqrt d$
        enable_gqa: several query heads share one head of keys and values (dim -3)

    On a GPU, gradients in 16 bits by cuDNN may differ in their last bits from one time to the next, unless
    `use_deterministic_algorithms` or ``backends.cudnn.deterministic`` is on, which takes half as long again.

    Raises:
        RuntimeError: sizes or dtypes that do not fit, or both ``attn_mask`` and ``is_causal``

    >>> import genesis
    >>> q = genesis.ones(1, 2, 4)
    >>> genesis.nn.functional.scaled_dot_product_attention(q, q, q).shape
    genesis.Size([1, 2, 4])
    """
def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Self-normalising unit, a scaled `elu` (Klambauer et al. 2017).

    >>> import genesis
    >>> genesis.selu(genesis.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
def selu_(input: Any) -> Any:
    """In-place form of `selu`: writes the result into this tensor and returns it."""
def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Logistic function, $1 / (1 + e^{-x})$.

    Element by element, on tensors that broadcast together; floating, complex, integer, bool dtypes; integers give the default floating dtype.

    Raises:
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.sigmoid(genesis.tensor([0., 1.]))
    tensor([0.5000, 0.7311])
    """
def silu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Sigmoid linear unit, $x \\sigma(x)$.

    >>> import genesis
    >>> genesis.nn.functional.silu(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.7311])
    """
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., beta: builtins.float = ...) -> Tensor:
    """`huber_loss` divided by ``beta``; with ``beta=0`` the absolute error.

    >>> import genesis
    >>> genesis.nn.functional.smooth_l1_loss(genesis.tensor([1.]), genesis.tensor([4.]))
    tensor(2.5000)
    """
def soft_margin_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\ln(1 + e^{-y x})$ for y of 1 or -1.

    >>> import genesis
    >>> genesis.nn.functional.soft_margin_loss(genesis.zeros(2), genesis.ones(2))
    tensor(0.6931)
    """
def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ..., *, out: Tensor | None = ..., axis: Any = ...) -> Tensor:
    """Softmax along ``dim``, $e^{x_i} / \\sum_j e^{x_j}$, without overflow.

    Warns:
        UserWarning: no ``dim``; it is 0 of 0, 1 or 3 dimensions, else 1

    Raises:
        IndexError: a dim out of range
        RuntimeError: an integer tensor

    >>> import genesis
    >>> genesis.softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
def softmin(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ...) -> Tensor:
    """Softmax of the negated input.

    >>> import genesis
    >>> genesis.nn.functional.softmin(genesis.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
def softplus(input: Tensor, beta: builtins.float = ..., threshold: builtins.float = ...) -> Tensor:
    """Smooth rectifier, $\\ln(1 + e^{\\beta x}) / \\beta$; linear where $\\beta x$ is above ``threshold``.

    >>> import genesis
    >>> genesis.nn.functional.softplus(genesis.tensor([0., 1.]))
    tensor([0.6931, 1.3133])
    """
def softshrink(input: Tensor, lambd: builtins.float = ...) -> Tensor:
    """$x$ moved towards zero by ``lambd``, and zero where that is farther.

    Raises:
        RuntimeError: ``lambd`` is negative

    >>> import genesis
    >>> genesis.nn.functional.softshrink(genesis.tensor([-1., 0.25]))
    tensor([-0.5000,  0.0000])
    """
def softsign(input: Tensor) -> Tensor:
    """$x / (1 + |x|)$.

    >>> import genesis
    >>> genesis.nn.functional.softsign(genesis.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
def tanhshrink(input: Tensor) -> Tensor:
    """$x - \\tanh x$.

    >>> import genesis
    >>> genesis.nn.functional.tanhshrink(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """``value`` up to the threshold, $x$ elsewhere.

    >>> import genesis
    >>> genesis.threshold(genesis.tensor([0., 1.]), 0.5, -1.0)
    tensor([-1.,  1.])
    """
def threshold_(input: Any, threshold: Any, value: Any) -> Any:
    """In-place form of `threshold`: writes the result into this tensor and returns it."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: builtins.float = ..., p: builtins.float = ..., eps: builtins.float = ..., swap: builtins.bool = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\max(0, d(a, p) - d(a, n) + margin)$ of distances in the p-norm.

    >>> import genesis
    >>> genesis.nn.functional.triplet_margin_loss(genesis.zeros(1, 2), genesis.zeros(1, 2), genesis.ones(1, 2) * 5)
    tensor(0.)
    """
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = ..., margin: builtins.float = ..., swap: builtins.bool = ..., reduction: builtins.str = ...) -> Tensor:
    """$\\max(0, d(a, p) - d(a, n) + margin)$ with ``distance_function(x, y)`` of one's own; `pairwise_distance` if it is None.

    Raises:
        RuntimeError: numbers of dimensions that differ
        ValueError: the margin is not positive

    >>> import genesis
    >>> a, p = genesis.zeros(1, 2), genesis.ones(1, 2)
    >>> distance = lambda x, y: (x - y).abs().sum(-1)
    >>> genesis.nn.functional.triplet_margin_with_distance_loss(a, p, a, distance_function=distance)
    tensor(3.)
    """
def unfold(input: Tensor, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """The windows of images (N, C, H, W), each a column: (N, C * kernel elements, windows). What
    `genesis.nn.functional.unfold` calls.

    Raises:
        RuntimeError: another shape, or windows that do not fit

    >>> import genesis
    >>> genesis.nn.functional.unfold(genesis.arange(6.0).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
def upsample(input: Tensor, size: Any = ..., scale_factor: Any = ..., mode: builtins.str = ..., align_corners: builtins.bool | None = ...) -> Tensor:
    """`interpolate` under its old name.

    >>> import genesis, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     genesis.nn.functional.upsample(genesis.ones(1, 1, 2), scale_factor=2).shape
    genesis.Size([1, 1, 4])
    """
def upsample_bilinear(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners, under its old name."""
def upsample_nearest(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor:
    """`interpolate` with mode "nearest", under its old name."""
