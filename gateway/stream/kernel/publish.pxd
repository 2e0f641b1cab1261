cdef class State:
    cdef public Py_ssize_t position, frame_end, limit, frame_bytes_max, written, capacity, entries_max, entries, records, duplicates
    cdef public unsigned int uncompressed_max
    cdef public int publisher
    cdef public bint is_named, has_last
    cdef public unsigned long long last

cpdef int take_publishes(bytearray source, bytearray target, bytearray ids, bytearray duplicates, State state) except -1
cpdef int take_filtered(bytearray source, bytearray target, bytearray ids, bytearray duplicates, State state, set filters) except -1
cpdef bytes confirm_of(int publisher_id, bytes ids)
cpdef bytes deliver_of(int version, int subscription_id, unsigned long long committed_chunk_id, Py_ssize_t chunk_bytes, bytes head)
cpdef long long u32_at(bytearray source, Py_ssize_t position) except -1
