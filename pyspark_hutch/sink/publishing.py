"""Publishers of one task: frames out, confirms in, and all again after a lost connection."""

import logging
import time
from contextlib import ExitStack
from typing import Final, NamedTuple

import numpy as np

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.connection import Confirmed, Connection
from pyspark_hutch.client.errors import ClientError, Refused, ServerGone, ServerSilent, in_words
from pyspark_hutch.encoding.frames import Frame, Ids, Limits
from pyspark_hutch.encoding.messages import Messages
from pyspark_hutch.encoding.sub_batches import Packing
from pyspark_hutch.options.settings import Endpoint
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codes import ResponseCode
from pyspark_hutch.sink.outlet import PUBLISHERS_MAX, Outlet

LOG: Final = logging.getLogger(__name__)

BYTES_MAX: Final = 32 * 1024 * 1024
"""Of frames that are not confirmed: they are kept, to be sent again."""

_TRANSIENT: Final = (ServerGone, ServerSilent)


class _Lane(NamedTuple):
    endpoint: Endpoint
    slot: int


class _Link(NamedTuple):
    connection: Connection
    stack: ExitStack


class Publishing:
    """Publishes what one task writes; nothing is done before `finish` has returned.

    Attributes:
        rows: Confirmed so far.
        skipped: Rows that the server had from an earlier try.
    """

    def __init__(
        self, cluster: Cluster, packing: Packing, in_flight_max: int, confirm_timeout_ms: int
    ) -> None:
        """Prepare; a connection is made with the first row for a server.

        Args:
            cluster: The servers.
            packing: How rows become entries.
            in_flight_max: Rows that may wait for their confirm.
            confirm_timeout_ms: The longest wait for one.
        """
        self.rows = 0
        self.skipped = 0
        self._cluster = cluster
        self._packing = packing
        self._in_flight_max = in_flight_max
        self._timeout_s = confirm_timeout_ms / 1000
        self._outlets: dict[tuple[str, str], Outlet] = {}
        self._last_ids: dict[int, int] = {}
        self._lanes: dict[int, _Lane] = {}
        self._links: dict[_Lane, _Link] = {}
        self._rows_waiting = 0
        self._bytes_waiting = 0

    def publish(self, stream: str, reference: str, messages: Messages, ids: Ids) -> None:
        """Publish rows of one producer to one stream; waits while too many are unconfirmed.

        Raises:
            ClientError: The server refuses, or does not come back.
            EncodingError: A row does not fit.
        """
        outlet = self._outlets.get((stream, reference))
        if outlet is None:
            outlet = self._open(stream, reference)
        last = self._last_ids.get(outlet.number, 0)
        if last and len(ids) and ids[0] <= last:
            kept = np.flatnonzero(ids > last)
            self.skipped += len(ids) - len(kept)
            messages, ids = messages.take(kept), ids[kept]
        if len(ids):
            for frame in outlet.packer.add(messages, ids):
                self._send(outlet, frame)

    def finish(self) -> None:
        """Publish what is left, wait until all is confirmed, and give back the connections."""
        for outlet in self._outlets.values():
            for frame in outlet.packer.finish():
                self._send(outlet, frame)
        while self._rows_waiting:
            self._wait()
        for outlet in self._outlets.values():
            link = self._links[self._lanes[outlet.number]]
            with link.connection.lock:
                outlet.forget(link.connection)
        self._end_links(None)

    def abort(self, error: BaseException) -> None:
        """Drop the connections: their servers forget the publishers."""
        self._end_links(error)

    # ---- sending and waiting -----------------------------------------------------------------

    def _send(self, outlet: Outlet, frame: Frame) -> None:
        while self._rows_waiting and (
            self._rows_waiting + frame.records > self._in_flight_max
            or self._bytes_waiting + len(frame.data) > BYTES_MAX
        ):
            self._wait()
        outlet.unconfirmed.append(frame)
        self._rows_waiting += frame.records
        self._bytes_waiting += len(frame.data)
        lane = self._lanes[outlet.number]
        connection = self._links[lane].connection
        try:
            with connection.lock:
                connection.send_bytes(frame.data, self._timeout_s)
        except _TRANSIENT as error:
            self._recover(error)

    def _wait(self) -> None:
        """Wait for a confirm of some outlet that misses one."""
        waiting = next(outlet for outlet in self._outlets.values() if outlet.unconfirmed)
        lane = self._lanes[waiting.number]
        connection = self._links[lane].connection
        try:
            with connection.lock:
                pushed = connection.receive(time.monotonic() + self._timeout_s)
            self._take(lane, pushed)
        except _TRANSIENT as error:
            self._recover(error)

    def _take(self, lane: _Lane, pushed: object) -> None:
        if isinstance(pushed, Confirmed):
            outlet = self._outlet_at(lane, pushed.publisher_id)
            if outlet is not None:
                frame_bytes, rows = outlet.confirm(pushed.entries)
                self._bytes_waiting -= frame_bytes
                self._rows_waiting -= rows
                self.rows += rows
        elif isinstance(pushed, m.PublishError):
            outlet = self._outlet_at(lane, pushed.publisher_id)
            stream = outlet.stream if outlet is not None else "?"
            code = pushed.errors[0].code if pushed.errors else 0
            raise Refused(f"stream {stream!r}: a message {in_words(code)}", code)
        elif isinstance(pushed, m.MetadataUpdate):
            raise ServerGone(f"{lane.endpoint} no longer serves stream {pushed.stream!r}")

    def _outlet_at(self, lane: _Lane, publisher_id: int) -> Outlet | None:
        for outlet in self._outlets.values():
            if outlet.publisher_id == publisher_id and self._lanes[outlet.number] == lane:
                return outlet
        return None

    # ---- connections -------------------------------------------------------------------------

    def _open(self, stream: str, reference: str) -> Outlet:
        number = len(self._outlets)

        def attach() -> Outlet:
            _, link = self._link_to(stream, number)
            limits = Limits(link.connection.frame_bytes_max)
            packer = self._packing.packer(stream, number % PUBLISHERS_MAX, limits)
            outlet = Outlet(stream, reference, number, packer)
            self._attach(outlet)
            return outlet

        outlet = self._cluster.retried(f"publishing to {stream!r}", attach)
        self._outlets[stream, reference] = outlet
        return outlet

    def _link_to(self, stream: str, number: int) -> tuple[_Lane, _Link]:
        leader = self._cluster.leaders([stream])[stream]
        lane = _Lane(leader, number // PUBLISHERS_MAX)
        link = self._links.get(lane)
        if link is None:
            stack = ExitStack()
            link = _Link(stack.enter_context(self._cluster.connection(leader)), stack)
            self._links[lane] = link
        return lane, link

    def _attach(self, outlet: Outlet) -> None:
        """Declare a publisher at the leader of its stream, and send what is not confirmed."""
        lane, link = self._link_to(outlet.stream, outlet.number)
        with link.connection.lock:
            outlet.declare(link.connection)
            if outlet.reference:
                self._last_ids[outlet.number] = self._last_id(outlet, link.connection)
            outlet.confirmed_entries = 0
            for frame in outlet.unconfirmed:
                link.connection.send_bytes(frame.data, self._timeout_s)
        self._lanes[outlet.number] = lane

    def _last_id(self, outlet: Outlet, connection: Connection) -> int:
        try:
            return outlet.last_id(connection)
        except Refused as error:
            if error.code != ResponseCode.ACCESS_REFUSED:
                raise
            if self._packing.option:
                # A sub-batch that begins elsewhere than at the last try would double rows.
                text = (
                    f"{error}: delivery=dedup with {self._packing.option} needs the right to read"
                )
                raise Refused(text, error.code) from None
            return 0

    def _recover(self, error: ClientError) -> None:
        """Attach all publishers anew after a connection was lost; raise if a server stays away."""
        for pause_s in self._cluster.pauses():
            self._end_links(error)
            LOG.warning("publishing: %s; another try in %.1f s", error, pause_s)
            time.sleep(pause_s)
            try:
                for outlet in self._outlets.values():
                    self._attach(outlet)
            except _TRANSIENT as again:
                error = again
            else:
                return
        raise ClientError(f"{error}; {self._rows_waiting} rows were not confirmed") from None

    def _end_links(self, error: BaseException | None) -> None:
        links, self._links = self._links, {}
        for link in links.values():
            _end(link, error)


def _end(link: _Link, error: BaseException | None) -> None:
    """Give a connection back, or drop it after an error."""
    if error is None:
        link.stack.close()
        return
    link.connection.disconnect()
    link.stack.close()
