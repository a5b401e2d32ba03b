"""What users do with tensors, on a device that is not the CPU: a pretended one, and an emulated GPU."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from custom_functions import Cube

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.base.errors import DeviceError, GraphError
from genesis.cli.stages import reader
from genesis.datasets import digits
from genesis.nn import functional as F


def kind(place):
    return place.partition(":")[0]


def second(place):
    """The other device of the same type."""
    return f"{kind(place)}:1"


CREATED = {
    "tensor": lambda d: genesis.tensor([1.0, 2.0], device=d),
    "zeros": lambda d: genesis.zeros(2, 3, device=d),
    "ones": lambda d: genesis.ones(2, dtype=genesis.bfloat16, device=d),
    "full": lambda d: genesis.full((2,), 7, device=d),
    "arange": lambda d: genesis.arange(5, device=d),
    "linspace": lambda d: genesis.linspace(0, 1, 3, device=d),
    "eye": lambda d: genesis.eye(2, 3, device=d),
    "zeros_like": lambda d: genesis.zeros_like(genesis.ones(2, device=d)),
    "new_full": lambda d: genesis.ones(2, device=d).new_full((3,), 2.0),
    "as_tensor": lambda d: genesis.as_tensor(np.arange(3), device=d),
    "Tensor": lambda d: genesis.Tensor([1, 2], device=d),
    "from a tensor of the CPU": lambda d: genesis.tensor(genesis.ones(2), device=d),
    "of a tensor there": lambda d: genesis.tensor(genesis.ones(2, device=d)),
    "module": lambda d: nn.Linear(2, 3, bias=False, device=d).weight,
}


@pytest.mark.parametrize("name", CREATED)
def test_creation_gives_what_it_gives_on_the_cpu(name, pretend):
    genesis.manual_seed(1)
    found = CREATED[name](pretend)
    genesis.manual_seed(1)
    expected = CREATED[name]("cpu")
    assert found.device == genesis.device(pretend)
    assert found.dtype is expected.dtype and found.tolist() == expected.tolist()


DRAWN = {
    "rand": lambda d: genesis.rand(5, device=d),
    "randn": lambda d: genesis.randn(5, device=d),
    "randint": lambda d: genesis.randint(0, 9, (5,), device=d),
    "randperm": lambda d: genesis.randperm(5, device=d),
    "rand_like": lambda d: genesis.rand_like(genesis.ones(5, device=d)),
    "normal": lambda d: genesis.normal(genesis.zeros(5, device=d), 2.0),
    "normal_": lambda d: genesis.zeros(5, device=d).normal_(),
    "uniform_": lambda d: genesis.zeros(5, device=d).uniform_(),
    "bernoulli": lambda d: genesis.bernoulli(genesis.full((9,), 0.5, device=d)),
    "multinomial": lambda d: genesis.multinomial(genesis.ones(5, device=d), 3),
    "dropout": lambda d: F.dropout(genesis.ones(9, device=d)),
    "kaiming": lambda d: nn.init.kaiming_uniform_(genesis.empty(3, 4, device=d)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_seed_gives_the_same_numbers(name, pretend):
    found = DRAWN[name](pretend)
    genesis.manual_seed(0)
    assert found.device.type == kind(pretend) and found.tolist() == DRAWN[name]("cpu").tolist()


def test_a_name_without_an_index_is_the_current_device(pretend):
    assert genesis.ones(2, device=kind(pretend)).device == genesis.device(kind(pretend), 0)
    assert genesis.ones(2, device=second(pretend)).device == genesis.device(kind(pretend), 1)
    with pytest.raises(DeviceError, match=f"{kind(pretend)}:2 does not exist, there are 2 devices of this type"):
        genesis.ones(2, device=f"{kind(pretend)}:2")
    with genesis.device(second(pretend)):
        assert genesis.rand(2).device == nn.Linear(2, 2).bias.device == genesis.device(second(pretend))


def test_to_and_back_is_differentiable(pretend):
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    there = x.to(pretend)
    assert there.device == genesis.device(pretend) and there.to(pretend) is there and there.to(kind(pretend)) is there
    (there**3).to(second(pretend)).cpu().sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [3.0, 12.0]
    assert x.to(there).device == there.device and x.to(pretend, genesis.float64).dtype is genesis.float64
    assert (
        genesis.zeros(2).copy_(there).tolist()
        == genesis.zeros(2, device=pretend).copy_(x.detach()).tolist()
        == [1.0, 2.0]
    )


def test_gradients_accumulate_in_place(pretend):
    w = genesis.tensor([1.0, 2.0], device=pretend, requires_grad=True)
    (w * 2).sum().backward()
    first, memory = w.grad, w.grad._array
    (w * w).sum().backward()
    assert w.grad is first and w.grad._array is memory and w.grad.tolist() == [4.0, 6.0]
    w.grad.zero_()
    assert first.tolist() == [0.0, 0.0]


def test_writes_and_views(pretend):
    x = genesis.arange(6.0, device=pretend).reshape(2, 3)
    x[0].mul_(10)
    x.t()[2] = -1.0
    x[x > 25] = 0.0
    x[[1], [0]] = genesis.tensor([9.0], device=pretend)
    assert x.tolist() == [[0.0, 10.0, -1.0], [9.0, 4.0, -1.0]]
    assert (x.stride(), x.t().stride(), x.t().is_contiguous(), x.t().contiguous().is_contiguous()) == (
        (3, 1),
        (1, 3),
        False,
        True,
    )
    with pytest.raises(RuntimeError, match="expanded"):
        x[0].expand(2, 3).add_(1)


def test_history_of_recorded_writes(pretend):
    w = genesis.tensor([1.0, 2.0, 3.0], device=pretend, requires_grad=True)
    y = w * 1
    y[1:].mul_(w[:2])
    y[0] = w[2] * 2
    y.sum().backward()
    again = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = again * 1
    z[1:].mul_(again[:2])
    z[0] = again[2] * 2
    z.sum().backward()
    assert w.grad.tolist() == again.grad.tolist()
    held = w.exp()
    loss = held.sum()
    held.detach().zero_()
    with pytest.raises(RuntimeError, match="modified in place by zero_"):
        loss.backward()


def test_printing_and_python_numbers(pretend):
    x = genesis.tensor([[1.5, 2.0]], device=pretend)
    assert repr(x) == f"tensor([[1.5000, 2.0000]], device='{pretend}')"
    assert repr(genesis.zeros(0, 2, device=pretend)) == f"tensor([], device='{pretend}', size=(0, 2))"
    assert (
        f"{x.sum():.1f}" == "3.5"
        and float(x.sum()) == 3.5
        and bool(x.any())
        and int(genesis.tensor(3, device=pretend)) == 3
    )
    with pytest.raises(DeviceError, match=f"NumPy cannot read the memory of {pretend}"):
        x.numpy()
    with pytest.raises(DeviceError):
        np.asarray(x)


def test_saving_loading_and_copies(pretend, tmp_path):
    w = nn.Parameter(genesis.tensor([1.0, 2.0], device=pretend))
    for name in ("w.safetensors", "w.pt"):
        genesis.save({"w": w}, tmp_path / name)
        said = name.endswith(".pt") and pretend.startswith("cuda")  # where it was: PyTorch knows no pretended devices
        assert genesis.load(tmp_path / name)["w"].device.type == ("cuda" if said else "cpu")
        back = genesis.load(tmp_path / name, map_location=second(pretend))["w"]
        assert back.device == genesis.device(second(pretend)) and back.tolist() == [1.0, 2.0]
        assert (
            genesis.load(tmp_path / name, map_location=lambda storage, place: storage.to(pretend))["w"].device
            == w.device
        )
    for again in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert (
            type(again) is nn.Parameter
            and again.device == w.device
            and again.tolist() == w.tolist()
            and again.requires_grad
        )
    model = nn.Linear(2, 1, device=pretend)
    model.load_state_dict(nn.Linear(2, 1).state_dict())
    assert model.weight.device == w.device
    buffer = io.BytesIO()
    genesis.save(model.state_dict(), buffer)


OPTIMIZERS = [
    name
    for name in genesis.optim.__all__
    if isinstance(getattr(genesis.optim, name), type)
    and issubclass(getattr(genesis.optim, name), genesis.optim.Optimizer)
]


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("Optimizer", "SparseAdam")])
def test_optimizers_do_what_they_do_on_the_cpu(name, pretend):
    reached = {}
    for place in ("cpu", pretend):
        w = nn.Parameter(genesis.tensor([[1.0, -2.0, 3.0]] if name == "Muon" else [1.0, -2.0, 3.0], device=place))
        optimizer = getattr(genesis.optim, name)([w], lr=0.05)

        def closure(w=w, optimizer=optimizer):
            optimizer.zero_grad(set_to_none=False)
            loss = (w**4).sum()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        reached[place] = w
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
    assert reached[pretend].device.type == kind(pretend)
    np.testing.assert_allclose(reached[pretend].tolist(), reached["cpu"].tolist(), rtol=1e-6)


def test_the_network_of_the_demo_learns_as_on_the_cpu(pretend):
    images, labels = digits("train")
    losses = {}
    for place in ("cpu", pretend):
        genesis.manual_seed(0)
        model = reader().to(place)
        optimizer = genesis.optim.AdamW(model.parameters(), lr=3e-3)
        losses[place] = []
        for start in range(0, 640, 64):
            x, y = images[start : start + 64].to(place), labels[start : start + 64].to(place)
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses[place].append(loss.item())
        assert all(p.grad.device == p.device == x.device for p in model.parameters())
    np.testing.assert_allclose(losses[pretend], losses["cpu"], rtol=1e-4)
    assert losses[pretend][-1] < 0.9 * losses[pretend][0]


def _layers(x):
    weight = genesis.eye(3, device=x.device)
    return (x @ weight).tanh().exp().sum()


TRANSFORMS = {
    "grad": lambda x: genesis.func.grad(_layers)(x),
    "jvp": lambda x: genesis.func.jvp(_layers, (x,), (x.cos(),))[1],
    "vmap": lambda x: genesis.vmap(lambda row: row.softmax(0) * row.sum())(x),
    "vmap of grad": lambda x: genesis.vmap(genesis.func.grad(_layers))(x),
    "jacrev": lambda x: genesis.func.jacrev(lambda y: y.sin() * y)(x),
    "jacfwd": lambda x: genesis.func.jacfwd(lambda y: y.sin() * y)(x),
    "hessian": lambda x: genesis.func.hessian(_layers)(x),
    "writes inside vmap": lambda x: genesis.vmap(lambda row: row.new_zeros(3).add_(row).mul_(2))(x),
    "writes inside jvp": lambda x: genesis.func.jvp(lambda y: y.clone().t().mul_(y.t()), (x,), (x,))[1],
    "checkpoint": lambda x: genesis.autograd.grad(
        genesis.utils.checkpoint.checkpoint(_layers, x.requires_grad_(), use_reentrant=False), x
    )[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, pretend):
    x = genesis.linspace(-1, 1, 6).reshape(2, 3)
    found = TRANSFORMS[name](x.to(pretend))
    assert found.device.type == kind(pretend)
    np.testing.assert_allclose(found.detach().cpu().numpy(), TRANSFORMS[name](x).detach().numpy(), rtol=1e-6)


def test_autocast_is_for_the_tensors_of_its_device(pretend):
    there, here = genesis.ones(2, 2, device=pretend), genesis.ones(2, 2)
    with genesis.autocast(kind(pretend), dtype=genesis.bfloat16):
        assert (there @ there).dtype is genesis.bfloat16 and (here @ here).dtype is genesis.float32
    with genesis.autocast("cpu"):
        assert (there @ there).dtype is genesis.float32 and (here @ here).dtype is genesis.bfloat16


def test_a_function_of_ones_own(pretend):
    x = genesis.tensor([1.0, 2.0], device=pretend, requires_grad=True)
    (g,) = genesis.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 12.0] and genesis.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]


# ---- two devices in one call

MIXED = {
    "add": lambda a, b: a + b,
    "where": lambda a, b: genesis.where(a > 0, a, b),
    "matmul": lambda a, b: a @ b,
    "cat": lambda a, b: genesis.cat([a, b]),
    "linear": lambda a, b: F.linear(a, b),
    "layer_norm": lambda a, b: F.layer_norm(a, (2,), b[0]),
    "cross_entropy": lambda a, b: F.cross_entropy(a, b.argmax(1)),
    "embedding": lambda a, b: F.embedding(a.long(), b),
    "index": lambda a, b: a[b.long()],
    "mask": lambda a, b: a[b > 0],
    "gather": lambda a, b: a.gather(0, b.long()),
    "index_select": lambda a, b: a.index_select(0, b[0].long()),
    "scatter": lambda a, b: a.scatter(0, b.long(), 1.0),
    "in place": lambda a, b: a.add_(b),
    "in place, by composition": lambda a, b: a.addcmul_(b, b),
    "setitem": lambda a, b: a.__setitem__(0, b[0]),
    "setitem by index": lambda a, b: a.__setitem__(b.long(), 0.0),
    "masked_fill_": lambda a, b: a.masked_fill_(b > 0, 1.0),
    "out": lambda a, b: genesis.add(a, a, out=b),
    "out, by composition": lambda a, b: genesis.matmul(a, a, out=b),
    "gradient": lambda a, b: (a.clone().requires_grad_() * 2).backward(b),
    "grad": lambda a, b: setattr(a, "grad", b),
    "grad_outputs": lambda a, b: genesis.autograd.grad((x := a.clone().requires_grad_()) * 2, x, b),
    "module": lambda a, b: nn.Linear(2, 2, device=a.device)(b),
    "jvp": lambda a, b: genesis.func.jvp(lambda x: x * 2, (a,), (b,)),
    "vmap": lambda a, b: genesis.vmap(lambda x, y: x * y)(a, b),
}


OF_THE_CPU = "index", "mask", "setitem by index"  # an index of the CPU may stand there


@pytest.mark.parametrize("name", OF_THE_CPU)
def test_an_index_of_the_cpu_is_copied_to_where_the_tensor_is(name, pretend):
    here, there, index = genesis.ones(2, 2), genesis.ones(2, 2, device=pretend), genesis.ones(2, 2)
    expected, got = MIXED[name](here, index), MIXED[name](there, index)
    assert here.equal(there.cpu()) and (got is None or (got.cpu().equal(expected) and got.device == there.device))


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_are_an_error_that_names_both(name, pretend):
    pairs = [(pretend, "cpu"), ("cpu", pretend), (pretend, second(pretend))]
    for one, other in pairs[name in OF_THE_CPU :]:
        a, b = genesis.ones(2, 2, device=one), genesis.ones(2, 2, device=other)
        with pytest.raises(DeviceError) as caught:
            MIXED[name](a, b)
        assert one in str(caught.value) and other in str(caught.value), caught.value
        assert a.tolist() == [[1.0, 1.0], [1.0, 1.0]] == b.tolist()


def test_an_optimizer_whose_state_is_elsewhere(pretend):
    w = nn.Parameter(genesis.ones(2, device=pretend))
    optimizer = genesis.optim.SGD([w], lr=0.1, momentum=0.9)
    (w * 2).sum().backward()
    optimizer.step()
    optimizer.state[w]["momentum_buffer"] = genesis.ones(2)
    with pytest.raises(DeviceError, match=pretend):
        optimizer.step()


def test_a_backward_that_makes_its_gradient_elsewhere(pretend):
    class Elsewhere(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return genesis.ones(2)

    w = genesis.ones(2, device=pretend, requires_grad=True)
    with pytest.raises(DeviceError, match=f"the gradient of a leaf is on cpu, the tensor on {pretend}"):
        Elsewhere.apply(w).sum().backward()
    assert w.grad is None


def test_zero_dimensional_tensors_of_the_cpu_are_numbers(pretend):
    scale = genesis.tensor(2.0, requires_grad=True)
    x = genesis.ones(3, device=pretend)
    y = (x * scale).sum()
    y.backward()
    assert y.item() == 6.0 and scale.grad.device.type == "cpu" and scale.grad.item() == 3.0
    with pytest.raises(DeviceError):
        genesis.ones(()).add_(genesis.ones((), device=pretend))


# ---- traces


def _step_of_training(place):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 3)).to(place)
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-2)
    seen = genesis.zeros(3, device=place)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen[1:].add_(loss.detach())
        return loss

    return step, model, seen


def test_a_traced_step_of_training_is_the_step(pretend):
    found = {}
    for place in ("cpu", pretend):
        step, model, seen = _step_of_training(place)
        x, y = genesis.randn(16, 4, device=place), genesis.randint(0, 3, (16,), device=place)
        losses = [step(x, y).item() for _ in range(2)]
        graph = genesis.jit.trace(step, x, y).verify()
        assert all(v.spec.device == genesis.device(place) for v in graph.arguments)
        losses += [graph.replay(x, y).item() for _ in range(2)]
        losses += [genesis.jit.passes.optimized(graph).verify().replay(x, y).item()]
        found[place] = [*losses, *seen.tolist(), *[p.sum().item() for p in model.parameters()]]
        assert all(p.device.type == p.grad.device.type == x.device.type for p in model.parameters())
    np.testing.assert_allclose(found[pretend], found["cpu"], rtol=1e-4, atol=1e-6)


def test_a_trace_is_for_the_devices_it_was_made_with(pretend):
    graph = genesis.jit.trace(lambda x: x * 2 + genesis.arange(2, device=x.device), genesis.ones(2, device=pretend))
    assert graph.replay(genesis.ones(2, device=pretend)).tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match=rf"argument tensor 0 is f32\[2\], .* was traced with f32\[2\]@{pretend}"):
        graph.replay(genesis.ones(2))
    moving = genesis.jit.trace(lambda x: (x.to(pretend) * 3).cpu(), genesis.ones(2))
    assert [call.op for call in moving.nodes] == ["transfer", "mul", "transfer"]
    assert moving.replay(genesis.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]


def test_the_layout_of_a_captured_tensor_is_guarded(pretend):
    w = genesis.ones(2, 3, device=pretend)
    graph = genesis.jit.trace(lambda x: x * w, genesis.ones(2, 3, device=pretend))
    w.data = genesis.ones(3, 2, device=pretend).t()
    with pytest.raises(RuntimeError, match="a captured tensor"):
        graph.replay(genesis.ones(2, 3, device=pretend))


def test_memory_that_is_written_to_and_seen_twice_is_refused(pretend):
    base = genesis.zeros(4, device=pretend)
    with pytest.raises(RuntimeError, match="shares its memory"):
        genesis.jit.trace(lambda x, y: x.add_(y), base[:2], base[2:])


def test_ranks_combine_what_is_on_a_device_by_way_of_the_host(pretend):
    dist.init_process_group()
    try:
        x, out = genesis.arange(4.0, device=pretend), genesis.zeros(1, 4, device=pretend)
        part = x[::2]
        dist.all_reduce(part, op=dist.ReduceOp.AVG)
        dist.all_gather_into_tensor(out, x)
        assert out.device == genesis.device(pretend) and out.tolist() == [[0.0, 1.0, 2.0, 3.0]]
        with pytest.raises(GraphError, match="has a history"):
            dist.all_reduce(x.requires_grad_() * 2)
    finally:
        dist.destroy_process_group()
