"""Sparse gradients of tables: what they are, what is done with them, and the steps along them, as in PyTorch."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.nn import functional

ROWS, WIDTH = 7, 3


def _layer(lib, **options):
    weight = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    return lib.nn.Embedding(ROWS, WIDTH, _weight=lib.tensor(weight), sparse=True, **options)


def _after(layer, lib, *batches):
    for batch in batches:
        (layer(lib.tensor(batch)) ** 2).sum().backward()
    return layer.weight.grad


def test_the_gradient_is_a_sparse_tensor_of_the_rows_that_were_used():
    grad = _after(_layer(genesis), genesis, [1, 3, 1])
    assert isinstance(grad, genesis.Tensor) and grad.is_sparse and grad.layout is genesis.sparse_coo
    assert not grad.is_coalesced() and grad._indices().tolist() == [[1, 3, 1]] and grad._nnz() == 3
    assert (grad.sparse_dim(), grad.dense_dim(), tuple(grad.shape)) == (1, 1, (ROWS, WIDTH)) and not grad.requires_grad
    dense = nn.Embedding(ROWS, WIDTH, _weight=_layer(genesis).weight.detach())
    assert genesis.equal(grad.to_dense(), _after(dense, genesis, [1, 3, 1])) and not dense.weight.grad.is_sparse


def test_sums_of_gradients():
    layer = _layer(genesis)
    first = _after(layer, genesis, [1, 3])
    before = first.to_dense()
    assert _after(layer, genesis, [3, 0]) is first and first.is_sparse  # in place
    (layer.weight * 2).sum().backward()
    assert not layer.weight.grad.is_sparse and not genesis.equal(layer.weight.grad, before)
    total = layer.weight.grad
    _after(layer, genesis, [2])
    assert layer.weight.grad is total  # dense + sparse in place
    layer.weight.grad = None
    (layer(genesis.tensor([2])).sum() + (layer.weight * 2).sum()).backward()
    assert layer.weight.grad[2].tolist() == [3, 3, 3] and layer.weight.grad[0].tolist() == [2, 2, 2]


def test_a_gradient_is_not_the_memory_of_what_it_came_from():
    layer, g = _layer(genesis), genesis.ones(2, WIDTH, dtype=genesis.float64)
    layer(genesis.tensor([1, 3])).backward(g)
    layer.weight.grad.mul_(5)
    assert g.tolist() == [[1, 1, 1]] * 2 and layer.weight.grad.to_dense()[1].tolist() == [5, 5, 5]


def test_hooks_see_and_replace_sparse_gradients():
    layer, seen = _layer(genesis), []
    handle = layer.weight.register_hook(lambda g: seen.append(g) or g * 2)
    plain = _after(_layer(genesis), genesis, [1, 1])
    assert genesis.equal(_after(layer, genesis, [1, 1]).to_dense(), 2 * plain.to_dense()) and seen[0].is_sparse
    handle.remove()
    layer.weight.grad = None
    layer.weight.register_hook(lambda g: g.to_dense())
    assert genesis.equal(_after(layer, genesis, [1, 1]), plain.to_dense())
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    _after(layer, genesis, [2])
    assert seen[-1] is layer.weight.grad
    assert genesis.autograd.grad(layer(genesis.tensor([2])).sum(), layer.weight)[0].is_sparse is False  # of the hook


def test_second_derivatives_go_through_the_values():
    layer = _layer(genesis)
    (grad,) = genesis.autograd.grad((layer(genesis.tensor([1, 1, 4])) ** 3).sum(), layer.weight, create_graph=True)
    grad.to_dense().sum().backward()
    weight = layer.weight.detach()
    expected = genesis.zeros(ROWS, 1, dtype=genesis.float64)
    expected[1], expected[4] = 12.0, 6.0
    assert genesis.allclose(layer.weight.grad.to_dense(), expected * weight)


def test_what_is_refused():
    layer = _layer(genesis, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq is not supported with sparse gradients"):
        _after(layer, genesis, [1])
    with pytest.raises(ValueError, match="sparse gradients are for 'sum' and 'mean'"):
        nn.EmbeddingBag(3, 2, mode="max", sparse=True)(genesis.tensor([[1]]))
    layer = _layer(genesis)
    _after(layer, genesis, [1])
    dense = set(optim.__all__) - {"SGD", "Adagrad", "SparseAdam", "LBFGS", "Optimizer", "lr_scheduler", "swa_utils"}
    for name in sorted(dense):
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            getattr(optim, name)([layer.weight]).step()
    for kind, option in itertools.product((optim.SGD, optim.Adagrad), ("weight_decay", "fused", "differentiable")):
        with pytest.raises(RuntimeError, match=f"{option} is not compatible with sparse gradients"):
            kind([layer.weight], **{option: 0.1 if option == "weight_decay" else True}).step()
    assert genesis.equal(layer.weight.detach(), _layer(genesis).weight.detach())
    with pytest.raises(ValueError, match="parameters must be dense"):
        optim.SparseAdam([genesis.eye(2).to_sparse().requires_grad_()])
    layer.weight.grad = genesis.ones_like(layer.weight)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optim.SparseAdam([layer.weight]).step()


def test_gradients_are_clipped_scaled_and_zeroed():
    layer, dense = _layer(genesis), _layer(genesis)
    dense.sparse = False
    for kind in (2.0, 1.0, float("inf")):
        layer.weight.grad = dense.weight.grad = None
        grads = [_after(x, genesis, [1, 3, 1]) for x in (layer, dense)]
        norms = [nn.utils.clip_grad_norm_(x.parameters(), 0.5, kind) for x in (layer, dense)]
        assert genesis.allclose(*norms) and genesis.allclose(grads[0].to_dense(), grads[1])
    for x in (layer, dense):
        nn.utils.clip_grad_value_(x.parameters(), 0.1)
    assert layer.weight.grad.is_sparse and genesis.allclose(layer.weight.grad.to_dense(), dense.weight.grad)
    optimizer = optim.SGD(layer.parameters())
    optimizer.zero_grad(set_to_none=False)
    assert layer.weight.grad._nnz() == 0
    optimizer.zero_grad()
    assert layer.weight.grad is None
    scaler = genesis.amp.GradScaler(init_scale=8.0)
    scaler.scale(layer(genesis.tensor([1])).sum()).backward()
    scaler.unscale_(optimizer)
    assert layer.weight.grad.to_dense()[1].tolist() == [1, 1, 1]
    (layer(genesis.tensor([1])) * float("inf")).sum().backward()
    before = layer.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0 or genesis.equal(before, layer.weight.detach())


def test_a_state_is_saved_and_goes_on():
    layers, results = [_layer(genesis), _layer(genesis)], []
    for interrupted, layer in enumerate(layers):
        optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        for i in range(6):
            if interrupted and i == 3:
                state = copy.deepcopy(optimizer.state_dict())
                optimizer = optim.SGD(layer.parameters(), lr=0.5)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            _after(layer, genesis, [i, 0])
            optimizer.step()
        results.append(layer.weight.detach())
    assert genesis.equal(*results)


def test_only_what_is_named_is_stepped_along():
    layer = _layer(genesis)
    before, optimizer = layer.weight.detach().clone(), optim.SparseAdam(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        _after(layer, genesis, [1, 5])
        optimizer.step()
    others = [0, 2, 3, 4, 6]
    assert genesis.equal(layer.weight.detach()[others], before[others]) and not genesis.equal(layer.weight, before)


# ---- beside PyTorch

CASES = [
    ("SparseAdam", {}), ("SparseAdam", {"betas": (0.8, 0.95), "eps": 1e-4}), ("SparseAdam", {"maximize": True}),
    ("SparseAdam", {"betas": (0.0, 0.5), "eps": 0.1}),
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"maximize": True, "momentum": 0.5}), ("SGD", {"foreach": True}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1}), ("Adagrad", {"initial_accumulator_value": 0.5, "eps": 1e-3}),
    ("Adagrad", {"maximize": True}), ("Adagrad", {"foreach": True}),
]  # fmt: skip


def _trained(lib, name, options, dtype, bag):
    """The table after fifty steps: batches of changing size, repeated rows, an empty batch, norms, padding."""
    rng = np.random.default_rng(3)
    weight = lib.tensor(rng.normal(size=(ROWS, WIDTH))).to(getattr(lib, dtype))
    kinds = {"padding_idx": 2, "sparse": True, "_weight": weight}
    layer = lib.nn.EmbeddingBag(ROWS, WIDTH, mode=bag, **kinds) if bag else lib.nn.Embedding(ROWS, WIDTH, **kinds)
    optimizer = getattr(lib.optim, name)(layer.parameters(), **{"lr": 0.05, **options})
    scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 10, 0.7)
    for i in range(50):
        optimizer.zero_grad(set_to_none=i % 3 != 0)
        for _ in range(1 + i % 2):  # accumulated
            batch = lib.tensor(rng.integers(0, ROWS, size=(2, 0 if i == 20 and not bag else 3)))
            (layer(batch) ** 2).sum().backward()
        optimizer.step()
        scheduler.step()
    return layer.weight.detach(), optimizer


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("bag", [None, "sum", "mean"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda x: str(x).replace(" ", ""))
def test_fifty_steps_are_those_of_pytorch(name, options, bag):
    torch = pytest.importorskip("torch")
    for dtype in ("float64", "float32"):
        mine, optimizer = _trained(genesis, name, options, dtype, bag)
        theirs, other = _trained(torch, name, options, dtype, bag)
        close = {"rtol": 1e-9, "atol": 1e-11} if dtype == "float64" else {"rtol": 2e-4, "atol": 1e-5}
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), **close)
        for theirs in other.state.values():
            (mine,) = optimizer.state.values()
            for key, value in theirs.items():
                if isinstance(value, torch.Tensor) and value.ndim:
                    dense = (
                        [x.to_dense().numpy() for x in (mine[key], value)] if value.is_sparse else [mine[key], value]
                    )
                    np.testing.assert_allclose(*dense, **close, err_msg=key)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse")
def test_gradients_are_those_of_pytorch():
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(5)
    for _ in range(60):
        weight = rng.normal(size=(ROWS, WIDTH))
        options = {"padding_idx": rng.choice([None, 0, -1, 3]), "max_norm": rng.choice([None, 0.9])}
        bag = rng.choice([None, "sum", "mean"])
        numbers = rng.integers(0, ROWS, size=rng.integers(0, 4, size=2 if bag else rng.integers(1, 4)) + bool(bag))
        flat = bag and rng.random() < 0.5
        offsets = np.sort(np.r_[0, rng.integers(0, numbers.size + 1, size=2)]) if flat else None
        factors = rng.normal(size=numbers.size if flat else numbers.shape) if bag == "sum" else None
        results = []
        for lib in (genesis, torch):
            w = lib.tensor(weight).requires_grad_()
            index, call = lib.tensor(numbers.reshape(-1) if flat else numbers, dtype=lib.int64), lib.nn.functional
            if bag:
                more = {"mode": str(bag), "offsets": None if offsets is None else lib.tensor(offsets)}
                more["per_sample_weights"] = None if factors is None else lib.tensor(factors)
                out = call.embedding_bag(index, w, sparse=True, **options, **more)
            else:
                out = call.embedding(index, w, sparse=True, **options)
            (out**2).sum().backward()
            results.append(
                (out.detach().numpy(), w.grad.to_dense().numpy(), w.grad.coalesce().indices().numpy(), w.grad._nnz())
            )
        for mine, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{bag} {options}")


def test_transforms():
    weight, index = genesis.ones(3, 2), genesis.tensor([1, 1])
    grad = genesis.func.grad(lambda w: functional.embedding(index, w, sparse=True).sum())(weight)
    assert grad.is_sparse and grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0]]
    batched = genesis.func.vmap(lambda i: functional.embedding(i, weight.requires_grad_(), sparse=True))(index)
    assert batched.shape == (2, 2)
