"""Set-ups of writers; their appends are taken by `gateway.pravega.appends`."""

from gateway.pravega.core_attributes import CREATED_AT
from gateway.pravega.desk import Desk
from gateway.pravega.refusals import OTHER
from gateway.pravega.writer import SetUp
from hutch.pravega.error_messages import ErrorMessage
from hutch.pravega.messages import AppendSetup, SetupAppend
from store.api import Writer
from store.errors import StoreError


def setup_append(desk: Desk, request: SetupAppend) -> None:
    """Open a session of a writer; the next frame waits for it."""
    key = request.writer_id.bytes
    if key not in desk.set_ups and len(desk.set_ups) >= desk.host.wire.set_ups_max:
        text = f"the connection has {len(desk.set_ups)} writers, and may have no more"
        desk.reply(ErrorMessage(request.request_id, request.segment, text, OTHER))
        return

    expires_ms = desk.token_expires_ms

    def refused(error: StoreError) -> None:
        desk.keep_writer(key, None)
        desk.refuse(request.request_id, request.segment, error)
        desk.release()

    def opened(writer: Writer | StoreError) -> None:
        if isinstance(writer, StoreError):
            refused(writer)
            return

        def dated(created_at: int | StoreError) -> None:
            if isinstance(created_at, StoreError):
                refused(created_at)
                return
            set_up = SetUp(request.writer_id, request.segment, created_at, writer)
            set_up.expires_ms, set_up.request_id = expires_ms, request.request_id
            desk.keep_writer(key, set_up)
            last = writer.event_number
            desk.reply(AppendSetup(request.request_id, request.segment, request.writer_id, last))
            desk.release()

        desk.store.get_attribute(request.segment, CREATED_AT, done=dated)

    desk.hold()
    desk.store.open_writer(request.segment, request.writer_id, done=opened)
