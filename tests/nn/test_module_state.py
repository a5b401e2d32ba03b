"""Names, order and state of modules: as PyTorch has them, and all or nothing."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn


class Counting(nn.Module):
    """Has a state besides its tensors."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.steps = 0

    def get_extra_state(self):
        return {"steps": self.steps}

    def set_extra_state(self, state):
        if state["steps"] < 0:
            raise ValueError("negative")
        self.steps = state["steps"]


def test_extra_states_are_saved_and_loaded():
    net, other = nn.Sequential(Counting(), Counting()), nn.Sequential(Counting(), Counting())
    net[1].steps = 7
    state = net.state_dict()
    assert list(state)[:3] == ["0._extra_state", "0.layer.weight", "0.layer.bias"]
    assert other.load_state_dict(state) == ([], []) and other[1].steps == 7
    del state["1._extra_state"]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: 1._extra_state"):
        other.load_state_dict(state)
    assert other.load_state_dict(state, strict=False).missing_keys == ["1._extra_state"]
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict: _extra_state"):
        nn.Linear(2, 2).load_state_dict({**nn.Linear(2, 2).state_dict(), "_extra_state": 1})
    with pytest.raises(NotImplementedError, match="Linear.get_extra_state: not defined"):
        nn.Linear(2, 2).get_extra_state()


def test_an_extra_state_that_is_refused_changes_nothing():
    net = nn.Sequential(Counting(), Counting())
    state = {k: v if isinstance(v, dict) else v + 1 for k, v in net.state_dict().items()}
    state["0._extra_state"], state["1._extra_state"] = {"steps": 3}, {"steps": -1}
    before = net[0].layer.weight.clone()
    with pytest.raises(ValueError, match="negative"):
        net.load_state_dict(state)
    assert net[0].steps == 0 and genesis.equal(net[0].layer.weight, before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": 3}, "weight: expected a tensor, got int"),
        (
            {"weight": genesis.zeros(2, 2, dtype=genesis.complex64)},
            "weight: genesis.complex64 in the state, genesis.float32 in the module",
        ),
        ({"weight": genesis.zeros(2, 2, device="meta")}, "weight: a meta tensor without data"),
        ({7: genesis.zeros(1)}, r"Unexpected key\(s\) in state_dict: 7"),
    ],
)
def test_a_wrong_entry_changes_nothing(change, words):
    layer = nn.Linear(2, 2)
    before = layer.bias.clone()
    with pytest.raises(RuntimeError, match=words):
        layer.load_state_dict({"bias": genesis.ones(2), "weight": genesis.ones(2, 2), **change})
    assert genesis.equal(layer.bias, before)


def test_a_prefix_is_recognised():
    state = {"module." + k: v for k, v in nn.Linear(2, 2).state_dict().items()}
    with pytest.raises(
        RuntimeError,
        match=r"try: without the prefix 'module.', \{k.removeprefix\('module.'\): v for k, v in state.items\(\)\}",
    ):
        nn.Linear(2, 2).load_state_dict(state)


def test_a_state_of_another_dtype_is_converted():
    layer = nn.Linear(2, 2)
    layer.load_state_dict(
        {"weight": genesis.ones(2, 2, dtype=genesis.float64), "bias": genesis.ones(2, dtype=genesis.float16)}
    )
    assert layer.weight.dtype is genesis.float32 and layer.bias.tolist() == [1, 1]


def _names(lib):
    """Names in the order in which a program meets them."""
    nn = lib.nn
    net = nn.Module()
    net.a, net.b, net.c = nn.Parameter(lib.ones(1)), nn.Parameter(lib.ones(1)), nn.ReLU()
    net.register_buffer("d", lib.ones(1), persistent=False)
    net.register_buffer("e", lib.ones(1))
    net.a = None
    net.a = nn.Parameter(lib.zeros(1))
    net.b = nn.Parameter(lib.zeros(1))
    net.f = net.c
    net.c = None
    net.c = nn.Tanh()
    net.d = nn.Parameter(lib.ones(1))
    shared = nn.Linear(1, 1)
    net.g = nn.Sequential(shared, nn.ReLU(), shared)
    net.h = shared
    found = []
    for duplicates in (True, False):
        for method in ("named_parameters", "named_buffers", "named_modules"):
            found.append([name for name, _ in getattr(net, method)(remove_duplicate=duplicates)])
    return [
        *found,
        [n for n, _ in net.g.named_children()],
        [type(m).__name__ for m in net.children()],
        len(list(net.modules())),
        list(net.state_dict()),
    ]


def test_order_and_duplicates():
    names = _names(genesis)
    assert names[0][:2] == ["a", "b"] and names[-4] == ["0", "1"]
    assert names[3].count("h.weight") == 1 and "g.2.weight" in names[3] and "g.2.weight" not in names[0]


@pytest.mark.parity
def test_order_and_duplicates_as_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    assert _names(genesis) == _names(torch)


def _batch_norm(lib):
    layer = lib.nn.BatchNorm1d(2, affine=False)
    x = lib.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, -1.0]])
    layer(x)
    layer.track_running_stats = False
    found = [layer(x * 3), layer.eval()(x * 5), layer.running_mean, layer.running_var]
    fresh = lib.nn.BatchNorm1d(2, affine=False, track_running_stats=False)
    return [t.tolist() for t in [*found, fresh(x), fresh.eval()(x)]]


def test_batch_norm_with_tracking_switched_off():
    trained, evaluated, mean, *_ = _batch_norm(genesis)
    assert mean == pytest.approx([0.3, 7 / 30]) and trained != evaluated


@pytest.mark.parity
def test_batch_norm_with_tracking_switched_off_as_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    for mine, theirs in zip(_batch_norm(genesis), _batch_norm(torch), strict=True):
        assert genesis.tensor(mine).flatten().tolist() == pytest.approx(
            genesis.tensor(theirs).flatten().tolist(), rel=1e-5, abs=1e-6
        )


def test_numbers_of_old_states_have_a_dimension():
    norm = nn.BatchNorm1d(2)
    state = {**norm.state_dict(), "num_batches_tracked": genesis.tensor([7])}
    norm.load_state_dict(state)
    assert (norm.num_batches_tracked.item(), norm.num_batches_tracked.shape) == (7, ())
    with pytest.raises(RuntimeError, match="size mismatch for num_batches_tracked"):
        norm.load_state_dict({**state, "num_batches_tracked": genesis.tensor([7, 8])})


def test_a_state_shares_memory_and_is_no_line_at_which_history_is_lost():
    from genesis.core.graph import lost

    net = nn.Linear(2, 2)
    lost.forget_cuts()
    state = net.state_dict()
    assert lost.cuts() == []
    assert all(type(t) is genesis.Tensor and not t.requires_grad for t in state.values())
    y = (net.weight * net.weight).sum()
    state["weight"].fill_(3.0)
    assert net.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match="modified in place by fill_"):
        y.backward()
