import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hutch.client import channel as channel_module
from hutch.client.channel import Channel
from hutch.client.errors import ClosedByServer, ConnectionLost, ServerSilent
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import encode_command, encode_reply
from tests.waiting import HANG_S

HEARTBEAT = encode_command("heartbeat", m.Heartbeat())
CLOSE = encode_command("close", m.Close(13, "no more"), correlation_id=9)
UPDATE = encode_command("metadata_update", m.MetadataUpdate(6, "s"))


class Both(NamedTuple):
    channel: Channel
    peer: socket.socket


@pytest.fixture
def both() -> Iterator[Both]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(HANG_S)
        yield Both(Channel(Endpoint("here", 1), ours, timeout_s=1.0), theirs)


def soon(seconds: float = 5) -> float:
    return time.monotonic() + seconds


def test_heartbeats_are_passed_over_unless_any_frame_is_wanted(both: Both) -> None:
    both.peer.sendall(HEARTBEAT + HEARTBEAT + UPDATE)

    assert bytes(both.channel.any_frame(soon())) == HEARTBEAT[4:]
    assert bytes(both.channel.frame(soon())) == UPDATE[4:]


def test_none_are_sent_where_none_are_agreed(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "BEATS", 1e6)

    with pytest.raises(ServerSilent):
        both.channel.frame(soon(0.1))
    both.channel.beat()
    both.peer.settimeout(0)
    with pytest.raises(BlockingIOError):
        both.peer.recv(1)

    both.channel.heartbeat_s = 1
    both.channel.beat()
    assert both.peer.recv(100) == HEARTBEAT


def test_a_close_is_answered_and_told_with_code_and_reason(both: Both) -> None:
    both.peer.sendall(CLOSE)

    with pytest.raises(ClosedByServer) as caught:
        both.channel.frame(soon())

    assert (caught.value.code, caught.value.reason) == (13, "no more")
    assert str(caught.value) == "here:1 closed the connection: 'no more'"
    assert both.peer.recv(100) == encode_reply("close", 9, m.OK)
    assert both.channel.is_broken


def test_a_close_of_a_peer_that_has_gone_is_told_all_the_same(both: Both) -> None:
    both.peer.sendall(CLOSE)
    both.peer.close()

    with pytest.raises(ClosedByServer):
        both.channel.frame(soon())


def test_a_peer_that_goes_without_a_word_is_lost(both: Both) -> None:
    both.peer.close()

    with pytest.raises(ConnectionLost, match="here:1 closed the connection"):
        both.channel.frame(soon())
    with pytest.raises(ConnectionLost, match="the connection to here:1 broke"):
        both.channel.send_bytes(HEARTBEAT)


def test_what_is_pushed_while_much_is_sent_is_kept(both: Both) -> None:
    ours, theirs = both
    ours.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    theirs.sendall(UPDATE)

    with pytest.raises(ConnectionLost, match="could not be sent in time"):
        ours.send_much(bytes(10_000_000), timeout_s=0.2)

    assert ours.is_broken
    assert ours.inbox.take() == UPDATE[4:]
    assert len(ours.inbox) == 0


def test_a_close_while_much_is_sent_ends_the_sending(both: Both) -> None:
    both.peer.sendall(CLOSE)

    with pytest.raises(ClosedByServer):
        both.channel.send_much(bytes(10_000_000))


def test_leaving_a_channel_disconnects_it(both: Both) -> None:
    with both.channel:
        pass

    assert both.peer.recv(1) == b""
    assert both.channel.is_broken
