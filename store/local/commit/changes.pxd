from store.local.state.catalogue cimport Catalogue
from store.local.state.data_file cimport DataFile
from store.local.state.segment cimport Segment, SegmentState

import cython

cdef class Change:
    cdef public bytes record, late
    cdef public DataFile file
    cdef public long long place
    cdef public bint gives_space, completes
    cpdef _begin(self)
    cpdef tuple touches(self)
    cpdef apply(self, long long at_ms)
    cpdef report(self, error)
cdef class AppendChange(Change):
    cdef public Catalogue catalogue
    cdef public Segment segment
    cdef public object done, extent, writer
    cdef public long long event_number, position, size
    cpdef tuple touches(self)
    @cython.locals(segment=Segment, state=SegmentState, forgotten="Py_ssize_t")
    cpdef apply(self, long long at_ms)
    @cython.locals(segment=Segment)
    cpdef report(self, error)
