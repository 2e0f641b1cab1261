"""What clients of many protocols send first, for tests of ports that are not theirs."""

import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

import bson
from h2.config import H2Configuration
from h2.connection import H2Connection

from hutch.pravega import early_messages, messages
from hutch.pravega.codec import encode
from hutch.pravega.early_codec import EARLY
from hutch.stream import messages as stream
from hutch.stream.codec import encode_request


def hello_of_tls() -> bytes:
    """Return the first bytes of a client of TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("it waits for the server")


def _preface() -> bytes:
    http = H2Connection(H2Configuration(client_side=True))
    http.initiate_connection()
    return http.data_to_send()


_UUID: Final = UUID(int=1)
_CONNECT: Final = {"type": "CONNECT", "frame": {"version": "0.1"}}
_PROPERTIES: Final = {
    "product": "RabbitMQ Stream",
    "version": "1.1.0",
    "platform": "Java",
    "copyright": "Copyright (c) 2020-2025 Broadcom Inc. and/or its subsidiaries.",
    "connection_name": "rabbitmq-stream-locator-0",
}
_MQTT: Final = b"\0\x04MQTT\x04\x02\0\x3c\0\x01x"

SAID: Final[Mapping[str, tuple[bytes, ...]]] = MappingProxyType(
    {
        "TLS": (hello_of_tls(), bytes.fromhex("16030100c8 010000c40303")),
        "HTTP": (
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            b"POST /x HTTP/1.0\r\n\r\n",
            b"CONNECT h:1 HTTP/1.1\r\n\r\n",
        ),
        "HTTP/2": (_preface(),),
        "AMQP-0-9-1": (b"AMQP\0\0\x09\x01",),
        "AMQP-1.0": (b"AMQP\0\x01\0\0", b"AMQP\x03\x01\0\0"),
        "MQTT": (
            b"\x10\x0d" + _MQTT,
            b"\x10\x8d\x01" + _MQTT + b"y" * 128,
            b"\x10\x0f\0\x06MQIsdp\x03\x02\0\x3c\0\x01x",
        ),
        "PROXY": (
            b"PROXY TCP4 10.0.0.1 10.0.0.2 5 5552\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12),
        ),
        "stream": (
            encode_request("peer_properties", stream.PeerProperties(_PROPERTIES), correlation_id=1),
        ),
        "mewbase": (bson.encode(_CONNECT),),
        "pravega": (encode(messages.Hello(17, 5)),),
        "pravega-early": (
            EARLY.encode(early_messages.SetupAppend(_UUID, "a segment")),
            EARLY.encode(early_messages.KeepAlive(b"")),
        ),
        "text": (b"hello\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"*1\r\n$4\r\nPING\r\n"),
    }
)
"""By the protocol's word in log lines."""
