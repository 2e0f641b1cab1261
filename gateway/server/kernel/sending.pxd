cpdef Py_ssize_t send_bytes(int fileno, bytes data) except -2
