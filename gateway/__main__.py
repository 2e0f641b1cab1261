"""`hutch`, also called as `python -m gateway`.

Loading the command line takes a while, and the server more: before that comes what a signal does to
a server that is only about to be one.
"""

import errno
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_PIPE_CLOSED: Final = 141
"""As a shell says of a process that SIGPIPE has ended."""
_CANNOT_WRITE: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


def main() -> int:
    """Run the command of the command line; return the exit code of the process."""
    _open_standard_descriptors()
    if sys.argv[1:2] == ["serve"] or sys.argv[1:3] == ["store", "serve"]:
        with _ended_by_signals(), _uncollected():
            return _run_server()
    return _run_and_print()


def _run() -> int:
    from gateway import cli  # noqa: PLC0415 (see above)

    return cli.main()


def _run_server() -> int:
    """Run a server, which tells itself that its output cannot be written."""
    code = _run()
    try:
        sys.stdout.flush()
    except OSError:  # else the interpreter would say it again, with an exit code of its own
        _drop_output()
    return code


def _run_and_print() -> int:
    """Run a command whose reader may close the pipe early: `hutch ctl list_users | head -1`."""
    try:
        try:
            return _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        _drop_output()
        sys.stderr.write(f"hutch: cannot write what was asked for: {error.strerror}\n")
        return 1


def _drop_output() -> None:
    """Let the rest of the buffer, which is written at exit, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_standard_descriptors() -> None:
    """Open the null device where a standard stream is closed.

    Else the next file or socket would get the number: texts would be written into it, and the
    event loop ends the process when it closes one of the first three.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or sys.stdout


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the process in good order while there is no client to serve.

    Opening may take long, and no less is stored than after a crash. The server changes this when it
    serves, and leaves it changed: there is nothing left to end then.
    """
    before = {number: signal.signal(number, _end) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _end:
                signal.signal(number, handler)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the server be loaded without a look for garbage: a sixth of the time, and there is none.

    `gateway.serving.process` turns the collector on again before it opens the data directory.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _end(_number: int, _frame: FrameType | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, RuntimeError, ValueError):  # in the middle of a write; closed
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
