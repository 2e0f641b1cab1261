"""Records of groups of readers, and their form in the controller's table."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

NONE: Final = 0
"""A group for whose reading no stream waits."""

BYTES_MAX: Final = 512 * 1024
"""Size of a record: a row of the table has 1 MiB at most."""

Cut = Mapping[int, int]
"""Offsets by segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderGroup:
    """A group of readers, as it was configured.

    What its readers have read is in its own stream, which they write.

    Attributes:
        identity: A UUID as text.
        generation: Number of the times that it was configured anew.
        refresh_ms: How often readers look what the others have done.
        checkpoint_ms: How often there is a checkpoint; below 0 none by itself.
        outstanding_max: Checkpoints that may be under way.
        retention: 0: its streams do not wait for it; 1: they wait for the cut that it gives, 2: for
            its last checkpoint, which is given as a cut too.
        starts: Where it begins in each of its streams, which are `scope/stream`. An empty cut is
            the stream's head.
        ends: Where it ends in them. An empty cut is nowhere.
        cuts: What it has given up in those that wait for it.
        is_ending: It is being deleted.
    """

    scope: str
    name: str
    identity: str
    generation: int
    refresh_ms: int
    checkpoint_ms: int
    outstanding_max: int
    retention: int
    rollover_bytes: int = 0
    starts: Mapping[str, Cut]
    ends: Mapping[str, Cut]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    is_ending: bool = False

    @property
    def subscribed(self) -> set[str]:
        """The streams that wait for it."""
        return set(self.starts) if self.retention != NONE else set()

    def to_bytes(self) -> bytes:
        """Return the record's form in the table."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        for name in ("starts", "ends", "cuts"):
            fields[name] = {stream: _cut(cut) for stream, cut in fields[name].items()}
        return cls(**fields)


def _cut(fields: Mapping[str, int]) -> Cut:
    return {int(identity): offset for identity, offset in fields.items()}
