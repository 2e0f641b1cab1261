"""Faults of JetStream alone: its servers go away, are too few, too old, or refuse."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import nats
import pytest
from nats.aio.client import Client, ServerVersion
from nats.js.api import DiscardPolicy, StorageType, StreamConfig

from store.replica.jetstream import VERSION_MIN, JetStreamLog, LogAddress
from store.replica.log import Answer, DurableLog, Entry, LogAway, LogError, Outcome, Unstored
from tests.conformance.logs import address_on, appended, read_all, stored
from tests.nats_servers import NatsServers
from tests.waiting import HANG_S, wait_until

T = TypeVar("T")

# The client of NATS drops a connection to a server that does not greet: what closes it warns.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"
)

SENT_MAX: Final = 2_000


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServers]:
    with NatsServers(tmp_path / "nats") as servers:
        yield servers


@pytest.fixture
def own_three(tmp_path: Path) -> Iterator[NatsServers]:
    with NatsServers(tmp_path / "nats", 3) as servers:
        yield servers


def refused(address: LogAddress) -> str:
    """Open a log that must be refused; return the words."""
    with pytest.raises(LogError) as error:
        JetStreamLog.open(address)
    assert not isinstance(error.value, LogAway)
    return str(error.value)


# Servers that go away


def test_a_log_of_which_no_server_answers_is_away(own_server: NatsServers) -> None:
    log = JetStreamLog.open(address_on(own_server))
    (last,) = appended(log, b"a")
    own_server.each[0].kill()

    append, beat = log.append(b"b", last), log.beat("one", b"")

    with ThreadPoolExecutor() as threads:  # each waits for some time
        calls = (log.last, log.size, log.beats, lambda: log.trim(last))
        refusals = [threads.submit(call) for call in calls]
    for each in refusals:
        with pytest.raises(LogAway, match="the log does not answer"):
            each.result()
    assert append.wait() is Unstored.UNKNOWN
    assert log.trouble
    assert not beat.wait()
    log.close()


def test_a_log_that_is_opened_while_no_server_answers_is_away(own_server: NatsServers) -> None:
    address = address_on(own_server)
    own_server.each[0].kill()

    with pytest.raises(LogAway, match=r"no server of the log answers: .*Connect call failed"):
        JetStreamLog.open(address)


def test_the_log_goes_on_when_its_server_is_there_again(own_server: NatsServers) -> None:
    log = JetStreamLog.open(address_on(own_server))
    positions = appended(log, b"a", b"b")
    read_all(log, 1, 2)
    own_server.each[0].kill()
    own_server.start()

    wait_until(lambda: answers(log))
    positions += appended(log, b"c")

    assert [each.position for each in read_all(log, positions[1], 2)] == positions[1:]
    assert [each.data for each in read_all(log, 1, 3)] == [b"a", b"b", b"c"]
    log.close()


def test_what_waits_for_an_answer_ends_with_the_log(own_server: NatsServers) -> None:
    log = JetStreamLog.open(address_on(own_server))
    (last,) = appended(log, b"a")
    own_server.each[0].stop()
    waiting: list[Answer[Outcome]] = [log.append(b"b", last)]
    waiting.append(log.append(b"c", waiting[0]))

    log.close()

    waiting.append(log.append(b"d", last))
    for each in waiting:
        with pytest.raises(LogAway, match="closed"):
            each.wait()
    for call in (log.last, log.size, log.beats):
        with pytest.raises(LogAway, match="closed"):
            call()


def answers(log: DurableLog) -> bool:
    """Return whether a log answers."""
    with suppress(LogAway):
        log.last()
        return True
    return False


# A leader that dies


class Appending(threading.Thread):
    """Appends numbered messages behind its own, several in flight, until it is told to stop."""

    def __init__(self, log: DurableLog) -> None:
        super().__init__(daemon=True)
        self.outcomes: list[tuple[bytes, Outcome]] = []
        self._log = log
        self.has_to_stop = threading.Event()

    def run(self) -> None:
        after: int | Answer[Outcome] = 0
        number = 0
        while not self.has_to_stop.is_set() and number < SENT_MAX:
            flight: list[tuple[bytes, Answer[Outcome]]] = []
            for _ in range(20):
                data = b"%d:" % number + bytes(number % 7 * 1_000)
                flight.append((data, after := self._log.append(data, after)))
                number += 1
            told = [(data, answer.wait()) for data, answer in flight]
            self.outcomes += told
            if not isinstance(told[-1][1], int):
                after = self._last_position()

    def _last_position(self) -> int:
        while True:
            with suppress(LogAway):
                last = self._log.last()
                return 0 if last is None else last.position


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_a_leader_that_dies_leaves_each_message_stored_or_not_known(
    own_three: NatsServers, ends: str
) -> None:
    address = address_on(own_three)
    log = JetStreamLog.open(address)
    appending = Appending(log)
    appending.start()
    wait_until(lambda: len(appending.outcomes) > 100)

    leader = own_three.leader_of(address.name)
    getattr(leader, ends)()

    told = len(appending.outcomes)
    wait_until(lambda: len(appending.outcomes) > told + 100 or not appending.is_alive())
    appending.has_to_stop.set()
    appending.join(HANG_S)
    if ends == "stop":
        leader.wake()
    own_three.start()
    is_as_it_was_told(answered(lambda: JetStreamLog.open(address)), appending.outcomes)
    log.close()


def answered(call: Callable[[], T]) -> T:
    """Return the result of a call to a log whose servers may still be choosing a leader."""
    found: list[T] = []

    def is_answered() -> bool:
        with suppress(LogAway):
            found.append(call())
        return bool(found)

    wait_until(is_answered)
    return found[0]


def is_as_it_was_told(log: JetStreamLog, outcomes: list[tuple[bytes, Outcome]]) -> None:
    """Demand that the log has what was stored where it was, nothing overtaken, all once."""
    last = answered(log.last)
    assert last is not None
    entries: list[Entry] = []

    def read() -> Sequence[Entry]:
        return log.read(entries[-1].position + 1 if entries else 1, 64)

    while not entries or entries[-1].position < last.position:
        entries += answered(read)
    log.close()
    found = {each.position: each.data for each in entries}
    known = {outcome: data for data, outcome in outcomes if isinstance(outcome, int)}
    assert known.items() <= found.items()
    unknown = {data for data, outcome in outcomes if outcome is Unstored.UNKNOWN}
    assert set(found.values()) <= set(known.values()) | unknown
    numbers = [int(each.data.partition(b":")[0]) for each in entries]
    assert numbers == sorted(set(numbers))


@pytest.mark.slow
def test_a_server_that_is_replaced_by_an_empty_one_gets_all_again(own_three: NatsServers) -> None:
    address = address_on(own_three)
    log = JetStreamLog.open(address)
    positions = appended(log, *(b"%d" % number for number in range(50)))
    leader = own_three.leader_of(address.name)

    leader.kill()
    leader.empty()
    own_three.start()

    wait_until(lambda: answers(log))
    positions += appended(log, b"50")
    wait_until(lambda: leader.message_count(address.name) == 51)
    assert [each.position for each in read_all(log, 1, 51)] == positions
    log.close()


# Servers that will not do


def make_stream(servers: NatsServers, config: StreamConfig) -> None:
    """Make a stream, as somebody else."""

    async def make() -> None:
        client = await nats.connect(servers.urls)
        await client.jetstream().add_stream(config)
        await client.close()

    asyncio.run(make())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("subjects", ["orders.*"], "with subjects"),
        ("storage", StorageType.MEMORY, "with storage memory"),
        ("allow_rollup_hdrs", False, "with allow_rollup_hdrs"),
        ("max_age", 60.0, "with max_age 60"),
        ("max_msgs_per_subject", 10, "with max_msgs_per_subject 10"),
    ],
)
def test_a_stream_with_other_settings_is_refused(
    one_server: NatsServers, name: str, value: object, words: str
) -> None:
    address = address_on(one_server)
    subjects = [f"{address.name}.log", f"{address.name}.beats.*"]
    config = StreamConfig(
        name=address.name,
        subjects=subjects,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
    )
    make_stream(one_server, config.evolve(**{name: value}))

    assert words in refused(address)


def test_another_number_of_replicas_than_the_stream_has_is_refused(
    one_server: NatsServers,
) -> None:
    address = address_on(one_server)
    JetStreamLog.open(address).close()

    words = refused(LogAddress(address.servers, 3, address.name))

    assert f"a stream {address.name} with num_replicas 1, and the log needs 3" in words


def test_more_replicas_than_servers_are_refused(one_server: NatsServers) -> None:
    address = address_on(one_server)

    words = refused(LogAddress(address.servers, 3, address.name))

    assert "stream of 3 replicas cannot be made: " in words
    assert "cluster.replicas says how many" in words


@pytest.mark.parametrize("version", ["2.10.29", "2.12.2", "0.0.0"])
def test_an_old_server_is_refused(
    one_server: NatsServers, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "connected_server_version", ServerVersion(version))

    words = refused(address_on(one_server))

    needed = ".".join(map(str, VERSION_MIN))
    assert f"a NATS server is {version}, and {needed} is the oldest that will do" in words


def test_the_oldest_server_that_will_do_does(
    one_server: NatsServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ".".join(map(str, VERSION_MIN))
    monkeypatch.setattr(Client, "connected_server_version", ServerVersion(needed))

    JetStreamLog.open(address_on(one_server)).close()


def test_a_login_is_taken_or_refused_with_a_line_that_says_so(tmp_path: Path) -> None:
    with NatsServers(tmp_path / "nats", has_login=True) as servers:
        log = JetStreamLog.open(address_on(servers))
        assert stored(log.append(b"a", 0).wait())
        log.close()

        for url in (servers.each[0].url, servers.url.replace("hutch-password", "wrong")):
            words = refused(LogAddress([url], 1))
            assert "the log refuses the login: " in words
            assert "Authorization Violation" in words
            assert "wrong" not in words
