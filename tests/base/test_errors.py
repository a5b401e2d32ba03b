"""The exception tree: caught by the clauses written for PyTorch, drawn as it is."""

from __future__ import annotations

import inspect
import pickle

import pytest

from genesis.base import errors
from genesis.base.errors import GenesisError, message

CLASSES = [
    c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, GenesisError) and c is not GenesisError
]


@pytest.mark.parametrize(
    "name, caught_as",
    [
        ("ShapeError", RuntimeError),
        ("DTypeError", RuntimeError),
        ("DeviceError", RuntimeError),
        ("GraphError", RuntimeError),
        ("InplaceError", errors.GraphError),
        ("DimError", IndexError),
        ("IndexOutOfRange", IndexError),
        ("ArgumentError", TypeError),
        ("ArgumentValueError", ValueError),
        ("FileFormatError", ValueError),
        ("UnsupportedError", NotImplementedError),
        ("UnsupportedError", RuntimeError),
    ],
)
def test_caught_as_python_and_pytorch_errors(name, caught_as):
    error = getattr(errors, name)("text")
    assert isinstance(error, caught_as)
    assert isinstance(error, GenesisError)
    assert str(pickle.loads(pickle.dumps(error))) == "text"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_the_drawing_shows_every_class_and_its_base(kind):
    (line,) = [line for line in errors.__doc__.splitlines() if f"─ {kind.__name__} " in line]
    base = kind.__bases__[-1]
    assert base.__name__ in line or line.startswith("    │")  # a child of the class drawn above it


def test_message_of_one_line():
    assert message("len", "a 0-d tensor has no length") == "len: a 0-d tensor has no length"


def test_message_with_operands_and_hint():
    operands = [("a", "f32[3, 4]"), ("b", "f32[5, 2]")]
    assert message("matmul", "inner sizes differ, 4 and 5", operands, hint="b.t()").splitlines() == [
        "matmul: inner sizes differ, 4 and 5", "  a f32[3, 4]", "  b f32[5, 2]", "  try: b.t()",
    ]  # fmt: skip
