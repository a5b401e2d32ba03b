"""What a trace cannot do is no error in a call: a function that would catch it is not compiled."""

import linecache

import pytest

import genesis
from genesis.nn import functional as F  # noqa: N812

WHAT = [
    "x[mask].sum()",
    "x.numpy().sum() * 1.0",
    "x.tolist()[0]",
    "x.nonzero().sum() * 1.0",
    "x.unique().sum()",
    "x.masked_select(x > 0).sum()",
    "x.repeat_interleave(counts)",
    "x.to_sparse().to_dense()",
    "F.one_hot(counts)",
    "p.data.numpy().sum() * 1.0",
    "x.view(7)",  # an error in a call, too
]


@pytest.mark.parametrize("error", ["Exception", "RuntimeError", "NotImplementedError"])
@pytest.mark.parametrize("what", WHAT)
@pytest.mark.filterwarnings("ignore:compile")
def test_an_error_of_the_trace_alone_is_caught(what, error):
    text = f"def step(x, counts, mask):\n    try:\n        y = x * {what}\n    except {error}:\n        y = x * 3\n    return y\n"
    name = f"<catches {what} {error}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope = {"genesis": genesis, "F": F, "p": genesis.nn.Parameter(genesis.ones(2))}
    exec(compile(text, name, "exec"), scope)

    def called(function):
        results = []
        for n in range(3):
            x = genesis.tensor([1.0 + n, -2, 3])
            try:
                results.append(function(x, genesis.tensor([1, 0, 2]), x > 0).tolist())
            except RuntimeError as error:
                results.append(type(error))
        return results

    assert called(genesis.compile(scope["step"])) == called(scope["step"])


def test_so_is_one_of_a_function_that_it_calls():
    def picked(x):
        return x[x > 0].sum()

    def step(x):
        try:
            return x * picked(x)
        except NotImplementedError:
            return x

    x = genesis.tensor([1.0, -2.0, 5.0])
    with pytest.warns(UserWarning, match="values of the mask"):
        compiled = genesis.compile(step)
        for _ in range(2):
            assert compiled(x).tolist() == step(x).tolist()
