from gateway.stream.session.inbox cimport Inbox
cdef class Connection:
    cdef public object peer, peer_is_loopback, certificate_user, takes_regions, _shared, _session, link, _delivery, _heartbeats, _step_timer, _step, _after_reply, _waits
    cdef public object _edge
    cdef public Inbox _inbox
    cdef public int _pause
    cdef public Py_ssize_t _unconfirmed_count, _backlog_bytes, _skip_bytes, _commands_left
    cdef public bint _is_flush_scheduled, _is_delivery_scheduled, _is_handling, _is_ending, _is_over
    cpdef place(self)
    cpdef received(self, Py_ssize_t size)
    cpdef _handle(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end)
    cpdef Py_ssize_t _handle_next(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end) except -1
    cpdef Py_ssize_t _handle_frame(self, bytearray buffer, Py_ssize_t position, Py_ssize_t frame_end, Py_ssize_t end) except -1
    cpdef Py_ssize_t _account(self, intake) except -1
    cpdef _after_handling(self)
    cpdef send(self, frame)
    cpdef _flush(self)
    cpdef _serve(self)
