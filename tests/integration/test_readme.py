"""The publish-and-read of README.md works as it is printed there."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import StartServer
from tests.integration.server import REPOSITORY
from tests.waiting import HANG_S

DEFAULT_PORT = 5552


def first_python_block(text: str) -> str:
    """Return the first fenced block of Python in a Markdown page."""
    match = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert match is not None, "README.md shows no Python"
    return match[1]


def is_taken(port: int) -> bool:
    """Whether something else listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def test_the_example_publishes_and_reads_as_printed(
    start_server: StartServer, tmp_path: Path
) -> None:
    if is_taken(DEFAULT_PORT):
        pytest.skip(f"port {DEFAULT_PORT}, which the example names, is taken")
    example = first_python_block((REPOSITORY / "README.md").read_text())
    assert sum(1 for line in example.splitlines() if line.strip()) == 10, "ten lines are promised"
    start_server("--port", str(DEFAULT_PORT))
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
