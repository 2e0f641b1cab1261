"""Files that jobs write, each whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

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
