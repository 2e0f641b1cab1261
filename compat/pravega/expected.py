"""The differences that are meant, each with its reason."""

from __future__ import annotations

from typing import Final

from compat.comparison import Expected

EXPECTED: Final[tuple[Expected, ...]] = (
    Expected(
        script="*",
        label="hello",
        theirs="Hello high_version=16 low_version=5",
        ours="Hello high_version=17 low_version=5",
        reason="Hutch speaks version 17, which has LocateOffset; release 0.13.0 speaks 16",
    ),
)
