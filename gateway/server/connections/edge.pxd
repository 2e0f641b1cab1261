import cython

from gateway.server.kernel.sending cimport receive_into, send_bytes

cdef Py_ssize_t _SMALL_SEND_BYTES

cdef class Owner:
    cpdef place(self)
    cpdef received(self, Py_ssize_t size)

cdef class PlainEdge:
    cdef public object loop, connected, _closed, _lingering
    cdef public list queue
    cdef public Owner owner
    cdef public int _fileno
    cdef public Py_ssize_t region_sent
    cdef public bint is_reading, _is_writing, is_closed, closes_when_sent
    cdef public long long received_bytes, sent_bytes, _stuck_at
    cpdef pause_reading(self)
    cpdef resume_reading(self)
    cpdef write(self, frame)
    @cython.locals(size="Py_ssize_t")
    cpdef readable(self)
    cpdef bint flush(self)
    cpdef bint _send(self)
    cpdef send_queued(self)
    cpdef _send_first(self)
    @cython.locals(size="Py_ssize_t", sent="Py_ssize_t")
    cpdef _send_last(self, bytes frame)
    cpdef _send_bytes(self)
    cpdef _send_region(self, region)
