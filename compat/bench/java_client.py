"""Works by Pravega's Java client: a program of its own, which waits for the clock."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from compat import pravega
from compat.bench.errors import BenchError
from compat.bench.jobs import Figures, Job
from compat.bench.patience import WAIT_LIMIT_S
from compat.bench.stopwatch import Stopwatch
from compat.clients.programs import Program, Unavailable

BENCH: Final = Program(
    "Pravega's Java client",
    "java-bench",
    ("java", "javac", "mvn"),
    parent=Path(pravega.__file__).parent,
)


def _worked(work: str) -> Callable[[Job], Figures]:
    def worked(job: Job) -> Figures:
        """Do a work of the program; return what the clock says, and what the program prints.

        Raises:
            BenchError: The program cannot be built here, or failed.
        """
        address = f"tcp://{job.address.host}:{job.address.port}"
        stream = job.stream.replace("_", "-")  # names of Pravega have no `_` within
        try:
            counts = map(str, (job.message_count, job.body_bytes, job.warmup_count))
            command = [*BENCH.command(), address, work, stream, *counts]
        except Unavailable as error:
            raise BenchError(str(error)) from error
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            try:
                _expect(program.stdout, "ready")
                stopwatch = Stopwatch(job.pids)
                with stopwatch:
                    program.stdin.write("\n")
                    program.stdin.flush()
                    _expect(program.stdout, "done")
                told = {line.split()[0]: float(line.split()[1]) for line in program.stdout}
                program.wait(WAIT_LIMIT_S)
            finally:
                program.kill()
        figures = stopwatch.figures(job.message_count)
        # The program works beside this process: its time is neither the server's nor others'.
        return {"rate": figures["rate"], "cpu": figures.get("cpu", 0.0)} | told

    return worked


def _expect(lines: IO[str], word: str) -> None:
    line = lines.readline().strip()
    if line != word:
        raise BenchError(f"the program said {line!r}, and no {word!r}")


java_write, java_latency, java_read = map(_worked, ("write", "latency", "read"))
