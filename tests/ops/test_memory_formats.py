"""channels_last and its like: what is_contiguous says of them, and who makes them."""

from __future__ import annotations

import pytest

import genesis
from genesis import channels_last, channels_last_3d, contiguous_format, nn, preserve_format

LAST = {channels_last: (2, 3, 4, 5), channels_last_3d: (2, 3, 4, 5, 6)}


def _makers(x, order):
    return [
        x.contiguous(memory_format=order),
        x.to(memory_format=order),
        x.clone(memory_format=order),
        x.float(memory_format=order),
        genesis.clone(x, memory_format=order),
    ]


@pytest.mark.parametrize("order", LAST, ids=str)
def test_channels_are_last_in_memory(order):
    x = genesis.arange(2 * 3 * 4 * 5 * (1 if order is channels_last else 6)).view(LAST[order]).double()
    strides = x.movedim(1, -1).contiguous().movedim(-1, 1).stride()
    assert not x.is_contiguous(memory_format=order)
    for y in _makers(x, order):
        assert y.stride() == strides and y.is_contiguous(memory_format=order) and not y.is_contiguous()
        assert y.equal(x.to(y.dtype)) and y.contiguous(memory_format=order) is y and y.to(memory_format=order) is y
        assert y.contiguous().is_contiguous() and y.to(memory_format=contiguous_format).equal(y)
    assert x.to(memory_format=preserve_format) is x and x.to(memory_format=None) is x
    assert x.clone(memory_format=None).equal(x)


@pytest.mark.parametrize("order", LAST, ids=str)
def test_new_tensors_in_an_order(order):
    strides = genesis.ones(LAST[order]).to(memory_format=order).stride()
    made = genesis.empty(LAST[order], memory_format=order, dtype=genesis.float64, requires_grad=True)
    assert made.stride() == strides and made.dtype is genesis.float64 and made.requires_grad and made.is_leaf
    for like in (genesis.empty_like, genesis.zeros_like, genesis.ones_like):
        assert like(made, memory_format=order).stride() == strides
    assert genesis.empty(2, 3, memory_format=contiguous_format).is_contiguous()
    assert made.clone(memory_format=contiguous_format).is_contiguous()
    with pytest.raises(TypeError, match="zeros: has no argument memory_format"):
        genesis.zeros(LAST[order], memory_format=order)
    with pytest.raises(RuntimeError, match="channels last is for tensors of"):
        genesis.empty(2, 3, memory_format=order)


def test_gradients_go_back():
    x = genesis.randn(2, 3, 4, 4, dtype=genesis.float64, requires_grad=True)
    assert genesis.autograd.gradcheck(lambda x: x.contiguous(memory_format=channels_last) ** 2, (x,))
    assert genesis.autograd.gradcheck(lambda x: x.clone(memory_format=channels_last).flatten() ** 2, (x,))


@pytest.mark.parametrize("call", ["contiguous", "to", "clone"])
def test_what_has_no_such_order_is_refused(call):
    with pytest.raises(RuntimeError, match=r"channels last is for tensors of 4 dimensions, this one has 3"):
        getattr(genesis.ones(2, 3, 4), call)(memory_format=channels_last)
    with pytest.raises(TypeError, match=r"memory_format must be one of .*channels_last.*, got 'nhwc'"):
        getattr(genesis.ones(2, 3, 4, 4), call)(memory_format="nhwc")
    assert not genesis.ones(2, 3, 4).is_contiguous(memory_format=channels_last)


def test_modules_and_what_they_compute_stay_channels_last():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
    x = genesis.randn(2, 3, 6, 6)
    want = model(x)
    assert model.to(memory_format=channels_last) is model
    assert model[0].weight.is_contiguous(memory_format=channels_last) and model[0].bias.is_contiguous()
    y = model[0](x.to(memory_format=channels_last))
    assert y.is_contiguous(memory_format=channels_last)
    assert genesis.allclose(model(x.to(memory_format=channels_last)), want, atol=1e-6)
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimizer.step()
    assert model[0].weight.is_contiguous(memory_format=channels_last)


@pytest.mark.parity
def test_strides_are_pytorchs():
    torch = pytest.importorskip("torch")
    for shape in [(2, 3, 4, 5), (2, 3, 4, 5, 6), (3, 2, 2, 5), (7, 2)]:
        for name in ("channels_last", "channels_last_3d", "contiguous_format"):
            rows = []
            for lib in (genesis, torch):
                x = lib.ones(shape).transpose(0, 1)
                order = getattr(lib, name)
                row = [x.is_contiguous(memory_format=order)]
                for call in (x.contiguous, x.to, x.double):
                    try:
                        row.append(call(memory_format=order).stride())
                    except RuntimeError:
                        row.append(None)
                rows.append(row)
            assert rows[0] == rows[1], (shape, name)


@pytest.mark.parity
def test_copies_keep_the_order_of_memory():
    """Conversions, tensors like others, results of convolutions, and gradients of leaves."""
    torch = pytest.importorskip("torch")
    rows = []
    for lib in (genesis, torch):
        x = lib.ones(2, 3, 6, 5).to(memory_format=lib.channels_last)
        w = lib.ones(4, 3, 3, 3).to(memory_format=lib.channels_last).requires_grad_()
        y = lib.nn.functional.conv2d(x, w)
        lib.nn.functional.max_pool2d(y.double(), 2).sum().backward()
        made = [lib.zeros_like(x), lib.empty_like(x), lib.full_like(x, 2.0), lib.randn_like(x)[:0]]
        copies = [x.double(), x.half(), x[:, 1:].double(), x.transpose(0, 3).double()]
        rows.append([t.stride() for t in [*made[:3], *copies, x.clone().contiguous(), y, w.grad]])
    assert rows[0] == rows[1]
    assert genesis.ones(3, 1).expand(3, 4).double().is_contiguous()
