"""Flows of zuko."""

import torch
import zuko
from tools import data, fn


def zk(mk):
    def f():
        m = mk()
        [
            p.data.copy_(torch.sin(torch.arange(p.numel()) * 0.7 + i).reshape(p.shape) * 0.2)
            for i, p in enumerate(m.parameters())
        ]
        x = data(4, 3) * 0.5
        c = data(4, 5)
        lp = m(c).log_prob(x)
        lp.sum().backward()
        return (lp, *[p.grad for p in m.parameters() if p.grad is not None])

    return f


for n, mk in {
    "nsf": lambda: zuko.flows.NSF(3, 5, transforms=2, hidden_features=(16, 16)),
    "maf": lambda: zuko.flows.MAF(3, 5, transforms=2, hidden_features=(16,)),
    "nice": lambda: zuko.flows.NICE(3, 5, transforms=2, hidden_features=(16,)),
    "naf": lambda: zuko.flows.NAF(3, 5, transforms=1, hidden_features=(8,)),
    "unaf": lambda: zuko.flows.UNAF(3, 5, transforms=1, hidden_features=(8,)),
    "sospf": lambda: zuko.flows.SOSPF(3, 5, transforms=1, hidden_features=(8,)),
    "bpf": lambda: zuko.flows.BPF(3, 5, transforms=1, hidden_features=(8,)),
    "gf": lambda: zuko.flows.GF(3, 5, transforms=1, hidden_features=(8,)),
    "cnf": lambda: zuko.flows.CNF(3, 5, hidden_features=(8,)),
    "ncsf": lambda: zuko.flows.NCSF(3, 5, transforms=1, hidden_features=(8,)),
    "gmm": lambda: zuko.mixtures.GMM(3, 5, components=2),
}.items():
    fn("zuko_" + n, zk(mk))
