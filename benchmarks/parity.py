"""What PyTorch's own samples give: every op of its OpInfo database, called with its sample inputs, in Genesis and PyTorch.

    python benchmarks/parity.py [--ops REGEX] [--dtypes NAME ...] [--samples N] [--reasons N] [--all]
    python benchmarks/parity.py --of modules      (or optimizers: `parity_modules`)
    python benchmarks/parity.py --write           (all three, and benchmarks/parity.md: `parity_page`)

For each op and dtype up to N samples, taken evenly from PyTorch's: values, dtypes, shapes, and where PyTorch has
gradients those too. In float32 the method, the in-place form and ``out=`` are called with the same samples. The table says
how many of these calls agree, and of each op that does not, why; where that is known and stays so, `KNOWN` has the reason.
With --all it lists the ops that agree, too.

What a result leaves open is not compared: of eigenvectors the phase (PyTorch's own ``output_process_fn_grad`` takes it
off), of equal elements the order, and which of them the gradient goes to. Numbers of less than 64 bits that are further
from PyTorch's than its tests allow agree where they are nearer to what it computes of the same arguments in float64.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import re
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch

import genesis
from genesis.core.graph.tensor import wrap
from genesis.pytorch.modules import find
from genesis.pytorch.names import is_module
from genesis.testing.tolerance import tolerance

DTYPES = ("float32", "float64", "int64", "bool", "complex64", "bfloat16")
# results are drawn, or are whatever the memory holds: only shapes and dtypes are compared
RANDOM = re.compile(
    r"empty|dropout|rand|normal|bernoulli|multinomial|uniform|exponential|cauchy|geometric|rrelu|resize|svd_lowrank"
    r"|pca_lowrank|fractional_max_pool|scaled_dot_product_attention|multi_head_attention"
)
# equal elements may be picked in any order: what is compared is the elements at the indices
PICKS = {"topk": 1, "kthvalue": 1, "sort": 0, "argsort": 0, "msort": 0, "mode": 0}  # the place of dim after the input
# why calls do not agree, and will not: by the beginning of the row's name
KNOWN = {
    "_": "a step inside of PyTorch's own functions, no name that programs use",
    "__rpow__": "integers to negative powers are refused; PyTorch gives 0",
    "as_strided.partial_views": "a view of memory that its input does not see has no gradient, and is refused",
    "as_strided_scatter": "PyTorch gives the replaced elements a gradient, and the others none",
    "fft.ihfft2 (out=)": "PyTorch leaves out= as it was, over one dimension",
    "fft.ihfftn (out=)": "PyTorch leaves out= as it was, over one dimension",
    "linalg.householder_product": "a result without elements does not require grad",
    "linalg.lstsq (out=)": "its results are returned, and written nowhere else",
    "linalg.matrix_power": "to the power 0 the result is constant, and does not require grad",
    "nn.functional.interpolate.bi": "uint8 images only with the nearest modes",
    "nn.functional.upsample_bilinear": "uint8 images only with the nearest modes",
    "nn.functional.margin_ranking_loss": "numbers that wrap around in uint8 are nobody's loss",
    "logcumsumexp": "PyTorch's gradient goes through logarithms and loses digits: 10.0015 for 10 at x = 10000",
    "matrix_exp": "16-bit floats have too few digits for the squarings",
    "max_pool2d_with_indices_backward": "a step inside of PyTorch's own functions, no name that programs use",
    "renorm": "PyTorch's gradient of complex numbers is nan for the norm inf",
    "nn.functional.ctc_loss": "the gradient is that of log_probs as they are, PyTorch's what follows after log_softmax",
    "sparse.": "a sparse matrix is no tensor here: gradients go to its values",
    "special.airy_ai": "PyTorch's float64 values are right to nine digits",
    "special.bessel_": "PyTorch's float64 values are right to nine digits",
    "to_sparse": "a class of its own, SparseTensor",
}
FLOAT32 = "PyTorch rounds steps, or a learning rate that is a float32 tensor, to float32 also for float64 parameters"
# the same of modules and optimizers, by their names
OTHERWISE = {
    "nn.CTCLoss": "the gradient is that of log_probs as they are",
    "ASGD": FLOAT32,
    "Adam": FLOAT32,
    "AdamW": FLOAT32,
    "Muon": FLOAT32,
    "LBFGS": "its step is a number where the learning rate is a tensor",
}
MODULES = ("nn.functional", "linalg", "fft", "special", "signal.windows", "masked", "sparse")


class Absent(Exception):
    """A name that Genesis does not have."""


@dataclass
class Row:
    """What came of the calls of one op."""

    name: str
    agreed: int = 0
    calls: int = 0
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    examples: dict[str, str] = field(default_factory=dict)


def databases() -> list[Any]:
    """PyTorch's records of its ops. They import ``expecttest``, of which they need nothing but a class of tests."""
    if "expecttest" not in sys.modules:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


# ---- from PyTorch's values to ours


def dtype_of(dtype: torch.dtype) -> Any:
    return getattr(genesis, str(dtype).removeprefix("torch."))


def array_of(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """A NumPy array of a tensor, with its strides."""
    x = x.detach().resolve_conj().resolve_neg()
    x = x.clone() if torch._is_zerotensor(x) else x
    if x.dtype in (torch.bfloat16, torch.complex32):
        bits = torch.int16 if x.dtype is torch.bfloat16 else torch.int32
        return x.view(bits).numpy().view(dtype_of(x.dtype).np)
    return x.numpy()


def ours(value: Any) -> Any:
    """The same value in Genesis: tensors are copied, strides and all."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.sparse_csr and value.ndim == 2:
            parts = value.crow_indices(), value.col_indices(), value.values()
            return genesis.sparse_csr_tensor(*[ours(x.detach()) for x in parts], tuple(value.shape))
        if value.layout is not torch.strided or value.is_quantized:
            raise Absent(f"tensors of layout {value.layout}")
        out = with_surroundings(value) if value.storage_offset() else copied(value)
        return out.requires_grad_() if value.requires_grad else out
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.device):
        return genesis.device(str(value))
    if isinstance(value, torch.layout | torch.memory_format):
        return find("torch", str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return genesis.Size(value)
    if isinstance(value, torch.nn.PairwiseDistance):
        return genesis.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[ours(x) for x in value])
    if isinstance(value, list | tuple):
        return type(value)(ours(x) for x in value)
    if isinstance(value, dict):
        return {key: ours(x) for key, x in value.items()}
    return value


def with_surroundings(x: torch.Tensor) -> Any:
    """A part of a tensor with the memory around it, which `as_strided` reaches."""
    size = x.element_size()
    whole = np.copy(array_of(x.as_strided([x.untyped_storage().nbytes() // size], [1], 0)))
    return genesis.from_numpy(whole).as_strided(list(x.shape), list(x.stride()), x.storage_offset())


def copied(x: torch.Tensor) -> Any:
    return genesis.from_numpy(np.copy(array_of(x), order="K"))


class Ours:
    """``torch`` in PyTorch's own expressions: the names that Genesis has for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return Ours(f"{self.name}.{name}") if is_module(f"{self.name}.{name}") else find(self.name, name)


def function(op: Any) -> Callable[..., Any]:
    """What stands for an op: PyTorch's own expression of it, a function of a module, or a method."""
    if is_expression(op.op):
        return translated(op.op)
    module = next((m for m in MODULES if op.name.startswith(m + ".")), "")
    name = op.name.removeprefix(module + ".") if module else op.name
    try:
        found = find(f"torch.{module}" if module else "torch", name)
        if isinstance(found, genesis.dtype):  # torch.cfloat is a dtype, x.cfloat() a conversion
            return getattr(genesis.Tensor, name)  # type: ignore[no-any-return]
        return found  # type: ignore[no-any-return]
    except AttributeError:
        if not module and hasattr(genesis.Tensor, name):
            return getattr(genesis.Tensor, name)  # type: ignore[no-any-return]
        raise Absent(f"{op.name} is absent") from None


def is_expression(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__name__ == "<lambda>"


def translated(function: Any) -> Any:
    """An expression of PyTorch's database with our names for ``torch``."""
    if not isinstance(function, types.FunctionType):
        return function
    names = {**function.__globals__, "torch": Ours("torch")}
    found = types.FunctionType(function.__code__, names, None, function.__defaults__, function.__closure__)
    found.__kwdefaults__ = function.__kwdefaults__
    return found


# ---- comparison


def flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [x for item in value for x in flat(item)]
    return [value]


def differs(mine: Any, its: Any, values: bool, loose: float = 1.0) -> str:
    """What is different of two results, or nothing."""
    mine, its = flat(mine), flat(its)
    if len(mine) != len(its):
        return f"{len(mine)} results, not {len(its)}"
    for a, b in zip(mine, its, strict=True):
        if isinstance(b, torch.Tensor):
            if b.layout is not torch.strided and str(a.layout).rpartition(".")[2] == str(b.layout).rpartition(".")[2]:
                a, b = a.to_dense(), b.to_dense()  # noqa: PLW2901
            if not isinstance(a, genesis.Tensor):
                return f"a {type(a).__name__} for a tensor"
            if tuple(a.shape) != tuple(b.shape):
                return "shape"
            if a.dtype is not dtype_of(b.dtype):
                return f"dtype {a.dtype}, not {str(b.dtype).removeprefix('torch.')}"
            if values and b.dtype is torch.complex32:
                a, b, loose = a.cfloat(), b.cfloat(), 100 * loose  # noqa: PLW2901, the tolerance of float16
            if values and not close(a.detach().numpy(), array_of(b), loose):
                return "values"
        elif values and not isinstance(b, torch.dtype | torch.device | torch.Generator) and str(a) != str(b):
            return f"{a} for {b}"
    return ""


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], loose: float) -> bool:
    rtol, atol = tolerance(b.dtype)
    if b.dtype.kind not in "biufc":
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0) if b.dtype.kind in "fc" else 1.0
        return bool(np.allclose(a, b, loose * rtol, loose * atol * float(scale), equal_nan=True))


def comparable(op: Any, sample: Any, result: Any) -> Any:
    """A result without what it leaves open."""
    mine = any(isinstance(x, genesis.Tensor) for x in flat(result))
    if op.name not in PICKS or op.name == "msort" or not sample.input.dim():
        process = sample.output_process_fn_grad
        return (translated(process) if mine else process)(result)
    *values, at = flat(result)
    at = torch.from_numpy(at.numpy()) if mine else at
    x, place = sample.input.detach(), PICKS[op.name]
    dim = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1)
    elements = x.take_along_dim(at.unsqueeze(dim) if at.dim() < x.dim() else at, dim)
    return [*values, ours(elements) if mine else elements]


def repeats(x: torch.Tensor) -> bool:
    return x.unique().numel() < x.numel()


WIDER = dict.fromkeys((torch.bfloat16, torch.float16, torch.float32), torch.float64) | {
    torch.complex64: torch.complex128
}


def nearer(got: Any, expected: Any, exact: Any) -> bool:
    """Whether results are nearer to those of float64 than PyTorch's, which rounds at every step."""
    if any(isinstance(x, torch.Tensor) and x.dtype not in WIDER for x in flat(expected)):
        return False
    for mine, its, best in zip(flat(got), flat(expected), flat(exact), strict=True):
        if isinstance(its, torch.Tensor) and its.numel():
            a = mine.detach().to(dtype_of(WIDER[its.dtype])).numpy()
            b, c = (array_of(x.detach().to(WIDER[its.dtype])) for x in (its, best))
            if not np.max(np.abs(a - c)) <= np.max(np.abs(b - c)):
                return False
    return True


def widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (
            value.detach().to(WIDER[value.dtype]).requires_grad_(value.requires_grad) if value.dtype in WIDER else value
        )
    if isinstance(value, dict):
        return {k: widened(x) for k, x in value.items()}
    return type(value)(map(widened, value)) if type(value) in (list, tuple) else value


def gradients(result: Any, inputs: list[Any], grad: Callable[..., Any], seed: Callable[[Any], Any]) -> list[Any]:
    outs = [x for x in flat(result) if getattr(x, "requires_grad", False)]
    return list(grad(outs, inputs, [seed(x) for x in outs], allow_unused=True)) if outs else []


def weights(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """What a gradient starts from: numbers of about one size."""
    return (1.5 + np.cos(np.arange(int(np.prod(shape)), dtype=np.float64))).reshape(shape)


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [x for v in value.values() for x in tensors_of(v)]
    if isinstance(value, list | tuple):
        return [x for v in value for x in tensors_of(v)]
    return [value] if getattr(value, "requires_grad", False) else []


def its_gradients(op: Any, sample: Any, result: Any, inputs: Any) -> list[Any]:
    """PyTorch's, from where `weights` begin."""

    def seed(x: Any) -> Any:
        return torch.from_numpy(weights(tuple(x.shape))).to(x.dtype)

    return gradients(comparable(op, sample, result), tensors_of(inputs), torch.autograd.grad, seed)


def same_gradients(op: Any, sample: Any, mine: Any, its: Any, my_inputs: Any, its_inputs: Any) -> str:
    def my_seed(x: Any) -> Any:
        return wrap(weights(tuple(x.shape))).to(x.dtype)

    try:
        theirs = its_gradients(op, sample, its, its_inputs)
    except NotImplementedError:  # of i1 in 16 bits
        return ""
    if not theirs:
        return ""
    found = gradients(comparable(op, sample, mine), tensors_of(my_inputs), genesis.autograd.grad, my_seed)
    if not found:
        return "no gradient"
    for i, (a, b) in enumerate(zip(found, theirs, strict=True)):
        if (a is None) != (b is None) and ((a if b is None else b) != 0).any():
            return "gradient: none for one"
        problem = differs(a, b, True, 10.0) if a is not None and b is not None else ""
        if problem == "values" and b.dtype in WIDER:
            widest = widened(its_inputs)
            exact = its_gradients(op, sample, op.op(widest[0], *widest[1], **widest[2]), widest)
            problem = "" if nearer(a, b, exact[i]) else problem
        if problem:
            return f"gradient: {problem}"
    return ""


# ---- calls


def picked(op: Any, dtype: torch.dtype, count: int) -> Iterator[Any]:
    """Samples of an op, taken evenly from the first of PyTorch's."""
    grad = dtype.is_floating_point or dtype.is_complex
    torch.manual_seed(0)
    every = list(
        itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad and op.supports_autograd), 6 * count)
    )
    yield from every[:: max(1, len(every) // count)][:count]


def ways(op: Any, dtype: str) -> Iterator[tuple[str, Any, Callable[..., Any]]]:
    """How an op can be called: the name of the way, PyTorch's function, ours."""
    wrapper, mine = op.gradcheck_wrapper, function(op)
    if re.search("hermitian|triangular", " ".join([wrapper.__name__, *wrapper.__code__.co_names])):  # half is read
        yield "", lambda *a, **k: wrapper(op.op, *a, **k), lambda *a, **k: translated(wrapper)(mine, *a, **k)
    else:
        yield "", op.op, mine
    if dtype != "float32":
        return
    for way, variant in (("method", op.method_variant), ("in place", op.inplace_variant)):
        if variant is None or not hasattr(variant, "__name__"):
            continue
        if is_expression(variant):
            yield way, variant, translated(variant)
        elif not hasattr(genesis.Tensor, variant.__name__):
            yield way, variant, missing(f"Tensor.{variant.__name__} is absent")
        else:
            yield way, variant, getattr(genesis.Tensor, variant.__name__)
    if op.supports_out:
        yield "out=", op.op, mine


def missing(text: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise Absent(text)

    return call


def detached(value: Any) -> Any:
    """Arguments on memory of their own and without history, which an in-place form may write to."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(detached(x) for x in value)
    return {k: detached(x) for k, x in value.items()} if isinstance(value, dict) else value


def one_call(op: Any, way: str, its: Any, mine: Any, sample: Any) -> str | None:
    """Why a call disagrees, "" where it agrees, None where PyTorch refuses it."""
    arguments = (sample.input, tuple(sample.args), sample.kwargs)
    if way:
        arguments = detached(arguments)
    my = ours(arguments)
    try:
        expected = its(arguments[0], *arguments[1], **arguments[2])
        out = {"out": out_for(expected, lambda x: torch.empty_like(x))} if way == "out=" else {}
        if out:
            expected = its(arguments[0], *arguments[1], **arguments[2], **out)
            expected = out["out"] if expected is None else expected  # some functions return nothing then
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    if out:
        out = {"out": out_for(out["out"], lambda x: wrap(np.copy(array_of(x))))}
    got = mine(my[0], *my[1], **my[2], **out)
    values = not RANDOM.search(op.name)
    problem = differs(got, expected, False) or (
        values and differs(*[comparable(op, sample, x) for x in (got, expected)], True)
    )
    if problem == "values":
        widest = widened(arguments)
        problem = "" if nearer(got, expected, its(widest[0], *widest[1], **widest[2])) else problem
    if problem:
        return problem
    if out and not all(a is b for a, b in zip(flat(got), flat(out["out"]), strict=True)):
        return "out= is not what is returned"
    if not way and values and not (op.name in PICKS and repeats(sample.input)):
        return same_gradients(op, sample, got, expected, my, arguments)
    return ""


def out_for(result: Any, make: Callable[[Any], Any]) -> Any:
    return make(result) if isinstance(result, torch.Tensor) else tuple([make(x) for x in result])


def reason(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    text = re.sub(r"\d+", "N", re.sub(r"\[[^\]]*\]", "[...]", text))
    return (
        text
        if isinstance(error, Absent) or type(error).__name__ == "MissingName"
        else f"{type(error).__name__}: {text}"
    )


def judge(op: Any, dtype: str, count: int, rows: dict[str, Row]) -> None:
    kind = getattr(torch, dtype)
    if kind not in op.supported_dtypes("cpu"):
        return
    name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
    try:
        found = list(picked(op, kind, count))
        called = list(ways(op, dtype))
    except Absent as error:
        found, called = found[:1], [("", op.op, missing(str(error)))]
    except Exception:
        return  # PyTorch's own samples need something that is not there
    for way, its, mine in called:
        row = rows.setdefault(f"{name} ({way})" if way else name, Row(name))
        for sample in found:
            try:
                problem = one_call(op, way, its, mine, sample)
            except Exception as error:
                problem = reason(error)
            if problem is None:
                continue
            row.calls += 1
            row.agreed += not problem
            if problem:
                row.reasons[f"{dtype}: {problem}" if not problem.endswith("is absent") else problem] += 1
                row.examples.setdefault(problem, shown(sample))


def shown(sample: Any) -> str:
    def short(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
        return f"({', '.join(map(short, x))})" if isinstance(x, list | tuple) else str(x)

    keywords = [f"{k}={short(v)}" for k, v in sample.kwargs.items()]
    return ", ".join([short(sample.input), *map(short, sample.args), *keywords])[:110]


def compared(ops: str, dtypes: tuple[str, ...], count: int) -> dict[str, Row]:
    """A row for each op whose name matches, and for each other way to call it."""
    rows: dict[str, Row] = {}
    for op in databases():
        inner = isinstance(op.op, torch._ops.OpOverload | torch._ops.OpOverloadPacket)  # no name of the public API
        if re.search(ops, op.name) and not inner and not op.name.startswith("jiterator"):
            for dtype in dtypes:
                judge(op, dtype, count, rows)
    return rows


def table(rows: dict[str, Row], everything: bool) -> Iterator[str]:
    yield "| op | agree | calls | why not, the most frequent first |"
    yield "| --- | ---: | ---: | --- |"
    for name, row in sorted(rows.items(), key=lambda item: item[1].agreed - item[1].calls):
        if row.agreed == row.calls and not everything:
            continue
        why = "; ".join(f"{n} {text}" for text, n in row.reasons.most_common(3))
        why = known(name) or why if row.agreed < row.calls else ""
        example = next(iter(row.examples.values()), "")
        yield f"| `{name}` | {row.agreed} | {row.calls} | {why}{f' `({example})`' if example else ''} |"


def known(name: str) -> str:
    reasons = (reason for start, reason in KNOWN.items() if name.startswith(start) and not name.startswith(start + "_"))
    return OTHERWISE.get(name) or next(reasons, "")


def families(rows: dict[str, Row], count: int) -> Iterator[str]:
    every: collections.Counter[str] = collections.Counter()
    ops: dict[str, set[str]] = collections.defaultdict(set)
    for name, row in rows.items():
        for text, n in row.reasons.items():
            text = re.sub(r"^\w+: ", "", text, count=1) if text.split(":")[0] in DTYPES else text
            text = "a name is absent" if text.endswith("is absent") else text
            every[text] += n
            ops[text].add(name)
    for text, n in every.most_common(count):
        yield f"{n:6} calls, {len(ops[text]):4} ops  {text}  ({', '.join(sorted(ops[text])[:6])})"


def totals(rows: dict[str, Row]) -> str:
    calls, agreed = sum(r.calls for r in rows.values()), sum(r.agreed for r in rows.values())
    whole = sum(r.agreed == r.calls for r in rows.values())
    listed = sum(r.calls - r.agreed for name, r in rows.items() if known(name))
    return (
        f"{agreed} of {calls} calls agree ({100 * agreed / max(calls, 1):.1f}%), {whole} of {len(rows)} ops and ways in all; "
        f"{listed} of the other {calls - agreed} calls have their reason in the list"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--ops", default="")
    options.add_argument("--dtypes", nargs="*", default=DTYPES)
    options.add_argument("--samples", type=int, default=8)
    options.add_argument("--reasons", type=int, default=0, help="print the most frequent reasons, not the table")
    options.add_argument("--all", action="store_true")
    options.add_argument("--of", choices=["ops", "modules", "optimizers"], default="ops")
    options.add_argument("--write", action="store_true", help="all of them, and write benchmarks/parity.md")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    kinds = {}
    for kind in ("ops", "modules", "optimizers") if given.write else (given.of,):
        rows = kinds[kind] = rows_of(kind, given)
        print("\n".join(families(rows, given.reasons) if given.reasons else table(rows, given.all)))
        print(f"\nPyTorch {torch.__version__}, {kind}: {totals(rows)}", flush=True)
    if given.write:
        import parity_page

        parity_page.write(kinds, given.samples, given.dtypes)


def rows_of(kind: str, given: argparse.Namespace) -> dict[str, Row]:
    if kind == "ops":
        return compared(given.ops, tuple(given.dtypes), given.samples)
    import parity_modules

    return getattr(parity_modules, kind)(given.ops)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
