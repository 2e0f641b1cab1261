from store.local.state.data_file cimport DataFile
from store.local.state.segment cimport Segment
cdef class Catalogue:
    cdef public Py_ssize_t _data_file_bytes, next_segment, next_file
    cdef public dict names, committed_names, segments, counts
    cdef public set changed, dirty, loose
    cdef public object call_soon
    cdef public list removed, discarded, truncated
    cdef public bint is_full
    cpdef wake(self, Segment segment)
    cpdef file_synced(self, DataFile file, Py_ssize_t mark)
