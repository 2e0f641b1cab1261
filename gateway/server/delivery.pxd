from gateway.server.edge cimport PlainEdge

cdef int _PIECES_A_TURN

cdef class Delivery:
    cdef public PlainEdge _edge
    cdef public object _ready
    cdef public bytearray _scratch
    cpdef wake(self, source)
    cpdef bint serve(self)
