from store.kernel.file_writes cimport write_all

cdef class PosixFile:
    cdef public int fileno
    cdef public object _path
    cpdef write_at(self, data, Py_ssize_t position)
