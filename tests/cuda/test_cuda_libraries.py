"""NVIDIA's libraries, by stand-ins on the emulated device that refuse what the real ones refuse."""

from __future__ import annotations

import importlib
import inspect
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from kernels_of import emulated, same
from library_stand_ins import DTYPES, CublasLt, Cudnn, Nccl

import genesis
import genesis as torch
from genesis.cuda.libraries import cublaslt, cudnn, loading, nccl
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.nn import functional as F


@pytest.fixture
def products():
    with emulated() as driver:
        lt = CublasLt(driver)
        with loading.standing_in(cublaslt=lt):
            yield lt


def tensors(*shapes, dtype="float32"):
    genesis.manual_seed(1)
    return [genesis.randn(*shape).to(getattr(genesis, dtype)) for shape in shapes]


FORMS = {  # a function, shapes, and the products (batch, rows, columns, whether there is a bias) that it is
    "rows": (lambda x, y: x @ y, [(5, 7), (7, 3)], [(1, 5, 3, False)]),
    "columns": (lambda x, y: x.t() @ y.t(), [(7, 5), (3, 7)], [(1, 5, 3, False)]),
    "a part of more": (lambda x, y: x[:, 1:8] @ y[:, :3], [(5, 9), (7, 4)], [(1, 5, 3, False)]),
    "one column": (lambda x, y: x @ y, [(5, 7), (7, 1)], [(1, 5, 1, False)]),
    "one row": (lambda x, y: x[:1] @ y.t(), [(5, 7), (3, 7)], [(1, 1, 3, False)]),
    "an inner dimension of one": (lambda x, y: x @ y, [(5, 1), (1, 3)], [(1, 5, 3, False)]),
    "a batch": (lambda x, y: x @ y, [(4, 5, 7), (4, 7, 3)], [(4, 5, 3, False)]),
    "a batch that shares one side": (lambda x, y: x @ y, [(5, 7), (4, 7, 3)], [(4, 5, 3, False)]),
    "all rows of a batch": (lambda x, y: x @ y, [(4, 5, 7), (7, 3)], [(1, 20, 3, False)]),
    "turned batches": (lambda x, y: x.transpose(1, 2) @ y.transpose(1, 2), [(2, 7, 5), (2, 3, 7)], [(2, 5, 3, False)]),
    "a layer": (F.linear, [(4, 5, 7), (3, 7)], [(1, 20, 3, False)]),
    "a layer with a bias": (F.linear, [(4, 5, 7), (3, 7), (3,)], [(1, 20, 3, True)]),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", FORMS)
def test_products_are_those_of_the_cpu(name, dtype, products):
    function, shapes, wanted = FORMS[name]
    same(
        function,
        *tensors(*shapes, dtype=dtype),
        tolerance=1e-12 if dtype == "float64" else 1e-5 if dtype == "float32" else 2e-2,
    )
    assert products.products == [(*each[:3], dtype, each[3]) for each in wanted]


def test_small_products_are_tiles(products):
    """Of float32; those of 16 bits, and larger or longer ones, are cuBLASLt's."""
    shapes = (24, 40), (32, 40), (32,)
    same(F.linear, *tensors(*shapes), tolerance=1e-4)
    assert products.products == []
    for function, given in [
        (F.linear, tensors(*shapes, dtype="bfloat16")),
        (F.linear, tensors((24, 2100), (32, 2100), (32,))),
        (lambda x, y: x @ y, tensors((300, 20), (20, 300))),
    ]:
        function(*[t.to("cuda") for t in given])
        assert len(products.products) == 1
        products.products.clear()


def test_gradients_and_a_second_call(products):
    def gradients(x, w, b):
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        F.linear(x, w, b).square().sum().backward()
        return x.grad, w.grad, b.grad

    for _ in range(2):
        same(gradients, *tensors((6, 7), (3, 7), (3,)), tolerance=1e-5)
    assert len(products.products) == 6 and len(products.algorithms) == 3  # plans are kept


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_again_and_again(dtype, products, monkeypatch):
    """What is remembered of a product is how its operands lie: addresses are those of the call, also where they begin anywhere,
    and so is who computes it.
    """
    real = cublaslt.Repeated.run
    repeated = []

    def run(*args):
        repeated.append(args)
        return real(*args)

    monkeypatch.setattr(cublaslt.Repeated, "run", run)
    for function, shapes in [(F.linear, [(5, 8), (4, 8), (4,)]), (lambda x, y: x @ y, [(5, 8), (8, 4)])]:
        repeated.clear()
        for begin in (0, 0, 1, 0, 3, 8):
            given = [genesis.randn(*shape).to(getattr(genesis, dtype)) for shape in shapes]
            before = genesis.zeros(begin, dtype=given[0].dtype)
            there = [genesis.cat([before, t.flatten()]).to("cuda")[begin:].view(t.shape) for t in given]
            wanted = function(*[t.double() for t in given])
            difference = (function(*there).cpu().double() - wanted).abs().max().item()
            assert difference < (1e-5 if dtype == "float32" else 0.1)
        # those that begin off the multiples of 16 bytes lie in another way; of 16 bits they are not repeated
        assert len(repeated) == (4 if dtype == "float32" else 3)
        count = len(products.products)
        with loading.standing_in():
            loading._stand_ins.clear()
            assert (function(*there).cpu().double() - wanted).abs().max().item() < 0.1  # by tiles
        assert len(products.products) == count


def test_what_it_has_no_kernel_for_is_done_by_tiles():
    with emulated() as driver:
        lt = CublasLt(driver, unsupported=("float32",))
        with loading.standing_in(cublaslt=lt):
            same(lambda x, y: x @ y, *tensors((5, 7), (7, 3)), tolerance=1e-5)
            same(lambda x, y: x @ y, *tensors((5, 7), (7, 3)), tolerance=1e-5)
    assert lt.products == []


def test_an_operand_that_lies_otherwise_is_done_by_tiles(products):
    same(lambda x, y: x[:, ::2] @ y, *tensors((5, 14), (7, 3)), tolerance=1e-5)
    same(lambda x, y: x[:, :1].expand(5, 7) @ y, *tensors((5, 14), (7, 3)), tolerance=1e-5)
    assert products.products == []


def test_memory_that_begins_anywhere(products):
    """What the library was told of the alignment is so; other addresses are another plan."""
    x, y = tensors((6, 8), (8, 4))
    for first in (0, 1, 2, 4):
        same(lambda a, b, first=first: a.reshape(-1)[first : first + 40].view(5, 8) @ b, x, y, tolerance=1e-5)
    assert len(products.products) == 4 and len(products.algorithms) == 3  # 0 and 4 elements are multiples of 16 bytes


def test_a_compiled_step_records_it(products):
    w = genesis.randn(3, 7, device="cuda")
    step = genesis.compile(lambda x: F.linear(x, w).relu())
    for _ in range(4):
        x = genesis.randn(5, 7)
        np.testing.assert_allclose(
            step(x.to("cuda")).cpu().numpy(), F.linear(x, w.cpu()).relu().numpy(), rtol=1e-5, atol=1e-5
        )
    (entry,) = step._recent
    assert entry.step.graphs == 1 and len(products.products) == 2  # the first call, and the recording


def test_threads_have_their_own_biases(products):
    """Where a bias lies is written into a description that all share."""
    wrong = []

    def work(number):
        x, w, b = genesis.ones(4, 8), genesis.full((3, 8), float(number)), genesis.full((3,), 100.0 * number)
        there = [t.to("cuda") for t in (x, w, b)]
        for _ in range(20):
            y = F.linear(*there).tolist()
            if y != [[108.0 * number] * 3] * 4:
                wrong.append((number, y))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(products.products) == 80


def test_a_library_that_does_not_start_is_done_without():
    class Broken:
        def create(self):
            raise RuntimeError("no kernel image")

    with emulated(), loading.standing_in(cublaslt=Broken()):
        same(lambda x, y: x @ y, *tensors((5, 7), (7, 3)), tolerance=1e-5)
        assert loading.library("cublaslt") is None and loading.why_none("cublaslt") == "RuntimeError: no kernel image"


def test_which_are_used(monkeypatch):
    with using(Emulated(1)), loading.standing_in(cublaslt="a module"):
        assert loading.library("cublaslt") == "a module" and loading.why_none("cublaslt") == ""
        assert loading.library("cudnn") is None and "no GPU" in loading.why_none("cudnn")
        for value, known in (("none", False), ("cudnn", False), ("cudnn,cublaslt", True)):
            monkeypatch.setenv("GENESIS_CUDA_LIBRARIES", value)
            with loading.standing_in():
                assert (loading.library("cublaslt") is not None) == known


def test_an_import_that_fails_is_a_reason():
    class Real(Emulated):
        emulated = False

    with using(Real(1)), pytest.MonkeyPatch.context() as patch:
        patch.setitem(loading.MODULES, "cublaslt", "genesis.no_such_module")
        assert loading.library("cublaslt") is None and "no_such_module" in loading.why_none("cublaslt")


# ---- cuDNN


@pytest.fixture
def graphs():
    with emulated() as driver:
        dnn = Cudnn(driver)
        with loading.standing_in(cudnn=dnn):
            yield dnn


def with_gradients(function):
    def computed(*inputs):
        inputs = [x.detach().requires_grad_() for x in inputs]
        out = function(*inputs)
        out.float().square().sum().backward()
        return out, *[x.grad for x in inputs]

    return computed


@contextmanager
def by_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextmanager
def by_cudnn():
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = False


@pytest.mark.parametrize("way", [by_algorithms, by_cudnn, lambda: torch.backends.cudnn.flags(deterministic=True)])
def test_the_gradient_of_attention_is_deterministic_where_that_is_asked_for(way, graphs):
    x = genesis.rand(1, 2, 8, 16, device="cuda").to(genesis.bfloat16).requires_grad_()
    loss = lambda: F.scaled_dot_product_attention(x, x, x).float().sum()
    loss().backward()
    assert not torch.backends.cudnn.deterministic and not torch.are_deterministic_algorithms_enabled()
    with way():
        loss().backward()
        loss().backward()
    loss().backward()
    assert graphs.deterministic == [False, True] and graphs.done.count("sdpa_backward") == 4


ATTENTION = {
    "heads": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [(2, 4, 5, 16)] * 3),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 4, 7, 16)] * 3),
    "a scale": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.5), [(1, 1, 5, 8)] * 3),
    "turned": (
        lambda q, k, v: F.scaled_dot_product_attention(*[x.transpose(1, 2) for x in (q, k, v)], is_causal=True),
        [(2, 5, 4, 16)] * 3,
    ),
    "shared keys": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [(2, 4, 5, 16), (2, 2, 6, 16), (2, 2, 6, 8)],
    ),
    "one batch": (F.scaled_dot_product_attention, [(5, 16)] * 3),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_by_cudnn(name, dtype, graphs):
    function, shapes = ATTENTION[name]
    for _ in range(2):
        same(with_gradients(function), *tensors(*shapes, dtype=dtype), tolerance=6e-2 if dtype == "bfloat16" else 1e-2)
    assert graphs.done == ["sdpa", "sdpa_backward"] * 2 and graphs.graphs == 2  # built once


@pytest.mark.parametrize("shape", [(1, 2, 5, 12), (1, 2, 5, 16)])
def test_attention_that_cudnn_has_not(shape, graphs):
    dtype = "bfloat16" if shape[-1] == 12 else "float32"
    same(F.scaled_dot_product_attention, *tensors(*[shape] * 3, dtype=dtype), tolerance=2e-2)
    assert graphs.done == []


def test_gradients_of_attention_that_cudnn_refuses():
    """The kernels go on from what cuDNN kept, and why it refused is written down."""
    with emulated() as driver:
        dnn = Cudnn(driver, refused=("sdpa_backward",))
        with loading.standing_in(cudnn=dnn):
            function, shapes = ATTENTION["causal"]
            same(with_gradients(function), *tensors(*shapes, dtype="float16"), tolerance=1e-2)
        assert dnn.done == ["sdpa"]
        assert cudnn.refused["gradients of attention"].startswith("NotSupported: no engine, of float16 (")


CONVOLUTIONS = {
    "plain": (F.conv2d, [(2, 8, 6, 7), (4, 8, 3, 3)], {}, False),
    "a bias": (F.conv2d, [(2, 8, 6, 7), (4, 8, 3, 3), (4,)], {"padding": 1}, False),
    "strides": (
        F.conv2d,
        [(2, 8, 9, 7), (4, 8, 3, 2)],
        {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)},
        False,
    ),
    "groups": (F.conv2d, [(2, 8, 6, 7), (4, 4, 3, 3)], {"groups": 2}, False),
    "volumes": (F.conv3d, [(1, 2, 4, 5, 4), (3, 2, 2, 3, 2)], {}, False),
    "transposed": (F.conv_transpose2d, [(2, 4, 5, 5), (4, 3, 3, 3)], {"stride": 2, "output_padding": 1}, True),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_by_cudnn(name, graphs):
    function, shapes, options, back = CONVOLUTIONS[name]
    call = with_gradients(lambda *x: function(*x, **options))
    same(call, *tensors(*shapes, dtype="float16"), tolerance=5e-2)
    ops = ["conv_dgrad" if back else "conv_fprop", "conv_fprop" if back else "conv_dgrad", "conv_wgrad"]
    assert sorted(graphs.done) == sorted(ops)


def test_convolutions_of_channels_that_lie_together(graphs):
    x, w = tensors((2, 8, 6, 7), (4, 8, 3, 3), dtype="float16")
    last = genesis.channels_last

    def run(x, w):
        return F.conv2d(x.to(memory_format=last), w.to(memory_format=last))

    same(run, x, w, tolerance=2e-2)
    assert graphs.done == ["conv_fprop"]


@pytest.mark.parametrize("last", [False, True])
def test_cudnn_gets_no_filters_that_are_transposed(last, graphs):
    """Nor gradients that are one number everywhere: both are copied."""
    x, w = tensors((2, 4, 5, 5), (8, 4, 3, 3), dtype="float16")

    def run(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        seen = x.to(memory_format=genesis.channels_last) if last else x
        y = F.conv_transpose2d(seen, w.transpose(0, 1), stride=2)
        y.sum().backward()
        return y.detach(), x.grad, w.grad

    same(run, x, w, tolerance=5e-2)
    assert sorted(graphs.done) == ["conv_dgrad", "conv_fprop", "conv_wgrad"]


def test_convolutions_that_cudnn_has_not():
    with emulated() as driver:
        dnn = Cudnn(driver, refused=("conv_fprop", "conv_wgrad", "conv_dgrad"))
        with loading.standing_in(cudnn=dnn):
            function, shapes, options, _ = CONVOLUTIONS["a bias"]
            same(with_gradients(lambda *x: function(*x, **options)), *tensors(*shapes, dtype="float16"), tolerance=5e-2)
            same(F.conv1d, *tensors((2, 8, 6), (4, 8, 3), dtype="float16"), tolerance=2e-2)
            same(function, *tensors(*shapes), tolerance=1e-5)
        assert dnn.done == [] and dnn.graphs == 3


def test_the_real_package_takes_the_graphs_that_are_described():
    """Where it is installed, tensors and ops are described to it: names of arguments are its own. Nothing is built."""
    try:
        cudnn = importlib.import_module("cudnn")
        half, wide = cudnn.data_type.BFLOAT16, cudnn.data_type.FLOAT
    except Exception as error:
        pytest.skip(f"nvidia-cudnn-frontend is not installed: {error}")
    assert {"A", "FALLBACK"} <= set(cudnn.heur_mode.__members__) and callable(cudnn.set_stream)

    def described(*shapes):
        graph = cudnn.pygraph(io_data_type=half, intermediate_data_type=wide, compute_data_type=wide, handle=None)
        steps = [[int(np.prod(s[i + 1 :])) for i in range(len(s))] for s in shapes]
        return graph, [
            graph.tensor(dim=list(s), stride=t, data_type=half, uid=i + 1) for i, (s, t) in enumerate(zip(shapes, steps, strict=True))
        ]  # fmt: skip

    rows = (2, 4, 16, 64)
    graph, (q, k, v) = described(rows, rows, rows)
    out, total = graph.sdpa(q=q, k=k, v=v, generate_stats=True, attn_scale=0.1, use_causal_mask=True)
    assert (out.get_dim(), total.get_dim()) == ([*rows], [*rows[:3], 1])
    graph, (q, k, v, o, g, s) = described(*[rows] * 5, (*rows[:3], 1))
    made = graph.sdpa_backward(q=q, k=k, v=v, o=o, dO=g, stats=s, attn_scale=0.1, use_causal_mask=True,
                               use_deterministic_algorithm=True)  # fmt: skip
    assert [t.get_dim() for t in made] == [[*rows]] * 3
    rules = {"stride": [2, 1], "padding": [1, 1], "dilation": [1, 1]}
    graph, (x, w, b) = described((2, 8, 9, 9), (16, 8, 3, 3), (1, 16, 1, 1))
    y = graph.bias(input=graph.conv_fprop(image=x, weight=w, **rules), bias=b)
    y.set_output(True).set_uid(4).set_data_type(half).set_dim([2, 16, 5, 9]).set_stride([720, 45, 9, 1])
    graph.conv_dgrad(loss=y, filter=w, **rules)
    graph.conv_wgrad(image=x, loss=y, **rules)


# ---- NCCL; `tests/distributed` has what ranks do with it


def test_names_and_numbers_are_those_of_nccl():
    try:
        real = importlib.import_module("nccl.bindings.nccl")
    except ImportError as error:
        pytest.skip(f"nccl4py is not installed: {error}")
    named = {"bool": "Uint8"}
    assert {k: int(real.DataType[named.get(k, k.capitalize())]) for k in nccl.KINDS} == nccl.KINDS
    short = {"product": "Prod"}
    assert {op: int(real.RedOp[short.get(op, op.capitalize())]) for op in nccl.OPS} == nccl.OPS
    assert len(bytes(real.UniqueId())) == nccl.UNIQUE
    assert bytes(real.UniqueId.from_buffer(bytearray(range(128)))) == bytes(range(128))
    for name in ("all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "comm_init_rank", "comm_destroy"):
        said = getattr(real, name).__doc__.split("(", 1)[1].split(")")[0]
        assert len(said.split(",")) == len(inspect.signature(getattr(Nccl, name)).parameters) - 1, name


# ---- cuBLASLt's package


def test_names_and_numbers_are_those_of_the_package():
    """Where the package is installed: it can be imported without a GPU."""
    try:
        lt = importlib.import_module("nvmath.bindings.cublasLt")
        blas, nvmath = importlib.import_module("nvmath.bindings.cublas"), importlib.import_module("nvmath")
    except ImportError as error:
        pytest.skip(f"nvmath-python is not installed: {error}")
    for name in ("Epilogue", "MatmulDescAttribute", "MatrixLayoutAttribute", "MatmulPreferenceAttribute"):
        for member in getattr(CublasLt, name):
            assert getattr(lt, name)[member.name] == member, (name, member)
    assert lt.matmul_heuristic_result_dtype == CublasLt.matmul_heuristic_result_dtype
    assert {nvmath.CudaDataType(k).name: k for k in DTYPES} == {
        "CUDA_R_16F": 2, "CUDA_R_16BF": 14, "CUDA_R_32F": 0, "CUDA_R_64F": 1,
    }  # fmt: skip
    assert (blas.ComputeType.COMPUTE_32F, blas.ComputeType.COMPUTE_64F) == (cublaslt.COMPUTE_32F, cublaslt.COMPUTE_64F)
    assert (blas.Operation.N, blas.Operation.T) == (cublaslt.NORMAL, cublaslt.TRANSPOSED)
    for attributes, ask, sizes in (
        (lt.MatmulDescAttribute, lt.get_matmul_desc_attribute_dtype, CublasLt.sizes),
        (lt.MatrixLayoutAttribute, lt.get_matrix_layout_attribute_dtype, CublasLt.layout_sizes),
        (lt.MatmulPreferenceAttribute, lt.get_matmul_preference_attribute_dtype, CublasLt.preference_sizes),
    ):
        assert {a: np.dtype(ask(attributes(a))).itemsize for a in sizes} == sizes
    counts = {
        "create": 0, "matmul_desc_create": 2, "matmul_desc_set_attribute": 4, "matrix_layout_create": 4,
        "matrix_layout_set_attribute": 4, "matmul_preference_create": 0, "matmul_preference_set_attribute": 4,
        "matmul_preference_destroy": 1, "matmul_algo_get_heuristic": 10, "matmul": 16,
    }  # fmt: skip
    for name, count in counts.items():
        said = getattr(lt, name).__doc__.split("(", 1)[1].split(")")[0]
        assert len([a for a in said.split(",") if a.strip()]) == count, name
