"""Readers at the tail of a log: woken by commits, and given the same together."""

from functools import partial
from typing import Any, cast

import pytest

from gateway.log.open_chunk import ChunkDelivery
from tests.chunks import SubBatch, chunk_of
from tests.unit.gateway.log.log_rig import LogRig, bytes_of, put


def test_a_reader_that_waits_is_woken_once_by_the_next_commit(rig: LogRig) -> None:
    log = rig.create()
    woken: list[int] = []
    log.readers.when_more(lambda: woken.append(log.committed_next_offset))

    put(log, [b"x"])
    rig.turn_until_appended(log)
    assert woken == []
    rig.settle(log)
    rig.commit(log, b"y")

    assert woken == [1]


def test_a_reader_that_waits_no_longer_is_not_woken(rig: LogRig) -> None:
    log = rig.create()
    woken: list[int] = []

    def wake() -> None:
        woken.append(1)

    log.readers.when_more(wake)
    log.readers.forget(wake)
    log.readers.forget(wake)
    rig.commit(log, b"x")

    assert woken == []


def test_a_reader_that_cannot_be_woken_is_not_in_the_way_of_others(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    woken: list[int] = []

    def fail() -> None:
        raise ValueError("for the test")

    log.readers.when_more(fail)
    log.readers.when_more(lambda: woken.append(1))
    rig.commit(log, b"x")

    assert woken == [1]
    assert "waking a reader failed stream=orders" in caplog.text


@pytest.mark.parametrize("count", [1, 2])
def test_readers_have_company_if_several_of_them_waited(rig: LogRig, count: int) -> None:
    log = rig.create()
    for _ in range(count):
        log.readers.when_more(list)
    rig.commit(log, b"x")

    assert log.readers.has_company == (count > 1)


def test_what_is_shared_is_so_until_the_end_of_the_turn(rig: LogRig) -> None:
    readers = rig.create().readers

    first, second, third = (ChunkDelivery(place, place + 1, 4, b"head") for place in range(3))

    readers.share(0, 10, first)
    readers.share(10, 20, second)
    assert (readers.shared_at, readers.shared_end, readers.shared) == (10, 20, second)
    rig.loop.run_until(lambda: readers.shared is None)
    assert readers.shared_at == -1
    readers.share(20, 30, third)

    assert (readers.shared_at, readers.shared_end, readers.shared) == (20, 30, third)


class NothingRead:
    """A reader of the store from which nothing may be read."""

    start = 0

    def read_cached(self, position: int, size: int) -> bytes:
        raise AssertionError(f"{size} bytes are read at {position}")


def test_a_reader_that_waits_is_given_the_next_chunk_from_memory(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log)
    assert tap.next() is None
    log.reader = cast(Any, NothingRead())
    for number in range(3):
        put(log, [b"%d" % number, SubBatch.of([b"a", b"b"])])
        rig.loop.run_until(partial(lambda count: tap.wake_count > count, number))

        chunk = tap.next()

        assert chunk is not None
        assert chunk_of(bytes_of(chunk)).records() == [b"%d" % number, b"a", b"b"]
        assert (chunk.chunk_id, chunk.next_offset) == (3 * number, 3 * number + 3)
        assert tap.next() is None


def test_a_reader_that_is_late_is_given_the_chunk_from_the_store(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log)
    assert tap.next() is None
    rig.commit(log, b"a")
    rig.loop.run_until(lambda: log.readers.shared is None)

    assert [chunk.records() for chunk in tap.all_now()] == [[b"a"]]


def test_a_chunk_is_not_kept_in_memory_for_readers_that_are_gone(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log)
    assert tap.next() is None
    assert log.readers.is_followed
    tap.cursor.close()

    rig.commit(log, b"a")

    assert not log.readers.is_followed
