"""Random programs in Genesis and in PyTorch: the same values, dtypes, shapes, gradients and errors.

    python -m genesis.testing.fuzz_pytorch --programs 2000 --seed 0

The programs are those of `fuzz_pytorch_programs`. Each statement runs in both libraries; one that fails in both is
passed over. One that fails in one library alone is, too, or ends the program if it writes: "stricter" where Genesis
raises, "laxer" where PyTorch does. What differs otherwise is "wrong". Where PyTorch refuses on principle what has an
answer (`REFUSALS`), the reference is the same program with copies.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import genesis
from genesis.testing.command_line import options
from genesis.testing.fuzz_pytorch_programs import program as write
from genesis.testing.shrink import shortest

Outcome = tuple[str, str]  # "equal", "stricter", "laxer", "stated" or "wrong", and what differs
Difference = tuple[int, list[str], str]  # seed, the shortest program, what differs

TOLERANCES = (
    ("bfloat16", 5e-2),
    ("half()", 1e-2),
    ("float16", 1e-2),
    ("float32", 1e-4),
    ("complex64", 1e-4),
    ("float()", 1e-4),
    ("(x > y)", 1e-5),
)  # a bool among the results: its functions are float32
UNREADABLE = "unreadable"
LARGEST = 1_000_000  # elements; programs make a few dozen
WRITES = re.compile(r"_\(|out=|backward\(|\] [^=\s]{0,2}= |apply\(|^\w+ \S{1,2}= ")
# Where Genesis differs on purpose, see `docs/guide/differences.md`.
# Left out: PyTorch wraps a negative number, or integer tensor of 0 dimensions, around where it is compared with an
# unsigned tensor, so tensor(3, dtype=uint8) <= -1 is True there.
COMPARISON = re.compile(
    r"^\w+ = (\S+) (?:[<>]=?|[=!]=) (\S+)$|T\.(?:eq|ne|lt|le|gt|ge)\((\S+), "
    r"(\S+?)(?:\)|,)|(\S+)\.(?:eq|lt)_\((\S+)\)$"
)
# Written in another way for PyTorch: where a result is the same for all samples, it puts their dimension to the front
# whatever out_dims says, or makes a shape out of memory that is not its own.
SPELT = (
    (
        r"T\.func\.vmap\((\w+), (in_dims=\(.*?\)), out_dims=(-?[1-9])(.*)\)$",
        r"lambda x, y: T.func.vmap(\1, \2\4)(x, y).movedim(0, \3)",
    ),
)
# The same where the two differ: its rule of copysign reads the result, so that the second derivative with respect to
# the very tensor that was written to is not zero; and where an operand shares memory with what is written to and
# PyTorch does not notice, it reads what it wrote before; and a write without recording takes the history of views away.
STATED = (
    (r"(\w+)\.copysign_\((\w+)\)$", r"\1.mul_(T.copysign(T.ones_like(\1), \1.detach() * \2.detach()))"),
    (r"^(v\d+\.[a-z]+_)\((v\d+)((?:, \w+=[-\w.]+)?\))$", r"\1(\2.clone()\3"),
    (r"^with T\.no_grad\(\): (v\d+)\.", r"\1.data."),
)
COPIES = "__copies__"  # in the scope of a reference that saves copies
# What PyTorch refuses on principle, whatever the answer: the operands of a backward by their version, several views of
# one call, overlaps, freed graphs. Where Genesis takes such a program, its answer is that of the program with copies.
REFUSALS = re.compile(
    r"modified by an inplace|a function that returns multiple views|refer to a single memory|through the graph a "
    r"second time"
)
COPYING = (
    (r"\.unbind\(0\)\[0\]", ".select(0, 0)"),
    (r"\.split\(1, -1\)\[0\]", ".narrow(-1, 0, 1)"),
    (r"\.chunk\((\d+)\)\[-1\]", lambda match: f".narrow(0, {int(match[1]) - 1}, 1)"),
    (r"(?<=[a-z]_)\((.*)\)$", lambda match: "(" + re.sub(r"\bv\d+\b", r"\g<0>.clone()", match[1]) + ")"),
    (r"(\] .?= v\d+)$", r"\1.clone()"),
    (r"(allow_unused|materialize_grads)=True", r"\g<0>, retain_graph=True"),
    (r"retain_graph=True, (.*retain_graph=True)", r"\1"),
    (r"\.backward\(", ".backward(retain_graph=True, "),
)
GRADIENTS = "gh"  # whether a gradient has a history is compared only where nothing requires one: that of zeros differs


def compare(program: Sequence[str], other: Any) -> Outcome:
    """Run a program in both libraries, statement by statement, and compare all that it made."""
    reference = [_changed(text, SPELT) for text in program]
    outcome = _compare(program, reference, other, {})
    if outcome[0] == "wrong":
        stated = [_changed(text, STATED) for text in reference]
        if stated != reference and _compare(program, stated, other, {})[0] != "wrong":
            return "stated", outcome[1]
    return outcome


def _changed(text: str, changes: Any) -> str:
    for pattern, instead in changes:
        text = re.sub(pattern, instead, text)
    return text


def _compare(program: Sequence[str], reference: Sequence[str], other: Any, copying: dict[str, Any]) -> Outcome:
    mine, theirs = {"T": genesis, "seen": []}, {"T": other, "seen": [], **copying}
    first: Outcome = ("equal", "")
    for index, texts in enumerate(zip(program, reference, strict=True)):
        if _on_purpose(texts[0], mine):
            continue
        errors = [error_of(text, scope) for text, scope in zip(texts, (mine, theirs), strict=True)]
        if not any(errors):
            continue
        if errors[1] and not errors[0] and not copying and REFUSALS.search(str(errors[1])):
            return _compare(program, list(map(copied, reference)), other, {COPIES: True})
        if bool(errors[0]) != bool(errors[1]):
            if NameError in map(type, errors):
                return first  # of a shortened program, or of a statement that was passed over
            first = (
                first
                if first[1]
                else ("stricter" if errors[0] else "laxer", f"{texts[0]}\n  {errors[0] or errors[1]!r}")
            )
            for scope in (mine, theirs):
                scope.pop(texts[0].partition(" = ")[0], None)
        # PyTorch leaves half of what such a statement does: resized results, gradients of some leaves
        if WRITES.search(texts[0]):
            detail = different(*_finished(program[:index], reference[:index], other, copying), program)
            return ("wrong", detail) if detail else first
    detail = different(mine, theirs, program)
    return ("wrong", detail) if detail else first


def copied(text: str) -> str:
    """A statement that PyTorch takes where it refuses ``text`` on principle: views one by one, operands of writes
    copied, graphs kept.
    """
    return _changed(text, COPYING)


def error_of(text: str, scope: dict[str, Any]) -> Exception | None:
    """Run a statement in a scope; the exception that it raised."""
    keeping = (
        scope["T"].autograd.graph.saved_tensors_hooks(_clone, _itself) if COPIES in scope else contextlib.nullcontext()
    )
    try:
        with keeping:
            exec(compile(text, "<program>", "exec"), scope)
    except Exception as error:
        return error.with_traceback(None)
    return None


def _on_purpose(text: str, scope: dict[str, Any]) -> bool:
    """A statement that means something else in Genesis: see `COMPARISON`."""
    match = COMPARISON.search(text)
    if match is None:
        return False
    operands = [-1 if name == "-1" else scope.get(name.partition(".")[0]) for name in match.groups() if name]
    return any(["uint" in str(getattr(x, "dtype", "")) for x in operands]) and any([_negative(x) for x in operands])


def _negative(x: Any) -> bool:
    if isinstance(x, genesis.Tensor):
        return x.ndim == 0 and not x.dtype.is_floating_point and not x.dtype.is_complex and x.item() < 0
    return isinstance(x, int) and x < 0


def _clone(x: Any) -> Any:
    return x.clone()


def _itself(x: Any) -> Any:
    return x


def _finished(
    program: Sequence[str], reference: Sequence[str], other: Any, copying: dict[str, Any]
) -> list[dict[str, Any]]:
    scopes: list[dict[str, Any]] = [{"T": genesis, "seen": []}, {"T": other, "seen": [], **copying}]
    for texts in zip(program, reference, strict=True):
        if _on_purpose(texts[0], scopes[0]):
            continue
        errors = [error_of(text, scope) for text, scope in zip(texts, scopes, strict=True)]
        if bool(errors[0]) != bool(errors[1]):
            for scope in scopes:
                scope.pop(texts[0].partition(" = ")[0], None)
    return scopes


def different(mine: dict[str, Any], theirs: dict[str, Any], program: Sequence[str]) -> str:
    """The first variable that differs, nothing if there is none."""
    text = "\n".join(program)
    tolerance = next((t for name, t in TOLERANCES if name in text), 1e-8)
    if "T.float64" not in text:
        tolerance = max(tolerance, 1e-4)  # numbers make float32
    for name in mine:
        if name in ("T", "__builtins__", COPIES):
            continue
        if name not in theirs:
            return f"{name} is there in Genesis alone"
        told = name[0] not in GRADIENTS or "requires_grad" not in text
        a, b = shown(mine[name], told), shown(theirs[name], told)
        if not _same(
            a, b, max(tolerance, 1e-5) if re.search(rf"^{name} = .*out=|out={name}\)", text, re.M) else tolerance
        ):
            return f"{name} is {a}, the reference has {b}"
    return ""


def shown(x: Any, told: bool = True) -> Any:
    """What a variable is, in lists and numbers; ``told``: whether it requires a gradient is said, too."""
    if isinstance(x, tuple | list):
        return [shown(v, told) for v in x]
    if hasattr(x, "detach") and not isinstance(x, type):
        if x.numel() > LARGEST:
            return f"a tensor of {x.numel()} elements"
        try:
            values, grad = x.detach().tolist(), x.grad if x.is_leaf else None
        # PyTorch refuses to show some views whose base was written to, and leaves broken tensors after errors
        except (RuntimeError, MemoryError):
            return UNREADABLE
        if "complex32" in str(x.dtype):  # Genesis does not have it, complex64 is next
            return UNREADABLE
        # PyTorch marks integers that a comparison was written to, though they cannot require grad
        needs = x.requires_grad and told and (x.is_floating_point() or x.is_complex())
        return [
            str(x.dtype).partition(".")[2],
            list(x.shape),
            needs,
            values,
            None if grad is None or not (grad.abs() > 1e-12).any() else shown(grad, False),
        ]  # zeros or None
    if isinstance(x, bool | int | float | complex | str) or x is None:
        return x
    if "complex32" in str(x):
        return UNREADABLE
    return str(x).partition(".")[2] if "dtype" in type(x).__name__ else callable(x)


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if UNREADABLE in (a, b):
        return True
    if isinstance(a, list) and isinstance(b, list):
        if a and a[0] == "float32":  # what came of bools and integers
            tolerance = max(tolerance, 1e-5)
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, float | complex):
        return a == b or bool(np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))
    return bool(a == b)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, nothing warns."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def shrunk(program: Sequence[str], other: Any, kind: str = "wrong") -> list[str]:
    """The fewest statements of a program that still end as it did."""
    return shortest(program, lambda shorter: compare(shorter, other)[0] == kind)


def fuzz(
    other: Any, programs: int, seed: int = 0, kinds: Sequence[str] = ("wrong",)
) -> tuple[Counter[str], list[Difference]]:
    """Compare ``programs`` random programs with another library: how many ended how, and those of ``kinds``, shrunk,
    with their seeds.
    """
    counts: Counter[str] = Counter()
    differing = []
    with quiet():
        for number in range(seed, seed + programs):
            program = write(number)
            kind, _ = compare(program, other)
            counts[kind] += 1
            if kind in kinds:
                few = shrunk(program, other, kind)
                differing.append((number, few, compare(few, other)[1]))
    return counts, differing


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many programs as asked for, print the seed and what was found."""
    kinds = {"nargs": "*", "default": ["wrong"], "help": "kinds of outcomes to print: wrong, stricter, laxer"}
    asked = options("fuzz_pytorch", __doc__, arguments, 2000, show=kinds)
    import torch  # type: ignore[import-not-found, unused-ignore]

    counts, differing = fuzz(torch, asked.programs, asked.seed, asked.show)
    for number, lines, detail in differing:
        print(f"seed {number}\n" + "\n".join(lines) + f"\n  -> {detail}\n")
    print(f"programs {asked.programs} from seed {asked.seed}: {dict(counts)}")
    return bool(counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["compare", "different", "error_of", "fuzz", "main", "quiet", "shown", "shrunk"]
