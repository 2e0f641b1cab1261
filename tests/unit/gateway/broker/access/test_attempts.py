"""Counting attempts to log in, and who is over the limit; bounded for any number of addresses."""

import tracemalloc

from gateway.broker.access.attempts import SOURCES_MAX, USERS_MAX, AttemptLedger


class Rig:
    """A ledger whose clock the test sets."""

    def __init__(self, **options: int) -> None:
        self.now_s = 1000.0
        self.ledger = AttemptLedger(lambda: self.now_s, **options)

    def fail(self, times: int, source: str = "10.0.0.1") -> None:
        for _ in range(times):
            self.ledger.failed(source, "stream")
            self.ledger.guessed_wrong(source, "app")


def test_the_limit_is_reached_by_so_many_in_a_second_and_not_by_fewer() -> None:
    rig = Rig(failed_a_second_max=100)
    for _ in range(10):  # ninety a second for as long as one likes
        rig.fail(90)
        assert not rig.ledger.is_over("10.0.0.1", "app")
        rig.now_s += 1

    rig.fail(100)

    assert rig.ledger.is_over("10.0.0.1", "app")
    assert not rig.ledger.is_over("10.0.0.2", "app")


def test_what_may_fail_comes_back_as_time_goes_by() -> None:
    rig = Rig(failed_a_second_max=100)
    rig.fail(100)
    rig.now_s += 0.005
    assert rig.ledger.is_over("10.0.0.1", "app")
    rig.now_s += 0.5
    assert not rig.ledger.is_over("10.0.0.1", "app")

    rig.fail(50)

    assert rig.ledger.is_over("10.0.0.1", "app")


def test_many_that_fail_at_one_moment_are_forgiven_within_two_seconds() -> None:
    rig = Rig(failed_a_second_max=100)
    rig.fail(10_000)
    rig.now_s += 0.99
    assert rig.ledger.is_over("10.0.0.1", "app")

    rig.now_s += 1.1

    assert not rig.ledger.is_over("10.0.0.1", "app")


def test_what_was_not_read_prolongs_nothing() -> None:
    rig = Rig(failed_a_second_max=10)
    rig.fail(10)
    for _ in range(1000):
        rig.ledger.failed("10.0.0.1", "stream", is_unread=True)

    rig.now_s += 0.11

    assert not rig.ledger.is_over("10.0.0.1", "app")


def test_a_limit_of_0_is_none() -> None:
    rig = Rig(failed_a_second_max=0)

    rig.fail(10_000)

    assert not rig.ledger.is_over("10.0.0.1", "app")


def test_many_addresses_take_no_more_memory_and_their_sum_stays_right() -> None:
    rig = Rig()
    addresses = [f"10.{n >> 16}.{(n >> 8) & 255}.{n & 255}" for n in range(100_000)]
    for address in addresses[: 2 * SOURCES_MAX]:
        rig.fail(1, address)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for address in addresses[2 * SOURCES_MAX :]:
        rig.fail(1, address)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # All that is kept was replaced, and so is counted now: about 300 bytes a source.
    assert after - before < SOURCES_MAX * 1024
    assert len(rig.ledger.by_source()) == SOURCES_MAX
    assert rig.ledger.by_source()[-1][0] == addresses[-1]
    ((protocol, total),) = rig.ledger.by_protocol()
    assert (protocol, total.failed) == ("stream", len(addresses))


def test_counts_begin_again_and_the_limit_does_not() -> None:
    rig = Rig(failed_a_second_max=10)
    rig.fail(10)

    rig.ledger.reset()

    assert rig.ledger.by_source() == []
    assert rig.ledger.by_protocol() == []
    assert rig.ledger.is_over("10.0.0.1", "app")


def test_users_are_limited_one_by_one_and_their_names_take_little_memory() -> None:
    rig = Rig(failed_a_second_max=1)
    rig.ledger.guessed_wrong("10.0.0.1", "a" * 8_000)

    assert rig.ledger.is_over("10.0.0.1", "a" * 8_000)
    assert not rig.ledger.is_over("10.0.0.1", "b")
    for number in range(2 * USERS_MAX):
        rig.ledger.guessed_wrong("10.0.0.1", f"{number} ".ljust(8_000, "x"))
    assert len(rig.ledger._allowances) <= USERS_MAX
    assert sum(len(name) for _, name in rig.ledger._allowances) <= 255 * USERS_MAX
