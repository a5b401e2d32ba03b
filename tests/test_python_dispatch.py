"""What every operation passes below the gradients."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.core.graph.switches import ACTIVE
from genesis.debug.flop_counter import FlopCounterMode
from genesis.pytorch import installed
from genesis.utils.aten import packet
from genesis.utils.python_dispatch import BaseTorchDispatchMode, TorchDispatchMode, modes


class Named(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not genesis.is_grad_enabled() and all(x._node is None for x in args if isinstance(x, genesis.Tensor))
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def programs(lib):
    a, b = lib.ones(3, 4).requires_grad_(), lib.ones(4, 5).requires_grad_()
    return {
        "products": lambda: a @ b,
        "batches": lambda: lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5)),
        "linear": lambda: nn_of(lib).linear(a, lib.ones(5, 4), lib.ones(5)),
        "pointwise": lambda: ((a.detach() + a.detach()) * 2 - 1).relu().exp().tanh(),
        "reflected": lambda: (1 - a.detach()) ** 2 / 3,
        "compared": lambda: (a.detach() > 0, a.detach() == a.detach(), a.detach() <= 2.0),
        "sums": lambda: (a.detach().sum(), a.detach().sum(0), a.detach().mean(1, keepdim=True), a.detach().amax(0)),
        "softmax": lambda: (a.detach().softmax(-1), a.detach().log_softmax(0)),
        "shapes": lambda: (a.detach().view(4, 3), a.detach().permute(1, 0), lib.cat([a.detach(), a.detach()])),
        "where": lambda: lib.where(a.detach() > 0, a.detach(), a.detach()),
        "convolution": lambda: nn_of(lib).conv2d(lib.ones(1, 2, 5, 5), lib.ones(3, 2, 3, 3)),
        "converted": lambda: a.detach().to(lib.float64),
        "argmax": lambda: a.detach().argmax(1),
    }  # fmt: skip


def nn_of(lib):
    return lib.nn.functional


@pytest.mark.parity
@pytest.mark.parametrize("name", list(programs(genesis)))
def test_operations_have_the_names_that_pytorch_s_dispatcher_gives_them(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    theirs = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

    class Theirs(theirs):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    ours, other = programs(genesis)[name], programs(torch)[name]
    with Named() as mode:
        ours()
    with Theirs():
        other()
    bookkeeping = {
        "aten.detach.default",
        "aten.ones.default",
        "aten.t.default",
        "aten.transpose.int",
        "aten._unsafe_view.default",
        "aten.clone.default",
        "aten.permute.default",
    }
    kept = [
        [each for each in s if each not in bookkeeping or (name == "shapes" and "permute" in each)]
        for s in (mode.seen, seen)
    ]
    assert kept[0] == kept[1]


def test_forward_and_backward_pass_and_give_the_same_bits():
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x = genesis.randn(2, 5, 4)

    def gradients(mode):
        model.zero_grad()
        with mode:
            y = model(x)
            y.square().sum().backward()
        assert "Backward" in type(y.grad_fn).__name__ and not ACTIVE
        return [p.grad.numpy().copy() for p in model.parameters()]

    mode = Named()
    seen, counted, plain = gradients(mode), gradients(FlopCounterMode(display=False)), gradients(nullcontext())
    for a, b, c in zip(seen, counted, plain, strict=True):
        assert np.array_equal(a, b)  # as with any other mode: composites run in their parts
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-5)
    assert mode.seen.count("aten.addmm.default") == 2 and mode.seen.count("aten.mm.default") >= 3


def test_a_mode_may_compute_something_else():
    class Other(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is packet("sin").default:
                return args[0].cos()
            if func is packet("mm").default:
                return func(args[0] * 2, args[1])
            return func(*args, **(kwargs or {}))

    x = genesis.ones(2, 2)
    with Other():
        assert genesis.zeros(1).sin().item() == 1 and (x @ x).tolist() == [[4, 4], [4, 4]]
    assert (x @ x).tolist() == [[2, 2], [2, 2]]


def test_modes_nest_and_those_around_see_what_the_inner_one_calls():
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 2

    with Named() as outer, Doubled(), BaseTorchDispatchMode():
        assert len(modes()) == 3
        y = genesis.ones(2).exp()
    assert outer.seen == ["aten.exp.default", "aten.mul.Tensor"] and np.allclose(y.numpy(), 2 * np.e)


def test_other_threads_are_not_seen():
    with Named() as mode:
        thread = threading.Thread(target=lambda: genesis.ones(2).exp())
        thread.start()
        thread.join()
    assert mode.seen == []


def test_errors_are_those_of_the_operation_and_end_the_mode():
    with pytest.raises(RuntimeError, match="matmul"), Named():
        genesis.ones(2, 3) @ genesis.ones(2, 3)
    assert not ACTIVE

    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Silent returned NotImplemented"), Silent():
        genesis.ones(1).exp()


def test_names_are_found_where_programs_look_for_them():
    with installed() as torch:
        from torch._ops import OpOverload
        from torch.utils._python_dispatch import TorchDispatchMode as Found

        assert Found is TorchDispatchMode and isinstance(torch.ops.aten.add.Tensor, OpOverload)
        assert (
            torch.ops.aten.add.Tensor is packet("add").Tensor
            and torch.ops.aten.add.Tensor.overloadpacket is torch.ops.aten.add
        )
        assert torch.ops.aten.mm.default.name() == "aten::mm" and torch.ops.aten.add.Tensor.name() == "aten::add.Tensor"
        traced = torch.fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(x, 1))
        assert [n.name for n in traced.graph.nodes] == ["x", "add_tensor", "output"]
        assert traced(torch.ones(1)).item() == 2


def test_what_is_not_there_is_refused():
    class Wrapped(genesis.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return genesis.Tensor._make_wrapper_subclass(cls, elem.size())

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    for make in (lambda: Wrapped(genesis.ones(2)), lambda: genesis.Tensor._make_subclass(Wrapped, genesis.ones(2))):
        with pytest.raises(NotImplementedError, match="Wrapped: __torch_dispatch__ of a class is not asked"):
            make()
