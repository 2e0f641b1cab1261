from store.local.data_file cimport OpenFiles
from store.local.journal cimport Journal
from store.local.round cimport Outcome, Round
cdef class RoundWriting:
    cdef public object _files, _reserve, _now_ms, _helpers
    cdef public Journal _journal
    cdef public OpenFiles _open_files
    cpdef Outcome perform(self, Round round_)
    cpdef _write_journal(self, changes, Outcome outcome)
