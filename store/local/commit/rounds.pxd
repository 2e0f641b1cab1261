import cython

from store.local.state.catalogue cimport Catalogue
from store.local.commit.changes cimport Change
from store.local.state.data_file cimport DataFile, OpenFiles
from store.local.commit.journal cimport Journal
from store.local.commit.round cimport Outcome, Round, RoundWriting
from store.local.state.segment cimport Segment
cdef Py_ssize_t LOOP_BYTES_MAX, WAITED_BYTES_MAX, _LOOK_BYTES

cdef class Rounds:
    cdef public object _call_soon, _call_soon_threadsafe, _committed, _failed, _thread, _when_idle, _sync, _syncing
    cdef public RoundWriting _writing
    cdef public Journal _journal
    cdef public Catalogue _catalogue
    cdef public OpenFiles _open_files
    cdef public Round gathering
    cdef public Round in_flight
    cdef public bint _scheduled, looks_soon
    cdef public Py_ssize_t _looked_at_bytes
    cdef public object _call_close_round
    cdef public list _soon
    cdef public object closed
    cpdef add(self, Change change, Segment segment)
    cpdef _put(self, Change change)
    cpdef _run_soon(self)
    cpdef _close_round(self, bint is_alone=*)
    cpdef bint _needs_thread(self, Round round_)
    cpdef bint _leaves_loop(self, Round round_)
    cpdef _sync_and_finish(self, Round round_, Outcome outcome, bint is_alone)
    cpdef _finish(self, Round round_, Outcome outcome)
    @cython.locals(change=Change)
    cpdef _commit(self, Round round_, long long at_ms)
    cpdef _look_between(self, Round round_)
    cpdef bint _is_overdue(self)
    cpdef _count_writes(self, Round round_, Outcome outcome)
    cpdef _end(self, Round round_)
    cpdef _note_idle(self)
    cpdef _report(self, Change change, error)
    cpdef _guarded(self, call)
