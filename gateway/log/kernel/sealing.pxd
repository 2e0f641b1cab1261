cpdef bytes copy_of(bytearray buffer, Py_ssize_t begin, Py_ssize_t end)
cpdef bytearray unfilled(Py_ssize_t size)
cpdef int seal_chunk(bytearray buffer, Py_ssize_t data_end, Py_ssize_t event_end, unsigned int entries, unsigned int records, long long timestamp_ms, unsigned long long epoch, unsigned long long chunk_id, long long crc, unsigned int trailer_bytes, unsigned int seed) except -1
