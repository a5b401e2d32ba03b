"""Gaussian processes of gpytorch."""

import gpytorch
import torch
from tools import fn


def gp(kern):
    def f():
        class M(gpytorch.models.ExactGP):
            def __init__(self, x, y, likelihood):
                super().__init__(x, y, likelihood)
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = kern()

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        x = torch.linspace(0, 1, 12)[:, None]
        y = torch.sin(6 * x[:, 0])
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        m = M(x, y, likelihood)
        m.train()
        likelihood.train()
        loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, m)(m(x), y)
        loss.backward()
        gs = [p.grad for p in m.parameters() if p.grad is not None]
        m.eval()
        likelihood.eval()
        with torch.no_grad():
            p = likelihood(m(torch.linspace(0, 1, 5)[:, None]))
        return (loss, p.mean, p.variance, *gs)

    return f


K_ = gpytorch.kernels
for n, k in {
    "rbf": lambda: K_.ScaleKernel(K_.RBFKernel()),
    "matern": lambda: K_.ScaleKernel(K_.MaternKernel(nu=1.5)),
    "per": lambda: K_.PeriodicKernel(),
    "lin": lambda: K_.LinearKernel(),
    "rq": lambda: K_.RQKernel(),
    "poly": lambda: K_.PolynomialKernel(power=2),
    "sum": lambda: K_.RBFKernel() + K_.LinearKernel(),
    "cos": lambda: K_.CosineKernel(),
    "sm": lambda: K_.SpectralMixtureKernel(num_mixtures=1),
}.items():
    fn("gp_" + n, gp(k))


def svgp():
    class V(gpytorch.models.ApproximateGP):
        def __init__(self, z):
            vd = gpytorch.variational.CholeskyVariationalDistribution(z.size(0))
            super().__init__(gpytorch.variational.VariationalStrategy(self, z, vd, learn_inducing_locations=True))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = K_.ScaleKernel(K_.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 20)[:, None]
    y = torch.sin(6 * x[:, 0])
    m = V(x[::5].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    m.variational_strategy.variational_params_initialized.fill_(1)
    loss = -gpytorch.mlls.VariationalELBO(likelihood, m, 20)(m(x), y)
    loss.backward()
    return (loss, *[p.grad for p in m.parameters() if p.grad is not None])


fn("svgp", svgp)
