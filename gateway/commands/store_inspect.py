"""`hutch store inspect`: show segments, records of streams and entries of tables."""

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gateway.broker.hosts.checking import StoredStream, host_of_segment, is_catalogue, streams_of
from gateway.command_line import visible
from gateway.commands.store_check import run
from gateway.log.damage.verification import Chunk
from gateway.log.names import writer_of
from gateway.log.recovery.log_check import chunks_from
from gateway.management.ctl.grammar import WrongUse
from gateway.management.definitions import unfinished
from gateway.management.definitions.report import table
from hutch.formats.chunk import DATA_POSITION, unpack_trailer
from hutch.formats.entries import entries_in
from store.local.store_check import CheckedStore, SegmentShape, open_to_check

_BODY_BYTES: Final = 60
_VALUE_CHARACTERS: Final = 200
_DUMP_BYTES: Final = 16
_HIDDEN: Final = "password"


def inspect(directory: Path, options: argparse.Namespace) -> int:
    """Show the content of a directory; return the exit code."""
    if options.limit < 1:
        raise WrongUse("--limit is at least 1")
    checked = open_to_check(directory, repairs=False)
    try:
        if options.name is None:
            _write(_list(checked))
            return 0
        stream = _stream(checked, options.name, options.vhost)
        name = options.name if stream is None else stream.log_names.data_segment
        shape = checked.shape_of(name)
        if shape is None:
            host = options.vhost
            raise WrongUse(
                f"there is no stream {options.name!r} in the virtual host {host!r}, and no segment"
                " of that name; `hutch store inspect` lists the segments"
            )
        _write(_described(shape))
        if shape.is_table:
            _write(_entries(checked, name, options.limit))
        elif stream is not None or _begins_with_chunk(checked, shape):
            _write(_chunks(checked, shape, options.offset, options.limit))
        else:
            _write(_dump(checked, shape, options.limit))
    finally:
        checked.close()
    return 0


def _write(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(visible(line) + "\n")


def _stream(checked: CheckedStore, name: str, virtual_host: str) -> StoredStream | None:
    for shape in checked.segments():
        if is_catalogue(shape.name) and host_of_segment(shape.name) == virtual_host:
            for stream in streams_of(virtual_host, checked.entries_of(shape.name)):
                if stream.entry.name == name:
                    return stream
    return None


def _list(checked: CheckedStore) -> Iterator[str]:
    rows = [
        (
            "table" if shape.is_table else "segment",
            f"{shape.length - shape.start:,}",
            f"{shape.start:,}",
            ",".join(_states(shape)) or "-",
            ",".join(path for path, _ in shape.files) or "-",
            shape.name,
        )
        for shape in checked.segments()
    ]
    yield from table(("kind", "bytes", "start", "state", "files", "name"), rows).splitlines()


def _states(shape: SegmentShape) -> Iterator[str]:
    if shape.sealed:
        yield "sealed"
    if shape.is_damaged:
        yield "damaged"


def _described(shape: SegmentShape) -> Iterator[str]:
    yield f"name      {shape.name}"
    yield f"bytes     {shape.start:,} to {shape.length:,}"
    yield f"changed   {_time(shape.modified_at_ms)}"
    if states := ", ".join(_states(shape)):
        yield f"state     {states}"
    writer = writer_of(shape.name).bytes
    for attribute, value in shape.attributes.items():
        yield f"{'writer' if attribute == writer else attribute.hex():9} {value}"
    for path, base in shape.files:
        yield f"file      {path} from byte {base:,}"
    yield ""


def _time(at_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Streams


def _begins_with_chunk(checked: CheckedStore, shape: SegmentShape) -> bool:
    return any(run(checked, chunks_from(checked.store, shape.name, shape.start)))


def _chunks(
    checked: CheckedStore, shape: SegmentShape, offset: int | None, limit: int
) -> Iterator[str]:
    position, left = shape.start, limit
    while position < shape.length and left:
        found = list(run(checked, chunks_from(checked.store, shape.name, position)))
        if not found:
            yield f"no chunk begins at byte {position:,}: `hutch store check` says more"
            return
        for at, chunk, stored in found:
            position = at + chunk[1]
            if not left:
                break
            if offset is not None and chunk[2] + chunk[3] <= offset:
                continue
            yield _chunk_line(at, chunk, stored)
            for line in _records(chunk, stored, offset or 0):
                if not left:
                    break
                left -= 1
                yield line


def _chunk_line(at: int, chunk: Chunk, stored: bytes) -> str:
    _, size, chunk_id, records, timestamp_ms, epoch, data_bytes, trailer_bytes = chunk
    trailer_at = DATA_POSITION + data_bytes
    trailer = stored[trailer_at : trailer_at + trailer_bytes]
    publishers = "".join(
        f" publisher={_text(reference)} id={last_id}" if reference else f" unit={last_id}"
        for reference, last_id in unpack_trailer(trailer)
    )
    return (
        f"chunk at byte {at:,}: offset={chunk_id} records={records} time={_time(timestamp_ms)}"
        f" epoch={epoch} bytes={size}{publishers}"
    )


def _records(chunk: Chunk, stored: bytes, first: int) -> Iterator[str]:
    """Yield a line for each entry of a chunk, as far as the entries can be decoded."""
    offset = chunk[2]
    for start, end, sub_batch in entries_in(stored, DATA_POSITION, DATA_POSITION + chunk[6]):
        size = end - start
        if sub_batch is None:
            count = 1
            text = f"{size:>8,} bytes  {_text(stored[start : min(end, start + _BODY_BYTES)])}"
            text += "…" if size > _BODY_BYTES else ""
        else:
            count = sub_batch.records
            text = f"{count} records in a batch of {size} bytes"
        if offset + count > first:
            yield f"  {offset:>12}  {text}"
        offset += count


def _text(data: bytes) -> str:
    """Return bytes as text; a byte that is no text is shown by its number."""
    return data.decode("utf-8", "backslashreplace")


# Tables and other segments


def _entries(checked: CheckedStore, name: str, limit: int) -> Iterator[str]:
    for number, entry in enumerate(checked.entries_of(name)):
        if number == limit:
            yield f"… --limit {limit} is reached"
            return
        yield f"{_text(entry.key)}  (version {entry.version})"
        yield f"    {_value(entry.value, is_shown=name != unfinished.TABLE)}"


def _value(value: bytes, *, is_shown: bool) -> str:
    if not is_shown:
        return f"{len(value)} bytes"
    try:
        text = json.dumps(_without_secrets(json.loads(value)), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = f"{len(value)} bytes: {value[:_BODY_BYTES].hex(' ')}"
    return text if len(text) <= _VALUE_CHARACTERS else f"{text[:_VALUE_CHARACTERS]}…"


def _without_secrets(value: Any) -> Any:  # noqa: ANN401  # of JSON
    if isinstance(value, dict):
        return {
            key: "(not shown)" if _HIDDEN in key.lower() and item else _without_secrets(item)
            for key, item in value.items()
        }
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _dump(checked: CheckedStore, shape: SegmentShape, limit: int) -> Iterator[str]:
    size = min(shape.length - shape.start, limit * _DUMP_BYTES)
    if not size:
        return
    result = checked.ask(checked.store.read, shape.name, shape.start, size)
    for at in range(0, len(result.data), _DUMP_BYTES):
        yield f"{shape.start + at:>12,}  {result.data[at : at + _DUMP_BYTES].hex(' ')}"
