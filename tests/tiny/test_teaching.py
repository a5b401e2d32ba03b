"""The teaching module: documented use to the letter, right gradients, and errors instead of wrong ones."""

from __future__ import annotations

import ast
import contextlib
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from genesis import tiny
from genesis.tiny import Add, Div, Exp, Function, Mul, Neg, Pow, Square, Sub, Variable, exp, numerical_diff, square


@contextlib.contextmanager
def no_collector():
    """Only reference counts free anything."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# ---- the documents' use


def test_box():
    data = np.array(1.0)
    x = Variable(data)
    assert x.data is data and x.grad is None and x.creator is None
    x.data = other = np.array(2.0)
    assert x.data is other
    assert repr(Variable(np.array([1.0, 2.0]))) == "Variable([1. 2.])"


@pytest.mark.parametrize("data", [np.float64(2), np.float32(2), np.int64(2), np.array(2), np.array(2.0, "f2")])
def test_box_takes_numbers(data):
    x = Variable(data)
    assert isinstance(x.data, np.ndarray) and x.data.shape == () and x.data == 2
    assert square(x).data == 4 and isinstance(square(x).data, np.ndarray)


@pytest.mark.parametrize(
    "data, what",
    [
        (1.0, "float"),
        (2, "int"),
        ([1.0], "list"),
        ("1", "str"),
        (None, "NoneType"),
        ((1.0,), "tuple"),
        (1j, "complex"),
        (True, "bool"),
        (Variable(np.array(1.0)), "genesis.tiny.Variable"),
    ],
)
def test_box_refuses_the_rest(data, what):
    with pytest.raises(TypeError, match=f"^<class '{what}'> is not supported\n  try: "):
        Variable(data)
    x = Variable(np.array(1.0))
    with pytest.raises(TypeError, match=f"^<class '{what}'> is not supported"):
        x.data = data
    assert x.data == 1.0


@pytest.mark.parametrize("data", [np.array([1j]), np.array(["a"]), np.array([None])], ids=str)
def test_only_real_numbers_have_gradients(data):
    x = Variable(data)  # a box takes any array
    with pytest.raises(TypeError, match="^backward: gradients are of real numbers, not of "):
        x.backward()
    assert x.grad is None


def test_composition():
    A, B, C = Square(), Exp(), Square()
    x = Variable(np.array(0.5))
    y = C(B(A(x)))
    assert str(y.data) == "1.648721270700128" and type(y) is Variable
    y.backward()
    assert str(x.grad) == "3.297442541400256"
    assert str(square(exp(square(Variable(np.array(0.5))))).data) == "1.648721270700128"
    assert float(exp(square(exp(Variable(np.array(0.5))))).data) == np.exp(np.exp(0.5) ** 2)


def test_by_hand_and_by_itself():
    A, B, C = Square(), Exp(), Square()
    x = Variable(np.array(0.5))
    a = A(x)
    b = B(a)
    y = C(b)
    assert A.input is x and C.output is y
    y.grad = np.array(1.0)
    b.grad = C.backward(y.grad)
    a.grad = B.backward(b.grad)
    x.grad = A.backward(a.grad)
    by_hand = [v.grad for v in (b, a, x)]
    assert str(x.grad) == "3.297442541400256"

    assert y.creator == C and y.creator.input == b and y.creator.input.creator == B
    assert y.creator.input.creator.input == a and y.creator.input.creator.input.creator == A
    assert y.creator.input.creator.input.creator.input == x
    x.cleargrad()
    y.backward()
    assert [v.grad for v in (b, a, x)] == by_hand


def test_set_creator():
    A, x = Square(), Variable(np.array(3.0))
    made = A(x)
    y = Variable(np.array(9.0))
    y.set_creator(A)
    assert y.creator is A and made.creator is A
    y.backward()
    assert x.grad == 6.0


def test_numerical_diff():
    assert str(numerical_diff(Square(), Variable(np.array(2.0)))) == "4.000000000004"
    A, B, C = Square(), Exp(), Square()
    assert str(numerical_diff(lambda x: C(B(A(x))), Variable(np.array(0.5)))) == "3.2974426293330694"
    x = Variable(np.array([1, 2, 3]))  # moved as real numbers
    np.testing.assert_allclose(numerical_diff(square, x), [2, 4, 6])
    assert x.data.dtype.kind == "i" and (x.data == [1, 2, 3]).all()
    assert numerical_diff(square, Variable(np.zeros((0, 2)))).shape == (0, 2)


def test_numerical_diff_of_a_function_that_mixes_elements():
    """Not only functions that work on each element by itself."""

    class Total(Function):
        def forward(self, x):
            return x.sum()

        def backward(self, gy):
            return np.full(self.input.data.shape, gy)

    x = Variable(np.array([1.0, 2.0, 3.0]))
    square(Total()(x)).backward()
    np.testing.assert_allclose(x.grad, [12, 12, 12])
    np.testing.assert_allclose(numerical_diff(lambda x: square(Total()(x)), x), x.grad)


def test_a_step_can_be_chosen():
    assert abs(numerical_diff(exp, Variable(np.array(0.0)), eps=0.5) - np.sinh(0.5) / 0.5) < 1e-15


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_unwritten_methods_name_the_class(method):
    class Unfinished(Function):
        if method == "backward":

            def forward(self, x):
                return x

    with pytest.raises(NotImplementedError, match=rf"^Unfinished\.{method} is not written\n  try: def {method}"):
        Unfinished()(Variable(np.array(1.0))).backward()


# ---- gradients

rng = np.random.default_rng(7)
EXPRESSIONS = {
    "square": lambda x, y: square(x) + square(y),
    "exp": lambda x, y: exp(x) * exp(-y),
    "neg": lambda x, y: -(x - y) - y,
    "add": lambda x, y: 2 + x + y + 1.5,
    "sub": lambda x, y: 3 - (x - y - 1),
    "mul": lambda x, y: 2 * x * y * 3.0 * x,
    "div": lambda x, y: 1 / x + x / y / 2,
    "pow": lambda x, y: x**3 + y**-1 + x**0.5 + y**0 + x**1,
    "arrays": lambda x, y: np.float64(2.0) * x + np.full((2, 3), 3.0) * y - np.array(1.0) / x,
    "fan-out": lambda x, y: (x * x) * (x * x + y) + x,
}


@pytest.mark.parametrize(
    "shapes",
    [((), ()), ((3,), (3,)), ((2, 3), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1, 1, 3), (2, 1))],
    ids=str,
)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradients_are_the_numerical_ones(name, shapes):
    f = EXPRESSIONS[name]
    x, y = (Variable(rng.uniform(0.5, 2.0, shape)) for shape in shapes)
    f(x, y).backward()
    for v, g in ((x, numerical_diff(lambda v: f(v, y), x)), (y, numerical_diff(lambda v: f(x, v), y))):
        assert isinstance(v.grad, np.ndarray) and v.grad.shape == v.data.shape
        np.testing.assert_allclose(v.grad, g, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function, xs, grads",
    [
        (Square(), (3.0,), (6.0,)),
        (Exp(), (0.0,), (1.0,)),
        (Neg(), (2.0,), (-1.0,)),
        (Add(), (2.0, 3.0), (1.0, 1.0)),
        (Sub(), (2.0, 3.0), (1.0, -1.0)),
        (Mul(), (2.0, 3.0), (3.0, 2.0)),
        (Div(), (3.0, 2.0), (0.5, -0.75)),
        (Pow(3), (2.0,), (12.0,)),
        (Pow(0), (0.0,), (0.0,)),
        (Pow(1), (0.0,), (1.0,)),
    ],
)
def test_functions(function, xs, grads):
    inputs = [Variable(np.array(x)) for x in xs]
    function(*inputs).backward()
    assert [float(x.grad) for x in inputs] == list(grads)


def test_twice_used():
    x = Variable(np.array(3.0))
    y = x + x
    y.backward()
    assert x.grad == 2.0
    x.cleargrad()
    a = square(x)
    (square(a) + square(a)).backward()
    assert x.grad == 8 * 3.0**3


def test_a_diamond_of_many_floors_is_walked_once():
    """2^200 paths, 200 functions."""
    x = y = Variable(np.array(1.0))
    for _ in range(200):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad == 1.0


def test_one_function_object_called_again():
    """Each call has its own input; the object itself speaks of the latest."""
    A = Square()
    x = Variable(np.array(3.0))
    a = A(x)
    y = A(a)
    assert A.input is a and y.creator is A and a.creator is not A and a.creator.input is x
    y.backward()
    assert x.grad == 4 * 3.0**3
    numerical_diff(A, Variable(np.array(1.0)))
    x.cleargrad()
    y.backward()
    assert x.grad == 4 * 3.0**3


def test_state_of_a_function_called_again():
    class Clip(Function):
        def forward(self, x):
            self.mask = x > 0
            return x * self.mask

        def backward(self, gy):
            return gy * self.mask

    f = Clip()
    x, y = Variable(np.array([-1.0, 1.0])), Variable(np.array([1.0, -1.0]))
    (f(x) + f(y)).backward()
    assert x.grad.tolist() == [0, 1] and y.grad.tolist() == [1, 0]


def test_backward_again_replaces():
    x = Variable(np.array(3.0))
    y = square(x)
    z = y * 2
    z.backward()
    z.backward()
    assert x.grad == 12 and y.grad == 2 and z.grad == 1
    y.backward()  # starts from one, not from the 2 that z left in y
    assert x.grad == 6 and y.grad == 1


def test_retain_grad_off():
    x = Variable(np.array(3.0))
    y = square(x)
    z = y * 2
    z.backward(retain_grad=False)
    assert (x.grad, y.grad, z.grad) == (12.0, None, None)


def test_backward_of_what_you_made():
    x = Variable(np.array([1.0, 2.0]))
    x.backward()
    assert x.grad.tolist() == [1, 1]
    x.backward()
    assert x.grad.tolist() == [1, 1]


def test_your_own_start():
    x = Variable(np.array([1.0, 2.0]))
    y = square(x)
    y.grad = seed = np.array([10.0, 100.0])
    y.backward()
    assert x.grad.tolist() == [20, 400] and y.grad is seed
    y.backward()
    assert x.grad.tolist() == [20, 400]
    y.grad = np.array(1.0)
    with pytest.raises(ValueError, match=r"backward: .grad has shape \(\), .data has \(2,\)\n  try: "):
        y.backward()


def test_gradients_are_arrays_of_their_own():
    x, y = Variable(np.zeros(2)), Variable(np.zeros(2))
    z = x + y
    z.backward()
    x.grad += 5
    assert y.grad.tolist() == [1, 1] and z.grad.tolist() == [1, 1]
    kept = y.grad
    z.backward()
    assert kept.tolist() == [1, 1] and y.grad.tolist() == [1, 1] and y.grad is not kept


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_precision_is_kept(dtype):
    x = Variable(np.ones(3, dtype))
    y = square(x * 2.0 + 1) / 3 - 2**3 * x
    y.backward()
    assert y.data.dtype == y.grad.dtype == x.grad.dtype == dtype
    x.cleargrad()
    (x * np.ones(3)).backward()  # a wider partner makes the result wider, and the gradient comes home
    assert x.grad.dtype == dtype


def test_integers_have_real_gradients():
    x = Variable(np.array([100, 3], np.int8))
    exp(x * 0).backward()
    assert x.grad.dtype == np.float64 and x.grad.tolist() == [0, 0]
    for f, expected in ((Neg(), [-1, -1]), (Pow(1), [1, 1]), (Pow(0), [0, 0]), (Pow(3), [12, 48])):
        u = Variable(np.array([2, 4], np.uint8))
        f(u).backward()
        assert u.grad.tolist() == expected
    y = -Variable(np.array(1.0))
    y.grad = np.array(1, np.uint8)
    y.backward()
    assert y.creator.input.grad == -1
    v = Variable(np.array([100], np.int8))  # 2 * 100 is more than int8 holds
    square(v).backward()
    assert v.grad.tolist() == [200]


# ---- errors instead of wrong gradients


def test_data_replaced_since_forward():
    x = Variable(np.array(3.0))
    y = square(x)
    x.data = np.array(5.0)
    with pytest.raises(
        RuntimeError, match=r"Square.backward: the data of an input was replaced since forward\n  try: "
    ):
        y.backward()
    assert x.grad is None and y.grad is None
    y = square(x)
    x.data += 1.0  # in place, and then set
    with pytest.raises(RuntimeError, match="replaced"):
        y.backward()


def wrong(result):
    class Wrong(Function):
        def forward(self, x, y):
            return x + y

        def backward(self, gy):
            return result

    return Wrong()


@pytest.mark.parametrize("result, message", [
    (None, r"Wrong.backward: 2 inputs, and gradients \(NoneType\)"),
    ((np.ones(3), None), r"2 inputs, and gradients \(ndarray, NoneType\)"),
    (np.ones(3), r"2 inputs, and gradients \(ndarray\)"),
    ((np.ones(3),) * 3, "gradients"),
    ((np.ones(3), np.ones(4)), r"a gradient of shape \(4,\) for an input of shape \(3,\)"),
    ((np.ones(3), np.array(1.0)), r"a gradient of shape \(\) for an input of shape \(3,\)"),
    ((np.ones(3), np.ones((2, 3))), r"a gradient of shape \(2, 3\) for an input of shape \(3,\)"),
])  # fmt: skip
def test_wrong_gradients(result, message):
    x, y = Variable(np.zeros(3)), Variable(np.zeros(3))
    z = x * 2.0
    out = wrong(result)(z, y)
    with pytest.raises(ValueError, match=message):
        out.backward()
    assert x.grad is None and y.grad is None and z.grad is None and out.grad is None


def test_all_or_none():
    """An error late on the way leaves no gradient behind."""
    x, y = Variable(np.zeros(3)), Variable(np.zeros(3))
    out = y * 3.0 + wrong(None)(x, x)
    with pytest.raises(ValueError):
        out.backward()
    assert x.grad is None and y.grad is None and out.grad is None


def test_a_list_of_gradients():
    x, y = Variable(np.zeros(3)), Variable(np.zeros(3))
    wrong([np.ones(3), np.full(3, 2.0)])(x, y).backward()
    assert x.grad.tolist() == [1, 1, 1] and y.grad.tolist() == [2, 2, 2]


def test_an_exponent_is_a_number():
    with pytest.raises(TypeError, match="Pow: the exponent must be a number, not Variable\n  try: "):
        Variable(np.array(2.0)) ** Variable(np.array(2.0))


def test_operands_are_checked():
    with pytest.raises(TypeError, match="^<class 'str'> is not supported"):
        Variable(np.array(1.0)) + "1"
    with pytest.raises(TypeError, match="^<class 'list'> is not supported"):
        [1.0] * Variable(np.array(1.0))


# ---- memory and depth


def test_nothing_needs_the_collector():
    with no_collector():
        x = Variable(np.ones(3))
        a = square(x)
        y = exp(a) * a + x
        y.backward()
        gone = [weakref.ref(v) for v in (a, y, a.creator, y.creator)]
        del a, y
        assert [r() for r in gone] == [None] * 4


def test_a_function_does_not_hold_its_result():
    with no_collector():
        A = Square()
        y = weakref.ref(A(Variable(np.array(1.0))))
        assert y() is None and A.input.data == 1.0


def test_the_result_of_the_latest_call_is_there():
    with no_collector():
        A = Square()
        assert A.output is None
        x = Variable(np.array(3.0))
        A(x).backward()  # nobody holds the result
        y = A.output
        assert y.data == 9.0 and y.grad == 1.0 and y.creator is A and A.output is y
        x.cleargrad()
        y.backward()
        assert x.grad == 6.0
        gone = weakref.ref(y)
        del y, A
        assert gone() is None


@pytest.mark.parametrize("same", [False, True], ids=["an object each", "one object"])
def test_depth(same):
    """As deep as 100000: recorded, differentiated and dropped without recursion."""
    with no_collector():
        A = Neg()
        x = y = Variable(np.array(1.0))
        for _ in range(100_000):
            y = A(y) if same else -y
        y.backward()
        assert x.grad == 1.0
        middle = weakref.ref(y.creator.input.creator.input)
        del y, A
        assert middle() is None


# ---- the module


def test_it_needs_numpy_and_nothing_of_genesis():
    tree = ast.parse(Path(tiny.__file__).read_text())
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "copy", "numpy", "typing", "weakref"}


def test_it_is_imported_when_used():
    code = "import sys, genesis; print('genesis.tiny' in sys.modules, genesis.tiny.square(3.0).data, 'tiny' in dir(genesis))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 9.0 True\n"
