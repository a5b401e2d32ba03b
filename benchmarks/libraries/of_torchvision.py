"""Models of torchvision: pictures, parts of pictures, films, boxes."""

import torchvision.models as tv
from tools import cases, data

for n in [
    "resnet18",
    "alexnet",
    "vgg11_bn",
    "squeezenet1_1",
    "densenet121",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "efficientnet_b0",
    "mnasnet0_5",
    "regnet_y_400mf",
    "convnext_tiny",
    "vit_b_16",
    "swin_t",
    "swin_v2_t",
    "maxvit_t",
    "googlenet",
    "inception_v3",
]:

    def f(n=n):
        kw = {"aux_logits": False, "init_weights": False} if n in ("googlenet", "inception_v3") else {}
        s = {"vit_b_16": 224, "maxvit_t": 224, "inception_v3": 96, "alexnet": 96}.get(n, 64)
        return getattr(tv, n)(weights=None, **kw), (data(2, 3, s, s),)

    cases[n] = f
for n in ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]:
    cases[n] = lambda n=n: (getattr(tv.segmentation, n)(weights=None, weights_backbone=None), (data(2, 3, 64, 64),))
for n in ["r3d_18", "mc3_18", "r2plus1d_18"]:
    cases[n] = lambda n=n: (getattr(tv.video, n)(weights=None), (data(1, 3, 4, 32, 32),))
cases["raft_small"] = lambda: (
    tv.optical_flow.raft_small(weights=None),
    (data(1, 3, 128, 128), data(1, 3, 128, 128)),
    {"num_flow_updates": 2},
)
for n in [
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "retinanet_resnet50_fpn",
    "ssdlite320_mobilenet_v3_large",
    "fcos_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
]:
    cases[n] = lambda n=n: (
        getattr(tv.detection, n)(
            weights=None, weights_backbone=None, **({"min_size": 96, "max_size": 128} if "ssd" not in n else {})
        ),
        ([data(3, 96, 128)],),
    )
