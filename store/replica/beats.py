"""The members' signs of life, which the log orders, and the silence of the active one.

A member that has had enough of its own beats stored since the last sign of the active one takes
over. While the log is away no member counts, and an election among its servers is no silence.
"""

import json
from dataclasses import dataclass
from typing import Final, Self

_TEXTS: Final = ("address", "copies", "key", "process")


@dataclass(frozen=True, slots=True)
class Beat:
    """One sign of life: the member, as it sees itself.

    Attributes:
        is_active: Whether it serves.
        term: The term that it knows.
        number: The last message that it has applied.
        synced: A position of the log up to which it has all on its disk.
        address: Where clients find it.
        copies: URL at which it gives copies of its directory; "" if it does not.
        key: Hash of the token by which it asks another one for a copy; "" if it needs none.
        process: Id of its process.
    """

    is_active: bool = False
    term: int = 0
    number: int = 0
    synced: int = 0
    address: str = ""
    copies: str = ""
    key: str = ""
    process: str = ""

    def pack(self) -> bytes:
        """Return its bytes: JSON, for people too."""
        return json.dumps(
            {
                "active": self.is_active,
                "term": self.term,
                "number": self.number,
                "synced": self.synced,
                "address": self.address,
                "copies": self.copies,
                "key": self.key,
                "process": self.process,
            }
        ).encode()

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the beat of some bytes; one that says nothing if they are none."""
        try:
            said = json.loads(data)
            numbers = int(said["term"]), int(said["number"]), int(said["synced"])
            texts = (str(said.get(name, "")) for name in _TEXTS)
            return cls(bool(said["active"]), *numbers, *texts)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return cls()


class Silence:
    """Counts a member's own beats since the last sign of the active one."""

    def __init__(self, beats_max: int) -> None:
        """Begin with nothing heard; at `beats_max` beats it is over."""
        self._beats_max = beats_max
        self._sign: object = None
        self.beats = 0

    def beat_stored(self, sign: object) -> bool:
        """Count a beat that the log has; return whether the active member is taken for gone.

        Args:
            sign: Anything that is another one after each sign of the active member.
        """
        if sign != self._sign:
            self._sign, self.beats = sign, 0
        else:
            self.beats += 1
        return self.beats >= self._beats_max
