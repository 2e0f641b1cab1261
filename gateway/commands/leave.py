"""`hutch leave`: a member of a cluster becomes a plain store again."""

import argparse
import sys
from pathlib import Path
from typing import Final

from gateway.command_line import complain
from store.errors import SegmentFailed, StoreError
from store.files import DirectoryFiles
from store.replica.local_copy import JOINING, LOCK, MEMBER, place_in

DESCRIPTION: Final = """\
Make the data directory of a member a plain store again: `hutch serve` then serves it without a log.

It has everything up to the last message of the log that this member has applied. What the cluster
stores from then on is not in it, and it cannot come back: a directory that joins begins empty, or
as a copy of a member's.

example:
  hutch leave --data /var/lib/hutch
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--data", metavar="DIR", required=True, help="data directory of a member that is stopped"
    )


def run(options: argparse.Namespace) -> int:
    """Make a member's directory a plain store; return the exit code."""
    directory = Path(options.data)
    if not directory.is_dir():
        return complain(f"there is no directory {directory}", 1)
    try:
        number = leave(directory)
    except StoreError as error:
        return complain(f"{directory}: {error}", 1)
    if number is None:
        return complain(f"{directory} is not the data directory of a member of a cluster", 1)
    sys.stdout.write(f"left: {directory} is a plain store, up to message {number} of the log\n")
    return 0


def leave(directory: Path) -> int | None:
    """Make a directory that of no member.

    Returns:
        The number of the last message that it has; None if it is no member's.

    Raises:
        StoreLocked: A server has it.
        StoreError: It cannot be changed.
    """
    files = DirectoryFiles(directory)
    if JOINING in files.names(""):
        raise SegmentFailed("the copy of another member is not whole: start it with --log again")
    place = place_in(files)
    if place is None:
        return None
    lock = files.lock(LOCK)
    try:
        files.remove(MEMBER)
        files.sync_directory("")
    finally:
        lock.close()
    return place.link.number
