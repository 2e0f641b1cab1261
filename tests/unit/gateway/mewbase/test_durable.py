"""Durable subscriptions pass from one connection to the next."""

from gateway.mewbase.durable import Durables

KEY = (7, b"d")


def test_the_later_connection_has_it() -> None:
    closed: list[str] = []
    durables = Durables()

    def first() -> None:
        closed.append("first")

    def second() -> None:
        closed.append("second")

    durables.take(KEY, first)
    durables.take((8, b"d"), second)
    assert closed == []
    durables.take(KEY, second)
    assert closed == ["first"]
    durables.give_up(KEY, first)  # it had lost it already
    durables.take_over(KEY)
    durables.take_over(KEY)
    assert closed == ["first", "second"]


def test_one_that_was_given_up_is_not_closed() -> None:
    durables = Durables()
    durables.take(KEY, lambda: None)
    close = durables._close_of[KEY]
    durables.give_up(KEY, close)
    assert durables._close_of == {}
