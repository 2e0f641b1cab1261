import errno

import pytest

from gateway.network.listening import Place, bind, cannot_listen
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
