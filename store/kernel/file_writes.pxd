cpdef int write_all(int fileno, data, long long position, Py_ssize_t piece_bytes=*) except -1
