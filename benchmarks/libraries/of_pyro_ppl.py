"""Distributions and inference of pyro."""

import pyro
import pyro.distributions as pd
import pyro.infer
import pyro.optim
import torch
from tools import data, fn, withgrad


def pm(d, v):
    def f():
        return withgrad(lambda x: d().log_prob(x), v().requires_grad_())

    return f


for n, (d, v) in {
    "skew": (lambda: pd.AsymmetricLaplace(0.0, 1.0, 2.0), lambda: data(4)),
    "mix": (lambda: pd.MixtureOfDiagNormals(data(3, 2), torch.ones(3, 2), torch.zeros(3)), lambda: data(4, 2)),
    "lkj": (lambda: pd.LKJCholesky(3, 1.0), lambda: torch.linalg.cholesky(torch.eye(3) * 0.8 + 0.2)),
    "stable": (lambda: pd.Logistic(0.0, 1.0), lambda: data(4)),
    "proj": (lambda: pd.ProjectedNormal(torch.ones(3)), lambda: torch.nn.functional.normalize(data(2, 3), dim=-1)),
    "affine": (lambda: pd.AffineBeta(2.0, 3.0, 0.0, 2.0), lambda: data(4).abs() + 0.1),
}.items():
    fn("pyro_" + n, pm(d, v))


def svi():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    x = data(20) + 1

    def model():
        mu = pyro.sample("mu", pd.Normal(0.0, 5.0))
        with pyro.plate("d", 20):
            pyro.sample("x", pd.Normal(mu, 1.0), obs=x)

    def guide():
        pyro.sample("mu", pd.Delta(pyro.param("m", torch.tensor(0.0))))

    inference = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), pyro.infer.Trace_ELBO())
    losses = [inference.step() for _ in range(20)]
    return torch.tensor(losses), pyro.param("m").detach()


fn("pyro_svi", svi)


def enum():
    pyro.clear_param_store()
    x = torch.tensor([0.0, 1.0, 5.0, 6.0])

    @pyro.infer.config_enumerate
    def model():
        w = pyro.param("w", torch.tensor([0.4, 0.6]), constraint=pd.constraints.simplex)
        loc = pyro.param("loc", torch.tensor([0.5, 5.0]))
        with pyro.plate("d", 4):
            k = pyro.sample("k", pd.Categorical(w))
            pyro.sample("x", pd.Normal(loc[k], 1.0), obs=x)

    inference = pyro.infer.SVI(
        model, lambda: None, pyro.optim.Adam({"lr": 0.1}), pyro.infer.TraceEnum_ELBO(max_plate_nesting=1)
    )
    losses = [inference.step() for _ in range(5)]
    return torch.tensor(losses)


fn("pyro_enum", enum)
