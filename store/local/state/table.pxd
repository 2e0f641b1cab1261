cdef class KeyEntry:
    cdef public long long version, position
    cdef public Py_ssize_t size
    cdef public bytes value
    cdef public bint removed
