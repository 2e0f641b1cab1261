"""Answers in words, without what two servers may say differently.

Left out: text for people, times, the marks of iterations, and the hint that a read is at the tail.
Versions of keys, lengths of tables and positions in them are numbered as they first appear, since a
table may be stored in any form. A message to send may name such a value by its number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final
from uuid import UUID

from compat.pravega.case import CONTINUATION, TAG, TRANSIENT, Kind, remembered
from hutch.pravega.error_messages import SegmentIsTruncated
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import ABSENT, DataAppended
from hutch.pravega.table_messages import (
    TableEntriesDeltaRead,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeysRead,
    TableSegmentInfo,
)
from hutch.pravega.wire_types import NO_KEY, KeyAndValue, TableKey

HIDDEN: Final = frozenset({"stack_trace", "message", "last_modified", "at_tail"})
SHOWN_BYTES: Final = 40
INVENTED: Final = "#transient."
TABLES: Final = "/_tables/"
NUMBERED: Final[dict[tuple[type[WireMessage], str], Kind]] = {
    (TableSegmentInfo, "length"): Kind.LENGTH,
    (SegmentIsTruncated, "start_offset"): Kind.LENGTH,  # of a table
    (TableEntriesDeltaRead, "last_position"): Kind.POSITION,
    (TableEntriesUpdated, "versions"): Kind.VERSION,
}


class Memory:
    """Values of earlier answers in one play.

    Args:
        tag: Stands in names in place of `TAG`.
    """

    def __init__(self, tag: str) -> None:
        self.tag: Final = tag
        self.transient = ""
        self.continuation = b""
        self._seen: dict[Kind, list[int]] = {kind: [] for kind in Kind}

    def numbered(self, kind: Kind, value: int) -> str:
        """Return a value's number, a new one for a new value."""
        seen = self._seen[kind]
        if value not in seen:
            seen.append(value)
        return f"{kind.name.lower()} {seen.index(value) + 1}"

    def filled(self, value: object) -> object:
        """Return a message, or a part of one, with values in place of what stands for them."""
        if isinstance(value, WireMessage):
            names = [field.name for field in fields(value)]  # type: ignore[arg-type]
            return replace(  # type: ignore[type-var]
                value, **{name: self.filled(getattr(value, name)) for name in names}
            )
        if isinstance(value, TableKey):
            return value._replace(version=self._value_of(value.version))
        if isinstance(value, tuple):
            parts: Iterator[Any] = map(self.filled, value)
            return KeyAndValue(*parts) if isinstance(value, KeyAndValue) else tuple(parts)
        if isinstance(value, str):
            return value.replace(TRANSIENT, self.transient).replace(TAG, self.tag)
        if isinstance(value, bytes):
            return self.continuation if value == CONTINUATION else value
        return self._value_of(value) if type(value) is int else value

    def _value_of(self, value: int) -> int:
        if (found := remembered(value)) is None:
            return value
        kind, number = found
        seen = self._seen[kind]
        # A server that never gave such a value gets one that it cannot have given.
        return seen[number - 1] if number <= len(seen) else value

    def words(self, message: WireMessage) -> str:
        """Return what is compared of an answer."""
        if isinstance(message, TableKeysRead | TableEntriesRead) and message.continuation:
            self.continuation = message.continuation
        if isinstance(message, TableEntriesDeltaRead):  # has no promised order
            message = replace(message, entries=tuple(sorted(message.entries, key=_key_of)))
        return " ".join([type(message).__name__, *self._parts(message)])

    def _parts(self, message: WireMessage) -> Iterator[str]:
        for field in fields(message):  # type: ignore[arg-type]
            if field.name not in HIDDEN:
                value = getattr(message, field.name)
                yield f"{field.name}={self._part(message, field.name, value)}"

    def _part(self, message: WireMessage, name: str, value: object) -> str:
        if name == "continuation":
            return "more" if value else "none"
        kind = NUMBERED.get((type(message), name))
        if kind is None or (isinstance(message, SegmentIsTruncated) and not _is_of_table(message)):
            return self.words_of(value)
        if isinstance(value, tuple):
            return _listed(self.numbered(kind, one) for one in value)
        assert isinstance(value, int)
        return self.numbered(kind, value)

    def words_of(self, value: object) -> str:
        """Return what is compared of a value in an answer."""
        if isinstance(value, TableKey):
            return f"{shown(value.key)}@{self._version(value.version)}"
        if isinstance(value, KeyAndValue):
            return f"{self.words_of(value.key)}={shown(value.value)}"
        if isinstance(value, WireMessage):
            return _listed(self._parts(value))
        if isinstance(value, tuple):
            return _listed(map(self.words_of, value))
        if isinstance(value, str):
            return self._name(value)
        return shown(value) if isinstance(value, bytes) else str(value)

    def _version(self, version: int) -> str:
        if version == NO_KEY:
            return "no key"
        return "any" if version == ABSENT else self.numbered(Kind.VERSION, version)

    def _name(self, name: str) -> str:
        if INVENTED in name:
            self.transient = name
            name = name.partition(INVENTED)[0] + INVENTED + "…"
        return name.replace(self.tag, "~")


def merged(messages: list[WireMessage]) -> list[WireMessage]:
    """Return messages with one acknowledgement of each writer, in the place of the last one."""
    first: dict[UUID, int] = {}
    last: dict[UUID, WireMessage] = {}
    for message in messages:
        if isinstance(message, DataAppended):
            first.setdefault(message.writer_id, message.previous_event_number)
            last[message.writer_id] = message
    return [
        replace(message, previous_event_number=first[message.writer_id])
        if isinstance(message, DataAppended)
        else message
        for message in messages
        if not isinstance(message, DataAppended) or message is last[message.writer_id]
    ]


def shown(data: bytes) -> str:
    """Return bytes in a few words."""
    if len(data) <= SHOWN_BYTES:
        return repr(data)[1:]
    return f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:12]}"


def _is_of_table(refusal: SegmentIsTruncated) -> bool:
    return TABLES in refusal.segment


def _key_of(entry: KeyAndValue) -> bytes:
    return entry.key.key


def _listed(parts: Iterator[str]) -> str:
    return f"[{', '.join(parts)}]"
