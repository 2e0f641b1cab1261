"""What clients send first, at every port: theirs, and all others."""

import pytest

from gateway.mewbase.link import PROTOCOL as MEWBASE
from gateway.network import first_bytes
from gateway.network.first_bytes import (
    ALLOWED,
    LOOK_BYTES,
    PORT_OF_TLS,
    PROTOCOLS,
    TLS,
    Match,
    answer,
    foreign,
    wanted,
)
from gateway.pravega.context import PROTOCOL
from gateway.pravega.early.front import EARLY_PROTOCOL
from gateway.pravega.front import _KNOWN
from gateway.stream.link import PROTOCOL as STREAM
from hutch.pravega.codec import HEAD
from hutch.pravega.commands import CommandSender
from hutch.pravega.early_codec import EARLY
from tests.first_bytes import SAID

EVERY = [(name, said) for name, all_of_it in SAID.items() for said in all_of_it]
OWN = {PORT_OF_TLS: "TLS", "http": "HTTP", "controller": "HTTP/2"}
OPEN = {"stream": ("127.0.0.1", 1), "http": ("::1", 2), "mewbase/ssl": ("127.0.0.1", 3)}
ALIKE = {
    ("pravega-early", "pravega"),  # codes that both have
    ("text", "http"),  # a method may be any word
}
"""Protocols and ports whose first bytes may be the same."""


def by_name(name: str) -> first_bytes.Protocol:
    return next(each for each in PROTOCOLS if each.name == name)


def test_the_first_bytes_of_every_protocol_are_tried() -> None:
    assert SAID.keys() == {each.name for each in PROTOCOLS}
    assert {MEWBASE, STREAM, PROTOCOL, EARLY_PROTOCOL} < ALLOWED.keys()


@pytest.mark.parametrize("port", ALLOWED)
@pytest.mark.parametrize(("name", "said"), EVERY)
def test_a_client_of_another_protocol_is_named_and_one_of_the_ports_is_not(
    name: str, said: bytes, port: str
) -> None:
    is_own = name == OWN.get(port, port) or (name, port) in ALIKE
    expected = Match.NO if is_own else by_name(name)

    assert foreign(said[:LOOK_BYTES], port) is expected
    for size in range(1, len(said[:LOOK_BYTES])):
        # Fewer bytes leave it open, or say the same; they never name another protocol.
        assert foreign(said[:size], port) in {Match.SO_FAR, expected}


@pytest.mark.parametrize("length", [0, 4, 0x1F, 0x11_0001, (1 << 24) - 1])
def test_no_command_of_pravega_is_foreign_at_its_port(length: int) -> None:
    for code in _KNOWN:
        assert foreign(HEAD.pack(code, length) + bytes(8), "pravega") is Match.NO
    for row in EARLY.by_code.values():
        if row.sender is not CommandSender.SERVER:
            head = HEAD.pack(row.code, length)
            assert foreign(head + bytes(8), "pravega-early") is Match.NO


@pytest.mark.parametrize("said", [bytes(4), b"\xff\xff\xff\xff", b"\x05\0\0\0\0", bytes(16)])
def test_what_nobody_knows_is_left_to_the_port(said: bytes) -> None:
    for port in ALLOWED:
        assert foreign(said, port) is Match.NO


@pytest.mark.parametrize("port", ALLOWED)
def test_a_frame_of_the_port_that_comes_in_pieces_is_never_foreign(port: str) -> None:
    own = OWN.get(port, port)
    for said in SAID[own]:
        for size in range(1, len(said)):
            assert foreign(said[:size][:LOOK_BYTES], port) in {Match.NO, Match.SO_FAR}


@pytest.mark.parametrize(
    ("name", "port", "expected"),
    [
        ("HTTP", "stream", "[::1]:2"),
        ("stream", "http", "127.0.0.1:1"),
        ("stream", "stream/ssl", "127.0.0.1:1"),
        ("mewbase", "stream", "127.0.0.1:3 with TLS"),
        ("mewbase", "mewbase/ssl", "127.0.0.1:3 with TLS"),
        ("TLS", "mewbase", "127.0.0.1:3"),
        ("TLS", "stream", "none is open, see tls.certificate"),
        ("TLS", "http", "none, it is not spoken here"),
        ("pravega", "stream", "none is open, see wire.port"),
        ("AMQP-0-9-1", "stream", "none, it is not spoken here"),
    ],
)
def test_the_port_that_a_client_wants_is_told(name: str, port: str, expected: str) -> None:
    assert wanted(by_name(name), port, OPEN) == expected


def test_a_client_is_answered_where_its_protocol_has_words() -> None:
    http = answer(by_name("HTTP"), "no").split(b"\r\n\r\n")
    assert http[0].startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert (b"Content-Length: 3" in http[0], http[1]) == (True, b"no\n")
    assert answer(TLS, "no") == bytes.fromhex("15 0303 0002 0228")
    assert answer(by_name("AMQP-1.0"), "no") == b"AMQP\0\0\0\0"
    assert answer(by_name("MQTT"), "no") == bytes.fromhex("20020001")
    assert answer(by_name("stream"), "no") == b""
