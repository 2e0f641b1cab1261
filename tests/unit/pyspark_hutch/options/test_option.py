from dataclasses import dataclass, fields
from typing import Annotated

import pytest

from pyspark_hutch.options.connection_settings import BrokerSettings, BrokerTls
from pyspark_hutch.options.kinds import FLAG, integer
from pyspark_hutch.options.option import (
    ALL,
    READ,
    WRITE,
    Heading,
    Option,
    PartOption,
    Use,
    contents,
    filled,
    names_of,
)
from pyspark_hutch.options.read_settings import Budgets, Decoding, Filter, ReadSettings
from pyspark_hutch.options.write_settings import Dedup, StreamWriteSettings


def test_uses_are_told_in_words() -> None:
    assert str(Use.BATCH_READ) == "a batch read"
    assert str(READ) == "a batch read or a streaming read"


def test_every_use_is_a_read_or_a_write() -> None:
    assert set(ALL) == set(Use)
    assert not READ & WRITE


SIZE = integer(1)


@dataclass(frozen=True)
class Inner:
    size: Annotated[
        int, Option("size", ALL, SIZE), "Size.", PartOption("old", ALL, None), "it is too old"
    ] = 7


@dataclass(frozen=True)
class Outer:
    plain: int
    name: Annotated[
        str, Heading("Names"), PartOption("a", READ, FLAG), "A.", PartOption("b", ALL, SIZE), "B."
    ]
    inner: Annotated[Inner | None, Heading("More")] = None
    is_on: Annotated[bool, Option("on", WRITE, FLAG), "On."] = True


def test_options_come_in_the_order_of_fields_with_the_default_of_their_field() -> None:
    assert list(contents(Outer)) == [
        Heading("Names"),
        PartOption("a", READ, FLAG, meaning="A."),
        PartOption("b", ALL, SIZE, meaning="B."),
        Heading("More"),
        Option("size", ALL, SIZE, default="7", meaning="Size."),
        PartOption("old", ALL, None, meaning="it is too old"),
        Option("on", WRITE, FLAG, default="true", meaning="On."),
    ]
    assert names_of(Outer) == ("a", "b", "size", "old", "on")


def test_a_field_is_filled_by_its_option_and_not_by_parts() -> None:
    assert [(field, option.name) for field, option in filled(Outer)] == [("is_on", "on")]
    assert [(field, option.name) for field, option in filled(Inner)] == [("size", "size")]


@pytest.mark.parametrize(
    "settings",
    [
        BrokerSettings,
        BrokerTls,
        ReadSettings,
        Budgets,
        Decoding,
        Filter,
        StreamWriteSettings,
        Dedup,
    ],
)
def test_the_default_of_a_field_is_the_value_of_the_default_text_of_its_option(
    settings: type[BrokerSettings],
) -> None:
    defaults = {field.name: field.default for field in fields(settings)}
    texts = {entry.name: entry.default for entry in contents(settings) if isinstance(entry, Option)}

    for field, option in filled(settings):
        text = texts[option.name]
        if text is not None:
            assert option.kind is not None
            assert option.kind.parse(text) == defaults[field]
