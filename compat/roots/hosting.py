"""The way to packages, as a root is told of it: what pip and the network need on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_RESOLVER: Final = Path("/etc/resolv.conf")
_PIP_OF_ALL: Final = Path("/etc/pip.conf")
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES_OF: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def variables() -> dict[str, str]:
    """Return the variables that pip, and what it calls, reads here."""
    wanted = {*_PROXIES, *map(str.upper, _PROXIES), *_CERTIFICATES_OF}
    return {
        name: value
        for name, value in os.environ.items()
        if name in wanted or (name.startswith("PIP_") and name != "PIP_CONFIG_FILE")
    }


def hand_in(root: Path, home: Path) -> None:
    """Copy into a root the files by which packages are reached.

    Args:
        root: The root's folder.
        home: The home of its user, seen from here.
    """
    copies = {path: root / path.relative_to("/") for path in _same_places()}
    for within in (".config/pip/pip.conf", ".pip/pip.conf"):
        copies[Path.home() / within] = home / within
    if named := os.environ.get("PIP_CONFIG_FILE"):
        copies[Path(named)] = root / _PIP_OF_ALL.relative_to("/")
    for source, target in copies.items():
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _same_places() -> Iterator[Path]:
    """Name the files that lie where they lie here."""
    yield from (_RESOLVER, CERTIFICATES, _PIP_OF_ALL)
    for name, value in variables().items():
        if (name in _CERTIFICATES_OF or name == "PIP_CERT") and value.startswith("/"):
            yield Path(value)
