import cython

from gateway.log.log cimport Readers, StreamLog
from gateway.log.reading.lookahead cimport Lookahead
from gateway.log.open_chunk cimport ChunkDelivery

cdef class Cursor:
    cdef public StreamLog log
    cdef public Lookahead _lookahead
    cdef public object _wake, _takes_regions, failure, _sieve, _call_woken
    cdef public long long next_offset, position, failed_at, _fetched_at
    cdef public Py_ssize_t _joined_bytes_max, _window_bytes, _ahead_bytes
    cdef public bint _is_waiting, _is_closed, _was_late, is_sifting, takes_shared
    cpdef ChunkDelivery next(self, bytearray scratch)
    cpdef ChunkDelivery _take_shared(self, Readers readers)
    @cython.locals(available="long long")
    cpdef ChunkDelivery _find_next(self, bytearray scratch)
    cpdef _step_over(self)
    cpdef ChunkDelivery take_here(self, long long available, bytearray scratch)
    cpdef ChunkDelivery _alone(self, bytes glance, Py_ssize_t event_bytes)
    cpdef _woken(self)
