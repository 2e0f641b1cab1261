import cython

cdef class ChunkIndex:
    cdef public object offsets, timestamps_ms, positions
    cdef public bytearray _verified
    cdef public long long _span_bytes, trusted_position, trusted_offset
    @cython.locals(last="long long")
    cpdef bint offer(self, unsigned long long offset, long long timestamp_ms, long long position, bint verified=*)
