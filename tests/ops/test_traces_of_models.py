"""The ops that a training step is made of: the patterns that compiled steps and exports look for. A composite that is
written in other ops changes these counts; then `jit/lowering` has to know the new ones.
"""

from __future__ import annotations

from collections import Counter

import pytest

import genesis
from genesis import jit, nn
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

WIDTH, HEADS, LENGTH, BATCH, TOKENS, LAYERS = 32, 2, 64, 6, 11, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down, self.drop = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
        q, k, v = (p.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)))
        return x + self.drop(self.down(F.gelu(self.up(self.norms[1](x)))))


# of a layer, forwards and backwards, and of what is around the layers
OF_A_LAYER = {
    "linear": 4, "matmul": 4, "matmul_tn": 4, "sum": 4, "add": 4, "mul": 4, "random.dropout": 2,
    "narrow": 3, "view_shape": 3, "cat": 1, "transpose": 8,
    "fused.layer_norm": 2, "fused.layer_norm.backward": 2, "fused.gelu": 1, "fused.gelu.backward": 1,
    "fused.scaled_dot_product_attention": 1, "fused.scaled_dot_product_attention.backward": 1,
    "fused.adam_step": 12,
}  # fmt: skip
AROUND = {
    "linear": 1, "matmul": 1, "matmul_tn": 1, "sum": 2, "add": 1, "take_index": 2, "place": 2, "check_range": 2,
    "fused.layer_norm": 1, "fused.layer_norm.backward": 1, "fused.cross_entropy": 1, "fused.cross_entropy.backward": 1,
    "fused.adam_step": 6,
}  # fmt: skip


@pytest.mark.skipif(not loops.available(), reason="without llvmlite composites are traced as what they are made of")
def test_a_step_of_a_small_gpt():
    tokens, places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
    layers, norm, head = nn.Sequential(*[Layer() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)
    model = nn.ModuleList([tokens, places, layers, norm, head])
    optimizer = genesis.optim.AdamW(model.parameters())
    x, y = (genesis.randint(0, TOKENS, (BATCH, LENGTH)) for _ in range(2))

    def step():
        optimizer.zero_grad()
        out = head(norm(layers(tokens(x) + places(genesis.arange(LENGTH)))))
        loss = F.cross_entropy(out.reshape(-1, TOKENS), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    counts = Counter(call.op for call in jit.trace(step).program.calls if call.op != "reshape")
    expected = Counter(AROUND)
    for _ in range(LAYERS):
        expected.update(OF_A_LAYER)
    assert counts == expected
