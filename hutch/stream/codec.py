"""Frames to messages and back, by the command table of a session.

    frame      | size | key | version | correlation id | fields of the message ...
    bytes      | 4    | 2   | 2       | 4, or 0        |

The size does not count itself. The first bit of the key is set in an answer. Decoding takes a
frame without its size and encoding gives a whole frame. Whatever the bytes, decoding returns a
message or raises ProtocolError.

Source: RabbitMQ stream protocol, Frame Structure.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hutch.stream.commands import (
    BY_NAME,
    CLIENT,
    RESPONSE_BIT,
    SERVER,
    STANDARD,
    Command,
    CommandTable,
    Sender,
)
from hutch.stream.errors import MalformedFrame, UnknownCommand
from hutch.stream.layout import FrameLayout, layout_of
from hutch.stream.messages import Message

if TYPE_CHECKING:
    from typing_extensions import Buffer

SIZE_BYTES: Final = 4
HEAD_BYTES: Final = 4
CORRELATION_ID_BYTES: Final = 4
REASON_BYTES_MAX: Final = 1024
"""A reason names a stream, of at most 255 bytes, and says what is wrong with it."""

_HEAD: Final = struct.Struct(">HH")
_CORRELATION_ID: Final = struct.Struct(">I")
_NO_CODE: Final = object()


class Decoded(NamedTuple):
    """A decoded frame.

    Attributes:
        command: The row of the table.
        version: The version of the command, 1 and up.
        is_response: Whether the key had its response bit.
        correlation_id: None for a command without one.
        message: Of the class that the row gives for the version, or for the answer.
    """

    command: Command
    version: int
    is_response: bool
    correlation_id: int | None
    message: Message


class _Shape(NamedTuple):
    command: Command
    version: int
    is_response: bool
    layout: FrameLayout[Message]


@cache
def _shapes_sent_by(side: Sender, table: CommandTable) -> dict[bytes, _Shape]:
    """Map each head (key and version) that `side` may send to the shape of the rest."""
    other = Sender.BOTH & ~side
    shapes: dict[bytes, _Shape] = {}
    for command in table.commands:
        if side in command.sender:
            for version, request in enumerate(command.requests, start=1):
                head = _HEAD.pack(command.key, version)
                shapes[head] = _Shape(
                    command, version, is_response=False, layout=layout_of(request)
                )
        if other in command.sender and command.reply is not None:
            head = _HEAD.pack(command.key | RESPONSE_BIT, 1)
            shapes[head] = _Shape(command, 1, is_response=True, layout=layout_of(command.reply))
    return shapes


def decode_request(frame: Buffer, table: CommandTable = STANDARD) -> Decoded:
    """Decode a frame that a client sent: a request, or its answer to the server.

    Args:
        frame: The whole frame without its size. It is copied, and may be used again.
        table: That of the session.

    Raises:
        UnknownCommand: No client may send this key in this version.
        MalformedFrame: The bytes don't match the command's layout to the last one.
    """
    return _decode(bytes(frame), _shapes_sent_by(CLIENT, table))


def decode_reply(frame: Buffer, table: CommandTable = STANDARD) -> Decoded:
    """Decode a frame that a server sent: an answer, or a command of its own.

    Args and errors are those of `decode_request`.
    """
    return _decode(bytes(frame), _shapes_sent_by(SERVER, table))


def encode_request(
    command: Command | str, message: Message, *, correlation_id: int | None = None, version: int = 1
) -> bytes:
    """Encode a command that a client starts, with its size.

    Args:
        command: A row of any table, or a name in the standard one.
        message: Of the class that the row gives for the version.
        correlation_id: u32 for a correlated command, else None.
        version: 1 and up.

    Raises:
        ValueError: The arguments don't fit the row, or a value doesn't fit its field.
    """
    return _encode_command(CLIENT, _row(command), message, correlation_id, version)


def encode_command(
    command: Command | str, message: Message, *, correlation_id: int | None = None, version: int = 1
) -> bytes:
    """Encode a command that the server starts, with its size.

    Args and errors are those of `encode_request`.
    """
    return _encode_command(SERVER, _row(command), message, correlation_id, version)


def encode_reply(command: Command | str, correlation_id: int | None, message: Message) -> bytes:
    """Encode an answer of either side, with its size.

    Args:
        command: A row of any table, or a name in the standard one.
        correlation_id: That of the request for a correlated command, else None.
        message: Of the row's reply class.

    Raises:
        ValueError: The arguments don't fit the row, or a value doesn't fit its field.
    """
    row = _row(command)
    if type(message) is not row.reply:
        raise ValueError(f"{row.name} is not answered by a {type(message).__name__}")
    return _encode(row, row.key | RESPONSE_BIT, 1, correlation_id, message)


def refusal_reply(
    command: Command | str, correlation_id: int, code: int, reason: str = ""
) -> bytes:
    """Encode an answer that carries a code, and the reason if it has a field for one.

    Every other field is zero or empty. A reason is one line, and is cut at REASON_BYTES_MAX.

    Raises:
        ValueError: The command has no such answer. Metadata has a code for each stream, and a
            refused Credit names its subscription.
    """
    row = _row(command)
    layout = None if row.reply is None or not row.is_correlated else layout_of(row.reply)
    zeroes = {} if layout is None else {name: wire.zero for name, wire in layout.fields}
    if layout is None or zeroes.pop("code", _NO_CODE) is _NO_CODE:
        raise ValueError(f"{row.name} has no answer that is a refusal")
    if "reason" in zeroes:
        zeroes["reason"] = one_line(reason)
    message = layout.make(code=code, **zeroes)
    return _encode(row, row.key | RESPONSE_BIT, 1, correlation_id, message)


def one_line(reason: str) -> str | None:
    """Return a reason as an answer has it: one line of bounded size, None if there is none."""
    line = " ".join(reason.split()).encode("utf-8", "replace")[:REASON_BYTES_MAX]
    return line.decode("utf-8", "ignore") or None


def _row(command: Command | str) -> Command:
    return BY_NAME[command] if isinstance(command, str) else command


def _decode(frame: bytes, shapes: dict[bytes, _Shape]) -> Decoded:
    shape = shapes.get(frame[:HEAD_BYTES])
    if shape is None:
        if len(frame) < HEAD_BYTES:
            raise MalformedFrame("key and version are cut short", 0)
        raise UnknownCommand(int.from_bytes(frame[:2]), int.from_bytes(frame[2:HEAD_BYTES]))
    command, version, is_response, layout = shape
    if not command.is_correlated:
        return Decoded(command, version, is_response, None, layout.decode(frame, HEAD_BYTES))
    position = HEAD_BYTES + CORRELATION_ID_BYTES
    if len(frame) < position:
        raise MalformedFrame("correlation id is cut short", HEAD_BYTES)
    correlation_id: int = _CORRELATION_ID.unpack_from(frame, HEAD_BYTES)[0]
    message = layout.decode(frame, position)
    return Decoded(command, version, is_response, correlation_id, message)


def _encode_command(
    side: Sender, row: Command, message: Message, correlation_id: int | None, version: int
) -> bytes:
    if side not in row.sender or not 1 <= version <= row.version_max:
        raise ValueError(f"{row.name} in version {version} is not this side's to send")
    if type(message) is not row.requests[version - 1]:
        raise ValueError(f"{row.name} is not a {type(message).__name__}")
    return _encode(row, row.key, version, correlation_id, message)


def _encode(
    row: Command, key: int, version: int, correlation_id: int | None, message: Message
) -> bytes:
    if (correlation_id is not None) is not row.is_correlated:
        raise ValueError(f"{row.name} with correlation id {correlation_id}")
    layout: FrameLayout[Any] = layout_of(type(message))
    frame = bytearray(SIZE_BYTES)
    try:
        frame += _HEAD.pack(key, version)
        if correlation_id is not None:
            frame += _CORRELATION_ID.pack(correlation_id)
        layout.write(message, frame)
    except struct.error as error:
        raise ValueError(f"{message} does not fit its fields: {error}") from error
    frame[:SIZE_BYTES] = (len(frame) - SIZE_BYTES).to_bytes(SIZE_BYTES)
    return bytes(frame)
