"""Views and in-place writes: gradients against PyTorch on random programs, guards, versions."""

from __future__ import annotations

import random

import numpy as np
import pytest

import genesis


def programs(torch, seed):
    """A random program of views and writes; returns its values and gradients, or the fact that it was refused."""
    rng = random.Random(seed)
    start = np.random.default_rng(seed).normal(size=(4, 4))
    x = torch.tensor(start, requires_grad=True)
    w = torch.tensor(start[::-1].copy() * 0.5, requires_grad=True)
    tensors = [x * 1, w * 2]
    views = [
        lambda t: t.view(-1),
        lambda t: t.t() if t.ndim == 2 else t,
        lambda t: t[1:],
        lambda t: t[0],
        lambda t: t.unsqueeze(0),
        lambda t: t.reshape(2, -1) if t.numel() % 2 == 0 else t,
        lambda t: t.transpose(0, -1),
        lambda t: t.narrow(0, 0, max(1, t.shape[0] - 1)),
        lambda t: t[..., ::2],
        lambda t: t.diagonal() if t.ndim == 2 else t,
    ]
    writes = [
        lambda t, o: t.mul_(3),
        lambda t, o: t.add_(1.5),
        lambda t, o: t.zero_(),
        lambda t, o: t.mul_(o.sum()),
        lambda t, o: t.copy_(o.sum() * 2),
        lambda t, o: t.__setitem__(0, 2.0),
        lambda t, o: t.__setitem__(-1, o.mean()),
        lambda t, o: t.sub_(o.mean() * t.detach()),
        lambda t, o: t.tanh_(),
    ]
    try:
        for _ in range(rng.randint(3, 9)):
            t, o = rng.choice(tensors), rng.choice(tensors)
            if t.ndim and rng.random() < 0.5:
                tensors.append(rng.choice(views)(t))
            elif t.ndim and t.numel():
                rng.choice(writes)(t, o)
        total = sum(((t * t).sum() * (i + 1) for i, t in enumerate(tensors)), torch.zeros(()))
        total.backward()
    except (RuntimeError, IndexError, TypeError) as error:
        return type(error).__name__
    return [float(total.detach())] + [None if g is None else g.tolist() for g in (x.grad, w.grad)]


@pytest.mark.parity
def test_random_programs_against_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    compared = 0
    for seed in range(600):
        mine, theirs = programs(genesis, seed), programs(torch, seed)
        if isinstance(theirs, str) or isinstance(mine, str):
            # one side may refuse what the other can do (torch: views of a multi-view op); never both sides a different
            # number
            continue
        compared += 1
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(
                np.asarray(0 if a is None else a),
                np.asarray(0 if b is None else b),
                rtol=1e-7,
                atol=1e-9,
                err_msg=f"seed {seed}",
            )
    assert compared > 350


def x_and(*ops):
    x = genesis.ones(4, requires_grad=True)
    y = x * 1
    for op in ops:
        op(y)
    return x, y


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda y: y.__setitem__(0, 2), [0, 1, 1, 1]),
        (lambda y: y.view(-1).mul_(3), [3, 3, 3, 3]),
        (lambda y: y.view(2, 2)[1].mul_(3), [1, 1, 3, 3]),
        (lambda y: y[1:3].zero_(), [1, 0, 0, 1]),
        (lambda y: y.__setitem__(y > 0, 5.0), [0, 0, 0, 0]),
        (lambda y: y.__setitem__([0, 2], y[[1, 3]] * 2), [0, 3, 0, 3]),
        (lambda y: y.mul_(y), [2, 2, 2, 2]),
        (lambda y: y.reshape(2, 2).t()[0].add_(10), [1, 1, 1, 1]),
    ],
)
def test_gradients_of_writes(write, expected):
    x, y = x_and(write)
    y.sum().backward()
    assert x.grad.tolist() == expected


def test_a_view_sees_a_write_to_its_base_and_the_other_way_round():
    x, y = x_and()
    v = y[:2]
    y.mul_(2)
    assert v.tolist() == [2, 2]
    v.sum().backward()
    assert x.grad.tolist() == [2, 2, 0, 0]
    a = genesis.zeros(3)
    w = genesis.ones(1, requires_grad=True)
    a[1:2] = w * 4  # the base starts to require grad
    assert a.requires_grad and not a.is_leaf
    a.sum().backward()
    assert w.grad.tolist() == [4]


def test_values_a_gradient_sees_are_those_before_the_write():
    x = genesis.tensor([2.0], requires_grad=True)
    w = genesis.tensor([3.0], requires_grad=True)
    y = x * 1
    y.mul_(w)
    y.backward()
    assert x.grad.tolist() == [3] and w.grad.tolist() == [2]


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda: genesis.ones(2, requires_grad=True).add_(1), "add_: a leaf that requires grad is written to in place"),
        (lambda: genesis.ones(2, requires_grad=True)[:1].add_(1), "add_: a view of a leaf that requires grad"),
        (lambda: genesis.ones(2, requires_grad=True).__setitem__(0, 1), "setitem: a leaf that requires grad"),
        (lambda: genesis.ones(1).expand(3).add_(1), "add_: the memory cannot be written to"),
        (
            lambda: genesis.ones(3).add_(genesis.ones(2, 3)),
            r"add_: the result has shape \[2, 3\], it cannot be written to \[3\]",
        ),
        (
            lambda: genesis.tensor([1, 2]).add_(1.5),
            "add_: the result type genesis.float32 cannot be cast to genesis.int64",
        ),
        (
            lambda: genesis.ones(3).__setitem__(slice(2), genesis.ones(3)),
            r"setitem: a value of shape \[3\] does not fit the indexed shape \[2\]",
        ),
    ],
)
def test_refused_writes(write, words):
    with pytest.raises(RuntimeError, match=words):
        write()


def test_a_refused_write_changes_nothing():
    x = genesis.ones(3)
    for bad in (lambda: x.add_(genesis.ones(2)), lambda: x.__setitem__(7, 1.0), lambda: x.copy_(genesis.ones(5))):
        with pytest.raises((RuntimeError, IndexError)):
            bad()
    assert x.tolist() == [1, 1, 1] and x._version == 0


def test_stale_saved_values_name_both_operations():
    x = genesis.ones(2, requires_grad=True)
    y = x.exp()
    z = y * 2
    y.view(-1).mul_(3)
    with pytest.raises(RuntimeError, match="a tensor that ExpBackward saved was modified in place by mul_ since"):
        y.sum().backward()
    assert z.requires_grad
    w = genesis.ones(2, requires_grad=True)
    loss = (w * w).sum()
    with genesis.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="a tensor that MulBackward saved was modified in place by add_"):
        loss.backward()


def test_detach_shares_memory_and_versions():
    x = genesis.ones(2, requires_grad=True)
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified in place by zero_"):
        y.sum().backward()
    assert y.tolist() == [0, 0]


def test_versions_are_counted():
    x = genesis.zeros(2)
    v = x[:1]
    assert x._version == v._version == 0
    v.add_(1)
    x.mul_(2)
    x[0] = 5
    assert x._version == v._version == 3 and v._base is x


def nodes_below(tensors):
    seen, ahead = set(), [x.grad_fn for x in tensors]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            ahead.extend(n for n, _ in node.next_functions)
    return len(seen)


@pytest.mark.parametrize("length", [2000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_chain_of_views_costs_its_length(length):
    x = genesis.ones(4, requires_grad=True)
    base = x * 1
    chain = [base]
    for _ in range(length):
        chain.append(chain[-1][:])
    chain[length // 2].mul_(3)
    # each view has one step more than the one that it is a view of, before and after the write
    assert nodes_below(chain) < 3 * length + 10
    (base.sum() + chain[-1].sum() + chain[1].sum()).backward(retain_graph=True)
    assert x.grad.tolist() == [9.0] * 4
    with genesis.no_grad():
        chain[-1].add_(1)
    assert base.tolist() == [4.0] * 4
    last = chain[-1]
    del chain, base
    (last * x).sum().backward()  # the chain is still there
    assert x.grad.tolist() == [9.0 + 4.0 + 3.0] * 4


def test_views_keep_their_base_no_longer_than_they_live():
    import weakref

    base = genesis.ones(4, requires_grad=True) * 1
    view = base[1:]
    deep = view[1:]
    alive = weakref.ref(base)
    deep.mul_(2)  # the base's history has the steps, not the base
    del base, view, deep
    assert alive() is None


def test_writes_give_no_history_to_views_of_what_was_detached():
    x = genesis.ones(2, 3).requires_grad_()
    v = x * 1.5
    row = v[0]
    constant = v.detach()[0]
    v.mul_(2.0)
    assert not constant.requires_grad
    assert constant.tolist() == row.tolist() == [3.0, 3.0, 3.0]


def test_writes_to_what_was_detached_leave_the_history_of_the_other_views():
    x, y = genesis.ones(2, 3).requires_grad_(), genesis.ones(3).requires_grad_()
    v = x * 1.5
    row, constant = v[0], v.detach()
    constant[1] = 0.5  # makes a view, too
    constant.mul_(y)
    gx, gy = genesis.autograd.grad(row.sum(), [x, y], allow_unused=True)
    assert gx.tolist() == [[1.5] * 3, [0.0] * 3]
    assert gy is None


@pytest.mark.parametrize("write", ["exp_", "tanh_", "sigmoid_"])
@pytest.mark.parametrize("view", [lambda x: x[:], lambda x: x[1:], lambda x: x.view(3, 1)])
def test_a_result_that_was_written_through_a_view_and_saved_has_the_history_of_the_view(write, view):
    x = genesis.tensor([0.3, -0.2, 0.5], dtype=genesis.float64, requires_grad=True)
    base = x * 2
    v = view(base)
    getattr(v, write)()
    (g,) = genesis.autograd.grad(v.sum(), x, create_graph=True)
    by_view, by_leaf = genesis.autograd.grad((g * g).sum(), [v, x], retain_graph=True)
    f = getattr(genesis, write[:-1])
    y = genesis.tensor(v.detach().tolist(), dtype=v.dtype, requires_grad=True)
    slope = {"exp_": y, "tanh_": 1 - y * y, "sigmoid_": y * (1 - y)}[write] * 2  # df(2x)/dx in terms of the result
    assert genesis.allclose(by_view, genesis.autograd.grad((slope * slope).sum(), y)[0])
    z = x.detach().requires_grad_()
    (g,) = genesis.autograd.grad(f(view(z * 2)).sum(), z, create_graph=True)
    assert genesis.allclose(by_leaf, genesis.autograd.grad((g * g).sum(), z)[0])
    base.mul_(1.0)
    del v  # its history is gone with it, what was saved is what it was
    (g,) = genesis.autograd.grad(base.sum(), x, create_graph=True)
    assert genesis.autograd.grad((g * g).sum(), x)[0].shape == (3,)


def test_an_expanded_tensor_of_one_element_can_be_written_to():
    x = genesis.tensor(1.0)
    x.expand(1, 1).fill_(2.0)
    assert x.item() == 2.0
    with pytest.raises(RuntimeError, match="an expanded tensor"):
        x.expand(2).fill_(3.0)


def test_stacked_tensors_are_written_to_as_what_they_are():
    """Not as a view: what is seen of a stack comes from the stack, whatever it was made of."""
    a = genesis.tensor([1.0, 2.0], requires_grad=True)
    v = genesis.stack([a * 2, a * 3])
    row = v[0]
    row *= 5
    of_a, of_v = genesis.autograd.grad(row.sum(), [a, v])
    assert of_a.tolist() == [10.0, 10.0] and of_v.tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("kind", [genesis.nn.Parameter, genesis.nn.Buffer])
def test_parameters_count_the_writes_to_what_they_share_memory_with(kind):
    x, w = genesis.ones(3, requires_grad=True), genesis.ones(3)
    y = x * w
    layer = genesis.nn.Module()
    layer.weight = kind(w)
    layer.load_state_dict({"weight": genesis.zeros(3)})
    assert w.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


def test_a_parameter_made_of_a_gradient_that_others_hold():
    a, b = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    (a + b).sum().backward()
    p = genesis.nn.Parameter(a.grad)
    genesis.nn.init.zeros_(p)
    assert a.grad.tolist() == [0, 0, 0] and b.grad.tolist() == [1, 1, 1]
