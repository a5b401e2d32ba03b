"""A one-layer transformer learns to reverse a sequence."""

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.nn import functional as F

LENGTH, LETTERS, WIDTH = 6, 8, 32


class Reverser(nn.Module):
    """Embeddings of letter and place, attention, and a prediction for each place."""

    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(LETTERS, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, x):  # (B, T) -> (B, T, LETTERS)
        h = self.letter(x) + self.place(torch.arange(LENGTH))
        h = h + self.attention(h, h, h, need_weights=False)[0]
        return self.out(self.norm(h))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Reverser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in tqdm(range(201), disable=None, leave=False):
        x = torch.randint(LETTERS, (64, LENGTH))
        loss = F.cross_entropy(model(x).reshape(-1, LETTERS), x.flip(1).reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            tqdm.write(f"step {step:3d}  loss {loss.item():.4f}")
    x = torch.randint(LETTERS, (1, LENGTH))
    print(x.tolist()[0], "reversed is", model(x).argmax(-1).tolist()[0])
