cdef class DataFile:
    cdef public Py_ssize_t allocate_at, allocate_step, hole_end, number, owner, pins, punched, size_max, synced, used, writes
    cdef public bint dead, in_directory, made
    cdef public object failure, handle, lock
    cdef public dict reads

cdef class OpenFiles:
    cdef public object _files, _retire, _lock, left
    cdef public Py_ssize_t _count_max, _tick
    cdef public set _open
    cpdef touch(self, DataFile file)
    cpdef begin_read(self, DataFile file, position)
    cpdef trim(self)
