# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Steps over records that lie behind one another, as they do in an opened sub-batch.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

    record | size u32 (big-endian, below 2^31) | bytes
"""

import cython


def behind(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    bytes_max: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return the position behind `count` records; lets other threads run meanwhile.

    Args:
        source: Where the records are.
        position: Where the first one begins.
        count: How many.
        bytes_max: Largest size of one.

    Returns:
        The position. -1 if there are fewer records, or one of them is larger.
    """
    limit: cython.Py_ssize_t = len(source)
    size: cython.Py_ssize_t
    with cython.nogil:
        # hot: nothing of Python, which other threads have meanwhile
        while count > 0:
            if position + 4 > limit:
                position = -1
                break
            size = (
                (cython.cast(cython.Py_ssize_t, source[position]) << 24)
                | (cython.cast(cython.Py_ssize_t, source[position + 1]) << 16)
                | (cython.cast(cython.Py_ssize_t, source[position + 2]) << 8)
                | source[position + 3]
            )
            position += 4
            if size > bytes_max or size > limit - position:
                position = -1
                break
            position += size
            count -= 1
        # end of hot
    return position
