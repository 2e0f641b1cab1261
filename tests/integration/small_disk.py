"""A real file system of a few megabytes, to fill up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import HANG_S


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[Path]:
    """Mount an ext4 in a file, or a tmpfs where that cannot be; skips the test without both.

    Args:
        directory: Where the file and the mount go.
        size: Bytes.
    """
    image, place = directory / "image", directory / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    in_file = (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)])
    in_memory = (["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)],)
    reasons = []
    for way in (in_file, in_memory):
        reason = _failure_of(way)
        if reason is None:
            break
        reasons.append(reason)
    else:
        pytest.skip(f"no small file system can be mounted here: {'; '.join(reasons)}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _failure_of(commands: Sequence[Sequence[str]]) -> str | None:
    for command in commands:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=HANG_S
            )
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        if done.returncode:
            return f"{command[0]}: {done.stderr.strip()}"
    return None
