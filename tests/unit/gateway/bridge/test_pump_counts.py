"""Counts of a route: what is repeated, and when the last message came."""

from gateway.bridge.ends import Parcel
from gateway.bridge.pump import Counts
from tests.unit.gateway.bridge.bridge_rig import parcel, route


async def test_messages_that_come_again_are_counted_by_their_place() -> None:
    counts = Counts()

    counts.take([parcel(0), parcel(1), parcel(2)])
    counts.take([parcel(1), parcel(2), parcel(3)])
    counts.take([Parcel(b"", 0, {"stream": "other", "offset": "1"})])

    assert (counts.taken, counts.repeated) == (7, 2)
    assert counts.highest == {"s": 3, "other": 1}


def test_messages_that_a_broker_marks_are_counted_as_repeated() -> None:
    counts = Counts()
    assert counts.last_at is None

    counts.take([Parcel(b"", 1, is_repeated=True), Parcel(b"", 2)])

    assert (counts.taken, counts.repeated) == (2, 1)
    assert counts.last_at is not None


def test_a_route_has_a_window_of_a_thousand() -> None:
    assert route().window == 1_000
