"""Names of other libraries say what to write here."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("astype", "x.to(genesis.float32)"),
        ("copy", "x.clone()"),
        ("fill", "x.fill_(value)"),
        ("tobytes", "x.numpy().tobytes()"),
    ],
)
def test_names_of_numpy(name, instead):
    x = genesis.ones(2)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError) as caught:
        getattr(x, name)
    assert f"Tensor: has no attribute {name!r}" in str(caught.value) and instead in str(caught.value)


@pytest.mark.parametrize("of", [genesis.ones(2), nn.Linear(1, 1)], ids=["tensor", "module"])
def test_there_is_no_gpu(of):
    with pytest.raises(RuntimeError, match=r"(?s)cuda is not available.*device='cpu'"):
        of.cuda()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_module_is_not_a_list_of_parameters(name):
    model, make = nn.Linear(1, 1), getattr(genesis.optim, name)
    with pytest.raises(
        TypeError,
        match=rf"(?s){name}: params must be an iterable of tensors, got the module Linear.*try: "
        rf"{name}\(model.parameters\(\)\)",
    ):
        make(model)
    with pytest.raises(TypeError, match=r"(?s)got a function.*with \(\)"):
        make(model.parameters)
    with pytest.raises(TypeError, match="iterable of tensors or of dicts, got dict"):
        make({"params": list(model.parameters())})
    with pytest.raises(TypeError, match="a parameter group must be a dict with 'params', got the keys lr"):
        make([{"lr": 1.0}])
    with pytest.raises(ValueError, match="lr must not be negative, got -1"):
        make([{"params": list(model.parameters()), "lr": -1}])
