"""Random programs for `fuzz_pytorch`: Functions of users, and transforms."""

from __future__ import annotations

from genesis.testing.fuzz_pytorch_memory import compute, write
from genesis.testing.fuzz_pytorch_writer import Writer


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
            w.pick(compute, write, write)(w)
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
                dim = d if d >= 0 else len(s)
                shapes[i] = (*s[:dim], 2, *s[dim:])
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
