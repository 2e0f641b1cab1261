"""Sends each row to a stream: the only one, or a partition by hash, binding key or name.

A stream gets its rows in the order in which they are in the batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_hutch.encoding.arrays import Counts, as_bytes, nulls_of
from pyspark_hutch.encoding.errors import BadColumn, NoRoute
from pyspark_hutch.encoding.murmur import murmur3
from pyspark_hutch.options.errors import shown

ROUTING_KEY: Final = "routing_key"
STREAM: Final = "stream"

# Routes that are remembered: at about 200 bytes each 13 MB, and more keys than bindings can be.
KEYS_MAX: Final = 1 << 16
NAME_BYTES_MAX: Final = 255
"""Size limit of a stream's name, and of a key that a partition is bound to."""

Targets: TypeAlias = npt.NDArray[np.int32]
Lookup: TypeAlias = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""Asks the server for the streams of routing keys; a key that has none may be missing."""


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of a batch that go to one stream.

    Attributes:
        stream: Their target.
        rows: Their indices, ascending; None for all rows.
    """

    stream: str
    rows: Counts | None


class Routing(Protocol):
    """Divides rows among streams."""

    def split(self, batch: pa.RecordBatch) -> list[Share]:
        """Divide a batch among streams; a stream without rows has no share."""


class ToStream:
    """All rows to one stream."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def split(self, batch: pa.RecordBatch) -> list[Share]:
        return [Share(self._stream, None)] if len(batch) else []


class RoutedByHash:
    """The partition by the hash of the key, as the official clients do.

    Args:
        partitions: The partitions in the server's order, which decides.
        column: Holds the keys: texts, bytes or whole numbers.
    """

    def __init__(self, partitions: Sequence[str], column: str = ROUTING_KEY) -> None:
        assert partitions, "a super stream has partitions"
        self._partitions = tuple(partitions)
        self._column = column

    def split(self, batch: pa.RecordBatch) -> list[Share]:
        keys = as_bytes(_keys(batch, self._column))
        targets = murmur3(keys) % np.uint32(len(self._partitions))
        return shares(targets.astype(np.int32), self._partitions)


class RoutedByKey:
    """The partitions that the key is bound to, by the server; a row goes to each of them.

    Args:
        super_stream: Names it in errors.
        lookup: Is called once a batch, with the keys that are not known yet.
        column: Holds the keys.
    """

    def __init__(self, super_stream: str, lookup: Lookup, column: str = ROUTING_KEY) -> None:
        self._super_stream = super_stream
        self._lookup = lookup
        self._column = column
        self._known: dict[str, tuple[str, ...]] = {}

    def split(self, batch: pa.RecordBatch) -> list[Share]:
        encoded = _keys(batch, self._column).dictionary_encode()
        keys: list[str] = encoded.dictionary.to_pylist()
        routes = self._routes(keys)
        chosen = np.asarray(encoded.indices, dtype=np.int32)
        streams = list(dict.fromkeys(stream for key in keys for stream in routes[key]))
        split = []
        for stream in streams:
            has_stream = np.array([stream in routes[key] for key in keys], np.bool_)
            split.append(Share(stream, np.flatnonzero(has_stream[chosen])))
        return split

    def _routes(self, keys: list[str]) -> dict[str, tuple[str, ...]]:
        unknown = [key for key in keys if key not in self._known]
        short = [key for key in unknown if len(key.encode()) <= NAME_BYTES_MAX]
        found = self._lookup(short) if short else {}
        for key in unknown:
            if not found.get(key):
                raise NoRoute(
                    f"super stream {self._super_stream!r}: routing key {shown(key)} "
                    "is bound to no partition"
                )
        routes = {key: tuple(found[key]) if key in found else self._known[key] for key in keys}
        if len(self._known) + len(unknown) > KEYS_MAX:
            self._known.clear()
        if len(unknown) <= KEYS_MAX:
            self._known.update((key, routes[key]) for key in unknown)
        return routes


class RoutedByColumn:
    """The stream that a column names.

    Args:
        streams: The partitions of the super stream; None if any stream may be named.
        column: Holds the names.
    """

    def __init__(self, streams: Sequence[str] | None, column: str = STREAM) -> None:
        self._streams = None if streams is None else tuple(streams)
        self._column = column

    def split(self, batch: pa.RecordBatch) -> list[Share]:
        encoded = _keys(batch, self._column).dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        for name in names:
            self._check(name)
        return shares(np.asarray(encoded.indices, dtype=np.int32), names)

    def _check(self, name: str) -> None:
        if self._streams is None:
            if len(name.encode()) > NAME_BYTES_MAX:
                raise NoRoute(f"column {self._column!r}: {shown(name)} is too long for a stream")
            return
        if name in self._streams:
            return
        near = get_close_matches(name, self._streams, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise NoRoute(f"column {self._column!r}: {shown(name)} is no partition of the target{hint}")


def _keys(batch: pa.RecordBatch, column: str) -> pa.Array:
    """Return the column as texts; bytes stay bytes."""
    keys = batch.column(column)
    if keys.null_count:
        row = int(nulls_of(keys).argmax())
        raise BadColumn(column, f"null in row {row} of a batch, so its partition is unknown")
    return keys.cast(pa.string()) if pa.types.is_integer(keys.type) else keys


def shares(targets: Targets, streams: Sequence[str]) -> list[Share]:
    """Divide rows whose stream's index is known; each stream's rows stay in order."""
    counts = np.bincount(targets, minlength=len(streams))
    if len(targets) and counts.max() == len(targets):
        return [Share(streams[int(targets[0])], None)]
    order = np.argsort(targets, kind="stable")
    ends = np.cumsum(counts)
    return [
        Share(stream, order[end - count : end])
        for stream, count, end in zip(streams, counts.tolist(), ends.tolist(), strict=True)
        if count
    ]
