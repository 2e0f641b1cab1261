import cython

from gateway.stream.consuming cimport CreditSubscription
from gateway.stream.publishing cimport take, take_with_filters
from gateway.stream.kernel.publish cimport u32_at

cdef Py_ssize_t _SIZE_BYTES, _HEAD_END, _PUBLISH_HEAD_BYTES, _CREDIT_ID_AT, _CREDIT_AT, _CREDIT_END
cdef long long _PUBLISH_V1, _PUBLISH_V2, _CREDIT, _HEARTBEAT

cdef class StreamFront:
    cdef public object link, _settings, _ports, _session, _step
    cdef public Py_ssize_t _skip_bytes
    cdef public bint _is_lost
    @cython.locals(size="Py_ssize_t", frame_end="Py_ssize_t")
    cpdef Py_ssize_t take(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end) except -1
    @cython.locals(kind="long long")
    cpdef Py_ssize_t _take_frame(self, bytearray buffer, Py_ssize_t position, Py_ssize_t frame_end, Py_ssize_t end) except -1
    @cython.locals(subscription=CreditSubscription)
    cpdef bint _take_credit(self, bytearray buffer, Py_ssize_t position, Py_ssize_t frame_end) except -1
    cpdef Py_ssize_t frame_bytes(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end) except -1
