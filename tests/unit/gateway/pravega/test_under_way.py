"""Counting appends on their way."""

from gateway.pravega.under_way import UnderWay

MIB = 1 << 20


def test_a_callback_waits_until_few_bytes_are_left() -> None:
    under_way, calls = UnderWay(), []
    for _ in range(3):
        under_way.begin(8 * MIB)
    under_way.when_drained(lambda: calls.append("drained"))
    under_way.end(8 * MIB)
    assert calls == []
    under_way.end(8 * MIB)
    assert calls == ["drained"]


def test_a_callback_waits_until_no_append_is_left_however_small() -> None:
    whole, calls = UnderWay(), []
    one, other = UnderWay(whole), UnderWay(whole)
    one.begin(0)
    other.begin(5)
    whole.when_none(lambda: calls.append("none"))
    other.end(5)
    assert calls == []
    one.end(0)
    assert calls == ["none"]
    assert whole.in_flight_bytes == 0


def test_where_none_is_under_way_the_callback_comes_at_once() -> None:
    calls: list[str] = []
    UnderWay().when_none(lambda: calls.append("none"))
    assert calls == ["none"]
