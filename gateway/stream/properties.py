"""Properties of a connection's subscriptions, kept as a whole or refused; no I/O.

Administrators see them, and filters are read from them. A Subscribe may fill a frame with them, and
a connection may have 256 subscriptions, so their size is limited.
"""

from collections.abc import Mapping
from typing import Final

ONE_BYTES_MAX: Final = 64 * 1024
"""Limit for one subscription: enough for a thousand filter values that look like UUIDs."""
ALL_BYTES_MAX: Final = 1024 * 1024
"""Limit for all subscriptions of a connection: a frame of the default size."""
REST_BYTES_MAX: Final = 4 * 1024
"""Limit for those properties of one subscription that mean nothing to the server: notes for
administrators."""

_ENTRY_BYTES: Final = 4
"""Bytes on the wire for the sizes of a name and a value."""
_KNOWN: Final = frozenset(("name", "single-active-consumer", "super-stream", "match-unfiltered"))
_FILTER: Final = "filter."


class TooLarge(ValueError):
    """Properties that are too large to be kept; the message says which limit they pass."""


class Properties(dict[str, str]):
    """The properties of one subscription.

    Attributes:
        wire_bytes: Their size in the Subscribe frame.
    """

    __slots__ = ("wire_bytes",)

    def __init__(self, given: Mapping[str, str], others_bytes: int = 0) -> None:
        """Keep properties.

        Args:
            given: As the Subscribe has them.
            others_bytes: Size of those of the connection's other subscriptions.

        Raises:
            TooLarge: They pass a limit.
        """
        sizes = {name: _size(name) + _size(value) + _ENTRY_BYTES for name, value in given.items()}
        self.wire_bytes = sum(sizes.values())
        rest = sum(size for name, size in sizes.items() if not _is_known(name))
        for what, size, most in (
            ("properties that are not known", rest, REST_BYTES_MAX),
            ("the properties of a subscription", self.wire_bytes, ONE_BYTES_MAX),
            (
                "the properties of all subscriptions",
                self.wire_bytes + others_bytes,
                ALL_BYTES_MAX,
            ),
        ):
            if size > most:
                raise TooLarge(f"{what} have {size} bytes, more than {most}")
        super().__init__(given)


def _is_known(name: str) -> bool:
    return name in _KNOWN or name.startswith(_FILTER)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
