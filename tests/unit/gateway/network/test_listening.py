import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from gateway.network import listening
from gateway.network.listening import (
    ListenPlace,
    address_of,
    begin_without_pacing,
    bind,
    bind_all,
    cannot_listen,
    is_on_loopback,
    restore_congestion,
    take_all,
)
from gateway.settings.errors import ConfigError
from tests.loopbacks import needs_ipv6, taken_at_ipv6


def test_a_port_that_is_taken_is_an_error_and_leaves_no_socket_open() -> None:
    taken = bind("127.0.0.1", 0)
    taken.listen()
    try:
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", taken.getsockname()[1])
    finally:
        taken.close()


def test_a_host_that_is_unknown_is_an_error() -> None:
    with pytest.raises(OSError, match=r"\w"):
        bind("no such host", 0)


@pytest.mark.parametrize(
    ("number", "blamed"),
    [
        (errno.EADDRINUSE, "stream.port"),
        (errno.EACCES, "stream.port"),
        (errno.EADDRNOTAVAIL, "stream.host"),
    ],
)
def test_the_setting_to_blame_is_the_port_if_it_is_taken_and_the_host_if_it_is_not_ours(
    number: int, blamed: str
) -> None:
    error = cannot_listen("stream.host", "stream.port", "h", 1, OSError(number, "words"))

    assert [tuple(problem) for problem in error.problems] == [
        (blamed, "cannot listen on h:1: words")
    ]


def test_a_place_that_is_taken_is_blamed_on_its_setting() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        place = ListenPlace("127.0.0.1", taken.getsockname()[1], "wire.host", "wire.port")
        with pytest.raises(ConfigError) as refusal:
            place.bind()
    [(setting, _)] = refusal.value.problems
    assert setting == "wire.port"


def test_each_port_that_cannot_be_had_is_told_and_the_others_are_taken() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        number = taken.getsockname()[1]
        places = [
            ListenPlace("127.0.0.1", number, "wire.host", "wire.port"),
            ListenPlace("127.0.0.1", 0, "early.host", "early.port"),
            ListenPlace("192.0.2.1", 0, "stream.host", "stream.port"),
        ]
        held: list[socket.socket] = []

        def take(place: ListenPlace) -> None:
            held.extend(place.bind())

        with pytest.raises(ConfigError) as refusal:
            take_all(partial(take, place) for place in places)
    assert [setting for setting, _ in refusal.value.problems] == ["wire.port", "stream.host"]
    [kept] = held
    assert address_of(kept)[1] > 0
    kept.close()


@contextmanager
def bound(host: str, port: int = 0) -> Iterator[list[tuple[str, int]]]:
    """Take all addresses of a host for a while; return them."""
    with ExitStack() as stack:
        yield [address_of(stack.enter_context(each)) for each in bind_all(host, port)]


def names(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> str:
    """Return the name of a host with these addresses."""
    real = socket.getaddrinfo

    def found(host: str, port: int, **more: int) -> list[object]:
        given = addresses if host == "some.example" else (host,)
        return [info for each in given for info in real(each, port, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return "some.example"


@needs_ipv6
@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "localhost."])
def test_localhost_is_both_loopbacks_at_one_port(name: str) -> None:
    with bound(name) as addresses:
        assert [host for host, _ in addresses] == ["127.0.0.1", "::1"]
        assert len({port for _, port in addresses}) == 1


def test_localhost_is_one_loopback_where_there_is_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_LOOPBACKS", ("127.0.0.1", "2001:db8::1"))
    with bound("localhost") as addresses:
        assert [host for host, _ in addresses] == ["127.0.0.1"]


@needs_ipv6
def test_a_port_that_is_taken_on_one_loopback_is_told_with_the_address() -> None:
    with taken_at_ipv6() as port:
        place = ListenPlace("localhost", port, "stream.host", "stream.port")
        with pytest.raises(ConfigError) as refusal:
            place.bind()
    [(setting, reason)] = refusal.value.problems
    assert setting == "stream.port"
    assert reason.startswith(f"cannot listen on [::1]:{port}: ")


def test_a_name_is_all_its_addresses_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name = names(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.2")
    with bound(name) as addresses:
        assert [host for host, _ in addresses] == ["127.0.0.2", "127.0.0.3"]
        assert len({port for _, port in addresses}) == 1


def test_of_a_name_all_addresses_are_taken_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    name = names(monkeypatch, "127.0.0.2", "192.0.2.1")
    place = ListenPlace(name, 0, "stream.host", "stream.port")
    with pytest.raises(ConfigError) as refusal:
        place.bind()
    [(setting, reason)] = refusal.value.problems
    assert setting == "stream.host"
    assert reason.startswith("cannot listen on 192.0.2.1:")


def test_another_port_is_picked_where_one_is_taken_on_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = names(monkeypatch, "127.0.0.2", "127.0.0.3")
    real, failures = listening._bound, [errno.EADDRINUSE] * 3

    def unlucky(info: listening._Info) -> socket.socket:
        if failures and info[4][1]:
            raise OSError(failures.pop(), "Address already in use")
        return real(info)

    monkeypatch.setattr(listening, "_bound", unlucky)
    with bound(name) as addresses:
        assert len(addresses) == 2
    assert not failures


def test_a_host_is_on_loopback_if_all_its_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_on_loopback("localhost")
    assert is_on_loopback(names(monkeypatch, "127.0.0.1", "127.0.0.2"))
    assert not is_on_loopback(names(monkeypatch, "127.0.0.1", "192.0.2.1"))


TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", None)
pytestmark = pytest.mark.skipif(TCP_CONGESTION is None, reason="the system has one algorithm only")


def algorithm_of(connected: socket.socket) -> bytes:
    assert TCP_CONGESTION is not None
    return connected.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0")


def test_an_accepted_connection_has_what_its_listener_has_until_it_is_restored() -> None:
    with socket.socket() as listening, socket.socket() as client:
        systems = algorithm_of(client)
        begin_without_pacing(listening)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client.connect(listening.getsockname())
        accepted, _ = listening.accept()
        with accepted:
            assert algorithm_of(accepted) == b"reno"
            restore_congestion(accepted)
            assert algorithm_of(accepted) == systems


def test_a_socket_without_congestion_control_is_left_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        begin_without_pacing(ours)
        restore_congestion(ours)
