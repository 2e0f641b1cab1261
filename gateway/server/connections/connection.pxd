from gateway.server.connections.delivery cimport SourceQueue
from gateway.server.connections.edge cimport Owner, PlainEdge
from gateway.server.front cimport DeliverySource
from gateway.server.connections.inbox cimport ConnectionInbox
from gateway.server.loop.schedule cimport AdaptiveSleep, Schedule

cdef Py_ssize_t _NOTED_BYTES
cdef int _UNCONFIRMED

cdef class Connection(Owner):
    cdef public object peer, peer_is_loopback, certificate_user, takes_regions, front
    cdef public object _shared, _limits, _keeper, _timers, _heartbeats, _call_flush, _call_deliver
    cdef public PlainEdge edge
    cdef public SourceQueue _delivery
    cdef public Schedule _schedule
    cdef public ConnectionInbox inbox
    cdef public AdaptiveSleep _rest
    cdef public int pause
    cdef public Py_ssize_t _unconfirmed_count, _unconfirmed_max, _backlog_bytes, _commands_left
    cdef public bint is_stranger, _gives_commands, _is_flush_scheduled, _is_delivery_scheduled
    cdef public bint _is_handling, _is_done, _is_ending, _is_over
    cpdef place(self)
    cpdef received(self, Py_ssize_t size)
    cpdef _handle(self, bytearray buffer, Py_ssize_t position, Py_ssize_t end)
    cpdef _after_handling(self)
    cpdef count_command(self)
    cpdef begin_command(self)
    cpdef end_command(self)
    cpdef taken(self, Py_ssize_t count, backlog)
    cpdef settled(self, Py_ssize_t count)
    cpdef _resume(self, int reason)
    cpdef send(self, frame)
    cpdef _flush(self)
    cpdef wake(self, DeliverySource source)
    cpdef _serve(self)
