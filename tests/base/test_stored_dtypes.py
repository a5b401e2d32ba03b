"""8-bit floats and half complex numbers: stored, moved, compared and converted as PyTorch does, and nothing else."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import genesis
from genesis.base import dtypes

parity = pytest.mark.parity
pytestmark = pytest.mark.filterwarnings(
    "ignore:ComplexHalf support is experimental", "ignore:Casting complex values to real"
)
FLOATS = [kind for kind in dtypes.STORED if kind is not genesis.complex32]
STORED = pytest.mark.parametrize("kind", dtypes.STORED, ids=str)
EIGHT = pytest.mark.parametrize("kind", FLOATS, ids=str)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")


def values(kind):
    """What decides how numbers are rounded: those that the dtype has, the ones half way between two, and neighbours."""
    bits = np.arange(256, dtype=np.uint8).view(kind.np).astype(np.float32)
    known = np.sort(bits[np.isfinite(bits)]).astype(np.float64)
    between = ((known[1:] + known[:-1]) / 2).astype(np.float32)
    rng = np.random.default_rng(0)
    spread = (np.exp2(rng.uniform(-150, 128, 4000)) * rng.choice([-1, 1], 4000)).astype(np.float32)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 1e30, 57344, 61440, 65504], np.float32)
    both = [np.nextafter(between, np.float32(end)) for end in (np.inf, -np.inf)]
    return np.concatenate([bits, between, *both, spread, ends, -ends])


def example(kind, shape=(2, 3)):
    x = genesis.arange(int(np.prod(shape))).reshape(shape).float() - 2
    return x.to(kind)


def equal(x, want):
    return x.dtype is want.dtype and x.tolist() == want.tolist()


# ---- conversions


@parity
@EIGHT
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_rounded_as_in_torch(torch, kind, source):
    numbers = values(kind)
    if source == "int32":
        numbers = np.arange(-600, 600, dtype=np.float32)
    theirs = torch.from_numpy(numbers).to(getattr(torch, source))
    mine = genesis.tensor(numbers).to(getattr(genesis, source))
    want = theirs.to(getattr(torch, kind.name)).float().numpy()
    np.testing.assert_array_equal(mine.to(kind).float().numpy(), want)
    assert np.array_equal(
        np.signbit(mine.to(kind).float().numpy()) & ~np.isnan(want), np.signbit(want) & ~np.isnan(want)
    )


@parity
@EIGHT
@pytest.mark.parametrize("target", ["float64", "float16", "bfloat16", "complex64", "bool", "float8_e5m2"])
def test_read_as_in_torch(torch, kind, target):
    bits = np.arange(256, dtype=np.uint8)
    mine = genesis.tensor(bits).view(kind).to(getattr(genesis, target))
    theirs = torch.from_numpy(bits).view(getattr(torch, kind.name)).to(getattr(torch, target))
    np.testing.assert_array_equal(mine.to(genesis.complex128).numpy(), theirs.to(torch.complex128).numpy())


@parity
def test_half_complex_numbers_as_in_torch(torch):
    rng = np.random.default_rng(0)
    parts = (rng.normal(size=200) * 10.0 ** rng.integers(-9, 9, 200)).astype(np.float32)
    numbers = parts + 1j * parts[::-1]
    theirs = torch.from_numpy(numbers).to(torch.complex32)
    mine = genesis.tensor(numbers).chalf()
    assert np.array_equal(mine.view(genesis.int16).numpy(), theirs.view(torch.int16).numpy())
    for name in ("float32", "float16", "complex128", "int64", "bool"):
        if name == "int64":
            theirs, mine = theirs[theirs.abs().isfinite()], mine[mine.abs().isfinite()]
        want = theirs.to(getattr(torch, name)).numpy()
        np.testing.assert_array_equal(mine.to(getattr(genesis, name)).numpy(), want)
    for f in ("abs", "neg", "sgn", "conj"):
        np.testing.assert_allclose(
            getattr(mine, f)().cdouble().numpy(), getattr(theirs, f)().cdouble().numpy(), rtol=1e-3
        )
    want = (theirs[:9] * theirs[9:18] - 3).to(torch.complex64)
    np.testing.assert_allclose((mine[:9] * mine[9:18] - 3).cfloat().numpy(), want.numpy(), rtol=1e-3)
    assert (mine + mine).dtype is (mine * 2j).dtype is genesis.complex32
    assert (mine.real.dtype, genesis.view_as_real(mine).shape[-1]) == (genesis.float16, 2)
    assert mine.abs().dtype is genesis.float16


@parity
@STORED
def test_facts_as_in_torch(torch, kind):
    theirs = getattr(torch, kind.name)
    mine, its = genesis.finfo(kind), torch.finfo(theirs)
    for name in ("bits", "eps", "max", "min", "smallest_normal", "tiny", "resolution", "dtype"):
        if (kind.name, name) != ("float8_e5m2fnuz", "eps"):  # two bits after the point: 1/4, PyTorch says 1/8
            assert getattr(mine, name) == getattr(its, name)
    for name in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(kind, name) == getattr(theirs, name)
    x = (genesis.arange(6).reshape(2, 3) + 1).to(kind)
    assert x.type() == torch.ones(1).to(theirs).type()
    assert repr(x).replace("genesis", "torch") == repr(torch.arange(6).add(1).reshape(2, 3).to(theirs))


@parity
@STORED
def test_promotion_as_in_torch(torch, kind):
    for other in (*dtypes.ALL, *dtypes.STORED):
        if other.name in ("uint16", "uint32", "uint64"):
            continue
        try:
            want = str(torch.promote_types(getattr(torch, kind.name), getattr(torch, other.name)))
        except RuntimeError:
            with pytest.raises(RuntimeError, match="do not promote"):
                genesis.promote_types(kind, other)
            continue
        if kind is other or kind.is_complex:
            assert str(genesis.promote_types(kind, other)).replace("genesis", "torch") == want


# ---- what they are for


@STORED
def test_movements_keep_the_bits(kind):
    x = example(kind)
    wide = x.cfloat() if kind.is_complex else x.float()
    index = genesis.tensor([1, 0])
    moves = [
        lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x[index], lambda x: x[:, index], lambda x: x[x == x],
        lambda x: genesis.cat([x, x], 1), lambda x: genesis.stack([x, x]), lambda x: x.flip(0), lambda x: x.roll(1, 1),
        lambda x: x.clone(), lambda x: x.t().contiguous(), lambda x: x.expand(4, 2, 3), lambda x: x.repeat(2, 2),
        lambda x: x.index_select(0, index), lambda x: x.gather(1, genesis.zeros(2, 1).long()), lambda x: x.unfold(1, 2, 1),
        lambda x: genesis.where(x == x, x, x), lambda x: genesis.nn.functional.pad(x, (1, 2)), lambda x: x.reshape(3, 2),
        lambda x: x.new_zeros(2), lambda x: genesis.ones_like(x), lambda x: x.split(2, 1)[1], lambda x: x.chunk(2)[1],
        lambda x: genesis.nn.functional.embedding(index, x), lambda x: x.masked_select(x == x), lambda x: x.tril(),
        lambda x: x.scatter(1, genesis.zeros(2, 1).long(), x[:, 1:2]), lambda x: x.repeat_interleave(2, 0),
        lambda x: x.index_put((index,), x[:1]), lambda x: x.cpu(), lambda x: copy.deepcopy(x), lambda x: x[0, 0],
        lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.as_strided((2, 2), (1, 2)), lambda x: x[:0],
    ]  # fmt: skip
    for move in moves:
        y = move(x)
        assert y.dtype is kind
        assert equal(y, move(wide).to(kind))


@STORED
def test_writes(kind):
    x = example(kind, (6,))
    wide = x.cfloat() if kind.is_complex else x.float()
    for t in (x, wide):
        t[0] = 3.0
        t[1:3] = genesis.tensor([0.5, 8.0])
        t[genesis.tensor([4])] = t[0]
        t.view(2, 3)[1].copy_(genesis.tensor([1, 2, 4]))
        t[5:].fill_(0.25)
        t.index_copy_(0, genesis.tensor([1]), t[3:4])
    assert equal(x, wide.to(kind))
    assert equal(x.zero_(), wide.zero_().to(kind))
    memory = genesis.empty(3, dtype=kind).fill_(2)
    view = memory[1:]
    view.zero_()
    assert memory.tolist() == genesis.tensor([2.0, 0, 0]).to(kind).tolist()
    target = genesis.zeros(6)
    assert target.copy_(memory.repeat(2)).dtype is genesis.float32 or kind.is_complex


@STORED
def test_made_and_asked(kind):
    made = genesis.tensor([[1.0, 2.0]], dtype=kind)
    assert equal(made, genesis.full((1, 2), 1, dtype=kind).copy_(genesis.tensor([[1.0, 2.0]])))
    assert genesis.ones(2, dtype=kind).tolist() == [1, 1]
    assert genesis.from_numpy(made.numpy()).data_ptr() == made.data_ptr()
    assert type(made.numpy()) is np.ndarray
    assert made[0, 1].item() == 2
    assert genesis.equal(made, made.clone())
    assert made.isnan().tolist() == [[False, False]]
    assert (made.any().item(), made.all().item(), (made == 2).tolist()) == (True, True, [[False, True]])
    assert genesis.ones(2, 2, dtype=kind, device="meta").t().dtype is kind


@pytest.mark.parametrize("kind", FLOATS[:-1], ids=str)
def test_products_and_gradients(kind):
    x = example(kind, (2, 2))
    assert equal(x @ x, (x.float() @ x.float()).to(kind))
    assert equal(genesis.nn.functional.linear(x, x), (x.float() @ x.float().t()).to(kind))
    w = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (w.to(kind).float() * genesis.tensor([0.3, 0.7, 2.0])).sum().backward()
    assert w.grad.tolist() == genesis.tensor([0.3, 0.7, 2.0]).to(kind).float().tolist()


@EIGHT
@pytest.mark.parametrize("call", [
    lambda x: x + x, lambda x: x * 2.0, lambda x: x.exp(), lambda x: x.sum(), lambda x: x < x, lambda x: x.sort(),
    lambda x: x.max(), lambda x: -x, lambda x: genesis.softmax(x, 0), lambda x: x.add_(1), lambda x: x.uniform_(),
    lambda x: genesis.rand(2, dtype=x.dtype), lambda x: genesis.randn_like(x), lambda x: x.cumsum(0),
    lambda x: genesis.nn.functional.layer_norm(x, (3,)), lambda x: x.mean(), lambda x: x.clamp(0, 1),
])  # fmt: skip
def test_computing_is_refused(kind, call):
    x = example(kind, (3,))
    before = x.tolist()
    with pytest.raises(NotImplementedError, match="is for storing numbers") as caught:
        call(x)
    assert "x.float()" in str(caught.value) or "float32 numbers" in str(caught.value)
    assert x.tolist() == before


@EIGHT
def test_other_dtypes_are_refused(kind):
    x = example(kind, (3,))
    for call in (
        lambda: x == x.float(),
        lambda: genesis.cat([x, x.float()]),
        lambda: genesis.where(x == x, x, x.half()),
    ):
        with pytest.raises(RuntimeError, match="do not promote"):
            call()
    with pytest.raises(TypeError, match="only floating dtypes can be the default"):
        genesis.set_default_dtype(kind)


def test_weights_in_eight_bits_in_a_trace():
    w, x = example(genesis.float8_e4m3fn, (4, 3)), genesis.randn(2, 3)
    graph = genesis.jit.trace(lambda x, w: genesis.relu(x @ w.float().t()).to(genesis.float8_e5m2), x, w)
    want = genesis.relu(x @ w.float().t()).to(genesis.float8_e5m2)
    assert equal(graph(x, w), want)
    assert equal(genesis.compile(lambda x: (x @ w.float().t()).relu())(x).to(genesis.float8_e5m2), want)
    with pytest.raises(NotImplementedError, match="is for storing numbers"):
        genesis.jit.trace(lambda w: w + w, w)


def test_in_transforms():
    x = genesis.tensor([1.1, 2.2, 3.3])
    assert equal(genesis.func.vmap(lambda x: x.to(genesis.float8_e5m2).float())(x), x.to(genesis.float8_e5m2).float())
    assert genesis.func.grad(lambda x: x.to(genesis.float8_e5m2).float().sum())(x).tolist() == [1.0, 1.0, 1.0]


# ---- files


@STORED
@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_saved_and_loaded(kind, name, tmp_path):
    x = example(kind, (3, 4))
    genesis.save({"x": x, "part": x[1:, ::2], "alone": x.t().clone()}, tmp_path / name)
    back = genesis.load(tmp_path / name)
    assert all(equal(back[key], want) for key, want in (("x", x), ("part", x[1:, ::2]), ("alone", x.t())))
    back["x"].zero_()
    assert not (back["part"] != 0).any()


@parity
@STORED
def test_files_of_torch(torch, kind, tmp_path):
    x = example(kind, (3, 4))
    genesis.save({"x": x}, tmp_path / "mine.pt")
    theirs = torch.load(tmp_path / "mine.pt")["x"]
    assert str(theirs.dtype) == f"torch.{kind.name}" and theirs.tolist() == x.tolist()
    torch.save({"x": theirs, "row": theirs[1]}, tmp_path / "its.pt")
    assert equal(genesis.load(tmp_path / "its.pt")["x"], x)
    assert equal(genesis.load(tmp_path / "its.pt")["row"], x[1])
