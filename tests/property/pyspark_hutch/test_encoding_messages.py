"""Messages of any rows: another client's codec reads them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import mmh3
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from rstream.amqp import amqp_decoder

from pyspark_hutch.encoding.arrays import BYTES
from pyspark_hutch.encoding.messages import messages_of
from pyspark_hutch.encoding.murmur import murmur3
from pyspark_hutch.encoding.routes import RoutedByHash
from tests.unit.pyspark_hutch.encoding.batches import batch, encoded, whole

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EDGES = st.sampled_from([0, 1, 126, 127, 128, 254, 255, 256])

texts = st.text(max_size=8) | EDGES.map(lambda size: "x" * size)
symbols = st.text(st.characters(codec="ascii"), max_size=8) | EDGES.map(lambda size: "s" * size)
octets = st.binary(max_size=8) | EDGES.map(lambda size: b"x" * size)
moments = st.integers(0, 10**13).map(lambda millis: EPOCH + timedelta(milliseconds=millis))
maps = st.none() | st.dictionaries(texts, st.none() | texts, max_size=4)
annotations = st.none() | st.dictionaries(symbols, st.none() | texts, max_size=4)
properties = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "message_id": texts,
        "user_id": octets,
        "to": texts,
        "subject": texts,
        "reply_to": texts,
        "correlation_id": texts,
        "content_type": symbols,
        "content_encoding": symbols,
        "absolute_expiry_time": moments,
        "creation_time": moments,
        "group_id": texts,
        "group_sequence": st.integers(0, 2**32 - 1),
        "reply_to_group_id": texts,
    },
)
rows = st.lists(st.tuples(octets, properties, maps, annotations), max_size=8)


def as_read(value: Any) -> Any:  # noqa: ANN401  # any value of a section
    """Return a value as the other codec gives it."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, dict):
        return {as_read(key): as_read(item) for key, item in value.items()} or None
    return value


def pairs(entries: dict[str, Any] | None) -> list[tuple[str, Any]] | None:
    """Return a map as Arrow takes it."""
    return None if entries is None else list(entries.items())


@given(rows)
def test_messages_are_read_as_their_rows_were(
    given_rows: list[tuple[bytes, dict[str, Any] | None, Any, Any]],
) -> None:
    made = batch(
        body=[row[0] for row in given_rows],
        properties=[row[1] for row in given_rows],
        application_properties=[pairs(row[2]) for row in given_rows],
        message_annotations=[pairs(row[3]) for row in given_rows],
    )

    for message, row in zip(encoded(made), given_rows, strict=True):
        read = amqp_decoder(message)
        found = read.properties and {
            name: value for name, value in read.properties._asdict().items() if value is not None
        }
        assert (read.body, found, read.application_properties, read.message_annotations) == (
            row[0],
            {name: as_read(value) for name, value in (row[1] or {}).items()} or None,
            as_read(row[2]),
            as_read(row[3]),
        )


@given(rows, st.data())
def test_a_part_of_a_batch_is_encoded_as_that_part(
    given_rows: list[tuple[bytes, Any, Any, Any]], data: st.DataObject
) -> None:
    made = batch(
        body=[row[0] for row in given_rows],
        properties=[row[1] for row in given_rows],
        application_properties=[pairs(row[2]) for row in given_rows],
    )
    first = data.draw(st.integers(0, len(given_rows)))
    following = data.draw(st.integers(first, len(given_rows)))

    part = made[first:following]

    assert encoded(part) == encoded(made)[first:following]
    assert whole(messages_of(made).between(first, following)) == encoded(part)


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(0, 2**32 - 1))
def test_values_are_hashed_as_by_another_implementation(values: list[bytes], seed: int) -> None:
    found = murmur3(pa.array(values, BYTES), seed).tolist()

    assert found == [mmh3.hash(value, seed, signed=False) for value in values]


@given(st.lists(st.text(max_size=6), max_size=30), st.integers(1, 9))
def test_a_hash_divides_rows_among_partitions_and_keeps_their_order(
    keys: list[str], count: int
) -> None:
    streams = [f"s-{index}" for index in range(count)]
    made = batch(body=[b""] * len(keys), routing_key=keys)

    found: dict[int, str] = {}
    for share in RoutedByHash(streams).split(made):
        mine = list(range(len(keys))) if share.rows is None else share.rows.tolist()
        assert mine
        assert mine == sorted(mine)
        assert not found.keys() & set(mine)
        found |= dict.fromkeys(mine, share.stream)

    assert found == {
        row: streams[mmh3.hash(key.encode(), 104729, signed=False) % count]
        for row, key in enumerate(keys)
    }
