"""Random programs as loops of training are, as they are and compiled: `fuzz_compile` with all that such functions keep.

    python -m genesis.testing.fuzz_training --programs 2000

Lists and dictionaries of tensors that change, closures with numbers of their own, modules with buffers, schedules,
GradScaler, averages of parameters; exceptions in the middle, inside and outside; arguments that are one another's memory,
transposed, expanded, or the same as before; in every third program batches, of which some are shorter.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_compile, fuzz_traces
from genesis.testing.fuzz_compile import CALLS, FRESH, Program

STATE = """
def stop():
    raise Stop
def counter(limit):
    count = 0
    def counted(a, more=1):
        nonlocal count
        count += more
        if count == limit:
            raise Stop
        return a * count
    return counted
def halves(a):
    for part in (a, a * 0.5):
        yield part
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.register_buffer("average", zeros(4))
        self.register_buffer("last", None)
        self.calls = 0
    def forward(self, a):
        b = self.layer(self.norm(a))
        if self.training:
            self.average.lerp_(b.detach().mean(0), 0.1)
        return b + self.average
class Remembering(Block):
    def forward(self, a):
        self.calls += 1
        self.last = a.detach()[0]
        return super().forward(a)
genesis_seed(4)
block, counted, fails = Block(), counter(-1), counter(3)
parameters += block.parameters()
opt.add_param_group({"params": [*block.parameters()], "lr": 0.02})
sched = optim.lr_scheduler.StepLR(opt, 2, 0.5)
scaler = amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
kept, named, mean = [zeros(3, 4), ones(3, 4)], {"first": ones(3, 4)}, [p.detach().clone() for p in parameters]
def shown():
    rates = [g["lr"] for g in opt.param_groups]
    return [*kept, *named, *named.values(), *mean, *rates, *block.state_dict().values(), block.calls, block.last,
            counted(1, 0), scaler.get_scale(), sched.last_epoch]
"""
VALUES = [
    "block({a})",
    "counted({a})",
    "kept[0] * {a}",
    "kept[-1] + {a}",
    "stack(kept).mean(0) * {a}",
    "sum(kept) - {a}",
    "named['first'] * {a}",
    "sum(halves({a}))",
    "mean[0].sum() * {a}",
    "{a} / len({a})",
    "{a}[{a}.shape[0] // 2:].sum(0) + {b}",
    "nn.functional.linear({a}, block.layer.weight)",
    "block.average * {a}",
    "sum(p.sum() for p in parameters) + {a}",
    "{a} * opt.param_groups[0]['lr']",
    "{a}.max(0).values + {b}",
    "where({a} > {a}.mean(), {b}, 0.5)",
    "nn.functional.batch_norm({a}, None, None, training=True)",
    "{a}.view(-1).cumsum(0).view({a}.shape) * 0.1",
    "{a}[{b}[:, 0].argsort()]",
    "{a}.expand(2, -1, -1).sum(0)",
    "{a} * {b}.shape[0]",
]
WRITES = [
    "kept[0] = {a}.detach()",
    "kept.append({a}.detach()); del kept[:-3]",
    "kept[1].mul_(0.5)",
    "kept[-1][0] = {a}[1].detach()",
    "kept[0], kept[1] = kept[1], kept[0]",
    "kept[:] = [v * 0.5 for v in kept]",
    "kept.insert(0, kept.pop())",
    "named['first'] = {a}.detach() * 0.5",
    "named['first'].add_({a}.detach())",
    "named.update(last={a}.detach().clone())",
    "named['n'] = named.get('n', 0) + 1",
    "block.average.add_({a}.detach().mean(0))",
    "block.average = {a}.detach().sum(0)",
    "block.norm.eps = 1e-3",
    "block.calls += 1",
    "for m, p in zip(mean, parameters): m.lerp_(p.detach(), 0.25)",
    "for m, p in zip(mean, parameters): m.mul_(0.9).add_(p.detach(), alpha=0.1)",
    "parameters[0].data.clamp_(-1, 1)",
    "{t}.index_copy_(0, tensor([1, 0]), {a}[:2].detach())",
    "{t}.add_({a}, alpha=box.rate)",
    "{t}.masked_fill_({a} > 0.5, 0.25)",
    "{t}[{a} < 0] *= 2",
    "{t}[-1], {t}[0] = {a}[0], {a}[1]",
]
TRAINING = [
    "sched.step()",
    "scaler.scale(({a} * {b}).mean()).backward(); scaler.step(opt); scaler.update()",
    "scaler.scale(block({a}).mean()).backward()",
    "scaler.unscale_(opt); nn.utils.clip_grad_norm_(parameters, 0.5)",
    "scaler.step(opt); scaler.update()",
    "block({a}).square().mean().backward()",
    "opt.zero_grad(); block({a}).square().mean().backward(); opt.step()",
    "(({a} * 1e30) ** 2).sum().backward()",
    "for g in opt.param_groups: g['lr'] = g['lr'] * 0.9",
    "for p in parameters: p.grad = None if p.grad is None else p.grad * 0.5",
    "nn.utils.clip_grad_norm_([p for p in parameters if p.grad is not None], 0.7)",
]
STOPS = [
    "if {a}.sum() > 3: stop()",
    "if box.count > 1: stop()",
    "fails({a})",
    "with suppress(Stop): {t}.add_(1); stop()",
    "with suppress(Stop): v = fails({a}); {t}.copy_(v.detach())",
    "with suppress(RuntimeError): {t}.mul_(2); {a}.view(7)",
    "if isnan({a}.sum()): stop()",
]
BETWEEN = [
    *fuzz_compile.BETWEEN,
    "sched.step()",
    "kept[0] = zeros(3, 4)",
    "kept = [v.clone() for v in kept]",
    "kept.pop(0) if len(kept) > 2 else None",
    "kept.append(kept[0])",
    "named = dict(named)",
    "block.norm.eval()",
    "block.train()",
    "block.load_state_dict({k: v * 0.5 for k, v in block.state_dict().items()})",
    "opt.load_state_dict(opt.state_dict())",
    "block.layer.weight.requires_grad_(not block.layer.weight.requires_grad)",
    "mean = [p.detach().clone() for p in parameters]",
    "box.count = 0",
    "counted = counter(-1)",
    "block.layer = nn.Linear(4, 4, bias=False)",
    "w2.data = w2.data[None].expand(1, 4)[0]",
]
ARGUMENTS = [
    "buf",
    "turned",
    "turned.t().t()",
    "w1.detach()",
    "w1",
    "kept[0]",
    "tensor(angles.reshape(4, 3)).t()",
    "tensor(angles[:4]).expand(3, 4)",
    "tensor(angles.reshape(3, 4)).requires_grad_()",
    "tensor(angles.reshape(3, 4)) * w2",
    "x",
    "tensor(angles.reshape(2, 3, 2)[0].repeat(2, 0).reshape(3, 4))",
    "tensor(angles.repeat(2).reshape(3, 8))[:, ::2]",
]
BATCHES = ["tensor(numbers(6, 4))"] * 4 + [
    "tensor(numbers(2, 4))",
    "tensor(numbers(4, 6)).t()",
    "tensor(numbers(3, 4))",
]
OF_THREE_ROWS = re.compile(r"w1|w3|buf|turned|\(3, 4\)|net|kept|named")


def last_lines(rng: random.Random, values: Sequence[str]) -> list[str]:
    """How a step ends: what it returns, some of it without a history."""
    results = [f"{rng.choice(values[-3:])}{rng.choice(['', '', '.detach()', ' * 2'])}" for _ in range(3)]
    return [
        "buf.detach_()",
        "turned.detach_()",
        f"return {', '.join(results)}, {rng.choice(['None', 'w1.grad', 'x'])}",
    ]


def written(seed: int) -> Program:
    """A random program."""
    rng = random.Random(f"training {seed}")
    through, batched = seed % 2 == 1, seed % 3 == 0
    values = ["x"] if batched else ["x", "w1", "w3", "buf", "turned"]
    own, lines = [] if batched else ["buf", "turned"], list[str]()
    written_to = [*fuzz_traces.WRITES, *WRITES]
    body = [(5, VALUES), (3, fuzz_traces.VALUES + fuzz_compile.PURE), (1.5 if through else 4, written_to)]
    body += [(0 if through and rng.random() < 0.8 else 5, fuzz_traces.GRADIENTS + 2 * TRAINING)]
    body += [(0.8 if rng.random() < 0.3 else 0, fuzz_compile.NEEDS_VALUES)]
    body += [(0.8 if rng.random() < 0.3 else 0, fuzz_compile.EFFECTS), (0.5 if rng.random() < 0.4 else 0, STOPS)]
    kinds = [[k for k in kind if not (batched and OF_THREE_ROWS.search(k))] for _, kind in body]
    makes_values = kinds[:2]
    for number in range(3 + seed % 11):
        (kind,) = rng.choices(kinds, [weight for weight, _ in body])
        line = rng.choice(kind)
        if "{t}" in line and not own:
            continue
        line = line.format(a=rng.choice(values), b=rng.choice(values), t=rng.choice(own) if own else "")
        if kind in makes_values:
            line = f"v{number} = {line}"
            values.append(f"v{number}")
            own.append(f"v{number}")
        elif rng.random() < 0.2 and not line.startswith(("if", "for", "with")):
            line = f"with no_grad(): {line}"
        lines.append(line)
    lines += last_lines(rng, values)
    outside = rng.choice(fuzz_compile.OUTSIDE) if through else ""
    between = [rng.choice(["", "", *BETWEEN]) for _ in range(CALLS)]
    calls = [rng.choice(BATCHES if batched else [FRESH] * 20 + ARGUMENTS) for _ in range(CALLS)]
    state = STATE + "block.__class__ = Remembering\n" * (rng.random() < 0.1)
    return Program(rng.choice(fuzz_traces.OPTIMIZERS), lines, outside, between, state, calls)


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_training", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
