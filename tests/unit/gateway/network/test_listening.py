import errno

import pytest

from gateway.network.listening import Place, Port, bind, cannot_listen, take_all
from gateway.settings.errors import ConfigError


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
        place = Place("127.0.0.1", taken.getsockname()[1], "wire.host", "wire.port")
        with pytest.raises(ConfigError) as refusal:
            place.bind()
    [(setting, _)] = refusal.value.problems
    assert setting == "wire.port"


def test_a_port_has_its_address_once_it_is_taken_and_gives_it_back() -> None:
    port = Port(Place("127.0.0.1", 0, "wire.host", "wire.port"))
    port.close()
    port.bind()
    host, number = port.address
    assert host == "127.0.0.1"
    port.close()

    bind(host, number).close()


def test_each_port_that_cannot_be_had_is_told_and_the_others_are_taken() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        number = taken.getsockname()[1]
        places = [
            Place("127.0.0.1", number, "wire.host", "wire.port"),
            Place("127.0.0.1", 0, "early.host", "early.port"),
            Place("192.0.2.1", 0, "stream.host", "stream.port"),
        ]
        ports = [Port(place) for place in places]
        with pytest.raises(ConfigError) as refusal:
            take_all(port.bind for port in ports)
    assert [setting for setting, _ in refusal.value.problems] == ["wire.port", "stream.host"]
    assert ports[1].address[1] > 0
    ports[1].close()
