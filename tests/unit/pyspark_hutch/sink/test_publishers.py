import socket
import threading
import time
from collections.abc import Iterator

import pytest

from hutch.client.errors import BadAnswer, ClientError, Refused
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, encode_command
from hutch.stream.codes import ResponseCode
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.sink import publishers as publishers_module
from tests.fake_server import OK, Talk
from tests.sink_rig import FakeSink, Publisher, bodies_of, published
from tests.waiting import HANG_S, wait_until


@pytest.fixture
def server() -> Iterator[FakeSink]:
    with FakeSink("a", "b") as fake:
        yield fake


class Background:
    """Publishes in a thread; `end` waits for it and raises what it raised."""

    def __init__(self, publisher: Publisher, stream: str, bodies: list[bytes]) -> None:
        self.error: BaseException | None = None
        self._work = (publisher, stream, bodies)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        publisher, stream, bodies = self._work
        try:
            publisher.write(stream, bodies)
        except BaseException as error:  # noqa: BLE001  # `end` raises it
            self.error = error

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join(HANG_S)
        assert not self.is_running
        if self.error is not None:
            raise self.error


def quiet(server: FakeSink, for_s: float = 0.1, *, at_least: int = 1) -> int:
    """Wait until so many entries wait for their confirm, and no more come; give their number."""
    wait_until(lambda: server.withheld >= at_least)
    seen, since = server.withheld, time.monotonic()
    while time.monotonic() - since < for_s:
        time.sleep(0.01)
        if server.withheld != seen:
            seen, since = server.withheld, time.monotonic()
    return seen


def test_rows_are_stored_once_and_counted(server: FakeSink) -> None:
    publisher = Publisher(server)

    publisher.publish("a", bodies_of(1_000))
    publisher.publish("b", bodies_of(10))
    publisher.write("a", bodies_of(1_000, first=1_000))

    assert server.stored == {"a": bodies_of(2_000), "b": bodies_of(10)}
    assert (publisher.publishing.rows, publisher.publishing.skipped) == (2_010, 0)


def test_finish_waits_for_the_last_confirm(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server)
    work = Background(publisher, "a", bodies_of(10))

    assert server.has_withheld.wait(HANG_S)
    quiet(server)
    assert work.is_running
    assert publisher.publishing.rows == 0

    server.release()
    work.end()
    assert publisher.publishing.rows == 10


@pytest.mark.parametrize("most", [1, 7, 100])
def test_no_more_rows_than_allowed_wait_for_their_confirm(server: FakeSink, most: int) -> None:
    server.is_confirming = False
    work = Background(Publisher(server, in_flight_max=most), "a", bodies_of(300))

    assert server.has_withheld.wait(HANG_S)
    waiting = quiet(server, at_least=most)
    server.release()
    work.end()

    assert waiting == most
    assert server.stored["a"] == bodies_of(300)


def test_sub_batches_keep_the_bound_of_rows(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server, sub_batch_size=10, in_flight_max=35)
    work = Background(publisher, "a", bodies_of(300))

    assert server.has_withheld.wait(HANG_S)
    waiting = quiet(server, at_least=3)
    server.release()
    work.end()

    assert waiting == 3
    assert server.stored["a"] == bodies_of(300)


def test_no_more_than_32_mib_wait_for_their_confirm(server: FakeSink) -> None:
    server.is_confirming = False
    size = 1_000_000
    work = Background(Publisher(server), "a", bodies_of(40, size=size))

    assert server.has_withheld.wait(HANG_S)
    waiting = quiet(server, at_least=publishers_module.BYTES_MAX // size)
    server.release()
    work.end()

    assert waiting == publishers_module.BYTES_MAX // size
    assert server.stored["a"] == bodies_of(40, size=size)


def test_a_server_that_takes_nothing_while_its_confirms_are_unread_is_no_deadlock(
    server: FakeSink,
) -> None:
    def flood(talk: Talk, asked: Decoded) -> None:
        publisher_id, entries = published(asked)
        server.store(talk, publisher_id, entries)
        # Blocks until the client reads: far more than sockets hold.
        noise = encode_command("metadata_update", m.MetadataUpdate(6, "x" * 30_000))
        for _ in range(1_000 if server.count("publish") == 1 else 0):
            talk.send(noise)
        ids = tuple(publishing_id for publishing_id, _ in entries)
        talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

    server.handlers["publish"] = flood
    publisher = Publisher(server, in_flight_max=1_000_000)

    publisher.write("a", bodies_of(20, size=1_000_000))

    assert server.stored["a"] == bodies_of(20, size=1_000_000)
    assert server.count("declare_publisher") == 1


def test_what_was_not_confirmed_is_sent_again_after_a_lost_connection(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server)
    work = Background(publisher, "a", bodies_of(100))
    assert server.has_withheld.wait(HANG_S)
    quiet(server)

    server.is_confirming = True
    server.cut()
    work.end()

    assert set(server.stored["a"]) == set(bodies_of(100))
    assert publisher.publishing.rows == 100


@pytest.mark.parametrize("sub_batch_size", [1, 10])
def test_a_named_producer_doubles_nothing_after_a_lost_connection(
    server: FakeSink, sub_batch_size: int
) -> None:
    seen = 0

    def cutting(talk: Talk, asked: Decoded) -> None:
        nonlocal seen
        seen += 1
        publisher_id, entries = published(asked)
        server.store(talk, publisher_id, entries)
        if seen in {2, 3, 7}:
            talk.socket.shutdown(socket.SHUT_RDWR)
            return
        ids = tuple(publishing_id for publishing_id, _ in entries)
        talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

    server.handlers["publish"] = cutting
    publisher = Publisher(server, in_flight_max=40, sub_batch_size=sub_batch_size)

    for first in range(0, 1_000, 25):
        publisher.publish("a", bodies_of(25, first=first), "name")
    publisher.publishing.finish()

    assert server.stored["a"] == bodies_of(1_000)
    assert (publisher.publishing.rows, publisher.publishing.skipped) == (1_000, 0)


def test_a_connection_lost_while_a_publisher_is_declared_is_made_again(server: FakeSink) -> None:
    declare = server.handlers["declare_publisher"]
    calls = 0

    def declaring(talk: Talk, asked: Decoded) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            talk.socket.shutdown(socket.SHUT_RDWR)
        else:
            declare(talk, asked)

    server.handlers["declare_publisher"] = declaring
    publisher = Publisher(server)

    publisher.publish("a", bodies_of(10), "name")
    publisher.write("b", bodies_of(10), "name")

    assert server.stored == {"a": bodies_of(10), "b": bodies_of(10)}


def test_a_stream_that_is_not_available_for_a_moment_is_tried_again(server: FakeSink) -> None:
    declare = server.handlers["declare_publisher"]
    server.handlers["declare_publisher"] = lambda talk, asked: (
        talk.reply(asked, m.Status(ResponseCode.STREAM_NOT_AVAILABLE))
        if server.count("declare_publisher") < 3
        else declare(talk, asked)
    )

    Publisher(server).write("a", bodies_of(10))

    assert server.stored["a"] == bodies_of(10)


def test_a_server_that_stays_away_ends_the_task_in_one_line(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server, planner_retries=2)
    work = Background(publisher, "a", bodies_of(10))
    assert server.has_withheld.wait(HANG_S)

    server.go()

    with pytest.raises(ClientError, match=r"^.*; 10 rows were not confirmed$"):
        work.end()


def test_a_server_that_never_confirms_ends_the_task(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server, confirm_timeout_ms=100, planner_retries=2)

    with pytest.raises(ClientError, match=r"confirmed nothing for 0\.1 s; 10 rows"):
        publisher.write("a", bodies_of(10))

    assert server.count("publish") == 3


def test_a_confirm_gives_all_tries_back(server: FakeSink) -> None:
    seen = 0

    def every_third(talk: Talk, asked: Decoded) -> None:
        nonlocal seen
        seen += 1
        publisher_id, entries = published(asked)
        if seen % 3:
            talk.socket.shutdown(socket.SHUT_RDWR)
            return
        server.store(talk, publisher_id, entries)
        ids = tuple(publishing_id for publishing_id, _ in entries)
        talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

    server.handlers["publish"] = every_third
    publisher = Publisher(server, in_flight_max=1, planner_retries=2)

    publisher.write("a", bodies_of(6))

    assert server.stored["a"] == bodies_of(6)


def test_rows_that_the_server_has_are_skipped(server: FakeSink) -> None:
    server.last_ids["a", "name"] = 60
    publisher = Publisher(server)

    publisher.publish("a", bodies_of(50), "name")
    publisher.write("a", bodies_of(50, first=50), "name")

    assert server.stored["a"] == bodies_of(40, first=60)
    assert (publisher.publishing.rows, publisher.publishing.skipped) == (40, 60)
    assert sum(server.frames) == 40


def test_without_the_right_to_read_the_server_drops_the_rows(server: FakeSink) -> None:
    server.handlers["query_publisher_sequence"] = refuse_sequence
    server.last_ids["a", "name"] = 60
    publisher = Publisher(server)

    publisher.write("a", bodies_of(100), "name")

    assert server.stored["a"] == bodies_of(40, first=60)
    assert (publisher.publishing.rows, publisher.publishing.skipped) == (100, 0)


def test_sub_batches_of_a_named_producer_need_the_right_to_read(server: FakeSink) -> None:
    server.handlers["query_publisher_sequence"] = refuse_sequence

    with pytest.raises(Refused, match=r"'a' .*access refused.*compression=gzip needs the right"):
        Publisher(server, compression="gzip", sub_batch_size=10).write("a", bodies_of(10), "name")

    Publisher(server, compression="gzip", sub_batch_size=10).write("a", bodies_of(10))
    assert len(server.stored["a"]) == 10


def refuse_sequence(talk: Talk, asked: Decoded) -> None:
    talk.reply(asked, m.PublisherSequence(ResponseCode.ACCESS_REFUSED, 0))


def test_a_refused_message_names_its_stream(server: FakeSink) -> None:
    answer_publish(server, m.PublishError(0, (m.PublishingError(3, ResponseCode.ACCESS_REFUSED),)))

    with pytest.raises(Refused, match=r"^stream 'a': a message .*access refused"):
        Publisher(server).write("a", bodies_of(10))


@pytest.mark.parametrize(
    "code", [ResponseCode.STREAM_NOT_AVAILABLE, ResponseCode.PUBLISHER_DOES_NOT_EXIST]
)
def test_messages_refused_while_a_stream_moves_are_sent_again(server: FakeSink, code: int) -> None:
    publish = server.handlers["publish"]
    error = m.PublishError(0, (m.PublishingError(1, code),))
    server.handlers["publish"] = lambda talk, asked: (
        talk.push("publish_error", error) if server.count("publish") < 3 else publish(talk, asked)
    )

    Publisher(server).write("a", bodies_of(10))

    assert server.stored["a"] == bodies_of(10)


@pytest.mark.parametrize(
    "answer",
    [
        m.PublishConfirm(0, tuple(range(1, 12))),
        m.PublishConfirm(9, (1,)),
        m.PublishError(9, (m.PublishingError(1, 16),)),
        m.PublishError(0, ()),
    ],
    ids=["more ids than sent", "another publisher", "an error of another", "an empty error"],
)
def test_a_server_that_answers_for_what_was_not_published_is_refused(
    server: FakeSink, answer: m.Message
) -> None:
    answer_publish(server, answer)

    with pytest.raises(BadAnswer):
        Publisher(server).write("a", bodies_of(10))


def test_a_confirm_that_lies_about_its_ids_is_refused(server: FakeSink) -> None:
    frame = bytearray(encode_command("publish_confirm", m.PublishConfirm(0, (1, 2))))
    frame[9:13] = (10).to_bytes(4)
    server.handlers["publish"] = lambda talk, _: talk.send(bytes(frame))

    with pytest.raises(BadAnswer, match="a confirm of 10 ids"):
        Publisher(server).write("a", bodies_of(10))


def answer_publish(server: FakeSink, answer: m.Message) -> None:
    name = "publish_confirm" if isinstance(answer, m.PublishConfirm) else "publish_error"
    server.handlers["publish"] = lambda talk, _: talk.push(name, answer)


def test_a_stream_that_moves_is_published_to_anew(server: FakeSink) -> None:
    server.is_confirming = False
    publisher = Publisher(server)
    work = Background(publisher, "a", bodies_of(10))
    assert server.has_withheld.wait(HANG_S)
    quiet(server)
    server.is_confirming = True

    server.talks[-1].push("metadata_update", m.MetadataUpdate(6, "b"))
    quiet(server)
    assert server.count("declare_publisher") == 1, "the other stream is none of ours"
    server.talks[-1].push("metadata_update", m.MetadataUpdate(6, "a"))
    work.end()

    assert server.count("declare_publisher") == 2
    assert set(server.stored["a"]) == set(bodies_of(10))


def test_a_stream_deleted_in_the_middle_is_named(server: FakeSink) -> None:
    server.is_confirming = False
    work = Background(Publisher(server), "a", bodies_of(10))
    assert server.has_withheld.wait(HANG_S)
    quiet(server)

    del server.streams["a"]
    server.talks[-1].push("metadata_update", m.MetadataUpdate(6, "a"))

    with pytest.raises(Refused, match=r"^stream 'a' does not exist$"):
        work.end()


def test_more_than_256_publishers_take_more_connections() -> None:
    names = [f"s{number}" for number in range(300)]
    with FakeSink(*names) as server:
        publisher = Publisher(server)

        publisher.publishing.open(names, "")
        for name in names:
            publisher.publish(name, [name.encode()])
        publisher.publishing.finish()

        assert server.stored == {name: [name.encode()] for name in names}
        publishing = [talk for talk in server.talks if "publish" in talk.names]
        assert sorted(talk.names.count("publish") for talk in publishing) == [44, 256]
        assert server.count("metadata") == 1
        assert server.publishers() == 0


def test_a_server_that_is_slow_keeps_no_other_from_being_heard() -> None:
    names = [f"s{number}" for number in range(257)]
    with FakeSink(*names) as server:
        server.is_confirming = False
        publisher = Publisher(server, in_flight_max=20)
        publisher.publishing.open(names, "")
        publisher.publish("s0", [b"slow"])
        assert server.has_withheld.wait(HANG_S)

        with server._lock:
            server.is_confirming = True
        for number in range(200):  # on the other connection
            publisher.publish("s256", [b"%d" % number])

        assert server.withheld == 1
        server.release()
        publisher.publishing.finish()
        assert len(server.stored["s256"]) == 200


def test_the_next_task_uses_the_connection(server: FakeSink) -> None:
    for number in range(3):
        publisher = Publisher(server)
        publisher.write("a", [b"%d" % number], "name of its own")
        assert server.publishers() == 0

    with_pool = Publisher(server, pool_idle_timeout_ms=30_000)
    with_pool.write("a", bodies_of(1), "x")
    used = len(server.talks)
    Publisher(server, pool_idle_timeout_ms=30_000).write("b", bodies_of(1), "x")
    assert len(server.talks) == used


def test_a_server_that_goes_when_all_is_confirmed_is_no_failure(server: FakeSink) -> None:
    server.handlers["delete_publisher"] = lambda talk, _: talk.socket.shutdown(socket.SHUT_RDWR)
    publisher = Publisher(server)

    publisher.write("a", bodies_of(10))

    assert publisher.publishing.rows == 10
    assert server.stored["a"] == bodies_of(10)


def test_a_connection_whose_publishers_stay_is_not_used_again(server: FakeSink) -> None:
    server.handlers["delete_publisher"] = lambda talk, asked: talk.reply(
        asked, m.Status(ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    )
    Publisher(server, pool_idle_timeout_ms=30_000).write("a", bodies_of(10))
    server.handlers["delete_publisher"] = lambda talk, asked: talk.reply(asked, m.Status(OK))

    Publisher(server, pool_idle_timeout_ms=30_000).write("a", bodies_of(10))

    publishing = [talk for talk in server.talks if "publish" in talk.names]
    assert len(publishing) == 2


def test_a_message_that_fits_no_frame_names_its_stream(server: FakeSink) -> None:
    with pytest.raises(MessageTooLarge, match=r"^stream 'a': a message needs a frame of"):
        Publisher(server).write("a", [b"small", bytes(2 << 20)])
