"""A streaming query's position as the JSON that Spark keeps in its checkpoint.

    {"orders-0": {"o": 123}, "orders-1": {"i": "7f3a", "o": 456}}

`o` is the next offset to read. `i` is the incarnation of the stream, by which a stream that was
deleted and made again can be told. Hutch says it, as the stream's generation, and RabbitMQ does
not. Spark compares positions as texts, so equal positions must have equal texts: names are sorted,
and there is one form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

OFFSETS_MAX: Final = 1 << 63
"""Above any offset: servers and Spark hold them in 64 bits with a sign."""


class WrongPosition(ValueError):
    """A checkpoint holds something that is no position of this source."""


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """The place of a query in one stream.

    Attributes:
        offset: The next to read.
        incarnation: Of the stream; None where the server does not say.
    """

    offset: int
    incarnation: str | None = None

    def may_be_in(self, generation: int | None) -> bool:
        """Return whether it may be a place in a stream of this generation; False: it is of another.

        Where one of the two is not known, it may be.
        """
        return self.may_be_with(StreamPlace(0, incarnation_of(generation)))

    def may_be_with(self, other: "StreamPlace") -> bool:
        """Return whether this and another place may be in one stream, not made again between.

        Where the incarnation of one of the two is not known, it may be.
        """
        known = (self.incarnation, other.incarnation)
        return None in known or known[0] == known[1]

    def is_in(self, generation: int | None) -> bool:
        """Return whether it is known to be a place in a stream of this generation."""
        return generation is not None and self.incarnation == incarnation_of(generation)


def incarnation_of(generation: int | None) -> str | None:
    """Return the incarnation of a stream; None where the server does not say the generation."""
    return None if generation is None else str(generation)


Position = Mapping[str, StreamPlace]


def position_of(document: object) -> dict[str, StreamPlace]:
    """Read a position that Spark gives back; raises WrongPosition."""
    if not isinstance(document, dict):
        raise WrongPosition(f"the checkpoint's position is no object of streams: {document!r:.80}")
    return {str(stream): _place_of(stream, value) for stream, value in document.items()}


def _place_of(stream: object, value: object) -> StreamPlace:
    if isinstance(value, dict) and value.keys() <= {"i", "o"}:
        offset, incarnation = value.get("o"), value.get("i")
        is_known = incarnation is None or isinstance(incarnation, str)
        if type(offset) is int and 0 <= offset < OFFSETS_MAX and is_known:
            return StreamPlace(offset, incarnation)
    raise WrongPosition(
        f"the checkpoint's position of stream {stream!r} is no offset: {value!r:.80}"
    )


def document_of(position: Position) -> dict[str, dict[str, str | int]]:
    """Return the one form of a position."""
    return {stream: _value_of(position[stream]) for stream in sorted(position)}


def _value_of(place: StreamPlace) -> dict[str, str | int]:
    known: dict[str, str | int] = {} if place.incarnation is None else {"i": place.incarnation}
    return known | {"o": place.offset}
