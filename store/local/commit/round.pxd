import cython

from store.local.commit.changes cimport Change
from store.local.state.data_file cimport DataFile, OpenFiles
from store.local.commit.journal cimport Journal
cdef class Round:
    cdef public list changes
    cdef public object after, pinned, soon, syncs
    cdef public bint finished, has_later, must_sync
    cdef public Py_ssize_t record_bytes
    cpdef sync(self, DataFile file)
    cpdef pin(self, DataFile file)
cdef class Outcome:
    cdef public long long at_ms
    cdef public dict failed, dropped, touched
    cdef public object fatal
cdef class RoundWriting:
    cdef public object _files, _reserve, _now_ms, _helpers
    cdef public Journal _journal
    cdef public OpenFiles _open_files
    @cython.locals(outcome=Outcome, now_ms="long long")
    cpdef Outcome perform(self, Round round_)
    @cython.locals(
        first="Py_ssize_t", count="Py_ssize_t", next_="Py_ssize_t", size="Py_ssize_t",
        records=list, may_use_reserve="bint", change=Change,
    )
    cpdef _write_journal(self, changes, Outcome outcome)
