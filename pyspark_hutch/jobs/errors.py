"""Errors of jobs, each as one line."""

import re
from typing import Final

LINE_CHARACTERS_MAX: Final = 600
"""Enough for any error of this package; one of Spark's can have a whole plan in it."""

_WRAPPING: Final = re.compile(
    r"^An error occurred while calling \S+\.\n: (?:[\w$]+\.)*[\w$]+: |"
    r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: "
)
"""Text that py4j or a streaming query puts before an error of the JVM."""

_RAISED: Final = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?:\w+(?:\.\w+)+: )?(\S.*)$", re.MULTILINE
)
"""The line that follows a traceback, without the class of the error if that is of a package."""

_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*[\w$]+: (\S.*)$", re.MULTILINE)


class JobError(Exception):
    """Base of the errors of jobs; its text is one line.

    Attributes:
        exit_code: Of a program that ends with it.
    """

    exit_code: int


class JobFailed(JobError):
    """The job could not do its work."""

    exit_code = 1


class WrongArgument(JobError):
    """A request that a job cannot fulfil."""

    exit_code = 2


def in_one_line(error: BaseException) -> str:
    """Return the cause that an error of Spark names.

    Where Spark wraps an error of Python, this is the first line of that error, of a chain of them
    the last; else it is the first line of the text, and the cause of causes if there is one.
    """
    text = _WRAPPING.sub("", str(error).strip())
    raised = _RAISED.findall(text)
    lines = raised[-1:] or text.splitlines() or [type(error).__name__]
    line = lines[0].strip()
    causes = [] if raised else _CAUSE.findall(text)
    if causes and causes[-1] not in line:
        line = f"{line} ({causes[-1]})"
    return cut(line, LINE_CHARACTERS_MAX)


def cut(text: str, characters: int) -> str:
    """Return a text with its end left out if it is longer than that."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
