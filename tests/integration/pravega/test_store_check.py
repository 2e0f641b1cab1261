"""`python -m gateway store check` on a directory of a controller, as an administrator runs it."""

from __future__ import annotations

import sys
from pathlib import Path

from gateway.pravega.controller.records.table import RecordTable
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.integration.administrator import hutch
from tests.integration.server import StoreProcess, run_store, run_to_its_end
from tests.unit.gateway.commands.test_store_check_pravega import NEW, delete, filled
from tests.unit.store.local.test_overlay import state_of

WITHOUT_THE_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(("google", "google.protobuf", "h2", "hpack", "hyperframe")))
from gateway import cli
sys.exit(cli.main(sys.argv[1:]))
"""


async def written(data: Path, *, damaged: bool) -> None:
    """Leave in a directory what a controller keeps."""
    world = World(data)
    await awaited((await world.open()).open())
    await awaited(filled(world.controller))
    if damaged:
        await delete(world, NEW)
    await world.close()


async def test_a_missing_segment_is_told_and_the_directory_stays_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await written(data, damaged=True)
    before = state_of(data)

    done = hutch(data, "store", "check", check=False)

    assert (done.returncode, done.stderr) == (1, b"")
    line, last = done.stdout.decode().splitlines()
    assert line == (
        f"damaged: a segment of the stream is missing segment={NEW} stream=scope/stream"
    )
    assert last.endswith(": 1 damaged place")
    assert state_of(data) == before


async def test_the_check_needs_no_library_of_the_controller(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await written(data, damaged=False)

    command = [sys.executable, "-c", WITHOUT_THE_EXTRA, "store", "check", "--data", str(data)]
    done = run_to_its_end(command)

    assert (done.returncode, done.stderr) == (0, b"")
    assert b" 2 Pravega streams with 0 events, 1 reader groups, 1 key-value tables, 1 trans" in (
        done.stdout
    )


async def test_a_row_that_cannot_be_read_is_one_line_at_the_start_and_goes_by_a_repair(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    world = World(data)
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    table = RecordTable(world.store, world.store.for_removal)
    await awaited(table.load())
    await awaited(table.write({b"stream\0scope/broken": b"{"}))
    await world.close()

    started = run_store(data, "--controller-port", "0")
    assert started.returncode == 1
    (line,) = [each for each in started.stderr.splitlines() if "cannot be read" in each]
    assert "the controller's entry b'stream\\x00scope/broken' cannot be read" in line
    assert line.endswith("hutch store check --repair")
    assert "Traceback" not in started.stderr

    assert hutch(data, "store", "check", "--repair", check=False).returncode in {0, 1}
    with StoreProcess(data, "--controller-port", "0") as server:
        server.terminate()
