cdef class SendPiece:
    cdef public bytes head
    cdef public object region

cdef class DeliverySource:
    cdef public bint is_queued, is_sifting
    cpdef SendPiece next(self, bytearray scratch)
    cpdef bint wants_more(self) except -1
