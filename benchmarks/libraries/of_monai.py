"""Networks, losses and metrics of monai."""

import torch
from monai import losses, metrics
from monai.inferers import sliding_window_inference
from monai.networks import nets
from tools import add, data, fill, fn, leaf, withgrad

add(
    "monai_UNet",
    lambda: (nets.UNet(3, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1), (data(1, 1, 16, 16, 16),)),
)
add("monai_AttentionUnet", lambda: (nets.AttentionUnet(2, 1, 2, (4, 8, 16), (2, 2)), (data(2, 1, 32, 32),)))
add("monai_SegResNet", lambda: (nets.SegResNet(2, 8, 1, 2), (data(2, 1, 32, 32),)))
add("monai_DenseNet121", lambda: (nets.DenseNet121(2, 1, 3), (data(2, 1, 32, 32),)))
add("monai_UNETR", lambda: (nets.UNETR(1, 2, (32, 32), 4, 16, 32, num_heads=2, spatial_dims=2), (data(1, 1, 32, 32),)))
add("monai_SwinUNETR", lambda: (nets.SwinUNETR(1, 2, feature_size=12, spatial_dims=2), (data(1, 1, 64, 64),)))
add("monai_VNet", lambda: (nets.VNet(2, 1, 2, dropout_prob_down=None), (data(1, 1, 32, 32),)))
add("monai_BasicUNet", lambda: (nets.BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 16, 4)), (data(1, 1, 32, 32),)))
TARGET = (data(2, 1, 8, 8) > 0).float()
for name in ("DiceLoss", "DiceCELoss", "DiceFocalLoss", "FocalLoss", "TverskyLoss", "GeneralizedDiceLoss"):
    options = {"to_onehot_y": True, **({} if name == "FocalLoss" else {"softmax": True})}
    fn(f"monai_{name}", lambda name=name, options=options: withgrad(
        lambda x: getattr(losses, name)(**options)(x, TARGET.to(x.dtype)), leaf(2, 2, 8, 8)))  # fmt: skip
for name in ("DiceMetric", "HausdorffDistanceMetric", "SurfaceDistanceMetric"):
    fn(f"monai_{name}", lambda name=name: getattr(metrics, name)(include_background=True)(TARGET, TARGET.flip(2)))


def windows() -> torch.Tensor:
    net = torch.nn.Conv2d(1, 2, 3, padding=1)
    fill(net)
    with torch.no_grad():
        return sliding_window_inference(data(1, 1, 20, 20), 8, 2, net, overlap=0.25, mode="gaussian")


fn("monai_sliding_window_inference", windows)
