cpdef pack_head(bytearray buffer, header, Py_ssize_t event_bytes)
