"""`GradientTape` gives what TensorFlow's gives."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import GradientTape
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, GraphError, ShapeError


def constant(value):
    return genesis.tensor(value, dtype=genesis.float64)


def test_watched_constant_is_a_constant_again():
    x = constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert x.requires_grad
    assert not x.requires_grad and x.is_leaf and y.requires_grad
    assert tape.gradient(y, x).item() == 6
    assert x.grad is None and not (x * 2).requires_grad
    with pytest.raises(ValueError, match="stop"), GradientTape() as tape:
        tape.watch(x)
        raise ValueError("stop")
    assert not x.requires_grad and genesis.is_grad_enabled()


def test_a_gradient_that_a_constant_holds_is_kept():
    x = constant(3.0)
    x.grad = constant(7.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    assert x.grad.item() == 7


def test_variables_need_no_watch_and_get_no_grad():
    w = genesis.nn.Parameter(genesis.ones(2))
    with GradientTape() as tape:
        y = (w * 3).sum()
    assert tape.gradient(y, w).tolist() == [3, 3]
    assert w.grad is None and w.requires_grad


def test_structures():
    a, b, c = constant(2.0), constant(3.0), constant(5.0)
    with GradientTape(persistent=True) as tape:
        tape.watch({"a": a, "rest": [b, c]})
        y = a * b
        z = y * a
    found = tape.gradient(z, {"first": a, "rest": (b, c)})
    assert found["first"].item() == 12 and found["rest"][0].item() == 4 and found["rest"][1] is None
    assert tape.gradient(z, [c], unconnected_gradients="zero")[0].item() == 0
    assert tape.gradient(z, y).item() == 2  # an intermediate result is a source, too
    assert tape.gradient([y, z], a).item() == 3 + 12  # targets are summed
    assert tape.gradient([y, z], a, output_gradients=[constant(10.0), None]).item() == 30 + 12
    assert tape.gradient(a, a).item() == 1 and tape.gradient(constant(1.0), a) is None
    assert tape.gradient({"y": y}, []) == []


def test_targets_of_many_elements_start_from_ones():
    x = constant([1.0, 2.0, 3.0])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).tolist() == [2, 4, 6]
    assert tape.gradient(y, x, output_gradients=constant([1.0, 0.0, 10.0])).tolist() == [2, 0, 60]


def test_once_or_persistent():
    x = constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x.exp()
    tape.gradient(y, x)
    for again in (lambda: tape.gradient(y, x), lambda: tape.jacobian(y, x), lambda: tape.batch_jacobian(y, x)):
        with pytest.raises(
            GraphError,
            match=r"a tape that is not persistent gives gradients once, it gave its gradient already\n  try: "
            r"GradientTape\(persist",
        ):
            again()
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x.exp()
    assert tape.gradient(y, x).item() == tape.gradient(y, x).item()


def test_nested_tapes_give_higher_derivatives():
    x = constant(2.0)
    with GradientTape() as third:
        third.watch(x)
        with GradientTape() as second:
            second.watch(x)
            with GradientTape() as first:
                first.watch(x)
                y = x**4
            dy = first.gradient(y, x)
        d2y = second.gradient(dy, x)
    d3y = third.gradient(d2y, x)
    assert [dy.item(), d2y.item(), d3y.item()] == [32, 48, 48]
    assert not x.requires_grad and not d3y.requires_grad


def test_a_persistent_tape_differentiates_its_own_gradients():
    x = constant(2.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        dy = tape.gradient(x**3, x)
    assert tape.gradient(dy, x).item() == 12
    with GradientTape() as tape:
        tape.watch(x)
        y = x**3
    dy = tape.gradient(y, x, create_graph=True)
    assert dy.requires_grad and not x.requires_grad
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
    dy = tape.gradient(y, x, create_graph=True)
    assert tape.gradient(dy, x).item() == 12
    assert not GradientTape().watched_variables()


def test_outer_tape_can_still_use_the_graph():
    x = constant(2.0)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = x.exp()
        inner.gradient(y, x)
        with outer.stop_recording():
            assert not (x * 2).requires_grad
        z = y * 2
    assert np.isclose(outer.gradient(z, x).item(), 2 * np.exp(2))


def test_watch_accessed_variables_off():
    a, b = constant(2.0).requires_grad_(), constant(3.0).requires_grad_()
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(a)
        from_a, from_b = a * 5, b * 7
        y = from_a * from_b
    assert tape.gradient(y, a).item() == 5 * 21 and tape.gradient(y, b) is None
    assert tape.gradient(y, from_a).item() == 21 and tape.gradient(y, from_b) is None
    assert tape.gradient(y, [b], unconnected_gradients="zero")[0].item() == 0
    assert [x is a for x in tape.watched_variables()] == [True]


def test_watched_variables_and_reset():
    x, w = constant(2.0), constant(3.0).requires_grad_()
    with GradientTape() as tape:
        tape.watch(x)
        y = x * w
        tape.gradient(y, w)
        assert len(tape.watched_variables()) == 2 and tape.watched_variables()[1] is w
        tape.reset()
        assert tape.watched_variables() == () and not x.requires_grad
        tape.watch(w)
        y = w * 2
    assert tape.gradient(y, w).item() == 2 and w.requires_grad


def test_a_block_can_be_continued():
    x = constant(2.0)
    tape = GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        assert x.requires_grad
        z = y * x
    assert tape.gradient(z, x).item() == 12 and not x.requires_grad


def test_records_under_no_grad():
    x = constant(2.0)
    with genesis.no_grad():
        with GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert not genesis.is_grad_enabled()
        assert tape.gradient(y, x).item() == 4


def test_jacobian():
    x, w = constant([[1.0, 2.0], [3.0, 4.0]]), constant([1.0, 2.0])
    with GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = x @ w
    found = tape.jacobian(y, {"x": x, "w": w})
    assert found["w"].tolist() == x.tolist()
    assert found["x"].tolist() == [[[1, 2], [0, 0]], [[0, 0], [1, 2]]]
    other = constant([1.0, 1.0, 1.0])
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients="zero").shape == (2, 3)
    with GradientTape() as tape:
        tape.watch(w)
        y = (w * w).sum()
    assert tape.jacobian(y, w).tolist() == [2, 4]
    with GradientTape() as tape:
        tape.watch(w)
        y = w[:0] * 2
    assert tape.jacobian(y, w).shape == (0, 2)


def test_jacobian_of_a_gradient_is_the_hessian():
    x = constant([1.0, 2.0, 3.0])
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = (x**3).sum() + x[0] * x[1]
        g = inner.gradient(y, x)
    assert outer.jacobian(g, x).tolist() == [[6, 1, 0], [1, 12, 0], [0, 0, 18]]
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = x**2
        jacobian = inner.jacobian(y, x)
    assert outer.gradient(jacobian, x).tolist() == [2, 2, 2]


def test_batch_jacobian():
    x = constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    w = constant([[1.0, 10.0], [100.0, 1000.0]])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = (x * x) @ w
    found = tape.batch_jacobian(y, x)
    assert found.tolist() == (2 * x.unsqueeze(1) * w.t().unsqueeze(0)).tolist()
    full = tape.jacobian(y, x)
    for b in range(3):
        assert found[b].tolist() == full[b, :, b].tolist()
    assert tape.batch_jacobian(y, constant([[1.0]] * 3)) is None
    assert tape.batch_jacobian(y, constant([[1.0]] * 3), unconnected_gradients="zero").shape == (3, 2, 1)
    with pytest.raises(
        ShapeError, match=r"the first dimensions of target and source differ\n  target f64\[3, 2\]\n  source f64\[2\]"
    ):
        tape.batch_jacobian(y, constant([1.0, 2.0]))
    empty = constant(np.zeros((0, 2)))
    with GradientTape() as tape:
        tape.watch(empty)
        y = empty * 2
    assert tape.batch_jacobian(y, empty).shape == (0, 2, 2)


def test_works_with_custom_gradient():
    @genesis.custom_gradient
    def f(x):
        e = x.exp()
        return e, lambda g: g * e

    x = constant(0.5)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        dy = inner.gradient(y, x)
    assert np.isclose(outer.gradient(dy, x).item(), np.exp(0.5))


def test_misuse():
    x = constant(1.0)
    tape = GradientTape(persistent=True)
    with pytest.raises(GraphError, match="GradientTape.watch: the tape is not recording"):
        tape.watch(x)
    with (
        pytest.raises(GraphError, match="GradientTape.stop_recording: the tape is not recording"),
        tape.stop_recording(),
    ):
        pass
    with tape:
        with pytest.raises(ArgumentError, match="GradientTape.watch: expected a tensor, got float"):
            tape.watch([1.0])
        with pytest.raises(DTypeError, match="a tensor of dtype genesis.int64 cannot have a gradient"):
            tape.watch(genesis.tensor([1]))
        with pytest.raises(GraphError, match="the tape is recording already"), tape:
            pass
        tape.watch(x)
        y = x * 2
    with pytest.raises(ArgumentValueError, match="unconnected_gradients is 'zeros', expected 'none' or 'zero'"):
        tape.gradient(y, x, unconnected_gradients="zeros")
    with pytest.raises(ArgumentError, match="GradientTape.gradient: a source is float, expected a tensor"):
        tape.gradient(y, [1.0])
    with pytest.raises(ArgumentError, match="GradientTape.gradient: a target is NoneType, expected a tensor"):
        tape.gradient([None], x)
    with pytest.raises(ArgumentValueError, match="2 output_gradients for 1 targets"):
        tape.gradient(y, x, output_gradients=[x, x])


def test_what_was_computed_before_is_not_on_the_tape():
    x = constant(3.0).requires_grad_()
    y = x * x
    with GradientTape(persistent=True) as tape:
        z = y * x
    for target, expected in ((y, None), (y + 0, None), (z, 9.0)):  # z: only by the second factor
        with pytest.warns(
            UserWarning,
            match=r"GradientTape: a target depends on .* before the tape was opened.*\n  the last of it "
            r"<MulBackward>\n  computed at .*test_tape.py.*\n  try: ",
        ):
            got = tape.gradient(target, x)
        assert got is None if expected is None else got.item() == expected
    assert tape.gradient(z, y).item() == 3  # an earlier result is a source like any other
    with pytest.warns(UserWarning, match="before the tape"):
        assert tape.gradient(y, x, unconnected_gradients="zero").item() == 0
    with pytest.warns(UserWarning, match="before the tape"):
        assert tape.jacobian(y, x) is None
    assert x.grad is None


def test_a_tape_opened_again_goes_on_and_a_reset_one_starts_anew():
    x = constant(3.0).requires_grad_()
    tape = GradientTape()
    with tape:
        y = x * x
    with tape:
        z = y * x
    assert tape.gradient(z, x).item() == 27
    tape.reset()
    with tape:
        w = z * 1.0
    with pytest.warns(UserWarning, match="before the tape"):
        assert tape.gradient(w, x) is None
