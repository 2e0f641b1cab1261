import cython

from gateway.log.kernel.sealing cimport copy_of, seal_chunk, unfilled

cdef Py_ssize_t _COPIED_BYTES, _ENTRIES_MAX, _EVENT_HEAD_BYTES, _KERNEL_CRC_END, _KEPT_BYTES, _SEAL_BYTES

cpdef confirm_all(list confirms)
cpdef _confirm(sink, bytes tokens)

cdef class ChunkDelivery:
    cdef public long long chunk_id, next_offset
    cdef public Py_ssize_t size
    cdef public bytes head
    cdef public object region

cdef class ChunkBuffers:
    cdef public Py_ssize_t chunk_end_max
    cdef public list _sizes, _kept
    @cython.locals(index="Py_ssize_t", last="Py_ssize_t", size="Py_ssize_t")
    cpdef Py_ssize_t _index_of(self, Py_ssize_t bytes_expected) except -1
    cpdef bytearray take(self, Py_ssize_t bytes_expected)
    cpdef bytearray _take_of(self, Py_ssize_t index)
    cpdef bytearray take_larger(self, bytearray buffer)
    @cython.locals(size="Py_ssize_t")
    cpdef give_back(self, bytearray buffer)
cdef class OpenChunk

cdef class ChunkSizes:
    cdef public ChunkBuffers _buffers
    cdef public Py_ssize_t burst_entries_max, bytes_usual
    cpdef OpenChunk begin(self, Py_ssize_t bytes_expected)
    cpdef Py_ssize_t entries_max(self, Py_ssize_t bytes_expected)
    cpdef note(self, Py_ssize_t written, Py_ssize_t entry_count)

cdef class OpenChunk:
    cdef public ChunkBuffers _buffers
    cdef public Py_ssize_t _filter_bytes_uncounted, capacity, entries_max, entry_count, event_bytes, record_count, sequence_bytes, written
    cdef public long long chunk_id, timestamp_ms
    cdef public bytearray buffer
    cdef public list confirms
    cdef public set filters
    cdef public object _filter_digests
    cdef public bytes packed_filters
    cdef public ChunkDelivery fresh
    cdef public dict sequences
    cdef public bint is_unit
    cpdef bint grow(self)
    @cython.locals(room="Py_ssize_t")
    cpdef _set_capacity(self)
    cpdef took(self, Py_ssize_t written, Py_ssize_t entries, Py_ssize_t records)
    cpdef add_confirm(self, sink, bytes tokens)
    @cython.locals(data_end="Py_ssize_t", event_end="Py_ssize_t", rest_bytes="Py_ssize_t", crc="long long")
    cpdef finish(self, long long chunk_id, unsigned long long epoch, long long timestamp_ms, unsigned int seal_seed)
    @cython.locals(end="Py_ssize_t", next_offset="long long")
    cpdef keep(self)
    cpdef release(self)
