"""Products by cuBLASLt, through the bindings of ``nvmath-python``: functions of C, called with addresses.

cuBLASLt's matrices lie column by column. The rows of ours are columns there, so what it is asked for is the transposed
product, whose operands are exchanged:  out^T = y^T x^T.  A bias of the columns of ``out`` is one of the rows of
``out^T``, which is what its epilogue adds.

Descriptions of operands, and the algorithm, are kept for each kind of product: the one that the library thinks best, or of
several that it offers the fastest (`genesis.cuda.launch.tuning`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from genesis.cuda.arrays import CudaArray, empty, used
from genesis.cuda.launch.tuning import choice, wanted
from genesis.cuda.libraries.loading import library, of_device
from genesis.cuda.libraries.workspaces import workspace
from genesis.cuda.memory.sequence import taking
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Stream, current

NAME = "cublaslt"
KINDS = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}  # cudaDataType
COMPUTE_32F, COMPUTE_64F = 68, 70  # cublasComputeType: in float32 without TF32
NORMAL, TRANSPOSED = 0, 1  # cublasOperation
ALGORITHMS = 8  # that are asked for where the fastest is looked for, with a workspace and without: no more are offered
LARGE = 1 << 32  # products of numbers from which it is: 15 us of an H200, longer than the host takes to start one
WORKSPACE = 32 << 20  # bytes that an algorithm may want: what NVIDIA advises for Hopper


@dataclass(frozen=True, slots=True)
class Matrix:
    """How an operand lies, as cuBLASLt says it: column by column, ``step`` elements from one to the next."""

    operation: int
    rows: int
    columns: int
    step: int


@dataclass(slots=True)
class Plan:
    """A kind of product: handles of the library, and the algorithm, which may want a workspace."""

    description: int
    layouts: tuple[int, int, int]
    chosen: Any
    scales: Any  # 1 and 0, in the dtype that is summed in
    others: tuple[Any, ...] = ()  # algorithms that one is to be chosen of
    bias: int = 0  # the address that the description has
    workspace: int = field(init=False)  # bytes
    addresses: tuple[int, int, int] = field(init=False)  # of 1, of 0, and of the algorithm

    def __post_init__(self) -> None:
        self.workspace = int(self.chosen["workspace_size"][0])
        one = self.scales.ctypes.data
        self.addresses = one, one + self.scales.itemsize, self.chosen.ctypes.data


@dataclass(frozen=True, slots=True)
class Repeated:
    """Products of operands that lie in one way: their addresses are all that differs between calls."""

    by: Products
    like: tuple[Any, ...]

    def run(self, x: CudaArray, y: CudaArray, bias: CudaArray | None, shape: tuple[int, ...]) -> CudaArray | None:
        """A result without gaps; None where another library, or another device, would do it."""
        if x.storage.on is not self.by.on or library(NAME) is not self.by.lt:
            return None
        out = empty(self.by.on, shape, x.dtype)
        return out if self.by.start(self.like, x, y, bias, out) else None


def matrix(rows: int, columns: int, steps: tuple[int, int]) -> Matrix | None:
    """The transposed of a matrix of ours that has these strides; None if neither of its dimensions lies together."""
    for operation, (inner, outer), (step, unit) in (
        (NORMAL, (columns, rows), steps),
        (TRANSPOSED, (rows, columns), steps[::-1]),
    ):
        if (unit == 1 or inner == 1) and (step >= inner or outer == 1):
            return Matrix(operation, inner, outer, max(step, inner))
    return None


def multiplied(
    x: CudaArray,
    y: CudaArray,
    bias: CudaArray | None,
    out: CudaArray,
    batch: int,
    steps: tuple[int, int],
    adds: bool = False,
) -> Repeated | None:
    """``out = x @ y + bias``, of the last two dimensions, and how that is done again; None where cuBLASLt does not do it. The
    rows of ``out`` may have gaps between them, each as large as the others.

    Args:
        batch: how many products
        steps: strides from one matrix of ``x`` and ``y`` to the next
        adds: to what is in ``out``
    """
    products = of_device(out.storage.on, Products, NAME)
    if products is None or out.dtype.name not in KINDS:
        return None
    m, k, n = out.shape[-2] if batch > 1 else out.size // out.shape[-1], x.shape[-1], out.shape[-1]
    row = out.strides[-2] if out.ndim > 1 else n
    like = m, k, n, x.strides[-2:], y.strides[-2:], row, out.dtype, batch, steps, adds
    return Repeated(products, like) if products.start(like, x, y, bias, out) else None


class Products:
    """cuBLASLt on one device."""

    def __init__(self, on: Device) -> None:
        on.enter()
        self.on, self.lt = on, library(NAME)
        self.handle = self.lt.create()
        # by how operands lie; and how they are aligned, and whether the fastest algorithm is wanted
        self.plans: dict[Any, dict[tuple[tuple[int, ...], bool], Plan | None]] = {}
        self._lock = threading.Lock()  # where a bias lies is written into a description

    def start(self, like: tuple[Any, ...], x: CudaArray, y: CudaArray, bias: CudaArray | None, out: CudaArray) -> bool:
        """Start a product of operands that lie like this; whether the library does that."""
        arrays = (x, y, out) if bias is None else (x, y, out, bias)
        key = tuple([min(16, a.address & -a.address) for a in arrays]), wanted(in_steps=True)
        plans = self.plans.get(like) or self.plans.setdefault(like, {})
        if key not in plans:
            plans[key] = self._planned(*like, *key, bias)
        plan = plans[key]
        if plan is None:
            return False
        if plan.others and self.on.enter().notes is None:
            plan = plans[key] = self._chosen(plan, (*like, *key, bias is not None), x, y, bias, out)
        self._start(plan, x, y, bias, out)
        return True

    def _chosen(self, plan: Plan, kind: tuple[Any, ...], x: CudaArray, y: CudaArray, bias: CudaArray | None,
                out: CudaArray) -> Plan:  # fmt: skip
        """With the algorithm that is the fastest here."""
        plans = [replace(plan, chosen=each, others=()) for each in plan.others]
        with taking(None):  # it is of no call of a step
            space = workspace(self.on, max([each.workspace for each in plans]))
        ways = [lambda each=each: self._call(each, x, y, bias, out, space, current(self.on)) for each in plans]
        number = choice(self.on, (NAME, self.lt.get_version(), *kind, len(ways)), ways)
        return plans[number or 0]

    def _start(self, plan: Plan, x: CudaArray, y: CudaArray, bias: CudaArray | None, out: CudaArray) -> None:
        space = workspace(self.on, plan.workspace)
        stream = used(x, y, out) if bias is None else used(x, y, out, bias)
        if self.on.enter().notes is None:
            self._call(plan, x, y, bias, out, space, stream)

    def _call(self, plan: Plan, x: CudaArray, y: CudaArray, bias: CudaArray | None, out: CudaArray, space: CudaArray,
              stream: Stream) -> None:  # fmt: skip
        first, second, result = plan.layouts
        one, zero, algorithm = plan.addresses
        with self._lock:
            if bias is not None and bias.address != plan.bias:
                self._set(plan.description, self.lt.MatmulDescAttribute.BIAS_POINTER, np.int64, bias.address)
                plan.bias = bias.address
            self.lt.matmul(
                self.handle, plan.description, one, y.address, first, x.address, second, zero,
                out.address, result, out.address, result, algorithm, space.address, plan.workspace, stream.handle,
            )  # fmt: skip

    # ---- a kind of product

    def _planned(self, m: int, k: int, n: int, left: Any, right: Any, row: int, dtype: Any, batch: int, steps: Any, adds: bool,
                 aligned: tuple[int, ...], fastest: bool, bias: CudaArray | None) -> Plan | None:  # fmt: skip
        first, second = matrix(k, n, right), matrix(m, k, left)
        if first is None or second is None:
            return None
        lt, kind, exact = self.lt, KINDS[dtype.name], dtype.name == "float64"
        scale = KINDS["float64" if exact else "float32"]
        description = lt.matmul_desc_create(COMPUTE_64F if exact else COMPUTE_32F, scale)
        self._set(description, lt.MatmulDescAttribute.TRANSA, np.int32, first.operation)
        self._set(description, lt.MatmulDescAttribute.TRANSB, np.int32, second.operation)
        if bias is not None:
            self._set(description, lt.MatmulDescAttribute.EPILOGUE, np.uint32, int(lt.Epilogue.BIAS))
            self._set(description, lt.MatmulDescAttribute.BIAS_POINTER, np.int64, bias.address)
        each = zip((first, second, Matrix(NORMAL, n, m, row)), (steps[1], steps[0], m * row), strict=True)
        layouts = tuple([self._layout(kind, lying, batch, step) for lying, step in each])
        several = fastest and not adds and batch * m * n * k >= LARGE  # what adds may do so once
        asked = ((ALGORITHMS, WORKSPACE), (ALGORITHMS, 0)) if several else ((1, WORKSPACE),)
        offered = [each for tries, space in asked for each in self._best(description, layouts, aligned, tries, space)]
        best = list({each["algo"].tobytes(): each for each in offered}.values())
        scales = np.array([1, adds], np.float64 if exact else np.float32)
        if not best:
            return None
        return Plan(description, layouts, best[0], scales, tuple(best) if len(best) > 1 else ())  # type: ignore[arg-type]

    def _layout(self, kind: int, lying: Matrix, batch: int, step: int) -> int:
        layout = self.lt.matrix_layout_create(kind, lying.rows, lying.columns, lying.step)
        if batch > 1:
            names = self.lt.MatrixLayoutAttribute
            self._set_layout(layout, names.BATCH_COUNT, np.int32, batch)
            self._set_layout(layout, names.STRIDED_BATCH_OFFSET, np.int64, step)
        return int(layout)

    def _best(self, description: int, layouts: Any, aligned: tuple[int, ...], tries: int, space: int) -> list[Any]:
        """The algorithms that the library thinks best, the best first; none if it has none."""
        lt = self.lt
        preference, names = lt.matmul_preference_create(), lt.MatmulPreferenceAttribute
        try:
            wanted = [(names.MAX_WORKSPACE_BYTES, np.uint64, space)]
            x, y, out = aligned[:3]
            for letter, multiple in zip("ABCD", (y, x, out, out), strict=True):
                wanted.append((getattr(names, f"MIN_ALIGNMENT_{letter}_BYTES"), np.uint32, multiple))
            for attribute, number, value in wanted:
                held = np.array(value, number)
                lt.matmul_preference_set_attribute(preference, int(attribute), held.ctypes.data, held.nbytes)
            best, count = np.zeros(tries, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
            first, second, result = layouts
            lt.matmul_algo_get_heuristic(
                self.handle,
                description,
                first,
                second,
                result,
                result,
                preference,
                tries,
                best.ctypes.data,
                count.ctypes.data,
            )
        except lt.cuBLASLtError:  # it says so of what it has no kernel for
            return []
        finally:
            lt.matmul_preference_destroy(preference)
        return [best[i : i + 1].copy() for i in range(int(count[0])) if not best["state"][i]]

    def _set(self, description: int, attribute: Any, kind: Any, value: int) -> None:
        held = np.array(value, kind)
        self.lt.matmul_desc_set_attribute(description, int(attribute), held.ctypes.data, held.nbytes)

    def _set_layout(self, layout: int, attribute: Any, kind: Any, value: int) -> None:
        held = np.array(value, kind)
        self.lt.matrix_layout_set_attribute(layout, int(attribute), held.ctypes.data, held.nbytes)
