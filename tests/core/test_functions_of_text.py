"""Functions made of text: compiled at their first call, and the same before and after it."""

import functools
import inspect
import linecache
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from genesis.core.call.generated import LateSignature, compiled, defined, generated
from genesis.core.call.op import REGISTRY


def made(text="def call(x, k=_default_k):\n    return x + k\n", name="shifted"):
    def source():
        built.append(name)
        return text

    built = []
    return generated(source, name, f"<genesis test {name}>", {"_default_k": 3}), built


def test_the_text_is_built_at_the_first_call_and_once():
    f, built = made()
    assert f.__name__ == f.__qualname__ == "shifted"
    assert built == []
    assert [f(1), f(1, k=5), f(x=2)] == [4, 6, 5]
    assert built == ["shifted"]
    assert f.__code__.co_filename == "<genesis test shifted>"
    assert linecache.getline("<genesis test shifted>", 2) == "    return x + k\n"


def test_a_signature_is_known_before_the_first_call():
    f, _ = made()
    assert str(inspect.signature(f)) == "(x, k=3)"
    assert inspect.signature(f).bind(1).arguments == {"x": 1}
    f, _ = made()
    f.__annotations__ = {"return": int}
    assert inspect.signature(f).return_annotation is int
    g = functools.wraps(made()[0])(lambda *args: None)
    assert str(inspect.signature(g)) == "(x, k=3)"


def test_wrong_arguments_of_a_first_call_are_refused_in_the_words_of_python():
    f, _ = made()
    with pytest.raises(TypeError, match=r"shifted\(\) missing 1 required positional argument: 'x'"):
        f()
    with pytest.raises(TypeError, match=r"shifted\(\) got an unexpected keyword argument 'y'"):
        made()[0](1, y=2)


def test_compiled_gives_the_code_at_once():
    f, built = made()
    assert compiled(f) is f
    assert built == ["shifted"]
    assert f.__code__.co_varnames == ("x", "k")
    assert compiled(f) is f
    assert built == ["shifted"]


def test_first_calls_from_many_threads():
    for _ in range(50):
        f, _ = made()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(f, range(8))) == list(range(3, 11))


def test_defaults_are_values_and_not_text():
    marker = object()
    parameters = inspect.signature(lambda a, *rest, b=marker, **more: None).parameters.values()
    scope = {}
    assert defined(parameters, scope) == ["a", "*rest", "b=_default_b", "**more"]
    assert scope["_default_b"] is marker


def test_no_op_is_compiled_by_the_import():
    code = (
        "import genesis\n"
        "from genesis.core.call.op import REGISTRY\n"
        "print([n for n, op in REGISTRY.items() if op.call.__code__.co_filename.startswith('<genesis op')])\n"
        "genesis.logsumexp(genesis.ones(3), 0)\n"
        "print('logsumexp' in [n for n, op in REGISTRY.items()"
        " if op.call.__code__.co_filename == '<genesis op logsumexp>'])\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["[]", "True"], out


def test_the_first_error_of_an_op_is_told_as_the_second():
    code = (
        "import genesis\n"
        "for _ in range(2):\n"
        "    try: genesis.cumsum(genesis.ones(3), 5)\n"
        "    except IndexError as e: print(e)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    lines = out.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert "dim 5 is out of range" in lines[0]


def test_an_override_before_the_first_call():
    code = (
        "import genesis\n"
        "seen = []\n"
        "genesis.ops.register_function('logsumexp', lambda *a, **k: seen.append(a) or genesis.ones(1))\n"
        "print(genesis.logsumexp(genesis.ones(3), 0).item(), len(seen))\n"
        "genesis.ops.unregister_function('logsumexp')\n"
        "print(round(genesis.logsumexp(genesis.ones(3), 0).item(), 4), len(seen))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["1.0", "1", "2.0986", "1"]


def test_tracebacks_show_the_lines():
    f, _ = made("def call(x, k=_default_k):\n    return x.none\n", "broken")
    with pytest.raises(AttributeError) as caught:
        f(1)
    assert "return x.none" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_names_and_annotations_of_a_late_signature_are_those_of_the_signature():
    late = [op for op in REGISTRY.values() if isinstance(op.signature, LateSignature)]
    assert len(late) > 300
    for op in late:
        known = inspect.signature(op.signature._function())
        assert op.signature == known, op
        assert op.names == tuple(known.parameters), op
        annotations = [p.annotation for p in known.parameters.values()]
        assert op.annotations == ["" if a is inspect.Parameter.empty else str(a) for a in annotations], op


def test_a_late_signature_of_arguments_of_any_number():
    def f(first, *others, last: "int" = 3, **named):
        return first

    late = LateSignature(lambda: f)
    assert late.names == ("first", "others", "last", "named")
    assert late.annotations == ["", "", "int", ""]
    assert str(late) == str(inspect.signature(f))
    assert str(late.replace(parameters=[])) == "()"


def test_a_late_signature_is_worked_out_once():
    asked = []
    late = LateSignature(lambda: asked.append(1) or (lambda x: x))
    assert list(late.parameters) == ["x"] == list(late.bind(1).arguments)
    assert asked == [1]
