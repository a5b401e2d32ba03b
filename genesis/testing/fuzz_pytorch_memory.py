"""Random programs for `fuzz_pytorch`: views, writes through them, and what a gradient then is."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.testing.fuzz_pytorch_writer import Writer


def memory(seed: int) -> list[str]:
    """Views, indexing of every form, writes through them, and first and second gradients."""
    w = Writer(seed)
    for _ in range(2):
        shape = w.pick((2, 3), (3,), (2, 2, 3), (4, 3))
        leaf = w.make(f"{w.reals(shape)}{'.requires_grad_()' if w.chance(0.8) else ''}", shape)
        w.make(f"{leaf} * {w.pick('1.5', '-0.5', '2.0')}", shape)
    for _ in range(w.random.randint(5, 10)):
        w.pick(_view, _view, _index, _index, compute, compute, write, write, _assign, _assign, _gather)(w)
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


def _elements(shape: tuple[int, ...], index: str) -> np.ndarray[Any, Any] | None:
    """Which elements an index means, nothing if it is wrong."""
    try:
        return np.asarray(eval(f"x[{index}]", {"T": _NumPy, "x": np.arange(int(np.prod(shape))).reshape(shape)}))
    except (IndexError, ValueError):
        return None


def _indexed(shape: tuple[int, ...], index: str) -> tuple[int, ...] | None:
    got = _elements(shape, index)
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


def compute(w: Writer) -> None:
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


def write(w: Writer) -> None:
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
    got = _elements(shape, index)
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
