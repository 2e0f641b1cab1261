import dataclasses
import inspect

import pytest

from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codes import ResponseCode
from hutch.stream.layout import layout_of

CLASSES = [
    value
    for module in (m, pipeline)
    for _, value in inspect.getmembers(module, inspect.isclass)
    if issubclass(value, m.Message) and value.__module__ == module.__name__
    if value is not m.Message
]


@pytest.mark.parametrize("message_class", CLASSES)
def test_a_message_says_what_it_is_and_cannot_be_changed(message_class: type[m.Message]) -> None:
    assert message_class.__doc__
    assert not message_class.__doc__.startswith(message_class.__name__ + "(")
    assert message_class.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not hasattr(message_class, "__dict__") or "__slots__" in vars(message_class)


def test_a_log_line_is_cut_at_75_characters() -> None:
    short = str(m.Unsubscribe(3))
    long = str(m.DeleteStream("x" * 100))

    assert short == "Unsubscribe(subscription_id=3)"
    assert len(long) == 75
    assert long.startswith("DeleteStream(stream='xxx")
    assert long.endswith("…")


def test_a_log_line_of_75_characters_is_whole() -> None:
    assert str(m.DeleteStream("x" * 52)) == repr(m.DeleteStream("x" * 52))
    assert len(str(m.DeleteStream("x" * 52))) == 75


def test_a_log_line_never_shows_a_secret() -> None:
    shown = f"{m.SaslAuthenticate('PLAIN', b'secret')!r} {m.SaslAuthenticateReply(1, b'secret')!r}"

    assert "secret" not in shown


def test_a_name_that_is_no_text_can_be_logged() -> None:
    assert str(m.DeleteStream("\udcff")).encode() == b"DeleteStream(stream='\\udcff')"


@pytest.mark.parametrize(("number", "expected"), [(1, ResponseCode.OK), (999, 999)])
def test_a_code_is_named_if_it_has_a_name(number: int, expected: int) -> None:
    found = m.code_of(number)

    assert found == expected
    assert type(found) is type(expected)


def test_every_field_of_every_message_has_a_wire_type() -> None:
    for message_class in CLASSES:
        assert len(layout_of(message_class).fields) == len(dataclasses.fields(message_class))  # type: ignore[arg-type]
