"""Generates messages with Apache Qpid Proton, and what they hold; a line of JSON each.

    python3 tests/golden/amqp/generate.py --seed 1 --count 1500 | xz -9e > messages.jsonl.xz

Run it with a Python that has the package `proton` (Debian: python3-qpid-proton); it needs nothing
of ours. A value is written as [type, value]: the types are AMQP's.
"""

import argparse
import json
import random
import struct
import sys
import uuid
from collections.abc import Callable
from typing import Any, Final

import proton
from proton import Array, Data, Described, Message

Made = tuple[Any, list[Any]]
"""A value as Proton takes it, and as [type, value]."""

_ASCII: Final = "abcxyz-. "
_TEXT: Final = 'abcxyz ü€\U0001f600"\\\n'
_NUMBERS: Final[dict[str, tuple[Callable[[int], Any], int, int]]] = {
    "ubyte": (proton.ubyte, 0, 2**8),
    "ushort": (proton.ushort, 0, 2**16),
    "uint": (proton.uint, 0, 2**32),
    "ulong": (proton.ulong, 0, 2**64),
    "byte": (proton.byte, -(2**7), 2**7),
    "short": (proton.short, -(2**15), 2**15),
    "int": (proton.int32, -(2**31), 2**31),
    "long": (int, -(2**63), 2**63),
    "timestamp": (proton.timestamp, -(2**50), 2**50),
}
_ARRAYS: Final = {
    "ubyte": Data.UBYTE,
    "int": Data.INT,
    "long": Data.LONG,
    "ulong": Data.ULONG,
}
_DEPTH: Final = 4
_LARGE: Final = 0.02
"""Of texts and runs of bytes: too long for the short forms."""


class Values:
    """Generates values of AMQP."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._kinds: dict[str, Callable[[], Made]] = {
            "null": lambda: (None, ["null", None]),
            "boolean": self._boolean,
            "float": self._float,
            "double": self._double,
            "char": self._char,
            "binary": self.binary,
            "string": self._string,
            "symbol": self._symbol,
            "uuid": self._uuid,
        }

    def is_so(self, chance: float = 0.5) -> bool:
        """Toss a coin."""
        return self.random.random() < chance

    def text(self, letters: str = _TEXT) -> str:
        """Generate a text of few letters, or of 300."""
        size = 300 if self.is_so(_LARGE) else self.random.randrange(8)
        return "".join(self.random.choices(letters, k=size))

    def number(self, kind: str) -> Made:
        """Generate a number, often one at an edge."""
        make, low, high = _NUMBERS[kind]
        edges = (0, 1, -1, low, high - 1, self.random.randrange(-128, 256))
        value = self.random.choice((*edges, self.random.randrange(low, high)))
        value = min(max(value, low), high - 1)
        return make(value), [kind, value]

    def _boolean(self) -> Made:
        value = self.is_so()
        return value, ["boolean", value]

    def _double(self) -> Made:
        value = self.random.choice((0.0, -1.5, 1e300, self.random.gauss(0, 1e6)))
        return value, ["double", value]

    def _float(self) -> Made:
        (value,) = struct.unpack(">f", struct.pack(">f", self.random.gauss(0, 1e6)))
        return proton.float32(value), ["float", value]

    def _char(self) -> Made:
        value = self.random.choice(_TEXT)
        return proton.char(value), ["char", value]

    def binary(self) -> Made:
        """Generate bytes: a few, or as many as fit the short form, or one more."""
        value = self.random.randbytes(self.random.choice((255, 256)) if self.is_so(_LARGE) else 3)
        return value, ["binary", value.hex()]

    def _string(self) -> Made:
        value = self.text()
        return value, ["string", value]

    def _symbol(self) -> Made:
        value = self.text(_ASCII)
        return proton.symbol(value), ["symbol", value]

    def _uuid(self) -> Made:
        value = uuid.UUID(bytes=self.random.randbytes(16))
        return value, ["uuid", str(value)]

    def identifier(self) -> Made:
        """Generate a message's id."""
        kind = self.random.choice(("ulong", "uuid", "binary", "string"))
        return self.number(kind) if kind in _NUMBERS else self._kinds[kind]()

    def simple(self) -> Made:
        """Generate a value that holds no others."""
        kind = self.random.choice((*_NUMBERS, *self._kinds))
        return self.number(kind) if kind in _NUMBERS else self._kinds[kind]()

    def value(self, depth: int = 0) -> Made:
        """Generate any value."""
        if depth >= _DEPTH or self.is_so(0.6):
            return self.simple()
        kind = self.random.randrange(8)
        if kind < 3:
            return self.items(depth + 1)
        if kind < 6:
            return self.mapping(depth + 1)
        if kind == 6:
            return self._array()
        made, expected = self.value(depth + 1)
        # The descriptor of a described value is not kept.
        return Described(proton.symbol("a:b"), made), expected

    def _array(self) -> Made:
        kind = self.random.choice(tuple(_ARRAYS))
        pairs = [self.number(kind) for _ in range(self.random.randrange(1, 6))]
        made = Array(proton.UNDESCRIBED, _ARRAYS[kind], *(made for made, _ in pairs))
        return made, ["list", [expected for _, expected in pairs]]

    def items(self, depth: int) -> Made:
        """Generate a list."""
        pairs = [self.value(depth) for _ in range(self.random.randrange(5))]
        return [made for made, _ in pairs], ["list", [expected for _, expected in pairs]]

    def mapping(self, depth: int, *, has_symbols: bool = False, is_simple: bool = False) -> Made:
        """Generate a map."""
        made, expected = {}, []
        for number in range(self.random.randrange(5)):
            key = f"{number}{self.text(_ASCII if has_symbols else _TEXT)}"
            value, shown = self.simple() if is_simple else self.value(depth)
            made[proton.symbol(key) if has_symbols else key] = value
            expected.append([key, shown])
        return made, ["map", expected]


class Messages(Values):
    """Generates messages."""

    def message(self) -> tuple[bytes, dict[str, Any]]:
        """Generate a message: its bytes and what it holds."""
        message = Message()
        expected = {
            "header": self._header(message),
            **self._maps(message),
            **self._properties(message),
            **self._body(message),
        }
        return message.encode(), expected

    def _header(self, message: Message) -> list[object]:
        if self.is_so():
            message.durable = self.is_so()
            message.priority = self.random.randrange(10)
            message.ttl = self.random.randrange(1000)
            message.first_acquirer = self.is_so()
            message.delivery_count = self.random.randrange(300)
        return [
            message.durable,
            message.priority,
            round(message.ttl * 1000),
            message.first_acquirer,
            message.delivery_count,
        ]

    def _maps(self, message: Message) -> dict[str, Any]:
        expected = {}
        for name in ("instructions", "annotations", "properties"):
            is_simple = name == "properties"
            made, shown = self.mapping(1, has_symbols=not is_simple, is_simple=is_simple)
            if made and self.is_so():
                setattr(message, name, made)
                expected[name] = shown
        return expected

    def _properties(self, message: Message) -> dict[str, Any]:
        expected: dict[str, Any] = {}
        if self.is_so():
            message.id, expected["id"] = self.identifier()
            message.correlation_id, expected["correlation_id"] = self.identifier()
        for name in (
            "address",
            "subject",
            "reply_to",
            "content_type",
            "content_encoding",
            "group_id",
            "reply_to_group_id",
        ):
            value = self.text(_ASCII)
            if value and self.is_so(0.3):
                setattr(message, name, value)
                expected[name] = ["string", value]
        return expected

    def _body(self, message: Message) -> dict[str, Any]:
        kind = self.random.choice(("data", "value", "sequence", "none"))
        message.inferred = kind in {"data", "sequence"}
        shown: list[Any] | None = None
        if kind == "data":
            message.body, shown = self.binary()
        elif kind == "sequence":
            message.body, shown = self.items(1)
        elif kind == "value":
            message.body, shown = self.value()
        if message.body is None:
            kind, shown = "none", None
        return {"kind": kind, "body": shown}


def main() -> None:
    """Print messages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    messages = Messages(options.seed)
    for _ in range(options.count):
        encoded, expected = messages.message()
        line = {"bytes": encoded.hex(), **expected}
        sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
