"""Chooses the loops over entries: the compiled kernel where there is one, else numpy.

A kernel's source is never run by the interpreter here: it imports `cython`, which workers may lack.

The kernel pays where sizes differ. Measured as the CPU of a process that reads two columns of a
stream from a server, with the kernel it is 1.2 times as fast for messages of 100 bytes each, 1.8
times for 1 KiB each, 3.5 times for 500 to 1,500 bytes, and 6 times for 50 to 150 bytes.
"""

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from hutch.formats.amqp.sections import Source
from pyspark_hutch.decoding import vectors

KERNEL: Final = "pyspark_hutch.kernel.entries"


class Way(Protocol):
    """The loops over entries; `pyspark_hutch/kernel/entries.py` describes them."""

    def skip_records(
        self, source: Source, position: int, limit: int, count: int, /
    ) -> tuple[int, int, int]:
        """Pass over records."""

    def take_records(  # noqa: PLR0913, PLR0917  # the kernel's arguments
        self,
        source: Source,
        position: int,
        limit: int,
        count: int,
        budget: int,
        is_amqp: bool,  # noqa: FBT001
        bodies: npt.NDArray[np.uint8],
        used: int,
        has_bodies: bool,  # noqa: FBT001
        ends: npt.NDArray[np.int32],
        kinds: npt.NDArray[np.uint8],
        row: int,
        extents: npt.NDArray[np.int64],
        step: int,
        /,
    ) -> tuple[int, int, int, int]:
        """Copy the bodies of records."""


def fastest_way() -> Way:
    """Return the compiled loops if they are installed."""
    spec = find_spec(KERNEL)
    origin = "" if spec is None or spec.origin is None else spec.origin
    if origin.endswith(tuple(EXTENSION_SUFFIXES)):
        way: Way = import_module(KERNEL)
        return way
    return vectors
