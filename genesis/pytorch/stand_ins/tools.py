"""Smaller names of serialization, benchmark, testing, compilers and the tools around them."""

from __future__ import annotations

import enum
import importlib
import inspect
import math
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import genesis
from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.writes import bump
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.stand_ins.common import Values, answer, as_it_is, nothing, refusal, values


class _Never(type):
    """Classes of values that there are none of, for ``isinstance``."""

    def __instancecheck__(cls, x: object) -> bool:
        return False


def _never(*listed: str) -> Values:
    return {name: _Never(name, (), {"__doc__": "There is no such value here."}) for name in listed}


@values("torch")
def _torch() -> Values:
    unknown = refusal("torch.sym_fresh_size", "sizes are numbers")
    return {**_never("SymBool", "SymFloat", "SymInt"), "sym_constrain_range": nothing, "sym_fresh_size": unknown,
            "sym_constrain_range_for_size": nothing}  # fmt: skip


values("torch.fx.experimental.proxy_tensor")(lambda: {"get_proxy_mode": answer(None)})


@values("torch.compiler")
def _compiler() -> Values:
    guards = (
        "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "skip_all_guards_unsafe",
        "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
    )  # fmt: skip
    return {
        **dict.fromkeys(guards, lambda entries: [True] * len(entries)), "set_enable_guard_collectives": answer(False),
        "load_cache_artifacts": answer(None), "save_cache_artifacts": answer(None),
    }  # fmt: skip


# ---- serialization


class LoadEndianness(enum.Enum):
    """The order of bytes of a file that does not say it."""

    NATIVE, LITTLE, BIG = 1, 2, 3


class SourceChangeWarning(Warning):
    """The code of a module is another than when it was saved; never warned here."""


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as path:
        yield path


def check_module_version_greater_or_equal(module: Any, req_version_tuple: Any, error_if_malformed: bool = True) -> bool:
    """Whether a module has at least this version."""
    try:
        version = tuple(
            type(req)(part) for req, part in zip(req_version_tuple, module.__version__.split("."), strict=False)
        )
    except Exception as error:
        text = f"{getattr(module, '__name__', module)!r} has the version {getattr(module, '__version__', None)!r}"
        if error_if_malformed:
            raise ArgumentValueError(message("check_module_version_greater_or_equal", text)) from error
        return True
    return version >= tuple(req_version_tuple)


@values("torch.serialization")
def _serialization() -> Values:
    return {
        "LoadEndianness": LoadEndianness, "SourceChangeWarning": SourceChangeWarning, "mkdtemp": mkdtemp,
        "check_module_version_greater_or_equal": check_module_version_greater_or_equal,
        "default_restore_location": lambda storage, location: storage, "get_unsafe_globals_in_checkpoint": answer([]),
        "normalize_storage_type": as_it_is, "register_package": nothing, "StorageType": genesis.TypedStorage,
        "validate_cuda_device": refusal("validate_cuda_device", "there is no GPU here"),
        "validate_hpu_device": refusal("validate_hpu_device", "there is no HPU here"),
        "storage_to_tensor_type": lambda storage: genesis.tensor([], dtype=storage.dtype).type(),
    }  # fmt: skip


# ---- utils


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: what one variable was is the other from now on, with class, memory, history and attributes."""
    slots = ("_array", "_node", "_own_node", "_counter", "_view")
    first, second = ([getattr(t, name, None) for name in slots] for t in (t1, t2))
    attributes, kinds = (dict(t1.__dict__), dict(t2.__dict__)), (type(t1), type(t2))
    for t, held, others, kind in ((t1, second, attributes[1], kinds[1]), (t2, first, attributes[0], kinds[0])):
        for name, value in zip(slots, held, strict=True):
            setattr(t, name, value)
        t.__dict__.clear()
        t.__dict__.update(others)
        t.__class__ = kind
        if isinstance(t._node, AccumulateGrad):
            t._node.tensor = weakref.ref(t)
    for t in (t1, t2):  # nodes that have saved one of them would be given the other
        bump(t, "swap_tensors")


class DLDeviceType(enum.IntEnum):
    """Kinds of devices in DLPack."""

    kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI = 1, 2, 3, 4, 7, 8, 9  # noqa: N815
    kDLROCM, kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI = 10, 11, 12, 13, 14  # noqa: N815


@values("torch.utils")
def _utils() -> Values:
    return {"swap_tensors": swap_tensors}


@values("torch.utils.dlpack")
def _dlpack() -> Values:
    return {"DLDeviceType": DLDeviceType}


@values("torch.profiler")
def _profiler() -> Values:
    return {"DeviceType": enum.Enum("DeviceType", {"CPU": 0, "CUDA": 1})}


@values("torch.onnx")
def _onnx() -> Values:
    silent = dict.fromkeys(("register_custom_op_symbolic", "unregister_custom_op_symbolic"), nothing)
    return {"OnnxExporterError": importlib.import_module("genesis.base.errors").GenesisError, **silent}


@values("torch.onnx.symbolic_helper")
def _symbolic_helper() -> Values:
    """What libraries write down for PyTorch's exporter, which is not this one."""
    return {"parse_args": lambda *descriptors: as_it_is, "quantized_args": lambda *flags, **options: as_it_is}


class FileCheck:
    """Looks for strings in a text, in order.

    >>> from genesis.pytorch.stand_ins.tools import FileCheck
    >>> FileCheck().check("a").check_not("b").check("c").run("a x c")
    """

    def __init__(self) -> None:
        self._steps: list[tuple[str, str, int]] = []

    def _step(self, kind: str, text: str, count: int = 1) -> FileCheck:
        self._steps.append((kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        return self._step("check", text)

    check_dag = check

    def check_next(self, text: str) -> FileCheck:
        return self._step("next", text)

    def check_same(self, text: str) -> FileCheck:
        return self._step("same", text)

    def check_not(self, text: str) -> FileCheck:
        return self._step("not", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        self._step("check", text, count)
        return self._step("not", text) if exactly else self

    def run(self, test_file: Any) -> None:
        """Check a text (or what prints as one).

        Raises:
            RuntimeError: a string is not where it should be
        """
        text, at, absent = str(test_file), 0, []
        for kind, wanted, count in self._steps:
            if kind == "not":
                absent.append(wanted)
                continue
            for _ in range(count):
                start = text.find(wanted, at)
                between = text[at : max(start, at)]
                lines = {"next": 1, "same": 0}.get(kind, between.count("\n"))
                if start < 0 or between.count("\n") != lines or any([x in between for x in absent]):
                    raise RuntimeError(f"FileCheck: expected {wanted!r} ({kind}) after {text[:at][-40:]!r}")
                at, absent = start + len(wanted), []
        if any([x in text[at:] for x in absent]):
            raise RuntimeError(f"FileCheck: did not expect {absent} in {text[at:]!r}")


@values("torch.testing")
def _testing() -> Values:
    return {"FileCheck": FileCheck}


# ---- benchmark

_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1.0)}


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is between 1 and 1000, and its length in seconds.

    >>> from genesis.pytorch.stand_ins.tools import select_unit
    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s") if t > 0 else "s"
    return unit, _UNITS[unit][1]


def trim_sigfig(x: float, n: int) -> float:
    """A number with ``n`` significant digits."""
    magnitude = math.ceil(math.log10(abs(x))) if x else 0
    scale = 10 ** (magnitude - n)
    return float(round(x / scale) * scale)


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with ``n`` threads inside."""
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(n)
        yield
    finally:
        genesis.set_num_threads(before)


class Compare:
    """A table of measurements."""

    def __init__(self, results: Iterable[Any]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Any]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Times are printed with four digits."""

    def colorize(self, rowwise: bool = False) -> None:
        """Without an effect."""

    def highlight_warnings(self) -> None:
        """Without an effect."""

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        unit, length = select_unit(min([m.median for m in self._results], default=1.0))
        width = max([len(m.title) for m in self._results], default=0)
        lines = [f"{m.title:{width}}  {trim_sigfig(m.median / length, 4):>10g}" for m in self._results]
        return "\n".join([*lines, f"Times are in {_UNITS[unit][0]}s ({unit})."])


@values("torch.utils.benchmark")
def _benchmark() -> Values:
    return {
        "Compare": Compare, "Language": enum.Enum("Language", {"PYTHON": 0, "CPP": 1}), "timer": time.perf_counter,
        "ordered_unique": lambda elements: list(dict.fromkeys(elements)), "select_unit": select_unit,
        "trim_sigfig": trim_sigfig, "unit_to_english": lambda u: _UNITS[u][0], "set_torch_threads": set_torch_threads,
        "Colorize": enum.Enum("Colorize", {"NONE": "none", "COLUMNWISE": "columnwise", "ROWWISE": "rowwise"}),
    }  # fmt: skip


# ---- operations of users


_WORDS = {"Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "str": "str"}


def _word(annotation: Any) -> str:
    name = getattr(annotation, "__name__", None) or str(annotation)
    return _WORDS.get(name.rpartition(".")[2], "Any")


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: Any = (), op_name: str | None = None
) -> str:
    """The declaration of a function from its annotations, in the words of PyTorch's."""
    parts: list[str] = []
    for p in inspect.signature(prototype_function).parameters.values():
        word = _word(p.annotation)
        written = f"({chr(97 + len(parts))}!)" if p.name in mutates_args or mutates_args == "unknown" else ""
        parts += ["*"] if p.kind is p.KEYWORD_ONLY and "*" not in parts else []
        parts.append(f"{word}{written} {p.name}" + ("" if p.default is p.empty else f"={p.default}"))
    result = inspect.signature(prototype_function).return_annotation
    return f"{op_name or ''}({', '.join(parts)}) -> {'()' if result in (None, 'None') else _word(result)}"


@values("torch.library")
def _library() -> Values:
    registering = importlib.import_module("genesis.library.registering")
    return {
        **{name: getattr(registering, name) for name in ("register_autograd", "register_kernel")},
        "impl_abstract": registering.register_fake, "_scoped_library": registering.scoped_library,
        "infer_schema": infer_schema, "register_torch_dispatch": nothing,
        "get_ctx": refusal("torch.library.get_ctx", "sizes of results are known when they are there"),
    }  # fmt: skip
