from gateway.log.log cimport StreamLog

cdef class Lookahead:
    cdef public StreamLog _log
    cdef public object verified_to, _ahead_bytes, _wake, _failed, _reader_at, _known, _failed_at
    cdef public list damaged
    cdef public bint _is_awaited, _is_checking
    cpdef bint is_verified(self, position)
    cpdef go_on(self, position)
