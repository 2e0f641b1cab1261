import cython

cdef class Attributes:
    cdef public dict named, writers
    cdef public bytes _last
    cpdef Attributes copy(self)
    cpdef get(self, bytes attribute)
    cpdef update(self, values)
    @cython.locals(forgotten="Py_ssize_t")
    cpdef Py_ssize_t append(self, bytes writer, number) except -1
