"""A bare Debian system in a folder, in which an ordinary user runs `make test`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compat import debian
from compat.roots import hosting

PACKAGES: Final = (
    *("python3", "python3-venv", "python3-dev", "gcc", "libc6-dev"),
    *("make", "git", "ca-certificates"),
)
USER: Final = "tester"
_CLONE: Final = f"home/{USER}/hutch"
DESCRIPTORS: Final = 1_024
"""As many as a login shell allows at first on Debian."""
# It runs as the first process of its own namespaces: no mount and no process outlives it. What
# is left when the tests have ended is named, and fails the run.
_INSIDE: Final = """
root=$1
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
ulimit -S -n "$2"
run="chroot --userspec=$3:$3 $1"
shift 3
$run "$@"
status=$?
for place in /tmp /dev/shm; do
    left=$($run ls -A $place)
    [ -z "$left" ] || { echo "left in $place:" $left; status=1; }
done
for process in "$root"/proc/[0-9]*; do
    [ "${process##*/}" = 1 ] && continue
    words=$(tr '\\0' ' ' 2>/dev/null <"$process/cmdline")
    [ -z "$words" ] || { echo "left running: $words"; status=1; }
done
exit $status
"""


@dataclass(frozen=True, slots=True)
class Root:
    """A bare system of one release of Debian.

    Attributes:
        suite: The release's name.
        folder: Where its files are.
    """

    suite: str
    folder: Path

    @property
    def log(self) -> Path:
        """The file that takes what its tests print."""
        return self.folder.with_name(f"{self.suite}.log")

    def build(self) -> None:
        """Build it, unless it is there already.

        Raises:
            debian.CannotBuild: Not root, not Debian, no mirror, or debootstrap failed.
        """
        debian.tree(self.folder, self.suite, PACKAGES)
        if f"\n{USER}:" not in (self.folder / "etc/passwd").read_text():
            debian.run(["chroot", str(self.folder), "useradd", "--create-home", USER], timeout_s=60)

    def clone(self, repository: Path) -> None:
        """Put a fresh clone of a repository's last commit into the user's home.

        Raises:
            debian.CannotBuild: git failed.
        """
        clone = self.folder / _CLONE
        shutil.rmtree(clone, ignore_errors=True)
        for place in ("tmp", "dev/shm"):
            for left in (self.folder / place).iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        debian.run(["git", "clone", "--quiet", str(repository), str(clone)], timeout_s=600)
        hosting.hand_in(self.folder, clone.parent)
        owner = (self.folder / "etc/passwd").read_text().split(f"\n{USER}:")[1].split(":")[1]
        debian.run(["chown", "-R", f"{owner}:{owner}", str(clone.parent)], timeout_s=600)

    @contextmanager
    def started(self, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in the clone as the user, with its output in the log; end it at the end."""
        variables = {
            **hosting.variables(),
            "HOME": f"/home/{USER}",
            "LANG": "C.UTF-8",
            "LOGNAME": USER,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "USER": USER,
        }
        given = [f"{name}={value}" for name, value in variables.items()]
        words = ["sh", "-c", _INSIDE, "sh", str(self.folder), str(DESCRIPTORS), USER]
        inside = ["env", "-i", f"--chdir=/{_CLONE}", *given, *command]
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*debian.SHUT_IN, *words, *inside],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:  # its namespaces end with it, and all that is in them
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
