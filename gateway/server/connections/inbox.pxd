cdef class ConnectionInbox:
    cdef public bytearray _shared, _rest, _large
    cdef public object _shared_view
    cdef public Py_ssize_t _rest_position, _large_bytes, _filled, frames_taken
    cpdef place(self)
    cpdef bint is_empty(self) except -1
    cpdef tuple received(self, Py_ssize_t size)
    cpdef keep(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end, Py_ssize_t frame_bytes)
