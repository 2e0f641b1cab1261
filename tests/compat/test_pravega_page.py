"""The programs of Pravega's page: taken from it, and run against the server that it starts."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.pravega.controller.rpc.table import CALLS
from tests.compat.pages import ROOT, absent, path_with_us, section_of, usual_ports

PAGE: Final = ROOT / "docs" / "pravega.md"
PORTS: Final = (9090, 12345)
RUN_S: Final = 240.0
CUSTOMERS: Final = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def _server(tmp_path: Path) -> Iterator[None]:
    """Start what the page starts, on the ports that it names."""
    (command,) = section_of(PAGE, "## A server").commands
    environment = os.environ | {"PATH": path_with_us(), "PYTHONPATH": str(ROOT)}
    with usual_ports(*PORTS):
        running = subprocess.Popen(
            command.split(), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert running.stdout is not None
            assert "controller=127.0.0.1:9090" in running.stdout.readline()
            yield
        finally:
            running.terminate()
            running.communicate(timeout=60)


def ran(heading: str, folder: Path) -> list[str]:
    """Run a section's program; return the lines that it prints."""
    section = section_of(PAGE, heading)
    section.write(folder)
    said = ""
    for command in section.commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=os.environ | {"PATH": path_with_us()},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    plain = re.sub(r"\x1b\[\d*m", "", said)  # Maven begins a line with one
    return [line for line in plain.splitlines() if re.fullmatch(r"order \d", line)]


def check(orders: list[str]) -> None:
    """Check that all are there, those of each customer in order."""
    assert sorted(orders) == [f"order {number}" for number in range(10)]
    for customer in range(CUSTOMERS):
        of_one = [each for each in orders if int(each[-1]) % CUSTOMERS == customer]
        assert of_one == sorted(of_one)


@pytest.mark.usefixtures("_server")
def test_the_program_in_python_prints_all_orders(tmp_path: Path) -> None:
    if importlib.util.find_spec("pravega_client") is None:
        pytest.skip("PyPI's client of Pravega has no wheel for this machine")
    check(ran("## A program in Python", tmp_path))


@pytest.mark.usefixtures("_server")
def test_the_program_in_java_prints_all_orders(tmp_path: Path) -> None:
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        absent(f"not installed: {', '.join(missing)}")
    check(ran("## A program in Java", tmp_path))


def test_the_page_has_every_call_of_the_controller() -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## Calls of the controller\n")[1]
    table = text.split("\n## ")[0]

    assert set(re.findall(r"`([a-z]\w+)`[,| ]", table)) >= set(CALLS)
