import cython

from hutch.formats.chunk cimport event_number
from gateway.log.derived.index cimport ChunkIndex
from gateway.log.open_chunk cimport ChunkSizes, ChunkDelivery, OpenChunk, confirm_all

cdef long long _OFFSETS_END
cdef Py_ssize_t _ALONE_BYTES

cdef class Readers:
    cdef public object _stream, schedule, _call_unshare
    cdef public ChunkDelivery shared
    cdef public long long shared_at, shared_end
    cdef public list waiting
    cdef public bint has_company, is_followed, _has_odd_time
    cpdef committed(self, long long position, long long end, ChunkDelivery fresh)
    cpdef _wake(self)
    cpdef when_more(self, wake)

cdef class StreamLog:
    cdef public ChunkSizes _sizes
    cdef public Readers readers
    cdef public ChunkIndex index
    cdef public object stream, reader, sequences, seal_seed, failure, _writer, _ports, read_only, saved, _call_flush, _call_appended
    cdef public OpenChunk _open, _held
    cdef public bint _is_scheduled
    cdef public list _in_flight, _drained
    cdef public Py_ssize_t in_flight_bytes, _since_snapshot
    cdef public long long epoch, _next_offset, _timestamp_ms, _committed_timestamp_ms, committed_next_offset, committed_length, first_chunk_id, last_chunk_id, last_chunk_position
    cpdef OpenChunk open_chunk(self, Py_ssize_t bytes_expected)
    cpdef OpenChunk make_room(self, Py_ssize_t bytes_expected)
    cpdef _append(self, OpenChunk chunk)
    cpdef send(self, OpenChunk chunk)
    @cython.locals(chunk_id="long long", now_ms="long long")
    cpdef _issue(self, OpenChunk chunk)
    @cython.locals(position="long long", size="Py_ssize_t")
    @cython.locals(chunk=OpenChunk, readers=Readers, is_indexed="bint")
    cpdef appended(self, outcome)
    cpdef bint _show(self, OpenChunk chunk, appended)
    cpdef _look_on(self)
