"""PyTorch beside `benchmark.py`: the same work under the same names, in a process of its own; on the CPU, tiny, without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from benchmark import ROTATED, SIZES, STEPS


def checks() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Kernels, and steps as they are and by ``torch.compile``; nothing where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return
    small = not torch.cuda.is_available()
    yield "versions", lambda: {"torch": torch.__version__, "tiny": small}
    for name, make in kernels(torch, small).items():
        yield name, lambda make=make: timed(torch, make(), small)
    for mode in ("eager", "default", "reduce-overhead"):
        for name in STEPS:
            if not (small and mode != "eager"):
                yield (
                    f"{name}, {mode}",
                    lambda name=name, mode=mode: timed(torch, step(torch, name, mode, small), small),
                )


def timed(torch: Any, run: Callable[[int], Any], small: bool, rounds: int = 20) -> dict[str, float]:
    """Milliseconds of a call: the median, the least and the most; nothing of the CPU."""
    for i in range(ROTATED):
        run(i)
    if small:
        return {}
    torch.cuda.synchronize()
    times = []
    for i in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run(i % ROTATED)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    began = time.perf_counter()
    for i in range(rounds):
        run(i % ROTATED)
    torch.cuda.synchronize()
    each = (time.perf_counter() - began) / rounds * 1e3
    return {"median": median(times), "least": min(times), "most": max(times), "one behind the other": each}


def kernels(torch: Any, small: bool) -> dict[str, Callable[[], Callable[[int], Any]]]:
    s, where, functional = SIZES[small], "cpu" if small else "cuda", torch.nn.functional
    bf16 = torch.bfloat16

    def several(*shape: int, dtype: Any = bf16) -> list[Any]:
        return [(torch.rand(*shape, device=where) - 0.5).to(dtype) for _ in range(ROTATED)]

    def with_(make: Callable[[], Any], run: Callable[[Any, int], Any]) -> Callable[[], Callable[[int], Any]]:
        def made() -> Callable[[int], Any]:
            x = make()
            return lambda i: run(x, i)

        return made

    flat, rows, square = (
        (lambda: several(s["flat"])),
        (lambda: several(*s["rows"])),
        (lambda: several(s["side"], s["side"])),
    )
    width = s["rows"][1:]
    weight = torch.ones(width, device=where, dtype=bf16)
    heads = lambda: several(*s["heads"])
    return {
        "copy": with_(flat, lambda x, i: x[i].clone()),
        "add": with_(flat, lambda x, i: x[i] + x[i - 1]),
        "gelu": with_(flat, lambda x, i: functional.gelu(x[i])),
        "softmax": with_(rows, lambda x, i: x[i].softmax(1)),
        "layer norm": with_(rows, lambda x, i: functional.layer_norm(x[i], width, weight, weight)),
        "rms norm": with_(rows, lambda x, i: functional.rms_norm(x[i], width, weight)),
        "sum": with_(rows, lambda x, i: x[i].sum()),
        "sum of columns": with_(rows, lambda x, i: x[i].sum(0)),
        "cross entropy": with_(
            lambda: (several(*s["logits"], dtype=torch.float32)[0], torch.zeros(s["logits"][0], dtype=torch.int64, device=where)),
            lambda x, i: functional.cross_entropy(*x)),
        "sort of 64 rows": with_(rows, lambda x, i: x[i][:64].argsort(1)),
        "product": with_(square, lambda x, i: x[i] @ x[i - 1]),
        "attention": with_(heads, lambda x, i: functional.scaled_dot_product_attention(x[i], x[i], x[i], is_causal=True)),
        "conv2d": with_(
            lambda: (several(*s["picture"]), several(s["picture"][1], s["picture"][1], 3, 3)[0]),
            lambda x, i: functional.conv2d(x[0][i], x[1], padding=1)),
        "AdamW": with_(lambda: adam(torch, s["parameters"], where), lambda x, i: x.step()),
    }  # fmt: skip


def adam(torch: Any, shapes: Any, where: str) -> Any:
    parameters = [torch.nn.Parameter(torch.rand(*shape, device=where)) for shape in shapes]
    for p in parameters:
        p.grad = torch.rand_like(p)
    return torch.optim.AdamW(parameters, fused=where == "cuda")


def step(torch: Any, name: str, mode: str, small: bool) -> Callable[[int], Any]:
    """A training step of the model of `benchmark.STEPS`."""
    nn, functional, where = torch.nn, torch.nn.functional, "cpu" if small else "cuda"
    if name.startswith("MLP"):
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        x, y, out = torch.rand(128, 784, device=where), torch.randint(0, 10, (128,), device=where), lambda m, x: m(x)
        half, kind = False, torch.optim.Adam
    else:
        from benchmark import gpt_of

        words, *_, batch, length = sizes = (31, 16, 1, 2, 2, 8) if small else STEPS[name].sizes
        model = gpt_of(nn, torch, *sizes[:4], length)
        x = torch.randint(0, words, (batch, length), device=where)
        y, out, half, kind = x.flatten(), lambda m, x: m(x).flatten(0, 1), not small, torch.optim.AdamW
    model = model.to(where)
    optimizer = kind(model.parameters(), **({} if small else {"fused": True}))
    called = model if mode == "eager" else torch.compile(model, mode=mode)

    def run(i: int) -> Any:
        optimizer.zero_grad()
        with torch.autocast(where, torch.bfloat16, enabled=half):
            z = out(called, x)
        loss = functional.cross_entropy(z.float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return run
