cdef int _PIECES_A_TURN

cdef class Delivery:
    cdef public object _edge, _scratch, _ready
    cpdef wake(self, source)
    cpdef bint serve(self)
