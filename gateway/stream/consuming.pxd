from gateway.log.cursor cimport Cursor
from gateway.log.log cimport StreamLog
from gateway.stream.wire.kernel.publish cimport deliver_of

cdef class Deliver:
    cdef public object head, region

cdef class Subscription:
    cdef public int subscription_id
    cdef public object stream, properties, _session, _ports, _reader
    cdef public Cursor _cursor
    cdef public StreamLog log
    cdef public Py_ssize_t credit
    cdef public long long consumed, next_offset
    cdef public bint is_queued, is_single, _is_closed
    cpdef add_credit(self, Py_ssize_t credit)
    cpdef next(self, bytearray scratch)
