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
cdef int _PASSES

cdef class Schedule:
    cdef public AdaptiveSleep rest
    cdef public object _loop, _call_run, _call_poll
    cdef public list _actions
    cdef public bint _is_armed, _is_polling
    cdef public long long _busy_poll_ns, _polls_until_ns
    cdef public int _vain_polls, _turns_without_poll
    cpdef add(self, action)
    @cython.locals(actions=list, done="Py_ssize_t", pass_end="Py_ssize_t")
    cpdef _run(self)
    cpdef _poll_busily(self)
