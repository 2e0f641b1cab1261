cpdef pack_head(bytearray buffer, header, Py_ssize_t event_bytes)

cdef class Delivery:
    cdef public object chunk_id, next_offset
    cdef public Py_ssize_t size
    cdef public bytes head
    cdef public object region
