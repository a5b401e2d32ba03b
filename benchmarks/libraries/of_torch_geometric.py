"""Layers, pools and utilities of torch_geometric."""

import torch
from tools import add, data, fn, ints, leaf, withgrad
from torch_geometric import nn, utils

EDGES = torch.stack([ints(12, 40), ints(11, 40)])
BATCH = torch.arange(12) // 4

LAYERS = {
    "GCNConv": lambda: nn.GCNConv(6, 8),
    "GATConv": lambda: nn.GATConv(6, 4, heads=2),
    "GATv2Conv": lambda: nn.GATv2Conv(6, 4, heads=2),
    "SAGEConv": lambda: nn.SAGEConv(6, 8),
    "SAGEConv_max": lambda: nn.SAGEConv(6, 8, aggr="max"),
    "GINConv": lambda: nn.GINConv(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))),
    "TransformerConv": lambda: nn.TransformerConv(6, 4, heads=2),
    "GraphConv": lambda: nn.GraphConv(6, 8),
    "ChebConv": lambda: nn.ChebConv(6, 8, K=3),
    "TAGConv": lambda: nn.TAGConv(6, 8),
    "ARMAConv": lambda: nn.ARMAConv(6, 8),
    "SGConv": lambda: nn.SGConv(6, 8, K=2),
    "APPNP": lambda: nn.APPNP(3, 0.1),
    "EdgeConv": lambda: nn.EdgeConv(torch.nn.Linear(12, 8)),
    "GENConv": lambda: nn.GENConv(6, 8),
    "GatedGraphConv": lambda: nn.GatedGraphConv(8, 2),
    "ResGatedGraphConv": lambda: nn.ResGatedGraphConv(6, 8),
    "LEConv": lambda: nn.LEConv(6, 8),
    "ClusterGCNConv": lambda: nn.ClusterGCNConv(6, 8),
    "FeaStConv": lambda: nn.FeaStConv(6, 8, heads=2),
    "SuperGATConv": lambda: nn.SuperGATConv(6, 8),
    "PNAConv": lambda: nn.PNAConv(6, 8, ["mean", "max", "std"], ["identity", "attenuation"], torch.tensor([1, 3, 4, 2])),
    "GCN": lambda: nn.GCN(6, 8, 2, 3),
    "GraphSAGE": lambda: nn.GraphSAGE(6, 8, 2, 3, jk="cat"),
}  # fmt: skip
for name, layer in LAYERS.items():
    add(f"geometric_{name}", lambda layer=layer: (layer(), (data(12, 6), EDGES)))

KINDS = torch.arange(40) % 3
add("geometric_RGCNConv", lambda: (nn.RGCNConv(6, 8, 3), (data(12, 6), EDGES, KINDS)))
add("geometric_NNConv", lambda: (nn.NNConv(6, 4, torch.nn.Linear(2, 24)), (data(12, 6), EDGES, data(40, 2))))
add("geometric_GCN2Conv", lambda: (nn.GCN2Conv(6, 0.1), (data(12, 6), data(12, 6), EDGES)))
add("geometric_Set2Set", lambda: (nn.aggr.Set2Set(6, 2), (data(12, 6), BATCH)))
add("geometric_GraphNorm", lambda: (nn.GraphNorm(6), (data(12, 6), BATCH)))
add("geometric_TopKPooling", lambda: (nn.TopKPooling(6, 0.5), (data(12, 6), EDGES, None, BATCH)))
add("geometric_SAGPooling", lambda: (nn.SAGPooling(6, 0.5), (data(12, 6), EDGES, None, BATCH)))
for pool in ("global_mean_pool", "global_add_pool", "global_max_pool"):
    fn(f"geometric_{pool}", lambda pool=pool: withgrad(lambda x: getattr(nn, pool)(x, BATCH), leaf(12, 6)))
fn("geometric_softmax", lambda: withgrad(lambda x: utils.softmax(x, BATCH), leaf(12, 6)))
fn("geometric_to_dense_batch", lambda: withgrad(lambda x: utils.to_dense_batch(x, BATCH)[0], leaf(12, 6)))
