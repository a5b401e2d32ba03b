"""Averages of models: as PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.optim import swa_utils


def _models(lib):
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    rng = np.random.default_rng(0)
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.tensor(rng.normal(size=tuple(p.shape)).astype("float32")))
    return model, rng


@pytest.mark.parity
@pytest.mark.parametrize(
    ("kind", "use_buffers"),
    [  # PyTorch has no mean of lists that are integers, as a count of batches is
        (kind, use)
        for kind in ("mean", "ema", "multi ema", "multi mean")
        for use in ((False, True) if kind != "multi mean" else (False,))
    ],
)
def test_averaged_models_as_pytorch(kind, use_buffers):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    found = []
    for lib in (genesis, torch):
        u = lib.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": u.get_ema_avg_fn(0.9)},
            "multi ema": {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
            "multi mean": {"multi_avg_fn": u.get_swa_multi_avg_fn()},
        }[kind]
        model, rng = _models(lib)
        averaged = u.AveragedModel(model, use_buffers=use_buffers, **options)
        for _ in range(4):
            with lib.no_grad():
                for p in model.parameters():
                    p.add_(lib.tensor(rng.normal(size=tuple(p.shape)).astype("float32")))
            model(lib.tensor(rng.normal(size=(5, 3)).astype("float32")))
            averaged.update_parameters(model)
        batches = [[lib.tensor(rng.normal(size=(5, 3)).astype("float32")), None] for _ in range(3)]
        before = {k: v.numpy().copy() for k, v in averaged.state_dict().items()}
        u.update_bn(batches, averaged)
        found.append((before, {k: v.numpy() for k, v in averaged.state_dict().items()}))
    for mine, theirs in zip(*found, strict=True):
        assert mine.keys() == theirs.keys()
        for key in mine:
            np.testing.assert_allclose(mine[key], theirs[key], rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parity
@pytest.mark.parametrize(
    "options", [{}, {"anneal_epochs": 5, "anneal_strategy": "linear"}, {"anneal_epochs": 0}], ids=str
)
@pytest.mark.parametrize("swa_lr", [0.05, [0.05, 0.2]])
def test_swalr_as_pytorch(options, swa_lr):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    rates = []
    for lib in (genesis, torch):
        optimizer = lib.optim.SGD(
            [{"params": [lib.ones(1, requires_grad=True)], "lr": lr} for lr in (0.5, 0.1)], lr=0.1
        )
        schedule = lib.optim.swa_utils.SWALR(optimizer, swa_lr, **options)
        rates.append(schedule.get_last_lr())
        for _ in range(20):
            optimizer.step()
            schedule.step()
            rates[-1] = rates[-1] + schedule.get_last_lr()
    np.testing.assert_allclose(*rates, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda m: swa_utils.AveragedModel(3),
            TypeError,
            "AveragedModel: model must be a module|expected a module, got int",
        ),
        (lambda m: swa_utils.AveragedModel(m, avg_fn=len, multi_avg_fn=len), TypeError, "are both given"),
        (lambda m: swa_utils.get_ema_avg_fn(2.0), ValueError, r"decay must be a number in \[0, 1\], got 2.0"),
        (lambda m: swa_utils.update_bn(3, m), TypeError, "update_bn: expected an iterable of batches, got int"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(genesis.nn.Linear(1, 1))
