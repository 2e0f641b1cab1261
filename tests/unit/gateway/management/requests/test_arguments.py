import pytest

from gateway.management.errors import WrongRequest
from gateway.management.requests.arguments import Arguments


def test_arguments_are_taken_once_and_the_rest_is_refused() -> None:
    arguments = Arguments({"a": "x", "b": 5, "c": True, "d": ["y"], "e": {"f": 1}, "g": None})

    assert arguments.text("a") == "x"
    assert arguments.optional_integer("b") == 5
    assert arguments.flag("c", default=False)
    assert arguments.texts("d") == ("y",)
    assert arguments.mapping("e") == {"f": 1}
    with pytest.raises(WrongRequest, match="no argument 'g'"):
        arguments.end()


def test_a_number_that_is_too_large_is_told_what_there_may_be() -> None:
    with pytest.raises(WrongRequest, match="n is not within -9223372036854775807 and 92233720368"):
        Arguments({"n": 10**30}).integer("n", 0)


def test_names_may_have_bytes_that_are_not_utf8() -> None:
    assert Arguments({"name": "a\udcffb"}).name() == "a\udcffb"
    assert Arguments({"name": "\udcc3\udca9"}).name() == "é"
    assert Arguments({}).name("key", "x") == "x"


def test_what_is_missing_has_its_default() -> None:
    arguments = Arguments({})

    assert arguments.text("a", "x") == "x"
    assert arguments.optional_text("a") is None
    assert arguments.integer("a", 3) == 3
    assert arguments.optional_integer("a") is None
    assert not arguments.flag("a", default=False)
    assert (arguments.texts("a"), arguments.mapping("a")) == ((), {})
    arguments.end()


@pytest.mark.parametrize(
    ("taken", "value"),
    [
        ("text", None),
        ("text", 5),
        ("text", "x" * 70_000),
        ("text", "\ud800"),
        ("text", "a\udcffb"),
        ("name", None),
        ("name", 5),
        ("name", "\ud800"),
        ("name", "x" * 70_000),
        ("optional_text", 5),
        ("optional_integer", True),
        ("optional_integer", 2**63),
        ("optional_integer", 1.5),
        ("texts", "x"),
        ("texts", [5]),
        ("mapping", []),
    ],
)
def test_a_wrong_value_is_refused_by_the_arguments_name(taken: str, value: object) -> None:
    with pytest.raises(WrongRequest, match=r"name (is|has) "):
        getattr(Arguments({"name": value}), taken)("name")
    with pytest.raises(WrongRequest, match=r"name (is|has) "):
        Arguments({"name": 1}).flag("name", default=False)
