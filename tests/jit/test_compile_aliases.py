"""Tensors that a compiled function makes on memory of the outside are none of the outside: what it captures are those that
were there before.
"""

import warnings

import pytest

import genesis
from genesis import func, nn
from genesis.base.pytree import tree_flatten
from genesis.nn import functional as F


def leaves_of_its_own(way):
    def function(w, t, x):
        made = way(w, t)
        (made**2 * x).sum().backward()
        return made.grad, made.detach() * 2

    return function


WAYS = {
    "gradients by what is captured": lambda w, t, x: func.grad(lambda p: (p * p * x).sum())(t),
    "gradients by a captured leaf": lambda w, t, x: func.grad(lambda p: (p * p * x).sum())(w),
    "a pull": lambda w, t, x: func.vjp(lambda p: p * p * x, t)[1](x),
    "second derivatives": lambda w, t, x: func.hessian(lambda p: (p**3 * x).sum())(t),
    "detached": leaves_of_its_own(lambda w, t: w.detach().requires_grad_()),
    "what was none, detached": leaves_of_its_own(lambda w, t: t.detach().requires_grad_()),
    "data": leaves_of_its_own(lambda w, t: t.data.requires_grad_()),
    "a parameter": leaves_of_its_own(lambda w, t: nn.Parameter(t)),
    "results": lambda w, t, x: (w.detach(), t.data, x * 2),
}


def alike(results, expected):
    for x, y in zip(tree_flatten(results)[0], tree_flatten(expected)[0], strict=True):
        genesis.testing.assert_close(x.detach(), y.detach())
        assert x.requires_grad == y.requires_grad


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_memory_that_is_exchanged_is_read(way):
    genesis.manual_seed(0)
    w, t = nn.Parameter(genesis.randn(3)), genesis.randn(3)
    function = genesis.compile(lambda x: WAYS[way](w, t, x), fullgraph=True)
    for n in range(4):
        x = genesis.full((3,), n + 1.0)
        alike(function(x), WAYS[way](w, t, x))
        assert not t.requires_grad and t.grad is None and w.grad is None
        w.data, t.data = genesis.randn(3), genesis.randn(3)
    assert len(function._recent) == 1


def test_gradients_of_samples_by_captured_weights():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    weights = {name: p.detach() for name, p in model.named_parameters()}
    x, y = genesis.randn(8, 4), genesis.randint(0, 3, (8,))

    def loss(weights, x, y):
        return F.cross_entropy(func.functional_call(model, weights, (x[None],)), y[None])

    def gradients():
        return func.vmap(func.grad(loss), (None, 0, 0))(weights, x, y)

    compiled = genesis.compile(gradients, fullgraph=True)
    for _ in range(4):
        alike(compiled(), gradients())
        with genesis.no_grad():
            for p in model.parameters():
                p.mul_(1.5)
    assert len(compiled._recent) == 1


@pytest.mark.parametrize("end", [lambda w, t: w.detach().requires_grad_(), lambda w, t: nn.Parameter(t)])
def test_leaves_that_are_returned_are_refused(end, recwarn):
    w, t = nn.Parameter(genesis.ones(3)), genesis.ones(3)
    function = genesis.compile(lambda x: (end(w, t), x * 2))
    for _ in range(3):
        leaf, _ = function(genesis.ones(3))
        assert leaf.requires_grad and leaf is not w and leaf is not t and not t.requires_grad
    assert "a leaf that the function made" in str(recwarn[0].message)


class Reversed(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -2 * g


VIEWS = {
    "a result and a view of it": lambda layer, x: (y := layer(x), y.t()),
    "a view before what it is of": lambda layer, x: ((y := layer(x)).t(), y, y[0]),
    "parts of what is not returned": lambda layer, x: layer(x).chunk(3, 1),
    "rows in containers": lambda layer, x: {"rows": [*layer(x).unbind(0)], "other": layer(x).sum()},
    "a view of an argument": lambda layer, x: (x.view(-1), layer(x)),
    "a view of a parameter": lambda layer, x: (layer.weight.t(), layer(x)),
    "a view of what was written to": lambda layer, x: ((y := layer(x).add_(1)), y[1:]),
    "a written view": lambda layer, x: ((y := layer(x)), y.t().mul_(2)),
    "detached": lambda layer, x: ((y := layer(x)).detach(), y, y[0]),
    "a view that a function gives": lambda layer, x: (Reversed.apply(x), Reversed.apply(y := layer(x)), y),
}


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_results_with_a_history_that_share_memory(name, write):
    def run(compiled):
        genesis.manual_seed(0)
        layer = nn.Linear(4, 6)
        function = lambda x: VIEWS[name](layer, x)  # noqa: E731
        function, seen = genesis.compile(function, fullgraph=True) if compiled else function, []
        for _ in range(3):
            layer.zero_grad()
            x = (genesis.randn(3, 4).requires_grad_() * 1).requires_grad_()
            results = tree_flatten(function(x))[0]
            live = [y for y in results if y.requires_grad]
            if write and "function" not in name:
                live[-1].mul_(3)
            loss = sum([(y * y.detach().cos() * (i + 1)).sum() for i, y in enumerate(live)])
            seen += [*results, *genesis.autograd.grad(loss, [x, layer.weight], allow_unused=True)]
        return seen

    for x, y in zip(run(True), run(False), strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            alike(x, y)


def test_a_view_that_a_function_gives_is_not_written_to():
    layer = nn.Linear(4, 4)
    for function in (lambda x: (Reversed.apply(x), layer(x)), lambda x: ((y := layer(x)), Reversed.apply(y))):
        for called in (function, genesis.compile(function)):
            for _ in range(2):
                results = called(genesis.randn(3, 4).requires_grad_() * 1)
            with pytest.raises(RuntimeError, match="returned by a Function, is written to"):
                next(y for y in results if y._view is not None).mul_(2)


def test_views_of_arguments_alone_are_not_compiled(recwarn):
    function = genesis.compile(lambda x: (x.t(), x[0]))
    for _ in range(3):
        x = genesis.randn(3, 4).requires_grad_() * 1
        function(x)[0].mul_(2)
    assert "are views of what is given" in str(recwarn[0].message)


def test_views_of_a_parameter_beside_a_leaf_that_is_given_have_a_history(recwarn):
    w = nn.Parameter(genesis.randn(3, 4))
    function = genesis.compile(lambda x: (w.t(), x))
    for _ in range(3):
        x = genesis.ones(2, requires_grad=True)
        view, same = function(x)
        assert view.requires_grad and same is x
    assert "are views of what is given" in str(recwarn[0].message)


def test_gradients_that_share_memory_are_none_of_the_forward():
    genesis.manual_seed(0)
    first, places, head = nn.Parameter(genesis.randn(1, 1, 4)), nn.Parameter(genesis.randn(1, 4, 4)), nn.Linear(4, 3)

    def function(x):
        return head((genesis.cat([first, x], 1) + places)[:, 0].tanh())

    compiled, leaves = genesis.compile(function, fullgraph=True), [first, places, *head.parameters()]
    for _ in range(3):
        x = genesis.randn(1, 3, 4)
        alike(compiled(x), function(x))
        alike(*[genesis.autograd.grad(f(x).square().sum(), leaves) for f in (compiled, function)])


def test_results_behind_one_that_has_a_history_and_memory_of_the_outside():
    genesis.manual_seed(0)

    def function(w, x):
        seen = w.detach()
        seen[0] = w[1]
        return seen, x * 2, x * 3

    one, other = [nn.Parameter(genesis.ones(3, 4) * 0.5) for _ in range(2)]
    compiled = genesis.compile(lambda x: function(one, x), fullgraph=True)
    for n in range(3):
        x = genesis.full((3, 4), n + 1.0)
        results, expected = compiled(x), function(other, x)
        alike(results, expected)
        (results[0] * x).sum().backward(), (expected[0] * x).sum().backward()
        genesis.testing.assert_close(one.grad, other.grad)
    assert len(compiled._recent) == 1


def is_an_argument(w, u, buf, x):
    w.grad = x.detach()


def is_a_captured_tensor(w, u, buf, x):
    w.grad = buf


def is_a_part_of_one(w, u, buf, x):
    w.grad = buf.view(4, 3).view(3, 4)


def is_another_gradient(w, u, buf, x):
    u.grad = w.grad


def is_a_part_of_another(w, u, buf, x):
    u.grad = w.grad.t().t()


def are_exchanged(w, u, buf, x):
    w.grad, u.grad = u.grad, w.grad


def are_one_for_two(w, u, buf, x):
    w.grad = u.grad = x * 2


def is_a_result(w, u, buf, x):
    y = w.grad = x * 2
    return y


def is_a_part_of_a_result(w, u, buf, x):
    y = x * 2
    w.grad = y[:]
    return y


def is_a_part_of_itself(w, u, buf, x):
    w.grad = w.grad[:]


SHARED_GRADIENTS = [
    is_an_argument, is_a_captured_tensor, is_a_part_of_one, is_another_gradient, is_a_part_of_another, are_exchanged,
    are_one_for_two, is_a_result, is_a_part_of_a_result, is_a_part_of_itself,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("body", SHARED_GRADIENTS)
def test_gradients_that_are_set_share_memory(body):
    def run(compiled):
        w, u = [genesis.ones(3, 4, requires_grad=True) for _ in range(2)]
        buf, seen = genesis.ones(3, 4), []
        w.grad, u.grad = genesis.ones(3, 4) * 2, genesis.ones(3, 4) * 3
        function = lambda x: body(w, u, buf, x)  # noqa: E731
        function = genesis.compile(function) if compiled else function
        for n in range(3):
            x, held = genesis.full((3, 4), n + 1.0), w.grad
            y = function(x)
            for t in [w.grad, u.grad, buf, x, held, *([y] if isinstance(y, genesis.Tensor) else [])]:
                t.mul_(1.5)
                seen += [w.grad.clone(), u.grad.clone(), buf.clone(), x.clone()]
        return seen

    for a, b in zip(run(True), run(False), strict=True):
        genesis.testing.assert_close(a, b)


def test_gradients_that_are_views_are_added_to():
    w = genesis.ones(3, 4, requires_grad=True)
    step = genesis.compile(lambda x: (w * x).sum().backward(), fullgraph=True)
    for made in (lambda: genesis.ones(3, 4), lambda: genesis.ones(4, 3).t(), lambda: genesis.ones(3, 8)[:, ::2]):
        for _ in range(2):
            held = w.grad = made()
            step(genesis.full((3, 4), 2.0))
            assert w.grad is held and (held == 3).all()
    assert len(step._recent) == 1


def test_a_leaf_whose_gradient_is_its_own_memory_keeps_its_history():
    w = genesis.ones(3, 4, requires_grad=True)

    def step(x):
        first = w.grad is None
        w.grad = w.detach()
        return x * (2 if first else 3), w[1:]

    compiled, x = genesis.compile(step), genesis.ones(3, 4, requires_grad=True) * 2
    for factor in (2, 3, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y, part = compiled(x)
        assert (y == 2 * factor).all() and part.requires_grad and not part.is_leaf
        assert genesis.autograd.grad(part.sum(), w)[0].sum(1).tolist() == [0, 4, 4]


class Named:
    """Ways to find a tensor besides as the .grad of ``w``."""

    def __init__(self):
        self.w, self.buffer = genesis.tensor([2.0, 3.0], requires_grad=True), genesis.ones(2)
        self.box = {"buffer": self.buffer}

    def by_closure(self):
        w, buffer = self.w, self.buffer
        return lambda: (w.grad * 2, buffer * 3)

    def by_item(self):
        w, box = self.w, self.box
        return lambda: (w.grad * 2, box["buffer"] * 3)

    def among_all(self):
        w, box = self.w, self.box

        def step():
            (w * w).sum().backward()
            return [x * 3 for x in list(box.values())]

        return step


@pytest.mark.parametrize("way", ["by_closure", "by_item", "among_all"])
def test_a_gradient_that_is_found_under_another_name_too_is_one_tensor_only_then(way):
    compiled, eager = Named(), Named()
    steps = [genesis.compile(getattr(compiled, way)()), getattr(eager, way)()]
    for shared in (True, True, False, False, True, False, True):
        results = []
        for one, step in zip((compiled, eager), steps, strict=True):
            one.buffer.fill_(1.0)
            one.w.grad = one.buffer if shared else genesis.full((2,), 5.0)
            results.append([x.tolist() for x in (*step(), one.w.grad, one.buffer)])
        assert results[0] == results[1]
