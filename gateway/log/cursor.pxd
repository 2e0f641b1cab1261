from gateway.log.log cimport StreamLog
from gateway.log.lookahead cimport Lookahead

cdef class Cursor:
    cdef public StreamLog log
    cdef public Lookahead _lookahead
    cdef public object position, _wake, _takes_regions, _joined_bytes_max, _window_bytes, _next_offset, failure, _failed_at, _fetched_at, _sieve, _ahead_bytes
    cdef public bint _is_waiting, _is_closed, _was_late, is_sifting
    cpdef next(self, bytearray scratch)
    cpdef _next(self, available, bytearray scratch)
    cpdef _alone(self, bytes glance, event_bytes)
