"""Random recipes of training that change modules and optimizers on the way, as they are and compiled.

    python -m genesis.testing.fuzz_changes --programs 2000

The programs are those of `fuzz_recipes`, in which one to three such statements stand besides, anywhere.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_compile, fuzz_recipes
from genesis.testing.fuzz_compile import Program

STATE = fuzz_recipes.STATE.replace(
    "def shown():",
    """def of_states():
    return [s.get(k) for p in parameters for s in [opt.state.get(p, {})] for k in sorted(s)]
def of_groups():
    return [v for g in opt.param_groups for k, v in g.items() if k != 'params' and isinstance(v, float)]
def shown():""",
).replace(
    "return [*kept,", "return [*of_states(), *of_groups(), *[p.requires_grad for p in block.parameters()], *kept,"
)
CHANGES = [
    "block.layer.weight = nn.Parameter(block.layer.weight.detach() * 0.9)",
    "setattr(block.layer, 'weight', nn.Parameter(block.layer.weight.data * 0.9))",
    "block.layer = nn.Linear(4, 4)",
    "block.norm = nn.Identity() if block.calls % 2 else nn.LayerNorm(4)",
    "block.layer.bias = None",
    "block.average = nn.Buffer(block.average * 0.5)",
    "block.register_buffer('average', block.average * 0.5)",
    "block.layer.register_parameter('weight', nn.Parameter(block.layer.weight.detach() * 0.9))",
    "block.layer.weight.data = block.layer.weight.data * 0.9",
    "for p in block.parameters(): p.requires_grad = tally.steps != 1",
    "for p in block.parameters(): p.requires_grad_(block.calls % 3 != 1)",
    "w2.requires_grad = box.count % 2 == 0",
    "block.train(block.calls % 2 == 0)",
    "block.load_state_dict({{k: v * 0.9 for k, v in block.state_dict().items()}})",
    "block.load_state_dict({{k: v * 0.9 for k, v in block.state_dict().items()}}, assign=True)",
    "tally.steps += 1",
    "block.calls += 1",
    "opt.state.clear()",
    "opt.state.pop(w1, None)",
    "opt.state[w1] = {{}}",
    "opt.load_state_dict(opt.state_dict())",
    "sched.load_state_dict(sched.state_dict())",
    "scaler.load_state_dict(scaler.state_dict())",
    "opt.param_groups[0]['weight_decay'] = 0.1 if tally.steps % 2 else 0.0",
    "opt.param_groups[0].update(lr=0.1 * (1 + block.calls % 2))",
    "opt.param_groups[0]['params'].reverse()",
    "opt.param_groups[0]['params'].pop() if len(opt.param_groups[0]['params']) > 2 else None",
    "for s in opt.state.values():\n    if 'exp_avg' in s: s['exp_avg'] = s['exp_avg'] * 0.5",
    "for s in opt.state.values():\n    if 'momentum_buffer' in s: s['momentum_buffer'].mul_(0.5)",
    "for s in opt.state.values(): s.clear()",
    "opt.zero_grad(set_to_none=False)",
    "w1.grad = {a}.detach().clone() if {a}.shape == w1.shape else None",
    "for p in parameters: p.grad = None if p.grad is None else p.grad.sign()",
]


def written(seed: int) -> Program:
    """A random program."""
    rng, program = random.Random(f"changes {seed}"), fuzz_recipes.written(seed)
    lines, values = list(program.step), ["x", "w1", "w3", "buf"]
    for _ in range(rng.choice([1, 1, 2, 3])):
        lines.insert(rng.randrange(len(lines) - 2), rng.choice(CHANGES).format(a=rng.choice(values)))
    return program._replace(step=lines, state=STATE)


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_changes", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
