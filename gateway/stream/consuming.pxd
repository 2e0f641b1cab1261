import cython

from gateway.log.reading.cursor cimport Cursor
from gateway.log.log cimport StreamLog
from gateway.log.open_chunk cimport ChunkDelivery
from gateway.server.front cimport SendPiece, DeliverySource
from gateway.stream.kernel.publish cimport deliver_of

cdef class CreditSubscription(DeliverySource):
    cdef public int subscription_id
    cdef public object stream, properties, _session, _ports, _reader
    cdef public Cursor _cursor
    cdef public StreamLog log
    cdef public Py_ssize_t credit
    cdef public long long consumed, next_offset
    cdef public bint is_single, _is_closed
    cpdef add_credit(self, Py_ssize_t credit)
    @cython.locals(chunk=ChunkDelivery)
    cpdef SendPiece next(self, bytearray scratch)
    cpdef bint wants_more(self) except -1
    cpdef wake(self)
