import io
import os
import signal
import threading

import pytest

from pyspark_hutch.jobs.runs.progress import JobProgress, Standing, duration, interrupts, megabytes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines_of(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


def test_without_a_terminal_there_is_a_line_every_ten_seconds(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)

    for second in range(26):
        clock.now = 1_000.0 + second
        progress.show(Standing(second * 100, second * 10_000, 5_000 - second * 100, second * 100))

    assert lines_of(out) == [
        "1,000 rows  0.1 MB  100 rows/s  lag 4,000 rows  0:00:40 left",
        "2,000 rows  0.2 MB  100 rows/s  lag 3,000 rows  0:00:30 left",
    ]


def test_rows_of_the_batch_under_way_move_the_line_before_it_is_done(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)

    for second in range(31):
        clock.now = 1_000.0 + second
        read = second * 100
        standing = Standing(0, 0, 2_500 - read, read, reading=read)
        progress.show(standing if read < 2_500 else Standing(2_500, 20_000, 0, 2_500))

    assert lines_of(out) == [
        "0 rows  0.0 MB  100 rows/s  1,000 in this batch  lag 1,500 rows  0:00:15 left",
        "0 rows  0.0 MB  100 rows/s  2,000 in this batch  lag 500 rows  0:00:05 left",
        "2,500 rows  0.0 MB  83 rows/s  lag 0 rows",
    ]


def test_a_terminal_has_a_bar_that_is_drawn_over(clock: Clock) -> None:
    out = Terminal()
    progress = JobProgress(out, clock)

    clock.now += 1
    progress.show(Standing(250, 0, 750, 250))
    clock.now += 1
    progress.show(Standing(500, 0, 500, 500))

    drawn = out.getvalue().split("\r")
    assert drawn[1].startswith("[#####...............]  25 %  250 rows")
    assert drawn[2].startswith("[##########..........]  50 %  500 rows")
    assert "\n" not in out.getvalue()


def test_a_bar_goes_before_a_line_is_printed(clock: Clock) -> None:
    out = Terminal()
    progress = JobProgress(out, clock)
    clock.now += 1
    progress.show(Standing(1, 0, 1, 1))

    progress.say("ending")

    assert out.getvalue().endswith("\r\x1b[Kending\n")


def test_a_terminal_is_drawn_twice_a_second_at_most(clock: Clock) -> None:
    out = Terminal()
    progress = JobProgress(out, clock)

    for _ in range(8):
        clock.now += 0.125
        progress.show(Standing(1))

    assert out.getvalue().count("\r") == 2


def test_while_the_lag_is_unknown_there_is_no_bar_and_no_time(clock: Clock) -> None:
    out = Terminal()
    progress = JobProgress(out, clock)
    clock.now += 1

    progress.show(Standing(10, 1_000_000))

    assert out.getvalue() == "\r10 rows  1.0 MB  10 rows/s\x1b[K"


def test_with_nothing_left_the_bar_is_full_and_no_time_is_left(clock: Clock) -> None:
    out = Terminal()
    progress = JobProgress(out, clock)
    clock.now += 1

    progress.show(Standing(10, 0, 0, 10))

    assert "[####################] 100 %" in out.getvalue()
    assert "lag 0 rows" in out.getvalue()
    assert "left" not in out.getvalue()


def test_the_time_left_goes_by_the_unit_in_which_the_lag_is_counted(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)
    clock.now += 10

    progress.show(Standing(1_000_000, 0, 30, 10, "files"))

    assert lines_of(out)[0].endswith("100,000 rows/s  lag 30 files  0:00:30 left")


def test_the_rate_is_that_of_the_last_half_minute(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)
    rows = 0
    for second in range(100):  # a hundred in a second, then ten
        clock.now += 1
        rows += 100 if second < 60 else 10
        progress.show(Standing(rows))

    assert lines_of(out)[-1].endswith("10 rows/s")


def test_a_job_that_stands_still_names_no_time(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)
    clock.now += 10

    progress.show(Standing(0, 0, 100, 0))

    assert lines_of(out) == ["0 rows  0.0 MB  0 rows/s  lag 100 rows"]


def test_the_last_line_has_rows_bytes_time_and_rate(clock: Clock) -> None:
    out = io.StringIO()
    progress = JobProgress(out, clock)
    clock.now += 100

    progress.end(Standing(1_000, 5_000_000), "done")

    assert lines_of(out) == ["done: 1,000 rows, 5.0 MB, 0:01:40, 10 rows/s"]


def test_without_an_output_nothing_is_shown(clock: Clock) -> None:
    progress = JobProgress(None, clock)
    clock.now += 100

    progress.show(Standing(1, 1, 1, 1))
    progress.say("x")
    progress.end(Standing(), "done")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3_599, "0:59:59"), (90_000, "25:00:00")],
)
def test_durations_are_hours_minutes_and_seconds(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_megabytes_are_millions_of_bytes() -> None:
    assert megabytes(1_234_567_890) == "1,234.6 MB"


def test_the_first_ctrl_c_asks_and_the_second_ends() -> None:
    said: list[str] = []

    with interrupts(said.append) as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)

    assert said == ["ending after this batch; Ctrl-C again ends at once"]


def test_the_handler_from_before_is_set_again() -> None:
    before = signal.getsignal(signal.SIGINT)

    with interrupts(lambda _: None):
        assert signal.getsignal(signal.SIGINT) is not before

    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_ctrl_c_is_left_alone() -> None:
    found: list[bool] = []

    def run() -> None:
        before = signal.getsignal(signal.SIGINT)
        with interrupts(lambda _: None):
            found.append(signal.getsignal(signal.SIGINT) is before)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert found == [True]
