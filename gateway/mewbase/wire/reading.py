"""Frames of clients: their size, their type, and their fields as values of Python."""

import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.mewbase.wire.errors import BadRequest, UnreadableFrame
from gateway.mewbase.wire.frames import REQUESTS, FrameType, ValueKind
from gateway.mewbase.wire.kernel import documents

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest frame, in bytes; a client that sends a larger one is cut off."""
VALUE_BYTES_MAX: Final = 1024 * 1024
"""Largest document or string of a frame that is looked into: no field takes a larger one."""

_SIZE: Final = struct.Struct("<i")
_SMALLEST: Final = 5
_TOO_LONG: Final = object()
_DOUBLE, _STRING, _DOCUMENT, _NULL, _INT32, _INT64 = 0x01, 0x02, 0x03, 0x0A, 0x10, 0x12
_INT32_AT: Final = struct.Struct("<i").unpack_from
_INT64_AT: Final = struct.Struct("<q").unpack_from
_DOUBLE_AT: Final = struct.Struct("<d").unpack_from
_INT32_RANGE: Final = range(-(1 << 31), 1 << 31)
_INT64_RANGE: Final = range(-(1 << 63), 1 << 63)

Element: TypeAlias = tuple[int, int, int]
"""Type, start and end of a value."""


@dataclass(frozen=True, slots=True)
class OversizedFrame:
    """A document above `VALUE_BYTES_MAX`: nothing is known of it but how many bytes it has."""

    size: int

    def __len__(self) -> int:
        return self.size


class Request(NamedTuple):
    """A frame of a client.

    Attributes:
        type: As it came, but for a long one's end.
        frame: Its row of the table; None if there is none.
        values: Its fields, by name; None for one that is absent or null. A document is its bytes,
            or `OversizedFrame`.
        names: Those of all that was in it, also of what is null.
    """

    type: str
    frame: FrameType | None
    values: Mapping[str, Any]
    names: Collection[bytes]

    @property
    def request_id(self) -> int | None:
        """The request that it names; None if it names none."""
        value: int | None = self.values.get("rID")
        return value


def frame_bytes(buffer: bytearray, position: int, end: int, limit: int) -> int:
    """Return the size of the frame at `position`, 0 while that is not there.

    Raises UnreadableFrame: No frame is that small, or it is above `limit`.
    """
    if end - position < _SIZE.size:
        return 0
    (size,) = _SIZE.unpack_from(buffer, position)
    if size < _SMALLEST:
        raise UnreadableFrame(f"a frame says that it has {size} bytes")
    if size > limit:
        raise UnreadableFrame(f"a frame has {size} bytes, and {limit} are the most")
    return int(size)


def read(buffer: bytearray, start: int, end: int) -> Request:
    """Read the whole frame in [start, end).

    Raises:
        UnreadableFrame: It is no BSON document, or no frame.
        BadRequest: A field is missing, or is not what it has to be.
    """
    found = documents.frame(buffer, start, end, VALUE_BYTES_MAX)
    if found is None:
        raise UnreadableFrame("a frame is no BSON document, or has more than 1,000 fields")
    kind, elements = found
    if kind is None or elements is None:
        raise UnreadableFrame("a frame has no `type` or no `frame`")
    frame = REQUESTS.get(kind)
    if frame is None:
        request_id = _number(buffer, elements.get(b"rID"), _INT64_RANGE)
        return Request(kind.decode("utf-8", "replace"), None, {"rID": request_id}, elements)
    return Request(frame.type, frame, _values(buffer, frame, elements), elements)


def _values(
    buffer: bytearray, frame: FrameType, elements: Mapping[bytes, Element]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    wrong = ""
    for name, raw, read_value, is_mandatory in _READERS[frame.type]:
        element = elements.get(raw)
        if element is None or element[0] == _NULL:
            values[name] = None
            if is_mandatory:
                wrong = wrong or f"{name} is missing"
            continue
        value = values[name] = read_value(buffer, element)
        if value is None:
            wrong = wrong or f"{name} is of the wrong type"
        elif value is _TOO_LONG:
            wrong = wrong or f"{name} has {VALUE_BYTES_MAX} bytes or more"
    if wrong:
        raise BadRequest(
            f"{frame.type}: {wrong}",
            frame_type=frame.type,
            request_id=values.get("rID"),
            query_id=values.get("queryID"),
            names=elements,
        )
    return values


def _text(buffer: bytearray, element: Element) -> str | object | None:
    code, start, end = element
    if code != _STRING:
        return None
    start += _SIZE.size
    return _TOO_LONG if end - start > VALUE_BYTES_MAX else buffer[start : end - 1].decode()


def _document(buffer: bytearray, element: Element) -> bytes | OversizedFrame | None:
    code, start, end = element
    if code != _DOCUMENT:
        return None
    if end - start > VALUE_BYTES_MAX:
        return OversizedFrame(end - start)
    return bytes(memoryview(buffer)[start:end])


def _number(buffer: bytearray, element: Element | None, within: range) -> int | None:
    if element is None:
        return None
    code, start, _ = element
    value: int
    if code == _INT32:
        (value,) = _INT32_AT(buffer, start)
    elif code == _INT64:
        (value,) = _INT64_AT(buffer, start)
    elif code == _DOUBLE:
        (double,) = _DOUBLE_AT(buffer, start)
        if not double.is_integer():
            return None
        value = int(double)
    else:
        return None
    return value if value in within else None


def _int32(buffer: bytearray, element: Element) -> int | None:
    if element[0] == _INT32:  # what clients send
        value: int = _INT32_AT(buffer, element[1])[0]
        return value
    return _number(buffer, element, _INT32_RANGE)


def _int64(buffer: bytearray, element: Element) -> int | None:
    if element[0] == _INT32:  # as above
        value: int = _INT32_AT(buffer, element[1])[0]
        return value
    return _number(buffer, element, _INT64_RANGE)


_READ: Final[dict[ValueKind, Callable[[bytearray, Element], object]]] = {
    ValueKind.DOCUMENT: _document,
    ValueKind.INT32: _int32,
    ValueKind.INT64: _int64,
    ValueKind.TEXT: _text,
}
_READERS: Final = {
    frame.type: tuple(
        (field.name, field.name.encode(), _READ[field.kind], field.is_mandatory)
        for field in frame.fields
        if field.kind is not ValueKind.ANY  # not looked at
    )
    for frame in REQUESTS.values()
}
