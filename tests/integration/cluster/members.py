"""Members of one cluster: real `hutch serve` processes on one log of real servers."""

from __future__ import annotations

import operator
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hutch.stream.offsets import FIRST
from store.files import DirectoryFiles
from store.replica.jetstream import JetStreamLog, LogAddress
from store.replica.local_copy import place_in
from tests.client import Client
from tests.conformance.implementations import member_of, shared_files
from tests.integration.clients.loop import run
from tests.integration.clients.rstream_session import Records
from tests.integration.clients.rstream_session import read as read_by_rstream
from tests.integration.conftest import assert_no_traceback
from tests.integration.load import GONE, Publishing, committed_offset, record_of
from tests.integration.server import Endpoint, HutchServer
from tests.nats_servers import NatsServers
from tests.waiting import HANG_S, wait_until

FENCED: Final = 75
BEATS: Final = 15
"""Beats of 100 ms, here after which a member takes over."""


class Cluster:
    """Members on a log of their own.

    Args:
        folder: For their directories.
        nats: The servers of the log.
        name: Of the cluster, which no other one has on these servers.
    """

    def __init__(self, folder: Path, nats: NatsServers, name: str) -> None:
        self.folder = folder
        self.nats = nats
        self.name = name
        self.members: list[HutchServer] = []
        self.is_usual = False

    def environment(self, beats: int = BEATS) -> dict[str, str]:
        """Return the settings of each member: short times, or those that users have."""
        named = {"HUTCH_CLUSTER__NAME": self.name}
        if self.is_usual:
            return named
        return {
            **named,
            "HUTCH_CLUSTER__BEAT_MS": "100",
            "HUTCH_CLUSTER__TAKEOVER_BEATS": str(beats),
            "HUTCH_CLUSTER__REQUEST_TIMEOUT_S": "1",
        }

    def arguments(self, member: str) -> tuple[str, ...]:
        """Return the flags of a member."""
        return ("--log", self.nats.url, "--member", member, "--log-level", "info")

    def start(
        self, member: str, *further: str, beats: int = BEATS, folder: str = ""
    ) -> HutchServer:
        """Start a member, with further flags, and do not wait: one that follows does not serve."""
        server = HutchServer(
            self.folder / (folder or member),
            *self.arguments(member),
            *further,
            environment=self.environment(beats),
            is_awaited=False,
        )
        self.members.append(server)
        return server

    def start_two(self, *, beats: int = BEATS) -> tuple[HutchServer, HutchServer]:
        """Start two members; return the one that serves, and the one that follows."""
        active = self.start("a", beats=beats)
        active.wait_until_ready()
        follower = self.start("b", beats=beats)
        follower.wait_for_log("following the log member=b")
        return active, follower

    def directories_at_one_number(self) -> list[dict[str, bytes]]:
        """Return the shared files of all members, which have ended, with the whole log applied."""
        address = LogAddress(self.nats.urls, self.nats.count, self.name)
        shared_log = JetStreamLog.open(address)
        directories = dict.fromkeys(each.data_dir for each in self.members)
        numbers = set()
        for directory in directories:
            member = member_of(DirectoryFiles(directory), shared_log, directory.name)
            member.follower.catch_up()
            member.close()
            place = place_in(DirectoryFiles(directory))
            assert place is not None
            numbers.add(place.link.number)
        shared_log.close()
        assert len(numbers) == 1
        return [shared_files(directory) for directory in directories]

    def close(self) -> None:
        """End all members; a traceback in a log fails the test."""
        for each in self.members:
            if each.is_running:
                each.process.send_signal(signal.SIGCONT)
            each.close()
        for each in self.members:
            assert_no_traceback(each)


class Reading(threading.Thread):
    """Reads a stream until its server has gone, and keeps what it was given at each offset."""

    def __init__(self, endpoint: Endpoint, stream: str) -> None:
        super().__init__(daemon=True)
        self._endpoint, self._stream = endpoint, stream
        self.seen: dict[int, bytes] = {}

    def run(self) -> None:
        try:
            with Client.opened(*self._endpoint) as client:
                client.subscribe(1, self._stream, FIRST, credit=100)
                while True:
                    chunk = client.delivery().chunk
                    self.seen.update(enumerate(chunk.records(), start=chunk.chunk_id))
                    client.credit(1, 1)
        except GONE:
            pass


class Load:
    """A named and an unnamed publisher, each with a stream and a reader of it."""

    STREAMS: Final = {"named": "w", "unnamed": ""}

    def __init__(self, endpoint: Endpoint, firsts: Sequence[int] = (1, 1)) -> None:
        """Begin, each publisher with an id of `firsts`."""
        self._publishing = [
            Publishing(endpoint, stream, reference, first_id=first)
            for (stream, reference), first in zip(self.STREAMS.items(), firsts, strict=True)
        ]
        self._reading = [Reading(endpoint, stream) for stream in self.STREAMS]
        for each in (*self._publishing, *self._reading):
            each.start()

    @property
    def confirmed(self) -> list[set[int]]:
        """The ids that were confirmed so far, by stream."""
        return [set(each.confirmed.copy()) for each in self._publishing]

    @property
    def is_connected(self) -> bool:
        """True if no connection has ended."""
        return all(each.is_alive() for each in (*self._publishing, *self._reading))

    def wait_for_more(self, count: int = 2_000) -> None:
        """Wait until so many more ids of each are confirmed, and as many were read."""
        wanted = [each + count for each in self._counts()]
        wait_until(lambda: all(map(operator.ge, self._counts(), wanted)))

    def _counts(self) -> list[int]:
        confirms = [len(each.confirmed) for each in self._publishing]
        return confirms + [len(each.seen) for each in self._reading]

    def finish(self) -> None:
        """Let the publishers end; the readers do when the server has gone."""
        for each in self._publishing:
            each.finish()

    def must_be_in(self, endpoint: Endpoint) -> list[int]:
        """Demand of a server all that was promised; return the first id of each not sent yet.

        What was confirmed is there, in order, once, and each record at the offset at which a reader
        was given it. The publishers began with id 1.
        """
        lasts = []
        for index, (stream, reference) in enumerate(self.STREAMS.items()):
            records = read(endpoint, stream)
            expected = [record_of(number, reference) for number in range(1, len(records) + 1)]
            assert [offset for offset, _ in records] == list(range(len(records)))
            assert [record for _, record in records] == expected
            assert max(self.confirmed[index]) <= len(records) < self._publishing[index].next_id
            assert self._reading[index].seen
            assert self._reading[index].seen.items() <= dict(records).items()
            lasts.append(len(records) + 1)
        return lasts


def create_streams(endpoint: Endpoint) -> None:
    """Create the streams of a load."""
    with Client.opened(*endpoint) as client:
        for stream in Load.STREAMS:
            client.create(stream)


def read(endpoint: Endpoint, stream: str) -> Records:
    """Read all of a stream with the stock client rstream."""
    with Client.opened(*endpoint) as client:
        count = committed_offset(client, stream) + 1
    return run(read_by_rstream(endpoint, stream, count, decoder=bytes)) if count else []


def exit_status(server: HutchServer) -> int:
    """Wait until a member has ended; return its exit status."""
    return server.process.wait(HANG_S)
