"""What a connection keeps of the properties of its subscriptions: all of them, or none; no I/O.

Administrators are shown them, and a filter is read from them. A Subscribe may have a frame full,
and a connection 256 subscriptions, so what is kept has bounds.
"""

from collections.abc import Mapping
from typing import Final

ONE_BYTES_MAX: Final = 64 * 1024
"""Of one subscription: a thousand filter values that look like UUIDs, and more."""
ALL_BYTES_MAX: Final = 1024 * 1024
"""Of all subscriptions of a connection: a frame of the default size."""
REST_BYTES_MAX: Final = 4 * 1024
"""Of one subscription, of properties that mean nothing here: notes for people who look."""

_ENTRY_BYTES: Final = 4
"""What the wire spends on the sizes of a name and a value."""
_KNOWN: Final = frozenset(("name", "single-active-consumer", "super-stream", "match-unfiltered"))
_FILTER: Final = "filter."


class TooLarge(ValueError):
    """Properties of more bytes than are kept; the message says of which."""


class Properties(dict[str, str]):
    """The properties of one subscription.

    Attributes:
        wire_bytes: What they took in the Subscribe frame.
    """

    __slots__ = ("wire_bytes",)

    def __init__(self, given: Mapping[str, str], others_bytes: int = 0) -> None:
        """Keep properties.

        Args:
            given: As the Subscribe has them.
            others_bytes: What the connection keeps of its other subscriptions.

        Raises:
            TooLarge: Any bound is passed.
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
