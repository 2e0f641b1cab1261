"""PyPI's client of Pravega, as it is, with byte streams."""

from __future__ import annotations

from typing import Any

Manager = Any  # the client has no types


def test_eleven_bytes_are_written_and_read_back(manager: Manager) -> None:
    assert manager.create_stream("scope", "stream", 1)
    stream = manager.create_byte_stream("scope", "stream")

    assert stream.write(b"hello world") == 11
    stream.flush()
    stream.seek(0, 0)
    data = bytearray(11)

    assert stream.readinto(data) == 11
    assert data == b"hello world"


def test_a_stream_that_is_truncated_begins_there(manager: Manager) -> None:
    manager.create_stream("scope", "stream", 1)
    stream = manager.create_byte_stream("scope", "stream")
    stream.write(b"0123456789")
    stream.flush()

    stream.truncate(4)

    assert (stream.current_head_offset(), stream.current_tail_offset()) == (4, 10)
    stream.seek(4, 0)
    data = bytearray(6)
    assert stream.readinto(data) == 6
    assert data == b"456789"


def test_a_reader_at_the_tail_gets_what_is_written_later(manager: Manager) -> None:
    manager.create_stream("scope", "stream", 1)
    writer = manager.create_byte_stream("scope", "stream")
    reader = manager.create_byte_stream("scope", "stream")
    for part in (b"first", b"again"):
        writer.write(part)
        writer.flush()

        data = bytearray(5)
        assert reader.readinto(data) == 5
        assert bytes(data) == part
