"""An LSTM learns the letters of a text, one after the other, and goes on where the text ends.

    python examples/lstm_text.py [picture.svg]

With a file name, the graph of a step of two letters is drawn into it.
"""

import sys

from tqdm import tqdm

import genesis as torch
from genesis import nn
from genesis.nn import functional as F

TEXT = """the quick brown fox jumps over the lazy dog. the lazy dog sleeps under the old tree.
the old tree stands beside the quiet river. the quiet river runs behind the quick brown fox. """.replace("\n", " ")
LETTERS = sorted(set(TEXT))
WIDTH, STEPS, BATCH = 96, 48, 16


class Writer(nn.Module):
    """The next letter, from all before it."""

    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(len(LETTERS), 24)
        self.lstm = nn.LSTM(24, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, x, state=None):  # (B, T) -> (B, T, letters)
        h, state = self.lstm(self.letter(x), state)
        return self.out(h), state

    @torch.no_grad()
    def write(self, start, count):
        """Read a start and go on, always with the most probable letter."""
        x, state, text = encoded(start).unsqueeze(0), None, start
        for _ in range(count):
            scores, state = self(x, state)
            x = scores[:, -1:].argmax(-1)
            text += LETTERS[x.item()]
        return text


def encoded(text):
    return torch.tensor([LETTERS.index(letter) for letter in text])


if __name__ == "__main__":
    torch.manual_seed(0)
    model, letters = Writer(), encoded(TEXT * 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in tqdm(range(151), disable=None, leave=False):
        starts = torch.randint(len(letters) - STEPS - 1, (BATCH,)).tolist()
        x = torch.stack([letters[i : i + STEPS] for i in starts])
        y = torch.stack([letters[i + 1 : i + STEPS + 1] for i in starts])
        loss = F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            tqdm.write(f"step {step:3d}  loss {loss.item():.4f}")
    print(model.write("the old tree", 60))
    if len(sys.argv) > 1:
        torch.draw(model(letters[None, :2])[0].sum(), params=model).save(sys.argv[1])
