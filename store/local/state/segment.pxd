from store.local.state.attributes cimport Attributes

cdef class SegmentState:
    cdef public Attributes attributes
    cdef public tuple extents
    cdef public long long length, modified_at_ms, start
    cdef public bint sealed

cdef class Segment:
    cdef public object abort_error, failure, key_length, name, round, inline_round, table, waiters
    cdef public Py_ssize_t aborts, inline_bytes, number
    cdef public bint blocked, corrupt, created, dead, gone, is_waking
    cdef public object bulk_files
    cdef public SegmentState committed, pending
    cpdef note_bulk(self, file)
