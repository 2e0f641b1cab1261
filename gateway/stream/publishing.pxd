from gateway.log.log cimport StreamLog
from gateway.log.open_chunk cimport OpenChunk
cdef Py_ssize_t _BAD_SUB_BATCH, _CAPACITY, _CHUNK_FULL, _STATE_DUPLICATES, _ENTRIES, _STATE_ENTRIES_MAX, _FRAME_BYTES_MAX, _FRAME_END, _HAS_LAST, _IS_NAMED, _LAST, _LIMIT, _MALFORMED, _POSITION, _PUBLISHER, _RECORDS, _UNCOMPRESSED_MAX, _WRITTEN

cdef class Publisher:
    cdef public bint _is_closed
    cdef public object _ports, publisher_id, raw_reference, reference, stream
    cdef public StreamLog log
    cdef public Py_ssize_t unconfirmed_count, confirmed_count, errored_count
cdef class Intake:
    cdef public Py_ssize_t position, entries
    cdef public StreamLog log

cpdef OpenChunk _aim(Publisher publisher, Py_ssize_t position, Py_ssize_t frame_end, Py_ssize_t limit)
cpdef _aim_at(OpenChunk chunk)
cpdef Py_ssize_t _account(Publisher publisher, OpenChunk chunk)
