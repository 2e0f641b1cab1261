"""RabbitMQ's tutorial programs for stream clients: started as their READMEs say, and watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Final

from compat.suites.results import FAILED, PASSED, Results

PROGRAM_SECONDS: Final = 120
"""Time limit of one program; the slowest compiles itself first."""
PAUSE_SECONDS: Final = 1.0
"""Time that a person looks at the screen before pressing Enter."""


class End(Enum):
    """Ways to end a program after it has shown its output."""

    ITSELF = "itself"
    ENTER = "Enter"
    INTERRUPT = "Ctrl-C"


@dataclass(frozen=True, slots=True)
class Program:
    """One program of a tutorial.

    Attributes:
        name: Language, tutorial and part.
        folder: Where it is started, inside the checkout.
        command: As the folder's README says, but that nothing may be downloaded.
        shows: What it must print.
        end: What ends it afterwards.
    """

    name: str
    folder: str
    command: tuple[str, ...]
    shows: str
    end: End = End.ITSELF


def _programs(language: str, folder: str, *parts: tuple[str, str, str, End]) -> list[Program]:
    """Return one language's programs, from name, command, what it shows and what ends it."""
    return [
        Program(f"{language}: {name}", folder, tuple(command.split()), shows, end)
        for name, command, shows, end in parts
    ]


PYTHON: Final = os.environ.get("SUITE_PYTHON", sys.executable)
JAVA: Final = "mvn -o -q compile exec:java -Dexec.mainClass="
RUST: Final = "cargo run --offline --bin "
ITSELF, ENTER, INTERRUPT = End.ITSELF, End.ENTER, End.INTERRUPT
# What sends comes before what reads it.
PROGRAMS: Final = (
    *_programs(
        "python",
        "python-stream",
        ("hello: send", f"{PYTHON} send.py", "Hello, World! message sent", ENTER),
        ("hello: receive", f"{PYTHON} receive.py", "Hello, World!", INTERRUPT),
        ("offsets: send", f"{PYTHON} offset_tracking_send.py", "Messages confirmed: true", ITSELF),
        ("offsets: receive", f"{PYTHON} offset_tracking_receive.py", "last_offset 99", ITSELF),
    ),
    *_programs(
        "node",
        "javascript-nodejs-stream",
        ("hello: send", "npm run send", "done!", ITSELF),
        ("hello: receive", "npm run receive", "Received message Test message", INTERRUPT),
        ("offsets: send", "npm run offset-tracking-publish", "done!", ITSELF),
        ("offsets: receive", "npm run offset-tracking-receive", "last offset was 99", ITSELF),
    ),
    *_programs(
        "java",
        "java-stream-mvn",
        ("hello: send", f"{JAVA}Send", "Press Enter", ENTER),
        ("hello: receive", f"{JAVA}Receive", "Received message: Hello, World!", ENTER),
        ("offsets: send", f"{JAVA}OffsetTrackingSend", "Messages confirmed: true", ITSELF),
        ("offsets: receive", f"{JAVA}OffsetTrackingReceive", "last offset 99", ITSELF),
    ),
    *_programs(
        "go",
        "go-stream",
        ("hello: send", "go run send.go", "Press enter", ENTER),
        ("hello: receive", "go run receive.go", "Received message: [Hello world]", ENTER),
        ("offsets: send", "go run offset_tracking_send.go", "Messages confirmed", ITSELF),
        ("offsets: receive", "go run offset_tracking_receive.go", "last offset 99", ITSELF),
    ),
    *_programs(
        "rust",
        "rust-stream",
        ("hello: send", f"{RUST}send", "Sent message to stream: hello-rust-stream", ITSELF),
        ("hello: receive", f"{RUST}receive", "Hello, World!", ENTER),
        ("offsets: send", f"{RUST}send_offset_tracking", "Messages confirmed: True", ITSELF),
        ("offsets: receive", f"{RUST}receive_offset_tracking", "last_offset: 99", ITSELF),
    ),
)


def run(checkout: Path, log: Path, only: list[str]) -> Results:
    """Start the programs one after another; `only` names some by a part of their name."""
    results = Results()
    with log.open("a", encoding="utf-8") as output:
        for program in PROGRAMS:
            if only and not any(part in program.name for part in only):
                continue
            output.write(f"== {program.name}\n")
            output.flush()
            results.add(program.name, PASSED if shown_by(program, checkout, output) else FAILED)
    return results


def shown_by(program: Program, checkout: Path, output: IO[str]) -> bool:
    """Run one program; tell whether it showed what it should and then ended as it should."""
    running = started(program, checkout)
    # Started by others, such as mvn, npm and go: they end together.
    watch = threading.Timer(PROGRAM_SECONDS, os.killpg, (running.pid, signal.SIGKILL))
    watch.start()
    try:
        assert running.stdin is not None
        lines = said_by(running, output)
        if not any(program.shows in line for line in lines):
            return False
        if program.end is End.ENTER:
            time.sleep(PAUSE_SECONDS)
            running.stdin.write("\n")
            running.stdin.flush()
        elif program.end is End.INTERRUPT:
            os.killpg(running.pid, signal.SIGINT)
        for _ in lines:
            pass
        status = running.wait()
        # Ctrl-C gives each language another status; only the watch kills.
        return status == 0 or (program.end is End.INTERRUPT and status != -signal.SIGKILL)
    finally:
        for pipe in (running.stdin, running.stdout):
            assert pipe is not None
            pipe.close()
        running.wait()
        watch.cancel()


def started(program: Program, checkout: Path) -> subprocess.Popen[str]:
    """Start a program that heeds Ctrl-C, even where this one, in a shell's background, does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            program.command,
            cwd=checkout / program.folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def said_by(running: subprocess.Popen[str], output: IO[str]) -> Iterator[str]:
    """Return the lines that a program prints, as they come, and keep them in a file."""
    assert running.stdout is not None
    for line in running.stdout:
        output.write(line)
        output.flush()
        yield line
