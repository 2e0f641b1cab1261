import cython

cdef class AdaptiveSleep:
    cdef public long long received_bytes
    cdef public object now_ns, _sleep
    cdef public double _rest_s, _other_rate
    cdef public int _state
    cdef public bint _rests
    cdef public long long _turns, _began_ns, _received_before, _next_ns, _barred_ns
    @cython.locals(now_ns="long long")
    cpdef bint at_end_of_turn(self) except -1
    cpdef _look(self, long long now_ns)
