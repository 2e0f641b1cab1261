"""What readers of fields have in common: types judged, and which values are absent."""

from typing import Any

import pytest

from gateway.management.errors import WrongRequest
from gateway.management.fields import Arguments, JsonFields


class Wrong(Exception):
    pass


class Plain(JsonFields):
    def __init__(self, **content: object) -> None:
        self._content = content

    def given(self, name: str, default: object = None) -> Any:  # noqa: ANN401
        return self._content.get(name, default)

    def wrong(self, name: str, value: object, fault: str) -> Wrong:
        return Wrong(f"{name} {value} {fault}")


def test_fields_have_their_values_or_defaults() -> None:
    fields = Plain(a="x", b=True, c=10**30, d=1.5, e={"f": 1}, empty=[])

    assert (fields.text("a"), fields.text("z", "y")) == ("x", "y")
    assert (fields.flag("b", default=False), fields.flag("z", default=True)) == (True, True)
    assert (fields.integer("c", 0), fields.integer("z", 3)) == (10**30, 3)
    assert (fields.number("c", 0), fields.number("d", 0), fields.number("z", 0.5)) == (
        10**30,
        1.5,
        0.5,
    )
    assert (fields.mapping("e"), fields.mapping("z"), fields.mapping("empty")) == ({"f": 1}, {}, {})


@pytest.mark.parametrize(
    ("take", "value", "fault"),
    [
        (JsonFields.text, None, "missing"),
        (JsonFields.text, 5, "not text"),
        (lambda fields, name: fields.flag(name, default=True), 1, "neither true nor false"),
        (lambda fields, name: fields.flag(name, default=True), None, "neither true nor false"),
        (lambda fields, name: fields.integer(name, 0), True, "not a whole number"),
        (lambda fields, name: fields.integer(name, 0), 1.0, "not a whole number"),
        (lambda fields, name: fields.number(name, 0), True, "not a number"),
        (lambda fields, name: fields.number(name, 0), "1", "not a number"),
        (JsonFields.mapping, [1], "not an object"),
    ],
)
def test_a_value_of_another_type_is_told_with_the_fields_name(
    take: Any,  # noqa: ANN401
    value: object,
    fault: str,
) -> None:
    with pytest.raises(Wrong, match=f"name {value} {fault}".replace("[", r"\[")):
        take(Plain(name=value), "name")


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
