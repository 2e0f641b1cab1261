"""Segments that go with their connection."""

from store.wire import error_messages as e
from store.wire import messages as m
from tests.pravega_client import WRITER, WireClient
from tests.pravega_rig import WireServer
from tests.waiting import wait_until


def transient_of(client: WireClient) -> str:
    return client.ask(m.CreateTransientSegment(1, WRITER, "s", ""), m.SegmentCreated).segment


def test_a_transient_segment_is_written_and_merged(client: WireClient) -> None:
    client.create("s")
    name = transient_of(client)
    assert name.startswith("s#transient.")
    client.set_up(name)
    client.append(1, b"large")
    client.ask(m.MergeSegments(1, "s", name, ""), m.SegmentsMerged)
    assert client.content("s") == b"large"


def test_a_transient_segment_goes_with_its_connection(
    server: WireServer, client: WireClient
) -> None:
    client.create("s")
    with server.client() as other:
        names = [transient_of(other), transient_of(other)]
        client.ask(m.GetStreamSegmentInfo(1, names[0], ""), m.StreamSegmentInfo)

    def are_gone() -> bool:
        for name in names:
            client.send(m.GetStreamSegmentInfo(1, name, ""))
        return all(isinstance(client.receive(), e.NoSuchSegment) for _ in names)

    wait_until(are_gone)
