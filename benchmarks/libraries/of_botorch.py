"""Gaussian processes and acquisition functions of botorch."""

import torch
from botorch import acquisition, models
from botorch.fit import fit_gpytorch_mll
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from tools import fn

X = torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
Y = torch.sin(6 * X) + 0.1 * torch.cos(30 * X)
BOUNDS = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


def fitted() -> models.SingleTaskGP:
    gp = models.SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    return gp


def posterior() -> list[torch.Tensor]:
    at = fitted().posterior(torch.tensor([[0.3], [0.9]], dtype=torch.float64))
    return [at.mean.detach(), at.variance.detach()]


def chosen(kind: str, **options: object) -> list[torch.Tensor]:
    function = getattr(acquisition, kind)(fitted(), **options)
    start = torch.linspace(0.05, 0.95, 4, dtype=torch.float64)[:, None, None]
    best, value = optimize_acqf(function, bounds=BOUNDS, q=1, num_restarts=4, batch_initial_conditions=start)
    return [best.detach(), value.detach()]


fn("botorch_posterior", posterior)
fn("botorch_LogExpectedImprovement", lambda: chosen("LogExpectedImprovement", best_f=0.5))
fn("botorch_UpperConfidenceBound", lambda: chosen("UpperConfidenceBound", beta=2.0))
fn("botorch_PosteriorMean", lambda: chosen("PosteriorMean"))
