"""Running RabbitMQ's tools, as client suites call them, on a server of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.integration.server import HutchServer
from tests.waiting import HANG_S

TOOLS = Path(__file__).parents[2] / "compat" / "suites" / "bin"
USAGE, NO_SUCH_THING, NO_SUCH_USER, UNREACHABLE, FAILED = 64, 65, 67, 69, 70
REFUSED = UNREACHABLE


def run(
    server: HutchServer, tool: str, *arguments: str, stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run one of RabbitMQ's tools, as a client suite does."""
    with started(server, tool, *arguments, stdout=stdout) as process:
        printed, complaint = process.communicate(timeout=HANG_S)
    return subprocess.CompletedProcess(arguments, process.returncode, printed, complaint)


def started(
    server: HutchServer, tool: str, *arguments: str, stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Start one of RabbitMQ's tools."""
    return subprocess.Popen(
        [TOOLS / tool, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HUTCH_ADMIN_SOCKET": str(server.data_dir / "admin.sock"),
        },
    )


def said(server: HutchServer, tool: str, *arguments: str) -> str:
    done = run(server, tool, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
