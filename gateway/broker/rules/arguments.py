"""The arguments of a stream: those that a Create may carry, their values, and when two agree.

On the wire and in the store they are texts. RabbitMQ's rules, but for texts that should be
integers and are not (it drops the connection; here they are refused as any other wrong value) and
segments of 8 bytes or less (it would begin a new segment for ever; here they are refused).
`stream-initial-offset` is RabbitMQ's as of 4.4.

Source: RabbitMQ, "Streams and Superstreams"; rabbit_stream_manager.erl, rabbit_amqqueue.erl.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

SEGMENT_BYTES_MIN: Final = 9  # a segment file's own header has 8
SEGMENT_BYTES_MAX: Final = 3_000_000_000
SEGMENT_BYTES_DEFAULT: Final = 500_000_000
FILTER_SIZE_BYTES_MIN: Final = 16
FILTER_SIZE_BYTES_MAX: Final = 255
FILTER_SIZE_BYTES_DEFAULT: Final = 16
INITIAL_OFFSET_MAX: Final = (1 << 47) - 1
NAMES: Final = (
    "max-length-bytes",
    "max-age",
    "stream-max-segment-size-bytes",
    "initial-cluster-size",
    "queue-leader-locator",
    "stream-filter-size-bytes",
    "stream-initial-offset",
)
"""The arguments that `StreamArguments.parse` reads."""
LEADER_LOCATORS: Final = (
    "client-local",
    "balanced",
    "least-leaders",
    "random",
    "min-masters",
)

_DAY_S: Final = 86_400
_UNIT_S: Final = {"Y": 365 * _DAY_S, "M": 30 * _DAY_S, "D": _DAY_S, "h": 3_600, "m": 60, "s": 1}
_AGE: Final = re.compile(r"([0-9]+)([YMDhms])")
_UNBOUNDED: Final = ("max-length-bytes", "initial-cluster-size")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")

_DIGITS_MAX: Final = 1_000
"""More than any number here can need: reading a number takes time that grows as its square."""
_BRIEF_LETTERS: Final = 200
_NAME_LETTERS_MAX: Final = 64
"""A longer name is not compared with those that there are."""
_BEYOND_ALL: Final = (1 << 63) - 1
"""Value of a number of more digits: no disk is as large."""


class InvalidStreamArgument(ValueError):
    """An argument has a value that it does not take (response code 17)."""


@dataclass(frozen=True, slots=True)
class MaxAge:
    """An age that a stream's records may reach. Any text is accepted; equal meanings are equal."""

    text: str = field(compare=False)
    """As the client wrote it."""
    meaning: int | str = field(init=False, repr=False)
    """The age in seconds; the text where it says no age."""

    def __post_init__(self) -> None:
        match = _AGE.fullmatch(self.text)
        meaning: int | str = self.text
        if match is not None and len(self.text) <= _DIGITS_MAX:
            # None at all is what it says: RabbitMQ tells `0s` from `0h`.
            meaning = int(match[1]) * _UNIT_S[match[2]] or self.text
        object.__setattr__(self, "meaning", meaning)

    @property
    def seconds(self) -> int | None:
        """The age at which records go; None if they never do, as with `0s` or `soon`."""
        return self.meaning if isinstance(self.meaning, int) and self.meaning > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamArguments:
    """Arguments that a stream was created with; None where none was given, which equals no value.

    Two are equal if they give the same arguments with the same meaning: `1h` is `60m`, and
    `05000` is `5000`.
    """

    max_length_bytes: int | None = None
    """0 and less are accepted."""
    max_age: MaxAge | None = None
    segment_bytes: int | None = None
    initial_cluster_size: int | None = None
    leader_locator: str | None = None
    filter_size_bytes: int | None = None
    initial_offset: int | None = None
    """Offset of the first record; 0 where nothing was said."""
    enormous: tuple[tuple[str, str], ...] = ()
    """Numbers of more digits than are read, by argument and as texts without leading zeros."""

    @classmethod
    def parse(cls, arguments: Mapping[str, str], *, is_strict: bool = False) -> "StreamArguments":
        """Check the arguments of a stream; unknown names are left out.

        Args:
            arguments: As a Create carries them.
            is_strict: Refuse also what RabbitMQ takes over the stream protocol alone: a size below
                0, and an age that is none. Definitions may hold what came so.

        Raises:
            InvalidArgument: Says which argument has which value, and what it takes.
        """
        return cls(
            max_length_bytes=_integer(arguments, "max-length-bytes", 0 if is_strict else None),
            max_age=_age(arguments, is_strict=is_strict),
            segment_bytes=_integer(
                arguments, "stream-max-segment-size-bytes", SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX
            ),
            initial_cluster_size=_integer(arguments, "initial-cluster-size", 1),
            leader_locator=_leader_locator(arguments),
            filter_size_bytes=_integer(
                arguments, "stream-filter-size-bytes", FILTER_SIZE_BYTES_MIN, FILTER_SIZE_BYTES_MAX
            ),
            initial_offset=_integer(arguments, "stream-initial-offset", 0, INITIAL_OFFSET_MAX),
            enormous=_enormous(arguments),
        )

    def texts(self) -> dict[str, str]:
        """Return the given arguments, in the form that `parse` takes: for the store."""
        given = {
            "max-length-bytes": self.max_length_bytes,
            "max-age": None if self.max_age is None else self.max_age.text,
            "stream-max-segment-size-bytes": self.segment_bytes,
            "initial-cluster-size": self.initial_cluster_size,
            "queue-leader-locator": self.leader_locator,
            "stream-filter-size-bytes": self.filter_size_bytes,
            "stream-initial-offset": self.initial_offset,
        }
        texts = {name: str(value) for name, value in given.items() if value is not None}
        return texts | dict(self.enormous)


def brief(arguments: Mapping[str, str]) -> str:
    """Return the arguments of a creation for a line of the log, cut at 200 letters."""
    return str(dict(arguments))[:_BRIEF_LETTERS]


def doubts(arguments: Mapping[str, str]) -> Iterator[str]:
    """Name the arguments of a creation that are taken without their usual effect, one by one.

    RabbitMQ takes them over the stream protocol, so they are not refused here either.

    Args:
        arguments: As a Create carries them, and as `StreamArguments.parse` has taken them.
    """
    for name in arguments.keys() - set(NAMES):
        near = _nearest(name)
        meant = f": did you mean {near}?" if near else ""
        yield f"{name[:_NAME_LETTERS_MAX]!r} is no argument of a stream{meant}"
    age = arguments.get("max-age")
    if age is not None and MaxAge(age).seconds is None:
        yield f"max-age {age[:40]!r} is no age such as 7D: records of any age are kept"
    if number_of(arguments.get("max-length-bytes", "0")) < 0:
        yield "max-length-bytes is below 0: only the newest unit is kept"


def _nearest(name: str) -> str:
    """Return the argument that was meant; an empty text if none is like it."""
    if len(name) > _NAME_LETTERS_MAX:
        return ""
    plain = name.strip().lower().replace("_", "-").removeprefix("x-")
    return next(iter(get_close_matches(plain, NAMES, n=1)), "")


def _integer(
    arguments: Mapping[str, str], name: str, lowest: int | None = None, highest: int | None = None
) -> int | None:
    text = arguments.get(name)
    if text is None:
        return None
    if _INTEGER.fullmatch(text) is None:
        raise InvalidStreamArgument(f"{name} is {text[:40]!r}, which is no integer")
    value = number_of(text)
    if lowest is not None and value < lowest:
        raise InvalidStreamArgument(f"{name} is {text[:40]}, which is below {lowest}")
    if highest is not None and value > highest:
        raise InvalidStreamArgument(f"{name} is {text[:40]}, which is above {highest}")
    return value


def _age(arguments: Mapping[str, str], *, is_strict: bool) -> MaxAge | None:
    text = arguments.get("max-age")
    if text is None:
        return None
    age = MaxAge(text)
    if is_strict and age.seconds is None:
        raise InvalidStreamArgument(f"max-age is {text[:40]!r}, which is no age such as 7D")
    return age


def number_of(text: str) -> int:
    """Read an integer; one of more digits than are read counts as 2^63 - 1, or that below 0."""
    digits = _plain(text)
    if len(digits) <= _DIGITS_MAX:
        return int(digits)
    return -_BEYOND_ALL if digits.startswith("-") else _BEYOND_ALL


def _plain(text: str) -> str:
    """Write an integer without a plus sign and leading zeros."""
    sign = "-" if text.startswith("-") else ""
    return sign + (text.lstrip("+-").lstrip("0") or "0")


def _enormous(arguments: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the texts of those numbers, among the arguments that take any, that are not read."""
    texts = {name: _plain(arguments.get(name, "")) for name in _UNBOUNDED}
    return tuple((name, text) for name, text in texts.items() if len(text) > _DIGITS_MAX)


def _leader_locator(arguments: Mapping[str, str]) -> str | None:
    text = arguments.get("queue-leader-locator")
    if text is not None and text not in LEADER_LOCATORS:
        known = ", ".join(LEADER_LOCATORS)
        raise InvalidStreamArgument(
            f"queue-leader-locator is {text[:40]!r}, which is not one of {known}"
        )
    return text
