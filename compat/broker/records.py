"""The brokers that were started on this machine, for another process to find and stop.

<cache>/hutch/brokers/<name>/record.json   what is below
                             server.log    what the broker printed
                             certificates/ what it shows to clients over TLS, and one for them
                             home/         what the broker wrote; removed with it
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from compat import certificates
from compat.broker.ports import Ports
from compat.broker.processes import start_ticks
from compat.broker.tree import cache_folder
from compat.certificates import Certificates

# A start writes its record within milliseconds of making the folder.
HALF_MADE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process, named so that another one that gets its id later is not taken for it."""

    pid: int
    start_ticks: int

    def is_running(self) -> bool:
        """Return whether exactly this process still runs."""
        return start_ticks(self.pid) == self.start_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One started broker.

    Attributes:
        name: Its folder's name.
        way: `container` or `chroot`.
        ports: What it listens on.
        runner: The process that ends with it; None for a container.
        container: The container's id; empty for a chroot.
        owner: The process that wanted it, which takes it along when it ends; None if the broker
            is to stay until it is stopped by name.
    """

    name: str
    way: str
    ports: Ports
    runner: Process | None = None
    container: str = ""
    owner: Process | None = None


def folder_of(name: str) -> Path:
    """Return the folder of the broker with that name."""
    return cache_folder() / "brokers" / name


def certificates_of(name: str) -> Certificates:
    """Return the certificates of the broker with that name."""
    return Certificates(folder_of(name) / "certificates")


def new_folder(name: str) -> tuple[str, Path]:
    """Make the folder of a new broker.

    Args:
        name: Its name; empty picks one.

    Returns:
        The name and the folder, empty but for `home` and fresh certificates.

    Raises:
        FileExistsError: A broker of that name is recorded.
    """
    chosen = name or secrets.token_hex(4)
    folder = folder_of(chosen)
    (folder / "home").mkdir(parents=True)
    certificates.make(certificates_of(chosen).folder)
    return chosen, folder


def myself() -> Process:
    """Return the process that runs this code."""
    ticks = start_ticks(os.getpid())
    assert ticks is not None
    return Process(pid=os.getpid(), start_ticks=ticks)


def save(record: Record) -> None:
    """Write the record into its folder."""
    text = json.dumps(asdict(record), indent=1)
    (folder_of(record.name) / "record.json").write_text(text + "\n")


def load(name: str) -> Record | None:
    """Read the record of a broker; None if there is none, or it was left half made."""
    try:
        found = json.loads((folder_of(name) / "record.json").read_text())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None
    for part in ("runner", "owner"):
        found[part] = Process(**found[part]) if found[part] else None
    known = {field.name for field in fields(Ports)}
    ports = {which: port for which, port in found["ports"].items() if which in known}
    return Record(**{**found, "ports": Ports(**ports)})


def all_records() -> list[Record]:
    """Return every record, by name."""
    folder = cache_folder() / "brokers"
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    return [record for name in names if (record := load(name)) is not None]


def forget_half_made() -> None:
    """Remove the folders that were made long ago and never got a record."""
    folder = cache_folder() / "brokers"
    for entry in folder.iterdir() if folder.is_dir() else ():
        is_old = time.time() - entry.stat().st_mtime > HALF_MADE_S
        if is_old and load(entry.name) is None:
            forget(entry.name)


def forget(name: str) -> None:
    """Remove the broker's folder with everything that it wrote."""
    shutil.rmtree(folder_of(name), ignore_errors=True)
