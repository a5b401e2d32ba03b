"""The package functorch: transforms under their older name, and modules as functions."""

from __future__ import annotations

import importlib.util

import pytest

import genesis
from genesis.pytorch import installed
from genesis.pytorch.functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers


def _model():
    genesis.manual_seed(0)
    return genesis.nn.Sequential(genesis.nn.Linear(3, 4), genesis.nn.BatchNorm1d(4), genesis.nn.Linear(4, 1)).eval()


def test_it_is_imported_beside_torch():
    with installed():
        from functorch import grad, jacrev, vmap

        assert (vmap, grad, jacrev) == (genesis.func.vmap, genesis.func.grad, genesis.func.jacrev)
    found = importlib.util.find_spec("functorch")
    assert found is None or found.origin != "genesis"


def test_a_module_is_a_function_of_its_parameters_and_buffers():
    model, x = _model(), genesis.ones(5, 3)
    function, params, buffers = make_functional_with_buffers(model)
    assert len(params) == 6 and len(buffers) == 3 and params[0] is not model[0].weight
    assert function(params, buffers, x).tolist() == model(x).tolist()
    moved = function([p + 1 for p in params], buffers, x)
    assert moved.tolist() != model(x).tolist() and moved.requires_grad
    assert not make_functional_with_buffers(model, disable_autograd_tracking=True)[1][0].requires_grad
    each = genesis.func.vmap(genesis.func.grad(lambda p, row: function(p, buffers, row[None]).sum()), (None, 0))
    assert [g.shape for g in each(params, x)] == [(5, *p.shape) for p in params]
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        make_functional(model)


def test_an_ensemble_is_one_function():
    models = [_model() for _ in range(3)]
    with genesis.no_grad():
        models[1][2].bias.add_(1.0)
    function, params, buffers = combine_state_for_ensemble(models)
    x = genesis.ones(5, 3)
    out = genesis.func.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    assert all(genesis.allclose(mine, model(x)) for mine, model in zip(out, models, strict=True))
    assert not params[0].requires_grad
