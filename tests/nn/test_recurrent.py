"""Recurrent layers, cells and packed sequences, against PyTorch with the same weights."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn.utils import rnn as packing

KINDS = ("LSTM", "GRU", "RNN")


def pair(torch, kind, *args, dtype="float64", **kwargs):
    """The layer here and in PyTorch, with the same weights."""
    ours = getattr(nn, kind)(*args, **kwargs, dtype=getattr(genesis, dtype))
    theirs = getattr(torch.nn, kind)(*args, **kwargs, dtype=getattr(torch, dtype))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert tuple(p.shape) == tuple(q.shape), name
        with torch.no_grad():
            q.copy_(torch.from_numpy(p.detach().numpy()))
    return ours, theirs


def numbers(x):
    return x.detach().numpy()


def flat(result):
    out = []
    for x in result:
        out += (
            flat(x)
            if isinstance(x, tuple) and not hasattr(x, "batch_sizes")
            else [x.data if isinstance(x, tuple) else x]
        )
    return out


def agree(torch, ours, theirs, x, states=None, wrap=None, wrap_theirs=None, tolerance=1e-10):
    """Results and gradients of both are the same."""
    a = genesis.tensor(x, requires_grad=True)
    b = torch.tensor(x, requires_grad=True)
    hx = [genesis.tensor(s, requires_grad=True) for s in states or ()]
    hy = [torch.tensor(s, requires_grad=True) for s in states or ()]
    give = lambda s: () if not s else (s[0] if len(s) == 1 else tuple(s),)  # noqa: E731
    found = flat(ours(wrap(a) if wrap else a, *give(hx)))
    expected = flat(theirs(wrap_theirs(b) if wrap else b, *give(hy)))
    total, other = 0.0, 0.0
    for y, z in zip(found, expected, strict=True):
        assert tuple(y.shape) == tuple(z.shape)
        np.testing.assert_allclose(numbers(y), numbers(z), rtol=tolerance, atol=tolerance)
        weight = np.cos(np.arange(y.numel())).reshape(y.shape).astype(x.dtype)
        total, other = total + (y * genesis.tensor(weight)).sum(), other + (z * torch.tensor(weight)).sum()
    total.backward(), other.backward()
    for p, q in zip([a, *hx, *ours.parameters()], [b, *hy, *theirs.parameters()], strict=True):
        np.testing.assert_allclose(numbers(p.grad), numbers(q.grad), rtol=tolerance * 10, atol=tolerance * 10)


OPTIONS = [
    dict(zip(("num_layers", "bidirectional", "batch_first", "bias"), v, strict=True))
    for v in itertools.product((1, 3), (False, True), (False, True), (True, False))
]


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layers_agree(kind, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    tolerance = 1e-10 if dtype == "float64" else 2e-4
    for i, options in enumerate(OPTIONS):
        extra = {"nonlinearity": "relu"} if kind == "RNN" and i % 3 == 0 else {}
        size = (4, 17, 32)[i % 3]
        ours, theirs = pair(torch, kind, 3, size, **options, **extra, dtype=dtype)
        assert repr(ours) == repr(theirs) or extra
        many = options["num_layers"] * (2 if options["bidirectional"] else 1)
        shape = (2, 6, 3) if options["batch_first"] else (6, 2, 3)
        x = rng.standard_normal(shape).astype(dtype)
        states = [rng.standard_normal((many, 2, size)).astype(dtype) for _ in range(2 if kind == "LSTM" else 1)]
        agree(torch, ours, theirs, x, states if i % 2 else None, tolerance=tolerance)
        ours.zero_grad(), theirs.zero_grad()
        agree(torch, ours, theirs, x[:, 0] if not options["batch_first"] else x[0], tolerance=tolerance)


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lengths", [[7, 4, 4, 1], [2, 7, 1, 5], [3], [7] * 9])
def test_packed_sequences_agree(kind, dtype, lengths):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    ours, theirs = pair(torch, kind, 3, 5, num_layers=2, bidirectional=True, dtype=dtype)
    x = rng.standard_normal((max(lengths), len(lengths), 3)).astype(dtype)
    states = [rng.standard_normal((4, len(lengths), 5)).astype(dtype) for _ in range(2 if kind == "LSTM" else 1)]
    pack = lambda m: lambda x: m.pack_padded_sequence(x, lengths, enforce_sorted=False)  # noqa: E731
    theirs_packing = torch.nn.utils.rnn
    for given in (None, states):
        ours.zero_grad(), theirs.zero_grad()
        agree(torch, ours, theirs, x, given, pack(packing), pack(theirs_packing), 1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.parity
def test_projections_agree():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    for bidirectional, bias in itertools.product((False, True), repeat=2):
        ours, theirs = pair(torch, "LSTM", 3, 5, 2, bidirectional=bidirectional, bias=bias, proj_size=2)
        x, many = rng.standard_normal((6, 2, 3)), 4 if bidirectional else 2
        agree(torch, ours, theirs, x)
        ours.zero_grad(), theirs.zero_grad()
        agree(torch, ours, theirs, x, [rng.standard_normal((many, 2, 2)), rng.standard_normal((many, 2, 5))])
        assert repr(ours) == repr(theirs)


@pytest.mark.parity
def test_cells_agree():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    for kind, options in [("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"})]:
        for bias in (True, False):
            ours, theirs = pair(torch, kind, 3, 4, bias=bias, **options)
            assert repr(ours) == repr(theirs)
            for rows in ((2,), ()):
                x = rng.standard_normal((*rows, 3))
                states = [rng.standard_normal((*rows, 4)) for _ in range(2 if kind == "LSTMCell" else 1)]
                for given in (None, states):
                    ours.zero_grad(), theirs.zero_grad()
                    agree(torch, _Tuple(ours), _Tuple(theirs), x, given)


class _Tuple:
    """A cell whose result is always a tuple."""

    def __init__(self, cell):
        self.cell = cell

    def __call__(self, *args):
        out = self.cell(*args)
        return out if isinstance(out, tuple) else (out,)

    def parameters(self):
        return self.cell.parameters()


@pytest.mark.parity
def test_functions_agree():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    for name, kind, states in [("lstm", "LSTM", 2), ("gru", "GRU", 1), ("rnn_tanh", "RNN", 1)]:
        ours, theirs = pair(torch, kind, 3, 4, 2, bidirectional=True)
        x, sizes = rng.standard_normal((5, 2, 3)), np.array([2, 2, 1])
        h = [rng.standard_normal((4, 2, 4)) for _ in range(states)]
        for first in (False, True):
            given = x.swapaxes(0, 1) if first else x
            results = []
            for lib, module in ((genesis, ours), (torch, theirs)):
                hx = [lib.tensor(s) for s in h]
                args = hx if states == 2 else hx[0], list(module.parameters()), True, 2, 0.0, True, True
                results.append(getattr(lib, name)(lib.tensor(given), *args, first))
                results.append(getattr(lib, name)(lib.tensor(x.reshape(-1, 3)[:5]), lib.tensor(sizes), *args))
            for a, b in zip([*results[0], *results[1]], [*results[2], *results[3]], strict=True):
                np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-10)


def test_packing_and_back():
    data = [genesis.arange(4.0), genesis.arange(2.0) + 10, genesis.arange(7.0) - 5]
    packed = packing.pack_sequence(data, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 2, 1, 1, 1] and packed.batch_sizes.dtype == genesis.int64
    assert packed.sorted_indices.tolist() == [2, 0, 1] and packed.unsorted_indices.tolist() == [1, 2, 0]
    assert all(genesis.equal(a, b) for a, b in zip(data, packing.unpack_sequence(packed), strict=True))
    padded, lengths = packing.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=9)
    assert lengths.tolist() == [4, 2, 7] and padded.shape == (3, 9)
    assert genesis.equal(padded[:, :7], packing.pad_sequence(data, batch_first=True, padding_value=-1.0))
    assert padded[:, 7:].eq(-1).all()
    left = packing.pad_sequence(data, padding_side="left")
    assert left[:, 1].tolist() == [0] * 5 + [10, 11]
    again = packing.unpad_sequence(padded, lengths, batch_first=True)
    assert all(genesis.equal(a, b) for a, b in zip(data, again, strict=True))


def test_a_packed_sequence_converts_and_pickles():
    packed = packing.pack_sequence([genesis.ones(2), genesis.ones(1)])
    assert packed.to(genesis.float32) is packed and packed.cpu() is packed and not packed.is_cuda
    assert packed.double().data.dtype == genesis.float64 and packed.long().data.dtype == genesis.int64
    assert isinstance(packed.half(), packing.PackedSequence) and packed.sorted_indices is None
    again = pickle.loads(pickle.dumps(packed))
    assert isinstance(again, packing.PackedSequence) and genesis.equal(again.data, packed.data)
    assert packed._replace(data=packed.data * 2).data.sum() == 6
    with pytest.raises((TypeError, ValueError)):
        packing.PackedSequence(genesis.ones(2))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_calls(kind):
    layer, x = getattr(nn, kind)(3, 4), genesis.ones(5, 2, 3)
    state = lambda *shape: (genesis.zeros(*shape),) * 2 if kind == "LSTM" else genesis.zeros(*shape)  # noqa: E731
    for error, match, call in [
        (RuntimeError, "input has 2 features, expected 3", lambda: layer(x[..., :2])),
        (ValueError, "2 or 3 dimensions", lambda: layer(x[0, 0])),
        (ValueError, "2 or 3 dimensions", lambda: layer([1.0])),
        (ValueError, "input is genesis.float64, the weights are genesis.float32", lambda: layer(x.double())),
        (ValueError, "input is genesis.int64", lambda: layer(x.long())),
        (RuntimeError, "no steps", lambda: layer(x[:0])),
        (RuntimeError, r"has shape \[1, 3, 4\], expected \[1, 2, 4\]", lambda: layer(x, state(1, 3, 4))),
        (RuntimeError, "tensors of 3 dimensions here, got 2", lambda: layer(x, state(2, 4))),
        (RuntimeError, "tensors of 2 dimensions here, got 3", lambda: layer(x[:, 0], state(1, 2, 4))),
        (ValueError, "hidden_size must be positive, got 0", lambda: getattr(nn, kind)(3, 0)),
        (TypeError, "hidden_size must be an integer", lambda: getattr(nn, kind)(3, 4.5)),
        (ValueError, "num_layers must be positive", lambda: getattr(nn, kind)(3, 4, 0)),
        (ValueError, "dropout must be a number between 0 and 1, got 2", lambda: getattr(nn, kind)(3, 4, dropout=2)),
    ]:
        with pytest.raises(error, match=match):
            call()
    with pytest.warns(UserWarning, match="there is one layer only"):
        getattr(nn, kind)(3, 4, dropout=0.5)


def test_wrong_arguments_of_the_rest():
    x = genesis.ones(5, 2, 3)
    for error, match, call in [
        (ValueError, "proj_size", lambda: nn.LSTM(3, 4, proj_size=4)),
        (ValueError, "nonlinearity must be", lambda: nn.RNN(3, 4, nonlinearity="sin")),
        (TypeError, "hidden states and cells", lambda: nn.LSTM(3, 4)(x, genesis.zeros(1, 2, 4))),
        (ValueError, "unknown mode", lambda: nn.RNNBase("MGU", 3, 4)),
        (RuntimeError, "input has 2 features", lambda: nn.LSTMCell(3, 4)(x[0, :, :2])),
        (ValueError, "1 or 2 dimensions, got 3", lambda: nn.GRUCell(3, 4)(x)),
        (RuntimeError, "a state has shape", lambda: nn.RNNCell(3, 4)(x[0], genesis.ones(3, 4))),
        (RuntimeError, "nonlinearity", lambda: nn.RNNCell(3, 4, nonlinearity="sin")(x[0])),
        (ValueError, "parameters each", lambda: genesis.gru(x, x[:1], [x], True, 1, 0.0, False, False)),
        (RuntimeError, "must not grow", lambda: packing.pack_padded_sequence(x, [2, 3])),
        (RuntimeError, "a sequence of 6 elements in 5 steps", lambda: packing.pack_padded_sequence(x, [6, 3])),
        (RuntimeError, "positive", lambda: packing.pack_padded_sequence(x, [3, 0])),
        (RuntimeError, "3 lengths", lambda: packing.pack_padded_sequence(x, [3, 2, 1])),
        (TypeError, "integers", lambda: packing.pack_padded_sequence(x, [3.5, 2])),
        (RuntimeError, "no sequences", lambda: packing.pad_sequence([])),
        (ValueError, "padding_side", lambda: packing.pad_sequence([x], padding_side="up")),
        (
            ValueError,
            "total_length is 2",
            lambda: packing.pad_packed_sequence(packing.pack_padded_sequence(x, [3, 2]), total_length=2),
        ),
    ]:
        with pytest.raises(error, match=match):
            call()


def test_no_sequences():
    layer = nn.GRU(3, 4, bidirectional=True)
    out, hidden = layer(genesis.ones(5, 0, 3))
    assert out.shape == (5, 0, 8) and hidden.shape == (2, 0, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[7] * 9, [7, 7, 6, 5, 5, 5, 2, 1, 1]])
def test_without_gradients_the_same_bits(kind, lengths):
    layer = getattr(nn, kind)(5, 19, 2, bidirectional=True)
    x = packing.pack_padded_sequence(genesis.randn(7, 9, 5), genesis.tensor(lengths))
    recorded = flat(layer(x))
    with genesis.no_grad():
        alone = flat(layer(x))
    assert len(recorded) == len(alone) > 1
    for a, b in zip(recorded, alone, strict=True):
        assert a.requires_grad
        assert not b.requires_grad
        assert np.array_equal(numbers(a), numbers(b))


def test_dropout_between_layers_only_in_training():
    genesis.manual_seed(0)
    layer, x = nn.LSTM(3, 8, num_layers=2, dropout=0.5), genesis.ones(4, 2, 3)
    assert not genesis.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert genesis.equal(layer(x)[0], layer(x)[0])


def test_first_values_and_meta():
    layer = nn.GRU(3, 100, 2)
    for p in layer.parameters():
        assert 0.05 < p.abs().max() <= 0.1
    assert [len(w) for w in layer.all_weights] == [4, 4] and layer.flatten_parameters() is None
    nothing = nn.LSTM(3, 4, device="meta", dtype=genesis.float64)
    out, (_, c) = nothing(genesis.ones(5, 2, 3, device="meta", dtype=genesis.float64))
    assert out.shape == (5, 2, 4) and c.dtype == genesis.float64 and c.device.type == "meta"


@pytest.mark.parametrize("kind", KINDS)
def test_16_bit_floats_are_those_of_float32_rounded(kind):
    layer, x = getattr(nn, kind)(3, 4), genesis.randn(6, 2, 3)
    half = getattr(nn, kind)(3, 4).bfloat16()
    half.load_state_dict(layer.state_dict())
    layer.load_state_dict(half.state_dict())
    found, expected = half(x.bfloat16())[0], layer(x.bfloat16().float())[0]
    assert found.dtype == genesis.bfloat16 and genesis.equal(found, expected.bfloat16())


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_and_traces_see_the_layer(kind):
    layer, x = getattr(nn, kind)(3, 4), genesis.randn(6, 2, 3)
    expected = layer(x)[0]
    many = genesis.func.vmap(lambda x: layer(x)[0])(genesis.stack([x, x]))
    assert genesis.allclose(many[1], expected, atol=1e-6)
    _, tangent = genesis.func.jvp(lambda x: layer(x)[0].sum(), (x,), (genesis.ones_like(x),))
    leaf = x.clone().requires_grad_()
    layer(leaf)[0].sum().backward()
    assert genesis.allclose(tangent, leaf.grad.sum(), rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "size"), [(1, 64), (9, 128), (33, 40)])
def test_the_bits_do_not_depend_on_threads(kind, batch, size):
    rng = np.random.default_rng(0)
    layer = getattr(nn, kind)(24, size, 2, bidirectional=batch == 9)
    data, before, found = rng.standard_normal((11, batch, 24)).astype("f"), genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 5, 32):
            genesis.set_num_threads(threads)
            layer.zero_grad()
            x = genesis.tensor(data, requires_grad=True)
            y = layer(x)[0]
            (y * y).sum().backward()
            found.append([numbers(y), *[numbers(p.grad) for p in (x, *layer.parameters())]])
    finally:
        genesis.set_num_threads(before)
    for other in found[1:]:
        for p, q in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(p, q)


def test_other_tensors_can_stand_for_the_parameters_of_a_network():
    rnn, x = nn.GRU(2, 3), genesis.ones(4, 1, 2)
    before = rnn(x)[0]
    other = [(w * 2).detach().requires_grad_() for w in rnn._flat_weights]
    rnn._flat_weights = other
    out = rnn(x)[0]
    out.sum().backward()
    assert not genesis.equal(out, before)
    assert all(w.grad is not None for w in other)
    assert rnn.weight_ih_l0.grad is None
    rnn.weight_ih_l0 = nn.Parameter(rnn.weight_ih_l0.detach().clone())  # a name that is set counts again
    assert rnn._flat_weights[0] is rnn.weight_ih_l0
    assert rnn._flat_weights[1] is other[1]
