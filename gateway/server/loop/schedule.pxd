import cython

from gateway.server.loop.adaptive_sleep cimport AdaptiveSleep

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
