"""Progress of saving: which snapshot is stored next, and what a deletion waits for."""

import pytest

from gateway.log.derived.filter_pages import FilterNotes
from gateway.log.derived.saved import Saved
from gateway.log.derived.snapshot import Snapshot
from gateway.pending import Pending, run


def saved(index_end: int = 0, snapshot_position: int = 0) -> Saved:
    return Saved(FilterNotes(1), index_end=index_end, snapshot_position=snapshot_position)


def snapshot(position: int, *, gives_space: bool = False) -> Snapshot:
    return Snapshot(
        position=position, next_offset=0, timestamp_ms=0, last_chunk_id=0, gives_space=gives_space
    )


@pytest.mark.parametrize(
    ("index_end", "snapshot_position", "is_behind"),
    [(0, 0, True), (50, 50, False), (60, 60, False), (60, 49, True), (59, 60, True)],
)
def test_what_is_stored_is_behind_if_it_lacks_chunks_that_are_gone_or_entries(
    index_end: int, snapshot_position: int, *, is_behind: bool
) -> None:
    found = saved(index_end, snapshot_position)

    assert found.is_behind(50) is is_behind


def test_of_those_that_wait_the_latest_is_stored_and_only_once() -> None:
    found = saved()
    found.ask(snapshot(1))
    found.ask(snapshot(2))

    assert found.take() == snapshot(2)
    assert found.take() is None


def test_one_that_gives_space_does_so_after_another_took_its_place() -> None:
    found = saved()
    found.ask(snapshot(1, gives_space=True))
    found.ask(snapshot(2))

    taken = found.take()
    assert taken is not None
    assert (taken.position, taken.gives_space) == (2, True)


def test_to_stop_drops_what_waits_and_waits_for_what_is_under_way() -> None:
    found = saved()
    found.saving = Pending()
    found.ask(snapshot(1))
    stopped: list[object] = []

    run(found.stop(), stopped.append)
    assert (found.take(), stopped) == (None, [])
    found.saving.settle(None)

    assert stopped == [None]


def test_where_nothing_was_ever_saved_there_is_nothing_to_wait_for() -> None:
    stopped: list[object] = []

    run(saved().stop(), stopped.append)

    assert stopped == [None]
