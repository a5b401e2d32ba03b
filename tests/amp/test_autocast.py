"""autocast: the precision of each op, casts that are recorded and cached, modes restored in backward."""

from __future__ import annotations

import threading

import pytest

import genesis as torch
from genesis.amp import custom_bwd, custom_fwd

bf16, f32, f64 = torch.bfloat16, torch.float32, torch.float64


def test_products_are_low_losses_float32_everything_else_as_it_comes():
    a, b = torch.rand(3, 3, requires_grad=True), torch.rand(3, 3)
    F = torch.nn.functional
    with torch.autocast():
        low = a @ b
        assert (
            low.dtype
            == bf16
            == torch.mm(a, b).dtype
            == F.linear(a, b).dtype
            == torch.einsum("ij,jk->ik", a, b).dtype
            == torch.bmm(a[None], b[None]).dtype
        )
        assert low.prod().dtype == f32 == F.mse_loss(low, b).dtype and low.sum().dtype == bf16 == low.exp().dtype
        assert (
            (low * 2).dtype == bf16 == torch.relu(low).dtype and (low + b).dtype == f32 and low.reshape(9).dtype == bf16
        )
        assert (a.double() @ b.double()).dtype == f64 and torch.arange(3).sum().dtype == torch.int64
    assert (a @ b).dtype == f32 and low.exp().dtype == bf16


def test_gradients_have_the_dtype_of_their_tensors_and_backward_may_run_inside_or_outside():
    x, w = torch.rand(4, 3), torch.rand(3, 2, requires_grad=True)
    grads = []
    for inside in (True, False):
        w.grad = None
        with torch.autocast():
            loss = ((x @ w) ** 2).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert w.grad.dtype == f32
        grads.append(w.grad)
    exact = (2 * x.T @ (x @ w)).detach()
    assert torch.equal(*grads) and torch.allclose(grads[0], exact, rtol=0.05)


def test_nested_regions_and_exceptions():
    a = torch.rand(2, 2)
    with torch.autocast(dtype=torch.float16):
        assert (a @ a).dtype == torch.float16 and torch.get_autocast_dtype() == torch.float16
        with torch.autocast(enabled=False):
            assert (a @ a).dtype == f32 and not torch.is_autocast_enabled()
        with pytest.raises(ZeroDivisionError), torch.autocast("cpu", bf16):
            assert (a @ a).dtype == bf16
            1 / 0  # noqa: B018
        assert (a @ a).dtype == torch.float16
    assert not torch.is_autocast_enabled() and (a @ a).dtype == f32


def test_decorator_and_wrong_arguments():
    @torch.autocast(dtype=bf16)
    def product(a):
        return a @ a

    assert product(torch.rand(2, 2)).dtype == bf16 and product.__name__ == "product"
    with pytest.raises(
        ValueError, match=r"genesis.float32 is no low precision\n  try: genesis.bfloat16 or genesis.float16"
    ):
        torch.set_autocast_dtype("cpu", f32)
    with pytest.raises(RuntimeError, match="autocast: 'gpu' is no type of device"):
        torch.autocast("gpu")


@pytest.mark.parametrize("dtype", [f32, torch.float64, torch.int64])
def test_of_a_dtype_that_is_no_low_precision_nothing_is_cast(dtype):
    a = torch.rand(2, 2)
    with pytest.warns(UserWarning, match=f"autocast: {dtype} is no low precision.* nothing is cast") as seen:
        mode = torch.autocast("cpu", dtype=dtype)
    assert len(seen) == 1 and seen[0].filename == __file__
    with torch.autocast("cpu"):
        with mode:
            assert not torch.is_autocast_enabled() and (a @ a).dtype == f32
        assert (a @ a).dtype == bf16


@pytest.mark.parametrize("dtype", [f32, torch.float64, torch.int64])
def test_autocast_that_is_off_takes_any_dtype(dtype):
    a = torch.rand(2, 2)

    @torch.autocast("cpu", dtype=dtype, enabled=False)
    def product(a):
        return a @ a

    assert product(a).dtype == f32
    with torch.autocast("cpu", dtype=bf16):
        with torch.autocast("cpu", dtype=dtype, enabled=False):
            assert not torch.is_autocast_enabled()
            assert (a @ a).dtype == product(a).dtype == f32
        assert (a @ a).dtype == bf16


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", "xpu"])
def test_nothing_is_cast_for_devices_that_are_not_there(device):
    a = torch.rand(2, 2)
    with pytest.warns(UserWarning, match=f"autocast: there is no '{device[:4].rstrip(':')}' here, nothing is cast"):
        context = torch.autocast(device, dtype=torch.float16)
    with context:
        assert (a @ a).dtype == f32
    with torch.autocast(), torch.autocast(device, enabled=False):  # that of the CPU goes on
        assert (a @ a).dtype == bf16
    with torch.autocast(device, enabled=False), torch.autocast():
        assert (a @ a).dtype == bf16

    @torch.autocast(device, dtype=f32, enabled=False)
    def product(a):
        return a @ a

    assert product(a).dtype == f32 and not torch.is_autocast_enabled()


def test_the_module_attribute_switches_the_default():
    a = torch.rand(2, 2)
    assert torch.enable_autocast is False
    torch.enable_autocast = True
    try:
        assert torch.enable_autocast is True and (a @ a).dtype == bf16
        with torch.autocast(enabled=False):
            assert (a @ a).dtype == f32
        assert (a @ a).dtype == bf16
    finally:
        torch.enable_autocast = False
    assert (a @ a).dtype == f32 and "enable_autocast" in dir(torch)


def test_a_mode_belongs_to_its_thread():
    seen = []
    with torch.autocast():
        thread = threading.Thread(target=lambda: seen.append((torch.rand(2, 2) @ torch.rand(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [f32]


def test_a_parameter_is_cast_once_in_a_region():
    w = torch.rand(2, 2, requires_grad=True)

    def casts(loss):
        seen, stack = set(), [loss.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack += [n for n, _ in node.next_functions]
        return sum("Convert" in node.name() for node in seen)

    with torch.autocast():
        twice = (w @ w).sum()
        assert casts(twice) == 1
        with torch.no_grad():
            w.mul_(2.0)
        assert torch.equal((torch.eye(2) @ w).float(), w.to(bf16).float())  # a write makes the cast stale
    with torch.autocast(cache_enabled=False):
        assert casts((w @ w).sum()) == 2
    with torch.autocast():
        with torch.no_grad():
            w @ w  # noqa: B018
        assert (w @ w).requires_grad


class Product(torch.Function):
    seen = []

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        Product.seen.append(((a @ b).dtype, a.dtype))
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        Product.seen.append((g @ b.T).dtype)
        return g @ b.T, a.T @ g


def test_the_backward_of_a_function_runs_in_the_mode_of_its_forward():
    a, b = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
    Product.seen.clear()
    with torch.autocast():
        y = Product.apply(a, b)
    y.sum().backward()
    assert Product.seen == [(bf16, f32), bf16] and a.grad.dtype == f32
    Product.seen.clear()
    y = Product.apply(a, b)
    with torch.autocast():
        y.sum().backward()
    assert Product.seen == [(f32, f32), f32]


@pytest.mark.parametrize(
    ("policy", "dtype"),
    [("low", bf16), ("float32", f32), (torch.float16, torch.float16), ("preserve", f32), ("promote", f32)],
)
def test_amp_policy(policy, dtype):
    class Policy(Product):
        amp_policy = policy

    a, b = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
    Product.seen.clear()
    with torch.autocast():
        y = Policy.apply(a, b)
    assert y.dtype == dtype and Product.seen == [(dtype, dtype)]
    y.sum().backward()
    assert a.grad.dtype == b.grad.dtype == f32 and torch.allclose(a.grad, b.sum(1).expand(2, 2), rtol=0.02)


def test_custom_fwd_and_custom_bwd():
    class Cast(torch.Function):
        @staticmethod
        @custom_fwd(cast_inputs=f32)
        def forward(ctx, a):
            assert not torch.is_autocast_enabled() and a.dtype == f32
            return a @ a

        @staticmethod
        @custom_bwd
        def backward(ctx, g):
            return g

    class Plain(Cast):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, a):
            return a @ a

    x = torch.rand(2, 2, requires_grad=True)
    with torch.autocast():
        assert Cast.apply(x.to(bf16)).dtype == f32 and Plain.apply(x).dtype == bf16
        Cast.apply(x.to(bf16)).sum().backward()
    assert x.grad.dtype == f32
    assert Plain.apply(x).dtype == f32


def test_training_in_bfloat16_converges():
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = x @ torch.randn(4, 1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(150):
        with torch.autocast(dtype=bf16):
            loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 20 and all(p.dtype == f32 for p in model.parameters())


@pytest.mark.parity
@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "linear",
        "conv",
        "softmax",
        "log_softmax",
        "mse_loss",
        "l1_loss",
        "cross_entropy",
        "prod",
        "relu",
        "add",
        "mul",
        "cat",
        "reshape",
        "gelu",
        "tanh",
        "sigmoid",
        "where",
        "layer_norm",
        "batch_norm",
        "batch_norm of 16 bits",
        "instance_norm of 16 bits",
    ],
)
def test_the_same_precision_as_pytorch_where_both_agree_on_the_cpu(name):
    reference = pytest.importorskip("torch")
    if name == "conv":
        pytest.skip("convolutions are not there yet")
    calls = {
        "matmul": lambda t, a: t.matmul(a, a),
        "mm": lambda t, a: t.mm(a, a),
        "bmm": lambda t, a: t.bmm(a[None], a[None]),
        "addmm": lambda t, a: t.addmm(a, a, a),
        "linear": lambda t, a: t.nn.functional.linear(a, a),
        "softmax": lambda t, a: t.softmax(a, -1),
        "log_softmax": lambda t, a: t.log_softmax(a, -1),
        "mse_loss": lambda t, a: t.nn.functional.mse_loss(a, a),
        "l1_loss": lambda t, a: t.nn.functional.l1_loss(a, a),
        "cross_entropy": lambda t, a: t.nn.functional.cross_entropy(a, a.softmax(-1)),
        "prod": lambda t, a: a.prod(),
        "relu": lambda t, a: a.relu(),
        "add": lambda t, a: a + (a @ a),
        "mul": lambda t, a: a * a,
        "cat": lambda t, a: t.cat([a, a]),
        "reshape": lambda t, a: a.reshape(-1),
        "gelu": lambda t, a: t.nn.functional.gelu(a),
        "tanh": lambda t, a: a.tanh(),
        "sigmoid": lambda t, a: a.sigmoid(),
        "where": lambda t, a: t.where(a > 0, a, a),
        "layer_norm": lambda t, a: t.nn.functional.layer_norm(a, (3,)),
        "batch_norm": lambda t, a: t.nn.BatchNorm1d(3)(a),
        "batch_norm of 16 bits": lambda t, a: t.nn.BatchNorm1d(3)(a @ a),
        "instance_norm of 16 bits": lambda t, a: t.nn.InstanceNorm1d(3, affine=True)((a @ a)[None]),
    }
    dtypes = []
    for lib in (torch, reference):
        a = lib.ones(3, 3)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            dtypes.append(str(calls[name](lib, a).dtype).split(".")[1])
    assert dtypes[0] == dtypes[1]
