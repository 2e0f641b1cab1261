"""Rows that a task of the sink writes to a real server, as they are in streams and for clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from rstream import AMQPMessage, MessageContext, amqp_decoder

from hutch.client.errors import Refused
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from pyspark_hutch.encoding.errors import MessageTooLarge, NoRoute
from pyspark_hutch.encoding.murmur import murmur3
from pyspark_hutch.sink.publishers import WAITING_BYTES_MAX
from pyspark_hutch.sink.task import RowsWritten
from tests.client import Client
from tests.integration.clients.loop import eventually, run
from tests.integration.clients.rstream_session import (
    FIRST as FROM_FIRST,
)
from tests.integration.clients.rstream_session import (
    consumer_of,
    register_codecs,
)
from tests.integration.server import Endpoint
from tests.sink_rig import batch_of, bodies_in, bodies_of, settings_for, write

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
STRINGS = pa.map_(pa.string(), pa.string())


@pytest.fixture
def made(endpoint: Endpoint, stream: str) -> str:
    with Client.opened(*endpoint) as client:
        client.create(stream)
    return stream


def batches(count: int, of: int = 1_000) -> list[pa.RecordBatch]:
    return [batch_of(bodies_of(of, first=first)) for first in range(0, count, of)]


def test_every_row_is_there_once_and_in_order(endpoint: Endpoint, made: str) -> None:
    settings = settings_for(endpoint, stream=made, maxInFlight=3_000)

    assert write(settings, *batches(20_000)) == RowsWritten(20_000, 0)

    assert bodies_in(endpoint, made) == bodies_of(20_000)


@pytest.mark.parametrize("size", [0, 200_000])
def test_sub_batches_hold_every_row_once(endpoint: Endpoint, made: str, size: int) -> None:
    settings = settings_for(endpoint, stream=made, compression="gzip", subBatchSize=30)
    bodies = bodies_of(130, size=size)

    write(settings, batch_of(bodies[:70]), batch_of(bodies[70:]))

    assert bodies_in(endpoint, made) == bodies


def test_300_partitions_get_the_rows_of_their_keys(endpoint: Endpoint, stream: str) -> None:
    keys = [f"key {number}" for number in range(3_000)]
    settings = settings_for(
        endpoint, superStream=stream, createStream="true", partitions=300, maxInFlight=500
    )

    assert write(settings, batch_of(bodies_of(3_000), routing_key=keys)) == RowsWritten(3_000, 0)

    hashes = murmur3(pa.array([key.encode() for key in keys], pa.large_binary())) % 300
    for partition in (0, 1, 150, 255, 256, 299):
        meant = [
            body for body, one in zip(bodies_of(3_000), hashes, strict=True) if one == partition
        ]
        assert bodies_in(endpoint, f"{stream}-{partition}") == meant
    assert rows_in_300(endpoint, stream) == 3_000


def rows_in_300(endpoint: Endpoint, super_stream: str) -> int:
    """Count the rows of 300 partitions."""
    names = [f"{super_stream}-{number}" for number in range(300)]
    with Client.opened(*endpoint) as client:
        ends = [
            client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(name)) for name in names
        ]
    return sum(end.statistics["committed_offset"] + 1 for end in ends)


def test_sub_batches_of_300_partitions_wait_in_bounded_memory(
    endpoint: Endpoint, stream: str
) -> None:
    rows, count = 5_000, 30
    keys = [f"key {number}" for number in range(rows)]
    settings = settings_for(
        endpoint,
        superStream=stream,
        createStream="true",
        partitions=300,
        compression="gzip",
        subBatchSize=65_535,
    )
    batch = batch_of(bodies_of(rows, size=1_000), routing_key=keys)
    before, held = pa.total_allocated_bytes(), []

    written = write(
        settings,
        *[batch] * count,
        before_batch=lambda _: held.append(pa.total_allocated_bytes() - before),
    )

    assert written == RowsWritten(rows * count, 0)
    # All rows are more than twice as much, and none of their sub-batches is ever full.
    assert WAITING_BYTES_MAX / 2 < max(held) < WAITING_BYTES_MAX + 2 * batch.nbytes
    assert rows_in_300(endpoint, stream) == rows * count


def test_a_row_goes_to_each_partition_that_its_key_is_bound_to(
    endpoint: Endpoint, stream: str
) -> None:
    partitions = tuple(f"{stream}-{place}" for place in ("north", "south"))
    with Client.opened(*endpoint) as client:
        request = m.CreateSuperStream(stream, partitions, ("n", "s"), {})
        client.must("create_super_stream", request)
    settings = settings_for(endpoint, superStream=stream, routing="key", routingKeyColumn="where")

    write(settings, batch_of([b"1", b"2", b"3"], where=["s", "n", "s"]))
    assert [bodies_in(endpoint, partition) for partition in partitions] == [[b"2"], [b"1", b"3"]]

    with pytest.raises(NoRoute, match=f"'{stream}': routing key 'west' is bound to no partition"):
        write(settings, batch_of([b"4"], where=["west"]))


def test_a_filtered_subscription_finds_rows_by_their_filter_values(
    endpoint: Endpoint, made: str
) -> None:
    settings = settings_for(endpoint, stream=made)
    write(settings, batch_of([b"1", b"2"], filter_value=["north", "north"]))
    write(settings, batch_of([b"3", b"4"], filter_value=["south", "south"]))
    write(settings, batch_of([b"5"], filter_value=["north"]))

    with Client.opened(*endpoint) as client:
        client.subscribe(1, made, FIRST, properties={"filter.0": "south"})
        found = [body for _, body in client.records(2, subscription_id=1)]

    assert found == [b"3", b"4"]


@pytest.mark.parametrize("codec", CODECS)
def test_a_stock_client_reads_what_was_written(endpoint: Endpoint, made: str, codec: str) -> None:
    count = 250
    columns = {
        "properties": pa.array([{"subject": f"s{n}", "message_id": f"m{n}"} for n in range(count)]),
        "application_properties": pa.array(
            [[("a", str(n)), ("b", None)] for n in range(count)], STRINGS
        ),
        "message_annotations": pa.array([[("x-n", str(n))] for n in range(count)], STRINGS),
    }
    settings = settings_for(endpoint, stream=made, compression=codec, bodyFormat="amqp")

    write(settings, batch_of(bodies_of(count), **columns))

    found = read_by_rstream(endpoint, made, count)
    assert [bytes(one.body) for one in found] == bodies_of(count)
    assert [one.properties.subject for one in found] == [f"s{n}".encode() for n in range(count)]
    assert found[7].application_properties == {b"a": b"7", b"b": None}
    assert found[7].message_annotations == {b"x-n": b"7"}


def read_by_rstream(endpoint: Endpoint, stream: str, count: int) -> Sequence[Any]:
    register_codecs()
    found: list[Any] = []

    def keep(message: AMQPMessage, _context: MessageContext) -> None:
        found.append(message)

    async def scenario() -> None:
        async with consumer_of(endpoint) as consumer:
            await consumer.subscribe(
                stream, keep, decoder=amqp_decoder, offset_specification=FROM_FIRST
            )
            await eventually(lambda: len(found) >= count)

    run(scenario())
    return found


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "subBatchSize": 7}])
def test_a_second_run_writes_only_what_is_new_however_its_rows_are_cut(
    endpoint: Endpoint, made: str, options: dict[str, object]
) -> None:
    settings = settings_for(
        endpoint,
        stream=made,
        delivery="dedup",
        producerName="name",
        publishingIdColumn="n",
        producerKeyColumn="k",
        **options,
    )

    def rows(first: int, following: int) -> pa.RecordBatch:
        numbers = range(first, following)
        bodies = bodies_of(len(numbers), first=first)
        return batch_of(bodies, n=pa.array(numbers, pa.int64()), k=["x"] * len(numbers))

    assert write(settings, rows(0, 100), rows(100, 250)) == RowsWritten(250, 0)
    assert write(settings, rows(0, 33), rows(33, 260), rows(260, 400)) == RowsWritten(150, 250)

    assert bodies_in(endpoint, made) == bodies_of(400)


def test_a_second_run_by_place_writes_only_what_is_new(endpoint: Endpoint, made: str) -> None:
    options = {"delivery": "dedup", "producerName": "name", "dedupUnsafePlan": "true"}
    settings = settings_for(endpoint, stream=made, **options)

    write(settings, *batches(2_000))
    assert write(settings, *batches(3_000, of=500)) == RowsWritten(1_000, 2_000)

    assert bodies_in(endpoint, made) == bodies_of(3_000)


def test_the_first_row_of_a_producer_is_not_taken_for_known(endpoint: Endpoint, made: str) -> None:
    settings = settings_for(
        endpoint,
        stream=made,
        delivery="dedup",
        producerName="name",
        publishingIdColumn="n",
        producerKeyColumn="k",
    )

    assert write(settings, batch_of([b"first"], n=[0], k=["x"])) == RowsWritten(1, 0)

    assert bodies_in(endpoint, made) == [b"first"]


def test_tasks_share_a_connection_that_keeps_no_publisher(endpoint: Endpoint, made: str) -> None:
    options = {"delivery": "dedup", "producerName": "name", "dedupUnsafePlan": "true"}
    settings = settings_for(endpoint, stream=made, **options, **{"pool.idleTimeoutMs": 30_000})

    for count in (10, 20, 30):
        write(settings, batch_of(bodies_of(count)), closes=False)

    assert bodies_in(endpoint, made) == bodies_of(30)


def test_a_message_that_fits_no_frame_names_its_stream(endpoint: Endpoint, made: str) -> None:
    with pytest.raises(MessageTooLarge) as failure:
        write(settings_for(endpoint, stream=made), batch_of([b"fits", bytes(1 << 20)]))

    assert str(failure.value).startswith(f"stream {made!r}: a message needs a frame of 1,048,597 ")


def test_a_stream_that_is_not_there_is_named(endpoint: Endpoint, stream: str) -> None:
    with pytest.raises(Refused, match=f"^stream '{stream}' does not exist$"):
        write(settings_for(endpoint, stream=stream), batch_of([b""]))
    with pytest.raises(Refused, match=f"^stream '{stream}' does not exist$"):
        write(settings_for(endpoint), batch_of([b""], stream=[stream]))


def test_a_stream_deleted_in_the_middle_is_named(endpoint: Endpoint, made: str) -> None:
    def delete(index: int) -> None:
        if index == 3:
            with Client.opened(*endpoint) as client:
                client.must("delete_stream", m.DeleteStream(made))

    settings = settings_for(endpoint, stream=made, maxInFlight=1_000)
    with pytest.raises(Refused, match=f"^stream '{made}' does not exist$"):
        write(settings, *batches(20_000), before_batch=delete)


def test_a_wrong_password_is_told_in_one_line(endpoint: Endpoint, made: str) -> None:
    with pytest.raises(
        Refused, match=r"^\S+ refused user 'guest': user name or password is wrong$"
    ):
        write(settings_for(endpoint, stream=made, password="no"), batch_of([b""]))
