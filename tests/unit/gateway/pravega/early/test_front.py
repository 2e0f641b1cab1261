"""Frames over a real socket, and what the server does with wrong ones."""

from pathlib import Path

import pytest

from gateway.pravega.early.context import is_of_the_server
from gateway.settings.wire import EarlySettings, WireSettings
from hutch.pravega import early_messages as m
from hutch.pravega.early_codec import EARLY, MessageParts
from tests.early_rig import (
    APPENDER,
    SEGMENT,
    EarlyClient,
    EarlyServer,
    block,
    serving_early,
    stored,
)

U = "000102030405060708090a0b0c0d0e0f"
MIB = 1 << 20


def test_a_keep_alive_comes_back_with_its_data(client: EarlyClient) -> None:
    for data in (b"", b"hi", bytes(3 * MIB)):
        assert client.ask(m.KeepAlive(data), m.KeepAlive) == m.KeepAlive(data)


def test_frames_that_come_byte_by_byte_are_handled(client: EarlyClient) -> None:
    client.set_up()
    for message in block(0, b"one"):
        for byte in EARLY.encode(message):
            client.socket.sendall(bytes((byte,)))

    assert client.must(m.DataAppended).acknowledged == 11


def test_large_replies_come_in_parts_if_a_setting_says_so(tmp_path: Path) -> None:
    with (
        serving_early(tmp_path, EarlySettings(part_bytes_max=100)) as server,
        server.early_client() as client,
    ):
        client.set_up()
        client.append(0, bytes(300))
        client.send(m.ReadSegment(SEGMENT, 0, 1_000))
        joining, whole, frames = MessageParts(), None, 0
        while whole is None:
            part = client.must(m.PartialMessage)
            assert len(part.data) <= 91
            whole, frames = joining.take(part), frames + 1
        read = EARLY.decode(9, whole[8:])

    assert frames == 4
    assert isinstance(read, m.SegmentRead)
    assert read.data == stored(bytes(300))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("00000007 00000000", "no command 7"),
        ("00000005 00000018" + "00" * 24, "no command 5"),
        ("00000064 01000000", "a length of 16777216"),
        ("00000064 ffffffff", "a length of -1"),
        ("00000001 00000003 000102", "SetupAppend: a uuid"),
        (f"00000001 00000014 {U} 0009 6162", "SetupAppend: a string"),
        (f"00000003 0000001c {U} ffffffffffffffff 00000000", "a block at -1"),
        (f"00000004 0000001c {U} 0000000000000000 00000000", "command 4 outside a block"),
        ("fffffffe 00000000", "PartialMessage: byte is cut short"),
        ("fffffffe 00000001 07", "a part of kind 7"),
        ("fffffffe 00000001 02", "without a first one"),
    ],
)
def test_wrong_frames_close_with_a_line_in_the_log(
    server: EarlyServer, client: EarlyClient, text: str, words: str
) -> None:
    client.socket.sendall(bytes.fromhex(text))

    assert client.is_ended()
    [line] = server.lines
    assert line.startswith("connection closed peer=127.0.0.1:")
    assert words in line
    with server.early_client() as other:
        assert other.set_up() == 0


def test_a_connection_keeps_no_more_than_the_setting_of_what_is_not_complete(
    tmp_path: Path,
) -> None:
    with serving_early(tmp_path, wire=WireSettings(unfinished_bytes_max=MIB)) as server:
        with server.early_client() as client:
            client.set_up()
            begin, *events, _ = block(0, *[bytes(1 << 18)] * 5)
            client.send(begin)
            client.send_to_a_close(*events)
        with server.early_client() as client:
            client.socket.sendall(bytes.fromhex("0000000000200000"))
            assert client.is_ended()

    assert len(server.lines) == 2
    assert all("of what is not complete, and 1048576 are the most" in line for line in server.lines)


def test_a_block_of_17_mib_is_stored_and_one_byte_more_closes(client: EarlyClient) -> None:
    client.set_up()
    first, second = bytes(8 * MIB), bytes(9 * MIB - 16)
    assert client.append(0, first, second) == 17 * MIB

    client.send(m.BeginAppendBlock(APPENDER, 17 * MIB, 2**31 - 1))
    client.send_to_a_close(*block(0, first, second + b"x")[1:])


@pytest.mark.parametrize("segment", ["hutch/_users_kvtable/0.#epoch.0", "hutch", "rmq-.2f/_a-1/0"])
def test_what_is_the_gateways_is_neither_written_nor_read(
    server: EarlyServer, segment: str
) -> None:
    for message in (m.SetupAppend(APPENDER, segment), m.ReadSegment(segment, 0, 8)):
        with server.early_client() as client:
            client.send(message)
            assert client.is_ended()
    assert all("is closed to this port" in line for line in server.lines)


def test_without_streams_only_the_scope_of_the_server_is_closed() -> None:
    names = ("hutch/t/0", "hutch", "hutchling/t/0", "rmq-.2f/_a-1/0", "s/hutch/0")

    assert [is_of_the_server(name) for name in names] == [True, True, False, False, False]


def test_blocks_that_are_never_ended_harm_no_other_client(
    server: EarlyServer, client: EarlyClient
) -> None:
    client.set_up()
    holders = [server.early_client() for _ in range(20)]
    for number, holder in enumerate(holders):
        begin, event, _ = block(0, bytes(1_000))
        holder.set_up(f"held-{number}")
        holder.send(begin, event)
        holder.socket.sendall(bytes.fromhex("00000000 00001000 6162"))

    assert client.append(0, b"one") == 11
    for holder in holders:
        holder.close()
    assert client.append(11, b"two") == 22
    assert client.read().data == stored(b"one", b"two")
