"""Every schedule with every option, alone, chained and one after the other: sixty steps as in PyTorch."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest

import genesis
from genesis.optim import lr_scheduler as schedules

ALONE = {
    "LambdaLR": [((lambda s: 0.9**s,), {}), (([lambda s: 0.9**s, lambda s: 1 / (1 + s)],), {})],
    "MultiplicativeLR": [((lambda s: 0.95,), {}), (([lambda s: 0.9, lambda s: 1 + 1 / (1 + s)],), {})],
    "StepLR": [((7,), {}), ((3,), {"gamma": 0.8}), ((1.0,), {}), ((2.5,), {})],
    "MultiStepLR": [(([5, 5, 30],), {}), (([1, 20],), {"gamma": 0.5})],
    "ConstantLR": [((), {}), ((0.25,), {"total_iters": 20}), ((0.5, 0), {}), ((0.5, 4.0), {})],
    "LinearLR": [((), {}), ((0.5, 0.1), {"total_iters": 30}), ((0.5, 1.0, 7.5), {})],
    "ExponentialLR": [((0.95,), {})],
    "PolynomialLR": [((), {}), ((40,), {"power": 2.5}), ((9.5,), {})],
    "CosineAnnealingLR": [((20,), {}), ((7,), {"eta_min": 0.01}), ((1,), {}), ((7.5,), {})],
    "CosineAnnealingWarmRestarts": [((10,), {}), ((5,), {"T_mult": 2, "eta_min": 0.01}), ((3, 3), {})],
    "CyclicLR": [
        ((0.01, 0.1), {"step_size_up": 5}),
        ((0.01, 0.1), {"step_size_up": 2.5, "step_size_down": 4.0}),
        ((0.01, [0.1, 0.2]), {"step_size_up": 5, "step_size_down": 9, "mode": "triangular2"}),
        (([0.01, 0.02], 0.1), {"step_size_up": 4, "mode": "exp_range", "gamma": 0.97, "base_momentum": 0.5}),
        ((0.01, 0.1), {"step_size_up": 4, "scale_fn": lambda x: 1 / (1 + x), "scale_mode": "iterations"}),
        ((0.01, 0.1), {"step_size_up": 4, "scale_fn": lambda x: 1 / x, "cycle_momentum": False}),
    ],
    "OneCycleLR": [
        ((0.5,), {"total_steps": 70}),
        (([0.5, 0.2],), {"epochs": 7, "steps_per_epoch": 10, "pct_start": 0.5, "anneal_strategy": "linear"}),
        ((0.5,), {"total_steps": 66, "three_phase": True, "div_factor": 5.0, "final_div_factor": 10.0}),
        ((0.5,), {"total_steps": 61, "cycle_momentum": False}),
        ((0.5,), {"total_steps": 61, "base_momentum": 0.3, "max_momentum": [0.6, 0.8]}),
    ],
}  # fmt: skip
CASES = [(name, args, kwargs) for name, several in ALONE.items() for args, kwargs in several]
IDS = [f"{name}-{i}" for name, several in ALONE.items() for i in range(len(several))]


def _optimizer(lib, kind="SGD", lr=0.7):
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": [lib.ones(1, requires_grad=True)], "lr": lr / (i + 1)} for i in range(2)]
    return getattr(lib.optim, kind)(groups, lr=lr, **options)


def _made(lib, optimizer, case):
    name, args, kwargs = case
    return getattr(lib.optim.lr_scheduler, name)(optimizer, *copy.deepcopy(args), **kwargs)


def _stepped(optimizer, several, steps, by_hand=False):
    """The rates and momenta of some steps."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(steps):
            optimizer.step()
            for schedule in several:
                schedule.step()
            if by_hand and step == 9:
                optimizer.param_groups[0]["lr"] = 0.123
            for group in optimizer.param_groups:
                found += [float(group["lr"]), group.get("momentum", 0.0), group.get("betas", (0.0,))[0]]
            found += [float(rate) for schedule in several for rate in schedule.get_last_lr()]
    return found


def _same(run):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    mine, theirs = run(genesis), run(torch)
    np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parity
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_sixty_steps_as_pytorch(case, kind, by_hand):
    def run(lib):
        optimizer = _optimizer(lib, kind)
        schedule = _made(lib, optimizer, case)
        return [*schedule.get_last_lr(), *_stepped(optimizer, [schedule], 60, by_hand)]

    _same(run)


FIRST = [several[0] for several in ALONE.values()]
PAIRS = [(a, b) for i, a in enumerate(ALONE) for j, b in enumerate(ALONE) if (i + j) % 3 == 0]


@pytest.mark.parity
@pytest.mark.parametrize("way", ["apart", "chained", "sequential"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_schedules_as_pytorch(first, second, way):
    def run(lib):
        optimizer = _optimizer(lib)
        several = [_made(lib, optimizer, (name, *ALONE[name][0])) for name in (first, second)]
        if way == "chained":
            several = [lib.optim.lr_scheduler.ChainedScheduler(several)]
        elif way == "sequential":
            several = [lib.optim.lr_scheduler.SequentialLR(optimizer, several, [7])]
        return _stepped(optimizer, several, 30)

    _same(run)


@pytest.mark.parity
def test_schedules_in_schedules_as_pytorch():
    def run(lib):
        s, optimizer = lib.optim.lr_scheduler, _optimizer(lib)
        both = s.ChainedScheduler([s.ExponentialLR(optimizer, 0.9), s.StepLR(optimizer, 5)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = s.SequentialLR(optimizer, [both, s.CosineAnnealingLR(optimizer, 5)], [6])
            schedule = s.SequentialLR(optimizer, [first, s.ConstantLR(optimizer, 0.5)], [12])
        return _stepped(optimizer, [schedule], 30)

    _same(run)


def test_a_part_that_is_made_of_parts_begins_at_its_milestone():
    """Where PyTorch has no rule."""
    optimizer = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    warm = schedules.LinearLR(optimizer, 0.5, total_iters=2)
    halves = schedules.ChainedScheduler([schedules.ExponentialLR(optimizer, 0.5)])
    inner = schedules.SequentialLR(optimizer, [schedules.StepLR(optimizer, 1, 0.5), halves], [2])
    schedule, rates = schedules.SequentialLR(optimizer, [warm, inner], [2]), []
    for _ in range(6):
        rates += schedule.get_last_lr()
        optimizer.step()
        schedule.step()
    assert rates == [0.5, 0.75, 1.0, 0.5, 1.0, 0.5]


MEASURES = [3.0, 2.0, 2.0, 1.9999, 2.1, 2.1, 2.1, 1.5, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, math.nan, 1.6, 1.0, 1.1] * 3


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"patience": 1},
        {"mode": "max", "patience": 2, "factor": 0.5},
        {"patience": 0, "cooldown": 2, "min_lr": 0.01},
        {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
        {"patience": 1, "threshold": 0.3, "mode": "max", "threshold_mode": "abs", "min_lr": [0.1, 0.2]},
        {"patience": 0, "eps": 0.1, "factor": 0.9},
    ],
    ids=str,
)
def test_plateaus_as_pytorch(options):
    def run(lib):
        optimizer, found = _optimizer(lib), []
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        for measure in MEASURES:
            schedule.step(lib.tensor(measure))
            found += [*schedule.get_last_lr(), schedule.num_bad_epochs, schedule.cooldown_counter]
        return found

    _same(run)


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_jumps_as_pytorch(case):
    def run(lib):
        optimizer = _optimizer(lib)
        schedule, found = _made(lib, optimizer, case), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in (3, 4, 17, 0, 40, 8.5 if case[0] == "CosineAnnealingWarmRestarts" else 8, None):
                optimizer.step()
                schedule.step(epoch)
                found += schedule.get_last_lr()
        return found

    _same(run)


@pytest.mark.parity
@pytest.mark.parametrize("case", [*CASES, ("ReduceLROnPlateau", (), {"patience": 1})], ids=[*IDS, "plateau"])
def test_a_state_of_pytorch_goes_on_here_and_there(case):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")

    def steps(optimizer, schedule, count):
        found = []
        for i in range(count):
            optimizer.step()
            schedule.step(*([2.0 + i % 3] if case[0] == "ReduceLROnPlateau" else []))
            found += [float(rate) for rate in schedule.get_last_lr()]
        return found

    for here, there in ((genesis, torch), (torch, genesis)):
        optimizer, other = _optimizer(here), _optimizer(there)
        schedule, again = _made(here, optimizer, case), _made(there, other, case)
        steps(optimizer, schedule, 9)
        state = copy.deepcopy(schedule.state_dict())
        for mine, group in zip(optimizer.param_groups, other.param_groups, strict=True):
            group.update({k: v for k, v in mine.items() if k != "params"})
        again.load_state_dict(state)
        np.testing.assert_allclose(steps(optimizer, schedule, 20), steps(other, again, 20), rtol=1e-12)
        assert {k for k in state if k[0] != "_"} == {k for k in again.state_dict() if k[0] != "_"}


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_schedule_goes_on_from_a_last_epoch(case):
    def run(lib):
        optimizer = _optimizer(lib)
        _stepped(optimizer, [_made(lib, optimizer, case)], 8)
        name, args, kwargs = case
        return _stepped(optimizer, [_made(lib, optimizer, (name, args, {**kwargs, "last_epoch": 7}))], 20)

    _same(run)


@pytest.mark.parametrize("name", ["StepLR", "OneCycleLR", "CosineAnnealingWarmRestarts"])
def test_a_learning_rate_that_is_a_tensor_stays_one(name):
    found = []
    for lr in (0.5, genesis.tensor(0.5)):
        optimizer = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=lr, momentum=0.9)
        args, kwargs = ALONE[name][0]
        schedule = getattr(schedules, name)(optimizer, *args, **kwargs)
        optimizer.step()
        for _ in range(9):
            schedule.step()
        found.append(float(optimizer.param_groups[0]["lr"]))
        assert not isinstance(lr, genesis.Tensor) or optimizer.param_groups[0]["lr"] is lr
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_an_epoch_is_deprecated():
    optimizer = _optimizer(genesis)
    schedule = schedules.StepLR(optimizer, 2)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"StepLR.step: an epoch is deprecated") as caught:
        schedule.step(4)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError, r"ConstantLR: factor must be in \[0, 1\], got 2.0"),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0, mode="x"), ValueError, "CyclicLR: unknown mode 'x'"),
        (
            lambda o: schedules.CyclicLR(o, [0.1], 1.0),
            ValueError,
            "CyclicLR: base_lr has 1 values for 2 parameter groups",
        ),
        (lambda o: schedules.OneCycleLR(o, 0.1), ValueError, "OneCycleLR: the number of steps is unknown"),
        (
            lambda o: schedules.OneCycleLR(o, 0.1, 5, pct_start=2.0),
            ValueError,
            r"pct_start must be in \[0, 1\], got 2.0",
        ),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor must be less than 1, got 1.0"),
        (lambda o: schedules.ReduceLROnPlateau(o).step("x"), TypeError, "the measure must be a number, got str"),
        (lambda o: schedules.ReduceLROnPlateau(o, "x"), ValueError, "ReduceLROnPlateau: unknown mode 'x'"),
        (lambda o: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(o)]), ValueError, "needs a measure"),
        (
            lambda o: schedules.CyclicLR(genesis.optim.Adagrad([genesis.ones(1, requires_grad=True)]), 0.1, 1.0),
            ValueError,
            "CyclicLR: Adagrad has neither momentum nor betas",
        ),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(_optimizer(genesis))


def test_a_cycle_ends():
    optimizer = _optimizer(genesis)
    schedule = schedules.OneCycleLR(optimizer, 0.1, total_steps=3)
    optimizer.step()
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match=r"OneCycleLR.step: step 4 of a cycle of 3 steps"):
        schedule.step()
