"""Valid calls of functions of tensors that are no ops, for the signature fuzzer; a part of `signature_calls`."""

from __future__ import annotations

from collections.abc import Callable

import genesis
from genesis.core.call.op import Case, case
from genesis.testing.make import Maker

Calls = Callable[[Maker], list[Case]]
_one: Calls = lambda t: [case(t(2, 3))]  # noqa: E731

CALLS: dict[str, Calls] = {
    **dict.fromkeys(("is_conj", "is_neg", "is_signed", "get_device", "resolve_conj", "resolve_neg"), _one),
    "is_nonzero": lambda t: [case(t(1))],
    "is_same_size": lambda t: [case(t(2), t(3))],
    "is_storage": lambda t: [case(t(2))],
    "empty_strided": lambda t: [case((2, 3), (1, 2))],
    "empty_permuted": lambda t: [case((2, 3), (1, 0))],
    "range": lambda t: [case(1, 3), case(0, 1, 0.5)],
    "rsub": lambda t: [case(t(2), 3), case(t(2), t(2), alpha=2)],
    "chain_matmul": lambda t: [case(t(2, 3), t(3, 4), t(4, 2))],
    "combinations": lambda t: [case(t(3)), case(t(3), 2, True)],
    "gradient": lambda t: [case(t(4)), case(t(3, 4), spacing=2.0, dim=1, edge_order=2)],
    "histogram": lambda t: [case(t(5), 3), case(t(5), 3, range=(-1.0, 1.0), density=True)],
    "histogramdd": lambda t: [case(t(5, 2), [2, 3]), case(t(5, 2), 2)],
    "nonzero_static": lambda t: [case(t(2, 3), size=4)],
    "unravel_index": lambda t: [case(t.int(3, low=0, high=6), (2, 3))],
    "sparse_coo_tensor": lambda t: [case([[0, 1], [1, 0]], [3.0, 4.0], (2, 2))],
    "spmm": lambda t: [case(genesis.eye(2).to_sparse(), t(2, 3).float())],
    "view_as_real": lambda t: [case(genesis.complex(t(2), t(2)))],
}

UNCALLED = {
    **dict.fromkeys(("layout", "memory_format"), "classes of values that exist, for isinstance"),
    **dict.fromkeys(("TypedStorage", "UntypedStorage", "SparseTensor"), "results of other calls"),
}
