"""States of groups of readers as Pravega's Java client writes them: made here, and recorded."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

RECORDED: Final = Path(__file__).parent / "unit/gateway/pravega/controller/readers/java-0.13.0.txt"
"""Words and bytes of the client: `python -m compat.pravega.java.groups FILE` writes such a file."""
ONE, TWO = "scope/one/0.#epoch.0", "scope/one/1.#epoch.0"

Offsets = Mapping[str, int]


class Scene(NamedTuple):
    """One scene of a group: the answers of the client, and its segment then.

    Attributes:
        unread: Unread bytes, or the name of an exception.
        start: First position of the segment.
        mark: Position of the newest whole state, None if there is no attribute.
        length: Length of the segment.
    """

    name: str
    group: str
    members: list[str]
    unread: str
    checkpoint: dict[str, int]
    positions: dict[str, int]
    ends: dict[str, int]
    start: int
    mark: int | None
    length: int


def recorded() -> tuple[list[Scene], dict[str, bytes]]:
    """Return the scenes, and all bytes that the segment of each group got."""
    scenes, data = [], dict[str, bytearray]()
    for line in RECORDED.read_text().splitlines():
        name, group, *fields = line.split(" ")
        if name == "bytes":
            data.setdefault(group, bytearray()).extend(bytes.fromhex(fields[0]))
            continue
        values = dict(each.split("=", 1) for each in fields)
        checkpoint, positions, ends = (
            _offsets(values[each]) for each in ("checkpoint", "positions", "ends")
        )
        scene = Scene(
            name=name,
            group=group,
            members=[each for each in values["members"].split(",") if each],
            unread=values["unread"],
            checkpoint=checkpoint,
            positions=positions,
            ends=ends,
            start=int(values["start"]),
            mark=None if values["mark"] == "none" else int(values["mark"]),
            length=int(values["length"]),
        )
        scenes.append(scene)
    return scenes, {group: bytes(each) for group, each in data.items()}


def _offsets(words: str) -> dict[str, int]:
    pairs = (each.rsplit(":", 1) for each in words.split(",") if each)
    return {segment: int(offset) for segment, offset in pairs}


# Values


def count(number: int) -> bytes:
    """Return a number of entries."""
    if number < 1 << 7:
        return bytes((number,))
    if number < 1 << 14:
        return struct.pack(">H", number | 0x8000)
    return struct.pack(">I", number | 0xC0000000)


def text(words: str) -> bytes:
    data = words.encode()
    return struct.pack(">H", len(data)) + data


def long(number: int) -> bytes:
    return struct.pack(">q", number)


def listed(items: Sequence[bytes]) -> bytes:
    return count(len(items)) + b"".join(items)


def mapped(entries: Mapping[str, bytes]) -> bytes:
    return listed([text(name) + value for name, value in entries.items()])


def offsets(given: Offsets) -> bytes:
    return mapped({segment: long(offset) for segment, offset in given.items()})


def packed(*revisions: bytes, version: int = 0) -> bytes:
    """Return an object with its revisions."""
    parts = (
        bytes((number,)) + struct.pack(">i", len(data)) + data
        for number, data in enumerate(revisions)
    )
    return bytes((version, len(revisions))) + b"".join(parts)


def array(data: bytes) -> bytes:
    return count(len(data)) + data


# States and changes


def begun(unassigned: Offsets, ends: Offsets | None = None) -> bytes:
    """Return the state with which a group begins, as type and contents."""
    return b"\0" + packed(array(b"config") + offsets(unassigned) + offsets(ends or {}), b"later")


def compacted(
    assigned: Mapping[str, Offsets],
    unassigned: Offsets,
    *,
    last: Offsets | None = None,
    future: Mapping[str, Sequence[int]] | None = None,
    checkpoints: Mapping[str, tuple[Sequence[str], Offsets]] | None = None,
) -> bytes:
    """Return a state that was written down whole; `checkpoints` have readers that they wait for."""
    known = checkpoints or {}
    own = (
        listed([text(each) for each in known])
        + mapped({each: listed([text(one) for one in some[0]]) for each, some in known.items()})
        + mapped({each: offsets(some[1]) for each, some in known.items()})
        + offsets(last or {})
    )
    numbers = {each: listed([long(one) for one in some]) for each, some in (future or {}).items()}
    body = (
        array(b"config")
        + array(b"\0" + packed(own, b"\1"))
        + offsets({"distance": 7})
        + mapped(numbers)
        + mapped({reader: offsets(each) for reader, each in assigned.items()})
        + offsets(unassigned)
        + offsets({})
    )
    return b"\1" + packed(body)


def change(kind: int, *fields: str | int | bytes) -> bytes:
    """Return a change, as type and contents; its fields are texts, longs and bytes."""
    parts = [
        text(each) if isinstance(each, str) else long(each) if isinstance(each, int) else each
        for each in fields
    ]
    return bytes((kind,)) + packed(b"".join(parts))


def whole(state: bytes) -> bytes:
    """Return an event with a whole state."""
    return struct.pack(">i", 1) + b"\0" + state


def changes(*some: bytes) -> bytes:
    """Return an event with changes."""
    parts = (struct.pack(">i", 1 + len(each)) + b"\0" + each for each in some)
    return struct.pack(">i", 2) + b"".join(parts)


def framed(*events: bytes) -> bytes:
    """Return events as they lie in a segment."""
    return b"".join(struct.pack(">ii", 0, len(each)) + each for each in events)


def add(reader: str) -> bytes:
    return change(2, reader)


def remove(reader: str, at: Offsets) -> bytes:
    return change(3, reader, offsets(at))


def release(reader: str, segment: str, offset: int) -> bytes:
    return change(4, reader, segment, offset)


def acquire(reader: str, segment: str) -> bytes:
    return change(5, reader, segment)


def complete(reader: str, segment: str, followers: Mapping[str, Sequence[int]]) -> bytes:
    numbers = {each: listed([long(one) for one in some]) for each, some in followers.items()}
    return change(7, reader, segment, mapped(numbers))


def reach(checkpoint: str, reader: str, at: Offsets) -> bytes:
    return change(8, checkpoint, reader, offsets(at))


def begin(checkpoint: str) -> bytes:
    return change(9, checkpoint)


def clear(checkpoint: str) -> bytes:
    return change(10, checkpoint)


CANCEL: Final = change(13)
LEFT_OUT: Final = (change(6, "reader", 5), change(11, b"\1"), change(12, b"\1"))
"""Changes that tell nothing of members and positions."""
