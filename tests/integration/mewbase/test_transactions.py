"""Transactions: cases 56 to 62, 64 and 65 of the protocol's conformance, and their bounds."""

from __future__ import annotations

from itertools import count

import pytest

from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

_ENDS = count()


def begin(client: MewbaseClient, session: int) -> None:
    assert client.ask("STARTTX", sessID=session, rID=50) == {"rID": 50, "ok": True}


def put(client: MewbaseClient, in_session: int, channel: str, **event: object) -> None:
    answer = client.ask("PUB", channel=channel, sessID=in_session, event=event, rID=51)
    assert answer == {"rID": 51, "ok": True}


def end(client: MewbaseClient, session: int, kind: str = "COMMITTX") -> None:
    assert client.ask(kind, sessID=session, rID=52) == {"rID": 52, "ok": True}


def code_of(client: MewbaseClient, kind: str, **fields: object) -> int:
    """Send a request that is refused; return its errCode."""
    answer = client.ask(kind, rID=53, **fields)
    assert (answer["rID"], answer["ok"]) == (53, False)
    assert answer["errMsg"]
    return int(answer["errCode"])


def events(port: int, channel: str = "channel1") -> list[dict[str, object]]:
    """Return all events of a channel, as another client reads them."""
    end = {"end": next(_ENDS)}
    with MewbaseClient(port) as reader:
        reader.connect()
        reader.publish(channel, end)
        reader.subscribe(channel, startPos=0)
        found: list[dict[str, object]] = []
        while end not in found:
            found.append(reader.events(1)[0]["event"])
    return [event for event in found if "end" not in event]


def test_case_56_events_of_a_transaction_are_seen_with_its_commit_and_in_one_piece(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    other.subscribe("channel1", startPos=0)
    begin(client, 1)
    for number in range(3):
        put(client, 1, "channel1", n=number)
        assert other.ask("PUB", channel="channel2", event={}, rID=9)["ok"] is True
    assert other.is_silent()
    end(client, 1)
    found = other.events(3)
    assert [event["event"] for event in found] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [event["pos"] for event in found] == [0, 1, 2]
    assert len({event["timestamp"] for event in found}) == 1


def test_case_57_nothing_of_an_aborted_transaction_ever_comes(
    client: MewbaseClient, port: int
) -> None:
    begin(client, 1)
    put(client, 1, "channel1", n=1)
    end(client, 1, "ABORTTX")
    assert events(port) == []


def test_case_58_a_session_has_one_transaction(client: MewbaseClient, port: int) -> None:
    begin(client, 1)
    put(client, 1, "channel1", n=1)
    assert code_of(client, "STARTTX", sessID=1) == 101
    put(client, 1, "channel1", n=2)
    end(client, 1)
    assert events(port) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("kind", ["COMMITTX", "ABORTTX"])
def test_case_59_without_a_transaction_there_is_none_to_end(
    client: MewbaseClient, kind: str
) -> None:
    assert code_of(client, kind, sessID=1) == 102
    for ending in ("COMMITTX", "ABORTTX"):
        begin(client, 1)
        end(client, 1, ending)
        assert code_of(client, kind, sessID=1) == 102
    begin(client, 1)


def test_case_60_sessions_and_connections_have_transactions_of_their_own(
    client: MewbaseClient, other: MewbaseClient, port: int
) -> None:
    for session in (1, 2):
        begin(client, session)
    begin(other, 1)
    for session in (2, 1):
        put(client, session, "channel1", session=session)
    put(other, 1, "channel1", session="other")
    end(client, 2, "ABORTTX")
    end(client, 1)
    assert code_of(client, "ABORTTX", sessID=2) == 102
    assert events(port) == [{"session": 1}]
    end(other, 1)
    assert events(port) == [{"session": 1}, {"session": "other"}]


def test_case_61_an_event_beside_a_transaction_is_seen_at_once(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    other.subscribe("channel1", startPos=0)
    begin(client, 1)
    put(client, 1, "channel1", n=2)
    client.publish("channel1", {"n": 0})
    put(client, 7, "channel1", n=1)
    assert [event["event"]["n"] for event in other.events(2)] == [0, 1]
    end(client, 1)
    client.publish("channel1", {"n": 3})
    assert [event["event"]["n"] for event in other.events(2)] == [2, 3]


def test_what_follows_a_commit_without_waiting_for_it_comes_later(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    other.subscribe("channel1", startPos=0)
    some = 20
    for number in range(some):
        client.send("STARTTX", sessID=1, rID=0)
        client.send("PUB", channel="channel1", sessID=1, event={"n": 2 * number}, rID=1)
        client.send("COMMITTX", sessID=1, rID=2)
        client.send("PUB", channel="channel1", event={"n": 2 * number + 1}, rID=3)
    assert [event["event"]["n"] for event in other.events(2 * some)] == list(range(2 * some))
    for _ in range(4 * some):
        assert client.must("RESPONSE")["ok"] is True


def test_case_62_a_transaction_ends_with_its_connection_and_with_the_server(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase()
    for stop in (None, server.kill, server.terminate):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            begin(client, 1)
            put(client, 1, "channel1", n=1)
            if stop is not None:
                stop()
                server.restart()
        assert events(port_of(server)) == []


def test_case_64_a_commit_of_nothing_is_fine_and_a_refused_event_breaks_none(
    client: MewbaseClient, port: int
) -> None:
    begin(client, 1)
    end(client, 1)
    begin(client, 1)
    put(client, 1, "channel1", n=1)
    assert code_of(client, "PUB", channel="nosuch", sessID=1, event={}) == 3
    assert code_of(client, "PUB", channel="channel1", sessID=1, event={"x": bytes(2_000_000)}) == 4
    put(client, 1, "channel2", n=2)
    end(client, 1)
    assert (events(port), events(port, "channel2")) == ([{"n": 1}], [{"n": 2}])


@pytest.mark.parametrize("kind", ["STARTTX", "COMMITTX", "ABORTTX"])
def test_case_65_a_transaction_needs_a_session(client: MewbaseClient, kind: str) -> None:
    assert code_of(client, kind, sessID=-1) == 104
    assert code_of(client, kind) == 104
    assert client.is_ended()


# Beyond the conformance


def test_a_connection_has_so_many_transactions(start_mewbase: StartMewbase) -> None:
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__TRANSACTIONS_MAX="2")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        begin(client, 1)
        begin(client, 2)
        assert code_of(client, "STARTTX", sessID=3) == 104
        end(client, 2)
        begin(client, 3)


def test_a_transaction_that_gets_too_large_can_only_be_aborted(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase(
        "--durability",
        "os",
        HUTCH_MEWBASE__TRANSACTION_BYTES_MAX="10000",
        HUTCH_MEWBASE__TRANSACTIONS_BYTES_MAX="15000",
    )
    with MewbaseClient(port_of(server)) as client, MewbaseClient(port_of(server)) as other:
        for each in (client, other):
            each.connect()
            begin(each, 1)
            begin(each, 2)
        put(client, 1, "channel1", data=bytes(6_000))
        large = {"channel": "channel1", "event": {"data": bytes(6_000)}}
        assert code_of(client, "PUB", sessID=2, **large) == 4
        small = {"channel": "channel1", "event": {}}
        assert code_of(client, "PUB", sessID=2, **small) == 4
        assert code_of(client, "COMMITTX", sessID=2) == 4
        put(other, 1, "channel1", data=bytes(6_000))
        assert code_of(other, "PUB", sessID=2, channel="channel1", event={"d": bytes(3_500)}) == 4
        end(client, 2, "ABORTTX")
        end(client, 1)
        begin(client, 2)
        put(client, 2, "channel1", data=bytes(6_000))
        end(client, 2)
        other.socket.close()
    assert len(events(port_of(server))) == 2


def test_the_largest_transaction_is_stored(start_mewbase: StartMewbase) -> None:
    """All parts are one update of a table, of 16 MiB at most."""
    names = [f"c{number:02}" for number in range(20)]
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__CHANNELS=",".join(names))
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        begin(client, 1)
        for name in names[:16]:
            put(client, 1, name, data=bytes(1_000_000))
        assert client.ask("PUB", channel=names[16], sessID=1, event={"x": bytes(700_000)}, rID=5)[
            "ok"
        ]
        end(client, 1)
        for name in (names[0], names[15]):
            client.subscribe(name, startPos=0)
            assert len(client.events(1)[0]["event"]["data"]) == 1_000_000
        begin(client, 1)
        for name in names[:16]:
            put(client, 1, name, data=bytes(1_040_000))
        too_much = {"channel": names[16], "event": {"x": bytes(140_000)}}
        assert code_of(client, "PUB", sessID=1, **too_much) == 4
        end(client, 1, "ABORTTX")


def test_a_transaction_needs_the_right_to_write_when_it_commits(
    server: HutchServer, client: MewbaseClient, port: int
) -> None:
    begin(client, 1)
    put(client, 1, "channel1", n=1)
    put(client, 1, "channel2", n=1)
    ctl(server, "set_permissions", "mew", ".*", "channel1", ".*")
    assert code_of(client, "PUB", channel="channel2", sessID=1, event={}) == 2
    assert code_of(client, "COMMITTX", sessID=1) == 2
    assert code_of(client, "COMMITTX", sessID=1) == 102
    assert events(port) == []


def test_a_channel_that_is_deleted_refuses_the_commit(
    server: HutchServer, client: MewbaseClient, port: int
) -> None:
    begin(client, 1)
    put(client, 1, "channel1", n=1)
    put(client, 1, "channel2", n=1)
    ctl(server, "delete_stream", "channel2", "--force")
    assert code_of(client, "COMMITTX", sessID=1) == 3
    assert events(port) == []
    begin(client, 1)
    put(client, 1, "channel1", n=2)
    end(client, 1)
    assert events(port) == [{"n": 2}]
