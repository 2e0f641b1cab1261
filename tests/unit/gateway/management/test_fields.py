"""What readers of fields have in common: types judged, and which values are absent."""

from typing import Any

import pytest

from gateway.management.fields import Fields


class Wrong(Exception):
    pass


class Plain(Fields):
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
        (Fields.text, None, "missing"),
        (Fields.text, 5, "not text"),
        (lambda fields, name: fields.flag(name, default=True), 1, "neither true nor false"),
        (lambda fields, name: fields.flag(name, default=True), None, "neither true nor false"),
        (lambda fields, name: fields.integer(name, 0), True, "not a whole number"),
        (lambda fields, name: fields.integer(name, 0), 1.0, "not a whole number"),
        (lambda fields, name: fields.number(name, 0), True, "not a number"),
        (lambda fields, name: fields.number(name, 0), "1", "not a number"),
        (Fields.mapping, [1], "not an object"),
    ],
)
def test_a_value_of_another_type_is_told_with_the_fields_name(
    take: Any,  # noqa: ANN401
    value: object,
    fault: str,
) -> None:
    with pytest.raises(Wrong, match=f"name {value} {fault}".replace("[", r"\[")):
        take(Plain(name=value), "name")
