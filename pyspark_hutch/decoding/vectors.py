"""Passing over records and copying bodies by numpy and Arrow, in place of the kernel.

For workers that have no compiled module, only numpy and pyarrow. Messages of one size are one copy
with a stride. Others are found by a loop over their sizes; Arrow then takes the bodies in one call
from an array over the source itself, whose values are by turns a body and what is between two.
A few messages are cheaper by hand.

A call may stop with DONE before it took as many records as were asked for.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hutch.formats.amqp.sections import Source
from hutch.formats.entries import RECORD_HEAD, SUB_BATCH_FLAG
from pyspark_hutch.decoding.bodies import (
    BEYOND,
    DATA,
    DONE,
    FULL,
    ODD,
    ODD_BODY,
    RAW,
    SUB_BATCH,
    skim,
)

_FIRST_SUB_BATCH_HEAD: Final = SUB_BATCH_FLAG << 24
"""A head from here on, as u32, is a sub-batch's."""
_FEW: Final = 40
"""The count of messages that costs as much by hand as by numpy's calls."""
_SHORT, _LONG = 0x0053_75A0, 0x0053_75B0
_SHORT_FRONT, _LONG_FRONT = 5, 8

_Numbers = npt.NDArray[np.int64]
_Extents = npt.NDArray[np.int64]


class _Bodies(NamedTuple):
    """Places and kinds of bodies in the source, up to the first odd one."""

    starts: Sequence[int] | _Numbers
    sizes: Sequence[int] | _Numbers
    kinds: int | Sequence[int] | npt.NDArray[np.uint8]


def skip_records(source: Source, position: int, limit: int, count: int) -> tuple[int, int, int]:
    """Pass over records, as the kernel's function of this name."""
    unpack = RECORD_HEAD.unpack_from
    run = _run(source, position, limit, count, limit) if count > _FEW else 0
    if run:
        position += run * (unpack(source, position)[0] + 4)
    last = limit - 4
    for skipped in range(run, count):
        if position > last:
            return BEYOND, position, skipped
        size = unpack(source, position)[0]
        end = position + 4 + size
        if end > limit:
            return _why(size, position + 4, limit), position, skipped
        position = end
    return DONE, position, count


def take_records(  # noqa: PLR0913, PLR0917  # the kernel's arguments
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
    extents: _Extents,
    step: int,
) -> tuple[int, int, int, int]:
    """Copy the bodies of records, as the kernel's function of this name."""
    run = _run(source, position, limit, count, budget) if count > _FEW else 0
    front = _common_front(source, position + 4, run, is_amqp=is_amqp) if run > _FEW else None
    if front is not None:
        size = RECORD_HEAD.unpack_from(source, position)[0]
        kinds[row : row + run] = DATA if is_amqp else RAW
        extents[: run * step] = 0
        if has_bodies:
            stop = used + run * (size - front)
            _copy_run(source, position + 4 + front, size + 4, bodies[used:stop].reshape(run, -1))
            ends[row + 1 : row + run + 1] = np.arange(1, run + 1) * (size - front) + used
            used = stop
        return DONE, position + run * (size + 4), row + run, used
    reason, position, starts, sizes = _walk(source, position, limit, count, budget)
    if not starts:
        return reason, position, row, used
    is_few = len(starts) <= _FEW
    found = _Bodies(starts, sizes, RAW)
    if is_amqp:
        found = (_find_few if is_few else _find_many)(source, starts, sizes, extents, step)
    taken = len(found.starts)
    if taken < len(starts):
        reason, position = ODD, starts[taken] - 4
    kinds[row : row + taken] = found.kinds
    if has_bodies and taken:
        (_copy_few if is_few else _copy_many)(source, found, bodies[used:])
        ends[row + 1 : row + taken + 1] = (
            list(accumulate(found.sizes, initial=used))[1:]
            if is_few
            else np.cumsum(found.sizes) + used
        )
        used = int(ends[row + taken])
    return reason, position, row + taken, used


def _walk(
    source: Source, position: int, limit: int, count: int, budget: int
) -> tuple[int, int, list[int], list[int]]:
    """Return why and where it stopped, and starts and sizes of the messages up to there."""
    unpack = RECORD_HEAD.unpack_from
    starts: list[int] = []
    sizes: list[int] = []
    last = limit - 4
    for _ in range(count):
        if position > last:
            return BEYOND, position, starts, sizes
        size = unpack(source, position)[0]
        start = position + 4
        if size > budget or start + size > limit:
            return _why(size, start, limit), position, starts, sizes
        starts.append(start)
        sizes.append(size)
        budget -= size
        position = start + size
    return DONE, position, starts, sizes


def _why(size: int, start: int, limit: int) -> int:
    if size >= _FIRST_SUB_BATCH_HEAD:
        return SUB_BATCH
    return BEYOND if start + size > limit else FULL


def _run(source: Source, position: int, limit: int, count: int, budget: int) -> int:
    """Count the messages from `position` on that have the size of the first."""
    if limit - position < RECORD_HEAD.size:
        return 0
    size = RECORD_HEAD.unpack_from(source, position)[0]
    stride = size + 4
    most = min(count, (limit - position) // stride)
    if size:
        most = min(most, budget // size)
    # The second is looked at first: where sizes differ that is nearly always enough.
    if most <= _FEW or RECORD_HEAD.unpack_from(source, position + stride)[0] != size:
        return 0
    return _equal(_numbers(source, position, most, stride))


def _numbers(source: Source, position: int, count: int, stride: int) -> npt.NDArray[np.uint32]:
    """Look at a u32 in each of `count` messages."""
    return np.ndarray((count,), ">u4", source, position, (stride,))


def _equal(numbers: npt.NDArray[np.uint32]) -> int:
    """Count the numbers that are like the first, up to one that is not."""
    same = numbers == numbers[0]
    return len(same) if same.all() else int(same.argmin())


def _common_front(source: Source, start: int, count: int, *, is_amqp: bool) -> int | None:
    """Return the count of bytes in front of each body of a run; None if they differ."""
    if not is_amqp:
        return 0
    size = RECORD_HEAD.unpack_from(source, start - 4)[0]
    front = _front(source, start, size)
    for place in (start, start + front - 4):
        if not front or _equal(_numbers(source, place, count, size + 4)) != count:
            return None
    return front


def _front(source: Source, start: int, size: int) -> int:
    """Return the bytes in front of the body, if the message is one data section; else 0."""
    if size < _SHORT_FRONT:
        return 0
    code = RECORD_HEAD.unpack_from(source, start)[0]
    if code == _SHORT:
        return _SHORT_FRONT if source[start + 4] == size - _SHORT_FRONT else 0
    if code == _LONG and size >= _LONG_FRONT:
        is_all = RECORD_HEAD.unpack_from(source, start + 4)[0] == size - _LONG_FRONT
        return _LONG_FRONT if is_all else 0
    return 0


def _copy_run(source: Source, start: int, stride: int, target: npt.NDArray[np.uint8]) -> None:
    """Copy bodies of one size into the rows of `target`."""
    target[:] = np.ndarray(target.shape, np.uint8, source, start, (stride, 1))


def _find_few(
    source: Source, starts: list[int], sizes: list[int], extents: _Extents, step: int
) -> _Bodies:
    """Find the bodies of messages, one by one."""
    body_starts: list[int] = []
    body_sizes: list[int] = []
    kinds: list[int] = []
    extents[: len(starts) * step] = 0
    for index, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        front = _front(source, start, size)
        kind, body, end = DATA, start + front, start + size
        if not front:
            kind, body, end, found = skim(source, start, end)
            if kind == ODD_BODY:
                break
            extents[index * step : index * step + step] = found[:step]
        body_starts.append(body)
        body_sizes.append(end - body)
        kinds.append(kind)
    return _Bodies(body_starts, body_sizes, kinds)


def _find_many(
    source: Source, starts: list[int], sizes: list[int], extents: _Extents, step: int
) -> _Bodies:
    """Find the bodies of messages: all that are one data section at once, the others one by one."""
    body_starts, body_sizes = np.array(starts, np.int64), np.array(sizes, np.int64)
    fronts = _fronts(source, body_starts, body_sizes)
    body_starts += fronts
    body_sizes -= fronts
    kinds = np.full(len(starts), DATA, np.uint8)
    extents[: len(starts) * step] = 0
    for index in np.flatnonzero(fronts == 0).tolist():
        start = starts[index]
        kind, body, end, found = skim(source, start, start + sizes[index])
        if kind == ODD_BODY:
            return _Bodies(body_starts[:index], body_sizes[:index], kinds[:index])
        kinds[index] = kind
        body_starts[index], body_sizes[index] = body, end - body
        extents[index * step : index * step + step] = found[:step]
    return _Bodies(body_starts, body_sizes, kinds)


def _fronts(source: Source, starts: _Numbers, sizes: _Numbers) -> _Numbers:
    """Return the `_front` of each message."""
    # A u32 at every byte. Near the end of the source a place is moved: then the size is too small.
    numbers = _numbers(source, 0, len(source) - 3, 1)
    last = len(numbers) - 1
    codes = numbers[np.minimum(starts, last)]
    behind = numbers[np.minimum(starts + 4, last)].astype(np.int64)
    is_short = (codes == _SHORT) & (sizes >= _SHORT_FRONT) & (behind >> 24 == sizes - _SHORT_FRONT)
    fronts = np.where(is_short, _SHORT_FRONT, 0)
    if not is_short.all():
        is_long = (codes == _LONG) & (sizes >= _LONG_FRONT) & (behind == sizes - _LONG_FRONT)
        fronts[is_long] = _LONG_FRONT
    return fronts


def _copy_few(source: Source, found: _Bodies, target: npt.NDArray[np.uint8]) -> None:
    view = target.data
    place = 0
    for start, size in zip(found.starts, found.sizes, strict=True):
        view[place : place + size] = source[start : start + size]
        place += size


def _copy_many(source: Source, found: _Bodies, target: npt.NDArray[np.uint8]) -> None:
    count = len(found.starts)
    places = np.empty(2 * count, np.int32)
    places[::2] = found.starts
    places[1::2] = np.add(found.starts, found.sizes)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(source)]
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    taken = by_turns.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    joined = taken.buffers()[2]
    if joined is not None:
        total = int(np.sum(found.sizes))
        target[:total] = np.frombuffer(joined, np.uint8, total)
