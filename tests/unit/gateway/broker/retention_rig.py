"""Streams of small units, written chunk by chunk, with nothing under way in between."""

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

HOUR_MS = 3_600_000
CHUNK = 1_064
SMALL = {"stream-max-segment-size-bytes": "3000"}


def create(client: LinkRig, **arguments: str) -> None:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    assert client.code("create_stream", m.CreateStream("s", given | SMALL)) == ResponseCode.OK


def write(client: LinkRig, count: int, *, reference: str = "", every_ms: int = 0) -> None:
    """Publish records, each in a chunk of its own."""
    client.declare(1, "s", reference)
    for number in range(count):
        client.broker.now_ms += every_ms
        client.publish(1, (number, bytes(1_000)))
        client.broker.settle("s")
        settle(client.broker)
    client.tell("delete_publisher", m.DeletePublisher(1))


def settle(broker: Broker) -> None:
    """Turn until everything that had grown was looked at."""
    stream = broker.stream("s")
    retention = broker.streams.logs.retention
    broker.loop.run_until(lambda: not retention._grown and stream.evaluation is None)


def tick(broker: Broker) -> None:
    """Look at all streams, as the timer does."""
    for part in broker.streams.logs.retention.rounds(broker.streams):
        broker.store_rig.run(part)


def statistics(client: LinkRig) -> dict[str, int]:
    reply = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats("s"))
    return dict(reply.statistics)


def first_chunk(client: LinkRig) -> int:
    return statistics(client)["first_chunk_id"]


def query(client: LinkRig, reference: str) -> tuple[int, int]:
    reply = client.ask(m.StoredOffset, "query_offset", m.QueryOffset(reference, "s"))
    return reply.code, reply.offset
