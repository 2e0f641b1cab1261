from store.local.data_file cimport DataFile
cdef class Round:
    cdef public list after, changes, pinned, soon
    cdef public bint finished, has_later, interval, must_sync
    cdef public dict syncs
    cdef public Py_ssize_t record_bytes
    cpdef sync(self, DataFile file)
    cpdef pin(self, DataFile file)
cdef class Outcome:
    cdef public long long at_ms
    cdef public dict failed, dropped, touched
    cdef public object fatal
