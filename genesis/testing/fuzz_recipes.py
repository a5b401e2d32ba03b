"""Random recipes of training, as they are and compiled: `fuzz_training` with what longer programs have besides.

    python -m genesis.testing.fuzz_recipes --programs 2000

Autocast, numbers of other dtypes, empty tensors and single ones; Functions of several results, hooks on tensors and
modules, generators; gradients in parts and twice; writes to parts of parameters; dataclasses, loops that end when a tensor
says so, results that are returned early; state among the globals, in closures or in objects.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_compile, fuzz_traces, fuzz_training
from genesis.testing.fuzz_compile import CALLS, FRESH, Program
from genesis.testing.fuzz_homes import HOMES

STATE = (
    fuzz_training.STATE.partition("def shown():")[0]
    + """
from dataclasses import dataclass, field, replace
from genesis import (
    Generator, autocast, bfloat16, einsum, enable_grad, float64, full, int64, no_grad, ones_like, randn, randn_like, set_grad_enabled,
)
@dataclass
class Pair:
    a: object
    b: object = 2.0
    kept: list = field(default_factory=list)
    def total(self):
        return self.a * self.b
class Split(Function):
    @staticmethod
    def forward(ctx, a, b, factor):
        ctx.factor = factor
        ctx.save_for_backward(a, b)
        return a * b * factor, a + b
    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.factor + h, (g * a * ctx.factor + h) if ctx.needs_input_grad[1] else None, None
class Straight(Function):
    @staticmethod
    def forward(ctx, a):
        return a.round()
    @staticmethod
    def backward(ctx, g):
        return g.clamp(-1, 1)
class Doubled(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.mark_dirty(a)
        return a.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Tally:
    def __init__(self):
        self.steps, self.losses, self.best = 0, [], None
    def add(self, loss):
        self.steps += 1
        self.losses.append(loss)
        self.best = loss if self.best is None or loss < self.best else self.best
def hooked(a):
    b = a * 1.5
    if b.requires_grad:
        b.register_hook(lambda g: g * 0.5)
    return b
def halved(a):
    while 1 < a.abs().max() < 1e9:  # what these programs add to may be infinite
        a = a / 2
    return a
def pieces(a, count=2):
    return [part * i for i, part in enumerate(a.chunk(count), 1)]
gen, tally, pair = Generator(), Tally(), Pair(ones(3, 4))
gen.manual_seed(11)
def shown():
    rates = [g["lr"] for g in opt.param_groups]
    return [*kept, *named, *named.values(), *mean, *rates, *block.state_dict().values(), block.calls, block.last,
            counted(1, 0), scaler.get_scale(), sched.last_epoch, gen.get_state(), tally.steps, *tally.losses, tally.best,
            pair.a, pair.b, *pair.kept]
"""
)
VALUES = [
    "{a}.double().mul({b}).float()",
    "({a} > 0).float() + {b}",
    "({a} * 3).to(int64).clamp(-2, 2) * {b}",
    "{a}.bool().logical_not() + {b}",
    "{a}[:0].sum() + {b}",
    "cat([{a}, {a}[:0]])",
    "{a}.sum() * {b}",
    "tensor(0.5) * {a}",
    "tensor([1, 2, 3, 4]) * {a}",
    "{a}.mean(0) + {b}.amax(1, keepdim=True)",
    "einsum('ij,kj->ik', {a}, {b}) @ {a} * 0.1",
    "rand(3, 4, generator=gen) * {a}",
    "randn_like({a}) + {b}",
    "nn.functional.dropout({a}, 0.5, training=net.training)",
    "sum(Split.apply({a}, {b}, 2.0))",
    "Split.apply({a}, w1, limit)[0]",
    "Straight.apply({a})",
    "Doubled.apply({a} * 1)",
    "hooked({a})",
    "halved({a})",
    "cat(pieces({a}))",
    "Pair({a}, {b}).total()",
    "replace(pair, a={a}).total()",
    "pair.total() * {a}",
    "dict(a={a}, b={b})['a'] * 2",
    "[*map(lambda v: v * 2, ({a}, {b}))][1]",
    "(lambda *rest, scale=1: sum(rest) * scale)({a}, {b}, scale=0.5)",
    "autocast('cpu', dtype=bfloat16)(lambda v: nn.functional.linear(v, w1[:, :].t() @ w1))({a}).float()",
    "utils.checkpoint.checkpoint(net, {a}, use_reentrant=False)",
    "utils.checkpoint.checkpoint(block, {a}, use_reentrant=False)",
    "no_grad()(lambda v: v * w1)({a})",
    "{a}.t().matmul({b}).diagonal() + {a}",
    "{a}.index_select(1, tensor([3, 0, 1, 2]))",
    "{a}.gather(1, {b}.argsort(1))",
    "{a}.scatter_add(1, tensor([[0, 1, 1, 3]] * 3), {b})",
    "nn.functional.one_hot({a}.argmax(1), 4) * {b}",
    "{a}.log_softmax(-1).exp() + {b}.logsumexp(0)",
    "{a}.flip(0).roll(1, 1) - {b}",
    "nn.functional.pad({a}, (1, 0))[:, :4] + {b}",
    "{a}.unfold(1, 2, 1).sum(-1).mean() * {b}",
    "{a}.tril() + {b}.triu(1)",
    "{a}.topk(2, 1).values.sum() + {b}",
    "{a}.var(1, keepdim=True) * {b}",
    "{a}.maximum({b}).clamp(min=-0.5)",
    "{a}.fmod(0.7) + {b} // 0.3",
    "{a}.std() + {b}.norm()",
    "{a}.repeat_interleave(2, 0)[::2] * {b}",
    "{a}.unsqueeze(0).expand(2, 3, 4).transpose(0, 1).sum(1)",
]
WRITES = [
    "{t}.add_({a}.sum())",
    "{t}.mul_(({a} > 0))",
    "{t}.clamp_(-2, 2)",
    "{t}[{a} > 0.5] = 0.5",
    "{t}[tensor([2, 0])] = {a}[:2]",
    "{t}[..., None][0] *= 2",
    "{t}.diagonal().add_(1)",
    "{t}.scatter_(1, tensor([[0], [1], [2]]), 0.5)",
    "{t}.zero_().add_({a})",
    "{t}.normal_(generator=gen)",
    "{t}.uniform_()",
    "{t}.unbind(1)[2].mul_({a}[:, 0])",
    "{t}[0], {t}[1] = {t}[1].clone(), {t}[0].clone()",
    "{t}.data = {t}.data * 0.5",
    "pair.a = {a}.detach()",
    "pair.b = pair.b * 0.5",
    "pair.kept.append({a}.detach().sum()); del pair.kept[:-2]",
    "tally.add({a}.sum().item())",
    "tally.steps += int(({a} > 0).sum())",
    "named[f'n{{len(named) % 2}}'] = {a}.detach()",
    "log.append(float({a}.mean())); del log[:-3]",
    "limit_now = limit; limit_now += 1; {t}.mul_(limit_now)",
    "with no_grad(): w1[0].mul_(0.9)",
    "with no_grad(): w1.view(-1)[1:3].add_(0.1)",
    "with no_grad(): w2.copy_(w2 * 0.5 + 0.1)",
    "with no_grad(): block.layer.weight[:, 0] = 0.1",
    "with no_grad(): w3.t().diagonal().sub_(0.05)",
]
CONTROL = [
    "while {t}.abs().sum() > 6: {t}.mul_(0.5)",
    "if {a}.sum() > 2: return {a}, {b}.detach(), buf.clone(), None",
    "if {a}.mean() > {b}.mean(): {t}.add_({b}.detach())\nelse: {t}.sub_(1)",
    "for row in {a}.detach(): {t}.add_(row.sum())",
    "for i, row in enumerate({a}.detach().unbind(0)):\n    if i == 1: continue\n    {t}[i] = row",
    "try: {t}.add_(1); fails({a})\nexcept Stop: {t}.mul_(0.5)\nfinally: {t}.add_(0.25)",
    "assert {a}.shape[-1] == 4, 'columns'",
    "count = int({a}.argmax()); {t}.view(-1)[count] = 0",
    "names = sorted(named); {t}.mul_(len(names))",
]
TRAINING = [
    "for part in ({a}, {b}): (block(part).mean() / 2).backward()",
    "loss = (block({a}) ** 2).mean(); loss.backward(retain_graph=True); loss.backward()",
    "loss = ({a} * w1).sum(); loss.backward(retain_graph=True); opt.step(); opt.zero_grad()",
    "gs = autograd.grad((block({a}) ** 2).sum(), [*block.parameters()], allow_unused=True)\n"
    "for p, g in zip(block.parameters(), gs): p.grad = g",
    "(g,) = autograd.grad(({a} * w1 ** 2).sum(), w1, create_graph=True); (g ** 2).sum().backward()",
    "opt.zero_grad(); nn.functional.cross_entropy({a} * w2, tensor([0, 3, 1]), label_smoothing=0.1).backward(); opt.step()",
    "with autocast('cpu', dtype=bfloat16): loss = nn.functional.mse_loss(block({a}), {b}.detach())\nloss.backward()",
    "with set_grad_enabled(net.training): loss = block({a}).square().mean()\nif loss.requires_grad: loss.backward()",
    "with enable_grad(): (w1 * {a}.detach()).sum().backward()",
    "backwards = block({a}).mean(); backwards.backward(tensor(0.5))",
    "w1.requires_grad_(False); (w2 * {a}.detach()).sum().backward(); w1.requires_grad_(True)",
    "opt.param_groups[-1]['lr'] *= 0.9",
    "total = sum(p.grad.norm() ** 2 for p in parameters if p.grad is not None)\nif total > 1: opt.zero_grad()",
    "nn.utils.clip_grad_norm_(parameters, 0.5, norm_type=float('inf'))",
    "for g in opt.param_groups: g['lr'] = 0.01 * min(1.0, (tally.steps + 1) / 5)",
    "torch_loss = nn.functional.smooth_l1_loss({a}, {b}.detach()); torch_loss.backward()",
    "nn.functional.l1_loss(hooked({a} * w1), {b}.detach()).backward()",
]
BETWEEN = [
    *fuzz_training.BETWEEN,
    "w1.register_hook(lambda g: g * 0.5)",
    "block.register_forward_hook(lambda m, i, o: o * 2)",
    "block.layer.register_forward_pre_hook(lambda m, i: (i[0] * 0.5,))",
    "gen.manual_seed(2)",
    "pair = replace(pair, a=pair.a * 0.5)",
    "pair.kept.clear()",
    "pair.b = 3.0",
    "tally = Tally()",
    "tally.losses.clear()",
    "limit = limit + 1",
    "parameters.remove(w2) if w2 in parameters[1:2] and len(parameters) > 4 else None",
    "net.drop.p = 0.4",
    "net.seen = net.seen.clone()",
    "net.register_buffer('seen', zeros(3, 4))",
    "block.norm = nn.LayerNorm(4)",
    "opt.zero_grad()",
    "w1.requires_grad_(False)",
    "w1.requires_grad_(True)",
]


def written(seed: int) -> Program:
    """A random program."""
    rng = random.Random(f"recipe {seed}")
    through = seed % 3 == 1
    values, own, lines = ["x", "w1", "w3", "buf", "turned"], ["buf", "turned"], list[str]()
    body = [(5, VALUES), (4, fuzz_traces.VALUES + fuzz_compile.PURE + fuzz_training.VALUES)]
    body += [(1.5 if through else 4, [*fuzz_traces.WRITES, *fuzz_training.WRITES, *2 * WRITES])]
    training = [*fuzz_traces.GRADIENTS, *fuzz_training.TRAINING, *2 * TRAINING]
    body += [(0 if through and rng.random() < 0.8 else 5, training)]
    body += [(rng.choice([0, 0, 1.5]), CONTROL + fuzz_compile.NEEDS_VALUES)]
    body += [(rng.choice([0, 0, 0.8]), fuzz_compile.EFFECTS + fuzz_training.STOPS)]
    for number in range(3 + seed % 13):
        (kind,) = rng.choices([kind for _, kind in body], [weight for weight, _ in body])
        line = rng.choice(kind).format(a=rng.choice(values), b=rng.choice(values), t=rng.choice(own))
        if kind in (body[0][1], body[1][1]):
            line = f"v{number} = {line}"
            values.append(f"v{number}")
            own.append(f"v{number}")
        elif rng.random() < 0.15 and "\n" not in line and not line.startswith(("if", "for", "with", "while", "try")):
            line = f"with no_grad(): {line}"
        lines.append(line)
    lines += fuzz_training.last_lines(rng, values)
    outside = rng.choice(fuzz_compile.OUTSIDE) if through else ""
    between = [rng.choice(["", "", *BETWEEN]) for _ in range(CALLS)]
    calls = [rng.choice([FRESH] * 20 + fuzz_training.ARGUMENTS) for _ in range(CALLS)]
    optimizer = rng.choice(fuzz_traces.OPTIMIZERS)
    return Program(optimizer, lines, outside, between, STATE, calls, rng.choice(list(HOMES)))


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_recipes", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
