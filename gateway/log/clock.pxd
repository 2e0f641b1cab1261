cdef long long _SAME_MS, _MS_NS
cdef class _Run:
    cdef public long long offset, until
cdef class Clock:
    cdef public object _wall_ms, _steady_ms, _runs
    cdef public _Run _last
