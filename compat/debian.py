"""Debian trees: the files of a bare system with some packages, built once by debootstrap."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# debootstrap of an older Debian has no script of the suite's name; all suites since use sid's.
SCRIPT = Path("/usr/share/debootstrap/scripts/sid")
SHUT_IN = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
STAMP = "hutch-complete"
BUILD_TIMEOUT_S = 900
INSTALL_TIMEOUT_S = 300
APT_SOURCES = Path("/etc/apt")


class CannotBuild(Exception):
    """The tree cannot be made on this machine; the text says why."""


def tree(folder: Path, suite: str, packages: Sequence[str]) -> Path:
    """Return the folder with a tree of a suite, building it the first time (about a minute).

    Raises:
        CannotBuild: Not root, not Debian, no mirror, or debootstrap failed.
    """
    require_root_on_debian()
    with only_one_builder(folder):
        if not (folder / STAMP).exists():
            build(folder, suite, packages)
    return folder


def require_root_on_debian() -> None:
    """Raise `CannotBuild` unless this is root on Debian with the right to make namespaces."""
    if os.geteuid() != 0:
        raise CannotBuild("a chroot needs root")
    try:
        distribution = platform.freedesktop_os_release().get("ID")
    except OSError:
        distribution = None
    if distribution != "debian":
        raise CannotBuild(
            f"the chroot is built on Debian only, this is {distribution or 'unknown'}"
        )
    if shutil.which("unshare") is None:
        raise CannotBuild("the command unshare (util-linux) is missing")
    if subprocess.run([*SHUT_IN, "true"], capture_output=True, check=False).returncode != 0:
        raise CannotBuild("this root may not make mount and process namespaces")


@contextmanager
def only_one_builder(folder: Path) -> Iterator[None]:
    """Hold the lock beside the tree, so that two test runs do not build it at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(folder: Path, suite: str, packages: Sequence[str]) -> None:
    """Run debootstrap into a folder, leaving the stamp last.

    Raises:
        CannotBuild: With the last line that debootstrap printed.
    """
    if shutil.which("debootstrap") is None:
        install_debootstrap()
    mirror = mirror_of(read_sources(APT_SOURCES))
    if mirror is None:
        raise CannotBuild("the machine's apt sources name no Debian mirror")
    if folder.exists():
        shutil.rmtree(folder)  # a build that was interrupted
    # Shut in, so that its own mounts go with it if it is killed: a later build must never remove
    # the /proc of the machine.
    command = [*SHUT_IN, "debootstrap", "--variant=minbase", f"--include={','.join(packages)}"]
    run([*command, suite, str(folder), mirror, str(SCRIPT)], timeout_s=BUILD_TIMEOUT_S)
    archives = folder / "var/cache/apt/archives"
    for package in archives.glob("*.deb"):
        package.unlink()
    # debootstrap writes no hosts file, and localhost must resolve without a name server.
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (folder / STAMP).touch()


def install_debootstrap() -> None:
    """Install debootstrap by apt-get."""
    run(["apt-get", "update", "--quiet"], timeout_s=INSTALL_TIMEOUT_S)
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "debootstrap"]
    run(command, timeout_s=INSTALL_TIMEOUT_S)


def run(command: list[str], *, timeout_s: float) -> None:
    """Run a command, turning its failure into `CannotBuild` with its last line."""
    name = command[len(SHUT_IN)] if command[0] == SHUT_IN[0] else command[0]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{name}: {error}") from error
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise CannotBuild(f"{name} failed: {last}")


def read_sources(folder: Path) -> str:
    """Return the text of apt's source lists under `folder`, one-line style first."""
    parts = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.list"))]
    parts += sorted((folder / "sources.list.d").glob("*.sources"))
    return "\n\n".join(part.read_text() for part in parts if part.exists())


def mirror_of(sources: str) -> str | None:
    """Return the first Debian mirror that apt's sources name, None if they name none.

    Both styles are read: `deb [options] URI suite main …` and stanzas with a `URIs:` field. A
    mirror is told by the component `main` and a path that ends in `/debian`, which leaves out the
    security archive and other people's repositories.
    """
    for line in sources.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] not in ("deb", "URIs:"):
            continue
        for word in words[1:]:
            if "://" in word and word.rstrip("/").endswith("/debian"):
                return word.rstrip("/")
    return None
