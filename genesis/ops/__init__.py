"""All operations, declared one by one.

`pointwise/`    element by element
`transcendental/`    Bessel's functions, incomplete gamma functions, orthogonal polynomials
`reductions/`   along dimensions: reductions, running reductions, sorts and searches
`shapes/`       form and place: views, joins, parts and turns
`indexing/`     elements named by indices and masks, read and written
`creation/`     tensors out of nothing, out of Python and NumPy, at random, and of other dtypes and devices
`products/`     products of matrices and tensors
`linalg/`       factors, solutions, eigenvalues: linear algebra
`fourier/`      spectra of signals
`learning/`     what networks are made of: activations, normalisations, attention, embeddings, dropout, steps of optimizers
`losses/`       what is minimised
`spatial/`      images, signals and volumes: convolutions, pooling, borders, interpolation
`registration`  ops replaced and added by users

``python -m genesis.ops`` prints the matrix of what each op has.
"""

from __future__ import annotations

from genesis.core.call import subclasses as _subclasses  # noqa: F401  gives `Tensor` its __torch_function__
from genesis.core.call.op import REGISTRY
from genesis.ops.creation import (
    convert,
    create,
    facts,
    gone,
    laid_out,
    outside,
    random,
    random_fills,
    sampled,
    sequences,
    storage,
)
from genesis.ops.fourier import short_time, transforms
from genesis.ops.fourier import windows as signal_windows
from genesis.ops.indexing import assign, gather, index, mask, parts, rows, scatter, scattered
from genesis.ops.learning import (
    activation,
    attention,
    dropout,
    embedding,
    embedding_bag,
    multihead,
    norm,
    recurrent,
    recurrent_stacks,
    softmax,
    update,
)
from genesis.ops.linalg import low_rank, lu, older, qr
from genesis.ops.losses import classes, ctc, distances, heads, margins, numbers, probabilities
from genesis.ops.pointwise import arithmetic, choice, compare, curves, elementwise, integers, rounding, special
from genesis.ops.products import added, blocks, compressed, einsum, geometry, linear, matmul, sparse, sparse_calls
from genesis.ops.reductions import (
    bits,
    calculus,
    extremes,
    histograms,
    masked,
    norms,
    ranks,
    reduce,
    scan,
    search,
    sort,
    statistics,
)
from genesis.ops.shapes import (
    complex_views,
    expand,
    flip,
    join,
    narrow,
    permute,
    repeat,
    reshape,
    split,
    strided,
    windows,
)
from genesis.ops.spatial import (
    channels,
    convolution,
    convolutions,
    folding,
    grids,
    interpolation,
    padding,
    pooling,
    pools,
    sums,
)
from genesis.ops.transcendental import functions
from genesis.ops.registration import (
    register_function,
    register_operation,
    registered_functions,
    unregister_function,
    unregister_operation,
)

MODULES = (
    arithmetic,
    choice,
    rounding,
    elementwise,
    special,
    curves,
    functions,
    compare,
    reduce,
    extremes,
    norms,
    scan,
    sort,
    ranks,
    search,
    bits,
    expand,
    reshape,
    permute,
    narrow,
    join,
    split,
    repeat,
    flip,
    windows,
    index,
    assign,
    gather,
    scatter,
    rows,
    mask,
    create,
    outside,
    sequences,
    convert,
    random,
    random_fills,
    sampled,
    matmul,
    linear,
    einsum,
    geometry,
    low_rank,
    lu,
    qr,
    older,
    transforms,
    short_time,
    signal_windows,
    activation,
    softmax,
    norm,
    attention,
    multihead,
    recurrent,
    recurrent_stacks,
    embedding,
    embedding_bag,
    dropout,
    update,
    numbers,
    classes,
    heads,
    probabilities,
    distances,
    convolution,
    convolutions,
    sums,
    padding,
    pooling,
    pools,
    folding,
    interpolation,
    margins,
    ctc,
    grids,
    channels,
    complex_views,
    facts,
    gone,
    integers,
    parts,
    scattered,
    statistics,
    histograms,
    calculus,
    masked,
    sparse,
    sparse_calls,
    compressed,
    blocks,
    storage,
    laid_out,
    strided,
    added,
)

PUBLIC = {name: getattr(module, name) for module in MODULES for name in module.__all__}
FUNCTIONAL = {name: getattr(module, name) for module in MODULES for name in getattr(module, "FUNCTIONAL", ())}
globals().update(PUBLIC)

__all__ = [
    "FUNCTIONAL",
    "MODULES",
    "PUBLIC",
    "REGISTRY",
    "register_function",
    "register_operation",
    "registered_functions",
    "unregister_function",
    "unregister_operation",
    *sorted(PUBLIC),
]
