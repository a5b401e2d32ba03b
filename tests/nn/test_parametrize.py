"""Parametrized modules: what they are, what can be assigned, copies, removal; and the norms, as PyTorch's."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Wider(nn.Module):
    def forward(self, x):
        return genesis.cat([x, x])


def test_a_parametrized_layer():
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    same = parametrize.register_parametrization(layer, "weight", Symmetric())
    assert same is layer and isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear and parametrize.is_parametrized(layer, "weight")
    assert sorted(dict(layer.named_parameters())) == ["bias", "parametrizations.weight.original"]
    assert layer.weight.tolist() == (before.triu() + before.triu(1).T).tolist()
    layer(genesis.ones(3)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tril(-1).abs().sum() == 0
    target = genesis.arange(9.0).reshape(3, 3)
    layer.weight = target + target.T
    assert layer.weight.tolist() == (target + target.T).tolist()
    again = nn.Linear(3, 3)
    parametrize.register_parametrization(again, "weight", Symmetric())
    again.load_state_dict(layer.state_dict())
    assert again.weight.tolist() == layer.weight.tolist()


def test_several_are_applied_in_their_order():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    value = genesis.tensor([[2.0, 4.0], [4.0, 6.0]])
    layer.weight = value
    assert layer.weight.tolist() == value.tolist()
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0], [0.0, 3.0]]
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == value.tolist()
    assert isinstance(layer.weight, nn.Parameter) and not parametrize.is_parametrized(layer)


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_stand_by_themselves(make):
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    again = make(layer)
    assert again.weight.tolist() == layer.weight.tolist()
    parametrize.remove_parametrizations(again, "weight")
    assert type(again) is nn.Linear and parametrize.is_parametrized(layer) and layer.weight.shape == (2, 3)


def test_computed_once_inside_of_cached():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
    assert layer.weight is not first


def test_a_trained_parametrized_layer_in_a_trace():
    layer = parametrizations.weight_norm(nn.Linear(3, 1))
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = genesis.randn(4, 3)
    step(x)
    graph = genesis.jit.trace(step, x)
    twin = copy.deepcopy(layer)
    replayed = graph.replay(x)
    assert replayed.item() == pytest.approx((twin(x) ** 2).mean().item(), rel=1e-6)


def test_transfer():
    first, second = parametrizations.weight_norm(nn.Linear(3, 2)), nn.Linear(3, 2)
    parametrize.transfer_parametrizations_and_params(first, second)
    assert second.weight.tolist() == first.weight.tolist()
    assert second.parametrizations.weight.original0 is first.parametrizations.weight.original0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda m: parametrize.register_parametrization(m, "w", Doubled()), ValueError, "Linear has no parameter or"),
        (lambda m: parametrize.register_parametrization(m, "weight", 3), ValueError, "expected a module, got int"),
        (lambda m: parametrize.register_parametrization(m, "weight", Wider()), ValueError, "keeps shape and dtype"),
        (lambda m: parametrize.remove_parametrizations(m, "weight"), ValueError, "'weight' of Linear is not parametr"),
        (lambda m: parametrizations.weight_norm(m, "x"), ValueError, "Linear has no parameter or buffer 'x'"),
        (lambda m: parametrizations.weight_norm(m, dim=5), IndexError, "dim 5 is out of range for 2 dimensions"),
        (lambda m: parametrizations.spectral_norm(m, n_power_iterations=0), ValueError, "must be at least 1, got 0"),
        (lambda m: nn.utils.remove_weight_norm(m), ValueError, "'weight' of Linear has no such hook"),
    ],
)
def test_errors_change_nothing(make, error, words):
    layer = nn.Linear(3, 2)
    before = layer.weight
    with pytest.raises(error, match=words):
        make(layer)
    assert layer.weight is before and type(layer) is nn.Linear


def test_what_has_no_inverse_cannot_be_assigned():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Wider(), unsafe=True)
    assert layer.weight.shape == (4, 2)
    with pytest.raises(RuntimeError, match="the parametrization Wider has none"):
        layer.weight = genesis.ones(4, 2)


def _layer(lib):
    layer = lib.nn.Linear(4, 3)
    rng = np.random.default_rng(0)
    layer.weight.data = lib.tensor(rng.normal(size=(3, 4)).astype("float32"))
    layer.bias.data = lib.tensor(rng.normal(size=3).astype("float32"))
    return layer, lib.tensor(rng.normal(size=(5, 4)).astype("float32"))


FORMS = {
    "weight": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
    "weight 1": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=1),
    "weight None": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=None),
    "bias": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, name="bias"),
    "old weight": lambda lib, m: lib.nn.utils.weight_norm(m),
    "old weight None": lambda lib, m: lib.nn.utils.weight_norm(m, dim=None),
    "spectral": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=2),
    "spectral 1": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, dim=1),
    "old spectral": lambda lib, m: lib.nn.utils.spectral_norm(m, n_power_iterations=2),
}


@pytest.mark.parity
@pytest.mark.parametrize("form", FORMS)
def test_norms_as_pytorch(form):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    found = []
    for lib in (genesis, torch):
        layer, x = _layer(lib)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layer = FORMS[form](lib, layer)
        state = {k: v.clone() for k, v in layer.state_dict().items()}
        for key in state:  # directions to start from that are no random ones
            if "spectral" in form and key.endswith(("_u", "_v")):
                state[key] = lib.ones(state[key].shape[0]) / state[key].shape[0] ** 0.5
        layer.load_state_dict(state)
        optimizer = lib.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            ((layer(x) - 1) ** 2).mean().backward()
            optimizer.step()
        layer.eval()
        out = layer(x)
        found.append(({k: v.numpy() for k, v in layer.state_dict().items()}, out.detach().numpy()))
    (mine, out), (theirs, other) = found
    assert mine.keys() == theirs.keys()
    for key in mine:
        np.testing.assert_allclose(mine[key], theirs[key], rtol=2e-5, atol=1e-6, err_msg=key)
    np.testing.assert_allclose(out, other, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["weight_norm", "spectral_norm"])
def test_the_old_forms_are_removed(form):
    layer = nn.Linear(3, 2)
    x = genesis.randn(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(nn.utils, form)(layer)
        with pytest.raises(RuntimeError, match="has such a hook already"):
            getattr(nn.utils, form)(layer)
    layer.eval()
    expected = layer(x)
    getattr(nn.utils, f"remove_{form}")(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(x).tolist(), expected.tolist(), rtol=1e-6)
    with pytest.raises(ValueError, match="has no such hook"):
        getattr(nn.utils, f"remove_{form}")(layer)
