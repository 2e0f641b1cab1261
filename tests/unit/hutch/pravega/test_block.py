import pytest

from hutch.pravega.block import append_pieces
from hutch.pravega.errors import WireError
from hutch.pravega.messages import AppendBlockEnd
from tests.golden.pravega_frames import WRITER

WHOLE = b"\0\0\0\0\0\0\0\1a"
"""One event as it is stored."""
PADDING = bytes.fromhex("ffffffff 00000002 0000")
PARTIAL = bytes.fromhex("fffffffe 00000003") + WHOLE[:3]


def end(whole: int, data: bytes = b"", count: int = 1) -> AppendBlockEnd:
    return AppendBlockEnd(WRITER, whole, data, count, 1, 1)


@pytest.mark.parametrize(
    ("block", "ended", "stored"),
    [
        (None, end(0, WHOLE), WHOLE),
        (None, end(-7, WHOLE), WHOLE),
        (None, end(99, b""), b""),
        (WHOLE, end(9), WHOLE),
        (b"", end(0), b""),
        (WHOLE + PADDING, end(9), WHOLE),
        (WHOLE + b"\xff\xff\xff\xff\0\0\0\0", end(9), WHOLE),
        (PADDING, end(0), b""),
        (WHOLE + PARTIAL, end(9, WHOLE[3:], 2), WHOLE + WHOLE),
        (PARTIAL, end(0, WHOLE[3:]), WHOLE),
        (WHOLE + b"\xff\xff\xff\xfe\0\0\0\0", end(9, WHOLE, 2), WHOLE + WHOLE),
    ],
)
def test_a_legal_shape_gives_its_append(
    block: bytes | None, ended: AppendBlockEnd, stored: bytes
) -> None:
    assert b"".join(append_pieces(block, ended)) == stored


def test_the_pieces_of_a_block_are_views_of_it() -> None:
    block = bytearray(WHOLE + PARTIAL)

    whole, partial, rest = append_pieces(block, end(9, WHOLE[3:], 2))
    block[0] = block[-1] = 7

    assert bytes(whole)[0] == bytes(partial)[-1] == 7
    assert bytes(rest) == WHOLE[3:]


@pytest.mark.parametrize(
    ("block", "ended", "words"),
    [
        (None, end(9, WHOLE, 0), "an append of 0 events"),
        (WHOLE, end(9, b"", -1), "an append of -1 events"),
        (WHOLE, end(-1), "-1 bytes of whole events in a block of 9"),
        (WHOLE, end(10), "10 bytes of whole events in a block of 9"),
        (WHOLE, end(9, b"x"), "1 bytes of data behind a block"),
        (b"", end(0, b"x"), "1 bytes of data behind a block"),
        (WHOLE + PADDING, end(9, b"x"), "1 bytes of data behind a block"),
        (WHOLE + PADDING[:7], end(9), "7 bytes behind the whole events are no command"),
        (WHOLE + WHOLE, end(9), "command 0 behind the whole events"),
        (WHOLE + PADDING + b"\0", end(9), "a length of 2 where 3 bytes are left"),
        (WHOLE + PADDING[:-1], end(9), "a length of 2 where 1 bytes are left"),
        (WHOLE + b"\xff\xff\xff\xfe\xff\xff\xff\xff", end(9), "a length of -1 where 0"),
    ],
)
def test_every_other_shape_is_refused(
    block: bytes | None, ended: AppendBlockEnd, words: str
) -> None:
    with pytest.raises(WireError, match=words):
        append_pieces(block, ended)
