"""Flows of nflows."""

import nflows.distributions
import nflows.flows
import nflows.transforms
from tools import data, fill, fn


def nf(tr):
    def f():
        m = nflows.flows.Flow(nflows.transforms.CompositeTransform(tr()), nflows.distributions.StandardNormal([4]))
        fill(m)
        m.eval()
        x = data(5, 4) * 0.5
        lp = m.log_prob(x)
        lp.sum().backward()
        return (lp, *[p.grad for p in m.parameters() if p.grad is not None])

    return f


T_ = nflows.transforms
for n, tr in {
    "maf": lambda: [T_.MaskedAffineAutoregressiveTransform(4, 8)],
    "rqs": lambda: [
        T_.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 8, num_bins=4, tails="linear", tail_bound=3.0)
    ],
    "lu": lambda: [T_.LULinear(4)],
    "svd": lambda: [T_.SVDLinear(4, 2)],
    "bn": lambda: [T_.BatchNorm(4)],
    "act": lambda: [T_.ActNorm(4)],
    "cdf": lambda: [T_.PiecewiseRationalQuadraticCDF([4], tails="linear", tail_bound=3.0)],
}.items():
    fn("nflows_" + n, nf(tr))
