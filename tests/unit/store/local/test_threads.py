import logging
import threading
import time
from functools import partial

import pytest

from store.local.threads import Worker, run_all
from tests.waiting import HANG_S


def test_jobs_run_in_order_on_one_thread_of_their_own() -> None:
    worker = Worker("test")
    seen: list[tuple[int, str]] = []

    def note(number: int) -> None:
        seen.append((number, threading.current_thread().name))

    for number in range(50):
        worker.submit(partial(note, number))
    worker.stop_threads()
    assert seen == [(number, "store-test-0") for number in range(50)]


def test_a_worker_without_jobs_has_no_thread() -> None:
    before = threading.active_count()
    worker = Worker("test", 3)
    assert threading.active_count() == before
    worker.stop_threads()


def test_stopping_finishes_what_is_queued() -> None:
    worker = Worker("test")
    seen: list[int] = []
    worker.submit(lambda: time.sleep(0.05))
    worker.submit(lambda: seen.append(1))
    worker.stop_threads()
    assert seen == [1]


def test_a_job_that_comes_after_the_stop_is_done_by_who_brings_it() -> None:
    worker = Worker("test")
    worker.submit(lambda: None)
    worker.stop_threads()
    seen: list[str] = []
    worker.submit(lambda: seen.append(threading.current_thread().name))
    assert seen == [threading.current_thread().name]
    worker.stop_threads()


def test_a_job_that_fails_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker("test")
    seen: list[int] = []
    with caplog.at_level(logging.ERROR):
        worker.submit(lambda: 1 // 0)
        worker.submit(lambda: seen.append(1))
        worker.stop_threads()
    assert seen == [1]
    assert "store job failed thread=test" in caplog.text


def test_threads_that_share_a_queue_do_not_wait_for_each_other() -> None:
    worker = Worker("test", 2)
    blocked, done = threading.Event(), threading.Event()
    worker.submit(lambda: blocked.wait(HANG_S))
    worker.submit(done.set)
    assert done.wait(HANG_S)
    blocked.set()
    worker.stop_threads()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_all_jobs_of_a_set_have_run_when_it_returns(count: int) -> None:
    helpers = Worker("test", 3)
    seen: list[int] = []

    def job(number: int) -> None:
        time.sleep(0.005)
        seen.append(number)

    run_all([partial(job, number) for number in range(count)], helpers, 3)
    assert sorted(seen) == list(range(count))
    helpers.stop_threads()


def test_a_set_of_jobs_overlaps() -> None:
    helpers = Worker("test", 3)
    meeting = threading.Barrier(3, timeout=HANG_S)
    run_all([meeting.wait] * 3, helpers, 3)
    helpers.stop_threads()
