"""Classes that programs derive from distributions."""

from __future__ import annotations

import pytest

import genesis
from genesis import distributions
from genesis.distributions import Categorical, Independent, MixtureSameFamily, Normal


class Diagonal(Independent):
    """Made of other arguments than the class it is derived from."""

    def __init__(self, loc, scale):
        super().__init__(Normal(loc, scale), 1)
        self.note = "kept"


class Checked(Diagonal):
    def expand(self, batch_shape, new=None):
        new = self._get_checked_instance(Checked, new)
        return super().expand(batch_shape, new)


class Mixed(MixtureSameFamily):
    def __init__(self, logits):
        super().__init__(Categorical(logits=logits), Normal(genesis.zeros(2), genesis.ones(2)))


@pytest.mark.parametrize("kind", [Diagonal, Checked])
def test_a_derived_class_in_a_larger_batch(kind):
    d = kind(genesis.tensor([1.0, 2.0]), genesis.ones(2)).expand((3,))
    assert type(d) is kind and d.batch_shape == (3,) and d.event_shape == (2,) and d.note == "kept"
    assert d.log_prob(genesis.zeros(3, 2)).shape == (3,) and d.mean.tolist() == [[1, 2]] * 3


def test_a_derived_mixture_in_a_larger_batch():
    d = Mixed(genesis.zeros(2)).expand((3,))
    assert type(d) is Mixed and d.batch_shape == (3,) and d.log_prob(genesis.zeros(3)).shape == (3,)


def test_a_class_that_is_expanded_as_another_says_so():
    class Other(Checked):
        def __init__(self):
            super().__init__(genesis.zeros(2), genesis.ones(2))

    with pytest.raises(NotImplementedError, match="another __init__"):
        Other().expand((3,))


def test_attributes_of_the_base_class_are_found_by_super():
    class Named(distributions.MultivariateNormal):
        @property
        def covariance_matrix(self):
            return super().covariance_matrix

    class Odds(distributions.Bernoulli):
        @property
        def odds(self):
            return super().logits.exp()

    factor = genesis.tensor([[2.0, 0.0], [1.0, 1.0]])
    assert Named(genesis.zeros(2), scale_tril=factor).covariance_matrix.tolist() == [[4.0, 2.0], [2.0, 2.0]]
    assert Odds(genesis.tensor(0.5)).odds.item() == 1.0


def test_a_distribution_that_is_a_module_finds_what_the_module_has():
    class Prior(distributions.LogNormal, genesis.nn.Module):
        def __init__(self, loc, scale):
            genesis.nn.Module.__init__(self)
            distributions.LogNormal.__init__(self, loc, scale)
            self.register_buffer("kept", loc)

    prior = Prior(genesis.tensor(1.0), genesis.tensor(2.0))
    assert (prior.kept.item(), prior.loc.item(), prior.scale.item()) == (1.0, 1.0, 2.0)
    with pytest.raises(AttributeError, match="missing"):
        _ = prior.missing


def test_what_a_derived_class_expanded_itself_stays():
    class Ordered(distributions.Categorical):
        arg_constraints = {"cuts": distributions.constraints.real_vector}

        def __init__(self, cuts):
            self.cuts = cuts
            super().__init__(genesis.full((*cuts.shape[:-1], cuts.shape[-1] + 1), 0.25))

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Ordered, _instance)
            new.cuts = self.cuts.expand((*batch_shape, self.cuts.shape[-1]))
            return super().expand(batch_shape, new)

    expanded = Ordered(genesis.arange(3.0)).expand((2,))
    assert (expanded.cuts.shape, expanded.batch_shape, expanded.sample().shape) == ((2, 3), (2,), (2,))
