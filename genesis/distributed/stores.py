"""Keys and values that processes have in common: in the memory of one, in a file, and part of those of another store.

What is done to the values is one of `COMMANDS`, functions of a dictionary; a store says where the dictionary is. Values are
bytes, and nothing of them is ever run.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from genesis.base.errors import ArgumentError, DistributedError, message

try:
    from fcntl import LOCK_EX, flock
except ImportError:  # not on every system: files are then of one process
    flock = None  # type: ignore[assignment]

_PAUSE = 0.005  # seconds between looks for a key
Values = dict[str, bytes]


def _add(values: Values, key: str, amount: int) -> int:
    total = int(values.get(key, b"0")) + amount
    values[key] = str(total).encode()
    return total


def _compare_set(values: Values, key: str, expected: bytes, desired: bytes) -> bytes:
    known = values.get(key)
    if known == expected or (known is None and not expected):
        values[key] = desired
    return values.get(key, expected)


def _set(values: Values, key: str, value: bytes) -> None:
    values[key] = value


def _append(values: Values, key: str, value: bytes) -> None:
    values[key] = values.get(key, b"") + value


LOOKS: dict[str, Callable[..., Any]] = {
    "get": lambda values, key: values.get(key),
    "check": lambda values, *keys: all([key in values for key in keys]),
    "num_keys": len,
}
COMMANDS: dict[str, Callable[..., Any]] = LOOKS | {
    "set": _set, "append": _append, "add": _add, "compare_set": _compare_set,
    "delete_key": lambda values, key: values.pop(key, None) is not None,
}  # fmt: skip


def said(value: Any) -> bytes:
    """A command, or its answer, as a line of text."""
    parts = [[each.decode("latin-1")] if isinstance(each, bytes) else each for each in value]
    return json.dumps(parts).encode() + b"\n"


def heard(line: bytes) -> list[Any]:
    """What `said` made a line of."""
    return [each[0].encode("latin-1") if isinstance(each, list) else each for each in json.loads(line)]


class Store:
    """What all stores can do."""

    timeout = timedelta(minutes=5)

    def _do(self, command: str, *args: Any) -> Any:
        raise NotImplementedError("a store says where its values are")

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value."""
        self._do("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for.

        Raises:
            RuntimeError: nobody set it in time
        """
        self.wait([key])
        value = self._do("get", key)
        return self.get(key) if value is None else value  # it may have been deleted meanwhile

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key has, 0 at first; the sum."""
        return int(self._do("add", key, int(amount)))

    def append(self, key: str, value: str | bytes) -> None:
        """Put something behind the value of a key."""
        self._do("append", key, _bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Give a key a value if it has the one that is expected, or none and ``""`` is; the value that it has then."""
        return bytes(self._do("compare_set", key, _bytes(expected_value), _bytes(desired_value)))

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether there was one."""
        return bool(self._do("delete_key", key))

    def num_keys(self) -> int:
        """How many keys there are, with those by which processes meet."""
        return int(self._do("num_keys"))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys have values."""
        return bool(self._do("check", *keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until all of these keys have values.

        Raises:
            RuntimeError: they have not, in time
        """
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        end = time.monotonic() + seconds
        while not self.check(keys):
            if time.monotonic() > end:
                absent = ", ".join([key for key in keys if not self.check([key])])
                text = f"waited {seconds:.3g} s, and nobody set {absent}"
                raise DistributedError(message(f"{type(self).__name__}.wait", text, hint="a longer timeout"))
            time.sleep(_PAUSE)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give several keys values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, which are waited for."""
        return [self.get(key) for key in keys]

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait."""
        self.timeout = timeout

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are there."""
        return True


class HashStore(Store):
    """A store in the memory of this process, for its threads.

    >>> store = HashStore()
    >>> store.set("a", "1"); store.add("a", 4), store.get("a"), store.compare_set("a", "6", "7"), store.num_keys()
    (5, b'5', b'5', 1)
    """

    def __init__(self) -> None:
        self._values: Values = {}
        self._lock = threading.Lock()

    def _do(self, command: str, *args: Any) -> Any:
        with self._lock:
            return COMMANDS[command](self._values, *args)


class FileStore(Store):
    """A store in a file that all processes see: a line for each change. The file stays.

    Args:
        file_name: the file, which is made if there is none
        world_size: accepted for PyTorch's sake
    """

    def __init__(self, file_name: Any, world_size: int = -1) -> None:
        self.path = os.fspath(file_name)
        self._values: Values = {}
        self._read = 0  # bytes whose changes were made
        self._lock = threading.Lock()

    def _do(self, command: str, *args: Any) -> Any:
        if command in LOOKS and not os.path.exists(self.path):
            return COMMANDS[command]({}, *args)
        with self._lock, self._opened() as file:
            if os.fstat(file.fileno()).st_size < self._read:  # it was taken away, and made anew
                self._values, self._read = {}, 0
            file.seek(self._read)
            for line in file.readlines():
                if not line.endswith(b"\n"):  # of a process that was killed
                    file.truncate(self._read)
                    break
                name, *given = heard(line)
                COMMANDS[name](self._values, *given)
                self._read += len(line)
            if command not in LOOKS:
                file.seek(self._read)
                self._read += file.write(said((command, *args)))
            return COMMANDS[command](self._values, *args)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
            if flock is not None:
                flock(file, LOCK_EX)
            yield file


class PrefixStore(Store):
    """The keys of another store that begin with a prefix.

    >>> whole = HashStore()
    >>> PrefixStore("job", whole).set("a", "1"); whole.get("job/a")
    b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store, self.timeout = prefix, store, store.timeout

    def _do(self, command: str, *args: Any) -> Any:
        several = len(args) if command == "check" else min(1, len(args))
        keys = [f"{self.prefix}/{key}" for key in args[:several]]
        return self.underlying_store._do(command, *keys, *args[several:])


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ArgumentError(message("Store", f"a value is {type(value).__name__}, expected str or bytes"))
    return bytes(value)
