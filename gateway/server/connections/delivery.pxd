import cython

from gateway.server.connections.edge cimport PlainEdge
from gateway.server.front cimport SendPiece, DeliverySource

cdef int _PIECES_A_TURN

cdef class SourceQueue:
    cdef public PlainEdge _edge
    cdef public list _line, _ready
    cdef public bytearray _scratch
    cpdef wake(self, DeliverySource source)
    cpdef DeliverySource _take(self)
    @cython.locals(source=DeliverySource, piece=SendPiece)
    cpdef bint serve(self) except -1
