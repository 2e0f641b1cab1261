"""Events as records, and records as events."""

import bson
import pytest

from gateway.log.records.reading import UnreadableSubBatch
from gateway.log.records.writing import RECORD_BYTES_MAX
from gateway.mewbase.events import (
    CONTENT_TYPE,
    RECORD_HEAD_BYTES,
    SECTIONS_MAX,
    NoEvents,
    event_of,
    record_of,
    records_instead,
)
from gateway.settings.mewbase import EVENT_BYTES_MAX, BadSubBatchRule
from hutch.formats.amqp.message import Body, message_of
from hutch.formats.amqp.sections import TooManySections
from hutch.formats.amqp.writing import BasicProperties, pack_message, section, symbol, text

EVENTS = [bson.encode(each) for each in ({}, {"a": 1}, {"a": bytes(240)}, {"a": bytes(300)})]


@pytest.mark.parametrize("event", EVENTS, ids=len)
def test_an_event_is_a_message_with_a_content_type_and_comes_back(event: bytes) -> None:
    record = record_of(event)
    message = message_of(record)
    assert message is not None
    assert (message.kind, message.body) == (Body.DATA, event)
    assert message.properties is not None
    assert str(message.properties[6]) == CONTENT_TYPE
    assert event_of(record) == event


def test_the_largest_event_fits_into_a_record() -> None:
    assert EVENT_BYTES_MAX + RECORD_HEAD_BYTES <= RECORD_BYTES_MAX


@pytest.mark.parametrize("event", EVENTS, ids=len)
def test_a_document_from_elsewhere_is_an_event(event: bytes) -> None:
    properties = BasicProperties(content_type="text/plain", headers={"a": "b"})
    assert event_of(pack_message(event, properties, exchange="", routing_key="q")) == event
    assert event_of(event) == event


def test_anything_else_is_wrapped() -> None:
    message = pack_message(b"words", BasicProperties(), exchange="", routing_key="q")
    records = {
        b"": b"",
        b"words": b"words",
        message: b"words",
        section(0x77, text("größer")): "größer".encode(),
        section(0x75, b"\xa0\0"): b"",
        record_of(EVENTS[1] + b"x"): EVENTS[1] + b"x",
        record_of(b""): b"",
        section(0x77, b"\x54\1"): section(0x77, b"\x54\1"),
        section(0x77, symbol("a")): b"a",
        section(0x77, b"\xa0\2ab"): b"ab",
        section(0x77, b"\x73\0\0\0a"): b"a",
        section(0x77, b"\0\x53\1\xa1\1a"): b"a",
        section(0x77, b"\x45"): section(0x77, b"\x45"),
        section(0x76, b"\x45"): section(0x76, b"\x45"),
        section(0x73, b"\x45"): b"",
        # Of the properties nothing is looked at but their size.
        section(0x73, b"\xc0\2\1\x3f") + section(0x75, b"\xa0\1x"): b"x",
    }
    for record, data in records.items():
        assert bson.decode(event_of(record)) == {"data": data}


@pytest.mark.parametrize("body", [b"\x1f\x8b garbage", b"", EVENTS[1], record_of(EVENTS[1])])
def test_what_was_sent_as_a_sub_batch_is_one_event_of_its_bytes(body: bytes) -> None:
    bad = UnreadableSubBatch(10, 14, 1_000, "a publisher sent a sub-batch that …", body)

    ((position, timestamp_ms, record),) = records_instead(bad, BadSubBatchRule.RAW)

    assert (position, timestamp_ms) == (10, 1_000)
    assert bson.decode(event_of(record)) == {"data": body}
    assert records_instead(bad, BadSubBatchRule.SKIP) == []


def test_a_reader_that_begins_within_a_bad_sub_batch_gets_nothing_of_it() -> None:
    bad = UnreadableSubBatch(12, 14, 1_000, "a publisher sent a sub-batch that …", None)

    assert records_instead(bad, BadSubBatchRule.RAW) == []


def test_where_nothing_may_stand_for_events_the_place_and_the_setting_are_named() -> None:
    bad = UnreadableSubBatch(10, 14, 1_000, "a publisher sent a sub-batch that …", b"")

    with pytest.raises(NoEvents, match=r"^at position 10 a publisher sent .* mewbase\.bad_sub_bat"):
        records_instead(bad, BadSubBatchRule.FAIL)


def data_sections(count: int) -> bytes:
    return section(0x75, b"\xa0\1x") * count


def described(count: int) -> bytes:
    return section(0x77, b"\0\x40" * count + b"\xa1\1x")


def test_a_message_has_a_largest_number_of_sections_that_are_looked_at() -> None:
    assert bson.decode(event_of(data_sections(SECTIONS_MAX))) == {"data": b"x" * SECTIONS_MAX}
    with pytest.raises(TooManySections, match="more than 64 sections"):
        event_of(data_sections(SECTIONS_MAX + 1))


def test_a_value_has_a_largest_number_of_descriptors_that_are_looked_at() -> None:
    assert bson.decode(event_of(described(1))) == {"data": b"x"}
    assert isinstance(bson.decode(event_of(described(SECTIONS_MAX)))["data"], bytes)
    with pytest.raises(TooManySections, match="more than 64 descriptors"):
        event_of(described(SECTIONS_MAX + 1))


def test_an_event_of_many_sections_is_looked_into_if_it_is_a_document() -> None:
    event = bson.encode({"d": data_sections(SECTIONS_MAX + 1)})
    assert event_of(record_of(event)) == event
