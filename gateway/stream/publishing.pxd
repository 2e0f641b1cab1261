import cython

from gateway.log.kernel.sealing cimport copy_of
from gateway.log.log cimport StreamLog
from gateway.log.open_chunk cimport OpenChunk
from gateway.stream.kernel.publish cimport State, confirm_of, take_filtered, take_publishes

cdef int _BAD_SUB_BATCH, _CHUNK_FULL, _MALFORMED
cdef Py_ssize_t _DUPLICATES_MAX, _PUBLISHING_ID_BYTES
cdef State _STATE
cdef bytearray _IDS, _DUPLICATES

cdef class Publisher:
    cdef public bint _is_closed
    cdef public object _ports, reference, stream
    cdef public bytes raw_reference
    cdef public int publisher_id
    cdef public Py_ssize_t _frame_bytes_max, _uncompressed_max
    cdef public StreamLog log
    cdef public Py_ssize_t unconfirmed_count, confirmed_count, errored_count
    @cython.locals(count="Py_ssize_t")
    cpdef confirm(self, bytes publishing_ids)

cpdef OpenChunk _aim(Publisher publisher, Py_ssize_t position, Py_ssize_t frame_end, Py_ssize_t limit)
cpdef _aim_at(OpenChunk chunk)
@cython.locals(entries="Py_ssize_t", duplicates="Py_ssize_t")
cpdef Py_ssize_t _account(Publisher publisher, OpenChunk chunk)
cpdef OpenChunk _next_chunk(Publisher publisher, OpenChunk chunk)
cpdef OpenChunk _apart(Publisher publisher, OpenChunk chunk, bint has_value)
@cython.locals(reason="int", waiting="Py_ssize_t", publishers=dict, publisher=Publisher, chunk=OpenChunk)
cpdef Py_ssize_t take(link, bytearray source, Py_ssize_t position, Py_ssize_t limit) except -1
cpdef Py_ssize_t take_with_filters(link, bytearray source, Py_ssize_t position, Py_ssize_t frame_end) except -1
