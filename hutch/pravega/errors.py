"""The errors of a peer that breaks the protocol."""

from collections.abc import Mapping
from types import MappingProxyType


class WireError(Exception):
    """Bytes that no peer may send: the connection is to be closed.

    The protocol has no reply for them. The message is one line that says what is wrong.
    """

    def __init__(self, text: str, position: int | None = None) -> None:
        super().__init__(text if position is None else f"{text} at byte {position}")


class ListTooLong(WireError):
    """A list has more items than its command takes; nothing behind its count was read.

    Attributes:
        fields: The fields before the list, by name.
    """

    def __init__(self, text: str, fields: Mapping[str, object] = MappingProxyType({})) -> None:
        super().__init__(text)
        self.fields = fields
