cdef class Rest:
    cdef public long long received_bytes
    cdef public double _rest_s, _other_rate
    cdef public int _state
    cdef public bint _rests
    cdef public long long _turns, _began_ns, _received_before, _next_ns, _barred_ns
    cpdef bint at_end_of_turn(self) except -1
    cpdef _look(self, long long now_ns)
