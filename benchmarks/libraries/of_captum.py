"""Attributions of captum."""

import captum.attr
import torch
from tools import data, fill, fn


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 8)
        self.r = torch.nn.ReLU()
        self.b = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.b(self.r(self.a(x)))


A_ = captum.attr


def cap(mk, **kw):
    def f():
        m = Net()
        fill(m)
        m.eval()
        return mk(m).attribute(data(2, 4), target=1, **kw)

    return f


for n, (mk, kw) in {
    "ig": (lambda m: A_.IntegratedGradients(m), {}),
    "sal": (lambda m: A_.Saliency(m), {}),
    "dl": (lambda m: A_.DeepLift(m), {}),
    "ixg": (lambda m: A_.InputXGradient(m), {}),
    "gbp": (lambda m: A_.GuidedBackprop(m), {}),
    "dec": (lambda m: A_.Deconvolution(m), {}),
    "fa": (lambda m: A_.FeatureAblation(m), {}),
    "occ": (lambda m: A_.Occlusion(m), {"sliding_window_shapes": (1,)}),
    "lrp": (lambda m: A_.LRP(m), {}),
    "lig": (lambda m: A_.LayerIntegratedGradients(m, m.a), {}),
    "lcond": (lambda m: A_.LayerConductance(m, m.a), {}),
    "nc": (lambda m: A_.LayerGradCam(m, m.a), {}),
    "lact": (lambda m: A_.LayerGradientXActivation(m, m.a), {}),
}.items():
    fn("captum_" + n, cap(mk, **kw))
