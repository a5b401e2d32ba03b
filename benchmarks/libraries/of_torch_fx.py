"""Programs on torch.fx: feature extractors of torchvision and timm, fusion as tutorials write it, patterns, interpreters."""

import copy
import operator

import timm
import torch
import torchvision.models as tv
from timm.models import FeatureGraphNet
from tools import add, data, fill
from torch import fx, nn
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

SIZES = {"vit_b_16": 224, "maxvit_t": 224, "inception_v3": 96, "alexnet": 96}


def extractor(name):
    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(tv, name)(weights=None, **options).eval()
    tensors = [
        n
        for n in get_graph_node_names(model)[1]
        if n.rpartition(".")[2].startswith(("add", "relu", "flatten", "fc", "conv", "head"))
    ]
    size = SIZES.get(name, 64)
    return create_feature_extractor(model, [tensors[len(tensors) // 2], tensors[-1]]), (data(2, 3, size, size),)


for name in [
    "resnet18", "alexnet", "vgg11_bn", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0",
    "mnasnet0_5", "regnet_y_400mf", "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "googlenet", "inception_v3", "maxvit_t",
]:  # fmt: skip
    add(f"torchvision {name}", lambda name=name: extractor(name))


def of_timm(name, nodes, size=64):
    return FeatureGraphNet(timm.create_model(name), out_indices=tuple(range(len(nodes))), out_map=nodes), (
        data(2, 3, size, size),
    )


add("timm resnet10t", lambda: of_timm("resnet10t", ["layer1", "layer3", "layer4"]))
add(
    "timm vgg11_bn",
    lambda: (
        timm.create_model("vgg11_bn", features_only=True, feature_cls="fx"),
        (data(1, 3, 64, 64),),
    ),
)
add(
    "timm convnext_atto",
    lambda: (timm.create_model("convnext_atto", features_only=True, feature_cls="fx"), (data(1, 3, 64, 64),)),
)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.second, self.norm2 = nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4)

    def forward(self, x):
        x = torch.relu(self.norm1(self.first(x)))
        return self.norm2(self.second(x)) + 1


def fused():
    """Batch norms into convolutions, by hand."""
    model = Convolutions().eval()
    fill(model)
    traced = fx.symbolic_trace(copy.deepcopy(model))
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        conv, norm = modules[node.args[0].target], modules[node.target]
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        bias = conv.bias if conv.bias is not None else torch.zeros_like(norm.running_mean)
        conv.weight = nn.Parameter(conv.weight * scale.reshape(-1, 1, 1, 1))
        conv.bias = nn.Parameter((bias - norm.running_mean) * scale + norm.bias)
        node.replace_all_uses_with(node.args[0])
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced, (data(2, 3, 9, 9),)


add("fusion", fused)


class Swapped(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)


add("transformer", lambda: (Swapped(fx.symbolic_trace(Convolutions().eval())).transform(), (data(2, 3, 9, 9),)))


def inverted():
    """Every sum a difference."""
    traced = fx.symbolic_trace(Convolutions().eval())
    for node in traced.graph.nodes:
        if node.target is operator.add:
            node.target = operator.sub
    traced.graph.lint()
    traced.recompile()
    return traced, (data(2, 3, 9, 9),)


add("targets", inverted)


def rewritten():
    traced = fx.symbolic_trace(Convolutions().eval())
    fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.nn.functional.leaky_relu(x, 0.1).sin())
    return traced, (data(2, 3, 9, 9),)


add("patterns", rewritten)


def interpreted():
    model = Convolutions().eval()
    fill(model)
    return fx.Interpreter(fx.symbolic_trace(model)).run, (data(2, 3, 9, 9),)


add("interpreter", interpreted)
