cdef class Schedule:
    cdef public object _loop
    cdef public list _actions
    cdef public bint _is_armed
