cdef class Journal:
    cdef public object _files, _used, _spares, _dirty, _sync_lock, _numbers, _current, _reserve
    cdef public Py_ssize_t _file_bytes, _spare_count_max, _position
    cdef public bint _preparing
    cdef public double _prepare_at, _say_at
    cdef public Py_ssize_t _unsaid
    cdef public object failure
    cdef public unsigned long long sequence, salt, written_bytes
    cpdef bint fits(self, Py_ssize_t size)
    cpdef bint claim_spare(self)
