"""Data files that no segment has: those that may be there go, any other one is kept and told."""

from collections.abc import Callable

import pytest

from store.api import TableEntry
from store.local.recovery.checkpoint_file import CheckpointHead, head_of_checkpoint
from tests.simulation.disk import Create, Disk, Failure, Remove, Step
from tests.unit.store.local.opened import Opened, opened


def head_on(disk: Disk) -> CheckpointHead:
    file = disk.open("checkpoint")
    return head_of_checkpoint(file.read_at(file.size(), 0))


def put(disk: Disk, name: str) -> None:
    disk.open(f"data/{name}", create=True).write_at(b"of somebody else", 0)


def set_aside(disk: Disk) -> list[str]:
    if "set-aside" not in disk.names(""):
        return []
    return [name for each in disk.names("set-aside") for name in disk.names(f"set-aside/{each}")]


def is_checkpoint(step: Step) -> bool:
    return isinstance(step, Create) and step.path == "checkpoint.new"


def no_removal() -> Failure:
    return Failure(
        lambda step: isinstance(step, Remove) and step.path.startswith("data/"), times=10**9
    )


def delete_without_removing(rig: Opened, disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    """Delete segment `a` on a disk that removes no data file."""
    disk.failures = [no_removal()]
    rig.do(rig.store.delete_segment, "a")
    rig.loop.run_until(lambda: "data file was not removed" in caplog.text)


def test_a_file_without_an_owner_is_told_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"given up")
    rig.do(rig.store.delete_segment, "a")
    rig.create("b", b"whole")
    # The checkpoint of the closing names the file as one that may be there until this is told.
    rig.loop.run_until(lambda: rig.store.catalogue.loose == set())
    rig.close()
    put(disk, "1")
    put(disk, "02")
    rig = opened(disk)
    assert sorted(set_aside(disk)) == ["data-02", "data-1"]
    for name in ("1", "02"):
        assert f"data file without an owner is moved to set-aside/ file=data/{name}" in caplog.text
    assert rig.content("b") == b"whole"
    assert disk.names("data") == ["2"]
    rig.close()
    caplog.clear()
    opened(disk).close()
    assert not caplog.records


def test_after_a_good_stop_a_file_with_a_later_number_is_kept() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"whole")
    rig.close()
    put(disk, "99")

    rig = opened(disk)

    assert set_aside(disk) == ["data-99"]
    assert rig.content("a") == b"whole"
    rig.close()


def test_an_opening_without_a_checkpoint_may_leave_a_file_with_a_later_number() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"whole")
    rig.close()
    disk.failures = [Failure(is_checkpoint, times=10**9, is_full=True)]
    rig = opened(disk)
    assert head_on(disk).closed
    rig.crash()
    disk = Disk(disk.image())
    put(disk, "99")

    rig = opened(disk)

    assert set_aside(disk) == []
    assert disk.names("data") == ["1"]
    assert rig.content("a") == b"whole"
    rig.close()


HARMS: dict[str, Callable[[Disk], object]] = {
    "nothing": lambda disk: disk.names(""),
    "a file is missing": lambda disk: disk.remove("data/1"),
    "an entry of a table": lambda disk: disk.open("data/2").write_at(b"?", 5),
}


@pytest.mark.parametrize("harm", HARMS)
def test_after_a_crash_a_file_with_a_later_number_is_kept_where_there_is_damage(harm: str) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"whole")
    rig.do(rig.store.create_table, "t")
    rig.do(rig.store.update_table, "t", [TableEntry(b"key", b"value")])
    rig.close()
    rig = opened(disk)
    rig.crash()
    disk = Disk(disk.image())
    put(disk, "99")
    HARMS[harm](disk)

    rig = opened(disk)

    assert ("data-99" in set_aside(disk)) is (harm != "nothing")
    assert "99" not in disk.names("data")
    rig.close()


def test_what_was_deleted_and_could_not_be_removed_goes_with_the_next_opening(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"given up")
    delete_without_removing(rig, disk, caplog)
    rig.close()
    assert head_on(disk).loose == (1,)
    disk.failures.clear()
    caplog.clear()
    rig = opened(disk)
    assert disk.names("data") == []
    assert not caplog.records
    rig.close()
    assert head_on(disk).loose == ()


def test_a_file_that_waits_for_its_first_commit_is_loose() -> None:
    disk = Disk()
    rig = opened(disk)
    session = rig.session("a")
    pending = rig.start(session.append, b"x" * 100_000, 1)
    assert rig.store.catalogue.loose == {1}
    rig.wait(pending)
    assert rig.store.catalogue.loose == set()
    rig.close()


def test_files_of_a_deletion_since_the_checkpoint_are_no_damage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"given up")
    rig.close()
    rig = opened(disk)
    delete_without_removing(rig, disk, caplog)
    rig.crash()
    caplog.clear()
    left = Disk(disk.image())
    assert left.names("data") == ["1"]
    opened(left).close()
    assert left.names("data") == []
    assert not caplog.records
