"""Log lines on standard error, for a person or for a machine.

A record is a fixed sentence, then `key=value` with the values as arguments. As text that is the
line; as JSON the sentence is `message` and each key a field of its own:

    2026-11-21T13:00:00.123Z INFO gateway.broker.streams.streams: stream created stream=orders
    {"time": "…", "level": "info", "logger": "…", "message": "stream created", "stream": "orders"}
"""

import json
import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Self

from gateway.command_line import VISIBLE, complain
from gateway.settings.model import LogFormat, LogsSettings

log = logging.getLogger(__name__)

_VALUE: Final = re.compile(r"%[-+ #0-9.]*([a-zA-Z])")
_KEY: Final = re.compile(rf" ?(\w+)={_VALUE.pattern}")


class NameInHost(str):
    """A name in a virtual host: logs say both, in every other use it is the name."""

    __slots__ = ("virtual_host",)
    virtual_host: str

    def __new__(cls, name: str, virtual_host: str) -> Self:
        """Make one."""
        made = super().__new__(cls, name)
        made.virtual_host = virtual_host
        return made

    def __str__(self) -> str:
        return f"{super().__str__()} virtual_host={self.virtual_host}"


_HEADERS: Final = "hpack"
"""Logger of a library whose lines have the headers of calls, passwords among them."""


def configure(settings: LogsSettings) -> None:
    """Send all logs of this process to standard error, in the wanted format."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.format is LogFormat.JSON else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.number)
    logging.getLogger(_HEADERS).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def tell_fatal(settings: LogsSettings, lines: str) -> None:
    """Say why there is no server: to a person line by line, to a machine as records."""
    if settings.format is LogFormat.JSON:
        configure(settings)
        for line in lines.splitlines():
            log.critical("the server does not start reason=%s", line)
    else:
        complain(lines, 0)


class TextLines(logging.Formatter):
    """One line a record, and below it the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().translate(VISIBLE)
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object a record, in one line whatever it holds."""

    def format(self, record: logging.LogRecord) -> str:
        sentence, fields = _parts(record)
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": sentence,
        }
        line = fields | line
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parts(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    """Split a record into its sentence and its fields; all sentence if it has another shape.

    Values before the first key belong to the sentence.
    """
    line = str(record.msg)
    keys = list(_KEY.finditer(line))
    values = record.args
    if not isinstance(values, tuple) or not keys:
        return record.getMessage(), {}
    sentence = line[: keys[0].start()]
    own = len(_VALUE.findall(sentence))
    if own + len(keys) != len(values):
        return record.getMessage(), {}
    if own:
        sentence %= values[:own]
    fields: dict[str, object] = {}
    for key, value in zip(keys, values[own:], strict=True):
        if isinstance(value, NameInHost):
            fields |= {key[1]: value[:], "virtual_host": value.virtual_host}
        else:
            fields[key[1]] = _plain(value, key[2] == "r")
    return sentence, fields


def _plain(value: object, as_repr: bool) -> object:  # noqa: FBT001 (it is the conversion asked for)
    if as_repr:
        return repr(value)
    return value if isinstance(value, int | float | None) else str(value)


AGAIN_S: Final = 10.0
"""Time after which a rate-limited line is written again."""


class RateLimitedLog:
    """One kind of rate-limited line: written at once, then at most once every few seconds.

    A full disk refuses every client that tries again, and its log must not fill it further.
    """

    def __init__(
        self, log: logging.Logger, message: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Write `message` to `log`, with `unsaid=` for the number of lines left out before it."""
        self._log = log
        self._message = message
        self._clock = clock
        self._again_at = 0.0
        self._unsaid = 0

    def error(self, *args: object) -> None:
        """Write it as an error, or count it."""
        self._say(logging.ERROR, args)

    def warning(self, *args: object) -> None:
        """Write it as a warning, or count it."""
        self._say(logging.WARNING, args)

    def _say(self, level: int, args: tuple[object, ...]) -> None:
        now = self._clock()
        if now < self._again_at:
            self._unsaid += 1
            return
        unsaid, self._unsaid = self._unsaid, 0
        self._again_at = now + AGAIN_S
        self._log.log(level, self._message + " unsaid=%d", *args, unsaid)
