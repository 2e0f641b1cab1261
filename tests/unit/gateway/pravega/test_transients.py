"""Segments that go with their connection."""

import pytest

from gateway.pravega import transients as module
from gateway.pravega.transients import OWN_MAX, TABLE, Transients
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from store.api import Done, TablePage
from store.errors import InvalidArgument, StoreError
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


def noted(server: WireServer) -> int:
    """Return how many transient segments a start would delete."""

    def count(done: Done[TablePage]) -> None:
        server.store.iterate_table(TABLE, done=done)

    page = server.ask(count)
    assert not isinstance(page, StoreError), page
    return len(page.entries)


def test_a_merged_segment_is_noted_no_longer(server: WireServer, client: WireClient) -> None:
    client.create("s")
    names = [transient_of(client) for _ in range(3)]
    assert noted(server) == 3
    client.ask(m.MergeSegments(1, "s", names[0], ""), m.SegmentsMerged)
    client.ask(m.MergeSegmentsBatch(1, "s", tuple(names[1:]), ""), m.SegmentsBatchMerged)
    wait_until(lambda: noted(server) == 0)


def test_a_start_spares_the_segments_of_clients_that_are_there_already(
    server: WireServer, client: WireClient
) -> None:
    left: list[object] = []
    made: list[object] = []
    server.on_loop(lambda: Transients(server.store).create("s", WRITER, done=left.append))
    wait_until(lambda: bool(left))
    transients = Transients(server.store)

    def begin_and_create() -> None:
        transients.begin()
        transients.create("s", WRITER, done=made.append)

    server.on_loop(begin_and_create)
    wait_until(lambda: bool(made) and noted(server) == 1)
    client.ask(m.GetStreamSegmentInfo(1, str(made[0]), ""), m.StreamSegmentInfo)
    client.ask(m.GetStreamSegmentInfo(1, str(left[0]), ""), e.NoSuchSegment)


def test_a_connection_has_no_more_than_may_be_and_they_go_with_it(
    server: WireServer, client: WireClient
) -> None:
    client.create("s")
    with server.client() as other:
        request = m.CreateTransientSegment(1, WRITER, "s", "")
        other.send(*[request] * (OWN_MAX + 1))
        answers = [other.receive() for _ in range(OWN_MAX + 1)]
        names = [each.segment for each in answers if isinstance(each, m.SegmentCreated)]
        assert len(names) == OWN_MAX
        assert any(isinstance(each, e.ErrorMessage) for each in answers)
        other.ask(request, e.ErrorMessage)
        other.ask(m.DeleteSegment(1, names[0], ""), m.SegmentDeleted)
        other.ask(m.MergeSegments(1, "s", names[1], ""), m.SegmentsMerged)
        transient_of(other)
        transient_of(other)
        other.ask(request, e.ErrorMessage)
        wait_until(lambda: noted(server) == OWN_MAX)
    wait_until(lambda: noted(server) == 0)
    for name in names:
        client.ask(m.GetStreamSegmentInfo(1, name, ""), e.NoSuchSegment)


def made(server: WireServer, transients: Transients, user: str) -> str:
    """Return the name of a transient segment of a user, or why there is none."""

    def create(done: Done[str]) -> None:
        transients.create("s", WRITER, user, done=done)

    outcome = server.ask(create)
    if isinstance(outcome, str):
        return outcome
    assert isinstance(outcome, InvalidArgument)
    return f"refused: {outcome}"


def test_a_user_has_so_many_on_all_its_connections_and_all_users_so_many(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "USER_TRANSIENTS_MAX", 3)
    monkeypatch.setattr(module, "TRANSIENTS_MAX", 6)
    transients = Transients(server.store)
    names = [made(server, transients, "one") for _ in range(3)]
    assert "refused: user 'one' has 3" in made(server, transients, "one")
    more = [made(server, transients, "two"), *(made(server, transients, "") for _ in range(2))]
    for user in ("two", "three", ""):
        assert "refused: there are 6" in made(server, transients, user)
    assert noted(server) == 6

    server.on_loop(lambda: transients.delete([names[0], more[0]]))
    wait_until(lambda: noted(server) == 4)
    made_again = [made(server, transients, user) for user in ("one", "three", "one")]
    assert [name.startswith("refused: user") for name in made_again] == [False, False, True]
