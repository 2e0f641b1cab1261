from store.local.catalogue cimport Catalogue
from store.local.data_file cimport DataFile
from store.local.segment cimport Segment
cdef class AppendChange:
    cdef public Catalogue catalogue
    cdef public Segment segment
    cdef public object done, extent, late, record, writer
    cdef public DataFile file
    cdef public long long event_number, place, position, size
    cdef public bint gives_space
    cpdef apply(self, at_ms)
    cpdef report(self, error)
