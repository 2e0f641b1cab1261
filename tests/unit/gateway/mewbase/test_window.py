"""Windows of subscriptions, against a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.mewbase.window import Window


def test_a_window_is_full_above_its_size_and_opens_at_the_second_one() -> None:
    window = Window(100, 50)
    fills = []
    for position, size in enumerate((50, 50, 1)):
        window.sent(position, size)
        fills.append(window.is_full)
    assert fills == [False, False, True]
    assert (window.is_full, window.room_bytes) == (True, 0)
    window.acknowledge(0)
    assert (window.bytes, window.is_full) == (51, True)
    window.acknowledge(None)
    assert (window.bytes, window.room_bytes, window.is_full) == (1, 99, False)


def test_one_large_event_fills_a_window_and_is_acknowledged_as_any_other() -> None:
    window = Window(100, 50)
    window.sent(7, 1000)
    assert window.is_full
    window.acknowledge(6)
    assert window.is_full
    window.acknowledge(10**9)
    assert (window.bytes, window.is_full) == (0, False)
    window.acknowledge(None)
    assert window.bytes == 0


steps = st.lists(
    st.tuples(st.just("sent"), st.integers(1, 3), st.integers(1, 40))
    | st.tuples(st.just("to"), st.integers(0, 60), st.just(0))
    | st.tuples(st.just("oldest"), st.just(0), st.just(0)),
    max_size=60,
)


@given(steps)
def test_a_window_counts_as_a_list_does(steps: list[tuple[str, int, int]]) -> None:
    window, left, position, is_full = Window(100, 50), list[tuple[int, int]](), 0, False
    for kind, number, size in steps:
        if kind == "sent":
            position += number
            window.sent(position, size)
            left.append((position, size))
            is_full = is_full or sum(size for _, size in left) > 100
        elif kind == "to":
            window.acknowledge(number)
            left = [each for each in left if each[0] > number]
        else:
            window.acknowledge(None)
            del left[:1]
        total = sum(size for _, size in left)
        if kind != "sent" and total <= 50:
            is_full = False
        assert (window.bytes, window.is_full) == (total, is_full)


def test_many_small_events_are_forgotten_in_order() -> None:
    window = Window(1 << 20, 1 << 19)
    for position in range(20_000):
        window.sent(position, 10)
    for position in range(0, 20_000, 7):
        window.acknowledge(position)
        assert window.bytes == (20_000 - position - 1) * 10
