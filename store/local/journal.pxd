cdef class Journal:
    cdef public object _files, _used, _spares, _dirty, _sync_lock, _current, _kept
    cdef public Py_ssize_t _position, _end, _reserved_from
    cdef public object failure
    cdef public unsigned long long sequence, salt, store_id, written_bytes, _synced, _syncing
    cpdef bint fits(self, Py_ssize_t size)
    cpdef bint claim_spare(self)
    cpdef _put(self, bytes frame, bint gives_space)
