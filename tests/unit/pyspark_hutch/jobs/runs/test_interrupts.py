import os
import signal
import threading

import pytest

from pyspark_hutch.jobs.runs.interrupts import interrupts


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
