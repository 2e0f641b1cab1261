"""A program that runs: scenarios go in as lines, results come out as lines."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, TypeAlias

# Whatever JSON can say.
Json: TypeAlias = Any

READY_S: Final = 60.0
# Some clients take most of a minute, more than once, to find a server again.
SCENARIO_S: Final = 150.0
END_S: Final = 10.0
REPOSITORY: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a scenario.

    Attributes:
        result: What the program found; None if it failed.
        error: Why it failed; empty if it did not.
    """

    result: Json = None
    error: str = ""

    @property
    def is_ok(self) -> bool:
        """Return whether there is a result."""
        return not self.error


class NoAnswer(Exception):
    """The program ended, or said nothing in time."""


@dataclass(slots=True)
class About:
    """First line of a program: facts about itself."""

    client: str
    version: str
    scenarios: Sequence[str] = field(default_factory=list)


class RunningProgram:
    """One process of a program, against one server; it is started again when it is lost."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start it and read what it says of itself.

        Args:
            command: The program and its options, without a scenario.
            log: Where its standard error goes.

        Raises:
            NoAnswer: It said nothing, or something else.
        """
        self._command = list(command)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.about = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        scenario: str,
        stream: str,
        values: Mapping[str, object] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> Outcome:
        """Run one scenario.

        Args:
            scenario: Its name.
            stream: A fresh name.
            values: What it is told besides.
            on_wait: Does what the program waits for.
        """
        words = [scenario, stream, *(f"{key}={value}" for key, value in (values or {}).items())]
        try:
            if self._process is None:
                self._start()
            self._write(" ".join(words))
            while "wait" in (answer := self._read(SCENARIO_S)):
                if on_wait is not None:
                    on_wait(answer["wait"])
                self._write("go")
        except NoAnswer as error:
            self.close()
            return Outcome(error=f"{error}; {self._log_end()}")
        if "ok" in answer:
            return Outcome(result=answer["ok"])
        return Outcome(error=str(answer.get("error", answer)))

    def close(self) -> None:
        """End the process; it ends by itself when its input does."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(END_S)
        except (OSError, subprocess.TimeoutExpired):  # it is gone already, or does not end
            process.kill()
            process.wait()

    def _start(self) -> About:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._lines = queue.Queue()
        assert self._process.stdout is not None
        arguments = (self._process.stdout, self._lines)
        threading.Thread(target=pump, args=arguments, daemon=True).start()
        try:
            answer = self._read(READY_S)
        except NoAnswer as error:
            self.close()
            raise NoAnswer(f"{error}; {self._log_end()}") from None
        if "ready" not in answer:
            self.close()
            raise NoAnswer(f"instead of a line about itself: {answer}")
        return About(**answer["ready"])

    def _write(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            # Past the file's buffer: what cannot be written now must not be tried again at its end.
            os.write(self._process.stdin.fileno(), line.encode() + b"\n")
        except OSError as error:
            raise NoAnswer(f"the program ended: {error}") from error

    def _read(self, seconds: float) -> dict[str, Json]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise NoAnswer(f"no answer within {seconds:.0f} s") from None
        if line is None:
            raise NoAnswer("the program ended")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            raise NoAnswer(f"not JSON: {line[:200]!r}") from None
        if not isinstance(answer, dict):
            raise NoAnswer(f"not an object: {line[:200]!r}")
        return answer

    def _log_end(self) -> str:
        return f"its log ends: {self._log.read_text(errors='replace')[-600:]!r}"


def pump(pipe: IO[bytes], lines: queue.Queue[str | None]) -> None:
    """Hand over the lines of a pipe; None at its end."""
    with pipe:
        for line in pipe:
            lines.put(line.decode(errors="replace"))
    lines.put(None)
