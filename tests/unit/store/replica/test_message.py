"""Messages of the log: their bytes, and the chain that they make."""

import dataclasses
import struct
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.replica.message import (
    BEGINNING,
    FORMAT,
    HEAD_BYTES,
    Fence,
    Link,
    Message,
    MessageKind,
    OtherMessageFormat,
    UnreadableMessage,
)

CLUSTER: Final = bytes(range(16))
NUMBERS: Final = st.integers(0, 2**64 - 1)
FENCE: Final = Message(MessageKind.FENCE, CLUSTER, 1, 1, 5, BEGINNING.hash, Fence("one").pack())
FIRST: Final = BEGINNING.after(FENCE.pack(), CLUSTER)[0]
"""Link of a message that begins a term."""


def next_to(link: Link, **values: object) -> bytes:
    """Return the bytes of a message that follows, but for some values."""
    message = Message(
        MessageKind.OPERATIONS, CLUSTER, link.term, link.number + 1, 9, link.hash, b"body"
    )
    return dataclasses.replace(message, **values).pack()  # type: ignore[arg-type]  # any of them


@given(
    st.sampled_from(MessageKind),
    st.binary(min_size=16, max_size=16),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.binary(min_size=16, max_size=16),
    st.binary(max_size=100),
)
def test_a_message_comes_back_as_it_was_packed(  # one of each value
    kind: MessageKind,
    cluster: bytes,
    term: int,
    number: int,
    at_ms: int,
    before: bytes,
    body: bytes,
) -> None:
    message = Message(kind, cluster, term, number, at_ms, before, body)

    assert Message.unpack(message.pack()) == message
    assert len(message.pack()) == HEAD_BYTES + len(body)


@given(st.data())
def test_a_message_with_any_damage_is_unreadable(data: st.DataObject) -> None:
    packed = bytearray(next_to(FIRST))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))

    with pytest.raises(UnreadableMessage):
        Message.unpack(bytes(packed))


def test_a_message_that_is_cut_short_is_unreadable() -> None:
    packed = next_to(FIRST)

    for end in range(len(packed)):
        with pytest.raises(UnreadableMessage):
            Message.unpack(packed[:end])


def test_a_message_of_a_newer_version_says_which_it_needs() -> None:
    packed = struct.pack("<H", FORMAT + 1) + next_to(FIRST)[2:]

    with pytest.raises(OtherMessageFormat, match=f"format {FORMAT + 1}.*reads format {FORMAT}"):
        FIRST.after(packed, CLUSTER)


def test_a_kind_that_is_not_known_is_unreadable() -> None:
    with pytest.raises(UnreadableMessage, match="kind 9 is not known"):
        Message.unpack(next_to(FIRST, kind=9))


def test_messages_follow_each_other() -> None:
    data = next_to(FIRST)

    link, message = FIRST.after(data, CLUSTER)

    assert (link.number, link.term) == (2, 1)
    assert bytes(message.body) == b"body"
    assert link == FIRST.followed_by(data)
    again, _ = link.after(next_to(link), CLUSTER)
    assert again.number == 3


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"cluster": bytes(16)}, "message 2 is of another cluster"),
        ({"number": 3}, "message 3 comes behind 1"),
        ({"number": 1}, "message 1 comes behind 1"),
        ({"before": bytes(16)}, "message 2 follows another than is known here"),
        ({"term": 2}, "message 2 is of another term: 2"),
        ({"term": 0}, "message 2 is of another term: 0"),
        ({"kind": MessageKind.FENCE}, "message 2 is of another term: 1"),
        ({"kind": MessageKind.HAND_OVER, "term": 2}, "message 2 is of another term: 2"),
    ],
)
def test_a_message_that_does_not_follow_is_refused(values: dict[str, object], reason: str) -> None:
    with pytest.raises(UnreadableMessage, match=reason):
        FIRST.after(next_to(FIRST, **values), CLUSTER)


def test_a_fence_begins_the_term_of_its_number() -> None:
    data = next_to(FIRST, kind=MessageKind.FENCE, term=2, body=Fence("two").pack())

    link, message = FIRST.after(data, CLUSTER)

    assert (link.number, link.term) == (2, 2)
    assert Fence.unpack(message.body) == Fence("two")


def test_two_messages_of_one_number_have_different_links() -> None:
    one, _ = FIRST.after(next_to(FIRST, body=b"one"), CLUSTER)
    two, _ = FIRST.after(next_to(FIRST, body=b"two"), CLUSTER)

    assert one != two
    with pytest.raises(UnreadableMessage, match="follows another"):
        one.after(next_to(two), CLUSTER)


@pytest.mark.parametrize("fence", [Fence("one"), Fence("zwö", has_base=True), Fence("")])
def test_a_fence_comes_back_as_it_was_packed(fence: Fence) -> None:
    assert Fence.unpack(fence.pack()) == fence
    assert Fence.unpack(memoryview(fence.pack())) == fence


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe"])
def test_a_fence_that_names_no_member_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableMessage, match="names no member"):
        Fence.unpack(body)
