"""PyTorch's one-line declarations of operations, read: ``(Tensor x, Tensor(a!) out, int k=2, *, str? mode=None) -> Tensor``."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from genesis.base.errors import ArgumentValueError, message

_PARAMETER = re.compile(
    r"(?P<type>\w+(?:\((?P<alias>[^)]*)\))?(?:\[\d*\])?\??(?:\[\d*\])?\??) (?P<name>\w+)(?:\s*=\s*(?P<default>.+))?"
)
_CONSTANTS = {"None": None, "True": True, "False": False}


def parsed(schema: str) -> tuple[str, inspect.Signature, list[str]]:
    """The name before the parentheses ("" if there is none), the signature, and the parameters that are written to.

    Parameters that are tensors, or lists of them, are annotated ``"Tensor"``.

    >>> parsed("scale(Tensor(a!) x, float k=2.0, *, bool twice=False) -> ()")
    ('scale', <Signature (x: 'Tensor', k: 'float' = 2.0, *, twice: 'bool' = False)>, ['x'])

    Raises:
        ValueError: it is no such declaration
    """
    match = re.fullmatch(r"\s*([\w:.]*)\s*\((.*)\)\s*->\s*(.+)", schema, re.DOTALL)
    if match is None:
        raise _unknown(schema, "")
    name, inside, _ = match.groups()
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[inspect.Parameter] = []
    written: list[str] = []
    for text in _split(inside):
        if text == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        part = _PARAMETER.fullmatch(text)
        if part is None:
            raise _unknown(schema, text)
        parameters.append(_parameter(part, kind))
        written += [part["name"]] * ("!" in (part["alias"] or ""))
    try:
        return name, inspect.Signature(parameters), written
    except ValueError as error:
        raise _unknown(schema, str(error)) from None


def _parameter(part: re.Match[str], kind: Any) -> inspect.Parameter:
    default: Any = inspect.Parameter.empty
    if part["default"] is not None:
        default = _value(part["default"].strip())
    annotation = "Tensor" if part["type"].startswith("Tensor") else part["type"]
    return inspect.Parameter(part["name"], kind, default=default, annotation=annotation)


def _value(text: str) -> Any:
    try:
        return _CONSTANTS[text] if text in _CONSTANTS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word: mean, sum, contiguous_format


def _split(inside: str) -> list[str]:
    """The text between commas that are not inside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inside + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(inside[start:i].strip())
            start = i + 1
    return [part for part in parts if part]


def _unknown(schema: str, text: str) -> ArgumentValueError:
    problem = f"{schema!r} is no schema" + (f": {text!r} is not understood" if text else "")
    return ArgumentValueError(message("library.define", problem, hint="'(Tensor x, float k=2.0) -> Tensor'"))
