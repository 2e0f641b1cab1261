import cython

from gateway.log.kernel.clocks cimport clock_ms

cdef long long _SAME_MS
cdef int _STEADY, _WALL
cdef class _Run:
    cdef public long long offset, until
cdef class Clock:
    cdef public object _wall_ms, _steady_ms, _runs
    cdef public _Run _last
    @cython.locals(wall="long long", steady="long long", offset="long long", run=_Run)
    cpdef long long now_ms(self) except? -1
    cdef long long _read_wall_ms(self) except? -1
    cdef long long _read_steady_ms(self) except? -1
    cpdef _set_to(self, long long offset, long long steady)
