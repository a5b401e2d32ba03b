"""Compiled training steps beside JAX's ``jit``, in turn in one run: the same models, from the same weights.

    python benchmarks/with_jax.py [--rounds 15] [--write]

Needs ``pip install jax`` (and torch, as the other benchmarks). Forward, loss, backward and AdamW; medians of runs taken in
turn, in a process for each number of threads: time of the processors with one, which is bound to one core, of the clock
with two. Before, the losses of three steps are compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

BARS = {"tiny": 0.15, "mlp": 0.7, "gpt": 0.3}
STEPS = 3  # that are compared


def arrays_of(model: Any) -> dict[str, Any]:
    return {name: p.detach().numpy().copy() for name, p in model.named_parameters()}


def adamw(jax: Any, loss: Any) -> Any:
    """A step of ``loss(parameters)``, with what AdamW keeps."""
    jnp = jax.numpy

    def step(parameters: Any, first: Any, second: Any, count: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

        def updated(p: Any, m: Any, v: Any) -> Any:
            change = m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
            return p * (1 - 1e-3 * 0.01) - 1e-3 * change

        return value, jax.tree.map(updated, parameters, first, second), first, second, count

    return jax.jit(step, donate_argnums=(0, 1, 2))


def dense(jax: Any, x: Any, y: Any, squared: bool) -> Any:
    """The loss of layers with ReLU between them."""
    jnp = jax.numpy

    def loss(p: Any) -> Any:
        h, count = x, len(p) // 2
        for i in range(count):
            h = h @ p[f"{2 * i}.weight"].T + p[f"{2 * i}.bias"]
            h = jax.nn.relu(h) if i < count - 1 else h
        if squared:
            return jnp.mean((h - y) ** 2)
        return -jnp.mean(jax.nn.log_softmax(h)[jnp.arange(len(y)), y])

    return loss


def transformer(jax: Any, x: Any, y: Any, heads: int, layers: int) -> Any:
    """The loss of the GPT of `gpt.py`."""
    jnp = jax.numpy
    batch, length = x.shape
    seen = jnp.tril(jnp.ones((length, length), bool))

    def linear(p: Any, name: str, x: Any) -> Any:
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def norm(p: Any, name: str, x: Any) -> Any:
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def loss(p: Any) -> Any:
        h = p["tokens.weight"][x] + p["places.weight"][:length]
        width = h.shape[-1]
        for i in range(layers):
            name = f"layers.{i}"
            parts = jnp.split(linear(p, f"{name}.qkv", norm(p, f"{name}.norms.0", h)), 3, axis=2)
            q, k, v = (a.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for a in parts)
            scores = q @ k.transpose(0, 1, 3, 2) / jnp.sqrt(jnp.float32(width // heads))
            a = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v
            h = h + linear(p, f"{name}.out", a.transpose(0, 2, 1, 3).reshape(batch, length, width))
            up = linear(p, f"{name}.up", norm(p, f"{name}.norms.1", h))
            h = h + linear(p, f"{name}.down", jax.nn.gelu(up, approximate=False))
        logits = linear(p, "head", norm(p, "norm", h))
        flat = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]))
        return -jnp.mean(flat[jnp.arange(flat.shape[0]), y.reshape(-1)])

    return loss


def cases(genesis: Any, jax: Any) -> Any:
    """(key, title, our step, JAX's), from the same weights and on the same data."""
    import compile as ours
    import gpt
    import numpy as np

    rng, f = np.random.default_rng(0), genesis.nn.functional

    def both(model: Any, loss: Any, theirs: Any) -> Any:
        parameters = jax.tree.map(jax.numpy.asarray, arrays_of(model))
        zeros = jax.tree.map(jax.numpy.zeros_like, parameters)
        state = [parameters, zeros, jax.tree.map(jax.numpy.copy, zeros), jax.numpy.float32(0)]
        jitted = adamw(jax, theirs)

        def run() -> Any:
            value, *state[:] = jitted(*state)
            return value.block_until_ready()

        return genesis.compile(ours.trained(genesis, model, loss)[0]), run

    x, y = (rng.normal(size=(32, n)).astype(np.float32) for n in (2, 1))
    model, xs, ys = ours.layers(genesis, 2, 16, 16, 1), genesis.tensor(x), genesis.tensor(y)
    yield (
        "tiny", "MLP 2-16-16-1, batch 32",
        *both(model, lambda m: f.mse_loss(m(xs), ys), dense(jax, x, y, True)), 100,
    )  # fmt: skip
    x1, y1 = rng.normal(size=(64, 784)).astype(np.float32), rng.integers(0, 10, 64)
    model1, xs1, ys1 = ours.layers(genesis, 784, 256, 128, 10), genesis.tensor(x1), genesis.tensor(y1)
    yield (
        "mlp", "MLP 784-256-128-10, batch 64",
        *both(model1, lambda m: f.cross_entropy(m(xs1), ys1), dense(jax, x1, y1, False)), 20,
    )  # fmt: skip
    x2, y2 = (rng.integers(0, gpt.TOKENS, (gpt.BATCH, gpt.LENGTH)) for _ in range(2))
    model2, xs2, ys2 = gpt.model(genesis), genesis.tensor(x2), genesis.tensor(y2)
    yield (
        "gpt", "GPT, 4 layers of width 192, 16 x 128 tokens",
        *both(model2, lambda m: f.cross_entropy(m(xs2).reshape(-1, gpt.TOKENS), ys2.reshape(-1)),
              transformer(jax, x2, y2, gpt.HEADS, gpt.LAYERS)), 1,
    )  # fmt: skip


def measured(threads: int, rounds: int) -> None:
    import compile as ours
    import jax
    import numpy as np

    import genesis

    genesis.set_num_threads(threads)
    genesis.manual_seed(0)
    clock = time.process_time if threads == 1 else time.perf_counter
    for key, title, mine, theirs, calls in cases(genesis, jax):
        losses = [[float(mine()) for _ in range(STEPS)], [float(theirs()) for _ in range(STEPS)]]
        np.testing.assert_allclose(*losses, rtol=1e-3, err_msg=title)
        a, b = ours.turns([mine, theirs], rounds, calls, clock)
        print(ours._row(f"{title}, threads: {threads}", a, b, BARS[key]), flush=True)


def least(cores: int) -> str:
    """How long the products of the GPT's step alone take at the rate at which cores multiply and add, and nothing else."""
    import gpt

    from genesis.kernels.llvm import rates
    from genesis.kernels.llvm.units import FLOAT32

    tokens, layer = gpt.BATCH * gpt.LENGTH, 12 * gpt.WIDTH**2
    dense = 6 * tokens * (gpt.LAYERS * layer + gpt.WIDTH * gpt.TOKENS)  # twice for forward, four times for backward
    attention = 6 * gpt.LAYERS * tokens * gpt.LENGTH * gpt.WIDTH  # of what comes before, half of all
    peak = rates.rate(FLOAT32, 100_000, 30)
    times = " and ".join(f"{(dense + attention) / (peak * 1e6 * n):.0f} ms with {n}" for n in range(1, cores + 1))
    return (
        f"The products of the GPT's step alone are {(dense + attention) / 1e9:.1f} GFLOP: {times} of the cores measured, "
        f"of which each multiplies and adds at most {peak:.0f} GFLOP/s in float32 (`benchmarks/peaks.py`)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, help="measure in this process")
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    if options.threads:
        measured(options.threads, options.rounds)
        return
    rows: list[str] = []
    for threads in (1, 2):
        # read by XLA when it begins; it has as many threads as the process has cores
        env = {**os.environ, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else dict(os.environ)
        command = [sys.executable, __file__, "--threads", str(threads), "--rounds", str(options.rounds)]
        if threads == 1 and hasattr(os, "sched_getaffinity"):
            command = [sys.executable, "-c", _BOUND, *command[1:]]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        rows += done.stdout.splitlines()
    table = [
        "| what | Genesis, compiled | JAX, jit | ratio | at most | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *rows,
    ]
    print("\n".join([*table, "", least(2)]))
    if options.write:
        from page import write_section

        head = "`python benchmarks/with_jax.py --write`: steps of training from the same weights; "
        head += f"medians of {options.rounds} rounds in turn, time of the processors with one thread, of the clock with two; "
        head += "each after a pause, in which the other's threads go to sleep, and after calls that are not timed."
        write_section("Compiled steps beside JAX", "\n\n".join([head, "\n".join(table), least(2)]))


_BOUND = """
import os, runpy, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""

if __name__ == "__main__":
    main()
