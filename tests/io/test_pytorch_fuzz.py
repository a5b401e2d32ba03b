"""Random values full of views: PyTorch saves, Genesis loads, saves in both formats, and PyTorch loads; writes show what
shares memory.
"""

from __future__ import annotations

import io
import random

import pytest

import genesis
from genesis.base import dtypes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def some_tensor(rng, memory):
    if memory and rng.random() < 0.5:
        x = rng.choice(memory)
    else:
        kind = getattr(torch, rng.choice(dtypes.ALL).name)
        x = torch.randint(0, 2, (rng.randrange(13), 2, 3)).to(kind)
        memory.append(x)
    for _ in range(rng.randrange(3)):
        views = [x.unsqueeze(0), x.unsqueeze(0).expand(2, *x.shape)]
        if x.dim():
            views += [x.transpose(0, -1), x[..., ::2], x[x.shape[0] // 2 :]]
        if x.dim() and x.shape[0]:
            views.append(x[-1])
        x = rng.choice(views)
    return x


def some_value(rng, memory, depth=0):
    kind = rng.randrange(10)
    if depth > 3 or kind < 4:
        return some_tensor(rng, memory)
    if kind < 7:
        parts = [some_value(rng, memory, depth + 1) for _ in range(rng.randrange(4))]
        return parts if kind == 4 else tuple(parts) if kind == 5 else dict(zip(["a", 3, "ü"], parts, strict=False))
    if kind == 7:
        return rng.choice([None, 1, 2.5, "x", b"q", 1j, -(2**40)])
    x = some_tensor(rng, memory)
    return torch.nn.Parameter(x, requires_grad=x.is_floating_point())


def tensors(value):
    if isinstance(value, torch.Tensor | genesis.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def described(x):
    return type(x).__name__, str(x.dtype).partition(".")[2], tuple(x.shape), x.requires_grad, x.tolist()


def compare(one, other):
    """The same tensors, before and after every one of them is written to."""
    pairs = list(zip(tensors(one), tensors(other), strict=True))
    for x, y in pairs:
        assert described(x) == described(y)
    with torch.no_grad(), genesis.no_grad():
        for n, (x, y) in enumerate(pairs):
            if 0 not in x.stride():
                x.fill_(n % 2)
                y.fill_(n % 2)
                assert [a.tolist() for a, _ in pairs] == [b.tolist() for _, b in pairs], n


def written(save, value, **options):
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 600), marks=pytest.mark.slow)], ids=str)
def test_both_ways(seeds):
    for seed in seeds:
        print("seed", seed)
        both_ways(random.Random(seed), seed)


def both_ways(rng, seed):
    torch.manual_seed(seed)
    memory: list[torch.Tensor] = []
    value = [some_value(rng, memory) for _ in range(4)]
    source = written(torch.save, value, _use_new_zipfile_serialization=rng.random() < 0.7).getvalue()
    for format in ("torch", "safetensors"):
        again = genesis.load(written(genesis.save, genesis.load(io.BytesIO(source)), format=format))
        compare(torch.load(written(torch.save, value), weights_only=True), again)
    theirs = torch.load(written(genesis.save, genesis.load(io.BytesIO(source)), format="torch"), weights_only=True)
    compare(theirs, genesis.load(io.BytesIO(source)))
