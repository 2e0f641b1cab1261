from gateway.log.log cimport StreamLog

cdef class Cursor:
    cdef public StreamLog log
    cdef public object position, _wake, _takes_regions, _joined_bytes_max, _window_bytes, _verified_to, _known, _next_offset, _damaged, failure, _failed_at, _unchecked_at, _sieve, _ahead_bytes
    cdef public bint _is_waiting, _is_checking, _is_closed, _was_late, is_sifting
    cpdef next(self, bytearray scratch)
    cpdef _next(self, available, bytearray scratch)
    cpdef _alone(self, bytes glance, event_bytes)
