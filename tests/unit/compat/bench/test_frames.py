import struct

import pytest

from compat.bench import frames
from compat.bench.frames import PublishBlock, body_of, ids_of_block, publish_frame


def ids_in(block: PublishBlock, body_bytes: int) -> list[int]:
    """Every publishing id, read frame by frame as a server would."""
    data, found, position = bytes(block.view), [], 0
    while position < len(data):
        size, key, version, _publisher, count = struct.unpack_from(">IHHBI", data, position)
        assert (key, version) == (2, 1)
        at = position + 13
        for _ in range(count):
            number, length = struct.unpack_from(">QI", data, at)
            assert length == body_bytes
            assert data[at + 12 : at + 12 + length] == body_of(body_bytes)
            found.append(number)
            at += 12 + length
        assert at == position + 4 + size
        position = at
    return found


def test_a_publish_frame_is_laid_out_as_the_protocol_says() -> None:
    built = publish_frame(publisher_id=7, publishing_ids=[1, 2], body=b"ab")
    assert built == bytes.fromhex(
        "00000025  0002 0001 07 00000002"
        "0000000000000001 00000002 6162"
        "0000000000000002 00000002 6162"
    )


@pytest.mark.parametrize("per_frame", [1, 100, 1000])
def test_a_stamped_block_carries_the_ids_of_its_sending(per_frame: int) -> None:
    block = PublishBlock(body_bytes=10, messages_per_frame=per_frame)
    for number in (0, 1, 255, 256, 70_000, 3):
        block.stamp(number)
        assert ids_in(block, 10) == list(ids_of_block(number, block.message_count))


def test_a_block_takes_its_publishers_in_turn() -> None:
    block = PublishBlock(body_bytes=3, messages_per_frame=1, publisher_ids=range(5))
    publishers = [block.view[index * block.frame_bytes + 8] for index in range(5)]
    assert publishers == [0, 1, 2, 3, 4]
    assert block.message_count == 5


@pytest.mark.parametrize("per_frame", [1, 100, 1000])
def test_a_block_fits_its_bounds(per_frame: int) -> None:
    block = PublishBlock(body_bytes=0, messages_per_frame=per_frame)
    assert block.message_count <= frames.BLOCK_MESSAGES_MAX
    assert len(block.view) <= frames.BLOCK_BYTES


def test_a_frame_above_the_protocols_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than the protocol's"):
        PublishBlock(body_bytes=1100, messages_per_frame=1000)
