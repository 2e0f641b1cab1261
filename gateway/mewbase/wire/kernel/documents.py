# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""A BSON document taken apart, and checked, in one pass over its bytes.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

    document | size i32 (little-endian, of all of it) | element … | 00
    element  | type u8 | name … 00 | value

    01 double      8 bytes                    0A null        nothing
    02 string      size i32, text, 00         0B regex       text … 00, text … 00
    03 document    a document                 0C pointer     as a string, 12 bytes
    04 array       a document                 0D code        as a string
    05 binary      size i32, kind u8, bytes   0E symbol      as a string
    06 undefined   nothing                    0F code        size i32, as a string, a document
    07 object id   12 bytes                   10 int32       4 bytes
    08 boolean     00 or 01                   11 timestamp   8 bytes
    09 date        8 bytes                    12 int64       8 bytes
    FF, 7F         nothing                    13 decimal128  16 bytes

Texts are UTF-8. A document is at most 100 deep, itself included; so is each value of a frame.

Source: BSON specification, version 1.1.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

_DEPTH_MAX = cython.declare(cython.int, 100)
_BAD = cython.declare(cython.Py_ssize_t, -1)
_SMALLEST = cython.declare(cython.Py_ssize_t, 5)
_FIELDS_MAX = cython.declare(cython.Py_ssize_t, 1000)
_KNOWN = cython.declare(cython.int, 0)
_PART = cython.declare(cython.int, 1)
_WHOLE = cython.declare(cython.int, 2)
_TYPE_MAX = cython.declare(cython.Py_ssize_t, 1000)
_OLD_BINARY = cython.declare(cython.int, 2)
_MARKS = cython.declare(cython.int, 63)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _i32_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return an i32; a negative one as -1, which no size can be."""
    if source[position + 3] & 0x80:
        return _BAD
    return (
        (cython.cast(cython.Py_ssize_t, source[position + 3]) << 24)
        | (cython.cast(cython.Py_ssize_t, source[position + 2]) << 16)
        | (cython.cast(cython.Py_ssize_t, source[position + 1]) << 8)
        | source[position]
    )


@cython.cfunc
@cython.inline
def _bytes_of(
    source: cython.const_uchar[::1], start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> bytes:
    """Return [start, end) as bytes. Compiled slices do the same, but take half a microsecond."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_const_char, cython.address(source[start])), end - start
        )
    return bytes(source[start:end])


@cython.cfunc
@cython.exceptval(check=False)
def _is_text(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Return whether [position, end) is UTF-8, in the shortest form and without surrogates."""
    byte: cython.int
    following: cython.int
    least: cython.int
    most: cython.int
    while position < end:
        byte = source[position]
        position += 1
        if byte < 0x80:
            continue
        least, most = 0x80, 0xBF
        if 0xC2 <= byte <= 0xDF:
            following = 1
        elif 0xE0 <= byte <= 0xEF:
            following = 2
            if byte == 0xE0:
                least = 0xA0
            elif byte == 0xED:
                most = 0x9F
        elif 0xF0 <= byte <= 0xF4:
            following = 3
            if byte == 0xF0:
                least = 0x90
            elif byte == 0xF4:
                most = 0x8F
        else:
            return False
        if position + following > end or not least <= source[position] <= most:
            return False
        position += 1
        following -= 1
        while following:
            if source[position] & 0xC0 != 0x80:
                return False
            position += 1
            following -= 1
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _name_end(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the position behind a text and its 00; -1 if there is none before `end`."""
    start: cython.Py_ssize_t = position
    is_plain: cython.bint = True
    while position < end and source[position]:
        if source[position] & 0x80:
            is_plain = False
        position += 1
    if position >= end or not (is_plain or _is_text(source, start, position)):
        return _BAD
    return position + 1


@cython.cfunc
@cython.exceptval(check=False)
def _string_end(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the position behind a string; -1 if it is none."""
    size: cython.Py_ssize_t
    if position + 5 > end:
        return _BAD
    size = _i32_at(source, position)
    position += 4
    if size < 1 or size > end - position or source[position + size - 1]:
        return _BAD
    if not _is_text(source, position, position + size - 1):
        return _BAD
    return position + size


@cython.cfunc
@cython.exceptval(check=False)
def _document_end(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    depth: cython.int,
) -> cython.Py_ssize_t:
    """Return the position behind a document; -1 if it is none, or `depth` more are too many."""
    size: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    code: cython.int
    if depth > _DEPTH_MAX or position + _SMALLEST > end:
        return _BAD
    size = _i32_at(source, position)
    if size < _SMALLEST or size > end - position:
        return _BAD
    stop = position + size - 1
    if source[stop]:
        return _BAD
    position += 4
    # hot: no Python operation up to the end of the loop
    while position < stop:
        code = source[position]
        position = _name_end(source, position + 1, stop)
        if position < 0:
            return _BAD
        position = _value_end(source, code, position, stop, depth)
        if position < 0:
            return _BAD
    # end of hot
    return stop + 1


@cython.cfunc
@cython.exceptval(check=False)
def _value_end(
    source: cython.const_uchar[::1],
    code: cython.int,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    depth: cython.int,
) -> cython.Py_ssize_t:
    """Return the position behind a value of the type `code`; -1 if it is none."""
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t = position
    if code == 0x02 or code == 0x0D or code == 0x0E:  # noqa: PLR1714  # faster than a tuple
        return _string_end(source, position, end)
    if code == 0x03 or code == 0x04:  # noqa: PLR1714
        return _document_end(source, position, end, depth + 1)
    if code == 0x10:
        position += 4
    elif code == 0x01 or code == 0x09 or code == 0x11 or code == 0x12:  # noqa: PLR1714
        position += 8
    elif code == 0x07:
        position += 12
    elif code == 0x13:
        position += 16
    elif code == 0x08:
        if position >= end or source[position] > 1:
            return _BAD
        position += 1
    elif code == 0x05:
        if position + 5 > end:
            return _BAD
        size = _i32_at(source, position)
        if size < 0 or size > end - position - 5:
            return _BAD
        # Of the old kind, the size is there twice.
        if source[position + 4] == _OLD_BINARY and (
            size < 4 or _i32_at(source, position + 5) != size - 4
        ):
            return _BAD
        position += 5 + size
    elif code == 0x0B:
        position = _name_end(source, position, end)
        if position >= 0:
            position = _name_end(source, position, end)
    elif code == 0x0C:
        position = _string_end(source, position, end)
        if position >= 0:
            position += 12
    elif code == 0x0F:
        if position + 4 > end:
            return _BAD
        size = _i32_at(source, position)
        position = _string_end(source, position + 4, end)
        if position >= 0:
            position = _document_end(source, position, end, depth + 1)
        if position < 0 or position - start != size:
            return _BAD
    elif code != 0x0A and code != 0x06 and code != 0xFF and code != 0x7F:  # noqa: PLR1714
        return _BAD
    return position if position <= end else _BAD


@cython.cfunc
@cython.exceptval(check=False)
def _known_end(
    source: cython.const_uchar[::1],
    code: cython.int,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return the position behind a value of a document that was checked; -1 if it is none.

    Documents and texts are stepped over by their size.
    """
    size: cython.Py_ssize_t
    if not (code == 0x02 or code == 0x03 or code == 0x04):  # noqa: PLR1714  # as above
        return _value_end(source, code, position, end, 0)
    if position + 4 > end:
        return _BAD
    size = _i32_at(source, position)
    if code == 0x02:
        position += 4
    return position + size if 0 <= size <= end - position else _BAD


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mark(size: cython.Py_ssize_t, last: cython.int) -> cython.ulonglong:
    """Return a bit for a name: most names that differ have different ones."""
    return cython.cast(cython.ulonglong, 1) << ((size + 5 * last) & _MARKS)


@cython.cfunc
def _marks_of(names: object) -> cython.ulonglong:
    """Return the bits of some names."""
    marks: cython.ulonglong = 0
    name: bytes
    for name in names:
        marks |= _mark(len(name), name[len(name) - 1] if name else 0)
    return marks


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _may_be_in(
    marks: cython.ulonglong,
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.bint:
    """Return whether the name in [start, end) can be one of those that have these bits."""
    return (marks & _mark(end - start, source[end - 1] if end > start else 0)) != 0


def is_document(source: cython.const_uchar[::1], start: int, end: int) -> bool:
    """Return whether [start, end) is one whole document."""
    return _document_end(source, start, end, 1) == end


def elements(source: cython.const_uchar[::1], start: int, end: int, most: int) -> dict | None:
    """Return the elements of a document in [start, end) that was checked.

    Of two elements of one name the last counts. What lies deeper is not looked at.

    Returns:
        For each name, as bytes, the type and where its value begins and ends. None if it is no
        document, or has more than `most` elements.
    """
    return _elements(source, start, end, most, _KNOWN, 0)


def chosen(
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    names: frozenset,
) -> dict:
    """Return those elements of a document that was checked that have one of some names.

    Of two elements of one name the last counts. Nothing is made of the others: 100,000 of them take
    a millisecond or less.

    Returns:
        For each name that is there the type and where its value begins and ends.
    """
    stop: cython.Py_ssize_t = end - 1
    position: cython.Py_ssize_t = start + 4
    begin: cython.Py_ssize_t
    value: cython.Py_ssize_t
    code: cython.int
    marks: cython.ulonglong = _marks_of(names)
    found = {}
    while 0 < position < stop:
        code = source[position]
        begin = position + 1
        value = _name_end(source, begin, stop)
        if value < 0:
            break
        position = _known_end(source, code, value, stop)
        if position > 0 and _may_be_in(marks, source, begin, value - 1):
            name = _bytes_of(source, begin, value - 1)
            if name in names:
                found[name] = (code, value, position)
    return found


def merged(
    older: cython.const_uchar[::1], newer: cython.const_uchar[::1], most: cython.Py_ssize_t
) -> bytes | None:
    """Return a document with the elements of two that were checked; of two with one name the newer.

    It has the place of the older one; what is new comes behind. Of the older document only names
    are looked at, and what stays is copied in runs. None if one of them is no document, or has more
    than `most` elements, or the result would.
    """
    stop: cython.Py_ssize_t = len(older) - 1
    position: cython.Py_ssize_t = 4
    kept_from: cython.Py_ssize_t = 4
    begin: cython.Py_ssize_t
    value: cython.Py_ssize_t
    code: cython.int
    count: cython.Py_ssize_t = 0
    marks: cython.ulonglong
    changes = _elements(newer, 0, len(newer), most, _KNOWN, 0)
    if changes is None or stop < 4:
        return None
    marks = _marks_of(changes)
    pieces = [b""]
    while position < stop:
        if count == most:
            return None
        count += 1
        begin = position
        code = older[position]
        value = _name_end(older, begin + 1, stop)
        if value < 0:
            return None
        position = _known_end(older, code, value, stop)
        if position < 0:
            return None
        if not _may_be_in(marks, older, begin + 1, value - 1):
            continue
        name = _bytes_of(older, begin + 1, value - 1)
        if name not in changes:
            continue
        if kept_from < begin:
            pieces.append(_bytes_of(older, kept_from, begin))
        kept_from = position
        change = changes[name]
        if change is not None:
            pieces.append(_element(newer, name, change))
            changes[name] = None  # another one of that name goes
    pieces.append(_bytes_of(older, kept_from, stop))
    for name, change in changes.items():
        if change is not None:
            if count == most:
                return None
            count += 1
            pieces.append(_element(newer, name, change))
    pieces.append(b"\0")
    size: cython.Py_ssize_t = 4
    for piece in pieces:
        size += len(piece)
    pieces[0] = size.to_bytes(4, "little")
    return b"".join(pieces)


@cython.cfunc
def _element(source: cython.const_uchar[::1], name: bytes, place: tuple) -> bytes:
    """Return the bytes of an element whose value has this place."""
    begin: cython.Py_ssize_t = place[1] - len(name) - 2
    return _bytes_of(source, begin, place[2])


def frame(
    source: cython.const_uchar[::1], start: int, end: int, value_bytes_max: int
) -> tuple | None:
    """Return type and elements of a frame in [start, end); None if it is no document.

    A frame is a document of a string `type` and a document `frame`, in any order. What is missing,
    or of another type, is None in the answer; a long `type` is cut. Each of the two has at most
    1,000 elements: 16 MiB of them would take half a gigabyte of memory, and seconds in which no
    other client has a turn. Of a document, array or string in `frame` above `value_bytes_max` only
    the size is looked at.
    """
    outer = _elements(source, start, end, _FIELDS_MAX, _WHOLE, 0)
    if outer is None:
        return None
    kind = None
    code, value, stop = outer.get(b"type", (0, 0, 0))
    if code == 0x02:
        kind = _bytes_of(source, value + 4, min(stop - 1, value + 4 + _TYPE_MAX))
    code, value, stop = outer.get(b"frame", (0, 0, 0))
    inner = None
    if code == 0x03:
        inner = _elements(source, value, stop, _FIELDS_MAX, _PART, value_bytes_max)
        if inner is None:
            return None
    return kind, inner


@cython.cfunc
def _elements(
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    way: cython.int,
    read_max: cython.Py_ssize_t,
) -> dict | None:
    """Return the elements; None if there are more than `most`, or it is no document.

    Args:
        source: Where the document is.
        start: Where it begins.
        end: Where it ends.
        most: The most elements.
        way: _KNOWN: what lies deeper is not looked at. _PART: it is part of a frame, and does not
            count for the depth of its values. _WHOLE: it is a whole frame, and of a document named
            `frame` only the size is looked at.
        read_max: Of a larger document, array or string in a _PART only the size is looked at.
    """
    stop: cython.Py_ssize_t = end - 1
    position: cython.Py_ssize_t = start + 4
    name_start: cython.Py_ssize_t
    value: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    code: cython.int
    is_known: cython.bint
    if end - start < _SMALLEST or _i32_at(source, start) != end - start or source[stop]:
        return None
    found = {}
    while position < stop:
        if count == most:
            return None
        count += 1
        code = source[position]
        name_start = position + 1
        value = _name_end(source, name_start, stop)
        if value < 0:
            return None
        name = _bytes_of(source, name_start, value - 1)
        is_known = way == _KNOWN
        if code == 0x03 and way == _WHOLE:
            is_known = name == b"frame"
        elif way == _PART and 0x02 <= code <= 0x04:
            is_known = value + 4 <= stop and _i32_at(source, value) > read_max
        if is_known:
            position = _known_end(source, code, value, stop)
        else:
            position = _value_end(source, code, value, stop, 0)
        if position < 0:
            return None
        found[name] = (code, value, position)
    return found
