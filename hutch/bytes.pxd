# cython: boundscheck=False, wraparound=False, initializedcheck=False
# Functions that kernels take into themselves; `bytes.py` says what each of them does. A number in a
# memoryview is not read through a pointer into it: that made a walk over entries an eighth slower.
from libc.string cimport memcpy

ctypedef unsigned int (*FastCrc)(unsigned int before, const unsigned char *source, unsigned long long size) noexcept nogil


cdef inline unsigned int u16_in(const unsigned char *source, Py_ssize_t position) noexcept nogil:
    return (<unsigned int>source[position] << 8) | source[position + 1]


cdef inline unsigned int u32_in(const unsigned char *source, Py_ssize_t position) noexcept nogil:
    return (
        (<unsigned int>source[position] << 24)
        | (<unsigned int>source[position + 1] << 16)
        | (<unsigned int>source[position + 2] << 8)
        | source[position + 3]
    )


cdef inline unsigned long long u64_in(const unsigned char *source, Py_ssize_t position) noexcept nogil:
    return (<unsigned long long>u32_in(source, position) << 32) | u32_in(source, position + 4)


cdef inline unsigned int u16_at(const unsigned char[::1] source, Py_ssize_t position) noexcept nogil:
    return (<unsigned int>source[position] << 8) | source[position + 1]


cdef inline unsigned int u32_at(const unsigned char[::1] source, Py_ssize_t position) noexcept nogil:
    return (
        (<unsigned int>source[position] << 24)
        | (<unsigned int>source[position + 1] << 16)
        | (<unsigned int>source[position + 2] << 8)
        | source[position + 3]
    )


cdef inline unsigned long long u64_at(const unsigned char[::1] source, Py_ssize_t position) noexcept nogil:
    return (<unsigned long long>u32_at(source, position) << 32) | u32_at(source, position + 4)


cdef inline void copy_in(
    unsigned char *target, Py_ssize_t place, const unsigned char *source, Py_ssize_t start, Py_ssize_t size
) noexcept nogil:
    memcpy(target + place, source + start, size)


cdef inline void copy_at(
    unsigned char[::1] target, Py_ssize_t place, const unsigned char[::1] source, Py_ssize_t start, Py_ssize_t size
) noexcept nogil:
    memcpy(&target[place], &source[start], size)


cdef inline unsigned int crc32_in(
    const unsigned int[::1] table,
    const unsigned char *source,
    Py_ssize_t position,
    Py_ssize_t end,
    unsigned int before,
) noexcept nogil:
    cdef unsigned int crc = before ^ <unsigned int>0xFFFFFFFF
    while position + 8 <= end:
        crc ^= (
            <unsigned int>source[position]
            | (<unsigned int>source[position + 1] << 8)
            | (<unsigned int>source[position + 2] << 16)
            | (<unsigned int>source[position + 3] << 24)
        )
        crc = (
            table[1792 + (crc & 0xFF)]
            ^ table[1536 + ((crc >> 8) & 0xFF)]
            ^ table[1280 + ((crc >> 16) & 0xFF)]
            ^ table[1024 + (crc >> 24)]
            ^ table[768 + source[position + 4]]
            ^ table[512 + source[position + 5]]
            ^ table[256 + source[position + 6]]
            ^ table[<Py_ssize_t>source[position + 7]]
        )
        position += 8
    while position < end:
        crc = table[(crc ^ source[position]) & 0xFF] ^ (crc >> 8)
        position += 1
    return crc ^ <unsigned int>0xFFFFFFFF


cdef inline unsigned int crc32_at(
    FastCrc fast,
    const unsigned int[::1] table,
    const unsigned char[::1] source,
    Py_ssize_t position,
    Py_ssize_t end,
    unsigned int before,
) noexcept nogil:
    # Below this size a call of the fast CRC-32 costs more than it saves.
    if end - position >= 128 and fast != NULL:
        return fast(before, &source[position], end - position)
    return crc32_in(table, &source[position], 0, end - position, before)


cdef inline Py_ssize_t event_size(
    const unsigned char[::1] source, Py_ssize_t position, Py_ssize_t limit
) noexcept nogil:
    cdef const unsigned char *event
    cdef Py_ssize_t size
    if position + 56 > limit:
        return 0
    event = &source[position]
    size = u32_in(event, 4)
    if (
        u32_in(event, 0) != 0
        or event[8] != 0x50
        or <long long>48 + u32_in(event, 44) + u32_in(event, 48) > size
    ):
        return -1
    return 0 if position + 8 + size > limit else 8 + size


cdef inline bint has_seal(
    FastCrc fast,
    const unsigned int[::1] table,
    const unsigned char[::1] source,
    Py_ssize_t position,
    Py_ssize_t size,
    unsigned int seed,
) noexcept nogil:
    cdef const unsigned char *event = &source[position]
    cdef Py_ssize_t rest = 56 + <Py_ssize_t>u32_in(event, 44)
    cdef Py_ssize_t seal = size - 4
    cdef unsigned int crc
    if rest + <Py_ssize_t>u32_in(event, 48) > seal:
        return False
    crc = crc32_in(table, event, 8, 56, seed)
    return crc32_at(fast, table, source, position + rest, position + seal, crc) == u32_in(event, seal)
