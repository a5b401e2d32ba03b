"""Random recipes of training with Python numbers that change, as they are and compiled.

    python -m genesis.testing.fuzz_numbers --programs 2000

`fuzz_recipes` whose function takes a float, a whole number and a bool, other ones at each call: it computes with them,
decides by them, takes them as shapes, dimensions, indices and options, sets rates by them. Besides, attributes that count,
dictionaries and lists of numbers that are read and written, and numbers drawn by `random`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_compile, fuzz_recipes
from genesis.testing.fuzz_compile import FRESH, Program

CALLS = 8
PARAMETERS = "x, rate=0.5, i=1, on=True, extra=None"
STATE = (
    fuzz_recipes.STATE
    + """
import math
import random
from array import array
from copy import deepcopy
from genesis import arange
class Settings:
    rate, step, on = 0.5, 0, True
@dataclass
class Options:
    rate: float = 0.5
    count: int = 2
def halved(a):
    while 1 < a.abs().max() < 1e9:  # what these programs add to may be infinite
        a = a / 2
    return a
def scaled(a, rate=0.5, i=1):
    if rate < 0.5:
        return a * rate
    return a * (i + 1) if i % 2 else a - rate
class Scaled(Function):
    @staticmethod
    def forward(ctx, a, rate, on=True):
        ctx.rate, ctx.on = rate, on
        return a * rate if on else a + rate
    @staticmethod
    def backward(ctx, g):
        return g * ctx.rate if ctx.on else g, None, None
settings, table, ladder = Settings(), {0: 0.5, 1: 1.5, 2: 0.25, "seen": 0}, [0.5, 1.0, 2.0]
random.seed(5)
shown_before = shown
def shown():
    return [*shown_before(), settings.rate, settings.step, settings.on, *map(str, table), *table.values(), *ladder,
            *random.getstate()[1]]
"""
)
VALUES = [
    "{a} * rate",
    "{a} + i",
    "{a} - on",
    "{a} * rate + {b} * (1 - rate)",
    "{a} * (rate if rate < 0.5 else 1 - rate)",
    "{a} ** (1 + i % 3)",
    "{a}.clamp(-abs(rate), abs(rate))",
    "{a}.roll(i, 1)",
    "{a}[i % 3] + {b}",
    "{a}.sum(i % 2, keepdim=True) + {b}",
    "{a}.mean(-1 if on else 0, keepdim=True) * {b}",
    "{a}.t().reshape(3, 4) if on else {a}",
    "{a}.narrow(1, i % 3, 2).sum() * {b}",
    "{a}.split(1 + i % 3)[0].sum(0) + {b}",
    "zeros(1 + i % 3, 4).sum(0) + {a}",
    "full((3, 4), rate) * {a}",
    "full((3, 4), i) + {a}",
    "nn.functional.dropout({a}, rate)",
    "nn.functional.dropout({a}, 0.3, training=on)",
    "nn.functional.leaky_relu({a}, rate)",
    "nn.functional.elu({a}, alpha=rate)",
    "nn.functional.softplus({a}, beta=1 + rate)",
    "nn.functional.layer_norm({a}, (4,), eps=abs(rate) + 0.1)",
    "nn.functional.gelu({a}, approximate='tanh' if on else 'none')",
    "nn.functional.batch_norm({a}, None, None, training=True, momentum=rate)",
    "nn.functional.pad({a}, (i % 2, 0), value=rate)[:, :4]",
    "nn.functional.normalize({a}, dim=i % 2)",
    "where({a} > rate, {a}, {b})",
    "({a} > rate).float() * {b}",
    "{a}.lerp({b}, rate)",
    "{a}.add({b}, alpha=rate)",
    "{a}.addcmul({b}, {a}, value=rate)",
    "{a}.masked_fill({b} > 0, rate)",
    "{a}.topk(1 + i % 4, 1).values.sum() + {b}",
    "{a}.kthvalue(1 + i % 4, 1).values[:, None] * {b}",
    "{a}.tril(i % 3 - 1)",
    "{a}.diagonal(i % 2).sum() * {b}",
    "{a}.expand(1 + i % 2, -1, -1).sum(0)",
    "{a}.repeat(1 + i % 2, 1)[:3]",
    "{a}.view(-1)[i % 12] * {b}",
    "{a}.chunk(1 + i % 3)[0].mean(0) + {b}",
    "cat([{a}] * (1 + i % 2))[:3]",
    "sum([{a} * k for k in range(i % 4 + 1)])",
    "stack([{a}, {b}])[i % 2]",
    "[{a}, {b}, {a} * 2][i % 3]",
    "({a}, {b})[on]",
    "{{True: {a}, False: {b}}}[on]",
    "{a} * math.cos(rate)",
    "{a} * math.floor(rate * 4)",
    "{a} * int(rate * 4)",
    "{a} * round(rate, 1)",
    "{a} * max(rate, 0.25)",
    "{a} * min(i, 2)",
    "{a} * (i // 2)",
    "{a} / (i + 1)",
    "{a} * (rate > 0.5)",
    "{a} * float(on)",
    "{a} * float(i)",
    "{a} * (0.5 if on else 2.0)",
    "{a} * (1 if on and i % 2 else 2)",
    "{a} * (not on)",
    "{a} * (rate or 0.5)",
    "{a} * [0.5, 1.0, 1.5][i % 3]",
    "{a} * table[i % 3]",
    "{a} * table.get(i, rate)",
    "{a} * sum(v for v in table.values())",
    "{a} * ladder[i % len(ladder)]",
    "{a} * len(ladder)",
    "tensor(rate) * {a}",
    "tensor([rate, float(i), 1.0, float(on)]) * {a}",
    "tensor(i) + {a}",
    "arange(i, i + 4) * {a}",
    "{a} * f'{{rate:.1f}}'.count('5')",
    "{a} * (i & 1)",
    "{a} * i ** 2",
    "{a} * -rate",
    "{a} * (i if isinstance(i, int) else 2)",
    "{a} * random.random()",
    "{a} * random.choice([0.5, 1.0])",
    "{a} * settings.rate",
    "{a} * settings.step",
    "{a} if settings.on else {b}",
    "{a} * (2 if settings.step % 3 == 0 else 0.5)",
    "{a} * extra['rate']",
    "{a} * extra[0]",
    "{a} * extra.rate",
    "{a}[:extra.count].sum(0) + {b}",
    "scaled({a}, rate)",
    "scaled({a}, rate=rate, i=i)",
    "scaled({a}, settings.rate, settings.step)",
    "Scaled.apply({a}, rate)",
    "Scaled.apply({a}, rate, on)",
    "(lambda v, k=rate: v * k)({a})",
    "utils.checkpoint.checkpoint(lambda v: (v * rate).tanh(), {a}, use_reentrant=False)",
    "utils.checkpoint.checkpoint(scaled, {a}, rate, i, use_reentrant=False)",
    "vmap(lambda v: v * rate)({a})",
    "grad(lambda v: (v ** 2 * rate).sum())({a})",
    "block({a}) * rate if on else block({a})",
    "{a} * {{0.25: 0.5, 0.5: 2.0}}.get(rate, 1.0)",
    "{a} * (rate in {{0.5, 0.6}})",
    "{a} * (1 if type(rate) is float else 2)",
    "{a} * (1 if isinstance(rate, float) else 2)",
    "{a} * (+rate)",
    "{a} * deepcopy([rate])[0]",
    "{a} * (rate % 0.2)",
    "{a} * len('%.2f' % rate)",
    "{a} * array('d', [rate])[0]",
    "{a} * sorted([rate, 0.4, settings.rate])[1]",
    "{a} * {{1: 0.5, 2: 2.0}}.get(settings.step, 1.0)",
    "{a} * (1 if isinstance(settings.rate, float) else 2)",
    "{a} * math.cos(settings.rate)",
    "{a} * (2 if settings.rate in table.values() else 1)",
    "{a} * (1.0 if {b}.sum().item().__class__ is float else 2.0)",
]
LINES = [
    "if rate < 0.5: {t}.add_(1)",
    "if 0.2 < rate <= 0.5: {t}.add_(rate)\nelse: {t}.sub_({a}.detach())",
    "if on: {t}.mul_(0.5)",
    "if not on and rate: {t}.mul_(rate)",
    "if i % 4 == 0: {t}.add_({a}.detach())",
    "if (i + 1) % 2 == 0 and on: {t}.add_(0.25)",
    "if i > 4: return {a}, {b}.detach(), buf.clone(), None",
    "for k in range(i % 3): {t}.add_(k)",
    "for k, v in enumerate(ladder): {t}.add_(v * k)",
    "while i > 2: i -= 2; {t}.mul_(0.5)",
    "{t}.mul_(rate)",
    "{t}.add_(i)",
    "{t}.add_({a}.detach(), alpha=rate)",
    "{t}[i % 3] = rate",
    "{t}[i % 3].mul_(rate)",
    "{t}[:, i % 4] = {a}[:, 0].detach()",
    "{t}[i % 2:].zero_()",
    "rate = rate * 0.5",
    "rate = rate if on else 0.125",
    "i = i + 1",
    "i += settings.step",
    "on = not on",
    "rate, i = rate + 1, i * 2",
    "settings.step += 1",
    "settings.step += i",
    "if settings.step % 4 == 0: {t}.mul_(0.5)",
    "settings.step += 1\nif settings.step % 2 == 0: {t}.add_({a}.detach())",
    "settings.rate = rate",
    "settings.rate *= 0.9",
    "settings.rate = max(settings.rate * 0.5, 0.1)",
    "settings.on = not settings.on",
    "settings.on = on",
    "if settings.rate > rate: {t}.mul_(0.75)",
    "table[i % 3] = rate",
    "table[0] = table[0] * 0.5 + rate",
    "table['seen'] = table.get('seen', 0) + 1",
    "if table['seen'] % 2: {t}.add_(1)",
    "if i in table: {t}.mul_(0.5)",
    "ladder.append(rate); del ladder[:-4]",
    "ladder[0] = ladder[0] * 0.5 + rate",
    "if sum(ladder) > 3: {t}.sub_(0.5)",
    "net.scale = rate",
    "net.on = on",
    "net.drop.p = abs(rate) / 2",
    "net.train(on)",
    "block.eval()",
    "block.train()",
    "block.norm.momentum = abs(rate) / 2",
    "if random.random() < 0.5: {t}.add_(1)",
    "{t}.mul_(random.random())",
    "random.shuffle(ladder)",
    "tally.add(rate)",
    "tally.steps += i",
    "log.append(rate); del log[:-3]",
    "box.rate = rate",
    "limit_now = i; limit_now += 1; {t}.add_(limit_now)",
    "assert rate < 10 and i >= 0, 'numbers'",
]
TRAINING = [
    "for g in opt.param_groups: g['lr'] = abs(rate) * 0.1",
    "opt.param_groups[0]['lr'] = 0.1 / (i + 1)",
    "opt.param_groups[0]['lr'] *= 0.9 if on else 1.0",
    "opt.param_groups[0]['weight_decay'] = abs(rate) * 0.01",
    "if i % 2 == 0: opt.step(); opt.zero_grad()",
    "if on: opt.step()",
    "settings.step += 1\nif settings.step % 3 == 0: opt.step(); opt.zero_grad()",
    "({a} * rate * w1).sum().backward()",
    "(block({a}).mean() / (i + 1)).backward()",
    "(block({a}).square().mean() * (rate if on else 1.0)).backward()",
    "nn.utils.clip_grad_norm_(parameters, abs(rate) + 0.1)",
    "nn.utils.clip_grad_norm_(parameters, 0.5, norm_type=1 + i % 2)",
    "nn.functional.cross_entropy({a} * w2, tensor([0, 3, 1]), label_smoothing=abs(rate) / 2).backward()",
    "nn.functional.smooth_l1_loss({a} * w1, {b}.detach(), beta=abs(rate) + 0.1).backward()",
    "nn.functional.huber_loss({a} * w1, {b}.detach(), reduction='sum' if on else 'mean').backward()",
    "with autocast('cpu', dtype=bfloat16, enabled=on): loss = nn.functional.mse_loss(block({a}), {b}.detach())\n"
    "loss.backward()",
    "with set_grad_enabled(on): loss = block({a}).square().mean()\nif loss.requires_grad: loss.backward()",
    "w1.grad = autograd.grad((w1 * {a} * rate).sum(), w1)[0]",
    "for p in parameters: p.grad = None if p.grad is None else p.grad * rate",
]
BETWEEN = [
    "settings.rate = 0.75",
    "settings.step = 0",
    "settings.on = True",
    "table[1] = 3.0",
    "table.pop(2, None)",
    "ladder.append(0.5)",
    "ladder = [1.0, 0.25]",
    "net.drop.p = 0.4",
    "opt.param_groups[0]['lr'] *= 0.5",
    "random.seed(1)",
]
RATES = [0.25, 0.3, 0.5, 0.6, 0.75, 0.0, -0.0, 1.0, -0.5, 1e-3, 2.5]
TENSORS = [FRESH] * 12 + ["buf", "w1.detach()", "tensor(angles.reshape(4, 3)).t()", "tensor(angles.reshape(3, 4)) * w2"]


def written(seed: int) -> Program:
    """A random program."""
    program, rng = fuzz_recipes.written(seed), random.Random(f"numbers {seed}")
    # loops that add a tensor to itself make numbers of which sums in another order have no digit in common
    lines = [line for line in program.step[:-3] if not line.startswith(("while", "for row")) and rng.random() < 0.35]
    values, own = ["x", "w1", "buf", "turned"], ["buf", "turned"]
    for number in range(rng.randint(2, 9)):
        (kind,) = rng.choices([VALUES, LINES, TRAINING], [4, 4, 0.2 if program.outside else 2])
        line = rng.choice(kind).format(a=rng.choice(values), b=rng.choice(values), t=rng.choice(own))
        if kind is VALUES:
            line = f"n{number} = {line}"
            values.append(f"n{number}")
            own.append(f"n{number}")
        lines.append(line)
    last = [f"{rng.choice(values[-3:])}{rng.choice(['', '', '.detach()', ' * 2'])}" for _ in range(3)]
    lines += ["buf.detach_()", "turned.detach_()", f"return {', '.join(last)}, {rng.choice(['None', 'w1.grad', 'x'])}"]
    between = [rng.choice(["", "", "", rng.choice(BETWEEN + fuzz_recipes.BETWEEN)]) for _ in range(CALLS)]
    return program._replace(step=lines, between=between, state=STATE, calls=_calls(rng), parameters=PARAMETERS)


def _calls(rng: random.Random) -> list[str]:
    """The arguments of calls: some of the numbers stay what they are."""
    moves, few = [rng.random() < 0.6 for _ in range(4)], rng.sample(RATES, 3)
    named, start, steady = rng.random() < 0.3, rng.randint(0, 4), rng.random() < 0.8
    calls = []
    for call in range(CALLS):
        rate = rng.choice(few if steady else RATES) if moves[0] else few[0]
        i = (start + call if steady else rng.randint(0, 9)) if moves[1] else start
        on = bool(rng.randint(0, 1)) if moves[2] else True
        if rng.random() < 0.03:  # of another kind
            rate, i, on = rng.choice([(1, i, on), (rate, float(i), on), (rate, bool(i % 2), on), (rate, i, 1)])
        given = [("rate", rate), ("i", i), ("on", on)][: 3 if rng.random() < 0.9 else 1]
        texts = [f"{name}={value!r}" if named else repr(value) for name, value in given]
        other = rng.choice(few) if moves[3] else few[0]
        kind = ["", f"extra={{'rate': {other}}}", f"extra=[{other}, {i}]", f"extra=Options({other}, {i % 3})"][
            start % 4
        ]
        calls.append(", ".join([rng.choice(TENSORS), *texts, *([kind] if kind else [])]))
    return calls


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_numbers", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
