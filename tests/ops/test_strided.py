"""Memory seen with other sizes and steps, and tensors whose shape changes in place, beside PyTorch."""

from __future__ import annotations

import pytest

import genesis


def test_as_strided_shares_memory_and_counts_from_the_storage():
    x = genesis.arange(6.0)
    part = x[2:]
    assert part.as_strided((2,), (2,)).tolist() == [2, 4] and part.as_strided((2,), (1,), 0).tolist() == [0, 1]
    part.as_strided((2,), (1,), 0).fill_(9)
    assert x.tolist() == [9, 9, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="reach beyond the 6 elements of the storage"):
        part.as_strided((3,), (2,), 4)


def test_gradients_of_overlapping_views_are_sums():
    x = genesis.arange(5.0, requires_grad=True)
    (x.as_strided((3, 2), (1, 1)) * genesis.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1, 11, 11, 10, 0]
    y = genesis.ones(4, requires_grad=True) * 1
    y.as_strided((2,), (2,)).mul_(3)
    y.sum().backward()
    assert y.tolist() == [3, 1, 3, 1]


def test_other_memory_has_no_gradient():
    x = genesis.arange(6.0, requires_grad=True)
    part = (x * 1)[2:]
    with pytest.raises(RuntimeError, match="reaches memory that its input does not see"):
        part.as_strided((2,), (1,), 0).sum().backward()


PROGRAMS = {
    "t_": lambda t, x: (x * 2).t_() * t.ones(3, 2),
    "transpose_": lambda t, x: (x * 2).transpose_(0, 1),
    "unsqueeze_ and a view from before": lambda t, x: _before(x * 2),
    "squeeze_": lambda t, x: (x * 2).unsqueeze(0).squeeze_() * 3,
    "swapaxes_": lambda t, x: (x * 2).swapaxes_(0, -1).cumsum(0),
    "as_strided_": lambda t, x: (x * 2).as_strided_((2, 2), (1, 2)),
    "written to afterwards": lambda t, x: (x * 2).t_().mul_(x.t()),
}


def _before(y):
    row = y[0]
    y.unsqueeze_(0)
    y.mul_(3)
    return y.sum(1) + row


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_that_change_in_place(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    found = []
    for framework in (genesis, torch):
        x = framework.arange(6.0).reshape(2, 3).requires_grad_()
        y = PROGRAMS[name](framework, x)
        (y * y).sum().backward()
        found.append((y.tolist(), tuple(y.shape), x.grad.tolist()))
    assert found[0] == found[1]


def test_a_leaf_keeps_its_shape():
    with pytest.raises(RuntimeError, match="t_: a leaf that requires grad is changed in place"):
        genesis.ones(2, 3, requires_grad=True).t_()
    x = genesis.ones(2, 3)
    version = x._version
    assert x.t_() is x and x.shape == (3, 2) and x._version == version + 1


def test_unique_consecutive():
    x = genesis.tensor([[1, 1], [1, 1], [2, 0]])
    values, inverse, counts = genesis.unique_consecutive(x, True, True, 0)
    assert values.tolist() == [[1, 1], [2, 0]] and inverse.tolist() == [0, 0, 1] and counts.tolist() == [2, 1]
    assert genesis.unique_consecutive(x).tolist() == [1, 2, 0]
    assert genesis.unique_consecutive(genesis.ones(0)).shape == (0,) and x.unique_consecutive().shape == (3,)


CAPTURED = genesis.arange(24.0).reshape(3, 8)[1:, 4:]
OFFSETS = {
    "of a view of an argument": lambda x: x[1:].as_strided((2, 2), (1, 1), 5),
    "of a view of a result": lambda x: (x * 1)[1:].as_strided((2, 2), (1, 1), 5),
    "of an argument": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "of a result": lambda x: (x * 1).as_strided((2, 2), (1, 1), 5),
    "of a captured view": lambda x: CAPTURED.as_strided((2, 2), (1, 1), 13) * x.sum(),
    "none, of a captured view": lambda x: CAPTURED.as_strided((2, 2), (1, 1)) * x.sum(),
    "none, of a view": lambda x: x.t()[1:].as_strided((2, 2), (1, 1)) * 2,
    "scattered into a view": lambda x: x[1:].as_strided_scatter(x[:2, :2] * 0, (2, 2), (1, 1), 5),
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_count_from_the_storage_in_compiled_functions_and_under_jvp(name):
    function, x = OFFSETS[name], genesis.arange(12.0).reshape(3, 4)
    compiled = genesis.compile(function)
    for given in (x, x, x * 2, genesis.cat([x, x])[2:5]):
        try:
            expected = function(given)
        except RuntimeError:  # the storage of another one is smaller
            continue
        assert compiled(given).tolist() == expected.tolist()
    value, tangent = genesis.func.jvp(function, (x,), (x,))
    assert value.tolist() == function(x).tolist()
    if "captured" not in name:
        assert tangent.tolist() == value.tolist()  # it is linear


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("size", [(4, 4), (3, 4)])
def test_memory_that_is_not_there_is_not_read_by_compiled_functions(size):
    function = genesis.compile(lambda x: (x * 1)[1:].as_strided(size, (4, 1)) + 1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="reach beyond the 12 elements of the storage"):
            function(genesis.arange(12.0).reshape(3, 4))


@pytest.mark.filterwarnings("ignore:compile")
def test_shapes_of_what_is_given_and_captured_change_in_place_in_compiled_functions():
    buf, made = genesis.ones(3, 4), []
    for change in (lambda x: x.t_(), lambda x: buf.t_(), lambda x: x.unsqueeze_(0)):
        function = genesis.compile(lambda x, change=change: change(x) * 2)
        for _ in range(2):
            x, shape = genesis.ones(3, 4), tuple(buf.shape)
            y = function(x)
            assert tuple(y.shape) == tuple(x.shape if buf.shape == shape else buf.shape)
            made.append(y)
    inside = genesis.compile(lambda x: (x * 2).t_().unsqueeze_(0) + 1, fullgraph=True)
    assert inside(genesis.ones(3, 4)).shape == (1, 4, 3)
