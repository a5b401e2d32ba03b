"""Runs a program written for PyTorch for some steps, and writes its losses down; itself such a program, so that it runs in both frameworks.

    python benchmarks/recorder.py LOSSES.json WEIGHTS.npz STEPS script.py [arguments]
    genesis run benchmarks/recorder.py --torch LOSSES.json WEIGHTS.npz STEPS script.py [arguments]
    ... serve    the same for each line of JSON that it reads, in a fork: the framework is imported once

So that two frameworks compute the same: random numbers come from NumPy (the n-th draw of a name and a shape is the same number in both), the
weights of each module at its first call are written to WEIGHTS.npz if it is not there, else read from it, dropout is off, environments
of gymnasium are seeded, data is loaded in the main process. A loss is what `backward` is called on; the program ends at the one after the last step.

With COMPILED set (see programs_compiled.py) the random numbers are the framework's own and dropout is on. "modules" calls each module that is not
called by another one through `torch.compile`, "steps" what the program itself gives to it, of which the results are written down; "eager modules"
and "eager steps" are the same without compilation.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import runpy
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributions
import torch.nn.functional as F
from torch import nn
from torch.utils import data

MODULES_OF_DROPOUT = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")


class Enough(BaseException):
    """The last step is done."""


class Draws:
    """Random numbers that depend on the name of a draw, its shape and how many of these there were."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def generator(self, name: str, shape: Sequence[int]) -> np.random.Generator:
        key = f"{name}{tuple(shape)}"
        self.counts[key] += 1
        return np.random.default_rng([zlib.crc32(key.encode()), self.counts[key]])

    def into(self, tensor: Any, name: str, how: str, *parameters: Any) -> Any:
        values = getattr(self.generator(name, tensor.shape), how)(*parameters, size=tuple(tensor.shape))
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(np.asarray(values)))
        return tensor

    def new(self, name: str, how: str, parameters: Sequence[Any], size: Sequence[Any], options: dict[str, Any]) -> Any:
        for ignored in ("generator", "layout", "pin_memory", "out", "device", "memory_format"):
            options.pop(ignored, None)
        wanted = options.pop("requires_grad", False)
        shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(int(n) for n in size)
        return self.into(torch.empty(shape, **options), name, how, *parameters).requires_grad_(wanted)

    def install(self) -> None:
        for name, how in (("randn", "standard_normal"), ("rand", "random")):
            self._function(name, how)
        torch.randint = self.randint
        torch.randint_like = lambda input, low, high=None, **o: self.randint(
            low, high, tuple(input.shape), **{"dtype": input.dtype, **o}
        )
        torch.randperm = lambda n, **o: torch.from_numpy(self.generator("randperm", (n,)).permutation(n))
        torch.normal = self.normal
        torch.bernoulli = self.bernoulli
        torch.multinomial = self.multinomial
        kinds = torch.Tensor
        kinds.normal_ = lambda t, mean=0.0, std=1.0, **o: self.into(t, "normal_", "normal", mean, std)
        kinds.uniform_ = lambda t, low=0.0, high=1.0, **o: self.into(
            t, "uniform_", "uniform", *(o.get("a", o.get("from", low)), o.get("b", o.get("to", high)))
        )
        kinds.bernoulli = self.bernoulli
        kinds.bernoulli_ = torch.no_grad()(lambda t, p=0.5, **o: t.copy_(self.bernoulli(p + torch.zeros(t.shape))))
        kinds.exponential_ = lambda t, lambd=1.0, **o: self.into(t, "exponential_", "exponential", 1 / lambd)
        torch.distributions.Categorical.sample = lambda c, shape=(): self.multinomial(
            c.probs, max(1, int(np.prod(shape))), True
        ).reshape((*shape, *c.probs.shape[:-1]))
        kinds.multinomial = self.multinomial
        self.of_distributions()

    def of_distributions(self) -> None:
        normal, uniform = torch.distributions.Normal, torch.distributions.Uniform
        normals, bernoulli = torch.distributions.MultivariateNormal, torch.distributions.Bernoulli
        uniform.rsample = lambda u, shape=(): u.low + (u.high - u.low) * torch.rand((*shape, *u.batch_shape))
        normals.rsample = lambda n, shape=(): (
            n.loc + (n.scale_tril @ torch.randn((*shape, *n.loc.shape, 1), dtype=n.loc.dtype)).squeeze(-1)
        )
        bernoulli.sample = lambda b, shape=(): self.bernoulli(b.probs.detach().expand((*shape, *b.batch_shape)))
        normal.rsample = lambda n, shape=(): n.loc + n.scale * self.standard(n, shape)
        normal.sample = torch.no_grad()(lambda n, shape=(): n.loc + n.scale * self.standard(n, shape))
        several = torch.distributions.MultivariateNormal
        several.rsample = lambda n, shape=(): n.loc + (n.scale_tril @ self.standard(n, shape)[..., None]).squeeze(-1)

    def standard(self, distribution: Any, shape: Sequence[int]) -> Any:
        size = (*shape, *distribution.batch_shape, *distribution.event_shape)
        return self.new("standard", "standard_normal", (), (size,), {"dtype": distribution.loc.dtype})

    def _function(self, name: str, how: str) -> None:
        def function(*size: Any, **options: Any) -> Any:
            return self.new(name, how, (), (options.pop("size"),) if "size" in options else size, options)

        def like(input: Any, **options: Any) -> Any:
            return function(*input.shape, **{"dtype": input.dtype, **options})

        setattr(torch, name, function)
        setattr(torch, name + "_like", like)

    def randint(self, low: Any, high: Any = None, size: Any = None, **options: Any) -> Any:
        if size is None:
            low, high, size = (0, low, high) if high is not None else (0, low, options.pop("size"))
        if high is None:
            low, high = 0, low
        return self.new("randint", "integers", (low, high), (size,), {"dtype": torch.int64, **options})

    def normal(self, mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
        if size is not None:
            return self.new("normal", "normal", (mean, std), (size,), options)
        shape = torch.broadcast_tensors(torch.as_tensor(mean), torch.as_tensor(std))[0].shape
        return mean + std * self.new("normal", "standard_normal", (), (tuple(shape),), {})

    def bernoulli(self, input: Any, *_: Any, **options: Any) -> Any:
        drawn = self.new("bernoulli", "random", (), (tuple(input.shape),), {"dtype": input.dtype})
        return (drawn < input).to(input.dtype)

    def multinomial(self, input: Any, num_samples: int, replacement: bool = False, **options: Any) -> Any:
        chances = np.atleast_2d(input.detach().numpy()).astype(np.float64)
        chances /= chances.sum(-1, keepdims=True)
        rng = self.generator("multinomial", (*input.shape, num_samples))
        rows = [rng.choice(len(row), num_samples, replace=replacement, p=row) for row in chances]
        return torch.from_numpy(np.array(rows if input.dim() == 2 else rows[0], dtype=np.int64))


class Weights:
    """The same values in the modules of both runs: of each module that is called from outside, in the order of first calls."""

    def __init__(self, path: str) -> None:
        self.path, self.read = path, os.path.exists(path)
        self.stored = dict(np.load(path)) if self.read else {}
        self.known: list[Any] = []
        self.roots = 0

    def install(self) -> None:
        called, depth = nn.Module.__call__, [0]

        def call(module: Any, *args: Any, **options: Any) -> Any:
            if not depth[0]:
                self.meet(module)
            depth[0] += 1
            try:
                return called(module, *args, **options)
            finally:
                depth[0] -= 1

        nn.Module.__call__ = call

    def meet(self, module: Any) -> None:
        if any(m is module for m in self.known):
            return
        self.roots += 1
        for part in module.modules():
            if isinstance(getattr(part, "dropout", None), float):
                part.dropout = 0.0
            if not any(m is part for m in self.known):
                self.known.append(part)
                self._exchange(part)

    def _exchange(self, module: Any) -> None:
        for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            key = f"{len(self.known)}.{name}"
            if not self.read:
                self.stored[key] = tensor.detach().numpy().copy()
            elif key not in self.stored:
                raise KeyError(f"{type(module).__name__}.{name} is not in the module of the first run")
            else:
                with torch.no_grad():
                    tensor.copy_(torch.from_numpy(disturbed(self.stored[key])))

    def save(self) -> None:
        if not self.read:
            np.savez(self.path, **self.stored)


class Compiled:
    """What a program runs compiled, and how often it was not."""

    def __init__(self, how: str, steps: int) -> None:
        self.how, self.steps, self.eager = how.removeprefix("eager "), steps, how.startswith("eager")
        self.made: list[tuple[Any, Any]] = []
        self.losses: list[float] = []
        self.times: list[float] = []

    def install(self) -> None:
        self.compile = torch.compile
        if self.how == "modules":
            self.modules()
            recorded(self.losses, self.steps, self.times)
        else:
            torch.compile = self.step

    def modules(self) -> None:
        """Modules that the program calls; what these call is called as ever, so the hook is away meanwhile."""
        called = nn.Module.__call__

        def call(module: Any, *args: Any, **options: Any) -> Any:
            nn.Module.__call__ = called
            try:
                return self.of(module)(*args, **options)
            finally:
                nn.Module.__call__ = call

        nn.Module.__call__ = call

    def of(self, module: Any) -> Any:
        for known, function in self.made:
            if known is module:
                return function
        changed(module)
        self.made.append((module, module if self.eager else self.compile(module)))
        return self.made[-1][1]

    def step(self, function: Any = None, **options: Any) -> Any:
        """What `torch.compile` gives: the function, compiled, whose results are written down."""
        if function is None:
            return lambda function: self.step(function, **options)
        compiled = function if self.eager else self.compile(function, **options)
        self.made.append((function, compiled))

        def call(*args: Any, **options: Any) -> Any:
            if len(self.losses) >= self.steps:
                raise Enough
            results = compiled(*args, **options)
            self.losses.append(sum(map(told, results if isinstance(results, tuple) else (results,))))
            self.times.append(time.process_time())
            return results

        return call

    def said(self) -> list[str]:
        return [] if self.eager else [str(compiled.explain()).partition("\ngraph ")[0] for _, compiled in self.made]


def told(result: Any) -> float:
    """A number that says what a result is."""
    if isinstance(result, torch.Tensor):
        return float(result.detach().float().abs().mean()) if result.numel() else 0.0
    if isinstance(result, (list, tuple)):
        return sum(map(told, result))
    return float(result) if isinstance(result, (int, float)) else 0.0


def changed(module: Any) -> None:
    """With DISTURBED set, the weights of a module changed in their last bits."""
    if os.environ.get("DISTURBED"):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.from_numpy(disturbed(p.detach().numpy())))


def disturbed(values: Any) -> Any:
    """With DISTURBED set, each weight changed in its last bit, up or down."""
    if not os.environ.get("DISTURBED") or values.dtype.kind != "f":
        return values
    ways = np.random.default_rng(0).choice([-np.inf, np.inf], values.shape).astype(values.dtype)
    return np.nextafter(values, ways)


def without_dropout() -> None:
    for name in MODULES_OF_DROPOUT:
        if hasattr(nn, name):
            getattr(nn, name).forward = lambda self, input: input
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(F, name, lambda input, *args, **options: input)


def seeded_environments() -> None:
    """Environments of gymnasium, where it is installed, begin as if with the seed 0."""
    try:
        from gymnasium.utils import seeding
    except ImportError:
        return
    seeded = seeding.np_random
    seeding.np_random = lambda seed=None: seeded(0 if seed is None else seed)


def one_process(draws: Draws) -> None:
    made = data.DataLoader.__init__

    def init(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory"):
            options.pop(name, None)
        made(self, dataset, *args, **options)

    def order(self: Any) -> Iterator[int]:
        n = len(self.data_source)
        return iter(draws.generator("order", (n,)).permutation(n).tolist())

    data.DataLoader.__init__ = init
    data.RandomSampler.__iter__ = order


def recorded(losses: list[float], steps: int, times: list[float]) -> None:
    backward = torch.Tensor.backward

    def record(self: Any, *args: Any, **options: Any) -> Any:
        if len(losses) >= steps:
            raise Enough
        losses.append(float(self.detach().sum()))
        times.append(time.process_time())
        return backward(self, *args, **options)

    torch.Tensor.backward = record


def main() -> int:
    output, stored, steps, script, *arguments = sys.argv[1:]
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    draws, weights = Draws(), Weights(stored)
    compiled = Compiled(os.environ.get("COMPILED", ""), int(steps))
    seeded_environments()
    one_process(draws)
    if compiled.how:
        compiled.install()
    else:
        draws.install()
        weights.install()
        without_dropout()
        recorded(compiled.losses, compiled.steps, compiled.times)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    error = None
    try:
        runpy.run_path(script, run_name="__main__")
    except Enough:
        pass
    except SystemExit as stop:
        error = f"exit status {stop.code}" if stop.code else None
    except BaseException as problem:
        traceback.print_exc()
        error = f"{type(problem).__name__}: {problem}".strip().split("\n")[0][:300]
    weights.save()
    with open(output, "w") as file:
        result = {"losses": compiled.losses, "error": error, "modules": weights.roots}
        json.dump({**result, "times": compiled.times, "compiled": compiled.said()}, file)
    return 0


def begin(job: dict[str, Any]) -> None:
    """Make this process the one that a job describes."""
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.path[1:1] = job["path"]
    sys.argv[1:] = job["arguments"]
    for number, file in ((0, os.devnull), (1, job["printed"]), (2, job["said"])):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)


def imported() -> None:
    """Have what most programs import, and what the framework itself imports at a first step."""
    for name in ("matplotlib.pyplot", "PIL.Image", "sklearn.datasets", "torch.utils.data"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    parameter = nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    torch.optim.Adam([parameter]).step()


def serve() -> int:
    """Run jobs, each in a fork of this process; say its number when it starts, and its exit status."""
    imported()
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            status = 1
            try:
                begin(json.loads(line))
                status = main()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["serve"] else main())
