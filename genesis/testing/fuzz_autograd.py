"""Statements about gradients for random programs: Functions of all kinds, hooks, modes, gradients of what is no leaf,
checkpoints and compiled functions inside, optimizers that change.
"""

STATE = """
from genesis import compile as compiled, inference_mode
once_differentiable = autograd.function.once_differentiable
from genesis.autograd.graph import save_on_cpu, saved_tensors_hooks
from genesis.func import functional_call, hessian, jacrev, vjp
from genesis.nn.utils import parameters_to_vector, vector_to_parameters
from genesis.optim.swa_utils import AveragedModel
class Swap(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        a.add_(b)
        return b.clone(), a
    @staticmethod
    def backward(ctx, g, h):
        return h, g + h
class Sorted(Function):
    @staticmethod
    def forward(a):
        return a.sort(1)[0], a.argsort(1)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
    @staticmethod
    def backward(ctx, g, _):
        (order,) = ctx.saved_tensors
        return zeros_like(g).scatter(1, order, g)
class Kept(Function):
    @staticmethod
    def forward(ctx, a):
        y = a.exp()
        ctx.save_for_backward(y)
        ctx.twice = y * 2
        return y
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 0.5 + ctx.twice * 0
class Sparse(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        return a * 2, b * 3, a + b
    @staticmethod
    def backward(ctx, g, h, k):
        a, b = ctx.saved_tensors
        ga = None if g is None else g * 2
        gb = None if h is None else h * 3
        if k is not None:
            ga, gb = k if ga is None else ga + k, k if gb is None else gb + k
        return ga, gb
class Noisy(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.shape = a.shape
        return a + rand(a.shape)
    @staticmethod
    def backward(ctx, g):
        return g * rand(ctx.shape)
class Counting(Function):
    calls = 0
    @staticmethod
    def forward(ctx, a):
        Counting.calls += 1
        return a * Counting.calls
    @staticmethod
    def backward(ctx, g):
        box.rate = box.rate + 0.25
        return g * box.rate
class Row(Function):
    @staticmethod
    def forward(ctx, a):
        return a[1:]
    @staticmethod
    def backward(ctx, g):
        return nn.functional.pad(g, (0, 0, 1, 0))
class Written(Function):
    @staticmethod
    def forward(ctx, a):
        buf.add_(a)
        return a.clone()
    @staticmethod
    def backward(ctx, g):
        buf.mul_(0.5)
        return g
def packed(v):
    with saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2):
        return (v * w1).tanh()
inner, averaged = compiled(lambda v: (v * 2).tanh()), AveragedModel(block)
spied = []
@compiled
def trained(v):
    (w1 * v.detach()).sum().backward()
    return v * w2
@no_grad()
def quiet(v):
    return v * w1 + 1
shown_before_autograd = shown
def shown():
    return [*shown_before_autograd(), *averaged.state_dict().values(), *spied, Counting.calls]
"""
VALUES = [
    "sum(Swap.apply({a} * 1, {b}))",
    "Swap.apply({a}.clone(), {b})[1]",
    "Sorted.apply({a})[0] + {b}",
    "Sorted.apply({a})[0] * Sorted.apply({b})[1]",
    "Kept.apply({a} * 0.1)",
    "Sparse.apply({a}, {b})[0]",
    "Sparse.apply({a}, {b})[2]",
    "sum(Sparse.apply({a}, {b})[:2])",
    "Noisy.apply({a})",
    "Counting.apply({a})",
    "Row.apply({a}).sum(0) + {b}",
    "Row.apply({a} * 1).mul_(2).sum() * {b}",
    "Written.apply({a})",
    "inner({a})",
    "trained({a})",
    "quiet({a})",
    "compiled(lambda v, u: v * u.sum())({a}, {b})",
    "inner(inner({a}) + {b})",
    "utils.checkpoint.checkpoint(lambda v: nn.functional.dropout(block(v), 0.5), {a}, use_reentrant=False)",
    "utils.checkpoint.checkpoint(lambda v, u: v * u, {a}, {b}, use_reentrant=True)",
    "utils.checkpoint.checkpoint(inner, {a}, use_reentrant=False)",
    "utils.checkpoint.checkpoint_sequential(nn.Sequential(block.norm, block.layer), 2, {a}, use_reentrant=False)",
    "packed({a})",
    "functional_call(block, {{k: v * 0.5 for k, v in block.state_dict().items()}}, ({a},))",
    "functional_call(block.layer, {{'weight': {a}.t() @ {b}}}, ({a},))",
    "jacrev(lambda v: v.sin().sum(0))({a}).sum((0, 1)) + {b}",
    "hessian(lambda v: (v ** 3).sum())({a}[0]).sum() * {b}",
    "vjp(lambda v: v * w1, {a})[1]({b})[0]",
    "averaged({a})",
    "averaged.module.layer({a})",
    "autograd.grad(({a} * w1 * w1).sum(), w1, create_graph=True)[0]",
    "autograd.grad(({a} * w1).sum(), [w1, w2], allow_unused=True)[0] * {b}",
    "nn.functional.scaled_dot_product_attention({a}[None], {b}[None], {a}[None])[0]",
    "nn.functional.normalize({a}, dim=1) @ nn.functional.normalize({b}, dim=1).t() @ {a}",
    "nn.functional.embedding({a}.argmax(1) % 3, w1)",
    "nn.functional.embedding_bag(tensor([[0, 1], [2, 2], [1, 0]]), {a})",
    "nn.functional.conv1d({a}[None], {b}[:, :3, None])[0] if {b}.shape[0] == 1 else {a}",
    "nn.functional.conv1d({a}[None], w1.unsqueeze(1)[:, :, :3], padding=1, groups=3)[0]",
    "nn.functional.max_pool1d({a}[None], 2)[0].repeat(1, 2)",
    "nn.functional.interpolate({a}[None], scale_factor=2)[0][:, ::2]",
    "parameters_to_vector([w1, w3])[:12].view(3, 4) * {a}",
    "{a}.requires_grad_() * 2 if {a}.is_leaf and not {a}.requires_grad else {a}",
    "{a} * {b}.requires_grad",
    "{a} * ({b}.grad_fn is None)",
    "{a} * {b}.is_leaf",
    "{a} * (w1.grad is None)",
    "{a} * w1.grad if w1.grad is not None else {a}",
    "{a} * {b}._version",
    "inference_mode()(lambda v: v * w1)({a}).clone()",
    "inference_mode()(lambda v: v * w1)({a})",
    "enable_grad()(lambda v: v * w1)({a}.detach())",
]
TRAINING = [
    "with inference_mode(): {t}.add_(1)",
    "with inference_mode(): v = {a} * w1\n{t}.add_(v)",
    "v = {a} * w1; v.retain_grad(); v.sum().backward(); {t}.add_(v.grad)",
    "v = {a} * w1; v.register_hook(lambda g: g * 2); v.sum().backward()",
    "v = {a} * w1; h = v.register_hook(lambda g: g * 2); h.remove(); v.sum().backward()",
    "v = {a} * w1; v.register_hook(lambda g: buf.add_(g)); v.sum().backward()",
    "v = {a} * w1; v.register_hook(lambda g: spied.append(g.sum()) or None); v.sum().backward(); del spied[:-2]",
    "h = w1.register_hook(lambda g: g.clamp(-1, 1)); ({a} * w1).sum().backward(); h.remove()",
    "h = block.register_full_backward_hook(lambda m, i, o: spied.append(o[0].sum())); block({a}).sum().backward(); h.remove(); del spied[:-2]",
    "v = {a}.detach().requires_grad_(); (v * w1 * v).sum().backward(); {t}.copy_(v.grad)",
    "v = {a}.detach().clone().requires_grad_(); w = v * w1; w[0].mul_(2); w.sum().backward(); {t}.add_(v.grad)",
    "v = {a} + w1; v.add_(w2); v[1:].mul_(v[:-1].detach()); v.sum().backward()",
    "v = ({a} * w1)[1:]; v.mul_(2); v.sum().backward()",
    "v = ({a} * w1).view(-1); u = v[2:8]; u.zero_(); v.sum().backward()",
    "with no_grad(): w1[1:].view(-1)[::2].mul_(0.5)",
    "with no_grad(): w1.t()[1] = {a}[:, 0]",
    "with no_grad(): w3.as_strided((2,), (5,)).add_(0.25)",
    "with no_grad(): vector_to_parameters(parameters_to_vector([w1, w3]) * 0.9, [w1, w3])",
    "averaged.update_parameters(block)",
    "opt.param_groups[0]['lr'] = {a}.detach().abs().mean().item() * 0.1",
    "opt.param_groups[0]['weight_decay'] = 0.05",
    "opt.param_groups[0]['params'][0].grad = {a}.detach().clone()",
    "for s in opt.state.values(): [v.mul_(0.5) for v in s.values() if hasattr(v, 'mul_') and v.dim()]",
    "opt.state.clear()",
    "opt.step(lambda: 1.0)",
    "loss = opt.step(lambda: ({a} * w1.detach()).sum())",
    "opt.zero_grad(); v = (w1 * {a}).mean(); v.backward(); opt.step(); {t}.add_(v.detach())",
    "autograd.backward([({a} * w1).sum(), ({b} * w3).mean()])",
    "autograd.backward(({a} * w1), {b}.detach())",
    "({a} * w1).backward({b}.detach(), inputs=[w1])",
    "(({a} * w1).sum() * (w1.grad.sum() if w1.grad is not None else 1)).backward()",
    "w1.grad = None; ({a} * w1).sum().backward(); w2.grad = w1.grad[0]",
    "w1.grad = {a}.detach()",
    "w1.grad = buf",
    "w3.grad = w1.grad",
    "if w1.grad is not None: w1.grad.add_({a}.detach())",
    "if w1.grad is not None: buf.copy_(w1.grad); w1.grad.zero_()",
    "w1.grad, w3.grad = w3.grad, w1.grad",
    "nn.utils.clip_grad_norm_([w1], 0.1); opt.step()",
    "level.copy_(nn.utils.clip_grad_norm_(parameters, 1.0))",
    "scaler.scale(({a} * w1).sum()).backward(); scaler.unscale_(opt); scaler.step(opt); scaler.update(); opt.zero_grad()",
    "try: ({a} * w1).sum().backward(); fails({a}); opt.step()\nexcept Stop: opt.zero_grad()",
    "v = block({a}).sum(); v.backward(); v.backward() if box.count < 0 else None",
    "with save_on_cpu(): v = (w1 * {a}).exp().sum()\nv.backward()",
    "for k in range(2):\n    opt.zero_grad()\n    (w1 * {a} - k).square().mean().backward()\n    opt.step()",
    "for k in range(3): (w1 * {a}[k]).sum().backward()\nopt.step(); opt.zero_grad()",
    "trained({a}).sum().backward()",
    "inner({a} * w1).sum().backward()",
    "inner({a} * w1).backward({b}.detach())",
    "genesis_seed(8)",
    "w1.requires_grad_(not w1.requires_grad)",
    "buf.requires_grad_(); (buf * w1).sum().backward(); buf.requires_grad_(False); buf.grad = None",
]
BETWEEN = [
    "averaged.update_parameters(block)",
    "block.float()",
    "block.layer.weight.data = block.layer.weight.data.clone()",
    "nn.init.normal_(block.layer.weight)",
    "opt = optim.SGD(parameters, lr=0.05, momentum=0.5)",
    "opt.param_groups[0]['lr'] = 0.3",
    "opt.state.clear()",
    "w1.grad = buf.clone()",
    "w1.grad = zeros(3, 4).t().contiguous().t()",
    "w1.grad = ones(4, 3).t()",
    "w1 = nn.Parameter(w1.detach().clone())",
    "inner = compiled(lambda v: v * 3)",
    "Counting.calls = 0",
    "spied.clear()",
    "block.requires_grad_(False)",
    "block.requires_grad_(True)",
    "w1.retain_grad()",
    "w1.data = w1.data.t().contiguous().t()",
    "w1.data = w1.data * 2",
    "w1.data.copy_(w3.data)",
]
