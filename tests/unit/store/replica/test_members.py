"""The members by their beats: roles, lags in messages and seconds, and what was never seen."""

from store.replica.beats import Beat
from store.replica.members import Members


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def active(term: int, number: int) -> Beat:
    return Beat(is_active=True, term=term, number=number)


def beats(*, count: int = 1, **numbers: Beat) -> dict[str, tuple[int, bytes]]:
    return {name: (count, beat.pack()) for name, beat in numbers.items()}


def test_there_is_none_before_the_first_look() -> None:
    assert Members(Clock()).states() == []


def test_the_active_one_is_that_of_the_last_term() -> None:
    members = Members(Clock())

    members.note(beats(a=active(1, 7), b=active(8, 9), c=Beat(term=8, number=9)))

    assert {each.name: each.is_active for each in members.states()} == {
        "a": False,  # it was killed, and said nothing more
        "b": True,
        "c": False,
    }


def test_a_lag_counts_messages_and_the_seconds_since_another_member_has_them() -> None:
    clock = Clock()
    members = Members(clock)
    for number in (10, 20, 30):
        members.note(beats(count=number, a=active(1, number), b=Beat(term=1, number=10)))
        clock.now += 1

    ahead, behind = members.states()

    assert (ahead.lag_messages, ahead.lag_s) == (0, 0.0)
    assert (behind.lag_messages, behind.lag_s) == (20, 2.0)
    members.note(beats(a=active(1, 30), b=Beat(term=1, number=30)))
    assert members.states()[1].lag_messages == 0
    assert members.states()[1].lag_s == 0.0


def test_the_age_of_a_beat_is_counted_from_when_it_was_first_seen() -> None:
    clock = Clock()
    members = Members(clock)
    members.note(beats(a=Beat()))
    clock.now += 5
    members.note(beats(a=Beat(), b=Beat()))
    clock.now += 1

    assert [each.beat_age_s for each in members.states()] == [6.0, 1.0]
    members.note(beats(count=2, a=Beat()))
    assert [(each.name, each.beat_age_s) for each in members.states()] == [("a", 0.0)]


def test_a_lag_behind_all_that_is_remembered_is_as_long_as_that() -> None:
    clock = Clock()
    members = Members(clock)
    for number in range(1, 3_001):
        members.note(beats(count=number, a=active(1, number), b=Beat()))
        clock.now += 1

    behind = members.states()[1]

    assert behind.lag_messages == 3_000
    assert 1_000 < behind.lag_s < 1_100
