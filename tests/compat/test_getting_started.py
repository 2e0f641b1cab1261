"""The getting-started page: its programs and commands, taken from the page and run as printed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from compat.broker.tree import cache_folder
from compat.clients.not_offered import VERSIONS
from tests.compat.pages import (
    ROOT,
    STREAM_PORT,
    absent,
    hutch_serving,
    path_with_us,
    section_of,
    usual_ports,
)

# Rust's libraries, from nothing, on two cores with other builds beside it.
BUILD_LIMIT_S: Final = 600
RUN_LIMIT_S: Final = 120
pytestmark = [pytest.mark.compat, pytest.mark.timeout(BUILD_LIMIT_S + 2 * RUN_LIMIT_S)]

PAGE: Final = ROOT / "docs" / "getting-started.md"
TOOLS: Final = {
    "Python": (),
    "Node": ("node", "npm"),
    "Java": ("java", "mvn"),
    "Go": ("go",),
    "Rust": ("cargo",),
}


@pytest.fixture(params=list(TOOLS))
def language(request: pytest.FixtureRequest) -> str:
    """A language whose tools are there."""
    name: str = request.param
    missing = [tool for tool in TOOLS[name] if shutil.which(tool) is None]
    if missing:
        absent(f"{name}: not installed: {', '.join(missing)}")
    return name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One Hutch on the port that clients know, for all languages as for a reader of the page."""
    with usual_ports(STREAM_PORT), hutch_serving(tmp_path_factory.mktemp("server") / "data"):
        yield


def environment() -> dict[str, str]:
    """Return an environment in which what is built is kept, and `python` is the one that tests."""
    return {
        **os.environ,
        "PATH": path_with_us(),
        # Rust's libraries are compiled where `compat/clients` has them, and as there: without
        # that they take minutes. It changes nothing of what is printed on the page.
        "CARGO_TARGET_DIR": str(cache_folder() / "clients" / "rust-cache"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_INCREMENTAL": "0",
    }


def run(command: str, folder: Path, limit_s: float) -> str:
    """Run a command as it is printed, and return what it printed."""
    done = subprocess.run(
        command,
        shell=True,
        check=False,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def receive(command: str, folder: Path) -> tuple[str, int]:
    """Run the reading program, press Enter at its first line; return the line and the status."""
    running = subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    # The shell's child would live on, and keep its pipe open, if only the shell ended.
    watch = threading.Timer(RUN_LIMIT_S, os.killpg, (running.pid, signal.SIGKILL))
    watch.start()
    try:
        line = running.stdout.readline()
        running.stdin.write("\n")
        running.stdin.flush()
        running.stdout.read()
        return line, running.wait()
    finally:
        watch.cancel()
        running.stdin.close()
        running.stdout.close()


def test_the_page_names_the_versions_that_are_compared() -> None:
    text = PAGE.read_text(encoding="utf-8")

    named = {
        "rstream": f"rstream=={VERSIONS['rstream']}\n",
        "node": f"rabbitmq-stream-js-client@{VERSIONS['node']}\n",
        "java": f"<version>{VERSIONS['java']}</version>",
        "go": f"rabbitmq-stream-go-client@v{VERSIONS['go']}\n",
        "rust": f"rabbitmq-stream-client@{VERSIONS['rust']} ",
    }

    assert [client for client, version in named.items() if version not in text] == []


@pytest.mark.usefixtures("server")
def test_the_programs_of_the_page_run_as_printed(language: str, tmp_path: Path) -> None:
    section = section_of(PAGE, f"## {language}")
    folder = tmp_path / "hello"
    folder.mkdir()
    section.write(folder)
    *prepare, send, read = section.commands

    for command in prepare:
        run(command, folder, BUILD_LIMIT_S)
    sent = run(send, folder, BUILD_LIMIT_S)
    line, status = receive(read, folder)

    assert sent == "sent\n"
    assert line == "received: Hello, World!\n"
    assert status == 0
