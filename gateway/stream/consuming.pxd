from gateway.log.log cimport StreamLog

cdef class Deliver:
    cdef public object head, region

cdef class Subscription:
    cdef public object subscription_id, stream, properties, _session, _ports, _reader, _cursor
    cdef public StreamLog log
    cdef public Py_ssize_t credit, consumed, next_offset
    cdef public bint is_queued, is_single, _is_closed
    cpdef next(self, bytearray scratch)
