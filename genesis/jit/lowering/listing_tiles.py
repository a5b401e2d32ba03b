"""Products of matrices as loops in Python: what the tiles compute, chunk by chunk, in the order of their units."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genesis.jit.lowering import vectors
    from genesis.jit.lowering.tiles import Plan, Product


def of_product(p: Product, plan: Plan | vectors.Plan, together: int, name: str) -> str:
    """The text of a kernel (see `listing.listing`); terms of which so many are ``together`` lie so in panels.

    Inside of a unit machine code goes through tiles that fit into registers; here it is element by element.
    """
    dims = [f"d{i}" for i in range(len(p.batch))]
    a, b, c = ([(batch[i], d) for batch, d in zip(p.batch, dims, strict=True)] for i in (1, 2, 3))
    second = affine(p.b[0], *b, (p.b[1], "t"), (p.b[2], "j"))
    if p.panels:
        width = plan.width  # type: ignore[union-attr]
        inner = f"{width * together} * (t // {together}) + {together} * (j % {width}) + t % {together}"
        second = f"{p.k * width} * (j // {width}) + {inner if together > 1 else f'{width} * t + j % {width}'}"
    result = affine(p.c[0], *c, (p.c[1], "i"), (p.c[2], "j"))
    start = "0"
    if p.bias is not None:
        start = f"x3[{affine(p.bias[0], (p.bias[1], 'j'))}]"
    elif p.adds:
        start = f"x3[{result}]"
    operands = ["x0", "x1", "x2", *(["x3"] if p.bias is not None or p.adds else [])]
    head = [
        f"for unit in range({plan.each} * chunk, min({plan.each} * chunk + {plan.each}, {plan.units})):",
        f"    rest, column = divmod(unit, {plan.columns})",
        f"    matrix, block = divmod(rest, {plan.blocks})",
    ]
    for d, (count, *_) in reversed(list(zip(dims, p.batch, strict=True))):
        head.append(f"    matrix, {d} = divmod(matrix, {count})")
    loops = [
        f"for i in range({plan.high} * block, min({plan.high} * block + {plan.high}, {p.m})):",
        f"    for j in range({plan.wide} * column, min({plan.wide} * column + {plan.wide}, {p.n})):",
        f"        total = float32({start})",
        f"        for t in range({p.k}):",
        f"            total += float32(x0[{affine(p.a[0], *a, (p.a[1], 'i'), (p.a[2], 't'))}]) * float32(x1[{second}])",
        f"        x2[{result}] = total",
    ]
    lines = [*head, *["    " + line for line in loops]]
    return "\n".join([f"def {name}({', '.join(operands)}, chunk):", *["    " + line for line in lines]])


def affine(constant: int, *steps: tuple[int, str]) -> str:
    """A sum of counts times strides.

    >>> affine(0, (12, "i"), (1, "j")), affine(3, (0, "i"))
    ('12 * i + j', '3')
    """
    parts = [name if stride == 1 else f"{stride} * {name}" for stride, name in steps if stride]
    return " + ".join([*parts, *([str(constant)] if constant or not parts else [])])
