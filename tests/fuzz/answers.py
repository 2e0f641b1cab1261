"""Bytes of a server that the data source's client reads a range from; any bytes may come.

A read ends with its rows or with a ClientError. Time stands still, since the bytes end at once.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Final, cast

from hutch.client.connection import Connection
from hutch.client.errors import ClientError
from hutch.client.login import Endpoint, Login
from hutch.stream import messages as m
from hutch.stream.codec import encode_command, encode_reply
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.options.connection_settings import BrokerSettings

LEADER: Final = Endpoint("fuzzed", 5552)
SETTINGS: Final = BrokerSettings((LEADER,), planner_retries=0, poll_timeout_ms=1_000)
HIGH: Final = 100

WELCOME: Final = b"".join(
    (
        encode_reply("peer_properties", 1, m.PeerPropertiesReply(1, {"product": "fuzz"})),
        encode_reply("sasl_handshake", 2, m.SaslHandshakeReply(1, ("PLAIN",))),
        encode_reply("sasl_authenticate", 3, m.SaslAuthenticateReply(1, b"")),
        encode_command("tune", m.Tune(1 << 20, 60)),
        encode_reply("open", 4, m.OpenReply(1, {})),
    )
)
BOUNDS_ID: Final = 5
SUBSCRIBE_ID: Final = 6


class _Script:
    """A socket that gives bytes in pieces, then an end; what is sent to it is lost."""

    def __init__(self, data: bytes, piece_bytes: int) -> None:
        self._rest = memoryview(data)
        self._piece_bytes = piece_bytes

    def recv_into(self, target: memoryview) -> int:
        size = min(len(target), len(self._rest), self._piece_bytes)
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def settimeout(self, _seconds: float) -> None:
        pass

    def sendall(self, _data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class _OneServer(Cluster):
    """Has one connection, which is not made again."""

    def __init__(self, connected: _Script) -> None:
        super().__init__(SETTINGS, Name("fuzz"))
        self._connected = cast("socket.socket", connected)

    @contextlib.contextmanager
    def connection(self, endpoint: Endpoint | None = None) -> Iterator[Connection]:
        connection = Connection(endpoint or LEADER, self._connected, timeout_s=1.0)
        connection.log_in(Login())
        yield connection


def fuzz_answers(data: bytes) -> None:
    """A byte that says how the rest is cut and whether there is a filter; the server's bytes."""
    if not data:
        return
    filters = ("x",) if data[0] & 1 else ()
    script = _Script(WELCOME + data[1:], (data[0] >> 1) or 1 << 20)
    wanted = Range("s", LEADER, 0, HIGH, filters, fails_on_loss=bool(data[0] & 2))
    reader = RangeReader(_OneServer(script), wanted, 1_000)
    position, failure = 0, ""
    try:
        for piece in reader.pieces():
            assert position <= piece.low < HIGH
            position = piece.low
    except ClientError as error:
        failure = str(error)
    assert "\n" not in failure
