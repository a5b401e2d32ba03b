"""Losses: shapes that do not fit are said to, with what repairs them; broadcasting has to be asked for."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn
from genesis.ops.losses.classes import losses_of_classes
from genesis.testing import Maker, samples_of

PAIRED = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss"]
SAME = ["binary_cross_entropy", "binary_cross_entropy_with_logits"]


@pytest.mark.parametrize("name", [*PAIRED, *SAME, "gaussian_nll_loss"])
def test_a_broadcast_that_nobody_meant(name):
    pred, target = genesis.full((4, 1), 0.5), genesis.full((4,), 0.5)
    more = (genesis.ones(4, 1),) if name == "gaussian_nll_loss" else ()
    with pytest.raises((RuntimeError, ValueError), match=rf"^{name}: ") as caught:
        getattr(F, name)(pred, target, *more)
    text = str(caught.value)
    assert "[4, 1]" in text and "[4]" in text and text.endswith("try: input.squeeze(-1), or target.unsqueeze(-1)")
    getattr(F, name)(pred.squeeze(-1), target, *(m.squeeze(-1) for m in more))
    getattr(F, name)(pred, target.unsqueeze(-1), *more)


@pytest.mark.parametrize(
    ("input", "target", "repair"),
    [
        ((4,), (4, 1), "input.unsqueeze(-1), or target.squeeze(-1)"),
        ((1, 4), (4,), "input.squeeze(-2), or target.unsqueeze(-2)"),
        ((2, 3), (3, 2), "input.reshape(target.shape), or target.reshape(input.shape)"),
        ((2, 3), (3,), "target.expand_as(input), or input.expand_as(target), if one is meant for all"),
    ],
)
def test_the_repairs_fit(input, target, repair):
    x, y = genesis.zeros(input), genesis.zeros(target)
    with pytest.raises(RuntimeError) as caught:
        F.mse_loss(x, y)
    assert str(caught.value).endswith(f"try: {repair}")
    if "expand" not in repair:
        first, second = repair.split(", or ")
        assert (
            eval(first, {"input": x, "target": y}).shape == y.shape
            and eval(second, {"input": x, "target": y}).shape == x.shape
        )


@pytest.mark.parity
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcasting_that_is_asked_for(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    x, y = np.arange(4.0).reshape(4, 1), np.arange(4.0) ** 2
    with pytest.warns(UserWarning, match="target size") as theirs:
        expected = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(y))
    with nn.allow_loss_broadcast():
        with pytest.warns(nn.BroadcastWarning, match=rf"\n  {name}; try: input.squeeze") as caught:
            found = getattr(F, name)(genesis.tensor(x), genesis.tensor(y))
        words = str(caught[0].message).partition("\n")[0]
        assert words.replace("genesis", "torch") == str(theirs[0].message)
        assert caught[0].filename == __file__
    assert found.item() == pytest.approx(expected.item())
    with pytest.raises(RuntimeError, match="shapes differ"):
        getattr(F, name)(genesis.tensor(x), genesis.tensor(y))


VARIANCES = [
    ((2, 3), (2, 3)),
    ((4,), (4,)),
    ((2, 3), (2,)),
    ((2, 3), (2, 1)),
    ((2, 3, 4), (2, 1, 4)),
    ((2, 3, 4), (2, 3)),
    ((3,), ()),
    ((3,), (1,)),
]


@pytest.mark.parity
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("shape", "of_var"), [*VARIANCES, ((2, 3), 0.25), ((2, 3), 0.0), ((3,), 2.0)])
def test_gaussian_nll_as_pytorch(shape, of_var, reduction):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape)
    # some are zero: limited from below
    var = of_var if isinstance(of_var, float) else np.maximum(rng.normal(size=of_var), 0)
    results = []
    for lib in (genesis, torch):
        leaf = lib.tensor(x, requires_grad=True)
        v = var if isinstance(var, float) else lib.tensor(var, requires_grad=True)
        loss = lib.nn.functional.gaussian_nll_loss(leaf, lib.tensor(y), v, full=True, reduction=reduction)
        loss.sum().backward()
        results.append([loss.detach().numpy(), leaf.grad.numpy(), *([] if isinstance(v, float) else [v.grad.numpy()])])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parity
@pytest.mark.parametrize("var", [(3,), (1, 3), (2, 4), (1, 1), -1.0, (2, 3, 1)])
def test_gaussian_nll_refuses_what_pytorch_refuses(var):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    for lib in (torch, genesis):
        v = var if isinstance(var, float) else lib.ones(var)
        if var == (1, 3):  # one size of 1: meant for all
            lib.nn.functional.gaussian_nll_loss(lib.zeros(2, 3), lib.zeros(2, 3), v)
            continue
        with pytest.raises(ValueError, match="var"):
            lib.nn.functional.gaussian_nll_loss(lib.zeros(2, 3), lib.zeros(2, 3), v)


def test_float_classes_are_named():
    with pytest.raises(
        RuntimeError, match=r"cross_entropy: class indices must be integers, target is genesis.float32 of shape \[4\]"
    ) as caught:
        F.cross_entropy(genesis.zeros(4, 3), genesis.tensor([0.0, 1.0, 2.0, 1.0]))
    assert "try: target.long()" in str(caught.value)
    with pytest.raises(RuntimeError, match="nll_loss: class indices must be integers, target is genesis.float32"):
        F.nll_loss(genesis.zeros(4, 3), genesis.zeros(4, 3))


@pytest.mark.parametrize("weights", [[1.0, -1.0], [math.inf, 1.0], [math.nan, 1.0], [0.0, 0.0]])
def test_impossible_weights_of_multinomial(weights):
    for error in (ValueError, RuntimeError):  # the second is PyTorch's
        with pytest.raises(error, match="multinomial: weights must be finite, not negative, and not all zero, got"):
            genesis.multinomial(genesis.tensor(weights), 1)


def test_operands_of_stack_are_named():
    with pytest.raises(
        RuntimeError,
        match=r"(?s)all tensors must have one shape, \[2\] and \[3\].*tensors\[0\] f32\[2\].*tensors\[2\] f32\[3\]",
    ):
        genesis.stack([genesis.zeros(2), genesis.zeros(2), genesis.zeros(3)])
    with pytest.raises(TypeError, match=r"(?s)stack: expected tensors, got int.*tensors\[1\] 3"):
        genesis.stack([genesis.zeros(2), 3])
    for join in (genesis.stack, genesis.cat):
        with pytest.raises(TypeError, match="expected at least one tensor"):
            join([])
        with pytest.raises(TypeError, match="expected a list of tensors, got Tensor"):
            join(genesis.zeros(2, 2))


@pytest.mark.parity
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_softmax_without_dim_as_pytorch(name, shape):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    x = np.random.default_rng(0).normal(size=shape)
    with pytest.warns(UserWarning, match="Implicit dimension"):
        expected = getattr(torch.nn.functional, name)(torch.tensor(x))
    module = {"softmax": nn.Softmax, "log_softmax": nn.LogSoftmax, "softmin": nn.Softmin}[name]()
    for call in (getattr(F, name), module):
        with pytest.warns(
            UserWarning, match=rf"{name}: no dim is given, \d of {len(shape)} dimensions is taken"
        ) as caught:
            found = call(genesis.tensor(x))
        assert caught[0].filename == __file__ and len(caught) == 1
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(F, name)(genesis.tensor(x), dim=-1)


# ---- PyTorch's old arguments

OLD = [
    name
    for name in F.__all__
    if hasattr(getattr(F, name), "op") and "size_average" in getattr(F, name).op.signature.parameters
]
MEANT = {
    (None, True): "mean",
    (True, None): "mean",
    (True, True): "mean",
    (False, None): "sum",
    (False, True): "sum",
    (None, False): "none",
    (True, False): "none",
    (False, False): "none",
}
SAYS = "size_average and reduce args will be deprecated, please use reduction='{}' instead."


@pytest.mark.parametrize("name", OLD)
def test_size_average_and_reduce_mean_a_reduction(name):
    function, (sample, *_) = getattr(F, name), samples_of(getattr(F, name).op, Maker(genesis.float32))
    for (average, reduce), reduction in MEANT.items():
        expected = function(*sample.args, reduction=reduction)
        with pytest.warns(UserWarning, match=SAYS.format(reduction)):
            found = function(*sample.args, size_average=average, reduce=reduce)
        assert genesis.equal(found, expected)
    with pytest.raises(
        TypeError, match=rf"{name}: size_average must be True or False, got 'sum'\n.*try: reduction='sum'"
    ):
        function(*sample.args, size_average="sum")


@pytest.mark.parity
def test_the_old_arguments_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for name in [
        *PAIRED,
        *SAME,
        "cross_entropy",
        "nll_loss",
        "margin_ranking_loss",
        "triplet_margin_loss",
        "gaussian_nll_loss",
        "cosine_similarity",
    ]:
        theirs = getattr(torch.nn.functional, name)
        if name != "cosine_similarity":  # written in C++
            assert list(getattr(F, name).op.signature.parameters) == list(inspect.signature(theirs).parameters), name


NEVER_OLD = [
    "AdaptiveLogSoftmaxWithLoss",
    "CTCLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "LinearCrossEntropyLoss",
    "TripletMarginWithDistanceLoss",
]


@pytest.mark.parametrize("name", [name for name in nn.__all__ if name.endswith("Loss")])
def test_modules_keep_what_the_old_arguments_mean(name):
    module = getattr(nn, name)
    if name in NEVER_OLD:
        with pytest.raises(TypeError, match=f"{name}: .*size_average"):
            module(size_average=False)
        return
    with pytest.warns(UserWarning, match=SAYS.format("sum")):
        assert module(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match=SAYS.format("none")):
        assert module(reduce=False).reduction == "none"
    assert module(reduction="sum").reduction == "sum"


@pytest.mark.parity
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_one_weight_for_each_element(name, reduction):
    torch = pytest.importorskip("torch")
    x, y, w = (genesis.randn(2, 3, requires_grad=True) for _ in range(3))
    loss = getattr(F, name)(x, y, weight=w, reduction=reduction)
    loss.sum().backward()
    xt, yt, wt = (torch.tensor(v.detach().numpy(), requires_grad=True) for v in (x, y, w))
    theirs = getattr(torch.nn.functional, name)(xt, yt, weight=wt, reduction=reduction)
    theirs.sum().backward()
    np.testing.assert_allclose(loss.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)
    for a, b in zip((x, y, w), (xt, yt, wt), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match=rf"{name}: weight of shape \[3\] is not the input's, \[2, 3\]"):
        getattr(F, name)(x, y, weight=genesis.ones(3))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_triplets_with_the_anchor_swapped(p):
    a, b, c = (np.random.default_rng(i).standard_normal((5, 3)) for i in range(3))
    far = lambda x, y: (np.abs(x - y + 1e-6) ** p).sum(1) ** (1 / p)  # noqa: E731
    want = np.maximum(far(a, b) - np.minimum(far(a, c), far(b, c)) + 1, 0)
    assert (far(b, c) < far(a, c)).any() and (far(b, c) > far(a, c)).any()
    found = F.triplet_margin_loss(*map(genesis.from_numpy, (a, b, c)), p=p, swap=True, reduction="none")
    assert np.allclose(found.numpy(), want, rtol=1e-12)


def test_softmax_of_nothing_and_of_a_number():
    for f, one in ((F.softmax, 1.0), (F.log_softmax, 0.0)):
        assert f(genesis.zeros(0, 3), 0).shape == f(genesis.zeros(0, 3), 1).shape == (0, 3)
        assert f(genesis.tensor(2.0), 0).item() == one


@pytest.mark.parametrize("p, y, slope", [(0, 0, 1), (1, 1, -1), (0, 1, -1e12), (1, 0, 1e12), (1e-40, 1, -1e12)])
def test_binary_cross_entropy_of_certainty_has_a_slope(p, y, slope):
    x = genesis.tensor([float(p)], requires_grad=True)
    F.binary_cross_entropy(x, genesis.tensor([float(y)])).backward()
    np.testing.assert_allclose(x.grad.numpy(), [slope], rtol=1e-6)
    z = genesis.tensor([200.0 if p else -200.0], requires_grad=True)
    F.binary_cross_entropy(z.sigmoid(), genesis.tensor([float(y)])).backward()
    assert np.isfinite(z.grad.numpy()).all()


def test_cross_entropy_of_a_tiny_probability_has_its_digits():
    p = np.array([1e-30, 1e-9, 3e-6, 0.1], np.float32)
    x = genesis.from_numpy(p).requires_grad_()
    loss = F.binary_cross_entropy(x, genesis.zeros(4), reduction="none")
    np.testing.assert_allclose(loss.detach(), -np.log1p(-p.astype(float)), rtol=1e-6)
    np.testing.assert_allclose(genesis.autograd.grad(loss.sum(), x)[0], 1 / (1 - p.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_each_target_has_the_targets_shape(shape, weighted):
    x = genesis.randn(*shape)
    count = shape[1] if len(shape) > 1 else shape[0]
    target = genesis.randint(0, count, shape[:1] + shape[2:] if len(shape) > 1 else ())
    weight = genesis.ones(count) if weighted else None
    want = -np.take_along_axis(x.numpy(), np.expand_dims(target.numpy(), min(1, x.ndim - 1)), min(1, x.ndim - 1))
    found = F.nll_loss(x, target, weight, reduction="none")
    assert found.shape == target.shape
    np.testing.assert_array_equal(found.numpy(), want.squeeze(min(1, x.ndim - 1)))


@pytest.mark.parametrize("loss", ["huber_loss", "smooth_l1_loss"])
def test_far_from_zero_the_slope_is_one_even_at_infinity(loss):
    x = genesis.tensor([np.inf, -np.inf, 1.0, -1.0, 0.25, np.nan], requires_grad=True)
    losses = getattr(genesis.nn.functional, loss)(x, genesis.zeros(6), reduction="none")
    losses.sum().backward()
    np.testing.assert_array_equal(losses.detach().numpy(), [np.inf, np.inf, 0.5, 0.5, 0.03125, np.nan])
    np.testing.assert_array_equal(x.grad.numpy(), [1, -1, 1, -1, 0.25, np.nan])


# ---- few losses of classes, which a kernel computes at once


def _class_losses(lib, name, input, target, weight, g, **options):
    """The loss, and the gradients of what it is computed from."""
    x = lib.tensor(input, requires_grad=True)
    w = None if weight is None else lib.tensor(weight)
    if w is not None and lib is genesis:  # PyTorch has no gradient of weights
        w.requires_grad_()
    loss = getattr(lib.nn.functional, name)(x, lib.tensor(target), w, **options)
    loss.backward(lib.tensor(g[: loss.numel()].reshape(tuple(loss.shape))))
    return loss.detach().numpy(), x.grad.numpy(), None if w is None or lib is not genesis else w.grad.numpy()


CLASS_LOSSES = pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
CLASS_SHAPES = pytest.mark.parametrize("shape", [(5, 4), (1, 1), (4,), (3, 4, 2), (2, 4, 3, 2)])


def _class_numbers(shape, name, seed=0):
    rng = np.random.default_rng(seed)
    many = shape[1] if len(shape) > 1 else shape[0]
    of_targets = shape[:1] + shape[2:] if len(shape) > 1 else ()
    input, target = 3 * rng.normal(size=shape), rng.integers(0, many, of_targets)
    input = input - np.abs(input).max() if name == "nll_loss" else input
    return input, target, rng.random(many) + 0.5, rng.normal(size=max(target.size, 1))


@pytest.mark.parity
@CLASS_LOSSES
@CLASS_SHAPES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [-100, 0, 2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_losses_of_classes_as_pytorch(name, shape, weighted, ignored, reduction, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    input, target, weight, g = _class_numbers(shape, name)
    input, weight, g = (a.astype(dtype) for a in (input, weight, g))
    if ignored == -100 and target.ndim:
        target.flat[0] = -100
    options = {"ignore_index": ignored, "reduction": reduction}
    ours, theirs = [
        _class_losses(lib, name, input, target, weight if weighted else None, g, **options) for lib in (genesis, torch)
    ]
    near = {"rtol": 2e-6, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(ours[0], theirs[0], **near)
    if np.isfinite(ours[0]).all():
        np.testing.assert_allclose(ours[1], theirs[1], **near)
    else:  # nothing counts: NaN, of which PyTorch's gradient is NaN, too
        assert not ours[1].any()


@CLASS_LOSSES
@CLASS_SHAPES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [-100, 0])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_few_losses_of_classes_as_composed(monkeypatch, name, shape, weighted, ignored, reduction):
    input, target, weight, g = _class_numbers(shape, name, 1)
    options = {"ignore_index": ignored, "reduction": reduction}
    at_once = _class_losses(genesis, name, input, target, weight if weighted else None, g, **options)
    for op in (getattr(F, name).op, losses_of_classes.op):
        monkeypatch.delitem(op.kernels, np.ndarray)
    composed = _class_losses(genesis, name, input, target, weight if weighted else None, g, **options)
    for ours, theirs in zip(at_once, composed, strict=True):
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@CLASS_LOSSES
def test_losses_of_classes_are_differentiable_twice(name):
    input, target, weight, _ = _class_numbers((3, 4, 2), name, 2)
    loss = lambda x, w: getattr(F, name)(x, genesis.tensor(target), w)  # noqa: E731
    x, w = genesis.tensor(input, requires_grad=True), genesis.tensor(weight, requires_grad=True)
    assert genesis.autograd.gradcheck(loss, (x, w)) and genesis.autograd.gradgradcheck(loss, (x, w))


@CLASS_LOSSES
def test_classes_may_be_written_to_after_the_loss(name):
    input, target, weight, _ = _class_numbers((5, 4), name)
    x, w, y = genesis.tensor(input, requires_grad=True), genesis.tensor(weight), genesis.tensor(target)
    loss = getattr(F, name)(x, y, w)
    (expected,) = genesis.autograd.grad(loss, x, retain_graph=True)
    y.zero_()
    w.zero_()
    loss.backward()
    assert genesis.equal(x.grad, expected)


@CLASS_LOSSES
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_classes_of_any_integers(name, dtype):
    input, target, weight, _ = _class_numbers((5, 4), name)
    x, w, y = genesis.tensor(input), genesis.tensor(weight), genesis.tensor(target)
    small = y.to(getattr(genesis, dtype))
    assert genesis.equal(getattr(F, name)(x, small, w), getattr(F, name)(x, y, w))


@CLASS_LOSSES
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("wrong", [4, -1, 2**40])
def test_what_is_no_class_is_refused(name, reduction, wrong):
    x, y = genesis.zeros(3, 4, dtype=genesis.float64), genesis.tensor([0, wrong, -100])
    with pytest.raises(IndexError, match=f"^{name}: target {wrong} is out of range for 4 classes"):
        getattr(F, name)(x, y, reduction=reduction)


@CLASS_LOSSES
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_no_targets(name, reduction):
    x = genesis.zeros(0, 4, requires_grad=True)
    loss = getattr(F, name)(x, genesis.zeros(0, dtype=genesis.int64), reduction=reduction)
    assert loss.tolist() == [] if reduction == "none" else math.isnan(loss) if reduction == "mean" else loss == 0


@CLASS_LOSSES
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_few_losses_of_classes_are_one_node_behind_log_probabilities(name, reduction):
    x = genesis.zeros(3, 4, requires_grad=True)
    loss = getattr(F, name)(x, genesis.tensor([0, 1, 2]), ignore_index=1, reduction=reduction)
    (before,) = [node for node, _ in loss.grad_fn.next_functions if node is not None]
    assert before is x._node or before.name().startswith("LogSoftmax")
