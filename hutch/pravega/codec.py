"""Frames to messages and back, by a table of commands.

    frame   | code | length | payload ...
    bytes   | 4    | 4      | length, at most 0xFFFFFF - 8 in today's dialect

Whatever the bytes, decoding returns a message or raises WireError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hutch.pravega.commands import COMMANDS, CommandCode, CommandSender
from hutch.pravega.errors import ListTooLong, WireError
from hutch.pravega.layout import TooLong, WireMessage, layout_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEAD_BYTES: Final = 8
FRAME_BYTES_MAX: Final = 0xFFFFFF
PAYLOAD_BYTES_MAX: Final = FRAME_BYTES_MAX - HEAD_BYTES

HEAD: Final = struct.Struct(">ii")
"""Code and length."""


class DialectCodec:
    """The codec of one dialect.

    Attributes:
        rows: Its table of commands.
        by_code: The rows by their codes.
        by_class: The rows by the classes of their messages.
        payload_bytes_max: Size of the largest payload.
    """

    def __init__(self, rows: Sequence[CommandCode], payload_bytes_max: int) -> None:
        self.rows: Final = rows
        self.by_code: Final = {row.code: row for row in rows}
        self.by_class: Final = {row.message: row for row in rows}
        self.payload_bytes_max: Final = payload_bytes_max

    def frame_bytes(self, buffer: Buffer, position: int, end: int) -> int:
        """Return the size of the frame that begins at `position`, with its head.

        Args:
            buffer: Received bytes.
            position: Where the frame begins in it.
            end: Where the received bytes end in it.

        Returns:
            8 and up; 0 while the head is not complete. The frame itself may not be complete yet.

        Raises:
            WireError: The length is negative or too large.
        """
        if end - position < HEAD_BYTES:
            return 0
        code, length = HEAD.unpack_from(buffer, position)
        if not 0 <= length <= self.payload_bytes_max:
            raise WireError(f"a frame of code {code} has a length of {length}")
        return HEAD_BYTES + int(length)

    def decode(
        self, code: int, payload: Buffer, sender: CommandSender = CommandSender.BOTH
    ) -> WireMessage:
        """Decode a payload.

        Args:
            code: That of the frame's head.
            payload: The bytes behind the head. They are copied, and may be used again.
            sender: The side that sent it; commands of the other side are unknown.

        Returns:
            The message; a TooLong for a request of today's clients with a list that is too long.

        Raises:
            WireError: The code is unknown, or the bytes don't match its layout.
        """
        command = self.by_code.get(code)
        if command is None or not command.sender & sender:
            raise WireError(f"no command {code} may come from this side")
        try:
            return layout_of(command.message).decode(memoryview(payload).cast("B"))
        except ListTooLong as error:
            fields = error.fields
            if not command.sender & CommandSender.CLIENT or "request_id" not in fields:
                raise
            segment = fields.get("segment", fields.get("target", ""))
            return TooLong(fields["request_id"], segment, str(error))  # type: ignore[arg-type]  # by their wire types

    def encode(self, message: WireMessage) -> bytes:
        """Encode a message as a frame, with every field of the newest version.

        Raises:
            ValueError: It is in no row of the table, a value does not fit its field, or the frame
                is too large.
        """
        command = self.by_class.get(type(message))
        if command is None:
            raise ValueError(f"{type(message).__name__} is no command")
        frame = bytearray(HEAD_BYTES)
        layout_of(command.message).encode(message, frame)
        length = len(frame) - HEAD_BYTES
        if length > self.payload_bytes_max:
            most = self.payload_bytes_max
            raise ValueError(f"{command.name} takes {length} bytes, a frame {most}")
        HEAD.pack_into(frame, 0, command.code, length)
        return bytes(frame)


TODAY: Final = DialectCodec(COMMANDS, PAYLOAD_BYTES_MAX)
"""The dialect of today's servers."""

frame_bytes: Final = TODAY.frame_bytes
decode: Final = TODAY.decode
encode: Final = TODAY.encode
