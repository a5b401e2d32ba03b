"""Schedules add up, with each other and with changes by hand; their order with the optimizer; their state."""

from __future__ import annotations

import copy
import warnings

import pytest

import genesis
from genesis.optim import SGD
from genesis.optim import lr_scheduler as schedules


def _optimizer(lib=genesis, lr=0.7, groups=1):
    return lib.optim.SGD(
        [{"params": [lib.ones(1, requires_grad=True)], "lr": lr / (i + 1)} for i in range(groups)], lr=lr
    )


CASES = {
    "StepLR": (3,),
    "MultiStepLR": ([2, 5, 5],),
    "ExponentialLR": (0.9,),
    "LinearLR": (0.25, 0.75, 4),
    "CosineAnnealingLR": (3, 0.01),
    "LambdaLR": (lambda s: 0.5**s,),
}


def _rates(lib, names, by_hand, steps=9):
    optimizer = _optimizer(lib, groups=2)
    several = [getattr(lib.optim.lr_scheduler, name)(optimizer, *CASES[name]) for name in names]
    found = []
    for step in range(steps):
        optimizer.step()
        for schedule in several:
            schedule.step()
        if by_hand and step == 3:
            optimizer.param_groups[0]["lr"] = 0.123
        found += [group["lr"] for group in optimizer.param_groups] + [rate for s in several for rate in s.get_last_lr()]
    return found


@pytest.mark.parity
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("first", CASES)
@pytest.mark.parametrize("second", [None, *CASES])
def test_two_schedules_and_changes_by_hand_as_pytorch(first, second, by_hand):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    names = [first] if second is None else [first, second]
    assert _rates(genesis, names, by_hand) == pytest.approx(_rates(torch, names, by_hand), rel=1e-12)


def test_three_steps_of_two_schedules():
    optimizer = SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    both = schedules.ExponentialLR(optimizer, 0.9), schedules.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        optimizer.step()
        for schedule in both:
            schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.091125)


def _composed(lib, kind):
    optimizer, s = _optimizer(lib), lib.optim.lr_scheduler
    if kind == "chained":
        return optimizer, s.ChainedScheduler(
            [s.LinearLR(optimizer, 0.5, total_iters=3), s.ExponentialLR(optimizer, 0.9)]
        )
    parts = [
        s.LinearLR(optimizer, 0.5, total_iters=3),
        s.ExponentialLR(optimizer, 0.9),
        s.CosineAnnealingLR(optimizer, 5),
    ]
    return optimizer, s.SequentialLR(optimizer, parts, [3, 6])


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["chained", "sequential"])
def test_schedules_of_schedules_as_pytorch(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    found = []
    for lib in (genesis, torch):
        optimizer, schedule = _composed(lib, kind)
        found.append([])
        for _ in range(10):
            found[-1].append(schedule.get_last_lr()[0])
            optimizer.step()
            with warnings.catch_warnings():
                if lib is torch:
                    warnings.simplefilter("ignore")
                schedule.step()
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("kind", [*CASES, "chained", "sequential"])
def test_a_state_goes_on_exactly(kind):
    def made():
        if kind in CASES:
            optimizer = _optimizer()
            return optimizer, getattr(schedules, kind)(optimizer, *CASES[kind])
        return _composed(genesis, kind)

    def steps(optimizer, schedule, count):
        found = []
        for _ in range(count):
            optimizer.step()
            schedule.step()
            found.append(schedule.get_last_lr())
        return found

    optimizer, schedule = made()
    steps(optimizer, schedule, 4)
    saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
    expected = steps(optimizer, schedule, 5)
    other, again = made()
    other.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    assert steps(other, again, 5) == expected


def test_a_jump_is_the_closed_form():
    optimizer = _optimizer(lr=1.0)
    schedule = schedules.StepLR(optimizer, 2, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match="an epoch is deprecated"):
        schedule.step(5)
    assert schedule.get_last_lr() == [0.25] and schedule.last_epoch == 5


def test_schedules_of_users():
    class Warm(schedules.LRScheduler):  # in PyTorch's form
        def get_lr(self):
            return [group["lr"] * 0.5 for group in self.optimizer.param_groups]

    class Half(schedules.LRScheduler):
        def rate(self, base, step):
            return base * 0.5**step

    for kind, first in ((Warm, 0.5), (Half, 1.0)):
        optimizer = _optimizer(lr=1.0)
        schedule = kind(optimizer)
        optimizer.step()
        schedule.step()
        assert schedule.get_last_lr() == [first * 0.5]


def test_the_optimizer_steps_first():
    optimizer = _optimizer()
    schedule = schedules.ExponentialLR(optimizer, 0.9)
    with pytest.warns(UserWarning, match=r"called before optimizer.step\(\)") as caught:
        schedule.step()
    assert caught[0].filename == __file__
    schedule.step()  # once is enough


def test_steps_of_other_kinds_count_as_steps():
    class Mine(genesis.optim.Optimizer):  # in PyTorch's form: a step of its own
        def __init__(self, params):
            super().__init__(params, {"lr": 1.0})

        def step(self):
            return "stepped"

    p = genesis.ones(1, requires_grad=True)
    optimizer = Mine([p])
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    assert optimizer.step() == "stepped"
    schedule.step()

    optimizer = SGD([p], lr=1.0)
    schedule = schedules.ExponentialLR(optimizer, 0.5)

    def train(x):
        (x * p).sum().backward()
        optimizer.step()
        return p

    graph = genesis.jit.trace(train, genesis.ones(1))
    p.grad = None
    graph.replay(genesis.ones(1))
    schedule.step()
    before = p.item()
    p.grad = None
    graph.replay(genesis.ones(1))
    assert before - p.item() == 0.5  # the replay reads the new rate

    scaler = genesis.amp.GradScaler()
    optimizer = SGD([p], lr=1.0)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    p.grad = genesis.tensor([float("inf")])
    scaler.step(optimizer)  # skipped, which is no fault of the loop
    scaler.update()
    schedule.step()


def test_groups_that_are_added_later():
    optimizer = _optimizer(lr=1.0)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    optimizer.add_param_group({"params": [genesis.ones(1, requires_grad=True)], "lr": 4.0})
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("gamma"), "missing: gamma"),
        (lambda s: s.update(T_max=3), "unexpected: T_max"),
        (lambda s: s.update(base_lrs=[1.0, 2.0]), "base_lrs: 2 parameter groups in the state, 1 in the optimizer"),
        (lambda s: s.update(last_epoch="7"), "last_epoch: expected a number, got '7'"),
    ],
)
def test_a_wrong_state_changes_nothing(change, words):
    schedule = schedules.StepLR(_optimizer(), 2)
    before = schedule.state_dict()
    state = {**before, "step_size": 99}
    change(state)
    with pytest.raises(RuntimeError, match=words):
        schedule.load_state_dict(state)
    assert schedule.state_dict() == before
    with pytest.raises(TypeError, match=r"StepLR.load_state_dict: expected a mapping, got list"):
        schedule.load_state_dict([])


def test_a_wrong_part_of_several_changes_nothing():
    _, schedule = _composed(genesis, "chained")
    before = copy.deepcopy(schedule.state_dict())
    state = copy.deepcopy(before)
    state["_schedulers"][0]["total_iters"] = 77
    del state["_schedulers"][1]["gamma"]
    with pytest.raises(RuntimeError, match="missing: gamma"):
        schedule.load_state_dict(state)
    assert schedule.state_dict() == before


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda o: schedules.StepLR(o, 0), ValueError, "StepLR: step_size must be at least 1, got 0"),
        (lambda o: schedules.StepLR(o, "1"), TypeError, "StepLR: step_size must be a number, got '1'"),
        (lambda o: schedules.StepLR(o, 0.0), ValueError, "StepLR: step_size must be at least 1, got 0.0"),
        (
            lambda o: schedules.LinearLR(o, total_iters=-1),
            ValueError,
            "LinearLR: total_iters must be at least 0, got -1",
        ),
        (lambda o: schedules.CosineAnnealingLR(o, 0), ValueError, "CosineAnnealingLR: T_max must be at least 1, got 0"),
        (lambda o: schedules.LinearLR(o, 0.0), ValueError, r"LinearLR: start_factor must be in \(0, 1\], got 0.0"),
        (lambda o: schedules.LinearLR(o, end_factor=2), ValueError, r"LinearLR: end_factor must be in \[0, 1\], got 2"),
        (lambda o: schedules.ExponentialLR(o, "a"), TypeError, "ExponentialLR: gamma must be a number, got 'a'"),
        (lambda o: schedules.ExponentialLR(3, 0.5), TypeError, "ExponentialLR: expected an Optimizer, got int"),
        (lambda o: schedules.ExponentialLR(o, 0.5, last_epoch=3), ValueError, "group 0 has no 'initial_lr'"),
        (lambda o: schedules.LambdaLR(o, 3), TypeError, "LambdaLR: lr_lambda must be a function or a sequence, got 3"),
        (lambda o: schedules.LambdaLR(o, [abs, abs]), ValueError, "LambdaLR: 2 functions for 1 parameter groups"),
        (
            lambda o: schedules.ChainedScheduler([]),
            TypeError,
            "ChainedScheduler: expected a list of at least one schedule",
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.ExponentialLR(o, 1)], [3]),
            ValueError,
            "1 schedules need one milestone less, got 1",
        ),
        (
            lambda o: schedules.ChainedScheduler([schedules.ExponentialLR(_optimizer(), 1)], o),
            ValueError,
            "schedule 0 belongs to another optimizer",
        ),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(_optimizer())


def test_milestones_that_are_computed():
    optimizer = genesis.optim.SGD([genesis.nn.Parameter(genesis.ones(1))], lr=1.0)
    schedule = genesis.optim.lr_scheduler.MultiStepLR(optimizer, [0.5 * 3, 0.5 * 4])
    rates = []
    for _ in range(3):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    assert rates == [1.0, 0.1, 0.1]
    with pytest.raises(ValueError, match="a milestone must be at least 0"):
        genesis.optim.lr_scheduler.MultiStepLR(optimizer, [-1.0])


def test_schedules_of_no_steps():
    for make, rate in (
        (lambda o: schedules.LinearLR(o, 0.5, total_iters=0), 0.5),
        (lambda o: schedules.PolynomialLR(o, 0), 1.0),
    ):
        optimizer = genesis.optim.SGD([genesis.nn.Parameter(genesis.ones(1))], lr=1.0)
        schedule = make(optimizer)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        assert schedule.get_last_lr() == [rate]
