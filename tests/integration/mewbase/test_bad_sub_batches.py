"""Sub-batches that do not hold what they say: what mewbase's clients get in their place."""

from __future__ import annotations

import pytest

from tests.chunks import GZIP, NONE, Entry, SubBatch
from tests.client import Client
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

BAD = SubBatch(GZIP, 4, 28, b"garbage")
MISCOUNTED = SubBatch(NONE, 3, 12, SubBatch.of([b"a"]).body)
ENTRIES: list[Entry] = [b"0", b"1", BAD, b"6", SubBatch.of([b"7", b"8"], GZIP), MISCOUNTED, b"12"]
SENT = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


def publish(server: HutchServer, entries: list[Entry]) -> None:
    with Client.opened(*server.endpoint, user="mew", password="base") as client:
        client.declare(1, "channel1")
        client.publish(1, dict(enumerate(entries)))
        client.confirmed_ids(len(entries))


def positions(client: MewbaseClient, count: int) -> list[tuple[int, bytes]]:
    return [(each["pos"], each["event"]["data"]) for each in client.events(count)]


GOOD = [(0, b"0"), (1, b"1"), (6, b"6"), (7, b"7"), (8, b"8"), (12, b"12")]


def lines(server: HutchServer, text: str) -> list[str]:
    return [line for line in server.logs.splitlines() if text in line]


@pytest.mark.parametrize("settings", [{}, {"HUTCH_MEWBASE__BAD_SUB_BATCHES": "skip"}])
def test_they_are_left_out_and_told_unless_a_setting_says_otherwise(
    start_mewbase: StartMewbase, settings: dict[str, str]
) -> None:
    server = start_mewbase("--durability", "os", **settings)
    publish(server, ENTRIES)
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.subscribe("channel1", startPos=0)

        assert positions(client, len(GOOD)) == GOOD
        assert client.is_silent()

    told = lines(server, "events cannot be delivered")
    assert len(told) == 2
    said = f"channel=channel1 from=2 to=5 reason={SENT} bad_sub_batches=skip"
    assert said in told[0].replace("'", "").replace('"', "")


def test_raw_gives_one_event_of_the_bytes_of_each(start_mewbase: StartMewbase) -> None:
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__BAD_SUB_BATCHES="raw")
    publish(server, ENTRIES)
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.subscribe("channel1", startPos=0)
        whole = positions(client, 8)
        client.subscribe("channel1", startPos=3)
        rest = positions(client, 5)

    assert whole == sorted([*GOOD, (2, BAD.body), (9, MISCOUNTED.body)])
    assert rest == whole[3:], "a bad sub-batch in which a subscription begins is not for it"


def test_fail_delivers_what_is_before_one_and_ends_the_connection(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__BAD_SUB_BATCHES="fail")
    publish(server, ENTRIES)
    for _ in range(2):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            client.subscribe("channel1", startPos=0)
            assert positions(client, 2) == GOOD[:2]
            assert client.is_ended()
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.subscribe("channel1", startPos=6)
        assert positions(client, 3) == GOOD[2:5]
        assert client.is_ended()

    told = lines(server, "events cannot be delivered")
    assert len(told) == 3
    assert "bad_sub_batches=fail" in told[0]
    assert lines(server, "channel 'channel1' cannot be read")


def test_a_durable_subscription_goes_on_behind_one_once_the_setting_lets_it(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__BAD_SUB_BATCHES="fail")
    publish(server, ENTRIES)
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        number = client.subscribe("channel1", startPos=0, durableID="d")
        assert positions(client, 2) == GOOD[:2]
        assert client.is_ended()
    server.environment = {**server.environment, "HUTCH_MEWBASE__BAD_SUB_BATCHES": "raw"}
    server.restart()
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        number = client.subscribe("channel1", durableID="d")
        found = positions(client, 8)
        client.send("ACKEV", subID=number, pos=found[2][0])
        client.ask("UNSUBSCRIBE", subID=99, rID=1)
    assert [position for position, _ in found] == [0, 1, 2, 6, 7, 8, 9, 12]
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.subscribe("channel1", durableID="d")
        assert [position for position, _ in positions(client, 5)] == [6, 7, 8, 9, 12]
