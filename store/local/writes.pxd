import cython

from store.local.kernel.journal_bytes cimport append_record
from store.local.state.catalogue cimport Catalogue
from store.local.commit.changes cimport AppendChange
from store.local.state.data_file cimport DataFile, OpenFiles
from store.local.commit.rounds cimport Rounds
from store.local.state.segment cimport Segment, SegmentState
cdef class Staging:
    cdef public Rounds rounds
    cdef public Catalogue catalogue
    cdef public object durability
    cdef public OpenFiles _open_files
    cdef public Py_ssize_t _inline_bytes_max
    cdef public object _call_soon_threadsafe, _allocator
    cdef public Py_ssize_t written_bytes
    cdef public bint is_short
    cdef public object ask_for_room
    @cython.locals(position="long long", record_size="Py_ssize_t", flags="int", file_number="long long", segment=Segment, pending=SegmentState, file=DataFile)
    cpdef append(self, AppendChange change, data, Py_ssize_t size, durability)
    cpdef make_durable(self, Segment segment)
    @cython.locals(position="long long", place="long long", pending=SegmentState, file=DataFile)
    cpdef DataFile _write(self, AppendChange change, data, Py_ssize_t size)
    cpdef _write_later(self, AppendChange change, DataFile file, data)
    cpdef _note_write(self, DataFile file)
    cpdef bint _place_in_round(self, Segment segment, DataFile file, Py_ssize_t size, durability)
cdef class Stored:
    cdef long long[::1] _numbers, _positions, _sizes
    cdef public Py_ssize_t _count, room
    @cython.locals(index="Py_ssize_t")
    cpdef add(self, long long event_number, long long position, long long size)
    cpdef _make_room(self)
cdef class LocalWriter:
    cdef public object _error, _id
    cdef public Py_ssize_t _aborts
    cdef public bint _gives_space
    cdef public Segment _segment
    cdef public Staging _staging
    cdef public Stored _stored
    cdef public object event_number
