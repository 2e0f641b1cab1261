"""Streams and super streams as sources of a route, on a server of the test's own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import cramjam
import pytest

from gateway.bridge import streams
from gateway.bridge.ends import BYTES_MAX, Parcel, first_lost
from gateway.bridge.routes import (
    StreamSource,
    SuperStreamSource,
)
from gateway.bridge.streams import CODECS, NO_PLACE, StreamRecords
from hutch.formats.entries import SubBatchCodec
from hutch.stream import messages as m
from hutch.stream import offsets
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import OffsetSpec
from tests.chunks import SubBatch
from tests.fake_server import chunks
from tests.property.pyspark_hutch.chunk_rig import chunk_of
from tests.unit.gateway.bridge.bridge_rig import ended, route, soon
from tests.unit.gateway.bridge.stream_rig import BridgeServer
from tests.waiting import wait_until

OWNED = "hutch-bridge-r"


@pytest.fixture
def server() -> Iterator[BridgeServer]:
    with BridgeServer("s") as fake:
        yield fake


def uri(server: BridgeServer) -> str:
    return f"rabbitmq-stream://guest:guest@127.0.0.1:{server.port}"


def source(server: BridgeServer, window: int = 10, **given: Any) -> StreamRecords:  # noqa: ANN401
    kind = SuperStreamSource if "super_stream" in given else StreamSource
    fields = {"uri": uri(server)} | ({} if "super_stream" in given else {"stream": "s"}) | given
    end = kind.model_validate(fields)
    return StreamRecords(route(source=end, window=window), end)


async def taken(end: StreamRecords, count: int) -> list[Parcel]:
    found: list[Parcel] = []
    while len(found) < count:
        found += await end.take()
    return found


# ---- a stream as the source -------------------------------------------------------------------

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "stored", "spec"),
    [
        ("first", None, offsets.FIRST),
        ("last", None, offsets.LAST),
        ("next", None, offsets.NEXT),
        (7, None, offsets.at_offset(7)),
        (MOMENT, None, offsets.at_timestamp(int(MOMENT.timestamp() * 1_000))),
        ("first", 0, offsets.at_offset(1)),
        ("next", 41, offsets.at_offset(42)),
        (7, 41, offsets.at_offset(42)),
        ("last", NO_PLACE, offsets.LAST),
    ],
)
async def test_reading_begins_behind_the_stored_place_or_where_the_route_says(
    server: BridgeServer,
    start: str | int | datetime,
    stored: int | None,
    spec: OffsetSpec,
) -> None:
    if stored is not None:
        server.offsets[OWNED, "s"] = stored
    end = source(server, start=start)

    await end.open()

    (asked,) = server.asked
    assert asked.offset == spec
    assert asked.stream == "s"
    assert asked.credit == streams.CREDIT
    assert asked.properties == {"single-active-consumer": "true", "name": OWNED}
    await end.close()


async def test_a_super_stream_is_read_as_one_group_of_all_its_partitions(
    server: BridgeServer,
) -> None:
    names = ("all-0", "all-1")
    server.streams = {name: chunks(2) for name in names}
    server.super_streams["all"] = names
    end = source(server, super_stream="all")

    await end.open()
    parcels = await taken(end, 4)

    assert [asked.stream for asked in server.asked] == list(names)
    assert all(asked.properties["super-stream"] == "all" for asked in server.asked)
    assert {(each.place["stream"], each.place["offset"]) for each in parcels} == {
        ("all-0", "0"),
        ("all-0", "1"),
        ("all-1", "0"),
        ("all-1", "1"),
    }
    await end.close()


async def test_records_come_in_their_order_with_their_place(server: BridgeServer) -> None:
    server.streams["s"] = chunks(2, 3, body_bytes=1)
    end = source(server)

    await end.open()
    parcels = await taken(end, 5)

    assert [each.record for each in parcels] == [b"0", b"1", b"2", b"3", b"4"]
    assert [each.mark for each in parcels] == [("s", number) for number in range(5)]
    assert parcels[4].place == {"stream": "s", "offset": "4"}
    await end.close()


async def test_records_before_the_place_are_left_out(server: BridgeServer) -> None:
    server.streams["s"] = chunks(5, 5)
    server.offsets[OWNED, "s"] = 6
    end = source(server)

    await end.open()

    assert [each.mark for each in await taken(end, 3)] == [("s", 7), ("s", 8), ("s", 9)]
    await end.close()


async def test_no_more_is_asked_for_than_twice_the_window(server: BridgeServer) -> None:
    server.streams["s"] = chunks(*(2,) * 50)
    end = source(server, window=4)
    await end.open()
    await soon(lambda: len(end._parcels) == 8)
    reading = next(iter(server.talks[0].readings.values()))
    assert reading.credit == 0

    parcels = list(await end.take())
    assert len(end._parcels) == 0
    await end.settle(parcels[:4])
    await soon(lambda: len(end._parcels) == 4)
    await end.settle(parcels[4:])
    await soon(lambda: len(end._parcels) == 8)
    await end.close()


async def test_no_more_is_asked_for_than_64_mib(
    server: BridgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BYTES_MAX == 64 << 20
    server.streams["s"] = chunks(*(2,) * 50, body_bytes=100)
    monkeypatch.setattr(streams, "BYTES_MAX", 5 * len(server.streams["s"][0].data))
    end = source(server, window=1_000)
    await end.open()
    await soon(lambda: len(end._parcels) >= 8)
    reading = next(iter(server.talks[0].readings.values()))

    await soon(lambda: reading.credit == 0)  # the server counts behind what it has sent
    assert len(end._parcels) <= 12

    await end.settle(await end.take())
    await soon(lambda: len(end._parcels) >= 8)
    await end.close()


async def test_a_partition_without_a_chunk_so_far_is_asked_for_no_more(
    server: BridgeServer,
) -> None:
    server.streams["t"] = []
    server.streams["s"] = chunks(*(2,) * 10)
    server.super_streams["all"] = ("s", "t")
    end = source(server, super_stream="all", window=4)
    await end.open()

    await end.settle(await taken(end, 4))
    await soon(lambda: server.count("credit") > 0)

    asked = {each.stream: each.credit for each in server.talks[0].readings.values()}
    assert asked["t"] == streams.CREDIT
    await end.close()


@pytest.mark.parametrize("counts", [(2,) * 20, (20,) * 2, (1, 30, 1, 8)])
async def test_chunks_of_any_size_come_with_the_smallest_window(
    server: BridgeServer, counts: tuple[int, ...]
) -> None:
    server.streams["s"] = chunks(*counts)
    end = source(server, window=1)
    await end.open()

    marks: list[object] = []
    while len(marks) < 40:
        for parcel in await end.take():
            marks.append(parcel.mark)
            await end.settle([parcel])

    assert marks == [("s", number) for number in range(40)]
    await end.close()


async def test_a_chunk_without_a_new_record_holds_up_nothing(server: BridgeServer) -> None:
    server.streams["s"] = chunks(*(2,) * 6)
    server.offsets[OWNED, "s"] = 1
    end = source(server, window=1)
    await end.open()
    number = server.asked[0].subscription_id
    for _ in range(3):
        server.talks[0].deliver(number, server.streams["s"][0].data)

    count = 0
    while count < 10:
        parcels = await end.take()
        count += len(parcels)
        await end.settle(parcels)

    await end.close()


async def test_places_are_stored_for_half_the_window_and_when_asked(server: BridgeServer) -> None:
    server.streams["s"] = chunks(10)
    end = source(server, window=6)
    await end.open()
    parcels = await taken(end, 10)

    await end.settle(parcels[:2])
    assert (end.unsaved, server.count("store_offset")) == (2, 0)
    await end.settle(parcels[2:3])
    wait_until(lambda: server.offsets == {(OWNED, "s"): 2})
    assert end.unsaved == 0

    await end.settle(parcels[3:5])
    await end.save()
    wait_until(lambda: server.offsets == {(OWNED, "s"): 4})
    await end.save()
    await end.close()
    assert server.count("store_offset") == 2


@pytest.mark.parametrize(
    ("resolves", "held", "next_offset", "waiting"),
    [
        (True, (5,), 0, 5),
        (True, (5, 5), 7, 3),
        (True, (), 0, 0),
        (True, (5,), 5, 0),
        (False, (5,), 0, None),  # they may be places that the server stores
        (False, (5,), 5, 0),
        (False, (2_000,), 0, 2_000),
    ],
)
async def test_what_waits_is_told_where_it_is_known(
    server: BridgeServer,
    resolves: bool,  # noqa: FBT001  # of the table
    held: tuple[int, ...],
    next_offset: int,
    waiting: int | None,
) -> None:
    server.resolves = resolves
    server.handlers["subscribe"] = lambda talk, asked: talk.reply(asked, m.OK)
    server.streams["s"] = chunks(*held, body_bytes=1)
    end = source(server, start=next_offset)
    await end.open()
    specs = {
        offsets.OffsetType.LAST: server.streams["s"][-1].first if held else 0,
        offsets.OffsetType.NEXT: sum(held),
    }
    resolve = server.handlers["resolve_offset_spec"]

    def resolved(talk: Any, asked: Any) -> None:  # noqa: ANN401
        kind = asked.message.offset.type
        if kind in specs:
            talk.reply(asked, m.ResolvedOffset(ResponseCode.OK, specs[kind]))
        else:
            resolve(talk, asked)

    server.handlers["resolve_offset_spec"] = resolved

    assert await end.waiting() == waiting
    await end.close()


async def test_what_waits_is_not_known_before_a_time_is_found(server: BridgeServer) -> None:
    server.handlers["subscribe"] = lambda talk, asked: talk.reply(asked, m.OK)
    server.streams["s"] = chunks(5)
    end = source(server, start=MOMENT)
    await end.open()

    assert await end.waiting() is None
    await end.close()


async def test_the_active_consumer_begins_behind_the_place_of_the_one_before(
    server: BridgeServer,
) -> None:
    answers: list[Any] = []
    server.handlers["consumer_update"] = lambda _talk, asked: answers.append(asked.message)
    end = source(server)
    await end.open()
    server.offsets[OWNED, "s"] = 9

    update = m.ConsumerUpdate(server.asked[0].subscription_id, active=True)
    server.talks[0].send(_update(update))

    await soon(lambda: answers)
    assert answers[0].offset == offsets.at_offset(10)
    await end.close()


async def test_a_consumer_that_is_no_longer_active_is_lost_and_stores_nothing_more(
    server: BridgeServer,
) -> None:
    server.streams["s"] = chunks(3)
    server.handlers["consumer_update"] = lambda _talk, _asked: None
    end = source(server, window=100)
    await end.open()
    await end.settle(await taken(end, 3))

    update = m.ConsumerUpdate(server.asked[0].subscription_id, active=False)
    server.talks[0].send(_update(update))

    error = await ended(first_lost(end.links))
    assert str(error) == "another bridge reads 's' now"
    await end.save()
    await end.close()
    assert server.offsets == {}


def _update(update: m.ConsumerUpdate) -> bytes:
    body = bytes((update.subscription_id, update.active))
    return b"\0\0\0\x0a\0\x1a\0\1\0\0\0\5" + body


async def test_removing_a_route_forgets_its_places(server: BridgeServer) -> None:
    server.super_streams["all"] = ("s", "t")
    server.streams["t"] = []
    end = source(server, super_stream="all")

    await end.remove()
    await end.close()

    wait_until(lambda: server.offsets == {(OWNED, "s"): NO_PLACE, (OWNED, "t"): NO_PLACE})


# ---- sub-batches ------------------------------------------------------------------------------

BODY = b"".join(len(each).to_bytes(4) + each for each in (b"one", b"two"))


@pytest.mark.parametrize("codec", SubBatchCodec)
async def test_records_in_sub_batches_come_one_by_one(
    server: BridgeServer, codec: SubBatchCodec
) -> None:
    end = source(server)
    await end.open()

    _deliver(server, SubBatch.of([b"one", b"two"], codec), b"three")

    parcels = await taken(end, 3)
    assert [each.record for each in parcels] == [b"one", b"two", b"three"]
    assert [each.mark for each in parcels] == [("s", 0), ("s", 1), ("s", 2)]
    await end.close()


def test_snappy_in_frames_is_opened_too() -> None:
    framed = bytes(cramjam.snappy.compress(BODY))

    assert CODECS[SubBatchCodec.SNAPPY](framed, len(BODY)) == BODY


@pytest.mark.parametrize("codec", CODECS)
def test_what_cannot_be_opened_is_empty(codec: int) -> None:
    assert CODECS[codec](b"nonsense", 10) == b""


async def test_a_sub_batch_that_cannot_be_opened_is_refused_and_the_next_record_comes(
    server: BridgeServer,
) -> None:
    end = source(server)
    await end.open()

    _deliver(server, SubBatch(SubBatchCodec.ZSTD, 2, len(BODY), b"nonsense"), b"three")

    refused, third = await taken(end, 2)
    assert refused.refusal
    assert refused.mark == ("s", 0)
    assert (third.record, third.mark, third.refusal) == (b"three", ("s", 2), None)
    await end.close()


def _deliver(server: BridgeServer, *entries: Any) -> None:  # noqa: ANN401
    server.talks[0].deliver(server.asked[0].subscription_id, chunk_of(*entries))
