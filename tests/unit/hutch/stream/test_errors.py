import pickle

import pytest

from hutch.stream.codes import ResponseCode
from hutch.stream.errors import (
    FrameTooLarge,
    MalformedFrame,
    ProtocolError,
    UnexpectedCommand,
    UnknownCommand,
)

ERRORS = [
    (MalformedFrame("string is cut short", 7), 13, "string is cut short at byte 7"),
    (FrameTooLarge(8193, 8192), 14, "a frame of 8193 bytes is above the limit of 8192"),
    (
        UnknownCommand(0x80FF, 1),
        13,
        "no command 0x80ff in version 1 may come from this side",
    ),
    (
        UnexpectedCommand("open", "open"),
        13,
        "open is not allowed while the connection is open",
    ),
]


@pytest.mark.parametrize(("error", "code", "text"), ERRORS)
def test_an_error_says_what_a_person_and_a_close_frame_need(
    error: ProtocolError, code: int, text: str
) -> None:
    assert isinstance(error, ProtocolError)
    assert error.close_code == ResponseCode(code)
    assert str(error) == text


def test_an_error_keeps_its_facts() -> None:
    malformed, large, unknown, unexpected = (pickle.loads(pickle.dumps(e)) for e, _, _ in ERRORS)

    assert (malformed.reason, malformed.position) == ("string is cut short", 7)
    assert (large.size, large.limit) == (8193, 8192)
    assert (unknown.key, unknown.version) == (0x80FF, 1)
    assert (unexpected.name, unexpected.state) == ("open", "open")
