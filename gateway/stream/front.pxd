from gateway.stream.publishing cimport Intake

cdef class StreamFront:
    cdef public object link, _settings, _ports, _session, _step
    cdef public Py_ssize_t _skip_bytes
    cdef public bint _is_lost
    cpdef Py_ssize_t take(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end) except -1
    cpdef Py_ssize_t _take_frame(self, bytearray buffer, Py_ssize_t position, Py_ssize_t frame_end, Py_ssize_t end) except -1
    cpdef Py_ssize_t frame_bytes(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end) except -1
