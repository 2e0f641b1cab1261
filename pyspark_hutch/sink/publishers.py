"""Publishers of one task: frames out, confirms in, and all again after a lost connection."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hutch.client.connection import Confirmed
from hutch.client.errors import (
    BadAnswer,
    ClientError,
    Refused,
    ServerGone,
    ServerSilent,
    in_words,
)
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.encoding.frames import FRAME_ENTRIES_MAX, FrameLimits, Ids, PublishFrame
from pyspark_hutch.encoding.messages import Messages
from pyspark_hutch.encoding.sub_batches import Packing
from pyspark_hutch.sink.links import Links, ServerLink, heard_from, patience_with
from pyspark_hutch.sink.outlet import Outlet

LOG: Final = logging.getLogger(__name__)

BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of frames that are not confirmed: they are kept, to be sent again."""

WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
"""Memory of rows that wait for their sub-batch to be full, of all streams."""

_TRANSIENT: Final = (ServerGone, ServerSilent)
_GONE_AWAY: Final = (ResponseCode.STREAM_NOT_AVAILABLE, ResponseCode.PUBLISHER_DOES_NOT_EXIST)
"""Codes of refused messages when a stream is being moved or deleted."""


class TaskPublishing:
    """Publishes the rows of one task; they count as written once `finish` has returned.

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
        self._links = Links(cluster)
        self._link_of: dict[int, ServerLink] = {}
        self._pauses = cluster.pauses()
        self._rows_unconfirmed = 0
        self._bytes_unconfirmed = 0
        self._waiting_bytes = 0

    @property
    def producers(self) -> tuple[tuple[str, str], ...]:
        """Streams and names of the publishers that have a name."""
        return tuple(outlet for outlet in self._outlets if outlet[1])

    def open(self, streams: Sequence[str], reference: str) -> None:
        """Declare publishers for streams that have none of this name, where their leaders are.

        Raises:
            ClientError: The server refuses, or does not come back.
        """
        new = [stream for stream in streams if (stream, reference) not in self._outlets]
        leaders = self._cluster.leaders(new) if new else {}
        for stream in new:
            outlet = Outlet(stream, reference, len(self._outlets))
            self._outlets[stream, reference] = outlet
            try:
                self._attach(outlet, leaders[stream])
            except _TRANSIENT as error:
                self._recover(error)

    def publish(self, stream: str, reference: str, messages: Messages, ids: Ids) -> None:
        """Publish rows of one producer to one stream; waits while too many are unconfirmed.

        Raises:
            ClientError: The server refuses, or does not come back.
            EncodingError: A row does not fit.
        """
        self.open([stream], reference)
        outlet = self._outlets[stream, reference]
        if outlet.last_id and len(ids) and ids[0] <= outlet.last_id:
            kept = np.flatnonzero(ids > outlet.last_id)
            self.skipped += len(ids) - len(kept)
            messages, ids = messages.take(kept), ids[kept]
        if len(ids):
            self._send_all(outlet, outlet.open_packer.add(messages, ids))
        while self._waiting_bytes > WAITING_BYTES_MAX:
            self._flush(max(self._outlets.values(), key=lambda each: each.waiting_bytes))

    def finish(self) -> None:
        """Publish the rows that wait, await all confirms, and give the connections back."""
        for outlet in self._outlets.values():
            self._flush(outlet)
        while self._rows_unconfirmed:
            self._wait()
        self._links.give_back()

    def abort(self) -> None:
        """Drop the connections: their servers forget the publishers."""
        self._links.drop()

    # ---- sending and waiting -----------------------------------------------------------------

    def _flush(self, outlet: Outlet) -> None:
        self._send_all(outlet, outlet.open_packer.flush())

    def _send_all(self, outlet: Outlet, frames: Iterator[PublishFrame]) -> None:
        """Send frames as its packer makes them, and count the rows that the packer keeps."""
        for frame in frames:
            self._send(outlet, frame)
        self._waiting_bytes -= outlet.waiting_bytes
        outlet.waiting_bytes = outlet.open_packer.waiting_bytes
        self._waiting_bytes += outlet.waiting_bytes

    def _send(self, outlet: Outlet, frame: PublishFrame) -> None:
        while self._rows_unconfirmed and (
            self._rows_unconfirmed + frame.records > self._in_flight_max
            or self._bytes_unconfirmed + len(frame.data) > BYTES_MAX
        ):
            self._wait()
        outlet.unconfirmed.append(frame)
        self._rows_unconfirmed += frame.records
        self._bytes_unconfirmed += len(frame.data)
        link = self._link_of[outlet.number]
        link.frames_waiting += 1
        try:
            link.connection.send_much(frame.data, self._timeout_s)
        except _TRANSIENT as error:
            self._recover(error)

    def _wait(self) -> None:
        """Wait for a confirm from any server that owes one."""
        try:
            self._await_confirm()
        except _TRANSIENT as error:
            self._recover(error)

    def _await_confirm(self) -> None:
        links = self._links.waiting()
        deadline = time.monotonic() + self._timeout_s
        if sum(self._take_from(link, 0.0) for link in links):
            return
        while time.monotonic() < deadline:
            heard = heard_from(links, deadline)
            until = patience_with(links, deadline)
            if sum(self._take_from(link, until) for link in heard):
                return
        places = ", ".join(dict.fromkeys(str(link.connection.endpoint) for link in links))
        raise ServerSilent(f"{places} confirmed nothing for {self._timeout_s:g} s")

    def _take_from(self, link: ServerLink, until: float) -> bool:
        """Take the next frame from a server; return whether it confirmed something."""
        try:
            pushed = link.connection.pushed(until)
        except ServerSilent:
            return False
        if isinstance(pushed, Confirmed):
            self._take_confirm(link, pushed)
            return True
        if isinstance(pushed, m.PublishError):
            raise _refusal(link, pushed)
        if isinstance(pushed, m.MetadataUpdate) and link.is_serving(pushed.stream):
            place = link.connection.endpoint
            raise ServerGone(f"{place} no longer serves stream {pushed.stream!r}")
        return False

    def _take_confirm(self, link: ServerLink, confirmed: Confirmed) -> None:
        outlet = link.outlets.get(confirmed.publisher_id)
        if outlet is None:
            place = link.connection.endpoint
            raise BadAnswer(f"{place} confirmed messages of a publisher that is not there")
        stored = outlet.confirm(confirmed.entries)
        link.frames_waiting -= stored.frames
        self._bytes_unconfirmed -= stored.frame_bytes
        self._rows_unconfirmed -= stored.rows
        self.rows += stored.rows
        if stored.frames:
            self._pauses = self._cluster.pauses()

    # ---- connections -------------------------------------------------------------------------

    def _attach(self, outlet: Outlet, leader: Endpoint) -> None:
        """Declare a publisher at the leader of its stream, and send its unconfirmed frames."""
        link = self._links.link_to(leader, outlet)
        outlet.declare(link.connection)
        if outlet.packer is None:
            limits = self._limits(link.connection.frame_bytes_max)
            outlet.packer = self._packing.packer(outlet.stream, outlet.publisher_id, limits)
        if outlet.reference:
            self._ask_last_id(outlet, link)
        link.outlets[outlet.publisher_id] = outlet
        link.frames_waiting += len(outlet.unconfirmed)
        self._link_of[outlet.number] = link
        for frame in outlet.unconfirmed:
            link.connection.send_much(frame.data, self._timeout_s)

    def _limits(self, frame_bytes_max: int) -> FrameLimits:
        """Let no frame alone have more rows than may be in flight, if it can be helped."""
        entries = max(1, self._in_flight_max // self._packing.sub_batch_size)
        return FrameLimits(frame_bytes_max, entries_max=min(entries, FRAME_ENTRIES_MAX))

    def _ask_last_id(self, outlet: Outlet, link: ServerLink) -> None:
        try:
            outlet.ask_last_id(link.connection)
        except Refused as error:
            if error.code != ResponseCode.ACCESS_REFUSED:
                raise
            if self._packing.option:
                # A sub-batch that begins elsewhere than at the last try would double rows.
                text = (
                    f"{error}: delivery=dedup with {self._packing.option} needs the right to read"
                )
                raise Refused(text, error.code) from None

    def _recover(self, error: ClientError) -> None:
        """Attach all publishers anew after a connection was lost.

        The pauses grow until something is confirmed, so a server that takes all and confirms
        nothing ends the task too.

        Raises:
            ClientError: The server refuses, or stays away.
        """
        streams = list(dict.fromkeys(outlet.stream for outlet in self._outlets.values()))
        for pause_s in self._pauses:
            self._links.drop()
            LOG.warning("publishing: %s; another try in %.1f s", error, pause_s)
            time.sleep(pause_s)
            try:
                leaders = self._cluster.leaders(streams)  # which tries again by itself
            except _TRANSIENT as gone:
                error = gone
                break
            try:
                for outlet in self._outlets.values():
                    self._attach(outlet, leaders[outlet.stream])
            except _TRANSIENT as again:
                error = again
            else:
                return
        raise ClientError(f"{error}; {self._rows_unconfirmed} rows were not confirmed") from None


def _refusal(link: ServerLink, refused: m.PublishError) -> ClientError:
    """Return the error that a refused message stands for."""
    outlet = link.outlets.get(refused.publisher_id)
    place = link.connection.endpoint
    if outlet is None or not refused.errors:
        return BadAnswer(f"{place} refused messages of a publisher that is not there")
    code = refused.errors[0].code
    if code in _GONE_AWAY:
        return ServerGone(f"{place} takes no more of stream {outlet.stream!r}")
    return Refused(f"stream {outlet.stream!r}: a message {in_words(code)}", code)
