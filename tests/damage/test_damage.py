"""Files of a store are damaged from seeds: nothing wrong is delivered, no other stream is harmed.

Version 1 of the format notices damage to chunks, to what is derived from them, and to the
checkpoint. Files of the journal and of tables are for a format that guards them.
"""

from __future__ import annotations

import logging
import shutil
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from gateway.log import index as index_module
from gateway.log import log as log_module
from gateway.log.errors import LogError
from gateway.log.locating import StartKind, locate
from gateway.log.log import StreamLog
from gateway.log.opening import LogNames, LogSettings, open_log
from gateway.log.persisting import save_log
from store.errors import StoreError
from store.local.checkpoint import CHECKPOINT
from tests.conformance.harness import Loop
from tests.damage.places import SINGLE, damage, swap
from tests.unit.gateway.log.log_rig import LogRig, put
from tests.unit.gateway.log.test_cursor import offsets_and_records

SEEDS = 100
SECONDS_MAX = 20.0
BYTES_MAX = 200 << 20
STREAMS = 4
CHUNKS = 40

Records = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Built:
    """A data directory, what its streams hold, and the files of each."""

    directory: Path
    records: list[Records]
    files: list[list[Path]]


def names_of(stream: int) -> LogNames:
    segments = (
        f"rmq-.2f/_s{stream}-{stream}{kind}/0.#epoch.0" for kind in ("", "-index", "-filters")
    )
    return LogNames(f"s{stream}", *segments)


def open_stream(rig: LogRig, stream: int) -> StreamLog:
    names = names_of(stream)
    ports = rig.ports()
    ports.save = lambda log, snapshot: rig.saving.append(
        save_log(rig.store, rig.tracking, stream, names, log, snapshot)
    )
    return rig.run(
        open_log(
            rig.store,
            names,
            ports,
            snapshot=rig.run(rig.tracking.load_snapshot(stream)),
            replace_snapshot=partial(rig.tracking.replace_snapshot, stream),
            epoch=1,
            settings=LogSettings(100),
        )
    )


@pytest.fixture(scope="module", autouse=True)
def small_parts() -> Iterator[None]:
    """Many spans and snapshots without many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "SPAN_BYTES", 3_000)
        patch.setattr(log_module, "SNAPSHOT_CHUNKS", 16)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    directory = tmp_path_factory.mktemp("built") / "data"
    rig = LogRig(directory)
    records: list[Records] = []
    files: list[list[Path]] = []
    for stream in range(STREAMS):
        before = set((directory / "data").iterdir())
        rig.do(rig.store.create_segment, names_of(stream).data_segment)
        log = open_stream(rig, stream)
        for number in range(CHUNKS):
            values = [b"v%d" % (number % 3)] if stream % 2 else ()
            bodies = [
                b"%d %d %d" % (stream, number, n) * 20 for n in range(stream + number % 3 + 1)
            ]
            put(log, bodies, reference=b"p%d" % (number % 2), first_id=number * 10, values=values)
            rig.settle(log)
        records.append(offsets_and_records(rig.cursor(log).all_now()))
        files.append(sorted(set((directory / "data").iterdir()) - before))
    rig.close()
    return Built(directory, records, files)


def read_all(rig: LogRig, stream: int) -> Records:
    """Read a stream from its start, and from an offset in the middle."""
    log = open_stream(rig, stream)
    whole = offsets_and_records(rig.cursor(log, log.start).all_now())
    start = rig.run(locate(log, StartKind.OFFSET, 50))
    rest = offsets_and_records(rig.cursor(log, start.position).all_now())
    assert [each for each in rest if each[0] >= 50] == [each for each in whole if each[0] >= 50]
    return whole


def trial(
    built: Built,
    directory: Path,
    harmed: Sequence[int],
    done: Sequence[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Open a damaged directory, read everything, and hold what must hold."""
    caplog.clear()
    began = time.monotonic()
    rig: LogRig | None = None
    tracemalloc.start()
    try:
        try:
            rig = LogRig(directory, loop=Loop())
        except StoreError as error:
            is_one_line = len(str(error).splitlines()) == 1
        else:
            is_one_line = True
        assert is_one_line, done
        if rig is None:
            return
        for stream in range(STREAMS):
            try:
                found = read_all(rig, stream)
            except (StoreError, LogError):
                assert stream in harmed, (stream, done)
                continue
            assert set(found) <= set(built.records[stream]), (stream, done)
            assert found == sorted(found), (stream, done)
            if found != built.records[stream]:
                assert stream in harmed, (stream, done)
                levels = {each.levelno for each in caplog.records}
                assert levels & {logging.WARNING, logging.ERROR}, (stream, done)
        rig.close()
        _, most = tracemalloc.get_traced_memory()
        assert most < BYTES_MAX, done
        assert time.monotonic() - began < SECONDS_MAX, done
        assert all(each.exc_info is None for each in caplog.records), done
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damage_to_a_streams_files_is_not_delivered_and_harms_no_other_stream(
    built: Built, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    stream = seed % STREAMS
    directory = tmp_path / "data"
    shutil.copytree(built.directory, directory)
    files = [directory / "data" / path.name for path in built.files[stream]]
    done = damage(seed, files, SINGLE, 20)

    trial(built, directory, [stream], done, caplog)


@pytest.mark.parametrize("seed", range(10))
def test_swapped_files_of_a_stream_are_noticed(
    built: Built, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    stream = seed % STREAMS
    directory = tmp_path / "data"
    shutil.copytree(built.directory, directory)
    files = [directory / "data" / path.name for path in built.files[stream]]
    done = damage(seed, files, [swap], 1)

    trial(built, directory, [stream], done, caplog)


@pytest.mark.parametrize("seed", range(10))
def test_a_damaged_checkpoint_refuses_the_start_in_one_line(
    built: Built, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(built.directory, directory)
    done = damage(seed, [directory / CHECKPOINT], SINGLE, 3)

    trial(built, directory, [], done, caplog)
