"""Connections of the stream client in an event loop, and the leaders of an end's streams."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.bridge import links
from gateway.bridge.ends import EndUnreachable, first_lost
from gateway.bridge.links import StreamEnd, StreamLink
from gateway.bridge.routes import StreamSource, SuperStreamSource
from hutch.client import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.fake_server import Talk, chunks
from tests.unit.gateway.bridge.bridge_rig import ended, route, soon
from tests.unit.gateway.bridge.stream_rig import BridgeServer
from tests.waiting import HANG_S


class Reader(StreamEnd[StreamSource | SuperStreamSource]):
    """An end that only connects."""

    async def open(self) -> None:
        await self.connect(await self.streams())


@pytest.fixture
def server() -> Iterator[BridgeServer]:
    with BridgeServer("s") as fake:
        yield fake


def uri(server: BridgeServer) -> str:
    return f"rabbitmq-stream://guest:secret@127.0.0.1:{server.port}"


def reader(server: BridgeServer, stream: str = "s") -> Reader:
    end = StreamSource(uri=uri(server), stream=stream)
    return Reader(route(source=end), end)


def partitions(server: BridgeServer, name: str = "all") -> Reader:
    end = SuperStreamSource(uri=uri(server), super_stream=name)
    return Reader(route(source=end), end)


async def link_of(server: BridgeServer, pushed: list[object]) -> StreamLink:
    end = StreamSource(uri=uri(server), stream="s")
    place = Endpoint("127.0.0.1", server.port)
    return await StreamLink.to(end, place, "r", lambda _, each: pushed.append(each))


# ---- one connection ---------------------------------------------------------------------------


async def test_a_connection_shows_its_route_and_says_goodbye(server: BridgeServer) -> None:
    link = await link_of(server, [])
    assert server.talks[0].properties["connection_name"] == "hutch bridge, route r"

    await link.close()
    await link.close()

    assert server.count("close") == 1
    assert not link.lost.done()


async def test_what_a_server_pushes_is_taken_as_it_comes(server: BridgeServer) -> None:
    server.streams["s"] = chunks(2, 3)
    pushed: list[object] = []
    link = await link_of(server, pushed)

    link.do(link.client.subscribe, 1, "s", FIRST)

    await soon(lambda: len(pushed) == 2)
    await link.close()


async def test_what_came_while_the_client_waited_for_an_answer_is_taken_too(
    server: BridgeServer,
) -> None:
    def stats(talk: Talk, asked: Decoded) -> None:
        talk.push("publish_confirm", m.PublishConfirm(1, (5,)))
        talk.reply(asked, m.StreamStatsReply(ResponseCode.OK, {}))

    server.handlers["stream_stats"] = stats
    pushed: list[object] = []
    link = await link_of(server, pushed)

    link.ask(m.StreamStatsReply, "stream_stats", m.StreamStats("s"))
    assert pushed == []

    await soon(lambda: len(pushed) == 1)
    await link.close()


@pytest.mark.parametrize("breaks", ["cut", "nonsense", "taker"])
async def test_a_connection_of_no_further_use_is_lost(
    server: BridgeServer, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[object] = []
    link = await link_of(server, pushed)
    if breaks == "cut":
        server.cut()
    elif breaks == "nonsense":
        server.talks[0].send(b"\xff\xff\xff\xff")
    else:
        monkeypatch.setattr(link, "_take", lambda _link, _pushed: 1 / 0)
        server.push("heartbeat", m.Heartbeat())
        server.push("metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s"))

    error = await asyncio.wait_for(ended(first_lost([link])), HANG_S)

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith(f"stream 's' at 127.0.0.1:{server.port}: ")
    assert link.client.fileno() < 0


async def test_an_answer_that_does_not_come_is_a_lost_end(
    server: BridgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert links.TIMEOUT_S == 60
    monkeypatch.setattr(links, "TIMEOUT_S", 0.1)
    server.handlers["stream_stats"] = lambda _talk, _asked: None
    link = await link_of(server, [])

    with pytest.raises(EndUnreachable, match="did not answer in time"):
        link.ask(m.StreamStatsReply, "stream_stats", m.StreamStats("s"))

    await link.close()


async def test_a_server_that_has_been_silent_for_long_is_given_up(
    server: BridgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await link_of(server, [])
    assert link.client.heartbeat_s == 60
    link._beat()
    assert not link.lost.done()

    monkeypatch.setattr(links, "SILENT_BEATS", 0.0)
    link._beat()

    assert "the server is silent" in str(await ended(first_lost([link])))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ResponseCode.AUTHENTICATION_FAILURE, "refused user 'guest'"),
        (ResponseCode.STREAM_NOT_AVAILABLE, "is busy"),
    ],
)
async def test_a_wrong_password_is_a_line_without_it(
    server: BridgeServer, code: ResponseCode, words: str
) -> None:
    server.answer("sasl_authenticate", m.SaslAuthenticateReply(code, b""))

    error = await ended(reader(server).open())

    assert isinstance(error, EndUnreachable)
    assert words in str(error)
    assert "secret" not in str(error)
    assert "\n" not in str(error)


async def test_a_server_that_is_not_there_is_a_line() -> None:
    end = StreamSource(uri="rabbitmq-stream://127.0.0.1:1", stream="s")

    error = await ended(Reader(route(source=end), end).open())

    assert isinstance(error, EndUnreachable)
    assert "Connection refused" in str(error)


# ---- the leaders of streams -------------------------------------------------------------------


async def test_the_server_that_is_named_may_lead(server: BridgeServer) -> None:
    end = reader(server)

    await end.open()

    assert list(end.leaders) == ["s"]
    assert len(server.talks) == len(end.links) == 1
    await end.close()
    assert end.links == []


async def test_a_leader_elsewhere_is_connected_to_once(server: BridgeServer) -> None:
    with BridgeServer() as other:
        names = ("b", "a", "c")
        server.super_streams["all"] = names
        server.answer(
            "metadata",
            m.MetadataReply(
                (m.Broker(0, server.host, server.port), m.Broker(1, other.host, other.port)),
                tuple(
                    m.StreamMetadata(name, ResponseCode.OK, int(name != "a"), ())
                    for name in sorted(names)
                ),
            ),
        )
        mine = {"advertised_host": server.host, "advertised_port": str(server.port)}
        server.answer("open", m.OpenReply(ResponseCode.OK, mine))
        end = partitions(server)

        await end.open()

        ports = [link.client.endpoint.port for link in end.leaders.values()]
        assert list(end.leaders) == list(names)
        assert ports == [other.port, server.port, other.port]
        assert len(end.links) == 2
        await end.close()


@pytest.mark.parametrize(
    ("code", "leader", "words"),
    [
        (ResponseCode.STREAM_DOES_NOT_EXIST, 0, "does not exist"),
        (ResponseCode.STREAM_NOT_AVAILABLE, 0, "not available"),
        (ResponseCode.OK, 0xFFFF, "has no leader"),
    ],
)
async def test_a_stream_without_a_leader_is_a_line(
    server: BridgeServer, code: ResponseCode, leader: int, words: str
) -> None:
    broker = m.Broker(0, server.host, server.port)
    stream = m.StreamMetadata("s", code, leader, ())
    server.answer("metadata", m.MetadataReply((broker,), (stream,)))
    end = reader(server)

    error = await ended(end.open())

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith(f"stream 's' at 127.0.0.1:{server.port}: stream 's': ")
    assert words in str(error)
    await end.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ResponseCode.STREAM_DOES_NOT_EXIST, "does not exist"),
        (ResponseCode.ACCESS_REFUSED, "access"),
    ],
)
async def test_a_super_stream_that_cannot_be_read_is_a_line(
    server: BridgeServer, code: ResponseCode, words: str
) -> None:
    server.answer("partitions", m.StreamsReply(code, ()))
    end = partitions(server)

    error = await ended(end.open())

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith(f"super stream 'all' at 127.0.0.1:{server.port}")
    assert words in str(error)
    await end.close()


async def test_a_stream_that_is_deleted_or_moves_is_a_lost_end(server: BridgeServer) -> None:
    end = reader(server)
    await end.open()

    server.push("metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s"))

    error = await ended(first_lost(end.links))
    assert str(error).startswith("stream 's': ")
    assert "not available" in str(error)


@pytest.mark.parametrize("resolves", [True, False])
async def test_a_server_is_asked_whether_it_resolves_places(
    server: BridgeServer,
    resolves: bool,  # noqa: FBT001  # of the table
) -> None:
    server.resolves = resolves
    server.streams["s"] = chunks(2)
    link = await link_of(server, [])

    assert link.resolves == resolves
    assert link.resolves == resolves
    assert server.count("exchange_command_versions") == 1
    await link.close()


async def test_a_place_that_cannot_be_resolved_is_a_line(server: BridgeServer) -> None:
    link = await link_of(server, [])
    assert link.place_of("s", FIRST) == 0

    with pytest.raises(EndUnreachable, match=r"stream 's' at .*: stream 'none': .* does not exist"):
        link.place_of("none", FIRST)

    await link.close()
