# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Entries of a chunk: pass over them, and copy the bodies of their messages behind one another.

Cython compiles this file as it stands. Where it is not compiled `pyspark_hutch.decoding.vectors`
does the same by numpy, since a worker of Spark may have no `cython` module.

An entry is a record, or a sub-batch, which this stops at; all integers big-endian:

    record      | 0:1 size:31 | message |
    sub-batch   | 1:1 …

A message of AMQP 1.0 is sections behind one another, each a descriptor and a value:

    section     | 00 53 code | value |     or     | 00 80 code as u64 | value |
    value       | constructor | bytes by its width |
    width       | 4x: 0 | 5x: 1 | 6x: 2 | 7x: 4 | 8x: 8 | 9x: 16 | ax cx ex: u8 | bx dx fx: u32 |

    0x70 header   0x71 delivery annotations   0x72 message annotations   0x73 properties
    0x74 application properties   0x75 data   0x76 sequence   0x77 value   0x78 footer

Source: RabbitMQ's stream protocol, Publish; AMQP 1.0, parts 1.2 and 3.2.
"""

import cython

if cython.compiled:
    from cython.cimports.hutch.bytes import copy_at, u32_at
else:
    from hutch.bytes import copy_at, u32_at

# Why it stopped.
DONE = 0  # as many records as were asked for
SUB_BATCH = 1  # the entry at the place is a sub-batch
BEYOND = 2  # the entry at the place reaches past the limit
FULL = 3  # the message at the place is larger than what is left of the budget
ODD = 4  # the body of the message at the place must be put together first

# What a body is.
DATA = 0
VALUE = 1
SEQUENCE = 2
RAW = 3
NOTHING = 4

_DONE = cython.declare(cython.int, 0)
_SUB_BATCH = cython.declare(cython.int, 1)
_BEYOND = cython.declare(cython.int, 2)
_FULL = cython.declare(cython.int, 3)
_ODD = cython.declare(cython.int, 4)
_DATA = cython.declare(cython.int, 0)
_VALUE = cython.declare(cython.int, 1)
_RAW = cython.declare(cython.int, 3)
_NOTHING = cython.declare(cython.int, 4)
_ODD_BODY = cython.declare(cython.int, 5)

_SUB_BATCH_FLAG = cython.declare(cython.uint, 0x80000000)
_DATA_HEAD = cython.declare(cython.uint, 0x00537500)
_DATA_MASK = cython.declare(cython.uint, 0xFFFFFF00)
_BODY_SECTIONS = cython.declare(cython.uint, 0xE0)  # bits of data, sequence and value
_BODY_SLOT = cython.declare(cython.Py_ssize_t, 12)  # start and end of a body, behind six sections


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _plain_end(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Position after the value whose constructor is at `position`; -1 if it is not all there."""
    width: cython.int = source[position] >> 4
    size: cython.Py_ssize_t = 0
    position += 1
    if width < 4:
        return -1
    if width < 10:
        if width > 4:
            size = cython.cast(cython.Py_ssize_t, 1) << (width - 5)
    elif width & 1 == 0:
        if position >= end:
            return -1
        size = source[position]
        position += 1
    else:
        if end - position < 4:
            return -1
        size = cython.cast(cython.Py_ssize_t, u32_at(source, position))
        position += 4
    if size > end - position:
        return -1
    return position + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _value_end(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Position after the value at `position`, which may be described; -1 if it is not all there."""
    while position < end and source[position] == 0:
        position += 1
        if position >= end or source[position] == 0:
            return -1
        position = _plain_end(source, position, end)
        if position < 0:
            return -1
    if position >= end:
        return -1
    return _plain_end(source, position, end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _section_code(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """Code of the section at `position`: 0x70 to 0x78; -1 if there is none."""
    code: cython.int
    index: cython.Py_ssize_t
    if end - position < 4 or source[position] != 0:
        return -1
    if source[position + 1] == 0x53:
        code = source[position + 2]
    elif source[position + 1] == 0x80 and end - position > 10:
        for index in range(7):
            if source[position + 2 + index] != 0:
                return -1
        code = source[position + 9]
    else:
        return -1
    if code < 0x70 or code > 0x78:
        return -1
    return code


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _section_kind(code: cython.int, constructor: cython.int) -> cython.int:
    """The effect of a section on its message's body.

    NOTHING for a section that is no body, RAW for one that AMQP does not know.
    """
    if code == 0x75:
        return _DATA if constructor in (0xA0, 0xB0) else _RAW
    if code == 0x77:
        if (constructor >> 4 == 0xA or constructor >> 4 == 0xB) and (
            constructor & 15 == 0 or constructor & 15 == 1 or constructor & 15 == 3
        ):
            return _VALUE
        return _ODD_BODY
    if code in (0x70, 0x73, 0x76):
        if constructor not in (0x45, 0xC0, 0xD0):
            return _RAW
        return _ODD_BODY if code == 0x76 else _NOTHING
    return _NOTHING if constructor in (0xC1, 0xD1) else _RAW


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _say_raw(
    extents: cython.longlong[::1],
    slot: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.int:
    """Say of a message that it has no sections, and that its body is all of it."""
    index: cython.Py_ssize_t
    for index in range(12):
        extents[slot + index] = 0
    extents[slot + _BODY_SLOT] = start
    extents[slot + _BODY_SLOT + 1] = end
    return _RAW


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skim(
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    extents: cython.longlong[::1],
    slot: cython.Py_ssize_t,
) -> cython.int:
    """Find the sections of the message in [start, end); return the kind of its body."""
    seen: cython.uint = 0
    kind: cython.int = _NOTHING
    position: cython.Py_ssize_t = start
    _say_raw(extents, slot, start, start)
    while position < end:
        code: cython.int = _section_code(source, position, end)
        if code < 0:
            return _say_raw(extents, slot, start, end)
        position += 3 if source[position + 1] == 0x53 else 10
        value_end: cython.Py_ssize_t = _value_end(source, position, end)
        if value_end < 0:
            return _say_raw(extents, slot, start, end)
        constructor: cython.int = source[position]
        section: cython.int = _section_kind(code, constructor)
        bit: cython.uint = cython.cast(cython.uint, 1) << (code - 0x70)
        if section == _RAW or (seen & bit and code not in (0x75, 0x76)):
            return _say_raw(extents, slot, start, end)
        if section == _NOTHING:
            place: cython.Py_ssize_t = slot + 2 * (5 if code == 0x78 else code - 0x70)
            extents[place] = position
            extents[place + 1] = value_end
        else:
            if seen & _BODY_SECTIONS & ~bit:
                return _say_raw(extents, slot, start, end)
            kind = _ODD_BODY if seen & bit else section
            extents[slot + _BODY_SLOT] = position + (2 if constructor >> 4 == 0xA else 5)
            extents[slot + _BODY_SLOT + 1] = value_end
        seen |= bit
        position = value_end
    return kind


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _find_body(
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    extents: cython.longlong[::1],
    slot: cython.Py_ssize_t,
) -> cython.int:
    """Find body and sections of the message in [start, end); return the kind of its body."""
    size: cython.Py_ssize_t = end - start
    _say_raw(extents, slot, start, end)
    if size == 0:
        return _RAW
    # Nearly all messages are one data section.
    if size < 5 or u32_at(source, start) & _DATA_MASK != _DATA_HEAD:
        return _skim(source, start, end, extents, slot)
    if source[start + 3] == 0xA0 and source[start + 4] == size - 5:
        extents[slot + _BODY_SLOT] = start + 5
        return _DATA
    if (
        size >= 8
        and source[start + 3] == 0xB0
        and cython.cast(cython.Py_ssize_t, u32_at(source, start + 4)) == size - 8
    ):
        extents[slot + _BODY_SLOT] = start + 8
        return _DATA
    return _skim(source, start, end, extents, slot)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _stop_at(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    budget: cython.Py_ssize_t,
) -> cython.int:
    """Reason why the entry at `position` cannot be taken; DONE if it can."""
    head: cython.uint
    if limit - position < 4:
        return _BEYOND
    head = u32_at(source, position)
    if head >= _SUB_BATCH_FLAG:
        return _SUB_BATCH
    if cython.cast(cython.Py_ssize_t, head) > limit - position - 4:
        return _BEYOND
    return _FULL if cython.cast(cython.Py_ssize_t, head) > budget else _DONE


def skip_records(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> tuple:
    """Pass over records.

    Returns:
        (reason, position, skipped): why and where it stopped; DONE, SUB_BATCH or BEYOND.
    """
    reason: cython.int = _DONE
    skipped: cython.Py_ssize_t = 0
    # hot: an entry costs a few nanoseconds
    while skipped < count:
        reason = _stop_at(source, position, limit, limit)
        if reason != _DONE:
            break
        position += 4 + cython.cast(cython.Py_ssize_t, u32_at(source, position))
        skipped += 1
    # end of hot
    return reason, position, skipped


def take_records(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    budget: cython.Py_ssize_t,
    is_amqp: cython.bint,
    bodies: cython.uchar[::1],
    used: cython.Py_ssize_t,
    has_bodies: cython.bint,
    ends: cython.int[::1],
    kinds: cython.uchar[::1],
    row: cython.Py_ssize_t,
    extents: cython.longlong[::1],
    step: cython.Py_ssize_t,
) -> tuple:
    """Copy the bodies of at most `count` records, from `bodies[used]` and `row` on.

    Messages have at most `budget` bytes in all; there is room for as many. Unless `is_amqp` each
    body is all of its message, and RAW. Unless `has_bodies` bodies and their ends are left out.
    `extents` gets 14 numbers a record, or with a `step` of 0 each those of one record over the
    last's: start and end in the source of six sections' values (header, delivery annotations,
    message annotations, properties, application properties, footer; 0 where there is none), and of
    the body.

    Returns:
        (reason, position, row, used): why and where it stopped, the next row, the bytes in use.
    """
    reason: cython.int = _DONE
    row_end: cython.Py_ssize_t = row + count
    slot: cython.Py_ssize_t = 0
    # hot: an entry costs some ten nanoseconds and the copy of its body
    while row < row_end:
        reason = _stop_at(source, position, limit, budget)
        if reason != _DONE:
            break
        start: cython.Py_ssize_t = position + 4
        end: cython.Py_ssize_t = start + cython.cast(cython.Py_ssize_t, u32_at(source, position))
        if is_amqp:
            kinds[row] = _find_body(source, start, end, extents, slot)
            if kinds[row] == _ODD_BODY:
                reason = _ODD
                break
        else:
            kinds[row] = _say_raw(extents, slot, start, end)
        if has_bodies:
            body: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, extents[slot + _BODY_SLOT])
            size: cython.Py_ssize_t = (
                cython.cast(cython.Py_ssize_t, extents[slot + _BODY_SLOT + 1]) - body
            )
            copy_at(bodies, used, source, body, size)
            used += size
            ends[row + 1] = cython.cast(cython.int, used)
        budget -= end - start
        slot += step
        position = end
        row += 1
    # end of hot
    return reason, position, row, used
