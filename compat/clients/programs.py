"""The programs: which there are, and how one is built.

`compat/clients/<folder>/build.sh OUT CACHE` builds a program into the empty folder OUT, so that
`OUT/run` runs it. CACHE is a folder that stays, for what makes the next build quick.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compat.broker.tree import cache_folder

FOLDER: Final = Path(__file__).parent
# Rust, from nothing, on two cores with other builds beside it.
BUILD_TIMEOUT_S: Final = 600.0
# What tools leave beside the sources.
NOT_SOURCES: Final = {"node_modules", "target", "__pycache__"}


class Unavailable(Exception):
    """A program cannot be had on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """One client's program.

    Attributes:
        client: What the client is called.
        folder: Where its sources lie, in `parent`.
        needs: The commands that build and run it, each with arguments that print its version.
        module: The Python module that it is; empty if it is built.
        parent: The folder of its folder.
    """

    client: str
    folder: str
    needs: tuple[str, ...] = ()
    module: str = ""
    parent: Path = FOLDER

    @property
    def root(self) -> Path:
        """The folder of its sources."""
        return self.parent / self.folder

    def command(self) -> list[str]:
        """Build the program, unless that is done, and return what runs it.

        Raises:
            Unavailable: A tool is missing, or the build failed.
        """
        if self.module:
            return [sys.executable, "-m", self.module]
        missing = [need for need in self.needs if shutil.which(need) is None]
        if missing:
            raise Unavailable(f"{self.client}: not installed: {', '.join(missing)}")
        return [str(built(self) / "run")]


PROGRAMS: Final = (
    Program("rstream", "python", module="compat.clients.python.rstream_program"),
    Program("rbfly", "python", module="compat.clients.python.rbfly_program"),
    Program("node", "node", ("node", "npm")),
    Program("java", "java", ("java", "mvn")),
    Program("go", "go", ("go",)),
    Program("rust", "rust", ("cargo",)),
)


def sources(root: Path) -> list[Path]:
    """Return a program's own files, in order."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and not NOT_SOURCES.intersection(path.relative_to(root).parts)
    )


def digest(root: Path) -> str:
    """Return what changes with every source of a program."""
    found = hashlib.sha256()
    for path in sources(root):
        found.update(f"{path.relative_to(root.parent)} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def built(program: Program) -> Path:
    """Build a program into the user's cache, unless it is there.

    Raises:
        Unavailable: The build failed; the text ends with what it printed.
    """
    cache = cache_folder() / "clients"
    target = cache / f"{program.folder}-{digest(program.root)}"
    kept = cache / f"{program.folder}-cache"
    kept.mkdir(parents=True, exist_ok=True)
    # One build of a program at a time; the next caller finds it done.
    with (cache / f"{program.folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        staging = cache / f".{target.name}"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        run_build(program, staging, kept)
        for old in cache.glob(f"{program.folder}-????????????"):
            shutil.rmtree(old, ignore_errors=True)
        staging.rename(target)
    return target


def run_build(program: Program, target: Path, kept: Path) -> None:
    """Run a program's build script.

    Raises:
        Unavailable: It failed, or took too long.
    """
    command = ["sh", "-eu", str(program.root / "build.sh"), str(target), str(kept)]
    log = kept / "build.log"
    try:
        with log.open("wb") as output:
            done = subprocess.run(
                command,
                cwd=program.root,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{program.client}: no build within {BUILD_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        printed = log.read_text(errors="replace").strip()
        raise Unavailable(f"{program.client}: the build failed: {printed[-1500:]}")
