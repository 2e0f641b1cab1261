from store.local.state.data_file cimport OpenFiles
from store.local.state.segment cimport Segment

cdef class Reading:
    cdef public object call_soon, _call_soon_threadsafe, _hot, _cold, _checked, _short, closed
    cdef public OpenFiles _open_files
    cpdef cached(self, place)
    cpdef region(self, place)

cdef class LocalReader:
    cdef public Reading _reading
    cdef public Segment _segment
    cpdef read_cached(self, position, size)
    cpdef region(self, position, size)
