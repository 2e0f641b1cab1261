"""Errors of jobs, each as one line."""

import re
from typing import Final

_PYTHON_ERROR: Final = re.compile(r"^\s*(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*): (\S.*)$", re.MULTILINE)
_JVM_NOISE: Final = ("Exception", "Error", "Throwable")
_CALL: Final = re.compile(r"^An error occurred while calling \S+\.\n: (?:[\w$]+\.)*[\w$]+: ")
"""Text that py4j puts before an error of the JVM that Spark does not know by name."""

LINE_CHARACTERS_MAX: Final = 600
"""Enough for any error of this package; one of Spark's can have a whole plan in it."""


class JobError(Exception):
    """Base of the errors of jobs; its text is one line."""


class JobFailed(JobError):
    """The job could not do its work."""


class WrongArgument(JobError):
    """A request that a job cannot fulfil."""


def in_one_line(error: BaseException) -> str:
    """Return what an error of Spark comes down to.

    Where Spark wraps an error of Python, the last line of its traceback is what went wrong; else
    the first line of the text is.
    """
    text = _CALL.sub("", str(error).strip())
    if "Traceback (most recent call last)" in text:
        found = [
            said
            for name, said in _PYTHON_ERROR.findall(text.split("Traceback", 1)[1])
            if not (name.endswith(_JVM_NOISE) and "." in said.split(":", 1)[0] and ":" in said)
        ]
        if found:
            return _cut(found[0])
    return _cut(text.splitlines()[0] if text else type(error).__name__)


def _cut(line: str) -> str:
    line = line.strip()
    return line if len(line) <= LINE_CHARACTERS_MAX else f"{line[: LINE_CHARACTERS_MAX - 1]}…"
