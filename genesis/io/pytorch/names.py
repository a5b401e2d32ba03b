"""The names that a checkpoint may use, and the functions that stand for them. Nothing else can be named."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from genesis.base import dtypes
from genesis.base.device import device
from genesis.base.errors import GenesisError
from genesis.core.graph.size import Size
from genesis.io.blocks import short
from genesis.io.pytorch import numpy_values, tensors
from genesis.io.pytorch.inert import Named
from genesis.io.pytorch.numpy_values import latin1
from genesis.io.source import Damaged

_RENAMED = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy",
    "numpy._core.multiarray": "numpy",
    "numpy._core.numeric": "numpy",
    "numpy.core.numeric": "numpy",
    "torch.tensor": "torch._tensor",
    "torch.cuda": "torch",
    "torch.storage": "torch",
}
_UNSUPPORTED = {
    "_rebuild_sparse_tensor": "a sparse tensor",
    "_rebuild_sparse_csr_tensor": "a sparse tensor",
    "_rebuild_qtensor": "a quantized tensor",
    "_rebuild_nested_tensor": "a nested tensor",
    "_rebuild_wrapper_subclass": "a tensor of a subclass",
    "_get_layout": "a layout",
}


def resolve(module: str, name: str) -> Any:
    """What a name of a pickle stands for.

    Raises:
        Damaged: it is not in the table; the message names it
    """
    whole = f"{_RENAMED.get(module, module)}.{name}"
    if whole in _TABLE:
        return _TABLE[whole]
    said = "".join(c if c.isprintable() else "?" for c in f"{module}.{name}"[:120])
    if module in ("torch._utils", "torch.serialization") and name in _UNSUPPORTED:
        raise Damaged(
            f"holds {_UNSUPPORTED[name]} ({said}), which Genesis does not have",
            "convert it to a dense tensor before it is saved",
        )
    if (module == "torch" and re.match("(q?u?int|float|bits|complex)[0-9]", name)) or (
        module.startswith("torch") and name.endswith("Storage")
    ):
        raise Damaged(
            f"holds tensors of {said}, which Genesis does not have",
            "convert them to another dtype before they are saved",
        )
    hint = "in the program that made the file, save model.state_dict() and plain values, not whole objects"
    raise Damaged(f"needs {said}, which is neither a tensor nor a container: it was refused, and nothing was run", hint)


# ---- containers


def _ordered(pairs: Any = ()) -> Any:
    return OrderedDict(_pairs(pairs))


def _pairs(pairs: Any) -> Any:
    if type(pairs) in (dict, OrderedDict):
        return pairs
    if type(pairs) not in (list, tuple) or any(
        type(p) not in (list, tuple) or len(p) != 2 or type(p[0]) is not str for p in pairs
    ):
        raise Damaged("is damaged: a dict is made of what are no pairs")
    return pairs


def _with_default(factory: Any = None) -> Any:
    made = _FACTORIES.get(factory.name) if type(factory) is Named else None
    if factory is not None and made is None:
        raise Damaged("is refused: a defaultdict has a factory other than dict, list, set, int, float or str")
    return defaultdict(made)


def _counter(counts: Any = ()) -> Any:
    if type(counts) not in (dict, tuple) or (type(counts) is tuple and counts):
        raise Damaged("is damaged: a Counter is made of what is no dict")
    out: Counter[Any] = Counter()
    dict.update(out, counts)
    return out


def _sequence(kind: Any) -> Any:
    def make(items: Any = ()) -> Any:
        if type(items) not in (list, tuple):
            raise Damaged(f"is damaged: a {kind.__name__} is made of what is no list")
        return kind(items)  # of elements that were checked before, where it is a set

    return make


def _size(numbers: Any = ()) -> Size:
    if type(numbers) not in (list, tuple) or any(type(n) is not int for n in numbers):
        raise Damaged(f"is damaged: {short(numbers)} is no size")
    return Size(numbers)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise Damaged("is damaged: a complex number is made of what are no floats")
    return complex(real, imag)


def _bytearray(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    return bytearray(data if type(data) is bytes else latin1(data, encoding))


def _no_bytes() -> bytes:
    return b""


def _device(name: Any, index: Any = None) -> device:
    if type(name) is not str or (index is not None and type(index) is not int) or len(name) > 40:
        raise Damaged("is damaged: a device has no name")
    try:
        return device(name, index)
    except GenesisError:
        raise Damaged(f"holds the device {name[:40]!r}, which Genesis does not know") from None


def _never(*_: Any) -> Any:
    raise Damaged("is damaged: it makes an object of a class in a way that is not known")


_FACTORIES: dict[str, Any] = {f"builtins.{kind.__name__}": kind for kind in (dict, list, set, int, float, str)}


def _table() -> dict[str, Any]:
    functions = [
        ("collections.OrderedDict", _ordered, 0, 1),
        ("collections.defaultdict", _with_default, 0, 1),
        ("collections.Counter", _counter, 0, 1),
        ("builtins.set", _sequence(set), 0, 1),
        ("builtins.frozenset", _sequence(frozenset), 0, 1),
        ("builtins.list", _sequence(list), 0, 1),
        ("builtins.tuple", _sequence(tuple), 0, 1),
        ("builtins.dict", dict, 0, 0),
        ("builtins.int", _never, 0, 0),
        ("builtins.float", _never, 0, 0),
        ("builtins.str", _never, 0, 0),
        ("builtins.complex", _complex, 0, 2),
        ("builtins.bytearray", _bytearray, 0, 2),
        ("builtins.bytes", _no_bytes, 0, 0),
        ("_codecs.encode", latin1, 2, 2),
        ("torch.Size", _size, 0, 1),
        ("torch.device", _device, 1, 2),
        ("torch.Tensor", _never, 0, 0),
        ("torch.nn.parameter.Parameter", _never, 0, 0),
        ("torch._utils._rebuild_tensor", tensors.tensor, 4, 4),
        ("torch._utils._rebuild_tensor_v2", tensors.tensor_v2, 6, 7),
        ("torch._utils._rebuild_tensor_v3", tensors.tensor_v3, 7, 8),
        ("torch._utils._rebuild_meta_tensor_no_storage", tensors.meta_tensor, 4, 4),
        ("torch._utils._rebuild_parameter", tensors.parameter, 3, 3),
        ("torch._utils._rebuild_parameter_with_state", tensors.parameter, 4, 4),
        ("torch._tensor._rebuild_from_type_v2", tensors.of_type, 4, 4),
        ("numpy.ndarray", _never, 0, 0),
        ("numpy.dtype", numpy_values.numpy_type, 1, 3),
        ("numpy.scalar", numpy_values.scalar, 2, 2),
        ("numpy._reconstruct", numpy_values.empty, 3, 3),
        ("numpy._frombuffer", numpy_values.array, 4, 4),
    ]
    table: dict[str, Any] = {name: Named(name, function, least, most) for name, function, least, most in functions}
    table |= {f"torch.{name}": tensors.StorageType(kind) for name, kind in tensors.STORAGES.items()}
    return (
        table
        | {"torch.UntypedStorage": tensors.StorageType(None)}
        | {f"torch.{kind.name}": kind for kind in (*dtypes.ALL, *dtypes.STORED)}
    )


_TABLE = _table()
