"""Places in streams, where a read starts and ends, and the options' texts for them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from pyspark_hutch.options.errors import Unfit, WrongOption, shown
from pyspark_hutch.options.kinds import (
    INTEGER_MAX,
    ValueKind,
    duration_ms,
    is_integer,
    json_object,
    whole_number,
)

NAMES_SHOWN_MAX: Final = 5  # of streams in an error


class PointKind(StrEnum):
    """The meaning of `Point.number`."""

    EARLIEST = "earliest"  # nothing: the first row that is kept
    LATEST = "latest"  # nothing: behind the last row when the query begins
    OFFSET = "offset"  # the offset of the row
    ROWS_BACK = "rows back"  # so many rows before the end
    MS_BACK = "ms back"  # milliseconds before the query begins
    TIMESTAMP = "timestamp"  # milliseconds since 1970: the first row that is not older


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a stream. As a start it is the first row read, as an end the first not read."""

    kind: PointKind
    number: int = 0
    incarnation: str | None = None  # of the stream that the offset was taken from, if it is known


@dataclass(frozen=True, slots=True)
class Where:
    """The start or end of a read: one point for all streams, or one for each by its name."""

    option: str  # the option that said it, or whose default it is
    everywhere: Point | None = None
    by_stream: tuple[tuple[str, Point], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams that are named, which must be all that are read; empty with `everywhere`."""
        return tuple(name for name, _ in self.by_stream)

    def points(self, streams: tuple[str, ...]) -> Mapping[str, Point]:
        """Return the point of each of the streams that are read.

        Raises:
            WrongOption: Points were given by name, for other streams than these.
        """
        if self.everywhere is not None:
            return dict.fromkeys(streams, self.everywhere)
        require_exact(self.option, self.names, streams)
        return dict(self.by_stream)


def require_exact(option: str, given_names: tuple[str, ...], real_names: tuple[str, ...]) -> None:
    """Check that an option names each stream that is read, and no other.

    Raises:
        WrongOption: A stream is missing, or one is named that is not read.
    """
    parts = [
        f"{word} {_listed(names)}"
        for word, names in (
            ("misses", sorted(set(real_names) - set(given_names))),
            ("names what is not read,", sorted(set(given_names) - set(real_names))),
        )
        if names
    ]
    if parts:
        raise WrongOption(
            f"option {option}: must name each stream that is read: it {' and '.join(parts)}"
        )


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN_MAX
    text = ", ".join(shown(name) for name in names[:NAMES_SHOWN_MAX])
    return f"{text} and {more} more" if more > 0 else text


EARLIEST: Final = Point(PointKind.EARLIEST)
LATEST: Final = Point(PointKind.LATEST)
INCARNATION_CHARACTERS_MAX: Final = 64
TIMESTAMP_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, the last that Python and Spark can show."""

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
_KAFKA_NUMBERS: Final = {-2: EARLIEST, -1: LATEST}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BY_STREAM: Final = 'JSON by stream, as {"orders": 12, "bills": "latest"}'

Points = tuple[tuple[str, Point], ...]


def _starting(text: str) -> Point | Points:
    if text.startswith("-"):
        return _before_the_end(text[1:].strip())
    return _offsets(text)


def _before_the_end(text: str) -> Point:
    if re.fullmatch("[0-9]+", text):
        kind, number = PointKind.ROWS_BACK, whole_number(text)
    else:
        kind, number = PointKind.MS_BACK, duration_ms(text)
    if not 0 < number <= (INTEGER_MAX if kind is PointKind.ROWS_BACK else TIMESTAMP_MS_MAX):
        raise Unfit("")
    return Point(kind, number)


def _offsets(text: str) -> Point | Points:
    if text.startswith("{"):
        return _by_stream(text, _offset)
    if text.lower() not in _WORDS:
        raise Unfit("")
    return _WORDS[text.lower()]


def _by_stream(text: str, point_of: Callable[[object], Point | None]) -> Points:
    points: dict[str, Point] = {}
    for name, value in json_object(text).items():
        point = point_of(value)
        if point is None:
            raise Unfit(f"the value of stream {shown(name)} is wrong: {shown(str(value))}")
        points[name] = point
    return tuple(sorted(points.items()))


def _offset(value: object) -> Point | None:
    if isinstance(value, str):
        return _WORDS.get(value.lower())
    if is_integer(value, -2, -1):
        return _KAFKA_NUMBERS[value]
    return _plain_offset(value) or _offset_with_incarnation(value)


def _plain_offset(value: object) -> Point | None:
    if not is_integer(value, 0):
        return None
    return Point(PointKind.OFFSET, value)


def _offset_with_incarnation(value: object) -> Point | None:
    """Read a stream's place as a checkpoint holds it: `o` the next offset, `i` the incarnation."""
    if not isinstance(value, dict) or not {"o"} <= value.keys() <= {"i", "o"}:
        return None
    incarnation, point = value.get("i"), _plain_offset(value["o"])
    if incarnation is None or point is None:
        return None if "i" in value else point
    if not isinstance(incarnation, str) or not 0 < len(incarnation) <= INCARNATION_CHARACTERS_MAX:
        return None
    return Point(PointKind.OFFSET, point.number, incarnation)


def _instant(text: str) -> Point:
    point = _time(int(text) if re.fullmatch("[0-9]{1,19}", text) else text)
    if point is None:
        raise Unfit("")
    return point


def _instants(text: str) -> Points:
    return _by_stream(text, _time)


def _time(value: object) -> Point | None:
    """Read a time; between two milliseconds the later one, since chunks have whole ones."""
    if isinstance(value, str):
        value = _iso_ms(value)
    if not is_integer(value, 0, TIMESTAMP_MS_MAX):
        return None
    return Point(PointKind.TIMESTAMP, value)


def _iso_ms(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    return -((_EPOCH - at) // timedelta(milliseconds=1))


_INSTANT: Final = "milliseconds since 1970, or ISO 8601 with its zone, as 2026-01-31T08:00:00Z"

STARTING_OFFSETS: Final = ValueKind(
    f"earliest, latest, {_BY_STREAM}, or a place before the end, as -1000 (rows) or -10 minutes",
    _starting,
)
ENDING_OFFSETS: Final = ValueKind(f"latest, or {_BY_STREAM}", _offsets)
INSTANT: Final = ValueKind(_INSTANT, _instant)
INSTANTS: Final = ValueKind(f"JSON by stream with {_INSTANT}", _instants)
