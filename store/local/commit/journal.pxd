import cython

from store.local.commit.records cimport frame_of

cdef Py_ssize_t _FRAME_HEAD_BYTES, _FRAME_BYTES_MAX

cdef class Journal:
    cdef public object _files, _used, _spares, _sync_lock, _current, _kept
    cdef public Py_ssize_t _position, _end, _reserved_from
    cdef public object failure
    cdef public set _dirty
    cdef public unsigned long long sequence, salt, store_id, written_bytes, _synced, _syncing
    @cython.locals(frame=bytes, end="Py_ssize_t")
    cpdef append(self, list records, long long at_ms, bint gives_space=*)
    cpdef bint fits(self, Py_ssize_t size)
    cpdef bint claim_spare(self)
    cpdef _put(self, bytes frame, bint gives_space)
