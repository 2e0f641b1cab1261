"""When the loop rests at the end of a turn."""

from collections.abc import Callable

from gateway.server.loop.adaptive_sleep import BUSY_NS, BUSY_TURNS, WINDOW_NS, AdaptiveSleep

REST_US = 100
SECOND_NS = 1_000_000_000
# A loop that is busy enough: a turn every 100 µs.
TURN_NS = 100_000


class Loop:
    """A loop with a clock of its own, whose rests take time on it."""

    def __init__(self, rest_us: int = REST_US) -> None:
        self.now_ns = SECOND_NS
        self.rested_ns: list[int] = []
        self.rest = AdaptiveSleep(rest_us, now_ns=lambda: self.now_ns, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
        self.rested_ns.append(self.now_ns)

    def run(self, length_ns: int, bytes_of_turn: Callable[[int], int]) -> int:
        """Take turns for a while; return how many of them rested.

        Args:
            length_ns: How long.
            bytes_of_turn: Bytes that come for a turn that many nanoseconds after the one before.
        """
        end_ns, rested_before = self.now_ns + length_ns, len(self.rested_ns)
        last_ns = self.now_ns
        while self.now_ns < end_ns:
            self.now_ns += TURN_NS
            self.rest.received_bytes += bytes_of_turn(self.now_ns - last_ns)
            last_ns = self.now_ns
            self.rest.at_end_of_turn()
        return len(self.rested_ns) - rested_before


def by_themselves(passed_ns: int) -> int:
    """Return the bytes of messages that come at a steady rate."""
    return passed_ns // 1_000


def after_each_answer(_passed_ns: int) -> int:
    """Return the bytes of a client that waits for each answer."""
    return 100


def test_under_load_that_lasts_it_rests_nearly_always() -> None:
    loop = Loop()
    assert loop.run(BUSY_NS, by_themselves) == 0
    loop.run(SECOND_NS, by_themselves)
    most = 10 * SECOND_NS // (TURN_NS + REST_US * 1_000)
    assert 0.9 * most < loop.run(10 * SECOND_NS, by_themselves) < most


def test_clients_that_wait_for_answers_are_hardly_delayed() -> None:
    loop = Loop()
    loop.run(20 * SECOND_NS, after_each_answer)
    turns = 60 * SECOND_NS // TURN_NS
    assert 0 < loop.run(60 * SECOND_NS, after_each_answer) < 0.005 * turns


def test_it_ends_soon_after_clients_begin_to_wait() -> None:
    loop = Loop()
    loop.run(2 * SECOND_NS, by_themselves)
    assert loop.run(SECOND_NS // 10, by_themselves)
    loop.run(SECOND_NS + 2 * WINDOW_NS, after_each_answer)
    assert loop.run(SECOND_NS // 10, after_each_answer) == 0


def test_a_loop_with_little_to_do_never_rests() -> None:
    loop = Loop()
    for _ in range(20 * BUSY_TURNS):
        loop.now_ns += 3 * WINDOW_NS // BUSY_TURNS
        loop.rest.received_bytes += 100
        assert not loop.rest.at_end_of_turn()


def test_after_a_load_it_rests_no_longer() -> None:
    loop = Loop()
    loop.run(2 * SECOND_NS, by_themselves)
    loop.now_ns += SECOND_NS
    loop.rest.at_end_of_turn()
    loop.now_ns += SECOND_NS
    assert not loop.rest.at_end_of_turn()


def test_0_is_no_rest_at_all() -> None:
    loop = Loop(rest_us=0)
    assert loop.run(2 * SECOND_NS, by_themselves) == 0
