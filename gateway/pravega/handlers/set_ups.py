"""Set-ups: of the connection, and of writers, whose appends `gateway.pravega.appends` takes."""

from typing import Final

from gateway.pravega.connection import SegmentConnection
from gateway.pravega.refusals import OTHER
from gateway.pravega.segments import CREATED_AT
from gateway.pravega.writer import SetUp
from hutch.pravega.error_messages import ErrorMessage
from hutch.pravega.messages import AppendSetup, Hello, KeepAlive, Padding, SetupAppend
from store.api import Writer
from store.errors import StoreError

HIGH_VERSION: Final = 17
LOW_VERSION: Final = 5


def hello(connection: SegmentConnection, request: Hello) -> None:
    """Answer with our versions, then end the connection if there is none in common.

    Replies have the same layout for every version.
    """
    connection.reply(Hello(HIGH_VERSION, LOW_VERSION))
    if request.low_version > HIGH_VERSION or request.high_version < LOW_VERSION:
        connection.close(
            f"the client speaks versions {request.low_version} to {request.high_version}"
        )


def keep_alive(connection: SegmentConnection, request: KeepAlive) -> None:
    """Send it back."""
    connection.reply(request)


def padding(connection: SegmentConnection, request: Padding) -> None:
    """Ignore it."""


def setup_append(connection: SegmentConnection, request: SetupAppend) -> None:
    """Open a session of a writer; the next frame waits for it."""
    key = request.writer_id.bytes
    if (
        key not in connection.set_ups
        and len(connection.set_ups) >= connection.context.wire.set_ups_max
    ):
        text = f"the connection has {len(connection.set_ups)} writers, and may have no more"
        connection.reply(ErrorMessage(request.request_id, request.segment, text, OTHER))
        return

    expires_ms = connection.token_expires_ms

    def refused(error: StoreError) -> None:
        connection.keep_writer(key, None)
        connection.refuse(request.request_id, request.segment, error)
        connection.release()

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
            connection.keep_writer(key, set_up)
            last = writer.event_number
            connection.reply(
                AppendSetup(request.request_id, request.segment, request.writer_id, last)
            )
            connection.release()

        connection.store.get_attribute(request.segment, CREATED_AT, done=dated)

    connection.hold()
    connection.store.open_writer(request.segment, request.writer_id, done=opened)
