"""One connection: what a peer cannot make the server keep, wait for or do."""

from gateway.stream.wire import messages as m
from tests.property.gateway.conversations import HANDSHAKE, frame_of
from tests.unit.gateway.server.connection_rig import Server

OPEN = frame_of("open", m.Open("/"))
UNKNOWN_FRAME = bytes.fromhex("00000004 00ff 0001")
CLOSE_13 = bytes.fromhex("0016 0001 00000001 000d 000d") + b"unknown frame"


# Time limits of the end


def test_a_wrong_frame_right_behind_open_gets_the_time_limit_of_any_other(server: Server) -> None:
    client = server.connect()
    client.send(HANDSHAKE[: HANDSHAKE.index(OPEN) + len(OPEN)] + UNKNOWN_FRAME)
    assert client.frames()[-1] == CLOSE_13

    client.loop.pass_time(9.9)
    assert not client.is_over()
    client.loop.pass_time(0.2)

    assert client.is_over()
