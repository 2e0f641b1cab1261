cdef class Piece:
    cdef public bytes head
    cdef public object region

cdef class Source:
    cdef public bint is_queued, is_sifting
    cpdef Piece next(self, bytearray scratch)
    cpdef bint wants_more(self) except -1
