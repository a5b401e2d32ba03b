"""Generation with a cache of keys and values: compiled, as it is, and without a cache, the same text."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn
from genesis.jit.lowering.explain import explained
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
WIDTH, HEADS, LENGTH, TOKENS = 48, 3, 40, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("keys", genesis.zeros(1, HEADS, LENGTH, WIDTH // HEADS))
        self.register_buffer("values", genesis.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x, position, seen, write):
        parts = self.qkv(self.norms[0](x)).chunk(3, 2)
        q, k, v = (p.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        if write == "none":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            if write == "index_copy_":
                self.keys.index_copy_(2, position, k)
                self.values.index_copy_(2, position, v)
            else:
                self.keys[:, :, position] = k
                self.values[:, :, position] = v
            y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class GPT(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write, self.places = write, genesis.arange(LENGTH)
        self.tokens, self.positions = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens, position):
        x, seen = self.tokens(tokens) + self.positions(position), (self.places <= position[:, None])
        for layer in self.layers:
            x = layer(x, position, seen, self.write)
        return self.head(self.norm(x))[:, -1].argmax(-1, keepdim=True)


def model(write):
    genesis.manual_seed(5)
    made = GPT(write).eval()
    for p in made.parameters():
        p.requires_grad_(False).mul_(3 if p.ndim > 1 else 1)  # so that it does not say one thing only
    return made


def generated(step, prompt, count):
    """The prompt at once, then a token after the other."""
    tokens = [genesis.tensor([prompt])]
    with genesis.no_grad():
        tokens.append(step(tokens[0], genesis.arange(len(prompt))))
        for n in range(len(prompt), len(prompt) + count):
            tokens.append(step(tokens[-1], genesis.tensor([n])))
    return genesis.cat(tokens, 1)[0].tolist()


@pytest.mark.parametrize("write", ["index_copy_", "assignment"])
def test_generated_text_is_that_of_eager(write):
    prompts, count = [[7], [3, 1, 4, 1, 5]], 30
    for prompt in prompts:
        without, text = model("none"), list(prompt)
        for _ in range(count + 1):
            text.append(without(genesis.tensor([text]), genesis.arange(len(text))).item())
        assert len(set(text)) > 8
        assert generated(model(write), prompt, count) == text
        fast = genesis.compile(model(write), fullgraph=True)
        assert generated(fast, prompt, count) == text
        assert generated(fast, prompt, count) == text  # over what the cache has of before


def test_a_token_is_one_native_call_of_one_graph():
    fast = genesis.compile(model("index_copy_"), fullgraph=True)
    generated(fast, [7], 30)
    (entry,) = fast._compiled._recent  # no token is traced again
    assert [call.op for phase in entry.step.plan.phases if not phase.stages for call in phase.calls] == []
    caches = [var for var in entry.step.program.captured if var.spec.shape == (1, HEADS, LENGTH, WIDTH // HEADS)]
    where = entry.step.plan.where
    puts = [
        stage.operands for phase in entry.step.plan.phases for stage in phase.stages if "memcpy" in stage.kernel.code
    ]
    assert len(caches) == len(puts) == 4
    assert all(where[old] == where[new] for old, new, *_ in puts)  # the rows are written in place
    assert "index_copy" not in str(explained(entry.step))
