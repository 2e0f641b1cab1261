"""Endpoints before anyone listens there; that clients come in is shown with a whole server."""

import pytest

from gateway.network.listening import ListenPlace, bind
from gateway.server.endpoint import PortEndpoint


def test_a_port_has_its_address_once_it_is_taken_and_gives_it_back() -> None:
    port = PortEndpoint(ListenPlace("127.0.0.1", 0, "wire.host", "wire.port"))
    port.close()
    port.bind()
    host, number = port.address
    assert host == "127.0.0.1"
    port.close()

    bind(host, number).close()


def test_the_widest_address_is_one_that_other_machines_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bind("127.0.0.2", 0) as near, bind("0.0.0.0", 0) as far:
        monkeypatch.setattr(ListenPlace, "bind", lambda _: [near, far])
        endpoint = PortEndpoint(ListenPlace("some.example", 0, "wire.host", "wire.port"))
        endpoint.bind()
        assert (endpoint.address[0], endpoint.widest_address[0]) == ("127.0.0.2", "0.0.0.0")
