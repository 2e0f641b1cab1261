"""A zip of this package for `--py-files`: for workers that have no more than pyarrow and numpy.

It holds Python sources only. Links are followed, so that what is shared with the server is there as
real files. The same package gives the same bytes wherever it is installed: names are sorted, times
are fixed, and nothing is compressed, since two versions of zlib compress differently.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from pyspark_hutch.jobs.output import written_whole

PACKAGE: Final = "pyspark_hutch"

_SKIPPED_FOLDERS: Final = ("__pycache__",)
_SERVERS_OWN: Final = ("shared/stream/wire/kernel",)
"""Needs `cython`, and only the server uses it; a wheel leaves it out as well."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_READABLE: Final = 0o644 << 16


def write_archive(file: Path, root: Path | None = None) -> int:
    """Write the archive, whole or not at all; return the count of files in it.

    Args:
        file: The archive.
        root: Folder of the package; by default of the one that this module is in.

    Raises:
        JobFailed: The file cannot be written.
    """
    with written_whole(file) as out, ZipFile(out, "w", ZIP_STORED) as archive:
        for name, content in _sources(root or Path(__file__).resolve().parents[1]):
            entry = ZipInfo(f"{PACKAGE}/{name}", _EPOCH)
            entry.external_attr = _READABLE
            archive.writestr(entry, content)
        return len(archive.infolist())


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names within the package, in order, with what is in the files."""
    found = []
    for folder, folders, files in os.walk(root, followlinks=True):
        inside = Path(folder).relative_to(root)
        folders[:] = [
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS and (inside / name).as_posix() not in _SERVERS_OWN
        ]
        found += [inside / name for name in files if name.endswith(".py")]
    for path in sorted(found, key=Path.as_posix):
        yield path.as_posix(), (root / path).read_bytes()
