"""Frames over a real socket: from Hello to reading back what was appended."""

from hutch.pravega import messages as m
from tests.pravega_client import WRITER, WireClient, end
from tests.pravega_rig import WireServer


def test_a_client_creates_a_segment_appends_and_reads_it_back(server: WireServer) -> None:
    with server.client() as client:
        assert client.ask(m.Hello(15, 5), m.Hello) == m.Hello(17, 5)
        created = client.ask(m.CreateSegment(1, "s/t/0.#epoch.0", 0, 0, ""), m.SegmentCreated)
        assert created == m.SegmentCreated(1, "s/t/0.#epoch.0")
        setup = client.ask(m.SetupAppend(2, WRITER, "s/t/0.#epoch.0", ""), m.AppendSetup)
        assert setup == m.AppendSetup(2, "s/t/0.#epoch.0", WRITER, m.ABSENT)
        appended = client.ask(end(7, b"hello world"), m.DataAppended)
        assert appended == m.DataAppended(WRITER, 7, m.ABSENT, 2, 11)
        read = client.ask(m.ReadSegment("s/t/0.#epoch.0", 0, 1024, "", 5), m.SegmentRead)
        assert (read.data, read.offset, read.request_id) == (b"hello world", 0, 5)


def test_commands_work_without_a_hello(server: WireServer) -> None:
    with server.client() as client:
        client.create("plain")


def test_a_client_of_other_versions_gets_an_answer_and_a_close(server: WireServer) -> None:
    with server.client() as client:
        assert client.ask(m.Hello(4, 1), m.Hello) == m.Hello(17, 5)
        assert client.is_ended()


def test_a_keep_alive_comes_back(client: WireClient) -> None:
    assert client.ask(m.KeepAlive(), m.KeepAlive) == m.KeepAlive()


def test_a_frame_that_comes_byte_by_byte_is_handled(client: WireClient) -> None:
    for byte in bytes.fromhex("0000006400000000"):
        client.socket.sendall(bytes([byte]))
    client.must(m.KeepAlive)


def test_a_large_first_frame_is_taken_where_no_tokens_are_asked_for(client: WireClient) -> None:
    frame = bytes.fromhex("00000064") + (1 << 20).to_bytes(4, "big") + bytes(1 << 20)
    for start in range(0, len(frame), 100_000):
        client.socket.sendall(frame[start : start + 100_000])
    client.must(m.KeepAlive)


def test_an_unknown_command_ends_the_connection_and_leaves_a_line(
    server: WireServer, client: WireClient
) -> None:
    client.socket.sendall(bytes.fromhex("0000000600000000"))
    assert client.is_ended()
    assert any("no command 6" in line for line in server.lines)


def test_a_length_that_no_frame_has_ends_the_connection(client: WireClient) -> None:
    client.socket.sendall(bytes.fromhex("0000000400fffff8"))
    assert client.is_ended()


def test_a_payload_that_is_cut_short_ends_the_connection(client: WireClient) -> None:
    client.socket.sendall(bytes.fromhex("0000000b0000000400000000"))
    assert client.is_ended()
