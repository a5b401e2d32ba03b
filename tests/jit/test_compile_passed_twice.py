"""A tensor that is passed twice is one tensor in a compiled function, too: it may ask (``key is query``), and write to it."""

import warnings

import pytest

import genesis
from genesis import nn


class Remembers(nn.Module):
    """Computes anew only for another input."""

    def __init__(self):
        super().__init__()
        self.w, self.last, self.count = nn.Parameter(genesis.full((3,), 2.0)), None, 0

    def forward(self, x, y):
        if x is not self.last:
            self.made, self.last, self.count = x * self.w.detach() + y, x, self.count + 1
        return self.made * self.count


def writes(q, k):
    k.add_(1)
    return q * 1


def gradients(q, k):
    return genesis.autograd.grad((q * k).sum(), [q, k], allow_unused=True)


PROGRAMS = {
    "asks": (lambda: lambda q, k: q * 2 if q is k else q + k * 3, False),
    "asks, with gradients": (lambda: lambda q, k: q * 2 if q is k else q + k * 3, True),
    "asks of several": (lambda: lambda q, k: sum([x * 2 for x in {id(x): x for x in (q, k)}.values()]), True),
    "returns them": (lambda: lambda q, k: (q, k, q * k), True),
    "multiplies": (lambda: lambda q, k: q * k + q, True),
    "views": (lambda: lambda q, k: (genesis.cat([q, k]).view(2, -1), q.view(-1), k[1:]), False),
    "writes": (lambda: writes, False),
    "asks for gradients": (lambda: gradients, True),
    "remembers": (Remembers, False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_is_one_tensor(name):
    make, requires_grad = PROGRAMS[name]

    def run(function):
        a, b = [genesis.tensor([1.0, x, 3.0], requires_grad=requires_grad) for x in (2.0, -0.5)]  # sums are exact
        told = []
        for given in [(a, a), (a, b), (b, b), (a, a), (b, a)]:
            results = function(*given)
            results = results if isinstance(results, tuple) else (results,)
            told += [[x.tolist(), x.requires_grad, [x is y for y in given]] for x in results if x is not None]
            if any(x is not None and x.requires_grad for x in results):
                sum([x.sum() for x in results if x.requires_grad]).backward()
            told += [a.tolist(), b.tolist(), [None if x.grad is None else x.grad.tolist() for x in (a, b)]]
        return told

    compiled = genesis.compile(make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(compiled) == run(make())
    assert int(compiled.explain().split()[1]) in (2, 3)


def test_the_text_says_so():
    add = genesis.compile(lambda x, y: x + y)
    x, y = genesis.ones(2), genesis.ones(2)
    add(x, y), add(x, x), add(y, y), add(y, x)
    assert "2 graphs, 2 traces" in add.explain()
    assert "which of the tensors that are passed are the same one is otherwise" in add.explain()
