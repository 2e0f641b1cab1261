cpdef Py_ssize_t send_bytes(int fileno, bytes data) except -2
cpdef Py_ssize_t receive_into(int fileno, memoryview place) except -2
