"""Indexing in all its forms: against PyTorch, and against NumPy with integers taken before index tensors."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import genesis

SHAPES = [(2, 3, 4), (4,), (3, 3), (2, 1, 3, 2), (0, 3), (1,), ()]


def random_key(rng, shape, positive):
    """A random index as plain data: ("tensor", nested list, dtype), slices, numbers, None, ..., bool, lists."""
    items, dim, used = [], 0, False
    consumed = rng.randint(0, len(shape) + (rng.random() < 0.05))
    common = rng.choice([(2,), (1,), (3,), (2, 2), (0,)])
    while dim < consumed:
        n = shape[dim] if dim < len(shape) else 1
        roll = rng.random()
        if roll < 0.12:
            items.append(None)
            continue
        if roll < 0.16 and not used:
            items.append(...)
            used, dim = True, dim + rng.randint(0, 1)
            continue
        if roll < 0.19:
            items.append(rng.random() < 0.6)
            continue
        if roll < 0.23 and dim < len(shape):
            sizes = shape[dim : dim + rng.randint(1, 2)]
            if rng.random() < 0.1:
                sizes = (*sizes[:-1], sizes[-1] + 1)
            mask = np.array([rng.random() < 0.5 for _ in range(int(np.prod(sizes)))]).reshape(sizes)
            items.append(("tensor", mask.tolist(), rng.choice(["bool", "bool", "uint8"]), sizes))
            dim += len(sizes)
            continue
        dim += 1
        at = lambda n=n: rng.randint(-n, n - 1) if n and rng.random() < 0.98 else rng.randint(-1, 4)  # noqa: E731
        if roll < 0.45:
            items.append(at())
        elif roll < 0.65:
            step = rng.choice([None, 1, 2, 3] if positive else [None, 1, 2, -1, -2])
            items.append(slice(rng.choice([None, at()]), rng.choice([None, at()]), step))
        elif roll < 0.72:
            items.append(("tensor", at(), "int64", ()))
        elif roll < 0.85:
            sizes = rng.choice([common, (1,), common[-1:]])
            items.append(
                (
                    "tensor",
                    np.array([at() for _ in range(int(np.prod(sizes)))], np.int64).reshape(sizes).tolist(),
                    rng.choice(["int64", "int32"]),
                    sizes,
                )
            )
        elif roll < 0.95:
            items.append([at() for _ in range(common[-1])])
        else:
            items.append([[at() for _ in range(common[-1])] for _ in range(2)])
    if rng.random() < 0.1 and not used:
        items.append(...)
    return items if len(items) != 1 or rng.random() < 0.5 else items[0]


def made(framework, key):
    """The index in a framework (None: NumPy)."""
    if isinstance(key, tuple):
        _, data, dtype, shape = key
        if framework is None:
            array = np.array(data, dtype).reshape(shape)
            return (array != 0) if dtype == "uint8" else array
        return framework.tensor(data, dtype=getattr(framework, dtype)).reshape(shape)
    return key


def whole(framework, key):
    return (
        tuple(made(framework, k) for k in key)
        if isinstance(key, list) and any(not isinstance(k, int | list) for k in key)
        else made(framework, key)
    )


def select_first(x, key):
    """What PyTorch means, in NumPy: integers, None and slices first, and then the arrays alone."""
    if isinstance(key, list) and any(isinstance(k, list) for k in key):  # taken as a tuple, with a warning
        key = tuple(key)
    key = key if isinstance(key, tuple) else (key,)
    key = [np.asarray(k) if isinstance(k, list) else k for k in key]
    key = [k.astype(np.int64) if isinstance(k, np.ndarray) and not k.size and k.dtype.kind == "f" else k for k in key]
    key = [int(k) if isinstance(k, np.ndarray) and not k.ndim and k.dtype.kind == "i" else k for k in key]
    array = lambda k: isinstance(k, np.ndarray | bool)  # noqa: E731
    if not any(map(array, key)):
        return x[tuple(key)]
    first, rest = [], []
    for k in key:
        if isinstance(k, bool):
            first.append(None)
            rest.append(np.flatnonzero([k]))
        elif array(k):
            first += [slice(None)] * (k.ndim if k.dtype.kind == "b" else 1)
            rest.append(k)
        else:
            first.append(k)
            rest += [] if isinstance(k, int) else [k if k is ... else slice(None)]
    return x[tuple(first)][tuple(rest)]


def attempt(f):
    try:
        return f()
    except (IndexError, RuntimeError, ValueError, TypeError) as error:
        return error


def agree(mine, theirs, seed):
    """Both refuse, or both give the same."""
    if "only supports boolean masks" in str(theirs):  # PyTorch reads by a uint8 mask, and does not write a number by it
        return False
    if isinstance(mine, Exception) or isinstance(theirs, Exception):
        assert isinstance(mine, Exception) and isinstance(theirs, Exception), f"seed {seed}: {mine!r} and {theirs!r}"
        return False
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape, f"seed {seed}: {a.shape} and {b.shape}"
        np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}")
    return True


def value_for(rng, shape):
    """A value that broadcasts to a shape, mostly."""
    shape = list(shape[rng.randint(0, len(shape)) :]) if rng.random() < 0.4 else list(shape)
    shape = [1 if rng.random() < 0.2 else n for n in shape]
    shape = [1] * rng.randint(0, 1) + shape if rng.random() < 0.2 else shape
    return np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)


def program(framework, seed):
    """Reads, writes and their gradients by one index."""
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    key = whole(framework, random_key(rng, shape, positive=True))
    start = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)

    def read():
        x = framework.tensor(start, requires_grad=True)
        y = (x * 1)[key]
        weights = framework.arange(1, y.numel() + 1, dtype=framework.float64).reshape(y.shape)
        (y * weights).sum().backward()
        return [y.detach().numpy(), x.grad.numpy()]

    def written():
        x = framework.tensor(start, requires_grad=True)
        v = framework.tensor(value_for(rng, read()[0].shape), requires_grad=True)
        y = x * 2
        y[key] = v
        weights = framework.arange(1, y.numel() + 1, dtype=framework.float64).reshape(y.shape)
        (y * weights).sum().backward()
        return [y.detach().numpy(), x.grad.numpy(), v.grad.numpy()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(read), attempt(written)


def compare(torch, seeds):
    """How many reads and writes both frameworks made, with the same results."""
    compared = 0
    for seed in seeds:
        (read, written), (expected, after) = program(genesis, seed), program(torch, seed)
        # of nothing PyTorch checks no index
        if "is out of range" in str(read) and not isinstance(expected, Exception) and not expected[0].size:
            continue
        compared += agree(read, expected, seed) + agree(written, after, seed)
    return compared


@pytest.mark.parity
@pytest.mark.parametrize("block", range(4))
def test_random_indices_against_pytorch(block):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    assert compare(torch, range(block * 250, block * 250 + 250)) > 250


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("block", range(20))
def test_many_random_indices_against_pytorch(block):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    assert compare(torch, range(10_000 + block * 1000, 11_000 + block * 1000)) > 1000


@pytest.mark.parametrize("block", range(2))
def test_random_indices_against_numpy(block):
    """Negative steps, too. A write is right where reading it back by the same rule gives what was written."""
    compared = 0
    for seed in range(block * 400, block * 400 + 400):
        rng = random.Random(seed)
        shape = rng.choice(SHAPES)
        key = random_key(rng, shape, positive=False)
        start = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            mine = attempt(lambda start=start, key=key: [genesis.tensor(start)[whole(genesis, key)].numpy()])
            theirs = attempt(lambda start=start, key=key: [np.asarray(select_first(start, whole(None, key)))])
            if not agree(mine, theirs, seed):
                continue
            compared += 1
            x = genesis.tensor(start)
            x[whole(genesis, key)] = genesis.tensor(-theirs[0])
            places = select_first(np.arange(start.size).reshape(shape), whole(None, key))
            start.reshape(-1)[places] = -start.reshape(-1)[places]
            np.testing.assert_array_equal(x.numpy(), start, err_msg=f"seed {seed}")
    assert compared > 250


@pytest.mark.parametrize("block", range(2))
def test_random_indices_in_transforms_and_traces(block):
    """What vmap, jvp and a replay make of an index is what eager makes of it for each sample."""
    for seed in range(block * 60, block * 60 + 60):
        rng = random.Random(seed)
        shape = rng.choice(SHAPES)
        key = whole(genesis, random_key(rng, shape, positive=False))
        samples = genesis.arange(1, 1 + 2 * int(np.prod(shape)), dtype=genesis.float64).reshape(2, *shape)

        def f(x, key=key):
            y = x * 1
            y[key] = y[key] * 3 + 1
            return y[key] * 2, y

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = attempt(lambda f=f, samples=samples: [f(x) for x in samples])
            if isinstance(expected, Exception):
                continue
            mapped, traced = genesis.vmap(f)(samples), genesis.jit.trace(f, samples[0])
            tangents = genesis.func.jvp(f, (samples[0],), (genesis.ones_like(samples[0]),))[1]
            reverse = genesis.func.jacrev(f)(samples[0])
            places = genesis.arange(samples[0].numel()).reshape(shape)[key].reshape(-1).tolist()
        for i in range(2):
            assert (
                [y.tolist() for y in expected[i]]
                == [y[i].tolist() for y in mapped]
                == [y.tolist() for y in traced.replay(samples[i])]
            ), f"seed {seed}"
        if len(set(places)) < len(places):  # of what is written twice, reverse mode counts both, as PyTorch does
            continue
        for tangent, jacobian, y in zip(tangents, reverse, expected[0], strict=True):
            wanted = jacobian.reshape(*y.shape, samples[0].numel()).sum(-1)
            assert tangent.tolist() == wanted.tolist(), f"seed {seed}"


def test_an_integer_beside_an_index_tensor_is_taken_first():
    x = genesis.arange(24).reshape(2, 3, 4)
    assert x[0, :, [0, 1]].tolist() == x[0][:, [0, 1]].tolist() and x[0, :, [0, 1]].shape == (3, 2)
    z = genesis.zeros(2, 3, 4)
    z[0, :, genesis.tensor([0, 3])] = genesis.arange(6.0).reshape(3, 2)
    assert z[0].tolist() == [[0, 0, 0, 1], [2, 0, 0, 3], [4, 0, 0, 5]]


def test_an_integer_that_a_transform_knows_is_taken_first():
    x = genesis.arange(24.0).reshape(2, 3, 4)
    index = genesis.tensor([0, 3])

    def f(i, x):
        y = x * 1
        y[i, :, index] = y[i, :, index] + genesis.tensor([10.0, 20.0])
        return y[..., i, None, :, index]

    expected = [f(i, x) for i in range(2)]
    x4 = genesis.arange(48.0).reshape(2, 2, 3, 4)
    g = lambda i: x4[..., i, None, :, index]  # noqa: E731
    for i in range(2):
        at = genesis.tensor(i)
        assert genesis.jit.trace(f, genesis.tensor(1), x).replay(at, x).tolist() == expected[i].tolist()
        assert genesis.jit.trace(g, genesis.tensor(1)).replay(at).tolist() == g(i).tolist()
    assert genesis.vmap(f, in_dims=(0, None))(genesis.arange(2), x).tolist() == [y.tolist() for y in expected]
    assert genesis.vmap(g)(genesis.arange(2)).tolist() == [g(i).tolist() for i in range(2)]


def test_uint8_tensors_are_masks_and_masks_must_fit():
    x = genesis.arange(4.0)
    with pytest.warns(UserWarning, match="a uint8 tensor is taken as a mask") as caught:
        assert x[genesis.tensor([0, 1, 1, 0], dtype=genesis.uint8)].tolist() == [1, 2]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning), pytest.raises(IndexError, match=r"a mask of shape \[2\] does not fit sizes \[4\]"):
        x[genesis.tensor([0, 1], dtype=genesis.uint8)]
    for mask in ([True], [True] * 5, [[True] * 4]):
        with pytest.raises(IndexError):
            x[genesis.tensor(mask)]
        with pytest.raises(IndexError):
            x[genesis.tensor(mask)] = 1.0
    places = genesis.tensor([0, 2], dtype=genesis.uint8)  # where places are meant, they are places
    assert (
        genesis.take(x, places).tolist() == x.index_select(0, places).tolist() == x.gather(0, places).tolist() == [0, 2]
    )
    assert x.scatter(0, places, 9.0).tolist() == x.index_fill(0, places, 9.0).tolist() == [9, 1, 9, 3]


def test_writing_to_an_index_tensor_afterwards_changes_no_gradient():
    for read in (
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i),
        lambda x, i: genesis.nn.functional.embedding(i, x[:, None]),
    ):
        x, index = genesis.zeros(4, requires_grad=True), genesis.tensor([0, 1])
        y = read(x, index)
        index.add_(2)
        y.sum().backward()
        assert x.grad.tolist() == [1, 1, 0, 0]
    x, index, v = genesis.zeros(4, requires_grad=True), genesis.tensor([0, 1]), genesis.ones(2, requires_grad=True)
    y = x * 1
    y[index] = v
    index.add_(2)
    (y * genesis.arange(4)).sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 3] and v.grad.tolist() == [0, 1]


@pytest.mark.parity
def test_index_put_against_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    keys = [
        lambda t: (t.tensor([0, 2]),),
        lambda t: (t.tensor([1, 1]),),
        lambda t: (t.tensor(1), t.tensor([0, 1])),
        lambda t: (t.tensor(2),),
        lambda t: (t.tensor([[0], [1]]), t.tensor([0, 1])),
        lambda t: (t.tensor([True, False, True]),),
        lambda t: (t.tensor([-1]), t.tensor([-1, 0])),
    ]
    for key in keys:
        for accumulate in (False, True):
            got = []
            for t in (genesis, torch):
                x = t.arange(24, dtype=t.float64).reshape(3, 4, 2).requires_grad_()
                shape = x[key(t)].shape
                v = t.ones(shape[-1:], dtype=t.float64, requires_grad=True)
                y = (x * 1).index_put_(key(t), v, accumulate=accumulate)
                (y * y).sum().backward()
                got.append([y.detach().numpy(), x.grad.numpy(), v.grad.numpy()])
            agree(*got, key)


def test_index_put_leaves_dimensions_named_none_whole():
    x = genesis.zeros(2, 3)
    assert genesis.index_put(x, (None, genesis.tensor([1, 1])), genesis.ones(2), accumulate=True).tolist() == [
        [0, 2, 0],
        [0, 2, 0],
    ]
    assert genesis.zeros(2, 3, 2).index_put_(
        (genesis.tensor(1), None, genesis.tensor([0, 1])), genesis.arange(6.0).reshape(2, 3)
    )[1].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_masks_in_traces_have_their_shapes_and_may_change():
    x, mask = genesis.arange(6.0).reshape(3, 2), genesis.tensor([False, True, True])

    def f(x):
        y = x * 1
        assert y[mask].shape == (2, 2)
        y[mask] = y[mask] * 10
        return y, y[mask].mean()

    traced = genesis.jit.trace(f, x)
    assert [y.tolist() for y in traced.replay(x)] == [[[0, 1], [20, 30], [40, 50]], 35]
    mask.copy_(genesis.tensor([True, False, True]))
    assert [y.tolist() for y in traced.replay(x)] == [[[0, 10], [2, 3], [40, 50]], 25]
    mask.fill_(True)
    with pytest.raises(RuntimeError, match="the mask names 3 elements, 2 when the function was traced"):
        traced.replay(x)
    with pytest.raises(IndexError, match="does not fit"):
        genesis.jit.trace(lambda x: x[genesis.tensor([True])], x)


@pytest.mark.parametrize(
    "key",
    [
        "None, i, ..., j",
        "i, ..., j",
        "i, ..., None, j",
        "i, j, ...",
        "..., i, j",
        "0, i, ..., j",
        "i, ..., 0",
        "m, ..., j",
        "i, ..., :, j",
        "i, j, ..., 1",
    ],
)
@pytest.mark.parity
def test_an_ellipsis_of_no_dimension_does_not_part_index_tensors(key):
    other = pytest.importorskip("torch")
    found = []
    for lib in (genesis, other):
        scope = {
            "i": lib.tensor([[1], [0]]),
            "j": lib.tensor([1, 0]),
            "m": lib.tensor([[True, False], [False, True]]),
            "x": lib.arange(24.0),
        }
        scope["x"] = (
            scope["x"].reshape(2, 2, 6)
            if "m" in key or ":" in key or "1" in key or "0," in key
            else scope["x"].reshape(4, 6)
        )
        picked = eval(f"x[{key}]", scope)
        scope["values"] = lib.arange(float(picked.numel())).reshape(tuple(picked.shape))
        exec(f"x[{key}] = values", scope)
        found.append((tuple(picked.shape), picked.tolist(), scope["x"].tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.int64, genesis.complex64])
def test_more_dimensions_than_an_index_has_are_refused(dtype):
    x, values = genesis.zeros(3, 4, dtype=dtype), genesis.ones(2, 3, 4, 5, dtype=dtype)
    for index in ((genesis.tensor([0, 1]),), (genesis.tensor([0, 1]), genesis.tensor([0, 1]))):
        for accumulate in (False, True):
            with pytest.raises((RuntimeError, ValueError, TypeError)):
                x.index_put(index, values, accumulate)
    with pytest.raises(RuntimeError, match=r"cannot be added at an index of shape \[3, 2\]"):
        genesis.ops.indexing.index.add_at(np.zeros((3, 4)), (slice(None), np.array([0, 1])), np.ones((2, 3, 2, 2)))


@pytest.mark.parametrize("write", [False, True])
def test_masks_of_tensors_without_elements_must_fit_too(write):
    x, nothing, mask = genesis.zeros(0, 3), genesis.zeros(0, dtype=genesis.int64), genesis.zeros(0, dtype=genesis.bool)

    def look(key):
        if write:
            x[key] = 1.0
        return x[key].shape

    for key in ((slice(None), mask), (nothing, mask), (..., mask)):
        with pytest.raises(IndexError, match=r"a mask of shape \[0\] does not fit sizes \[3\]"):
            look(key)
    assert look(mask) == (0, 3) and look((mask, nothing)) == (0,) and look((None, mask)) == (1, 0, 3)


# ---- along a dimension


@pytest.mark.parity
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("size", [(3, 5), (2, 3), (3, 1), (0, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_gather_and_scatter_as_pytorch(dim, size, turned):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    rng = np.random.default_rng(0)
    numbers, source = rng.normal(size=(4, 5)).astype("f4"), rng.normal(size=(4, 5)).astype("f4")
    at = np.stack([rng.permutation((4, 5)[dim])[: max(size)] for _ in range(max(size))])  # no place twice
    at = (at.T if dim == 0 else at)[: size[0], : size[1]]
    at = np.asfortranarray(at) if turned else np.ascontiguousarray(at)
    results = []
    for lib in (genesis, torch):
        x, y, index = lib.tensor(numbers), lib.tensor(source), lib.from_numpy(at)
        w = lib.tensor(numbers, requires_grad=True)
        picked = w.gather(dim, index)
        picked.sum().backward()
        values = [2.5, 2, -0.0, float("inf"), float("nan"), y, y[: size[0], : size[1]]]
        made = [x.gather(dim, index), picked.detach(), w.grad, *(x.scatter(dim, index, value) for value in values)]
        results.append([each.numpy() for each in made])
        assert lib.equal(x, lib.tensor(numbers))
    x, index = genesis.tensor(numbers), genesis.from_numpy(at)
    assert genesis.equal(x.scatter(dim, index, genesis.tensor(2.5)), x.scatter(dim, index, 2.5))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_any_integers_name_elements(dtype):
    x, index = genesis.arange(12.0).reshape(3, 4), genesis.tensor([[3], [0], [2]]).to(getattr(genesis, dtype))
    assert x.gather(1, index).tolist() == [[3.0], [4.0], [10.0]]
    assert x.scatter(1, index, -1.0).sum(1).tolist() == [2.0, 17.0, 27.0]
    assert x.gather(1, genesis.zeros(0, dtype=index.dtype)).shape == (0,)


@pytest.mark.parametrize(
    ("dim", "index", "error", "text"),
    [
        (1, [[0], [-1]], IndexError, "index -1 is out of range for dim 1 of size 3"),
        (-1, [[0], [3]], IndexError, "index 3 is out of range for dim 1 of size 3"),
        (0, [[0, 1, 2]], IndexError, "index 2 is out of range for dim 0 of size 2"),
        (1, [0, 1], RuntimeError, "index has 1 dimensions, input 2"),
        (1, [[0], [0], [0]], RuntimeError, "index of shape [3, 1] is larger than the input [2, 3] outside dim 1"),
        (2, [[0]], IndexError, "dim 2 is out of range for 2 dimensions"),
        (-3, [[0]], IndexError, "dim -3 is out of range for 2 dimensions"),
        (1, [[0.5]], IndexError, "tensors used as indices must be integer or bool, got genesis.float32"),
    ],
)
def test_what_names_no_elements_is_refused(dim, index, error, text):
    x, index = genesis.ones(2, 3), genesis.tensor(index)
    with pytest.raises(error) as caught:
        x.gather(dim, index)
    assert str(caught.value).startswith(f"gather: {text}")
    with pytest.raises(error) as caught:
        x.scatter(dim, index, 1.0)
    assert str(caught.value).startswith(f"scatter: {text}")


def test_numbers_that_do_not_fit_are_no_different_in_scatter():
    index = genesis.tensor([1])
    assert genesis.zeros(2).scatter(0, index, 1e39).tolist() == [0.0, float("inf")]
    assert genesis.zeros(2, dtype=genesis.float64).scatter(0, index, 1e39).tolist() == [0.0, 1e39]
    assert genesis.zeros(2, dtype=genesis.bfloat16).scatter(0, index, 1.0).tolist() == [0.0, 1.0]
    assert genesis.zeros(2, dtype=genesis.int64).scatter(0, index, 7).tolist() == [0, 7]
    with pytest.raises(RuntimeError, match="300 does not fit"):
        genesis.zeros(2, dtype=genesis.int8).scatter(0, index, 300)


def test_a_scatter_of_a_number_has_the_gradient_of_the_rest():
    x = genesis.ones(3, requires_grad=True)
    (x * 2).scatter(0, genesis.tensor([1]), 5.0).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]
