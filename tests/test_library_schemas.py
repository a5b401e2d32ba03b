"""Operations declared by schemas, as `torch.library` shows it: `define`, `impl`, `Library`."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import genesis
from genesis import library
from genesis.library.schemas import parsed


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in list(library.operations._OPS):
        if name.startswith("mylib::"):
            library.remove(name)


def numpy_sin(x):
    return genesis.from_numpy(np.sin(x.detach().numpy()))


@pytest.mark.parametrize(("schema", "signature", "written"), [
    ("(Tensor x) -> Tensor", "(x: 'Tensor')", []),
    ("f(Tensor self, Scalar alpha=1) -> Tensor", "(self: 'Tensor', alpha: 'Scalar' = 1)", []),
    ("a::f(Tensor(a!) x, Tensor? y=None, *, float eps=1e-05) -> ()",
     "(x: 'Tensor', y: 'Tensor' = None, *, eps: 'float' = 1e-05)", ["x"]),
    ("(Tensor[] xs, int[2] size=[1, 2], str mode=\"mean\", bool b=False, str m=sum) -> (Tensor, Tensor)",
     "(xs: 'Tensor', size: 'int[2]' = [1, 2], mode: 'str' = 'mean', b: 'bool' = False, m: 'str' = 'sum')", []),
    ("f.out(Tensor x, SymInt? n=None, *, Tensor(b!) out) -> Tensor(b!)",
     "(x: 'Tensor', n: 'SymInt?' = None, *, out: 'Tensor')", ["out"]),
    ("() -> Tensor", "()", []),
])  # fmt: skip
def test_schemas(schema, signature, written):
    _, found, names = parsed(schema)
    assert (str(found), names) == (signature, written)


@pytest.mark.parametrize("schema", ["Tensor x -> Tensor", "(Tensor) -> Tensor", "(Tensor x", "(Tensor x, Tensor x) -> Tensor",
                                    "(Tensor x=1, Tensor y) -> Tensor"])  # fmt: skip
def test_what_is_no_schema(schema):
    with pytest.raises(ValueError, match=r"is no schema"):
        library.define("mylib::bad", schema)
    assert not hasattr(genesis.ops, "mylib")


def test_define_impl_and_everything_that_is_registered():
    library.define("mylib::sin", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="mylib::sin: has no kernel for cpu\n"):
        genesis.ops.mylib.sin(genesis.ones(2))
    library.impl("mylib::sin", "cpu")(numpy_sin)
    library.register_fake("mylib::sin", lambda x: genesis.empty_like(x))

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    library.register_autograd("mylib::sin", lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=keep)
    x = genesis.randn(3, dtype=genesis.float64, requires_grad=True)
    assert genesis.allclose(genesis.ops.mylib.sin(x), x.sin())
    assert genesis.allclose(genesis.ops.mylib.sin.default(x), x.sin())
    assert genesis.autograd.gradcheck(genesis.ops.mylib.sin, x)
    assert genesis.ops.mylib.sin(genesis.empty(2, device="meta")).shape == (2,)
    assert library.opcheck(genesis.ops.mylib.sin, (x,))["test_schema"] == "SUCCESS"
    graph = genesis.jit.trace(lambda x: genesis.ops.mylib.sin(x) + 1, x.detach())
    assert graph(x.detach()).tolist() == (x.sin() + 1).tolist()


def test_keyword_only_parameters_and_writes():
    library.define("mylib::put", "(Tensor x, *, float k=2.0, Tensor(a!) out) -> ()")

    @library.impl("mylib::put", "default")
    def put(x, k, out):
        out.copy_(x * k)

    out = genesis.zeros(2)
    version = out._version
    genesis.ops.mylib.put(genesis.ones(2), out=out)
    assert (out.tolist(), out._version > version) == ([2, 2], True)
    with pytest.raises(TypeError, match="mylib::put"):
        genesis.ops.mylib.put(genesis.ones(2), 3.0, out)


def test_a_library_is_gone_with_its_operations():
    lib = library.Library("mylib", "DEF")
    assert lib.define("double(Tensor x) -> Tensor") == "double"
    lib.impl("double", lambda x: x * 2)
    x = genesis.ones(2, requires_grad=True)
    genesis.ops.mylib.double(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    more = library.Library("mylib", "FRAGMENT")
    library.define("mylib::third", "(Tensor x) -> Tensor", lib=more)
    library.Library("mylib", "IMPL", "CPU").impl("third", lambda x: x.detach() / 3)
    assert genesis.ops.mylib.third(genesis.ones(1)).item() == pytest.approx(1 / 3)
    del more
    gc.collect()
    assert not hasattr(genesis.ops.mylib, "third")
    lib._destroy()
    assert not hasattr(genesis.ops, "mylib")
    with pytest.raises(ValueError, match="of the kind IMPL declares nothing"):
        library.Library("mylib", "IMPL").define("f(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="'aten' has no operations to be replaced"):
        library.Library("aten", "IMPL")
    with pytest.raises(ValueError, match="unknown kind 'NEW'"):
        library.Library("mylib", "NEW")
    with pytest.raises(ValueError, match=r"there is no operation 'mylib::none'"):
        library.impl("mylib::none", "cpu", numpy_sin)


def test_a_function_with_a_gradient_around_the_kernel():
    lib = library.Library("mylib", "DEF")
    lib.define("sin(Tensor x) -> Tensor")
    calls = []

    class Sin(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return genesis.ops.mylib.sin(x)

        @staticmethod
        def backward(ctx, g):
            calls.append("backward")
            return g * ctx.saved_tensors[0].cos()

    library.impl(lib, "sin", "CPU")(numpy_sin)
    lib.impl("sin", Sin.apply, "Autograd")
    lib.impl("sin", lambda x: genesis.empty_like(x), "Meta")
    x = genesis.randn(3, requires_grad=True)
    genesis.ops.mylib.sin(x).sum().backward()
    assert genesis.allclose(x.grad, x.cos())
    assert calls == ["backward"]


@pytest.mark.parity
def test_the_same_program_in_torch():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    from genesis.pytorch.modules import find

    outcomes = []
    for get in (lambda name: getattr(torch.library, name), lambda name: find("torch.library", name)):
        home = torch if not outcomes else genesis
        with get("_scoped_library")("mylib", "FRAGMENT") as lib:
            get("define")("mylib::add_scaled", "(Tensor x, Tensor y, *, float k=2.0) -> Tensor", lib=lib)
            get("impl")("mylib::add_scaled", ["cpu"], lambda x, y, k=2.0: x.detach() + k * y.detach(), lib=lib)
            get("register_fake")("mylib::add_scaled", lambda x, y, *, k=2.0: x + y, lib=lib)
            get("register_autograd")("mylib::add_scaled", lambda ctx, g: (g, g * 2.0), lib=lib)
            x = home.arange(3.0).requires_grad_()
            y = home.ops.mylib.add_scaled(x, x)
            y.sum().backward()
            outcomes.append((y.tolist(), x.grad.tolist()))
    assert outcomes[0] == outcomes[1]


def test_an_operation_of_a_function_and_a_schema():
    def total(*values):  # its own parameters do not count
        return genesis.from_numpy(sum(v.detach().numpy() for v in values))

    op = library.custom_op("mylib::total", total, mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor", tags=())
    assert str(op.signature) == "(a: 'Tensor', b: 'Tensor')" and op(b=genesis.ones(2), a=genesis.ones(2)).tolist() == [
        2,
        2,
    ]
    op.register_autograd(lambda ctx, g: (g, 2 * g))
    a = genesis.ones(2, requires_grad=True)
    (gradient,) = genesis.autograd.grad(op(genesis.zeros(2), a).sum(), a)
    assert gradient.tolist() == [2, 2]
    with pytest.raises(ValueError, match=r"mutates_args is \('a',\), the schema writes to \[\]"):
        library.custom_op("mylib::wrong", total, mutates_args=("a",), schema="(Tensor a) -> Tensor")
