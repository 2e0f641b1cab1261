from gateway.log.kernel.sealing cimport seal_chunk

cdef Py_ssize_t _KERNEL_CRC_END

cdef class Delivery:
    cdef public object chunk_id, next_offset
    cdef public Py_ssize_t size
    cdef public bytes head
    cdef public object region

cdef class ChunkBuffers:
    cdef public Py_ssize_t chunk_end_max, _large_bytes
    cdef public list _large, _small
    cpdef give_back(self, bytearray buffer)
cdef class OpenChunk:
    cdef public ChunkBuffers _buffers
    cdef public Py_ssize_t _filter_bytes_uncounted, capacity, entries_max, entry_count, event_bytes, record_count, sequence_bytes, written
    cdef public long long chunk_id, timestamp_ms
    cdef public bytearray buffer
    cdef public list confirms
    cdef public set filters
    cdef public object _filter_digests
    cdef public bytes packed_filters
    cdef public Delivery fresh
    cdef public dict sequences
    cpdef bint grow(self)
    cpdef took(self, Py_ssize_t written, Py_ssize_t entries, Py_ssize_t records)
    cpdef add_confirm(self, sink, bytes tokens)
    cpdef finish(self, long long chunk_id, unsigned long long epoch, long long timestamp_ms, unsigned int seal_seed)
    cpdef keep(self)
    cpdef release(self)
