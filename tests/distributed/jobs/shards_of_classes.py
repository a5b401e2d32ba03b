"""Models with a forward of their own: prints the sha256 of what they end with, trained in several ways."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.nn import functional as F
from genesis.utils.checkpoint import checkpoint

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


class Layers(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.fc1, self.act, self.fc2, self.fc3 = nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 300), nn.Linear(300, 10)
        self.norm, self.dropout = nn.LayerNorm(300), nn.Dropout(dropout)

    def forward(self, x):
        x = self.act(self.fc1(x))
        return F.log_softmax(self.fc3(self.dropout(x + F.relu(self.fc2(self.norm(x))))), 1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = [y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.first(x)).split(c, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.dropout(self.out(y))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Language(nn.Module):
    """Tied weights, a buffer, blocks that are computed again."""

    def __init__(self, again):
        super().__init__()
        self.again, self.embedding, self.blocks = (
            again,
            nn.Embedding(50, 64),
            nn.ModuleList([Block(64, 2) for _ in range(2)]),
        )
        self.head = nn.Linear(64, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("positions", genesis.randn(8, 64))

    def forward(self, x):
        x = self.embedding((x * 7).long().abs().clamp(max=49)[:, :8]) + self.positions
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(x).mean(1)[:, :10]


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.fc = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3), nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x.view(-1, 1, 8, 8)))
        return F.log_softmax(self.fc(F.max_pool2d(F.relu(self.conv2(x), inplace=True), 2).flatten(1)), 1)


WAYS = {
    "layers": Layers, "few rows": Layers, "dropout": lambda: Layers(0.3), "autocast": lambda: Layers(0.3), "clipped": Layers,
    "language": lambda: Language(False), "checkpoint": lambda: Language(True), "pictures": Pictures,
    "blocks": lambda: nn.Sequential(nn.Unflatten(1, (4, 16)), Block(16, 2), nn.Flatten(), Layers(0.1)),
    "compiled": lambda: Layers(0.3), "compiled language": lambda: Language(False),
}  # fmt: skip


def trained(how):
    genesis.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(WAYS[how](), shards=4)
    optimizer = optim.Adam(model.parameters(), 0.01)
    rows = 16 if how == "few rows" else 128
    inputs, targets = genesis.randn(4, rows, 64), genesis.randint(0, 10, (4, rows))

    def step(x, y):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16) if how == "autocast" else nullcontext():
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        if how == "clipped":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    run = genesis.compile(step) if how.startswith("compiled") else step
    for x, y in zip(inputs, targets, strict=True):
        run(x[rank::size], y[rank::size])
    if size == 1 and not how.startswith("compiled"):
        assert model.shards.reason is None, model.shards.reason
    return b"".join([value.numpy().tobytes() for value in model.state_dict().values()])


ways = {how: trained(how) for how in WAYS}
assert len({ways[how] for how in ("layers", "few rows", "dropout", "autocast", "clipped")}) == 5
if rank == 0:
    for how, state in ways.items():
        print(f"{how}: {hashlib.sha256(state).hexdigest()}")
    print(f"digest {hashlib.sha256(b''.join(ways.values())).hexdigest()}")
dist.barrier()
print(f"rank {rank} is done")
