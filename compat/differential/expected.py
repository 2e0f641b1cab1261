"""The differences that are meant, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A difference that is meant.

    An entry that explains nothing any more fails the comparison, so that the list stays true.

    Attributes:
        script: The script's name, or a pattern with `*`.
        label: The step's label, or a pattern.
        theirs: Words in RabbitMQ's answer.
        ours: Words in Hutch's answer.
        reason: Why it is meant.
    """

    script: str
    label: str = "*"
    theirs: str = ""
    ours: str = ""
    reason: str


EXPECTED: tuple[Expected, ...] = ()
