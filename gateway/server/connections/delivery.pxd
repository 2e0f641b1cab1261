import cython

from gateway.server.connections.edge cimport PlainEdge
from gateway.server.front cimport Piece, Source

cdef int _PIECES_A_TURN

cdef class Delivery:
    cdef public PlainEdge _edge
    cdef public list _line, _ready
    cdef public bytearray _scratch
    cpdef wake(self, Source source)
    cpdef Source _take(self)
    @cython.locals(source=Source, piece=Piece)
    cpdef bint serve(self) except -1
