"""A data directory of format version 1 on a real small file system: taken over, or left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.stores import listed, unpacked
from tests.integration.server import HutchServer, ServerDidNotStart
from tests.integration.small_disk import small_disk

DISK_BYTES = 96 * 1024 * 1024
LEFT_BYTES = 128 * 1024


def files_of(data: Path) -> dict[str, bytes]:
    """What a data directory holds, but for what every start leaves in it."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in sorted(data.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def fill(directory: Path) -> Path:
    """Take all but a little of the disk's space."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(64 * 1024)):
                pass
        except OSError:
            file.truncate(file.tell() - LEFT_BYTES)
    return ballast


@pytest.mark.parametrize("name", ["served-closed", "served-killed"])
def test_without_room_a_store_of_version_1_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    with small_disk(tmp_path, DISK_BYTES) as disk:
        stored, expected = unpacked(1, name, disk)
        # What the server prints lies beside the link, and not on the small disk.
        data = tmp_path / name
        data.symlink_to(stored)
        ballast = fill(disk)
        before = files_of(stored)
        with pytest.raises(ServerDidNotStart) as refused:
            HutchServer(data).close()
        lines = [line for line in refused.value.output.splitlines() if "no room to take" in line]
        assert len(lines) == 1
        assert "nothing was changed" in lines[0]
        assert "Traceback" not in refused.value.output
        assert files_of(stored) == before

        ballast.unlink()
        with HutchServer(data) as server:
            assert "store was taken over from version 1 of its format" in server.logs
            assert listed(server) == expected["listed"]
