"""Set-ups of writers; their appends are taken by `gateway.pravega.appends`."""

from gateway.pravega.desk import Desk
from gateway.pravega.refusals import OTHER
from gateway.pravega.writer import SetUp
from store.api import Writer
from store.errors import StoreError
from store.wire.error_messages import ErrorMessage
from store.wire.messages import AppendSetup, SetupAppend


def setup_append(desk: Desk, request: SetupAppend) -> None:
    """Open a session of a writer; the next frame waits for it."""
    key = request.writer_id.bytes
    if key not in desk.set_ups and len(desk.set_ups) >= desk.host.wire.set_ups_max:
        text = f"the connection has {len(desk.set_ups)} writers, and may have no more"
        desk.reply(ErrorMessage(request.request_id, request.segment, text, OTHER))
        return

    def done(outcome: Writer | StoreError) -> None:
        if desk.is_over:
            return
        if isinstance(outcome, StoreError):
            desk.set_ups.pop(key, None)
            desk.refuse(request.request_id, request.segment, outcome)
        else:
            desk.set_ups[key] = SetUp(request.writer_id, request.segment, outcome)
            last = outcome.event_number
            desk.reply(AppendSetup(request.request_id, request.segment, request.writer_id, last))
        desk.release()

    desk.hold()
    desk.store.open_writer(request.segment, request.writer_id, done=done)
