"""Layers of e3nn, whose products of tensors are programs that it writes as graphs."""

import e3nn
import torch
from e3nn import nn, o3
from tools import add, leaf

e3nn.set_optimization_defaults(jit_script_fx=False)
IRREPS = o3.Irreps("4x0e+3x1o+2x2e")


add("linear", lambda: (o3.Linear(IRREPS, "3x0e+2x1o+1x2e"), (leaf(5, IRREPS.dim),)))
add("linear with biases", lambda: (o3.Linear(IRREPS, "3x0e+2x1o", biases=True), (leaf(5, IRREPS.dim),)))
add(
    "fully connected product",
    lambda: (o3.FullyConnectedTensorProduct(IRREPS, "1x0e+1x1o", "2x0e+2x1o+1x2e"), (leaf(5, 23), leaf(5, 4))),
)
add("full product", lambda: (o3.FullTensorProduct("2x0e+1x1o", "1x1o"), (leaf(5, 5), leaf(5, 3))))
add("product by elements", lambda: (o3.ElementwiseTensorProduct("2x1o+1x0e", "2x1o+1x0e"), (leaf(5, 7), leaf(5, 7))))
add("square", lambda: (o3.TensorSquare("2x0e+1x1o"), (leaf(5, 5),)))
add("norm", lambda: (o3.Norm(IRREPS), (leaf(5, IRREPS.dim),)))
add("spherical harmonics", lambda: (o3.SphericalHarmonics("1x0e+1x1o+1x2e+1x3o", False), (leaf(5, 3),)))
add("batch norm", lambda: (nn.BatchNorm(IRREPS), (leaf(5, IRREPS.dim),)))
add("extraction", lambda: (nn.ExtractIr("1e + 0e + 0e + 1e", "0e"), (leaf(5, 8),)))
add("reduced products", lambda: (o3.ReducedTensorProducts("ij=ji", i="1o"), (leaf(5, 3), leaf(5, 3))))
add("identity", lambda: (nn.Identity(IRREPS, IRREPS), (leaf(5, IRREPS.dim),)))
add("dropout", lambda: (nn.Dropout(IRREPS, 0.5), (leaf(5, IRREPS.dim),)))
add(
    "right product",
    lambda: (
        o3.FullyConnectedTensorProduct("2x0e+1x1o", "1x1o", "2x1o", compile_right=True).right,
        (leaf(5, 3), torch.ones(4)),
    ),
)
