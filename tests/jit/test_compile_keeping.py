"""Functions that keep results, set modes, or catch their own errors."""

import functools
from contextlib import suppress

import pytest

import genesis
from genesis import nn
from genesis.testing import fuzz_compile


class Rotary(nn.Module):
    @functools.lru_cache(maxsize=4)  # noqa: B019
    def table(self, length):
        return genesis.arange(length).float()

    def forward(self, x):
        return x * self.table(x.shape[-1]).cos()


class Masked(nn.Module):
    @functools.cached_property
    def mask(self):
        return genesis.arange(3).float()

    def forward(self, x):
        return x[:3] * self.mask


def cached():
    @functools.cache
    def table(length):
        return genesis.arange(length).float()

    return lambda x: x + table(len(x))


@pytest.mark.parametrize("make", [Rotary, Masked, cached])
def test_results_that_are_kept_are_no_tensors_of_a_trace(make):
    """They were found in the cache by all calls behind the trace, and could not be used."""
    function, step = make(), genesis.compile(make())
    for call in range(8):
        x = genesis.arange(3 + call // 4).float() + call
        assert step(x).tolist() == pytest.approx(function(x).tolist(), abs=1e-5)
    assert step.explain().splitlines()[0].split(":")[1].startswith(" 2 graphs") and "not compiled" not in step.explain()


def raises_and_catches(seen):
    def step(x):
        try:
            seen.append(1)
            if len(seen) % 3 == 0:
                raise ValueError
            return x * 2
        except ValueError:
            return x * 3

    return step


def raises_and_suppresses(seen):
    def step(x):
        y = x * 2
        with suppress(ValueError):
            seen.append(1)
            if len(seen) % 3 == 0:
                raise ValueError
            y = y + 1
        return y

    return step


def raises_and_settles(seen):
    def step(x):
        try:
            if x.sum().item() > 20:
                raise KeyError
            return x * 2
        finally:
            seen.append(2)

    return step


@pytest.mark.filterwarnings("ignore:compile. step is not compiled")
@pytest.mark.parametrize("make", [raises_and_catches, raises_and_suppresses, raises_and_settles])
def test_errors_that_the_function_itself_catches(make):
    """The statement that raises was done at each call, where nothing caught its error."""

    def results(compiled):
        seen, every = [], []
        step = genesis.compile(make(seen)) if compiled else make(seen)
        for call in range(8):
            try:
                every.append(step(genesis.ones(3) * call).tolist())
            except KeyError:
                every.append("stopped")
            every.append(len(seen))
        return every

    with fuzz_compile.arithmetic(False):
        assert results(True) == results(False)


def test_modes_that_the_function_leaves_behind():
    w = genesis.ones(2, requires_grad=True)

    @genesis.compile
    def step(x):
        genesis.set_grad_enabled(not genesis.is_grad_enabled())
        return x * w

    @genesis.compile(fullgraph=True)
    def inside(x):
        with genesis.no_grad():
            y = x * w
        return x * w + y

    with pytest.warns(UserWarning, match="it sets whether gradients are recorded"):
        try:
            modes = [(step(w).requires_grad, genesis.is_grad_enabled()) for _ in range(6)]
        finally:
            genesis.set_grad_enabled(True)
    assert modes == [(False, False), (True, True)] * 3
    assert [inside(genesis.ones(2)).requires_grad for _ in range(3)] == [True] * 3
