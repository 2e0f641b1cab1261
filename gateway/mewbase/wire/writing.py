"""Frames of the server, as the table has them.

There are many of two kinds, which come from templates: only numbers and documents are put into the
RESPONSE to a request that is done, and into

{"type": "RECEV", "frame": {"subID": i32, "timestamp": i64, "pos": i64, "event": document}}
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import FRAMES, QUERYRESULT, RESPONSE, SendingSide, ValueKind

_SIZE: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_INT32_MIN, _INT32_MAX = -1 << 31, (1 << 31) - 1
_STRING, _DOCUMENT, _BINARY, _BOOLEAN = b"\x02", b"\x03", b"\x05", b"\x08"
_NULL, _INT32, _INT64 = b"\x0a", b"\x10", b"\x12"

Value = bool | int | str | bytes | None
"""The value of a field; bytes are a document."""


def document(*elements: bytes) -> bytes:
    """Return a document of these elements."""
    # One copy in all: a document may have a megabyte.
    return b"".join((_SIZE.pack(5 + sum(map(len, elements))), *elements, b"\x00"))


def element(code: int, name: bytes, value: bytes) -> bytes:
    """Return an element of a type."""
    return b"".join((bytes((code,)), name, b"\x00", value))


def text(name: str, value: str) -> bytes:
    """Return an element that is a string."""
    return b"".join((_STRING, name.encode(), b"\x00", _text(value)[1]))


def wrapped(data: bytes) -> bytes:
    """Return the event {data: binary} for bytes that are no document."""
    return document(_BINARY + b"data\x00" + _SIZE.pack(len(data)) + b"\x00", data)


# Values: the type of an element, and the bytes behind its name


def _text(value: str) -> tuple[bytes, bytes]:
    raw = value.encode("utf-8", "replace")
    return _STRING, _SIZE.pack(len(raw) + 1) + raw + b"\x00"


def _number(value: int) -> tuple[bytes, bytes]:
    if _INT32_MIN <= value <= _INT32_MAX:
        return _INT32, _SIZE.pack(value)
    return _INT64, _LONG.pack(value)


def _document(value: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if value is None else (_DOCUMENT, value)


_WRITE: Final[dict[ValueKind, Callable[[Any], tuple[bytes, bytes]]]] = {
    ValueKind.ANY: lambda value: _text(value) if isinstance(value, str) else _number(value),
    ValueKind.BOOLEAN: lambda value: (_BOOLEAN, bytes((value,))),
    ValueKind.DOCUMENT: _document,
    ValueKind.INT32: _number,
    ValueKind.INT64: _number,  # an int32 where that will do
    ValueKind.TEXT: _text,
}
_LAYOUTS: Final = {
    frame.type: (
        text("type", frame.type) + _DOCUMENT + b"frame\x00",
        {
            field.name: (field.name.encode() + b"\x00", field.kind, _WRITE[field.kind])
            for field in frame.fields
        },
    )
    for frame in FRAMES
    if frame.sender is SendingSide.SERVER
}
"""By the type of a frame the bytes before its fields, and the name and the kind of each."""


def answer(frame_type: str, **values: Value) -> bytes:
    """Return a frame with these fields, in this order. Raises KeyError: the table has no such one.

    None leaves a field out; a document is null then.
    """
    head, fields = _LAYOUTS[frame_type]
    parts: list[bytes] = []
    for name, value in values.items():
        key, kind, write = fields[name]
        if value is not None or kind is ValueKind.DOCUMENT:
            code, raw = write(value)
            parts += (code, key, raw)
    return document(head, document(*parts))


def failure(code: Code, reason: str, *, as_text: bool) -> dict[str, Value]:
    """Return the fields of the answer to a refused request.

    Args:
        code: Which error.
        reason: The same in words.
        as_text: Whether the number is a string, as the page has it, or an int32.
    """
    return {"ok": False, "errCode": str(int(code)) if as_text else code, "errMsg": reason}


def no_result(query: int, code: Code, reason: str, *, as_text: bool) -> bytes:
    """Return the one QUERYRESULT of a query that is refused."""
    failed = failure(code, reason, as_text=as_text)
    return answer(QUERYRESULT, queryID=query, **failed, result=None, last=True)


_DONE: Final = answer(RESPONSE, rID=0, ok=True)
_DONE_HEAD, _DONE_TAIL = (_DONE[: _DONE.index(b"rID\0") + 4], _DONE[_DONE.index(b"rID\0") + 8 :])


def stored(request_id: int) -> bytes:
    """Return the RESPONSE to a request that is done."""
    if _INT32_MIN <= request_id <= _INT32_MAX:
        return _DONE_HEAD + _SIZE.pack(request_id) + _DONE_TAIL
    return answer(RESPONSE, rID=request_id, ok=True)


_EMPTY: Final = document()
_WIDE: Final = 1 << 62  # takes eight bytes
_RECEV: Final = answer("RECEV", subID=0, timestamp=_WIDE, pos=_WIDE, event=_EMPTY)
_AROUND: Final = len(_RECEV) - len(_EMPTY)
_INNER_AT: Final = _RECEV.index(b"frame\0") + 6
_INNER_AROUND: Final = len(_RECEV) - _INNER_AT - 1 - len(_EMPTY)
_HEAD: Final = struct.Struct(f"<i{_INNER_AT - 4}si7si11sq5sq7s")
_BEFORE: Final = (
    _RECEV[4:_INNER_AT],
    b"\x10subID\0",
    b"\x12timestamp\0",
    b"\x12pos\0",
    b"\x03event\0",
)
RECEV_BYTES: Final = _AROUND
"""Bytes of a RECEV around its event."""


def received(subscription: int, timestamp_ms: int, position: int, event: bytes) -> bytes:
    """Return the RECEV of an event."""
    size = len(event)
    before, name_1, name_2, name_3, name_4 = _BEFORE
    head = _HEAD.pack(
        _AROUND + size,
        before,
        _INNER_AROUND + size,
        name_1,
        subscription,
        name_2,
        timestamp_ms,
        name_3,
        position,
        name_4,
    )
    return b"".join((head, event, b"\0\0"))
