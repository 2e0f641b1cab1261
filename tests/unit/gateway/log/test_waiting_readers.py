"""Readers that wait at the end of a log: woken together, and what they share then."""

import pytest

from tests.unit.gateway.log.log_rig import LogRig


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

    readers.share(0, 10, "first")
    readers.share(10, 20, "second")
    assert readers.shared == (10, 20, "second")
    rig.loop.run_until(lambda: readers.shared is None)
    readers.share(20, 30, "third")

    assert readers.shared == (20, 30, "third")
