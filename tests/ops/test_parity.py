"""Every op on its samples against PyTorch: values, dtypes, shapes and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY, Case
from genesis.testing import Maker, samples_of
from genesis.testing.opcheck import replace, sample_dtypes, tensors_in
from genesis.testing.tolerance import tolerance

torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
# torch announces changes of its own
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

# Not compared at all, each with its reason.
DIFFERENT = {
    (
        "cholesky_inverse",
        "complex128",
    ): "torch takes the diagonal for real numbers, as it is in factors; samples have others",
    ("grid_sample", "bfloat16"): "torch computes the places in bfloat16, and is 100 times as far from float64",
}
# Values are compared, gradients are not.
OTHER_GRADIENTS = {
    "cholesky_inverse": "the half that is not read has no gradient: tests/ops/linalg/test_factors.py",
    "cholesky_solve": "the half that is not read has no gradient: tests/ops/linalg/test_factors.py",
    "geqrf": "torch has a node for it that refuses every backward",
    "as_strided_scatter": "torch gives the gradient of the replaced elements a value, and that of the others zeros",
    "ctc_loss": "torch gives the derivative in what log_softmax is taken of",
}
NO_COMPLEX_GRADIENTS = {  # in torch; of view_as_real, where the gradient is not contiguous
    "select_scatter",
    "slice_scatter",
    "convolution",
    "conv_tbc",
    "view_as_real",
}
ORDER_OF_EQUALS = {
    "nanmedian",
    "kthvalue",
    "topk",
}  # of integers, of which many are equal: values are compared, places not
# A constant result, the power 0: torch says requires_grad and gives zeros, Genesis says that it does not require grad.
CONSTANT = {"matrix_power"}
NO_DERIVATIVE = {"floor_divide", "heaviside"}  # torch has none for them
# Their errors are bounded relative to the norm of the whole result, not of each element: in float32 an element of 15
# in a matrix of norm 3200 differs by 7e-4, and from the exact one PyTorch's does as well as Genesis' (2e-7 of the norm).
BY_NORM = {"matrix_exp"}
# In bfloat16 torch computes them in float32 here, and rounds the result: where a processor has no AVX-512, torch adds up
# the overlapping windows in bfloat16, and is twice as far from float64 as the rounded result, which Genesis' is.
ROUNDED_ONCE = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
# torch's backward says that what it saved was written over in place: of vander, and of cond with norms other than the
# spectral and the nuclear one. Values are compared.
REFUSED_BACKWARD = {"linalg_cond", "vander"}
WIDER = (
    "does not support automatic differentiation for outputs with complex dtype",
    "not implemented for",
    "not supported",
    "Promotion",
    "must be Tensor",
    "input tensor must be either float or double",
    "expects",
    "received an invalid combination",
    "must be a matrix",
    "does not support bool",
    "N must be greater than 1",
)
# arguments that torch's losses do not differentiate
CONSTANTS = {"weight", "target", "running_mean", "running_var", "pos_weight"}
DTYPES = {"float64", "float32", "int64", "uint8", "bool", "complex128", "bfloat16"}


def _reference(op):
    name = op.torch_name if op.torch_name is not None else op.name
    for path in (name, "nn.functional." + name, "Tensor." + name):
        found = torch
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    return None


def _compared():
    for op in sorted(REGISTRY.values(), key=lambda op: op.name):
        if op.torch_name == "":
            continue
        for dtype in sample_dtypes(op):
            if dtype.name in DTYPES and (op.name, dtype.name) not in DIFFERENT:
                yield pytest.param(op, dtype, id=f"{op.name}-{dtype.short}")


def _to_torch(t):
    array = np.array(t.detach().numpy())
    out = (
        torch.from_numpy(array.astype(np.float32)).bfloat16()
        if t.dtype is genesis.bfloat16
        else torch.from_numpy(array)
    )
    return out.requires_grad_(t.requires_grad)


def _numbers(t):
    t = t.detach()
    if isinstance(t, torch.Tensor):
        return (
            t.resolve_conj().float().numpy()
            if t.dtype is torch.bfloat16
            else t.resolve_conj().resolve_neg().numpy(force=True)
        )
    return t.numpy().astype(np.float32) if t.dtype is genesis.bfloat16 else t.numpy()


def _close(mine, theirs, what, rtol, atol):
    if what.split()[0] in BY_NORM:
        atol = max(atol, 10 * np.finfo(theirs.dtype).eps * np.abs(theirs).max(initial=0.0))
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=what)


def _same(mine, theirs, what):
    assert tuple(mine.shape) == tuple(theirs.shape), what
    assert mine.dtype.name == str(theirs.dtype).removeprefix("torch."), f"{what}: {mine.dtype}, torch {theirs.dtype}"
    rtol, atol = tolerance(mine._array.dtype)
    _close(_numbers(mine), _numbers(theirs), what, rtol, atol)


def test_every_op_has_a_reference():
    missing = [op.name for op in REGISTRY.values() if op.torch_name != "" and _reference(op) is None]
    assert missing == []


@pytest.mark.parametrize(("op", "dtype"), list(_compared()))
def test_parity(op, dtype):
    reference = _reference(op)
    for i in range(len(samples_of(op, Maker(dtype)))):
        grads = _differentiated(op, dtype)
        sample: Case = samples_of(op, Maker(dtype, seed=i, requires_grad=grads))[i]
        pairs = []
        rounded = dtype is genesis.bfloat16 and op.name in ROUNDED_ONCE

        def twin(t, pairs=pairs, rounded=rounded):
            pairs.append((t, _to_torch(t).float() if rounded else _to_torch(t)))
            return pairs[-1][1]

        if op.module.startswith(("genesis.ops.losses", "genesis.ops.learning.norm")):
            sample = _constants(op, sample)
        args, kwargs = replace(list(sample.args), twin), replace(dict(sample.kwargs), twin)
        try:
            theirs = list(_torch_tensors(reference(*args, **kwargs)))
        except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError) as error:
            if any(words in str(error) for words in WIDER):
                continue  # torch refuses this dtype or a number in this place; Genesis takes it
            raise
        if rounded:
            theirs = [t.bfloat16() for t in theirs]
        mine = list(tensors_in(op.call(*sample.args, **sample.kwargs)))
        assert len(mine) == len(theirs)
        if op.name in ORDER_OF_EQUALS and dtype.name in ("int64", "uint8"):
            mine, theirs = mine[:1], theirs[:1]
        for a, b in zip(mine, theirs, strict=True):
            _same(a, b, f"{op.name} sample {i}")
        if grads and op.name not in NO_DERIVATIVE and any(b.requires_grad for b in theirs):
            _compare_gradients(mine, theirs, pairs, f"{op.name} sample {i}")


def _differentiated(op, dtype):
    """Whether gradients are compared; torch's, where it has any."""
    if op.name in OTHER_GRADIENTS or (dtype.is_complex and op.name in NO_COMPLEX_GRADIENTS):
        return False
    return (dtype.is_floating_point and dtype.itemsize > 2) or dtype.is_complex


def _constants(op, sample):
    """The sample with the arguments that torch does not differentiate detached."""
    names = list(op.signature.parameters)
    fixed = lambda name, v: replace(v, lambda t: t.detach()) if name in CONSTANTS else v  # noqa: E731
    return Case(
        tuple(fixed(name, v) for name, v in zip(names, sample.args, strict=False)),
        {k: fixed(k, v) for k, v in sample.kwargs.items()},
    )


def _torch_tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _torch_tensors(item)


def _compare_gradients(mine, theirs, pairs, what):
    rng = np.random.default_rng(0)
    leaves = [(a, b) for a, b in pairs if b.requires_grad]
    # torch says of results without elements that they require grad
    outs = [(a, b) for a, b in zip(mine, theirs, strict=True) if b.requires_grad and (a.requires_grad or b.numel())]
    if not outs:
        return
    if not all(a.requires_grad for a, _ in outs):
        assert what.split()[0] in CONSTANT, f"{what}: requires_grad"
        ones = [torch.ones_like(b) for _, b in outs]
        zeros = torch.autograd.grad([b for _, b in outs], [b for _, b in leaves], ones, allow_unused=True)
        assert all(z is None or not z.any() for z in zeros)
        return
    seeds = [rng.normal(size=tuple(b.shape)).astype(_numbers(b).dtype) for _, b in outs]
    try:
        theirs_g = torch.autograd.grad(
            [b for _, b in outs],
            [b for _, b in leaves],
            [torch.from_numpy(np.array(s)) for s in seeds],
            allow_unused=True,
        )
    except RuntimeError as error:
        if what.split()[0] in REFUSED_BACKWARD and "modified by an inplace operation" in str(error):
            return
        raise
    mine_g = genesis.autograd.grad(
        [a for a, _ in outs], [a for a, _ in leaves], [genesis.tensor(s) for s in seeds], allow_unused=True
    )
    for a, b, (leaf, _) in zip(mine_g, theirs_g, leaves, strict=True):
        zero = np.zeros(tuple(leaf.shape), leaf._array.dtype)
        x, y = zero if a is None else _numbers(a), zero if b is None else _numbers(b)
        _close(x, y, what + " gradient", rtol=1e-5, atol=1e-5 if x.dtype.itemsize < 8 else 1e-8)
