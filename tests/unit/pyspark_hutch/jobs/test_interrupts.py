import os
import signal
import threading

import pytest

from pyspark_hutch.jobs.interrupts import Interrupts


def test_the_first_ctrl_c_asks_and_the_second_ends() -> None:
    said: list[str] = []

    with Interrupts(said.append) as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.is_asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)

    assert said == ["ending after this batch; Ctrl-C again ends at once"]


def test_what_was_done_about_ctrl_c_before_is_done_again() -> None:
    before = signal.getsignal(signal.SIGINT)

    with Interrupts(lambda _: None):
        assert signal.getsignal(signal.SIGINT) is not before

    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_ctrl_c_is_left_alone() -> None:
    found: list[bool] = []

    def run() -> None:
        before = signal.getsignal(signal.SIGINT)
        with Interrupts(lambda _: None):
            found.append(signal.getsignal(signal.SIGINT) is before)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert found == [True]
