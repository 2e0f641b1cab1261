"""A protocol without a login gets a part of the sockets, whatever its clients do."""

from __future__ import annotations

from gateway.server.sockets import Quota, Sockets

HERE, THERE = "127.0.0.1", "127.0.0.2"


class Held:
    """A socket, as its owner holds it."""

    def __init__(self, places: Sockets | Quota) -> None:
        self._places = places
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False
        self._places.discard(self)


def come(places: Sockets | Quota, address: str, count: int = 1) -> list[Held]:
    """Let clients come in, as a listener does, and log in at once."""
    came = []
    for _ in range(count):
        if places.make_room(address):
            held = Held(places)
            places.add(held, address)
            places.logged_in(held)
            came.append(held)
    return came


def test_clients_without_a_login_give_way_to_each_other_and_take_no_more_than_their_part() -> None:
    sockets = Sockets(40, lambda *_: None)
    quota = Quota(sockets, 10)
    first = come(quota, HERE, 100)
    others = come(quota, THERE, 100)

    assert sum(held.is_open for held in (*first, *others)) == len(quota) == 10
    assert first[0].is_open is others[0].is_open is False
    assert others[-1].is_open
    assert len(come(sockets, HERE, 100)) == 30


def test_a_client_of_the_quota_gives_way_to_no_stranger_at_another_port() -> None:
    sockets = Sockets(8, lambda *_: None)
    quota = Quota(sockets, 4)
    kept = come(quota, HERE, 2)
    for _ in range(20):
        assert sockets.make_room(THERE)
        sockets.add(Held(sockets), THERE)

    assert all(held.is_open for held in kept)


def test_the_room_for_all_bounds_the_quota_too() -> None:
    sockets = Sockets(4, lambda *_: None)
    quota = Quota(sockets, 4)
    come(sockets, THERE, 4)

    assert come(quota, HERE) == []
