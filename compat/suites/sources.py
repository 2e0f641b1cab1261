"""Sources of the suites: version, sum and folder of each, and how a package registry is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOWNLOAD_SECONDS: Final = 600
_STAMP: Final = ".hutch-source"
"""File in a folder that `get` has filled: the name, version and sum of what lies there."""


class SourceError(Exception):
    """The sources of a suite cannot be had; the text is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Place from which a client's tests are fetched.

    Attributes:
        repository: What a checkout is made of, if no registry has the tests.
        version: What the results in README.md were made with: a release, or a commit.
        package: Name in the registry; empty if no registry's package holds the tests.
        sum: What the registry's client says of the package; nothing else is taken.
        registry: Which client is asked.
        lacks: What the package of a registry does not hold.
    """

    repository: str
    version: str
    package: str = ""
    sum: str = ""
    registry: str = ""
    lacks: str = ""


SOURCES: Final = {
    "go": Source(
        "github.com/rabbitmq/rabbitmq-stream-go-client",
        "v1.8.3",
        "github.com/rabbitmq/rabbitmq-stream-go-client",
        "h1:vbq4TFWTkSy8Nq2UYPWpRs/M+xbDTE/3EUZ+/+ZZZ7A=",
        registry="go",
    ),
    "node": Source(
        "github.com/coders51/rabbitmq-stream-js-client",
        "0.6.2",
        "rabbitmq-stream-js-client",
        "sha512-MXNC7hacnoUCdpIurR26PU7Mq18JOEmCCeLtzmjZMbMUT3rAWp5jQSpw8HTCXCt/ENyiwW9h3j2uOqzR8B3RCQ==",
        registry="npm",
    ),
    "rust": Source(
        "github.com/rabbitmq/rabbitmq-stream-rust-client",
        "bd685f9",
        lacks="the crate of crates.io has not the certificates that its tests of TLS read, nor the"
        " tests of its protocol",
    ),
    "rstream": Source(
        "github.com/rabbitmq-community/rstream",
        "b0b9f8a",
        lacks="the source archive of PyPI has no tests",
    ),
    "java": Source(
        "github.com/rabbitmq/rabbitmq-stream-java-client",
        "33f3f5d",
        lacks="Maven Central has the sources without the tests",
    ),
    "tutorials": Source(
        "github.com/rabbitmq/rabbitmq-tutorials",
        "8aec600",
        lacks="no registry has the tutorials",
    ),
    "pravega": Source(
        "github.com/pravega/pravega",
        "v0.13.0",
        lacks="Maven Central has the sources without the tests",
    ),
}


def variable(name: str) -> str:
    """Return the environment variable that names a checkout of a suite."""
    return f"HUTCH_SUITE_{name.upper()}"


def folder(name: str) -> Path:
    """Return where a suite's sources lie: in the virtual environment, unless `variable` says it."""
    given = os.environ.get(variable(name))
    return Path(given) if given else Path(sys.prefix, "suites", name)


def how(name: str) -> str:
    """Return in one line how to get the sources of a suite."""
    source = SOURCES[name]
    if source.registry:
        return f"python -m compat.suites get {name}"
    return (
        f"{source.lacks}: put a checkout of {source.repository} at {source.version} into"
        f" {folder(name)}, or name its folder in {variable(name)}"
    )


def get(name: str) -> Path:
    """Return the folder with the sources of a suite, fetched if they are not there yet.

    Raises:
        SourceError: No registry has them, the registry did not answer, or the sum is another one.
    """
    source, target = SOURCES[name], folder(name)
    stamp = target / _STAMP
    wanted = f"{source.package} {source.version} {source.sum}"
    if os.environ.get(variable(name)) or not source.registry:
        if target.is_dir():
            return target
        raise SourceError(how(name))
    if stamp.exists() and stamp.read_text() == wanted:
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    _REGISTRIES[source.registry](source, target)
    stamp.write_text(wanted)
    return target


def check(source: Source, found: str) -> None:
    """Refuse a package with another sum than the one written down."""
    if found != source.sum:
        raise SourceError(
            f"{source.package} {source.version} has the sum {found or 'none'},"
            f" and not {source.sum}: it is not what was tried"
        )


def _from_go(source: Source, target: Path) -> None:
    """Copy a module out of the cache, where it cannot be written to; download what it needs."""
    command = ("go", "mod", "download", "-json", f"{source.package}@{source.version}")
    with tempfile.TemporaryDirectory() as empty:  # a go.mod near by would be asked first
        told = json.loads(_run(command, Path(empty)))
    check(source, told.get("Sum", ""))
    shutil.copytree(told["Dir"], target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    _run(("go", "mod", "download"), target)


def _from_npm(source: Source, target: Path) -> None:
    """Unpack a package with its tests; install what they need, at versions that fit."""
    with tempfile.TemporaryDirectory() as empty:
        command = ("npm", "pack", "--json", f"{source.package}@{source.version}")
        (told,) = json.loads(_run(command, Path(empty)))
        check(source, told.get("integrity", ""))
        with tarfile.open(Path(empty, told["filename"])) as archive:
            for member in archive.getmembers():
                if content := archive.extractfile(member):  # None for a folder
                    path = target / member.name.partition("/")[2]  # without "package/"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content.read())
    _run(("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"), target)
    _run(("npm", "install", "--no-audit", "--no-fund", "--no-save", "amqplib@0.10.9"), target)


def _run(command: Sequence[str], place: Path) -> str:
    """Return what a registry's client prints. Raises SourceError."""
    try:
        ended = subprocess.run(
            command,
            cwd=place,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise SourceError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise SourceError(f"{' '.join(command)} took more than {DOWNLOAD_SECONDS} s") from None
    if ended.returncode:
        said = " ".join((ended.stderr or ended.stdout).split())
        raise SourceError(f"{' '.join(command)} failed: {said[-500:]}")
    return ended.stdout


_REGISTRIES: Final[dict[str, Callable[[Source, Path], None]]] = {
    "go": _from_go,
    "npm": _from_npm,
}
