"""Errors for a peer that breaks the protocol.

    ProtocolError           the peer broke the contract: Close with `close_code`, then hang up
    ├── MalformedFrame      its bytes don't match the layout
    ├── FrameTooLarge       its size field is above the current limit
    ├── UnknownCommand      no such key or version, or not the peer's to send
    └── UnexpectedCommand   right bytes, wrong moment

A request that is merely refused is no error of the protocol; a response code answers it.
"""

from typing import ClassVar

from hutch.stream.codes import ResponseCode


class ProtocolError(Exception):
    """Base of all; a Close frame carries `close_code` and its phrase."""

    close_code: ClassVar[ResponseCode] = ResponseCode.UNKNOWN_FRAME


class MalformedFrame(ProtocolError):
    """The bytes of a frame don't match the layout of its command.

    Attributes:
        reason: What is wrong, in a few words.
        position: Byte position of the faulty field in the frame, counted after the size prefix.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.position}"


class FrameTooLarge(ProtocolError):
    """A frame announces more bytes than the connection accepts at the moment."""

    close_code = ResponseCode.FRAME_TOO_LARGE

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return f"a frame of {self.size} bytes is above the limit of {self.limit}"


class UnknownCommand(ProtocolError):
    """No command has this key and version, or it is not one that this side sends.

    Attributes:
        key: The key as it came, with its response bit (0x8000).
        version: The version as it came.
    """

    def __init__(self, key: int, version: int) -> None:
        super().__init__(key, version)
        self.key = key
        self.version = version

    def __str__(self) -> str:
        return f"no command 0x{self.key:04x} in version {self.version} may come from this side"


class UnexpectedCommand(ProtocolError):
    """A well-formed command that the state of the connection does not allow."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(name, state)
        self.name = name
        self.state = state

    def __str__(self) -> str:
        return f"{self.name} is not allowed while the connection is {self.state}"
