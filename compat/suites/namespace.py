"""A network and a host name of one's own, so that every server under test has the usual ports.

Suites expect a broker at localhost:5552, 5551 and 15672, and some compare the advertised host with
the machine's name. In such a namespace nothing else listens, and nothing outside is reached:
whatever a suite needs has to be downloaded before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

INSIDE: Final = "HUTCH_SUITE_NAMESPACE"
"""Set for the process that runs inside."""
_ENTER: Final = 'hostname localhost && ip link set lo up && exec "$@"'


def is_inside() -> bool:
    """Return whether this process was started by `run_inside`."""
    return os.environ.get(INSIDE) == "1"


def missing() -> str:
    """Return why there can be no namespace here; empty if there can."""
    for tool in ("unshare", "ip", "hostname"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = subprocess.run(
        [*_unshare(), "true"], capture_output=True, text=True, timeout=30, check=False
    )
    return tried.stderr.strip() if tried.returncode else ""


def run_inside(arguments: Sequence[str]) -> int:
    """Run `python -m compat.suites` again, inside; return its exit code."""
    command = [*_unshare(), "sh", "-c", _ENTER, "sh", sys.executable, "-m", "compat.suites"]
    return subprocess.run(
        [*command, *arguments], env={**os.environ, INSIDE: "1"}, check=False
    ).returncode


def _unshare() -> list[str]:
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *own, "--net", "--uts", "--fork", "--kill-child"]
