"""Models and losses of segmentation_models_pytorch."""

import segmentation_models_pytorch as smp
import torch
from tools import add, data, ints

for n in [
    "Unet",
    "UnetPlusPlus",
    "MAnet",
    "Linknet",
    "FPN",
    "PSPNet",
    "DeepLabV3",
    "DeepLabV3Plus",
    "UPerNet",
    "Segformer",
]:
    add(
        "smp_" + n,
        lambda n=n: (
            getattr(smp, n)(encoder_name="resnet18", encoder_weights=None, in_channels=3, classes=2),
            (data(2, 3, 64, 64),),
        ),
    )
for n in ["DiceLoss", "JaccardLoss", "TverskyLoss", "FocalLoss", "LovaszLoss"]:

    def f(n=n):
        criterion = getattr(smp.losses, n)(mode="multiclass")
        p = torch.nn.Conv2d(3, 4, 1)

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.p = p

            def forward(self, x):
                return criterion(self.p(x), ints(4, 2, 8, 8))

        return M(), (data(2, 3, 8, 8),)

    add("loss_" + n, f)
