"""Streams and super streams as targets of a route, on a server of the test's own."""

from collections.abc import Iterator
from typing import Any

import pytest

from compat.clients.expected import BY_HASH
from gateway.bridge import streams
from gateway.bridge.ends import EndUnreachable, Parcel, first_lost
from gateway.bridge.routes import (
    StreamTarget,
    SuperStreamTarget,
)
from gateway.bridge.streams import StreamTargetEnd
from hutch.formats.amqp.basic import basic_of
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.bridge.bridge_rig import ended, record, route, soon
from tests.unit.gateway.bridge.stream_rig import BridgeServer

OWNED = "hutch-bridge-r"


@pytest.fixture
def server() -> Iterator[BridgeServer]:
    with BridgeServer("s") as fake:
        yield fake


def uri(server: BridgeServer) -> str:
    return f"rabbitmq-stream://guest:guest@127.0.0.1:{server.port}"


class Writing:
    """A writer, and what it said of each message."""

    def __init__(self, server: BridgeServer, **given: Any) -> None:  # noqa: ANN401
        kind = SuperStreamTarget if "super_stream" in given else StreamTarget
        fields = {"uri": uri(server)} | ({} if "super_stream" in given else {"stream": "s"})
        self.end = kind.model_validate(fields | given)
        self.said: list[tuple[object, str | None]] = []
        self.target = StreamTargetEnd(
            route(target=self.end),
            self.end,
            lambda parcel, refusal: self.said.append((parcel.mark, refusal)),
        )

    async def send(self, *parcels: Parcel) -> None:
        before = len(self.said)
        self.target.send(parcels)
        await soon(lambda: len(self.said) == before + len(parcels))


async def opened(server: BridgeServer, **given: Any) -> Writing:  # noqa: ANN401
    made = Writing(server, **given)
    await made.target.open()
    return made


def of_stream(offset: int, stream: str = "in", body: bytes = b"") -> Parcel:
    place = {"stream": stream, "offset": str(offset)}
    return Parcel(body or str(offset).encode(), offset, place)


async def test_messages_are_stored_in_their_order_and_confirmed(server: BridgeServer) -> None:
    writing = await opened(server)

    await writing.send(Parcel(b"a", 1), Parcel(b"b", 2))
    await writing.send(Parcel(b"c", 3))

    assert server.stored["s"] == [b"a", b"b", b"c"]
    assert writing.said == [(1, None), (2, None), (3, None)]
    assert [each.reference for each in server.declared] == [""]
    await writing.target.close()


async def test_confirms_that_come_late_are_for_the_oldest(server: BridgeServer) -> None:
    server.is_confirming = False
    writing = await opened(server)
    writing.target.send([Parcel(b"a", 1), Parcel(b"b", 2), Parcel(b"c", 3)])
    await soon(lambda: server.withheld == 3)

    server.push("publish_confirm", m.PublishConfirm(0, (1, 2)))
    await soon(lambda: len(writing.said) == 2)
    server.push("publish_confirm", m.PublishConfirm(0, (3,)))
    await soon(lambda: len(writing.said) == 3)

    assert writing.said == [(1, None), (2, None), (3, None)]
    await writing.target.close()


async def test_what_a_server_does_not_store_is_refused_and_the_rest_confirmed(
    server: BridgeServer,
) -> None:
    server.is_confirming = False
    writing = await opened(server)
    writing.target.send([Parcel(b"a", 1), Parcel(b"b", 2), Parcel(b"c", 3)])
    await soon(lambda: server.withheld == 3)

    error = m.PublishingError(2, ResponseCode.ACCESS_REFUSED)
    server.push("publish_error", m.PublishError(0, (error,)))
    server.push("publish_confirm", m.PublishConfirm(0, (1, 3)))
    await soon(lambda: len(writing.said) == 3)

    assert writing.said[0][0] == 2
    assert "access" in str(writing.said[0][1])
    assert writing.said[1:] == [(1, None), (3, None)]
    await writing.target.close()


async def test_what_comes_from_a_stream_is_stored_once_however_often_it_comes(
    server: BridgeServer,
) -> None:
    for first, last in ((0, 3), (1, 5)):
        writing = await opened(server)
        await writing.send(*(of_stream(offset) for offset in range(first, last)))
        assert [refusal for _, refusal in writing.said] == [None] * (last - first)
        await writing.target.close()

    assert server.stored["s"] == [b"0", b"1", b"2", b"3", b"4"]
    names = {each.reference for each in server.declared}
    assert names == {"", f"{OWNED}/in"}


async def test_each_stream_of_the_source_has_a_publisher_of_its_own(server: BridgeServer) -> None:
    writing = await opened(server)

    await writing.send(of_stream(5, "in-0"), of_stream(0, "in-1"), of_stream(6, "in-0"))

    assert sorted(server.stored["s"]) == [b"0", b"5", b"6"]
    declared = [(each.publisher_id, each.reference) for each in server.declared]
    assert declared == [(0, ""), (1, f"{OWNED}/in-0"), (2, f"{OWNED}/in-1")]
    await writing.target.close()


async def test_a_long_name_of_a_stream_is_cut_for_its_publisher(server: BridgeServer) -> None:
    writing = await opened(server)

    await writing.send(of_stream(0, "x" * 255))

    assert server.declared[-1].reference == "x" * 255
    await writing.target.close()


async def test_a_message_above_the_limit_of_a_frame_is_refused_and_the_next_one_goes(
    server: BridgeServer,
) -> None:
    most = (1 << 20) - streams.HEAD_BYTES - streams.ENTRY_BYTES
    writing = await opened(server)

    await writing.send(Parcel(bytes(most + 1), 1), Parcel(bytes(most), 2))

    assert writing.said == [
        (1, f"{most + 1} bytes do not fit into a frame of {1 << 20}"),
        (2, None),
    ]
    await writing.target.close()


async def test_many_messages_go_in_frames_that_the_server_takes(server: BridgeServer) -> None:
    writing = await opened(server)

    await writing.send(*(Parcel(bytes(300_000), number) for number in range(7)))

    assert server.frames == [3, 3, 1]
    assert [mark for mark, _ in writing.said] == list(range(7))
    await writing.target.close()


async def test_a_route_has_no_more_publishers_than_a_connection(
    server: BridgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "IDS", 2)
    writing = await opened(server)
    writing.target.send([of_stream(0, "a")])

    with pytest.raises(EndUnreachable, match="a route has at most 2 publishers"):
        writing.target.send([of_stream(0, "b")])

    await writing.target.close()


@pytest.mark.parametrize(
    ("create", "arguments"),
    [(None, None), ({}, {}), ({"max-age": "1h", "max-length-bytes": 5},) * 2],
)
async def test_a_stream_is_made_if_the_route_says_so(
    server: BridgeServer,
    create: dict[str, object] | None,
    arguments: dict[str, object] | None,
) -> None:
    del server.streams["s"]
    writing = Writing(server, create=create)

    error = await ended(writing.target.open())

    if arguments is None:
        assert isinstance(error, EndUnreachable)
        assert "does not exist" in str(error)
        assert server.made == []
    else:
        assert error is None
        texts = {name: str(value) for name, value in arguments.items()}
        assert server.made == [m.CreateStream("s", texts)]
    await writing.target.close()


async def test_a_stream_that_is_there_need_not_be_made(server: BridgeServer) -> None:
    writing = await opened(server, create={})

    await writing.send(Parcel(b"a", 1))

    await writing.target.close()


async def test_a_stream_that_cannot_be_made_is_a_line(server: BridgeServer) -> None:
    server.answer("create_stream", m.Status(ResponseCode.ACCESS_REFUSED))
    writing = Writing(server, create={})

    error = await ended(writing.target.open())

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith(f"stream 's' at 127.0.0.1:{server.port}: `create`: ")
    await writing.target.close()


async def test_a_missing_right_is_told_at_the_start(server: BridgeServer) -> None:
    server.answer("declare_publisher", m.Status(ResponseCode.ACCESS_REFUSED))
    writing = Writing(server)

    error = await ended(writing.target.open())

    assert isinstance(error, EndUnreachable)
    assert "stream 's'" in str(error)
    await writing.target.close()


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_super_stream_is_made_with_its_partitions_if_there_is_none(
    server: BridgeServer,
    is_there: bool,  # noqa: FBT001  # of the table
) -> None:
    names = ("all-0", "all-1")
    if is_there:
        server.super_streams["all"] = names
        server.streams |= {name: [] for name in names}
    writing = await opened(server, super_stream="all", partitions=2, create={"max-age": "1h"})

    expected = m.CreateSuperStream("all", names, ("0", "1"), {"max-age": "1h"})
    assert server.made == ([] if is_there else [expected])
    assert list(writing.target.leaders) == list(names)
    await writing.target.close()


async def test_a_key_is_found_in_the_partition_where_other_clients_find_it(
    server: BridgeServer,
) -> None:
    writing = await opened(server, super_stream="all", create={}, partition_by="{message_id}")
    numbers = range(30)

    await writing.send(*(Parcel(record(message_id=f"key-{each}"), each) for each in numbers))

    found = {
        str(index): [int(basic_of(each).properties.message_id[4:]) for each in stored]  # type: ignore[index]
        for index, stored in enumerate(server.stored[f"all-{index}"] for index in range(3))
    }
    assert found == BY_HASH
    await writing.target.close()


async def test_a_message_without_the_field_of_its_partition_is_refused(
    server: BridgeServer,
) -> None:
    writing = await opened(server, super_stream="all", create={}, partition_by="{message_id}")

    await writing.send(Parcel(record(), 1), Parcel(record(message_id="m"), 2))

    assert (1, "it has no message_id, which '{message_id}' needs") in writing.said
    assert (2, None) in writing.said
    await writing.target.close()


async def test_a_stream_that_is_deleted_while_it_is_written_is_lost(server: BridgeServer) -> None:
    writing = await opened(server)

    server.push("metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s"))

    assert "not available" in str(await ended(first_lost(writing.target.links)))
