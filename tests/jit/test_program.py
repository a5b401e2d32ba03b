"""Programs are data: compared, hashed, stored, bound to other tensors; the memory of their values is known."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import genesis
from genesis import jit, nn
from genesis.jit.arguments import Stream, from_plain, refused, to_plain
from genesis.jit.program import Call, Program

X = genesis.tensor(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
Y = genesis.tensor([0, 1, 2, 0, 1, 2])


def training(seed=0, dropout=0.3):
    genesis.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(X, Y)
    return model, optimizer, step


def varied(x):
    """A function whose program has arguments of all kinds."""
    a = genesis.arange(4).float()
    y = genesis.stack([x.reshape(2, 3)[:, 1:], x.double().float().reshape(3, 2).t()[..., ::2].expand(2, 2)])
    y = (
        y.sum((0, 1))
        + genesis.rand(2) * a[:2]
        + x.view(genesis.int32).sum() * float("inf")
        + genesis.nan_to_num(x, nan=float("nan"))[:2]
    )
    return y, x[None, 1:3], "text", 1.5, None, genesis.float16


# ---- arguments


GRAMMAR = [
    True,
    1,
    1.0,
    -0.0,
    float("inf"),
    2**70,
    1 + 2j,
    complex("nan"),
    "a\u2028b",
    None,
    ...,
    slice(1, None, 2),
    np.dtype(np.int8),
    genesis.bfloat16.np,
    genesis.bfloat16,
    genesis.device("cpu"),
    Stream(1, 2),
    (),
    (1, (2.0, [None, "x"])),
    [1, [2]],
]


@pytest.mark.parametrize("value", GRAMMAR, ids=repr)
def test_the_grammar_of_arguments_in_json_and_back(value):
    assert refused(value) is None
    again = from_plain(json.loads(json.dumps(to_plain(value, int), allow_nan=False)), int)
    assert type(again) is type(value) and repr(again) == repr(value)


def test_different_arguments_are_different_in_json():
    seen = [
        json.dumps(to_plain(value, int))
        for value in [*GRAMMAR, 1.5, 0.0, False, "1", {}.get, slice(None), slice(0), (1,), [1], ((1,),), "None"]
        if not callable(value)
    ]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1),
        {1: 2},
        {1},
        object(),
        np.ones(2),
        b"x",
        genesis.Size([1]),
        slice(1.0),
        (1, [np.int64(2)]),
        lambda: 0,
    ],
)
def test_what_is_no_argument(value):
    assert refused(value) is not None
    x = jit.Var(genesis.arrays.spec.Spec((2,), np.dtype(np.float32)))
    with pytest.raises(RuntimeError, match=r"verify: an argument of sum is .* is no argument of a program"):
        Program("f", (Call("sum", (x, value), (jit.Var(x.spec),)),), (x,)).verify()


def test_numbers_of_numpy_are_numbers_and_other_objects_are_refused():
    graph = jit.trace(lambda x: x[np.int64(1) :] * np.float32(0.5), X)
    assert genesis.equal(graph.replay(X), X[1:] * 0.5)

    @genesis.library.custom_op("tests::labelled", mutates_args=())
    def labelled(x: genesis.Tensor, labels: dict) -> genesis.Tensor:
        return x * len(labels)

    labelled.register_fake(lambda x, labels: genesis.empty_like(x))
    try:
        with pytest.raises(
            NotImplementedError,
            match=r"tests::labelled: is called with \{'a': 1\}, and a dict is no argument in a traced graph",
        ):
            jit.trace(lambda x: labelled(x, {"a": 1}), X)
    finally:
        genesis.library.remove("tests::labelled")


def test_operations_of_users_are_found_by_name():
    def declare():
        @genesis.library.custom_op("tests::sum_of", mutates_args=())
        def sum_of(x: genesis.Tensor, y: genesis.Tensor | float) -> genesis.Tensor:
            return x.detach() + y

        sum_of.register_fake(lambda x, y: genesis.empty_like(x))
        return sum_of

    f = lambda x: genesis.ops.tests.sum_of(x, 2.0) * genesis.ops.tests.sum_of(x, x)  # noqa: E731
    x, digests, data = genesis.ones(2), set(), None
    for order in ((x, 2.0), (x, x)):  # whichever is called first, the names are the same
        op = declare()
        try:
            jit.trace(lambda x, op=op, order=order: op(x, *order[1:]), x)
            program = jit.trace(f, x).program
            digests.add(program.digest)
            data = jit.stored.to_data(program)
        finally:
            genesis.library.remove("tests::sum_of")
    assert len(digests) == 1
    again = jit.stored.from_data(data, [])
    with pytest.raises(RuntimeError, match="there is no op tests::sum_of of arguments 0"):
        again.verify()
    op = declare()
    try:
        jit.trace(lambda x: op(x, 2.0), x)
        assert again.verify().bind().replay(x).tolist() == [6, 6]
    finally:
        genesis.library.remove("tests::sum_of")


# ---- comparing, storing


def test_two_traces_of_one_function_are_one_program():
    (_, _, f), (_, _, g), (_, _, h) = training(0), training(1), training(0, dropout=0.2)
    a, b, c = (jit.trace(step, X, Y).program for step in (f, g, h))
    assert a == b and hash(a) == hash(b) and a.digest == b.digest
    assert a != c and a != a.with_calls(a.calls, laid_out=not a.laid_out) and a != "a"
    assert len({a, b, c}) == 2


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x * 2.0 + 1,
        lambda x: x * 3 + 1,
        lambda x: 1 - x * 2,
        lambda x: (x * 2 + 1, x),
        lambda x: x.add_(x),
        lambda x: x * genesis.ones(2),
    ],
)
def test_what_decides_about_numbers_is_in_the_digest(other):
    x = genesis.ones(2)
    assert jit.trace(lambda x: x * 2 + 1, x).program != jit.trace(other, x).program
    assert jit.trace(lambda x: x * 2 + 1, x).program != jit.trace(lambda x: x * 2 + 1, x.double()).program


def test_constants_are_in_the_digest():
    a, b = (jit.trace(lambda x, k=k: x * genesis.tensor([1.0, k]), genesis.ones(2)).program for k in (2.0, 3.0))
    assert a != b


LOADED = """
import sys, numpy as np, genesis
program = genesis.jit.Program.load(sys.argv[1])
print(program.digest)
captured = [genesis.tensor(np.load(sys.argv[2])[f"w{i}"]) for i in range(len(program.captured))]
genesis.manual_seed(3)
streams = [genesis.default_generator] * len(program.streams)
found = program.bind(captured, streams=streams).replay(genesis.tensor(np.load(sys.argv[2])["x"]))
np.save(sys.argv[3], found[0].numpy())
"""


@pytest.mark.parametrize(
    "function", [varied, nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5), nn.LayerNorm(3))], ids=["varied", "model"]
)
def test_stored_and_loaded_in_another_process(function, tmp_path):
    x = X.reshape(-1)[:6] if function is varied else X.reshape(4, 6)
    graph = jit.trace(lambda x: (*found,) if isinstance(found := function(x), tuple) else (found, 1), x)
    graph.program.save(tmp_path / "program")
    np.savez(
        tmp_path / "tensors.npz",
        x=x.numpy(),
        **{f"w{i}": w.detach().numpy() for i, (_, w) in enumerate(graph.captured)},
    )
    run = [sys.executable, "-c", LOADED, tmp_path / "program", tmp_path / "tensors.npz", tmp_path / "found.npy"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == graph.program.digest
    genesis.manual_seed(3)
    with genesis.no_grad():
        expected = graph.replay(x)[0]
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected.numpy())


def test_a_training_step_stored_and_loaded(tmp_path):
    program = jit.trace(training()[2], X, Y).program
    program.save(tmp_path / "step.zip")
    again = Program.load(str(tmp_path / "step.zip"))
    assert again == program and str(again) == str(program)
    assert {p.name for p in tmp_path.iterdir()} == {"step.zip"}


def test_what_is_no_program_is_refused(tmp_path):
    path = tmp_path / "program"
    program = jit.trace(lambda x: x * genesis.tensor([1.0, 2.0]), genesis.ones(2)).program
    program.save(path)
    with zipfile.ZipFile(path) as archive:
        text, part = archive.read("program.json").decode(), archive.read("constants/0")
    changes = [
        ("genesis program 1", "genesis program 99"),
        ('"mul"', '"no_such_op"'),
        ('"mul"', '"sum"'),
        ('"var": 1', '"var": 7'),
        ('"calls"', '"cells"'),
        ('"float32"', '"float64"'),
        ("{", "["),
    ]
    for old, new in changes:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("program.json", text.replace(old, new))
            archive.writestr("constants/0", part)
        with pytest.raises(RuntimeError, match="(load|verify): "):
            Program.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(RuntimeError, match="load: this is no program, or a damaged one"):
        Program.load(path)


# ---- other parameters


def test_a_program_called_with_other_parameters():
    a, b = nn.Linear(4, 3), nn.Linear(4, 3)
    graph = jit.trace(a, X)
    assert genesis.equal(graph.program.bind([p for p in b.parameters()]).replay(X), b(X).detach())
    assert genesis.equal(graph.bind((a, b)).replay(X), b(X).detach())
    assert genesis.equal(graph.bind((a.weight, b.weight)).replay(X), (X @ b.weight.T + a.bias).detach())
    with pytest.raises(TypeError, match="bind: Linear has 2 captured tensors, 1 were given"):
        graph.program.bind([b.weight])
    with pytest.raises(RuntimeError, match=r"w0 of Linear is f32\[3, 4\], got f32\[3\]"):
        graph.program.bind([b.bias, b.weight])
    with pytest.raises(TypeError, match=r"w0 must be a tensor, got int"):
        graph.program.bind([1, 2])


@pytest.mark.parametrize("passes", [False, True], ids=["as_traced", "optimized"])
def test_a_training_step_bound_to_a_second_model_and_optimizer(passes):
    first, second, alone = training(0), training(1), training(1)
    graph = jit.trace(first[2], X, Y)
    graph = jit.optimized(graph) if passes else graph
    bound = graph.bind((first[0], second[0]), (first[1], second[1])).verify()
    before = [p.detach().clone() for p in first[0].parameters()]
    for optimizer in (second[1], alone[1]):
        optimizer.param_groups[0]["lr"] = 0.05
    found, expected = [], []
    for run, to in ((bound.replay, found), (alone[2], expected)):
        genesis.manual_seed(7)
        for _ in range(4):
            to.append(run(X, Y).item())
    assert found == expected
    for p, q in zip(second[0].state_dict().values(), alone[0].state_dict().values(), strict=True):
        assert genesis.equal(p, q)
    assert [s["step"] for s in second[1].state.values()] == [5] * 6 and [
        s["step"] for s in first[1].state.values()
    ] == [1] * 6
    for p, q in zip(first[0].parameters(), before, strict=True):
        assert genesis.equal(p, q)
    assert bound.program is graph.program
    second[0].eval()
    assert bound.changed() and not graph.changed()


def test_generators_and_counts_are_exchanged():
    old, new = genesis.Generator(), genesis.Generator()
    counts, others = {"n": 0}, {"n": 10}

    def f(x):
        jit.advance(counts, "n")
        return x * genesis.rand(2, generator=old) + jit.host(lambda: counts["n"])

    bound = jit.trace(f, genesis.ones(2)).bind((old, new), (counts, others))
    new.manual_seed(5)
    expected = genesis.rand(2, generator=new) + 11
    new.manual_seed(5)
    assert genesis.equal(bound.replay(genesis.ones(2)), expected)
    assert counts == {"n": 0} and others == {"n": 11} and old._block == 0


def test_what_cannot_take_the_place_of_something():
    first, second = training(0), training(1)
    graph = jit.trace(first[2], X, Y)
    with pytest.raises(
        RuntimeError,
        match=r"bind: AdamW.param_groups\[0\]\['params'\] holds what is exchanged, and is not exchanged itself",
    ):
        graph.bind((first[0], second[0]))
    with pytest.raises(TypeError, match="bind: Linear is a Linear, and what is to take its place a Tanh"):
        graph.bind((first[0][0], first[0][3]))
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    graph = jit.trace(model, X)
    for other, reason in (
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)).eval(), "training is False, it was True"),
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.25)), "p is 0.25, it was 0.5"),
        (nn.Sequential(nn.Linear(4, 3)), "Sequential.1 is gone"),
        (nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5)), r"is f32\[3, 4\], got f32\[5, 4\]"),
    ):
        with pytest.raises(RuntimeError, match=reason):
            graph.bind((model, other))
    w, v, base = genesis.ones(2), genesis.ones(2), genesis.ones(2)
    writes = jit.trace(lambda x: (w.add_(x), v * 1)[1], genesis.ones(2))
    with pytest.raises(RuntimeError, match="another argument or captured tensor shares its memory"):
        writes.bind((w, base), (v, base))
    shared = genesis.ones(2)
    pair = nn.ParameterList([nn.Parameter(shared), nn.Parameter(shared * 2)])
    tied = nn.ParameterList([pair[0], pair[0]])
    with pytest.raises(RuntimeError, match="two things are to take the place of"):
        jit.trace(lambda x: x * pair[0], genesis.ones(2)).bind((tied[0], pair[0]), (tied[1], pair[1]))


# ---- memory


@pytest.mark.parametrize(
    ("write", "x"),
    [
        (lambda y: (y.real.zero_(), y.imag[0].fill_(float("inf"))), genesis.tensor([1 + 2j, 3 - 1j])),
        (lambda y: (y.t().real[0].mul_(3), y.imag.t()[1].add_(2)), genesis.tensor([[1 + 2j, 3 - 1j], [5 - 2j, 1j]])),
        (lambda y: y[1].view(genesis.int16)[::2].zero_(), genesis.randn(3, 4)),
        (lambda y: y.t()[1].view(genesis.int32).add_(1), genesis.randn(3, 4)),
    ],
    ids=["parts", "parts of a transposed one", "halves of bytes", "bytes of a column"],
)
def test_writes_through_views_of_another_dtype(write, x):
    def f(x):
        y = x.clone()
        write(y)
        return y

    eager = f(x)
    for graph in (jit.trace(f, x).verify(), jit.optimized(jit.trace(f, x)).verify()):
        assert np.array_equal(graph.replay(x).numpy().view(np.uint8), eager.numpy().view(np.uint8))
    given = x.clone()
    jit.trace(lambda x: write(x), x).replay(given)
    assert np.array_equal(given.numpy().view(np.uint8), eager.numpy().view(np.uint8))


def test_views_of_views_are_recorded_once_each():
    def f(x, n):
        views = [x]
        for _ in range(n):
            views.append(views[-1].t())
        return sum((v.sum() for v in views), genesis.zeros(()))

    counts = [
        jit.trace(f, genesis.ones(2, 2), n).count("transpose") + jit.trace(f, genesis.ones(2, 2), n).count("permute")
        for n in (10, 20, 400)
    ]
    assert counts == [10, 20, 400]


def test_views_say_whose_memory_they_are():
    def f(x):
        a = x.t()
        b = a[1:, ::2]
        return (
            a.sum() + b.sum() + x.reshape(2, 6).sum() + a.reshape(12).sum() + b.expand(2, 3, 2).sum() + (a * 2)[0].sum()
        )

    program = jit.trace(f, genesis.ones(3, 4)).program.verify()
    x = program.arguments[0]
    by_name = [(call.op, program.regions.get(call.outs[0])) for call in program.calls if call.op not in ("sum", "add")]
    owner = next(call.outs[0] for call in program.calls if call.op == "mul")
    assert [(op, None if r is None else (r.root is x, r.root is owner, r.offset, r.strides)) for op, r in by_name] == [
        ("transpose", (True, False, 0, (1, 4))),
        ("slice_view", (True, False, 4, (1, 8))),
        ("reshape", (True, False, 0, (6, 1))),
        ("reshape", None),
        ("expand", (True, False, 4, (0, 1, 8))),
        ("mul", None),
        ("slice_view", (False, True, 0, (4,))),
    ] or str(by_name)
    assert " of x0 = transpose(x0" in str(program)


def test_regions_are_where_numpy_finds_the_views():
    x = genesis.tensor(np.arange(60.0).reshape(3, 4, 5))
    steps = [
        lambda v: v.permute(2, 0, 1),
        lambda v: v[1:, :, ::2],
        lambda v: v.diagonal(0, 0, 2),
        lambda v: v.narrow(0, 1, 1),
        lambda v: v.transpose(0, 1),
        lambda v: v.unsqueeze(1)[:, 0],
    ]
    view = x
    for step in steps:
        view = step(view)

    def f(x):
        for step in steps:
            x = step(x)
        return x * 1

    program = jit.trace(f, x).program
    region = program.regions[program.calls[-1].args[0]]
    assert region.root is program.arguments[0]
    assert region.offset == view.numpy().__array_interface__["data"][0] - x.numpy().__array_interface__["data"][0]
    assert (
        np.lib.stride_tricks.as_strided(
            x.numpy().reshape(-1)[region.offset // 8 :], view.shape, [8 * s for s in region.strides]
        ).tolist()
        == view.tolist()
    )


def test_verify_compares_strides_with_the_memory():
    graph = jit.trace(lambda x: x.t() * 1, genesis.ones(2, 3))
    view, mul = graph.nodes
    wrong = jit.Var(genesis.arrays.spec.Spec((3, 2), np.dtype(np.float32)))
    with pytest.raises(RuntimeError, match=r"has strides \(2, 1\), as a view of x0 it has \(1, 3\)"):
        graph.with_nodes([Call(view.op, view.args, (wrong,)), Call(mul.op, (wrong, 1), mul.outs)]).verify()


def test_random_ops_are_calls_with_a_stream():
    graph = jit.trace(lambda x: x + genesis.rand(2) + nn.functional.dropout(x, 0.5, True), genesis.ones(2)).verify()
    draws = [call for call in graph.nodes if call.op.startswith("random.")]
    assert [(call.op, call.args[0]) for call in draws] == [
        ("random.uniform", Stream(0, 0)),
        ("random.dropout", Stream(0, 1)),
    ]
    assert graph.program.streams == (2,) and "random.uniform(stream 0 + 0, (2,), f32)" in str(graph)
    assert jit.optimized(graph).count() == graph.count()
