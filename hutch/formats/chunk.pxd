cdef int _EPOCH_BITS
cdef long long _OFFSETS_END, _LAST_NUMBER

cpdef long long event_number(long long next_offset, long long epoch)
cpdef pack_head(bytearray buffer, header, Py_ssize_t event_bytes)
