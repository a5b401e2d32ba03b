"""Anomaly mode stops at the first bad value; exceptions from backward say where their forward was called."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis import Function
from genesis.autograd import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from genesis.base.errors import AnomalyError

SOURCE = Path(__file__).read_text().splitlines()


def line(mark):
    return next(i for i, text in enumerate(SOURCE, 1) if text.endswith(f"# {mark}"))


class Inverse(Function):
    """1 / x by NumPy, with a rule that fails where x is 2 and is bad where x is 3."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with np.errstate(all="ignore"):
            return genesis.from_numpy(np.log(x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if 2.0 in x.tolist():
            raise ZeroDivisionError("two")
        if 3.0 in x.tolist():
            return genesis.full_like(x, float("nan"))
        return g / x


def test_the_first_bad_value_is_an_error_on_its_line():
    x = genesis.tensor([[1.0, 2.0], [-1.0, 4.0]], requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        y = x * 2
        z = y.sqrt()  # bad value
        z.sum()
    assert str(caught.value).startswith(
        "sqrt: made nan in 1 of 4 elements, the first at [1, 0]\n  input f32[2, 2], -2.0 there\n"
    )
    assert any(entry.lineno == line("bad value") - 1 for entry in caught.traceback)


def test_a_bad_loss_does_not_pass_in_silence():
    x = genesis.tensor([1.0], requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError, match="mul: input holds a bad value already"):
        loss = (genesis.tensor([float("nan")]) * x).sum()
        loss.backward()
    assert x.grad is None


def test_infinities_are_bad_only_if_asked_for():
    x = genesis.tensor([0.0, 1.0])
    with detect_anomaly():
        assert x.log().tolist() == [-float("inf"), 0.0]
    with (
        detect_anomaly(check_inf=True),
        pytest.raises(AnomalyError, match=r"log: made -inf in 1 of 2 elements, the first at \[0\]"),
    ):
        x.log()


def test_operations_that_repair_are_no_anomaly():
    x = genesis.tensor([float("nan"), 1.0])
    with detect_anomaly():
        assert genesis.where(genesis.isnan(x), 0.0, x).tolist() == [0.0, 1.0]
        assert x.nan_to_num(5.0).tolist() == [5.0, 1.0]


def test_all_dtypes():
    with detect_anomaly():
        for dtype in (genesis.float16, genesis.bfloat16, genesis.float64, genesis.complex64):
            bad = genesis.tensor([float("inf")]).to(dtype)
            with pytest.raises(AnomalyError, match="sub: made .?nan"):
                bad - bad
        assert (genesis.tensor([1, 2]) // 1).tolist() == [1, 2]
        assert genesis.zeros(0).sqrt().shape == (0,)


def test_reductions_and_products():
    big = genesis.tensor([[float("inf"), -float("inf")]])
    with detect_anomaly():
        with pytest.raises(AnomalyError, match="sum: made nan in 1 of 1"):
            big.sum()
        with pytest.raises(AnomalyError, match="matmul: made nan"):
            big @ genesis.ones(2, 1)


def test_results_of_functions_are_looked_at():
    with (
        detect_anomaly(),
        pytest.raises(
            AnomalyError,
            match=r"(?s)Inverse.forward: made nan in 1 of 2 elements, the first at \[1\]\n  x "
            r"f32\[2\]\n",
        ),
    ):
        Inverse.apply(genesis.tensor([1.0, -1.0]))


def test_backward_names_the_rule_and_the_line_of_forward():
    x = genesis.tensor([3.0], requires_grad=True)

    def forward():
        return Inverse.apply(x)  # recorded

    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        forward().sum().backward()  # calls forward
    text = str(caught.value)
    assert (
        "InverseBackward: the gradient of x has nan in 1 of 1 elements, the first at [0]; the gradient it got was "
        "good" in text
    )
    assert re.search(rf"called at .*test_anomaly.py:{line('recorded')} in forward", text)
    (note,) = caught.value.__notes__
    assert f"line {line('calls forward')}, in " in note  # the whole way to it
    assert note.index(f"line {line('calls forward')}, in ") < note.index(f"line {line('recorded')}, in forward")
    assert x.grad is None


def test_backward_of_built_in_rules():
    x = genesis.tensor([0.0], requires_grad=True)
    with (
        detect_anomaly(),
        pytest.raises(AnomalyError, match="SqrtBackward: the gradient of input has nan.*the gradient it got was good"),
    ):
        (x.sqrt() * 0.0).sum().backward()  # 0 * inf


def test_without_check_nan_only_the_calls_are_noted():
    x = genesis.tensor([2.0], requires_grad=True)
    with detect_anomaly(check_nan=False):
        y = Inverse.apply(x - 0.0)
        (genesis.tensor([-1.0])).sqrt()
    with pytest.raises(ZeroDivisionError) as caught:
        y.backward()
    assert any("called from (most recent call last)" in note for note in caught.value.__notes__)


def test_exceptions_from_backward_keep_their_type_and_say_where():
    x = genesis.tensor([2.0, 1.0], requires_grad=True)
    w = genesis.tensor([1.0, 1.0], requires_grad=True)
    w.grad = genesis.tensor([7.0, 7.0])
    y = Inverse.apply(x)  # fails in backward
    with pytest.raises(ZeroDivisionError, match="two") as caught:
        (y * w).sum().backward()
    (note,) = caught.value.__notes__
    assert re.fullmatch(
        rf"in the backward of InverseBackward, called at .*test_anomaly.py:{line('fails in backward')} in test_\w+",
        note,
    )
    assert x.grad is None
    assert w.grad.tolist() == [7.0, 7.0]  # all or nothing


def test_it_is_a_decorator_and_nests():
    @detect_anomaly()
    def bad():
        assert is_anomaly_enabled()
        return genesis.tensor([-1.0]).sqrt()

    with pytest.raises(AnomalyError):
        bad()
    assert not is_anomaly_enabled()
    with detect_anomaly():
        with detect_anomaly(check_inf=True):
            pass
        assert is_anomaly_enabled()
        with pytest.raises(AnomalyError):
            genesis.tensor([-1.0]).sqrt()
    assert genesis.tensor([-1.0]).sqrt().isnan().item()


def test_set_detect_anomaly():
    switch = set_detect_anomaly(True)
    try:
        assert is_anomaly_enabled()
        with pytest.raises(AnomalyError):
            genesis.tensor([-1.0]).sqrt()
        with set_detect_anomaly(False):
            genesis.tensor([-1.0]).sqrt()
        assert is_anomaly_enabled()
    finally:
        with switch:
            pass
    assert not is_anomaly_enabled()


def test_other_threads_are_left_alone():
    results = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: results.append(genesis.tensor([-1.0]).sqrt().isnan().item()))
        thread.start()
        thread.join()
    assert results == [True]


def test_a_good_program_is_the_same_in_anomaly_mode():
    x = genesis.tensor(np.linspace(0.1, 1, 6).reshape(2, 3), requires_grad=True)

    def f():
        return genesis.autograd.grad((x.exp().softmax(-1) @ x.T).log().sum(), x, create_graph=True)[0]

    plain = f()
    with detect_anomaly():
        watched = f()
        watched.sum().backward()
    np.testing.assert_array_equal(plain.detach().numpy(), watched.detach().numpy())
    assert x.grad is not None
