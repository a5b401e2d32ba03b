"""Products of matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.onnx.builder import Builder, Value, lowers


@lowers("matmul")
def _matmul(b: Builder, x: Value, y: Value) -> str:
    return b.node("MatMul", b.cast(x, b.out.dtype), b.cast(y, b.out.dtype))


@lowers("matmul_tn")
def _matmul_tn(b: Builder, x: Value, y: Value) -> str:
    return b.node("MatMul", b.node("Transpose", x, perm=[1, 0]), y)


@lowers("linear")
def _linear(b: Builder, x: Value, weight: Value, bias: Value | None = None) -> str:
    if x.rank == 2 and weight.rank == 2 and bias is not None and bias.rank == 1:
        return b.node("Gemm", x, weight, bias, transB=1)
    turned = b.node("Transpose", weight, perm=[1, 0]) if weight.rank == 2 else weight
    out = b.node("MatMul", x, turned)
    return out if bias is None else b.node("Add", out, bias)


@lowers("einsum_terms")
def _einsum(b: Builder, operands: Sequence[Value], terms: Sequence[str], result: str) -> str:
    return b.node("Einsum", *[b.cast(x, b.out.dtype) for x in operands], equation=f"{','.join(terms)}->{result}")
