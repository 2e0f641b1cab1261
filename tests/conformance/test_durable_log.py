"""Every promise of store/replica/log.py, in memory and on JetStream of one and three servers."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from store.replica.log import NOTHING, Answer, DurableLog, Entry, LogGap, Outcome, Unstored
from tests.conformance.logs import Logs, appended, in_memory, on_jetstream, read_all, stored
from tests.waiting import wait_until

LOGS = [
    "memory",
    pytest.param("one_server", id="jetstream-1"),
    pytest.param("three_servers", id="jetstream-3", marks=pytest.mark.slow),
]


@pytest.fixture(params=LOGS)
def logs(request: pytest.FixtureRequest) -> Iterator[Logs]:
    servers = None if request.param == "memory" else request.getfixturevalue(request.param)
    with in_memory() if servers is None else on_jetstream(servers) as logs:
        yield logs


@pytest.fixture
def log(logs: Logs) -> DurableLog:
    return logs.open()


def in_flight(
    log: DurableLog, after: int | Answer[Outcome], messages: Sequence[bytes]
) -> list[Answer[Outcome]]:
    """Append messages one behind the other, without waiting."""
    answers: list[Answer[Outcome]] = []
    for message in messages:
        answers.append(log.append(message, answers[-1] if answers else after))
    return answers


def test_a_new_log_has_nothing(log: DurableLog) -> None:
    assert log.last() is None
    assert list(log.read(1, 10)) == []
    assert log.beats() == {}


def test_each_message_is_at_the_position_that_its_append_returned(log: DurableLog) -> None:
    messages = [b"a", bytes(1_000), b"\r\n+OK\x00\xff", b"d"]

    positions = appended(log, *messages)

    assert positions == sorted(set(positions))
    assert positions[0] > NOTHING
    expected = [Entry(*each) for each in zip(positions, messages, strict=True)]
    assert read_all(log, 1, 4) == expected


@pytest.mark.parametrize("after", [NOTHING, "first", "ahead"])
def test_an_append_behind_another_than_the_last_message_stores_nothing(
    log: DurableLog, after: int | str
) -> None:
    first, last = appended(log, b"a", b"b")
    positions = {"first": first, "ahead": last + 1}
    position = after if isinstance(after, int) else positions[after]

    assert log.append(b"late", position).wait() is Unstored.OVERTAKEN

    assert log.last() == Entry(last, b"b")
    assert stored(log.append(b"c", last).wait()) > last


def test_the_first_message_is_expected_behind_nothing(log: DurableLog) -> None:
    assert log.append(b"a", 1).wait() is Unstored.OVERTAKEN
    assert log.last() is None
    assert stored(log.append(b"a", NOTHING).wait()) > NOTHING


def test_several_in_flight_are_stored_in_their_order(log: DurableLog) -> None:
    (last,) = appended(log, b"begin")
    messages = [b"%d" % number for number in range(50)]

    answers = in_flight(log, last, messages)

    positions = [stored(answer.wait()) for answer in answers]
    assert positions == sorted(set(positions))
    assert [entry.data for entry in read_all(log, last + 1, 50)] == messages


def test_beats_between_those_in_flight_hold_up_none(log: DurableLog) -> None:
    (last,) = appended(log, b"begin")
    messages = [b"%d" % number for number in range(30)]

    answers = in_flight(log, last, messages[:10])
    beat = log.beat("one", b"alive")
    answers += in_flight(log, answers[-1], messages[10:])

    assert beat.wait()
    positions = [stored(answer.wait()) for answer in answers]
    assert positions[-1] - last > 30
    assert [entry.data for entry in read_all(log, last + 1, 30)] == messages


def test_behind_one_that_was_overtaken_nothing_in_flight_is_stored(logs: Logs) -> None:
    log, other = logs.open(), logs.open()
    (last,) = appended(log, b"begin")
    (fence,) = appended(other, b"fence")

    answers = in_flight(log, last, [b"%d" % number for number in range(20)])

    assert [answer.wait() for answer in answers] == [Unstored.OVERTAKEN] * 20
    assert log.append(b"late", answers[-1]).wait() is Unstored.OVERTAKEN
    assert other.last() == Entry(fence, b"fence")
    assert stored(log.append(b"again", fence).wait()) > fence


def test_of_members_that_append_at_one_place_one_goes_on(logs: Logs) -> None:
    members = [logs.open() for _ in range(3)]
    (last,) = appended(members[0], b"begin")
    start = threading.Barrier(3)
    outcomes: dict[int, Outcome] = {}

    def append(number: int) -> None:
        start.wait()
        outcomes[number] = members[number].append(b"%d" % number, last).wait()

    threads = [threading.Thread(target=append, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ((winner, position),) = [each for each in outcomes.items() if isinstance(each[1], int)]
    assert list(outcomes.values()).count(Unstored.OVERTAKEN) == 2
    for member in members:
        assert member.last() == Entry(stored(position), b"%d" % winner)


def test_the_last_message_is_any_member_s(logs: Logs) -> None:
    one, other = logs.open(), logs.open()
    (first,) = appended(one, b"a")
    assert other.last() == Entry(first, b"a")

    (second,) = appended(other, b"b")

    assert one.last() == Entry(second, b"b")
    assert one.append(b"c", first).wait() is Unstored.OVERTAKEN


@pytest.mark.parametrize("piece", [1, 3, 64])
def test_messages_are_read_in_pieces(log: DurableLog, piece: int) -> None:
    messages = [b"%d" % number for number in range(10)]
    positions = appended(log, *messages)

    assert [each.data for each in read_all(log, 1, 10, piece)] == messages
    assert [each.data for each in read_all(log, positions[4], 6, piece)] == messages[4:]
    assert [each.data for each in read_all(log, 1, 10, piece)] == messages


def test_at_the_end_nothing_is_read_until_more_is_there(logs: Logs) -> None:
    log, other = logs.open(), logs.open()
    (last,) = appended(log, b"a")
    assert list(other.read(last + 1, 10)) == []

    more = appended(log, b"b", b"c")

    assert read_all(other, last + 1, 2) == [Entry(more[0], b"b"), Entry(more[1], b"c")]


def test_beats_lie_beside_messages(log: DurableLog) -> None:
    positions = []
    for number in range(4):
        positions += appended(log, b"%d" % number)
        assert log.beat("one", b"beat").wait()

    assert positions == sorted(set(positions))
    assert positions[-1] - positions[0] > 3
    assert log.last() == Entry(positions[-1], b"3")
    assert [each.position for each in read_all(log, 1, 4)] == positions
    assert [each.position for each in read_all(log, positions[1] + 1, 2)] == positions[2:]


def test_each_member_has_its_last_beat(logs: Logs) -> None:
    log, other = logs.open(), logs.open()
    assert log.beat("one", b"1").wait()
    assert other.beat("two-2_b", b"2").wait()
    first = log.beats()
    assert {name: data for name, (_, data) in first.items()} == {"one": b"1", "two-2_b": b"2"}

    for _ in range(3):
        assert log.beat("one", b"1").wait()

    second = other.beats()
    assert second["one"][0] > first["one"][0]
    assert second["two-2_b"] == first["two-2_b"]
    assert log.last() is None


def test_a_member_that_is_forgotten_has_no_beat_until_the_next(logs: Logs) -> None:
    log, other = logs.open(), logs.open()
    (last,) = appended(log, b"a")
    assert log.beat("one", b"1").wait()
    assert other.beat("two", b"2").wait()

    log.forget("one")
    log.forget("never")

    assert list(other.beats()) == ["two"]
    assert other.last() == Entry(last, b"a")
    assert other.beat("one", b"3").wait()
    assert log.beats()["one"][1] == b"3"


def test_the_largest_message_is_stored_and_read(log: DurableLog) -> None:
    messages = [bytes([number]) * log.bytes_max for number in range(3)]

    positions = appended(log, *messages)

    assert [each.data for each in read_all(log, 1, 3)] == messages
    assert log.last() == Entry(positions[-1], messages[-1])
    assert log.size() >= 3 * log.bytes_max


def test_what_is_trimmed_is_a_gap(log: DurableLog) -> None:
    positions = appended(log, *(b"%d" % number for number in range(6)))
    size = log.size()

    log.trim(positions[3])

    with pytest.raises(LogGap) as gap:
        log.read(1, 10)
    assert gap.value.first == positions[3]
    assert [each.data for each in read_all(log, positions[3], 3)] == [b"3", b"4", b"5"]
    assert log.size() < size
    assert stored(log.append(b"6", positions[-1]).wait()) > positions[-1]


@pytest.mark.parametrize("position", [NOTHING, 1])
def test_nothing_is_below_the_first_message(log: DurableLog, position: int) -> None:
    appended(log, b"a", b"b")

    log.trim(position)

    assert [each.data for each in read_all(log, 1, 2)] == [b"a", b"b"]


def test_the_last_message_is_never_trimmed(log: DurableLog) -> None:
    log.trim(5)
    first, last = appended(log, b"a", b"b")

    log.trim(last + 100)

    assert log.last() == Entry(last, b"b")
    assert stored(log.append(b"c", last).wait()) > last
    with pytest.raises(LogGap):
        log.read(first, 10)


def test_a_reader_is_told_of_what_was_trimmed_before_it_came_there(logs: Logs) -> None:
    log, slow = logs.open(), logs.open()
    positions = appended(log, *(b"%d" % number for number in range(6)))
    read_all(slow, 1, 2, piece=2)

    log.trim(positions[4])

    found: list[LogGap] = []

    def has_told() -> bool:
        try:
            assert slow.read(positions[2], 10) == []  # what it reads from may lag behind
        except LogGap as gap:
            found.append(gap)
        return bool(found)

    wait_until(has_told)
    assert found[0].first == positions[4]


def test_nothing_is_missing_behind_the_message_that_was_trimmed_to(logs: Logs) -> None:
    log = logs.open()
    (first,) = appended(log, b"a")
    assert log.beat("one", b"").wait()
    second, third = appended(log, b"b", b"c")
    assert second > first + 1

    log.trim(first)

    assert [each.data for each in read_all(logs.open(), first + 1, 2)] == [b"b", b"c"]
    assert log.last() == Entry(third, b"c")


def test_a_gap_is_told_beside_the_beats_of_a_member_that_has_gone(log: DurableLog) -> None:
    assert log.beat("gone", b"").wait()
    positions = appended(log, b"a", b"b", b"c")

    log.trim(positions[2])

    with pytest.raises(LogGap):
        log.read(positions[0], 10)


def test_a_member_that_closes_leaves_the_log_to_the_others(logs: Logs) -> None:
    log, other = logs.open(), logs.open()
    (first,) = appended(log, b"a")

    log.close()
    log.close()

    assert other.last() == Entry(first, b"a")
    assert stored(other.append(b"b", first).wait()) > first
