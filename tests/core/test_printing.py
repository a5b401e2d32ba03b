"""How tensors look: character by character as PyTorch prints them, and golden cases without it."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import genesis
from genesis.base import dtypes
from genesis.core.graph.printing import OPTIONS, format_scalar, printoptions, set_printoptions, tensor_repr

SHAPES = [
    (),
    (1,),
    (3,),
    (7,),
    (40,),
    (300,),
    (0,),
    (0, 3),
    (2, 0),
    (1, 1),
    (3, 4),
    (5, 30),
    (2, 3, 4),
    (2, 1, 2, 3),
    (2, 2, 2, 2, 2),
    (3, 0, 2),
]
LARGE = [(1001,), (2000, 2), (2, 2000), (40, 40), (8, 9, 20), (3, 5, 7, 11), (7, 1, 200), (1000,)]
SCALES = [1, 1e-5, 1e-3, 30, 1e3, 1e6, 3e8, 1e12]


@pytest.fixture
def torch(monkeypatch):
    """PyTorch; dtypes go by its name here, as lines are broken by their length."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    monkeypatch.setattr(dtypes.dtype, "__repr__", lambda kind: f"torch.{kind.name}")
    return torch


@pytest.fixture(autouse=True)
def restored():
    """The default options, whatever a test does to them."""
    yield
    set_printoptions(profile="default")


def draw(rng, shape, kind):
    """Random numbers of a dtype: of any size, often whole, negative, zero, infinite or nan."""
    if kind.is_complex:
        real = dtypes.float32 if kind is dtypes.complex64 else dtypes.float64
        x = np.empty(shape, kind.np)
        x.real, x.imag = draw(rng, shape, real), draw(rng, shape, real)
        return x
    if kind is dtypes.bool:
        return np.asarray(rng.random(shape) < 0.5)
    if not kind.is_floating_point:
        info = np.iinfo(kind.np)
        high = [2, 100, min(info.max, 70000), info.max][rng.integers(4)]
        return np.asarray(rng.integers(max(info.min, -high), high, shape, dtype=kind.np, endpoint=True))
    x = np.asarray(rng.standard_normal(shape) * rng.choice(SCALES))
    x = np.asarray(np.round(x) if rng.random() < 0.4 else x)
    for special in (0.0, -0.0, math.nan, math.inf, -math.inf):
        if rng.random() < 0.2:
            x[rng.random(shape) < rng.choice([0.3, 1], p=[0.9, 0.1])] = special
    with np.errstate(over="ignore"):
        return x.astype(kind.np)


def to_torch(torch, x):
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(x.copy())


def assert_same(torch, x):
    assert tensor_repr(x) == repr(to_torch(torch, x))


# ---- with PyTorch


@pytest.mark.parametrize("kind", dtypes.ALL, ids=str)
def test_random_arrays(torch, kind):
    rng = np.random.default_rng(0)
    for shape in SHAPES * 4 + LARGE:
        assert_same(torch, draw(rng, shape, kind))


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"precision": 0},
        {"precision": 10, "linewidth": 60},
        {"linewidth": 20},
        {"linewidth": 0},
        {"linewidth": 200},
        {"threshold": 5},
        {"threshold": 0},
        {"threshold": 5, "edgeitems": 1},
        {"threshold": 5, "edgeitems": 0},
        {"edgeitems": 0},
        {"threshold": math.inf},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "short", "edgeitems": 4, "precision": 3},
    ],
    ids=str,
)
def test_options(torch, options):
    rng = np.random.default_rng(1)
    set_printoptions(**options)
    torch.set_printoptions(**options)
    try:
        for name in ("float32", "bfloat16", "int64", "bool", "complex128"):
            for shape in SHAPES + LARGE[:-2]:
                assert_same(torch, draw(rng, shape, dtypes.as_dtype(name)))
    finally:
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_other_default_dtypes(torch, default):
    dtypes.set_default_dtype(default)
    torch.set_default_dtype(getattr(torch, default))
    try:
        for kind in dtypes.ALL:
            for shape in ((2,), (0,)):
                assert_same(torch, np.zeros(shape, kind.np))
    finally:
        dtypes.set_default_dtype("float32")
        torch.set_default_dtype(torch.float32)


def test_edges_of_the_rules(torch):
    tiny, least = float(np.finfo(np.float64).tiny), 5e-324
    for values in (
        [1e-4],
        [9.9999e-5],
        [1e8],
        [1e8 + 1],
        [1, 1000],
        [1, 1001],
        [0.5, 500],
        [0.5, 501],
        [1e8, -1e9],
        [least, 1e308],
        [tiny],
        [0.99999],
        [9.99995, 10],
        [-0.0],
        [0.0, -0.0, 1],
        [-0.0, 1.5],
        [math.nan],
        [math.inf, 1],
        [-math.inf, 0.5],
        [1e15, 1e15 + 1],
        [-0.4],
        [2.5, 3.5],
    ):
        assert_same(torch, np.array(values))
        assert_same(torch, np.array([values]))
        assert_same(torch, np.array(values[0]))
        assert_same(torch, np.array([complex(v, -v) for v in values]))


def test_views(torch):
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x[:, ::-1], x.T, x[..., 1], np.broadcast_to(x[0, 0], (3, 4)), x.astype(">f8")):
        assert tensor_repr(view) == repr(torch.from_numpy(view.astype("f8", order="C")))


def test_suffixes_wrap(torch):
    for columns in range(1, 16):
        x = np.linspace(0, 1, columns, dtype=np.float32)
        y = torch.from_numpy(x.copy()).requires_grad_()
        assert tensor_repr(x, ["requires_grad=True"]) == repr(y)
        assert tensor_repr(x, ["grad_fn=<MulBackward0>"]) == repr(y * 1)
        for dtype in (torch.float64, torch.float16):
            z = y.detach().to(dtype).requires_grad_()
            assert tensor_repr(z.detach().numpy(), ["requires_grad=True"]) == repr(z)


def test_suffixes_wrap_at_every_width(torch):
    x = np.arange(3.0)
    y = torch.from_numpy(x.copy()).requires_grad_()
    try:
        for width in range(10, 81):
            set_printoptions(linewidth=width)
            torch.set_printoptions(linewidth=width)
            assert tensor_repr(x, ["requires_grad=True"]) == repr(y)
            assert tensor_repr(x, ["grad_fn=<MulBackward0>"]) == repr(y * 1)
    finally:
        torch.set_printoptions(profile="default")


def test_whole_tensors(torch):
    def make(t):
        x = t.ones(2, requires_grad=True)
        meta = t.empty(2, 3, device="meta")
        return [
            x,
            x.detach(),
            meta,
            t.empty(3, device="meta", dtype=t.int64),
            t.empty((), device="meta"),
            meta.requires_grad_(),
            t.zeros(2, 0),
        ]

    assert [repr(x) for x in make(genesis)] == [repr(x) for x in make(torch)]


def test_subclasses_go_by_their_names(torch):
    def make(t):
        return type("Mine", (t.Tensor,), {})([1.0, 2.0])

    assert repr(make(genesis)) == repr(make(torch)) == "Mine([1., 2.])"


# ---- without


@pytest.mark.parametrize(
    "array, want",
    [
        (np.float32([1, 2, 3]), "tensor([1., 2., 3.])"),
        (np.float32(2.5), "tensor(2.5000)"),
        (np.array([[1.0, 2.5]]), "tensor([[1.0000, 2.5000]], dtype=genesis.float64)"),
        (
            np.array([[1.5, -2], [0, 30]], ml_dtypes.bfloat16),
            "tensor([[ 1.5000, -2.0000],\n        [ 0.0000, 30.0000]], dtype=genesis.bfloat16)",
        ),
        (np.array([1, -20]), "tensor([  1, -20])"),
        (np.array([1, 2], np.int8), "tensor([1, 2], dtype=genesis.int8)"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array([1 + 2j, -1.5 - 1j], np.complex64), "tensor([ 1.0000+2.j, -1.5000-1.j])"),
        (np.float32([1e-5, 1]), "tensor([1.0000e-05, 1.0000e+00])"),
        (np.float32([np.nan, np.inf, 1]), "tensor([nan, inf, 1.])"),
        (np.zeros((0, 3), np.float32), "tensor([], size=(0, 3))"),
        (np.zeros(0, np.int64), "tensor([], dtype=genesis.int64)"),
        (np.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (np.zeros((2, 1, 2), np.float32), "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"),
        (
            np.arange(30),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
        ),
    ],
    ids=str,
)
def test_golden(array, want):
    assert tensor_repr(np.asarray(array)) == want


@pytest.mark.parametrize("width, want", [
    (54, "tensor(1., dtype=genesis.float64, requires_grad=True)"),
    (53, "tensor(1., dtype=genesis.float64,\n       requires_grad=True)"),
])  # fmt: skip
def test_notes_end_before_the_edge(width, want):
    set_printoptions(linewidth=width)
    assert tensor_repr(np.array(1.0), ["requires_grad=True"]) == want


def test_a_large_tensor_in_two_dimensions():
    assert tensor_repr(np.ones((1000, 2), np.float32)).splitlines() == [
        "tensor([[1., 1.],", "        [1., 1.],", "        [1., 1.],", "        ...,",
        "        [1., 1.],", "        [1., 1.],", "        [1., 1.]])",
    ]  # fmt: skip


def test_large_tensors_are_summarised_first():
    x = np.broadcast_to(np.float32(1), (10**6, 10**6))  # 4 TB if anything touched it all
    assert tensor_repr(x).count("1.") == 36


def test_options_come_back_after_with_and_after_errors():
    before = repr(OPTIONS)
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        assert tensor_repr(np.float32([0.5])) == "tensor([5.0e-01])"
        raise KeyError
    assert repr(OPTIONS) == before


@pytest.mark.parametrize("options, text", [
    ({"profile": "long"}, "unknown profile 'long'\n  try: one of default, short, full"),
    ({"precision": -1, "edgeitems": 2}, "precision must not be negative, got -1"),
    ({"edgeitems": 2, "threshold": math.nan}, "threshold must not be negative, got nan"),
])  # fmt: skip
def test_bad_options_change_nothing(options, text):
    before = repr(OPTIONS)
    with pytest.raises(ValueError) as error:
        set_printoptions(**options)
    assert str(error.value) == f"set_printoptions: {text}"
    assert repr(OPTIONS) == before


@pytest.mark.parametrize("array, spec, want", [
    (np.float32(2 / 3), ".4f", "0.6667"),
    (np.array([[0.25]], ml_dtypes.bfloat16), "6.2f", "  0.25"),
    (np.array(7), "03d", "007"),
    (np.array(True), "", "True"),
    (np.array(1 + 2j), ".1f", "1.0+2.0j"),
])  # fmt: skip
def test_format_scalar(array, spec, want):
    assert format_scalar(np.asarray(array), spec) == want


def test_format_of_several_elements():
    with pytest.raises(TypeError, match=r"format: .\.2f. formats one element, the tensor has 3"):
        format_scalar(np.zeros(3), ".2f")


def test_formats():
    one, several = genesis.tensor(1.5), genesis.tensor([2.5])
    assert f"{one}" == "1.5" and f"{one:.2f}" == "1.50" and f"{several}" == repr(several) and f"{several:.2f}" == "2.50"
