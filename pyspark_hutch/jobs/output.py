"""Files that jobs write, each whole or not at all; one is the archive for workers.

The archive is a zip of this package and `hutch` for `--py-files`: for workers with only pyarrow and
numpy. It holds Python sources only. The same packages give the same bytes wherever they are
installed: names are sorted, times are fixed, and nothing is compressed, since two versions of zlib
compress differently.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from pyspark_hutch.jobs.errors import JobFailed


@contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes its name in the end, unless there was an error.

    Raises:
        JobFailed: It cannot be written; where it cannot be made at all, before the block begins.
    """
    # A name that none can guess, and never a file or a link that is there already.
    beside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        if file.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        with beside.open("xb") as opened:
            yield opened
        beside.replace(file)
    except OSError as error:
        raise JobFailed(f"cannot write {file}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            beside.unlink()


PACKAGES: Final = ("hutch", "pyspark_hutch")
"""The data source, and the package of ours that it needs."""

_SKIPPED_FOLDERS: Final = ("__pycache__",)

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_READABLE: Final = 0o644 << 16


def write_archive(file: Path, root: Path | None = None) -> int:
    """Write the archive, whole or not at all; return the count of files in it.

    Args:
        file: The archive.
        root: Folder of the packages; by default the one that this module was loaded from.

    Raises:
        JobFailed: The file cannot be written.
    """
    with written_whole(file) as out, ZipFile(out, "w", ZIP_STORED) as archive:
        for name, content in _sources(root or Path(__file__).resolve().parents[2]):
            entry = ZipInfo(name, _EPOCH)
            entry.external_attr = _READABLE
            archive.writestr(entry, content)
        return len(archive.infolist())


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names within the folder, in order, with the contents of the files."""
    found = []
    for folder, folders, files in chain.from_iterable(os.walk(root / each) for each in PACKAGES):
        inside = Path(folder).relative_to(root)
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        found += [inside / name for name in files if name.endswith(".py")]
    for path in sorted(found, key=Path.as_posix):
        yield path.as_posix(), (root / path).read_bytes()
