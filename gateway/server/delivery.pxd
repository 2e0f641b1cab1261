cdef class Delivery:
    cdef public object _edge, _session, _scratch, _ready
    cpdef wake(self, subscription)
    cpdef bint serve(self)
