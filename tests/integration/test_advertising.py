"""Servers that send clients of other machines to their own ones say so."""

from __future__ import annotations

import re
import socket

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.integration.test_loopback import own_address

FROM_ANYWHERE = {"HUTCH_USERS__GUEST_LOOPBACK_ONLY": "false"}


def warnings_of(server: HutchServer) -> list[str]:
    """Return the lines about what clients are told, without what comes before the text."""
    found = re.findall(r"WARNING gateway\.stream\.advertising:? (.*)", server.logs)
    return [line.replace(str(server.port), "PORT") for line in found]


def told(server: HutchServer, host: str) -> str:
    """Ask from a host for a stream's place; return the host that is told."""
    with Client.opened(host, server.port) as client:
        reply = client.ask(m.MetadataReply, "metadata", m.Metadata(("orders",)))
        (broker,) = reply.brokers
        return broker.host


@pytest.mark.parametrize("advertised", [None, "LOCALHOST", "127.0.0.9", "::1"])
def test_a_port_for_other_machines_that_advertises_itself_to_them_is_warned_of(
    start_server: StartServer, advertised: str | None
) -> None:
    more = () if advertised is None else ("--advertised-host", advertised)
    server = start_server("--host", "0.0.0.0", *more)
    (line,) = warnings_of(server)
    assert line == (
        "clients on other machines are told to connect to themselves, --advertised-host has to "
        f"name an address that leads here listens_on=0.0.0.0 advertised={advertised or 'localhost'}"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--host", "127.0.0.2"),
        ("--host", "0.0.0.0", "--advertised-host", "streams.example.org"),
        ("--host", "0.0.0.0", "--advertised-host", "192.0.2.1"),
    ],
    ids=" ".join,
)
def test_one_that_leads_to_the_server_is_not(
    start_server: StartServer, arguments: tuple[str, ...]
) -> None:
    assert warnings_of(start_server(*arguments)) == []


def test_the_first_client_from_elsewhere_that_is_told_so_is_warned_of(
    start_server: StartServer,
) -> None:
    address = own_address(socket.AF_INET, "198.51.100.1")
    server = start_server("--host", "0.0.0.0", environment=FROM_ANYWHERE)
    with Client.opened("127.0.0.1", server.port) as client:
        client.create("orders")
    assert told(server, "127.0.0.1") == "localhost"
    assert len(warnings_of(server)) == 1
    for _ in range(3):
        assert told(server, address) == "localhost"
    _, line = warnings_of(server)
    assert re.fullmatch(
        "a client on another machine is told to connect to itself, --advertised-host has to name "
        rf"an address that leads here peer={re.escape(address)}:\d+ advertised=localhost",
        line,
    )
