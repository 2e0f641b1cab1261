"""The log on NATS JetStream: a stream of three replicas, each of which syncs before it answers.

The stream has one subject for messages and one for the beats of each member. A message is stored on
the condition that the last one of its subject has the position that is expected; all other order,
majority and election is JetStream's. The client of NATS is asyncio's, so it has a thread.

Source: NATS ADR-8 (headers), ADR-22 (publish retries), the JetStream API's reference.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from store.replica.log import Answer, Entry, LogAway, LogError, LogGap, Outcome, Unstored

log = logging.getLogger(__name__)
T = TypeVar("T")

VERSION_MIN: Final = (2, 12, 3)
"""Older servers may lose what they have acknowledged."""

_ANSWER_S: Final = 4.0
_CONNECT_S: Final = 2.0
_READ_S: Final = 0.1
_PING_S: Final = 1
_PINGS_MAX: Final = 2
"""Pings without an answer after which a server is taken for gone, and another one is tried."""
_MARGIN_BYTES: Final = 4 * 1024
"""Bytes that headers and subjects take of the largest message."""
_WRONG_LAST: Final = frozenset((10071, 10164))
"""Codes of JetStream: the last sequence of the subject is another."""
_EXPECTED_LAST: Final = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_STREAM: Final = "Nats-Expected-Stream"
_ROLLUP: Final = {"Nats-Rollup": "sub"}
_REFUSED: Final = "Authorization Violation"
"""Words of a server for a login that it does not know."""


_SETTINGS: Final = (
    *("subjects", "storage", "num_replicas", "discard", "allow_rollup_hdrs"),
    *("retention", "max_age", "max_msgs_per_subject"),
)
"""Settings that a stream must have as asked for: else it loses messages, or takes none."""
_NO_LIMIT: Final = (None, False, 0, -1)
"""Values by which servers say that a setting is not used."""


@dataclass(frozen=True, slots=True)
class LogAddress:
    """The place of the log, and its login.

    Attributes:
        servers: Addresses, each of which is enough to find the others.
        replicas: How many servers keep each message.
        name: Of the stream.
        ca: Certificates that sign those of the servers; None: those that the system trusts.
        options: Further arguments of `Client.connect`.
    """

    servers: Sequence[str]
    replicas: int
    name: str = "hutch"
    ca: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)


class _Later:
    """An answer that comes on the client's thread."""

    __slots__ = ("future",)

    def __init__(self, future: "Future[Any]") -> None:
        self.future = future

    def wait(self) -> Any:  # noqa: ANN401  # as the call says
        try:
            return self.future.result()
        except CancelledError:
            raise _closed() from None


class JetStreamLog:
    """The log on JetStream; `DurableLog`. Made by `open`."""

    def __init__(self, address: LogAddress) -> None:
        self._address = address
        self._name = address.name
        self._messages, self._beating = f"{address.name}.log", f"{address.name}.beats"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._is_closed = False
        self._closing = threading.Lock()
        self._client = Client()
        self._last_error = ""
        self._reader: JetStreamContext.PullSubscription | None = None
        self._reader_at = 0
        self._reading = threading.Lock()
        self.bytes_max = 0
        self.trouble = ""

    @classmethod
    def open(cls, address: LogAddress) -> "JetStreamLog":
        """Connect, and make the stream if it is missing; blocks.

        Raises:
            LogAway: No server answers.
            LogError: The servers cannot keep this log; the words say why.
        """
        opened = cls(address)
        opened._thread.start()
        try:
            opened._call(opened._connect())
        except BaseException:
            opened.close()
            raise
        return opened

    def append(self, data: bytes, after: int | Answer[Outcome]) -> _Later:
        return self._later(self._append(data, after))

    def last(self) -> Entry | None:
        return self._call(self._last())

    def read(self, position: int, count_max: int) -> Sequence[Entry]:
        with self._reading:
            return self._call(self._read(position, count_max))

    def trim(self, position: int) -> None:
        self._call(self._trim(position))

    def beat(self, member: str, data: bytes) -> _Later:
        return self._later(self._beat(member, data))

    def beats(self) -> dict[str, tuple[int, bytes]]:
        return self._call(self._beats())

    def forget(self, member: str) -> None:
        self._call(self._manager.purge_stream(self._name, subject=f"{self._beating}.{member}"))

    def size(self) -> int:
        return self._call(self._size())

    def close(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        ended.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # On the client's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _later(self, work: Coroutine[Any, Any, object]) -> _Later:
        with self._closing:
            if not self._is_closed:
                return _Later(asyncio.run_coroutine_threadsafe(work, self._loop))
        work.close()
        never: Future[object] = Future()
        never.set_exception(_closed())
        return _Later(never)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            found: T = self._later(work).wait()
        except (TimeoutError, nats.errors.Error, OSError) as error:
            raise LogAway(f"the log does not answer: {_words(error)}") from error
        return found

    async def _end(self) -> None:
        """Close the connection; what waits for an answer gets none."""
        with suppress(Exception):
            async with asyncio.timeout(_ANSWER_S):
                await self._client.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self) -> None:
        address, client = self._address, self._client
        options: dict[str, Any] = {
            "name": "hutch",
            "connect_timeout": _CONNECT_S,
            "reconnect_time_wait": 0.2,
            "max_reconnect_attempts": -1,
            "allow_reconnect": True,
            "ping_interval": _PING_S,
            "max_outstanding_pings": _PINGS_MAX,
            "error_cb": self._note_error,
            "pending_size": 64 * 1024 * 1024,
        }
        if address.ca is not None:
            options["tls"] = ssl.create_default_context(cafile=address.ca)
        try:
            # It tries again without end, and tells only `error_cb` of what went wrong.
            async with asyncio.timeout(_CONNECT_S * (len(address.servers) + 1)):
                await client.connect(list(address.servers), **options, **address.options)
        except TimeoutError as error:
            raise LogAway(f"no server of the log answers: {self._last_error}") from error
        self.bytes_max = client.max_payload - _MARGIN_BYTES
        self._js = client.jetstream(timeout=_ANSWER_S)
        self._manager = client.jsm(timeout=_ANSWER_S)
        self._check_version()
        await self._need_stream()

    def _check_version(self) -> None:
        version = self._client.connected_server_version
        if (version.major, version.minor, version.patch) < VERSION_MIN:
            needed = ".".join(map(str, VERSION_MIN))
            shown = f"{version.major}.{version.minor}.{version.patch}"
            raise LogError(f"a NATS server is {shown}, and {needed} is the oldest that will do")

    async def _need_stream(self) -> None:
        config = StreamConfig(
            name=self._name,
            subjects=[self._messages, f"{self._beating}.*"],
            storage=StorageType.FILE,
            retention=RetentionPolicy.LIMITS,
            num_replicas=self._address.replicas,
            discard=DiscardPolicy.NEW,
            allow_rollup_hdrs=True,
            max_msgs_per_subject=-1,
        )
        try:
            found = (await self._manager.stream_info(self._name)).config
        except NotFoundError:
            await self._make_stream(config)
            return
        for name in _SETTINGS:
            is_, wanted = getattr(found, name), getattr(config, name)
            if is_ != wanted and not (is_ in _NO_LIMIT and wanted in _NO_LIMIT):
                raise LogError(
                    f"the servers have a stream {self._name} with {name} {is_}, and the log needs"
                    f" {wanted}: use other servers, or another account"
                )

    async def _make_stream(self, config: StreamConfig) -> None:
        try:
            await self._manager.add_stream(config)
        except APIError as error:
            raise LogError(
                f"the log's stream of {config.num_replicas} replicas cannot be made:"
                f" {error.description}; cluster.replicas says how many, and each needs a server"
            ) from error

    async def _note_error(self, error: Exception) -> None:
        self._last_error = _words(error)
        log.debug("connection to the log error=%s", self._last_error)
        if _REFUSED in self._last_error and not self.bytes_max:  # it was never connected
            raise LogError(
                f"the log refuses the login: {self._last_error}; see --log's user and password, or"
                f" cluster.credentials_file"
            ) from error

    async def _append(self, data: bytes, after: int | Answer[Outcome]) -> Outcome:
        if not isinstance(after, int):
            # One is on its way at a time: several servers take no other one of its subject before.
            assert isinstance(after, _Later)
            outcome: Outcome = await asyncio.wrap_future(after.future)
            if not isinstance(outcome, int):
                return Unstored.OVERTAKEN
            after = outcome
        headers = {_EXPECTED_LAST: str(after), _EXPECTED_STREAM: self._name}
        return await self._published(self._messages, data, headers)

    async def _published(self, subject: str, data: bytes, headers: dict[str, str]) -> Outcome:
        try:
            stored = await self._js.publish(subject, data, timeout=_ANSWER_S, headers=headers)
        except APIError as error:
            if error.err_code in _WRONG_LAST:
                return Unstored.OVERTAKEN
            self.trouble = str(error.description)
            return Unstored.UNKNOWN
        except (TimeoutError, nats.errors.Error, OSError) as error:
            self.trouble = _words(error)
            return Unstored.UNKNOWN
        return stored.seq

    async def _last(self) -> Entry | None:
        try:
            found = await self._manager.get_msg(self._name, subject=self._messages)
        except NotFoundError:
            return None
        return Entry(found.seq or 0, found.data or b"")

    async def _read(self, position: int, count_max: int) -> list[Entry]:
        if self._reader is None or self._reader_at != position:
            await self._begin_reading(position)
        assert self._reader is not None
        try:
            messages = await self._reader.fetch(count_max, timeout=_READ_S)
        except (TimeoutError, nats.errors.TimeoutError):
            return []
        except ServiceUnavailableError:  # the server that had the reader has gone
            self._reader = None
            return []
        except BaseException:
            self._reader = None
            raise
        entries = [Entry(each.metadata.sequence.stream, each.data) for each in messages]
        if not entries:
            return []
        if entries[0].position > position:  # behind a beat, or behind what was trimmed meanwhile
            await self._need_from(position, entries[0].position)
        self._reader_at = entries[-1].position + 1
        return entries

    async def _begin_reading(self, position: int) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(nats.errors.Error):
                await reader.unsubscribe()
        await self._need_from(position)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(position, 1),
            ack_policy=AckPolicy.NONE,
            filter_subject=self._messages,
            inactive_threshold=60.0,
            mem_storage=True,
            num_replicas=1,
        )
        made = await self._manager.add_consumer(self._name, config)
        self._reader = await self._js.pull_subscribe_bind(made.name, self._name)
        self._reader_at = position

    async def _need_from(self, position: int, found_at: int | None = None) -> None:
        """Demand that messages are there from a position on.

        Args:
            position: That one.
            found_at: Position of the first message that was read from there on: it is the next one,
                if an earlier one is still there.

        Raises:
            LogGap: They are not.
        """
        try:
            first = await self._manager.get_msg(
                self._name, seq=1, subject=self._messages, next=True
            )
        except NotFoundError:
            return
        begin = first.seq or 0
        if begin > position and (found_at is None or found_at >= begin):
            self._reader = None
            raise LogGap(f"messages before position {begin} are not in the log", begin)

    async def _trim(self, position: int) -> None:
        last = await self._last()
        until = 0 if last is None else min(position, last.position)
        if until > 1:  # without a position it would remove all
            await self._manager.purge_stream(self._name, seq=until, subject=self._messages)

    async def _beat(self, member: str, data: bytes) -> bool:
        stored = await self._published(f"{self._beating}.{member}", data, _ROLLUP)
        return isinstance(stored, int)

    async def _size(self) -> int:
        return (await self._manager.stream_info(self._name)).state.bytes

    async def _beats(self) -> dict[str, tuple[int, bytes]]:
        info = await self._manager.stream_info(self._name, subjects_filter=f"{self._beating}.*")
        found: dict[str, tuple[int, bytes]] = {}
        for subject in info.state.subjects or {}:
            with suppress(NotFoundError):
                last = await self._manager.get_msg(self._name, subject=subject)
                found[subject.rpartition(".")[2]] = (last.seq or 0, last.data or b"")
        return found


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _closed() -> LogAway:
    return LogAway("the log is closed")
