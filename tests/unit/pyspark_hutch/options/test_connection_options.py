import pytest

from pyspark_hutch.options.connection_options import SERVERS, TLS, USER
from pyspark_hutch.options.endpoints import Address, Uri
from pyspark_hutch.options.errors import WrongOption, shown
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use

# Option: texts that it takes with their values, texts that it does not take.
EXAMPLES: dict[str, tuple[dict[str, object], list[str]]] = {
    "endpoints": ({"a,[::1]:1": (Address("a", None), Address("::1", 1))}, ["", "a:", "a@b"]),
    "uri": (
        {
            "rabbitmq-stream://h": Uri(
                Address("h", None), tls=False, username=None, password=None, vhost=None
            )
        },
        ["", "localhost:5552", "amqp://h"],
    ),
    "vhost": ({"/": "/", "v w": "v w"}, ["", "a\nb", "x" * 4_097]),
    "advertised": ({"use": "use", "Ignore": "ignore"}, ["", "true"]),
    "connectTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "requestTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "pollTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "planner.retries": ({"0": 0, "1000": 1_000}, ["-1", "1001", "x"]),
    "planner.retryIntervalMs": (
        {"1": 1, "86400000": 86_400_000},
        ["0", "86400001", "x", "-1", "1s"],
    ),
    "pool.idleTimeoutMs": ({"0": 0, "60000": 60_000}, ["-1", "60001", "x"]),
    "pool.capacity": ({}, ["1", "64"]),
    "connectionName": ({"x" * 128: "x" * 128}, ["", "x" * 129]),
    "client.<name>": ({"x" * 255: "x" * 255}, []),
    "username": ({"u": "u"}, ["", "a\tb", "x" * 4_097]),
    "password": ({" p\n": " p\n", "x" * 4_096: "x" * 4_096}, ["", "x" * 4_097, "a\0b", "\ud800"]),
    "passwordFile": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "passwordEnv": (
        {"HUTCH_1": "HUTCH_1", "x" * 255: "x" * 255},
        ["", "1A", "A-B", "secret!", "x" * 256],
    ),
    "tls": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "tls.ca": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.cert": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.key": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.verifyHostname": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "tls.serverName": ({"h": "h"}, ["", "x" * 256]),
}
RIGHT = [(name, text) for name, (right, _) in EXAMPLES.items() for text in right]
WRONG = [(name, text) for name, (_, wrong) in EXAMPLES.items() for text in wrong]
OPTIONS = {
    option.name: option
    for group in (
        SERVERS,
        TLS,
        USER,
    )
    for option in group.options
}


def use_of(name: str) -> Use:
    return next(iter(OPTIONS[name].uses))


def test_every_option_has_examples() -> None:
    assert EXAMPLES.keys() == OPTIONS.keys()
    assert all(bool(EXAMPLES[name][0]) == (row.kind is not None) for name, row in OPTIONS.items())


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_a_right_value_is_taken_in_any_case_of_the_name(name: str, text: str) -> None:
    given = Given({name.lower(): text}, use_of(name))

    assert given.value(name, object) == EXAMPLES[name][0][text]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_wrong_value_is_told_with_its_option_on_one_line(name: str, text: str) -> None:
    with pytest.raises(WrongOption) as caught:
        Given({name.lower(): text}, use_of(name))

    (problem,) = caught.value.problems
    value = " (not shown)" if OPTIONS[name].hidden or "@" in text else f"={shown(text)}"
    said = f"option {name}{value}"
    assert problem.startswith((f"{said}: ", f"{said} is refused: "))
    assert "\n" not in problem
