"""A small GPT learns the letters of a text (Radford et al. 2018), and goes on where the text ends.

    python examples/gpt_text.py [picture.svg]

With a file name, the graph of one block is drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.nn import functional as F

TEXT = """the quick brown fox jumps over the lazy dog. the lazy dog sleeps under the old tree.
the old tree stands beside the quiet river. the quiet river runs behind the quick brown fox. """.replace("\n", " ")
LETTERS = sorted(set(TEXT))
WIDTH, HEADS, LAYERS, STEPS, BATCH = 64, 4, 2, 32, 16


class Block(nn.Module):
    """Attention to what came before, then two linear layers; both add to what is there."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):  # (B, T, WIDTH)
        b, t, _ = x.shape
        q, k, v = (y.reshape(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    """Embeddings of letter and place, blocks, and scores of the next letter."""

    def __init__(self):
        super().__init__()
        self.letter, self.place = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(STEPS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS), bias=False)

    def forward(self, x):  # (B, T) -> (B, T, letters)
        h = self.letter(x) + self.place(torch.arange(x.shape[1]))
        return self.out(self.norm(self.blocks(h)))

    @torch.no_grad()
    def write(self, start, count):
        """Read a start and go on, always with the most probable letter."""
        x = encoded(start)
        for _ in range(count):
            x = torch.cat([x, self(x[None, -STEPS:])[0, -1:].argmax(-1)])
        return "".join(LETTERS[i] for i in x.tolist())


def encoded(text):
    return torch.tensor([LETTERS.index(letter) for letter in text])


if __name__ == "__main__":
    torch.manual_seed(0)
    model, letters = GPT(), encoded(TEXT * 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in tqdm(range(151), disable=None, leave=False):
        starts = torch.randint(len(letters) - STEPS - 1, (BATCH,)).tolist()
        x = torch.stack([letters[i : i + STEPS] for i in starts])
        y = torch.stack([letters[i + 1 : i + STEPS + 1] for i in starts])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            tqdm.write(f"step {step:3d}  loss {loss.item():.4f}")
    print(model.write("the old tree", 60))
    if len(sys.argv) > 1:
        x = torch.randn(1, 4, WIDTH)
        torch.draw(model.blocks[0](x).sum(), params=model).save(sys.argv[1])
