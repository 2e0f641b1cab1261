import time

from gateway.log.kernel.clocks import clock_ms


def test_a_clock_reads_what_the_time_module_reads() -> None:
    for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC):
        before = time.clock_gettime_ns(clock) // 1_000_000
        assert before <= clock_ms(clock) <= time.clock_gettime_ns(clock) // 1_000_000
