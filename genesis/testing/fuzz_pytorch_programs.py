"""Random programs for `fuzz_pytorch`: promotion, views and writes, Functions, transforms; text in names that Genesis
and PyTorch share.

A program is a list of statements; ``T`` is either library, ``seen`` a list that is compared like the variables. A
statement that fails in both is passed over, so what is written need not be right, only often right: shapes are followed
for that alone.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    *FLOATS,
    "complex64",
    "complex128",
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (), (3,), (3,), (2, 3), (2, 1), (1,), (0,))

BINARY = (
    "add",
    "sub",
    "mul",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "logaddexp",
    "copysign",
    "xlogy",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "isclose",
    "bitwise_left_shift",
    "heaviside",
    "ldexp",
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>")
UNARY = (
    "neg",
    "abs",
    "sqrt",
    "exp",
    "sin",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "square",
    "reciprocal",
    "sigmoid",
    "logical_not",
    "bitwise_not",
    "isnan",
    "isfinite",
    "rsqrt",
    "tanh",
    "log1p",
    "expm1",
    "positive",
    "signbit",
    "conj",
    "angle",
    "sgn",
    "frac",
)
REDUCE = (
    "sum()",
    "prod()",
    "mean()",
    "any()",
    "all()",
    "amax()",
    "amin()",
    "max()",
    "min()",
    "argmax()",
    "var()",
    "sum(-1)",
    "prod(-1)",
    "cumsum(-1)",
    "cumprod(-1)",
    "mean(-1)",
    "any(-1)",
    "norm()",
    "count_nonzero()",
    "logsumexp(-1)",
    "sum(-1, keepdim=True)",
    "nansum()",
    "std(-1)",
)


class Writer:
    """What the writers share: chance, names and shapes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def make(self, text: str, shape: tuple[int, ...] | None = ()) -> str:
        """``vN = text``; a shape of None: not to be used again."""
        name = f"v{len(self.lines)}" if shape is not None else f"r{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if shape is not None:
            self.shapes[name] = shape
        return name

    def any(self, shape: tuple[int, ...] | None = None) -> str:
        names = [n for n, s in self.shapes.items() if shape is None or s == shape]
        return str(self.random.choice(names[-6:] if self.chance(0.7) else names)) if names else "0.5"

    def reals(self, shape: tuple[int, ...]) -> str:
        n = int(np.prod(shape))
        values = np.array([self.random.randint(-40, 40) / 32 + 0.013 for _ in range(n)]).reshape(shape)
        return f"T.tensor({np.round(values, 4).tolist()}, dtype=T.float64)"


# ---- promotion


def promotion(seed: int) -> list[str]:
    """All dtypes, numbers and shapes through functions, operators, in-place forms, ``out=``, comparisons, reductions,
    and their gradients.
    """
    w = Writer(seed)
    for _ in range(w.random.randint(2, 4)):
        _typed(w)
    actions = (
        _function,
        _function,
        _operator,
        _operator,
        _in_place,
        _augmented,
        _out,
        _mixed,
        _unary,
        _reduce,
        _types,
        _gradient,
    )
    for _ in range(9):
        w.pick(*actions)(w)
    return w.lines


def _typed(w: Writer) -> None:
    dtype, shape = w.pick(*DTYPES), w.pick(*SHAPES)
    # small and never negative where unsigned: what a conversion makes of numbers out of range is the processor's choice
    if dtype == "bool":
        choices: tuple[Any, ...] = (True, False)
    elif dtype[0] in "ui":
        choices = (1, 2, 3, 5) if dtype[0] == "u" else (-2, -1, 1, 2, 3)
    else:
        choices = (-1.5, 0.5, 1.0, 2.0, 2.25) if dtype[0] != "c" else (1 + 2j, -0.5j, 2 + 0j, 0.5 - 1j)
    values = np.array([w.pick(*choices) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape).tolist()
    # not of no elements: cat passes over them, their gradient has nothing in it
    grad = ", requires_grad=True" if shape != (0,) and dtype[0] in "fbc" and dtype != "bool" and w.chance(0.35) else ""
    w.make(f"T.tensor({values}, dtype=T.{dtype}{grad})", shape)


def _number(w: Writer) -> str:
    return str(w.pick("True", "2", "3", "-1", "0.5", "2.0", "1.5", "(1+2j)"))


def _operand(w: Writer) -> str:
    return w.any() if w.chance(0.7) else _number(w)


def _function(w: Writer) -> None:
    w.make(f"T.{w.pick(*BINARY)}({w.any()}, {_operand(w)})", None)


def _operator(w: Writer) -> None:
    a, b = w.any(), _operand(w)
    if w.chance(0.3):
        a, b = b, a
    w.make(f"{a} {w.pick(*OPERATORS)} {b}", None)


def _in_place(w: Writer) -> None:
    x, method = (
        w.any(),
        w.pick(
            "add_",
            "sub_",
            "mul_",
            "div_",
            "floor_divide_",
            "pow_",
            "remainder_",
            "eq_",
            "lt_",
            "logical_and_",
            "bitwise_and_",
            "copy_",
            "fill_",
            "atan2_",
            "ldexp_",
        ),
    )
    # nothing negative: see _typed
    y = w.pick("True", "2", "0.5") if method == "fill_" else f"{w.any()}.abs()" if method == "copy_" else _operand(w)
    w.make(f"{x}.detach().clone().{method}({y})", None)


def _augmented(w: Writer) -> None:
    x, op, y = w.any(), w.pick("+", "-", "*", "/", "//", "%", "**", "&", "|", "^"), _operand(w)
    name = w.make(f"{x}.clone()", None)
    w.lines.append(f"{name} {op}= {y}")


def _out(w: Writer) -> None:
    out = w.make(f"T.zeros({list(w.pick((3,), (3,), (2, 3), (0,)))}, dtype=T.{w.pick(*DTYPES)})", None)
    a, b = w.any(), w.any()
    text = w.pick(
        f"{w.pick(*BINARY[:20])}({a}.detach(), {b}.detach()",
        f"{w.pick(*UNARY[:14])}({a}.detach()",
        f"sum({a}.detach(), -1",
        f"cat([{a}.detach(), {b}.detach()]",
    )
    w.make(f"T.{text}, out={out})", None)


def _mixed(w: Writer) -> None:
    a, b, c, n = w.any(), w.any(), w.any(), _operand(w)
    w.make(
        w.pick(
            f"T.where({a}.detach() == {a}.detach(), {b}, {n})",
            f"T.where({a}.detach() != {a}.detach(), {n}, {b})",
            f"T.cat([{a}, {b}])",
            f"T.stack([{a}, {b}])",
            f"T.clamp({a}, {n}, {_operand(w)})",
            f"T.clamp({a}, min={n})",
            f"T.clamp({a}, max={n})",
            f"T.add({a}, {b}, alpha={_number(w)})",
            f"T.sub({a}, {b}, alpha={_number(w)})",
            f"T.addcmul({a}, {b}, {c}, value={_number(w)})",
            f"T.addcdiv({a}, {b}, {c})",
            f"T.lerp({a}, {b}, {n})",
            f"T.div({a}, {n}, rounding_mode={w.pick('None', repr('floor'), repr('trunc'))})",
            f"T.full((2,), {_number(w)})",
            f"T.full_like({a}, 2)",
            f"T.tensor([{_number(w)}, {_number(w)}])",
            f"T.as_tensor({_number(w)})",
            f"T.masked_fill({a}, {b}.bool(), {n})",
            f"T.rsub({a}, {n})",
            f"T.nan_to_num({a})",
            f"T.float_power({a}, {n})",
            f"T.arange({w.pick('3', '2.5', '0, 2', '0, 1.5, 0.5')})",
            f"T.ldexp({a}, {b})",
            f"T.dot({a}, {b})",
            f"T.outer({a}, {b})",
            f"T.matmul({a}, {b})",
            f"T.sum({a}, dtype=T.{w.pick(*FLOATS)})",
            f"T.tensor({w.pick('3', '1.5')}) + {a}",
        ),
        None,
    )


def _unary(w: Writer) -> None:
    w.make(f"T.{w.pick(*UNARY)}({w.any()})", None)


def _reduce(w: Writer) -> None:
    w.make(f"{w.any()}.{w.pick(*REDUCE)}", None)


def _types(w: Writer) -> None:
    a, b = w.pick(*DTYPES), w.pick(*DTYPES)
    w.make(
        w.pick(
            f"T.result_type({w.any()}, {_operand(w)})",
            f"T.promote_types(T.{a}, T.{b})",
            f"T.can_cast(T.{a}, T.{b})",
            f"{w.any()}.abs().to(T.{a})",
            f"{w.any()}.dtype.is_floating_point",
            f"{w.any()}.{w.pick('float()', 'double()', 'half()', 'bool()', 'bfloat16()')}",
        ),
        None,
    )


def _gradient(w: Writer) -> None:
    inputs = ", ".join(w.shapes)
    a, b = w.any(), _operand(w)
    loss = w.make(
        w.pick(
            f"{a} * {b}",
            f"{a} + {b}",
            f"{a} - {b}",
            f"{a} / {b}",
            f"T.maximum({a}, {b})",
            f"T.where({a}.detach() == {a}.detach(), {a}, {b})",
        ),
        None,
    )
    w.make(f"T.autograd.grad({loss}.abs().sum(), [t for t in ({inputs},) if t.requires_grad], allow_unused=True)", None)


# ---- views, writes, indexing, double backward


def memory(seed: int) -> list[str]:
    """Views, indexing of every form, writes through them, and first and second gradients."""
    w = Writer(seed)
    for _ in range(2):
        shape = w.pick((2, 3), (3,), (2, 2, 3), (4, 3))
        leaf = w.make(f"{w.reals(shape)}{'.requires_grad_()' if w.chance(0.8) else ''}", shape)
        w.make(f"{leaf} * {w.pick('1.5', '-0.5', '2.0')}", shape)
    for _ in range(w.random.randint(5, 10)):
        w.pick(_view, _view, _index, _index, _compute, _compute, _write, _write, _assign, _assign, _gather)(w)
    _differentiate(w)
    return w.lines


def _index_text(w: Writer, shape: tuple[int, ...]) -> str:
    parts, left = [], list(shape)
    if w.chance(0.12) and shape:  # a mask of the first dims
        k = w.random.randint(1, len(shape))
        return (
            f"T.tensor({np.array([w.chance(0.6) for _ in range(int(np.prod(shape[:k])))]).reshape(shape[:k]).tolist()})"
        )
    while left and w.chance(0.85):
        n = left[0]
        kind = w.pick("int", "slice", "slice", "list", "tensor", "none", "matrix", "dots", "mask", "0-d")
        if kind == "dots" and "..." not in parts:
            parts.append("...")
            left = left[w.random.randint(0, len(left) - 1) :]
            continue
        if kind == "none":
            parts.append("None")
            continue
        i = [w.random.randint(-n, n - 1) if n else 0 for _ in range(2)]
        parts.append(
            {
                "int": f"{i[0]}",
                "slice": w.pick(":", "1:", ":-1", "::2", "0:1"),
                "list": f"[{i[0]}, {i[1]}]",
                "tensor": f"T.tensor([{i[0]}, {i[1]}])",
                "matrix": f"T.tensor([[{i[0]}], [{i[1]}]])",
                "mask": f"T.tensor({[w.chance(0.6) for _ in range(n)]})",
                "0-d": f"T.tensor({i[0]})",
            }.get(kind, ":")
        )
        left = left[1:]
    return ", ".join(parts) or "..."


class _NumPy:
    """What an index means to shapes, by NumPy."""

    tensor = staticmethod(np.array)


def _places(shape: tuple[int, ...], index: str) -> np.ndarray[Any, Any] | None:
    """Which elements an index means, nothing if it is wrong."""
    try:
        return np.asarray(eval(f"x[{index}]", {"T": _NumPy, "x": np.arange(int(np.prod(shape))).reshape(shape)}))
    except (IndexError, ValueError):
        return None


def _indexed(shape: tuple[int, ...], index: str) -> tuple[int, ...] | None:
    got = _places(shape, index)
    return None if got is None else got.shape


def _index(w: Writer) -> None:
    x = w.any()
    if x in w.shapes:
        index = _index_text(w, w.shapes[x])
        shape = _indexed(w.shapes[x], index)
        w.make(f"{x}[{index}]", shape)


def _windows(w: Writer, x: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    dim, step = w.random.randrange(len(shape)), w.pick(1, 1, 2, 3)
    size = w.random.randint(0 if w.chance(0.1) else 1, max(shape[dim], 1))
    counted = max((shape[dim] - size) // step + 1, 0)
    return f"{x}.unfold({dim}, {size}, {step})", (*shape[:dim], counted, *shape[dim + 1 :], size)


def _view(w: Writer) -> None:
    x = w.any()
    shape = w.shapes.get(x, ())
    if not shape:
        return
    choices = [
        (f"{x}.transpose(0, -1)", (shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape),
        (f"{x}.unsqueeze(0)", (1, *shape)),
        (f"{x}.flatten()[:]", (int(np.prod(shape)),)),
        (f"{x}.reshape(-1)", (int(np.prod(shape)),)),
        (f"{x}.narrow(0, 0, 1)", (1, *shape[1:])),
        (f"{x}.select(-1, 0)", shape[:-1]),
        (f"{x}.expand({[2, *shape]})", (2, *shape)),
        (f"{x}.squeeze(0)", shape[1:] if shape[0] == 1 else shape),
        (f"{x}.movedim(0, -1)", (*shape[1:], shape[0])),
        (f"{x}.unbind(0)[0]", shape[1:]),
        _windows(w, x, shape),
        (f"{x}.view({list(shape)})", shape),
        (f"{x}.chunk({max(shape[0], 1)})[-1]", (1, *shape[1:])),
        (f"{x}.split(1, -1)[0]", (*shape[:-1], 1)),
        (f"{x}.view_as({x})", shape),
        (f"{x}.detach()", shape),
    ]
    if len(shape) > 1:
        choices.append((f"{x}.diagonal()", (min(shape[:2]),) if len(shape) == 2 else (shape[2], min(shape[:2]))))
        choices.append((f"{x}.permute({[*range(1, len(shape)), 0]})", (*shape[1:], shape[0])))
        choices.append((f"{x}.mT", (*shape[:-2], shape[-1], shape[-2])))
    w.make(*w.pick(*choices))


def _compute(w: Writer) -> None:
    x = w.any()
    shape = w.shapes.get(x, ())
    y = w.any(shape) if w.chance(0.7) else w.pick("0.5", "2.0")
    w.make(
        *w.pick(
            (f"{x}.sin()", shape),
            (f"{x}.exp()", shape),
            (f"{x} * {y}", shape),
            (f"{x} + {y}", shape),
            (f"{x} * {x}", shape),
            (f"{x}.tanh()", shape),
            (f"{x}.sum()", ()),
            (f"{x}.cumsum(-1)", shape),
            (f"T.where({x} > 0.1, {x}, {y})", shape),
            (f"{x}.clone()", shape),
            (f"{x}.flip(0)", shape),
            (f"T.sort({x}, -1)[0]", shape),
            (f"{x} - {y}", shape),
            (f"{x}.softmax(-1)", shape),
            (f"{x}.roll(1, 0)", shape),
            (f"T.stack([{x}, {x}])", (2, *shape)),
            (f"{x}.amax(-1)", shape[:-1]),
            (f"{x}.logsumexp(-1)", shape[:-1]),
            (f"{x} / ({y} * {y} + 1.0)" if y in w.shapes else f"{x} / 2.0", shape),
        )
    )


def _write(w: Writer) -> None:
    x = w.any()
    shape = w.shapes.get(x, ())
    y = w.any(shape) if w.chance(0.6) else w.any()
    text = w.pick(
        f"mul_({y})",
        f"add_({y})",
        "mul_(2.0)",
        "zero_()",
        "sin_()",
        "fill_(0.5)",
        f"copy_({y})",
        f"fill_({w.any(())})",
        "exp_()",
        f"sub_({y}, alpha=2.0)",
        "clamp_(-0.5, 0.5)",
        f"masked_fill_({x}.detach() > 0.2, 0.25)",
        "index_fill_(0, T.tensor([0, 0]), 0.5)",
        f"index_add_(0, T.tensor([0, 0]), {x}.detach()[:2])",
        "scatter_(-1, T.zeros([1] * " + str(len(shape)) + ", dtype=T.int64), 0.75)",
        f"addcmul_({y}, {y})",
        f"lerp_({y}, 0.5)",
        "neg_()",
        "div_(2.0)",
        f"index_copy_(0, T.tensor([0]), {y}[:1])",
        f"masked_scatter_({x}.detach() > 0.2, {y} * 1.0)",
        f"copysign_({y})",
    )
    how = w.pick("{}", "{}", "{}", "{}", "with T.no_grad(): {}")
    w.lines.append(how.format(f"{x}.{text}"))


def _assign(w: Writer) -> None:
    x = w.any()
    if x not in w.shapes:
        return
    index = _index_text(w, w.shapes[x])
    if "[" in index and w.chance(0.9) and _repeats(w.shapes[x], index):
        return  # which of several values for one place stays is nobody's promise
    got = _indexed(w.shapes[x], index)
    y = w.pick("0.25", w.any(got), w.any(got), w.any())
    # PyTorch reads a view of what it writes to while it writes
    y = f"{y}.clone()" if "[" in index and y in w.shapes else y
    w.lines.append(w.pick(f"{x}[{index}] = {y}", f"{x}[{index}] = {y}", f"{x}[{index}] *= {y}", f"{x}[{index}] += {y}"))


def _repeats(shape: tuple[int, ...], index: str) -> bool:
    got = _places(shape, index)
    return got is not None and len(np.unique(got)) < got.size


def _gather(w: Writer) -> None:
    x = w.any()
    shape = w.shapes.get(x, ())
    if not shape:
        return
    n = shape[0] or 1
    w.make(
        *w.pick(
            (f"{x}.index_select(0, T.tensor([0, {n - 1}, 0]))", (3, *shape[1:])),
            (f"{x}.gather(-1, T.zeros({[*shape[:-1], 2]}, dtype=T.int64))", (*shape[:-1], 2)),
            (f"T.take({x}, T.tensor([0, -1, 0]))", (3,)),
            (f"{x}.masked_select({x}.detach() > 0)", None),
            (f"T.take_along_dim({x}, T.argsort({x}.detach(), -1), -1)", shape),
            (f"{x}.index_put((T.tensor([0, {n - 1}]),), T.tensor(0.5, dtype=T.float64), accumulate=True)", shape),
            (f"{x}.scatter_add(0, T.zeros({list(shape)}, dtype=T.int64), {x})", shape),
            (f"{x}.index_add(0, T.tensor([0, {n - 1}]), {x}[:2], alpha=0.5)", shape),
            (f"T.select_scatter({x}, {x}[0] * 2.0, 0, {n - 1})", shape),
            (f"{x}.repeat_interleave(2, 0)", (2 * n, *shape[1:])),
        )
    )


def _differentiate(w: Writer) -> None:
    leaves = f"[t for t in (v0, v2, {w.any()}) if hasattr(t, 'requires_grad') and t.requires_grad]"
    root = w.any()
    weights = w.reals(w.shapes.get(root, ()))
    w.lines.append(f"g = T.autograd.grad(({root} * {weights}).sum(), {leaves}, create_graph=True, allow_unused=True)")
    w.lines.append("gg = sum((t * t).sum() for t in g if t is not None)")
    w.lines.append(
        w.pick(
            "gg.backward()",
            f"h = T.autograd.grad(gg, {leaves}, allow_unused=True)",
            f"h = T.autograd.grad(gg, {leaves}, materialize_grads=True)",
            "gg.backward(inputs=[v0])",
        )
    )
    w.lines.append(f"{root}.sum().backward()")


# ---- Functions


def functions(seed: int) -> list[str]:
    """Custom Functions: several outputs, None, needs_input_grad, mark_dirty, what is not differentiable, what is saved;
    second gradients.
    """
    w = Writer(seed)
    w.lines.append(_function_text(w, "F"))
    for _ in range(3):
        x = w.make(f"{w.reals((3,))}{'.requires_grad_()' if w.chance(0.7) else ''}", (3,))
        if w.chance(0.5):
            w.make(f"{x} * 1.5", (3,))
    for _ in range(w.random.randint(1, 3)):
        a, b, n = w.any(), w.any(), len(w.lines)
        w.lines.append(f"v{n}, u{n} = F.apply({a}, {b}, {w.pick('2.0', 'None', '3')})")
        w.shapes[f"v{n}"] = w.shapes[f"u{n}"] = (3,)
        if w.chance(0.6):
            w.pick(_compute, _write, _write)(w)
    names = [n for n in w.shapes if w.shapes[n] == (3,)]
    root = w.pick(*names[-4:])
    inputs = f"[t for t in ({', '.join(names)},) if t.requires_grad]"
    w.lines.append(
        f"g = T.autograd.grad(({root} * {w.reals((3,))}).sum(), {inputs}, create_graph={w.chance(0.7)}, "
        "retain_graph=True, allow_unused=True)"
    )
    w.lines.append("gg = sum((t * t).sum() for t in g if t is not None)")
    w.lines.append(w.pick("gg.backward()", f"h = T.autograd.grad(gg, {inputs}, allow_unused=True)"))
    w.lines.append(f"{root}.sum().backward()")
    return w.lines


def _function_text(w: Writer, name: str) -> str:
    dirty, other = w.chance(0.25), w.chance(0.2)
    marks = (
        ["ctx.mark_dirty(x)"] * dirty
        + ["ctx.mark_non_differentiable(b)"] * other
        + ["ctx.set_materialize_grads(False)"] * w.chance(0.3)
    )
    # never x itself: where it is saved, PyTorch takes it for the result (and refuses it in setup_context), Genesis for
    # the input
    first = (
        w.pick("x.mul_(2.0)", "x.sin_()", "x.add_(y)")
        if dirty
        else w.pick("x * y", "x.sin() * y", "x + y", "x.exp()", "x.view_as(x)", "x[:]")
    )
    second = (
        "(x > y)"
        if other and w.chance(0.5)
        else w.pick("x * 3.0", "y * y", "x * y * 2.0", "None", "y.detach().clone()")
    )
    saved = w.pick("x, y", "x, y", "x, y, a", "y, x", "x, None")
    gx = w.pick("g * y", "g * y * x", "g.mul(2.0)", "None", "g + h", "g * x.cos()", "g")
    gy = w.pick(
        "h * x",
        "g * x * x",
        "h * 2.0",
        *(["None", "None if not ctx.needs_input_grad[1] else g * x"] if gx != "None" else []),
    )
    once = "    @T.autograd.function.once_differentiable\n" if w.chance(0.1) else ""
    unpack = "x, y = ctx.saved_tensors[:2]" + ("\n        y = x if y is None else y" if "None" in saved else "")
    # which calls of backward get nothing but None is not compared: PyTorch goes on with nothing to the nodes before,
    # Genesis stops
    body = "; ".join(["seen.append(ctx.needs_input_grad)", *marks, f"ctx.save_for_backward({saved})"])
    if w.chance(0.35) and not dirty:
        forward = f"    def forward(x, y, k):\n        return {first}, {second}\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        x, y, k = inputs; a, b = output; {body}\n"
    else:
        forward = f"    def forward(ctx, x, y, k):\n        a = {first}; b = {second}; {body}\n        return a, b\n"
    nothing = "g = T.zeros_like(x) if g is None else g; h = T.zeros_like(x) if h is None else h"
    return (
        f"class {name}(T.autograd.Function):\n    @staticmethod\n{forward}    @staticmethod\n{once}    def "
        f"backward(ctx, g, h):\n        {unpack}\n"
        f"        {nothing}; return {gx}, {gy}, None"
    )


# ---- transforms


def transforms(seed: int) -> list[str]:
    """A random function of two vectors under nested vmap, grad, jvp, vjp, jacrev, jacfwd and hessian."""
    w = Writer(seed)
    lines = ["z = x * 1.0"]  # not layer_norm: PyTorch's own third derivatives of it disagree with each other
    for _ in range(w.random.randint(2, 5)):
        lines.append(
            w.pick(
                "z = z * y",
                "z = z.sin()",
                "z = z + x * x",
                "z = z.clone(); z[0] = y[1]",
                "z = z.clone(); z.mul_(x)",
                "z = z.flip(0)",
                "z = z[T.tensor([2, 0, 0])]",
                "z = z.cumsum(0)",
                "z = T.where(z > 0.1, z, y)",
                "z = z.softmax(0)",
                "z = T.stack([z, y]).sum(0)",
                "z = T.outer(z, y)[1]",
                "z = z * T.linalg.vector_norm(y)",
                "z = z.exp() * c",
                "w = z * 1.0; w[1:].mul_(y[:2]); z = w",
                "z = T.cat([z[1:], y[:1]])",
                "z = z.tanh() @ T.outer(y, c)",
                "z = T.sort(z)[0]",
                "z = z / (1.0 + y * y)",
                "z = z.expand(2, 3).sum(0)",
                "z = (z - z.mean()) / ((z - z.mean()) ** 2).mean().add(0.1).sqrt()",
                "z = z.detach() * y",
                "z = T.zeros_like(z).index_add(0, T.tensor([0, 1, 1]), z)",
            )
        )
    scalar = w.chance(0.6)
    lines.append(
        "return "
        f"{w.pick('(z * z).sum()', 'z.sum()', 'z.mean()', 'z[0] * z[1]') if scalar else w.pick('z', 'z * z', 'z[:2]')}"
    )
    grad = [".requires_grad_()" if w.chance(0.3) else "" for _ in range(2)]
    w.lines += [f"c = {w.reals((3,))}", "def f0(x, y):\n    " + "\n    ".join(lines)]
    shapes = [(3,), (3,)]
    level, many = 0, w.random.randint(1, 3)
    for _ in range(many):
        kind = w.pick("grad", "vmap", "vmap", "jvp", "vjp", "jacrev", "jacfwd", "hessian") if level < 2 else "vmap"
        text, scalar = _transform(w, kind, f"f{level}", scalar, shapes)
        level += 1
        w.lines.append(f"f{level} = {text}")
    x, y = (w.reals(s) + g for s, g in zip(shapes, grad, strict=True))
    w.lines += [f"x = {x}", f"y = {y}", f"h = f{level}(x, y)"]  # h: a result may have a history that leads nowhere
    if any(grad):
        w.lines.append("(h[0] if isinstance(h, tuple) else h).sum().backward()")
    return w.lines


def _transform(w: Writer, kind: str, f: str, scalar: bool, shapes: list[tuple[int, ...]]) -> tuple[str, bool]:
    """The text of a transform of ``f``, and whether its value is a scalar still; vmap changes the arguments' shapes."""
    if kind == "vmap":
        dims = [w.pick(0, 0, None, len(s), -1) for s in shapes]
        if dims == [None, None]:
            dims[0] = 0
        for i, d in enumerate(dims):
            if d is not None:
                s = shapes[i]
                place = d if d >= 0 else len(s)
                shapes[i] = (*s[:place], 2, *s[place:])
        chunk = ", chunk_size=1" if w.chance(0.1) else ""
        return (
            f"T.func.vmap({f}, in_dims={tuple(dims)}, "
            f"out_dims={w.pick(0, 0, -1) if scalar else w.pick(0, 1, -1)}{chunk})",
            False,
        )
    n = w.pick(0, 0, 1)
    ones = ", ".join(f"T.ones_like({v}) * 0.5" for v in "xy")
    if kind == "grad":
        return (
            f"T.func.grad({f}, argnums={n})"
            if scalar or w.chance(0.1)
            else f"T.func.grad(lambda x, y: {f}(x, y).sum(), argnums={n})"
        ), False
    if kind == "jvp":
        return f"lambda x, y: T.func.jvp({f}, (x, y), ({ones}))[{w.pick(0, 1, 1)}]", scalar
    if kind == "vjp":
        return f"lambda x, y: (lambda o, pull: pull(T.ones_like(o))[{n}])(*T.func.vjp({f}, x, y))", False
    return f"T.func.{kind}({f}, argnums={n})", False


FAMILIES = (promotion, promotion, memory, memory, functions, transforms)


def program(seed: int) -> list[str]:
    """The program of a seed; the families take turns."""
    return FAMILIES[seed % len(FAMILIES)](seed)


__all__ = ["FAMILIES", "Writer", "functions", "memory", "program", "promotion", "transforms"]
