"""Extents of streams that are not open agree with what their logs say once they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.log import names
from gateway.log.reading.extent import Extent, extent_of
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.broker.retention_rig import CHUNK, SMALL, write
from tests.unit.gateway.log.log_rig import change_on_disk
from tests.unit.gateway.stream.link_rig import Broker

CHUNKS = 9


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "data")
    yield broker
    broker.close()


def create(broker: Broker, **arguments: str) -> None:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    request = m.CreateStream("s", given | SMALL)
    assert broker.link().code("create_stream", request) == ResponseCode.OK


def truncate(broker: Broker, offset: int) -> None:
    broker.store_rig.run(broker.streams.logs.truncate(broker.stream("s"), offset=offset))


def extent(broker: Broker) -> Extent:
    return broker.store_rig.run(broker.streams.logs.extent_of(broker.stream("s")))


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize(
    ("chunks", "kept_from", "expected"),
    [
        (0, 0, Extent(0, 0, 0, 0)),
        (1, 0, Extent(0, 1, CHUNK, 0)),
        (CHUNKS, 0, Extent(0, CHUNKS, CHUNKS * CHUNK, 0)),
        (CHUNKS, 4, Extent(4, CHUNKS, 5 * CHUNK, 4 * CHUNK)),
        (CHUNKS, CHUNKS, Extent(CHUNKS, CHUNKS, 0, CHUNKS * CHUNK)),
    ],
)
def test_a_closed_stream_is_described_as_its_log_would_be(
    broker: Broker, tmp_path: Path, chunks: int, kept_from: int, expected: Extent, *, is_clean: bool
) -> None:
    create(broker)
    write(broker.link(), chunks)
    if kept_from:
        truncate(broker, kept_from)
    if is_clean:
        broker.stop()
    again = Broker(broker.store_rig.crash_copy(tmp_path / "again"))

    logs, stream = again.streams.logs, again.stream("s")
    assert logs.extent_at_hand(stream) is None
    again.store_rig.run(logs.look_up_all())
    described = [logs.extent_at_hand(stream), extent(again), extent(again)]
    assert stream.log is None

    assert described == [expected] * 3
    assert extent_of(again.log("s")) == extent(again) == expected
    again.close()


def test_a_stream_that_is_in_use_is_described_by_its_log(broker: Broker) -> None:
    create(broker)
    assert extent(broker) == Extent(0, 0, 0, 0)

    write(broker.link(), 2)

    assert extent(broker) == Extent(0, 2, 2 * CHUNK, 0)


@pytest.mark.parametrize("chunks", [0, 2])
def test_a_stream_begins_at_the_offset_that_it_was_made_with(
    broker: Broker, tmp_path: Path, chunks: int
) -> None:
    create(broker, stream_initial_offset="5")
    write(broker.link(), chunks)
    broker.stop()
    again = Broker(broker.store_rig.crash_copy(tmp_path / "again"))

    assert extent(again) == Extent(5, 5 + chunks, chunks * CHUNK, 0)
    assert again.stream("s").log is None
    assert extent_of(again.log("s")) == extent(again)
    again.close()


def test_a_stream_whose_oldest_chunk_is_damaged_is_opened(broker: Broker, tmp_path: Path) -> None:
    create(broker)
    write(broker.link(), CHUNKS)
    truncate(broker, 4)
    broker.stop()
    again = Broker(broker.store_rig.crash_copy(tmp_path / "again"))
    segment = names.data_segment("/", "s", again.stream("s").entry.generation)
    read = again.store_rig.do(again.store_rig.store.read, segment, 4 * CHUNK, CHUNK)
    change_on_disk(again.store_rig, read.data, (40, 0xFF))

    logs, stream = again.streams.logs, again.stream("s")
    again.store_rig.run(logs.look_up_all())
    assert (logs.extent_at_hand(stream), stream.log) == (None, None)
    described = extent(again)

    assert again.stream("s").log is not None
    assert described == extent_of(again.log("s"))
    assert described.next_offset == CHUNKS
    again.close()
