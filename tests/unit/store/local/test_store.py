import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from store.api import Durability
from store.errors import StoreClosed, StoreLocked
from store.files import DirectoryFiles
from tests.conformance.harness import Pending
from tests.simulation.disk import Disk, Failure, Sync
from tests.unit.store.local.opened import WRITER, opened

ROOT = Path(__file__).parents[4]

WRITING = """
import sys
from pathlib import Path
from store.api import Durability
from store.files import DirectoryFiles
from tests.unit.store.local.opened import opened, WRITER

rig = opened(DirectoryFiles(Path(sys.argv[1])), Durability(sys.argv[2]), data_file_bytes=200_000,
             inline_bytes_max=4_096)
names = ["a", "b", "c"]
for name in names:
    if name not in rig.store.catalogue.names:
        rig.create(name)
sessions = {name: rig.writer(name, WRITER) for name in names}
number = max(0, *(session.event_number for session in sessions.values()))
while True:
    number += 1
    data = number.to_bytes(8, "big") * (1 + number * 7919 % 3000)
    pending = [rig.start(session.append, data, number) for session in sessions.values()]
    rig.wait(*pending)
    for name, each in zip(names, pending):
        print(name, number, each.value.position, each.value.size, flush=True)
"""


@pytest.mark.parametrize("durability", Durability)
def test_after_kill_9_at_any_moment_everything_acknowledged_is_there(
    tmp_path: Path, durability: Durability
) -> None:
    expected: list[tuple[str, int, int, int]] = []
    for life in range(3):
        command = [sys.executable, "-c", WRITING, str(tmp_path), durability.value]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for count, line in enumerate(process.stdout):
                if not line.endswith("\n"):
                    break  # killed while it wrote this line into a full pipe
                name, *numbers = line.split()
                number, position, size = map(int, numbers)
                expected.append((name, number, position, size))
                if count == 100 + 57 * life:
                    process.send_signal(signal.SIGKILL)
    assert len(expected) > 300
    rig = opened(DirectoryFiles(tmp_path), durability)
    assert not rig.store.opened_clean
    contents = {name: rig.content(name) for name in "abc"}
    for name, number, position, size in expected:
        stored = contents[name][position : position + size]
        assert stored == number.to_bytes(8, "big") * (size // 8)
        assert rig.writer(name, WRITER).event_number >= number
    rig.close()


def test_a_second_store_on_a_directory_is_refused_and_then_let_in(tmp_path: Path) -> None:
    rig = opened(DirectoryFiles(tmp_path))
    with pytest.raises(StoreLocked):
        opened(DirectoryFiles(tmp_path))
    rig.close()
    opened(DirectoryFiles(tmp_path)).close()


def test_an_empty_store_is_small(tmp_path: Path) -> None:
    rig = opened(DirectoryFiles(tmp_path), journal_file_bytes=8 * 1024 * 1024)
    rig.close()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 12.1 * 1024 * 1024


def test_closing_finishes_what_was_called_before_and_ends_every_thread() -> None:
    before = threading.active_count()
    rig = opened(Disk())
    session = rig.session("a")
    rig.do(rig.reader("a").check, 0, 1, len)
    pending = [rig.start(session.append, b"x", number) for number in range(3)]
    waiting = rig.start(rig.store.read, "a", 99, 1, wait=True)
    closed = rig.start(rig.store.close)
    late = rig.start(session.append, b"x", 3)
    again = rig.start(rig.store.close)
    rig.wait(*pending, waiting, closed, late, again)
    assert [each.value.position for each in pending] == [0, 1, 2]
    assert closed.value is None
    for each in (waiting, late, again):
        each.error(StoreClosed)
    rig.refused(StoreClosed, rig.store.info, "a")
    rig.loop.run_for(0.05)
    assert threading.active_count() == before
    rig._is_open = False


def test_closing_waits_for_a_checkpoint_that_is_on_its_way() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, journal_file_bytes=8_192, checkpoint_bytes=8_192)
    session = rig.session("a")
    pending: list[Pending] = []
    while not rig.store._checkpointer.running:
        pending.append(rig.start(session.append, bytes(100), len(pending)))
        rig.loop.turn()
    rig.close()
    rig.reopen()
    assert rig.store.opened_clean
    assert len(rig.content("a")) == 100 * len(pending)
    rig.close()


def test_closing_ends_once_where_the_journal_has_failed_with_a_checkpoint() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, journal_file_bytes=8_192, checkpoint_bytes=8_192)
    session = rig.session("a")
    names = disk.image().names
    journal = {inode for path, inode in names.items() if path.startswith("journal/")}
    fails = Failure(lambda step: isinstance(step, Sync) and step.inode in journal, times=10**9)
    disk.failures.append(fails)
    count = 0
    while not rig.store._checkpointer.running:
        count += 1
        rig.start(session.append, bytes(100), count)
        rig.loop.turn()
    rig.store._checkpointer.stop_threads()  # its end is on the way to the loop
    assert rig.store._journal.failure is not None
    rig.close(may_fail=True)
    rig.loop.run_for(0.02)
    assert not rig.violations


def test_an_operation_of_every_kind_is_refused_after_the_closing() -> None:
    rig = opened(Disk())
    rig.create("a", b"x")
    reader = rig.reader("a")
    rig.close()
    store = rig.store
    for call, *arguments in (
        (store.create_segment, "b"),
        (store.create_table, "t"),
        (store.delete_segment, "a"),
        (store.merge_segments, "a", "b"),
        (store.open_writer, "a", WRITER),
        (store.open_reader, "a"),
        (store.read, "a", 0, 1),
        (reader.check, 0, 1, len),
        (store.update_table, "a", []),
        (store.table_info, "a"),
    ):
        rig.refused(StoreClosed, call, *arguments)


def test_files_of_what_is_deleted_go_and_give_their_space_back(tmp_path: Path) -> None:
    rig = opened(DirectoryFiles(tmp_path), data_file_bytes=1_000)
    rig.create("a", bytes(1_000))
    for _ in range(3):
        rig.fill("a", bytes(1_000))
    rig.do(rig.store.truncate_segment, "a", 2_500)
    rig.loop.run_for(0.05)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["3", "4"]
    rig.do(rig.store.delete_segment, "a")
    rig.loop.run_for(0.05)
    assert list((tmp_path / "data").iterdir()) == []
    rig.close()
