"""Pickles that hold nothing but plain values and arrays of bytes, read without running anything.

A pickle is a program for a small machine whose instructions may call whatever function it names. CIFAR-10's original
files are such programs, though all they need is dicts, lists, numbers, text and numpy's arrays. Here their instructions
are followed one by one with `pickletools.genops`, which only takes them apart. A name is never looked up and nothing is
called: the five names that arrays are made of are known by sight, and any other name or instruction is refused.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from teeter.errors import InputError

__all__ = ["read_plain_pickle"]


class _Refused(Exception):
    """What is in the file is not plain data."""


class _Name(str):
    """A function or class that the pickle names; for us a word, and different from a text of the same letters."""


class _Made(list):
    """What the pickle would have made by a call: the name, the arguments and, later, the state."""


_MARK = object()
_DIMENSIONS = 8  # of an array; batches have two
_ARRAY = {f"numpy.{core}.multiarray _reconstruct" for core in ("core", "_core")}
_BUFFER = {f"numpy.{core}.numeric _frombuffer" for core in ("core", "_core")}  # since pickle protocol 5
_KNOWN = {*_ARRAY, *_BUFFER, "numpy ndarray", "numpy dtype", "_codecs encode"}  # the last makes bytes of text

_VALUES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS_AND_TEXTS = (
    ("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT")
    + ("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
    + ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8")
)
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def read_plain_pickle(path: Path | str) -> Any:
    """The value in a pickle file of plain values and uint8 arrays.

    >>> import pickle, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "batch"
    >>> _ = path.write_bytes(pickle.dumps({"data": np.array([[1, 2]], dtype=np.uint8), "labels": [7]}, protocol=2))
    >>> read_plain_pickle(path)
    {'data': array([[1, 2]], dtype=uint8), 'labels': [7]}
    """
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    try:
        return _Finisher().value(_Machine().run(content))
    except _Refused as reason:
        raise InputError(
            f"{path} is refused and nothing of it was run: {reason}. Such a file could do anything; "
            f"take it anew from where it came, or the version without pickles"
        ) from None
    except Exception as problem:  # a damaged file can ask its machine for anything
        raise InputError(f"{path} is damaged or cut short ({type(problem).__name__}: {problem})") from None


class _Machine:
    """The stack and the memory of a pickle, and the instructions that data needs."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        actions: dict[str, Callable[[Any], None]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }
        for code, argument, _ in pickletools.genops(content):
            if code.name in _NUMBERS_AND_TEXTS:
                self.stack.append(argument)
            elif code.name in _VALUES:
                self.stack.append(_VALUES[code.name])
            elif code.name in _TUPLES:
                self.stack.append(self.last(_TUPLES[code.name]))
            elif code.name in actions:
                actions[code.name](argument)
            elif code.name not in ("PROTO", "FRAME", "STOP"):
                raise _Refused(f"the instruction {code.name} is more than plain data needs")
        (value,) = self.stack
        return value

    def last(self, count: int) -> tuple[Any, ...]:
        """The last so many of the stack, taken from it."""
        taken = tuple(self.stack.pop() for _ in range(count))
        return taken[::-1]

    def since_mark(self) -> list[Any]:
        taken: list[Any] = []
        while (value := self.stack.pop()) is not _MARK:
            taken.append(value)
        return taken[::-1]

    def do_MARK(self, _: Any) -> None:
        self.stack.append(_MARK)

    def do_EMPTY_DICT(self, _: Any) -> None:
        self.stack.append({})

    def do_EMPTY_LIST(self, _: Any) -> None:
        self.stack.append([])

    def do_EMPTY_TUPLE(self, _: Any) -> None:
        self.stack.append(())

    def do_TUPLE(self, _: Any) -> None:
        self.stack.append(tuple(self.since_mark()))

    def do_LIST(self, _: Any) -> None:
        self.stack.append(self.since_mark())

    def do_DICT(self, _: Any) -> None:
        self.stack.append(_pairs(self.since_mark()))

    def do_APPEND(self, _: Any) -> None:
        (value,) = self.last(1)
        self.container(list).append(value)

    def do_APPENDS(self, _: Any) -> None:
        values = self.since_mark()
        self.container(list).extend(values)

    def do_SETITEM(self, _: Any) -> None:
        pair = list(self.last(2))
        self.container(dict).update(_pairs(pair))

    def do_SETITEMS(self, _: Any) -> None:
        pairs = self.since_mark()
        self.container(dict).update(_pairs(pairs))

    def container(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise _Refused(f"it fills a {type(self.stack[-1]).__name__} with what does not go into it")
        return self.stack[-1]

    def do_PUT(self, where: Any) -> None:
        self.memo[int(where)] = self.stack[-1]

    do_BINPUT = do_LONG_BINPUT = do_PUT

    def do_MEMOIZE(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def do_GET(self, where: Any) -> None:
        self.stack.append(self.memo[int(where)])

    do_BINGET = do_LONG_BINGET = do_GET

    def do_GLOBAL(self, name: Any) -> None:
        if name not in _KNOWN:
            raise _Refused(f"it names {name.replace(' ', '.')}, which it would have run or made")
        self.stack.append(_Name(name))

    def do_STACK_GLOBAL(self, _: Any) -> None:
        module, name = self.last(2)
        self.do_GLOBAL(f"{module} {name}")

    def do_REDUCE(self, _: Any) -> None:
        name, arguments = self.last(2)
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            raise _Refused("it calls what is no function of numpy's")
        self.stack.append(_Made([name, arguments]))

    def do_BUILD(self, _: Any) -> None:
        (state,) = self.last(1)
        self.container(_Made).append(state)


def _pairs(keys_and_values: list[Any]) -> dict[Any, Any]:
    """A dict by texts or bytes: a key of nested tuples could take any time to hash."""
    pairs = list(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))
    for key, _ in pairs:
        if type(key) not in (str, bytes):
            raise _Refused(f"a dict has a key that is no text but a {type(key).__name__}")
    return dict(pairs)


class _Finisher:
    """Arrays in place of what would have made them.

    A pickle may point at one value from many places, and nest that: a hundred bytes can describe a value with more
    parts than there is memory. Each is finished once, and pointed at as often as it was, so that the work is never more
    than a few times the file.
    """

    def __init__(self) -> None:
        self.done: dict[int, Any] = {}
        self.kept: list[Any] = []  # a number of `done` is its value's as long as that lives

    def value(self, value: Any) -> Any:
        if not isinstance(value, dict | list | tuple):
            if isinstance(value, _Name):
                raise _Refused(f"{value.replace(' ', '.')} stands where a value should")
            return value
        if id(value) not in self.done:
            self.done[id(value)] = self.finished(value)
            self.kept.append(value)
        return self.done[id(value)]

    def finished(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.value(part) for key, part in value.items()}
        if isinstance(value, _Made):
            return self.as_array(value) if value[0] in {*_ARRAY, *_BUFFER} else self.as_bytes(value)
        return type(value)([self.value(part) for part in value])

    def as_array(self, made: _Made) -> np.ndarray[Any, Any]:
        if made[0] in _ARRAY:
            _version, shape, kind, by_columns, content = made[2]
            order = "F" if by_columns else "C"
        else:
            content, kind, shape, order = made[1]
        if not isinstance(kind, _Made) or kind[0] != "numpy dtype" or kind[1][0] not in ("u1", "|u1"):
            raise _Refused("it holds an array of something else than bytes")
        data = self.as_bytes(content)
        if len(shape) > _DIMENSIONS or not all(type(size) is int and 0 <= size <= len(data) for size in shape):
            raise ValueError(f"an array whose shape is not that of {len(data)} bytes")
        if math.prod(shape) != len(data):
            raise ValueError(f"an array of shape {shape} in {len(data)} bytes")
        return np.frombuffer(data, dtype=np.uint8).reshape(shape, order=order)

    def as_bytes(self, content: Any) -> bytes:
        """Bytes, however a pickle writes them: as such, as Python 2's text, or as text to encode."""
        if isinstance(content, _Made) and content[0] == "_codecs encode" and content[1][1:] == ("latin1",):
            content = content[1][0]
        if isinstance(content, bytes):
            return content
        if type(content) is not str and not isinstance(content, bytearray):
            raise _Refused(f"it makes bytes of a {type(content).__name__}")
        if id(content) not in self.done:
            self.done[id(content)] = content.encode("latin1") if isinstance(content, str) else bytes(content)
            self.kept.append(content)
        return self.done[id(content)]
