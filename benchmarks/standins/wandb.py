"""Stands for wandb, which programs tell what they do: it listens and keeps nothing."""

from __future__ import annotations

from typing import Any


class Listener:
    """Anything that a program asks for, calls or sets."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __call__(self, *args: Any, **options: Any) -> Listener:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None: ...


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Listener()
