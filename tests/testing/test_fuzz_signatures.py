"""Wrong arguments give the answer or an error that names the call; and the fuzzer finds what does not."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.testing import fuzz_signatures, signature_calls
from genesis.testing.make import Maker

TARGETS = {t.path: t for t in signature_calls.targets()}


def explain(wrong):
    return "\n".join(f"{o.kind}  {o.path}({o.arguments})\n    {o.detail}" for o in wrong)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # deprecated names say that they are
@pytest.mark.parametrize("path", TARGETS)
def test_right_calls_are_answered(path):
    for call in TARGETS[path].calls(Maker()):
        outcome = fuzz_signatures.run(TARGETS[path], call, Maker())
        assert outcome.kind == "answer", outcome


def test_every_public_callable_is_called():
    reached = {id(t.call) for t in TARGETS.values()}
    assert {path for path, call in signature_calls.public() if id(call) not in reached} == set(signature_calls.UNCALLED)


def test_settings_of_the_program_are_kept():
    before = (
        genesis.get_default_dtype(),
        genesis.is_grad_enabled(),
        genesis.get_num_threads(),
        genesis.get_rng_state().tolist(),
        repr(genesis.ones(2)),
    )
    with signature_calls.settings_kept():
        genesis.set_default_dtype(genesis.float64)
        genesis.set_grad_enabled(False)
        genesis.set_num_threads(1)
        genesis.manual_seed(5)
        genesis.set_printoptions(precision=1)
    assert before == (
        genesis.get_default_dtype(),
        genesis.is_grad_enabled(),
        genesis.get_num_threads(),
        genesis.get_rng_state().tolist(),
        repr(genesis.ones(2)),
    )


def test_a_thousand_wrong_calls():
    counts, wrong = fuzz_signatures.fuzz(1000, seed=0)
    assert not wrong, explain(wrong)
    assert counts["refused"] > 400 and counts["answer"] > 100


@pytest.mark.slow
def test_thousands_of_wrong_calls():
    _, wrong = fuzz_signatures.fuzz(10_000, seed=1_000)
    assert not wrong, explain(wrong)


def test_an_error_from_inside_is_found():
    def careless(input):
        return input.shape[3]

    target = signature_calls.Target("careless", careless, lambda t: [genesis.core.call.op.case(t(2))])
    assert fuzz_signatures.run(target, genesis.core.call.op.case(genesis.ones(2)), Maker()).kind == "bare"


def test_errors_of_users_pass_as_they_are():
    class Mine:
        def __index__(self):
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        genesis.ones(2, 2).sum(Mine())
    with pytest.raises(ZeroDivisionError):
        nn.Sequential(nn.Linear(1, 1)).apply(lambda module: 1 / 0)
    # raised in NumPy, which the user's function called
    with pytest.raises(np.linalg.LinAlgError, match=r"^Singular matrix$"):
        genesis.func.vjp(lambda x: np.linalg.inv(np.zeros((2, 2))), genesis.ones(2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: genesis.stack(3), "stack: expected a list of tensors, got int"),
        (lambda: nn.functional.glu([1.0]), r"glu: input must be a tensor, got \[1.0\]"),
        (lambda: nn.Linear("a", 2), "Linear: in_features must be an integer, got 'a'"),
        (lambda: nn.Linear(2.0, 2), "Linear: in_features must be an integer, got 2.0"),
        (
            lambda: genesis.func.grad(lambda x: (x, x), has_aux=np.zeros(2))(genesis.ones(())),
            "has_aux must be True or False, got ndarray",
        ),
        (lambda: nn.GRUCell(3, {}), "GRUCell: hidden_size must be an integer, got dict"),
        (lambda: nn.LSTMCell("a", 3), "LSTMCell: input_size must be an integer, got 'a'"),
        (lambda: nn.Transformer(4, 2, 1, 1, 8, custom_decoder=-0.5), "Transformer: custom_decoder must be a function"),
        (lambda: nn.Dropout("x"), "Dropout: p must be a number, got 'x'"),
        (lambda: nn.ReLU(genesis.ones(2)), r"ReLU: inplace must be True or False, got f32\[2\]"),
        (lambda: nn.MSELoss(reduction=3), "MSELoss: reduction must be a string, got 3"),
        (lambda: nn.BatchNorm1d(float("inf")), "BatchNorm1d: num_features must be an integer, got inf"),
        (lambda: nn.init.zeros_(3), "constant_: tensor must be a tensor, got 3"),
        (lambda: genesis.zeros_like([1.0]), r"zeros_like: input must be a tensor, got \[1.0\]"),
        (lambda: genesis.ones(2, out=3), "ones: out must be a tensor or None, got 3"),
        (lambda: genesis.numel("x"), "numel: input must be a tensor, got 'x'"),
        (lambda: genesis.complex(genesis.ones(2), 1.0), "complex: imag must be a tensor, got 1.0"),
        (lambda: genesis.hstack([1, 2]), "hstack: expected tensors, got int"),
        (lambda: genesis.tril_indices("a", 2), "tril_indices: row must be an integer, got 'a'"),
        (lambda: genesis.data.SequentialSampler(3), "SequentialSampler: data_source must have a length, got 3"),
        (lambda: genesis.data.Subset(3, [0]), "Subset: a dataset has examples by number, 3 has not"),
        (
            lambda: genesis.func.grad(lambda x: x, 1.5)(genesis.ones(())),
            "grad: argnums must be an integer or a tuple of integers, got float",
        ),
        (lambda: genesis.autograd.from_scalar(3), "from_scalar: f must be a function, got 3"),
        (lambda: genesis.no_grad(3), "no_grad: decorates functions and classes, got int"),
        (lambda: genesis.fft.rfftfreq(4, [None]), r"fft.rfftfreq: d must be a number, got \[None\]"),
        (lambda: nn.functional.relu(genesis.ones(2), np.zeros(2)), "relu: inplace must be True or False, got ndarray"),
        (lambda: genesis.logit(genesis.ones(2), ""), "logit: eps must be a number or None, got ''"),
        (
            lambda: genesis.autograd.set_detect_anomaly(genesis.ones(2)),
            r"set_detect_anomaly: mode must be True or False, got f32\[2\]",
        ),
    ],
)
def test_messages(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_an_order_that_would_take_for_ever_is_refused():
    for n in (171, 10**30):
        with pytest.raises(ValueError, match=f"polygamma: n must be at most 170, got {n}"):
            genesis.polygamma(n, genesis.ones(2))
    assert genesis.polygamma(170, genesis.full((1,), 2.0, dtype=genesis.float64)).isfinite().all()


def test_truncated_normals_in_any_range():
    far = nn.init.trunc_normal_(genesis.empty(50), 0.0, 1.0, 5.0, 5.5)
    assert float(far.min()) >= 5.0 and float(far.max()) <= 5.5
    for mean, std in ((float("inf"), 1.0), (float("nan"), 1.0), (0.0, 0.0), (0.0, float("inf"))):
        with pytest.raises(ValueError, match="trunc_normal_: mean must be finite and std positive"):
            nn.init.trunc_normal_(genesis.empty(3), mean, std)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: genesis.randint_like(genesis.ones(2), 0, 10**30), "randint: the range .* does not fit into int64"),
        (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 10**30), "num_layers is at most 1,000,000"),
        (lambda: nn.RNN(3, 4, 10**30), "RNN: num_layers is at most 1,000,000"),
    ],
)
def test_what_would_never_end_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
