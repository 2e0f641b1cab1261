import time
from collections.abc import Iterator
from itertools import islice

import pytest

from hutch.client import (
    FIRST,
    BadAnswer,
    Client,
    ClientError,
    Refused,
    ServerGone,
    ServerSilent,
    at_offset,
)
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import OffsetType
from tests.fake_server import OK, Talk, chunks
from tests.sink_rig import FakeSink
from tests.waiting import HANG_S


@pytest.fixture
def server() -> Iterator[FakeSink]:
    with FakeSink("s", "t") as fake:
        yield fake


@pytest.fixture
def client(server: FakeSink) -> Iterator[Client]:
    with Client(server.host, server.port, timeout_s=1.0) as made:
        yield made


def limited(server: FakeSink, frame_bytes_max: int) -> None:
    """Let a server take no larger frames."""

    def authenticate(talk: Talk, asked: Decoded) -> None:
        talk.reply(asked, m.SaslAuthenticateReply(OK, b""))
        talk.push("tune", m.Tune(frame_bytes_max, 60))

    server.handlers["sasl_authenticate"] = authenticate


# ---- publishing --------------------------------------------------------------------------------


def test_publishing_returns_when_all_records_are_stored(server: FakeSink, client: Client) -> None:
    client.publish("s", [b"one", b"two"])
    client.publish("s", iter([b"", b"three"]))

    assert server.stored["s"] == [b"one", b"two", b"", b"three"]
    assert server.count("declare_publisher") == 1


def test_publishing_waits_for_confirms_up_to_its_time_limit(
    server: FakeSink, client: Client
) -> None:
    server.is_confirming = False
    publisher = client.publisher("s")
    publisher.send([b"one", b"two"])

    with pytest.raises(ServerSilent):
        publisher.flush(timeout_s=0.1)
    assert publisher.unconfirmed == 2
    server.release()
    publisher.flush()

    assert publisher.unconfirmed == 0


def test_records_go_out_in_frames_that_the_server_takes(server: FakeSink) -> None:
    limited(server, 1_000)
    records = [bytes(100)] * 20
    with Client(server.host, server.port) as client:
        client.publish("s", records)

    # 9 bytes of head, and 112 an entry: eight entries are 905 bytes, nine are 1,017
    assert server.frames == [8, 8, 4]
    assert server.stored["s"] == records


@pytest.mark.parametrize(("size", "fits"), [(979, True), (980, False)])
def test_a_record_has_to_fit_into_a_frame(server: FakeSink, size: int, fits: bool) -> None:  # noqa: FBT001  # a parameter of the test
    limited(server, 1_000)
    with Client(server.host, server.port) as client:
        if fits:
            client.publish("s", [bytes(size)])
        else:
            with pytest.raises(ValueError, match="does not fit into a frame"):
                client.publish("s", [bytes(size)])

    assert server.stored["s"] == ([bytes(size)] if fits else [])


def test_no_more_records_than_the_limit_are_under_way(
    server: FakeSink, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hutch.client.publisher.IN_FLIGHT_MAX", 3)
    server.is_confirming = False
    publisher = client.publisher("s")
    publisher.send([b"1", b"2", b"3"])

    with pytest.raises(ServerSilent):
        publisher.send([b"4"])

    assert server.withheld == 3


def test_a_refused_record_is_an_error_with_its_code_in_words(
    server: FakeSink, client: Client
) -> None:
    refused = m.PublishError(0, (m.PublishingError(1, ResponseCode.ACCESS_REFUSED),))
    server.handlers["publish"] = lambda talk, _asked: talk.push("publish_error", refused)

    with pytest.raises(Refused, match=r"record 1 for stream 's' .*access refused") as caught:
        client.publish("s", [b"one"])

    assert caught.value.code == ResponseCode.ACCESS_REFUSED


def test_a_stream_that_is_not_there_is_refused_by_name(client: Client) -> None:
    with pytest.raises(Refused, match="stream 'none' does not exist"):
        client.publish("none", [b"one"])


def test_a_named_publisher_goes_on_behind_its_last_id(server: FakeSink, client: Client) -> None:
    server.last_ids["s", "writer"] = 41

    publisher = client.publisher("s", "writer")
    publisher.send([b"new"])
    publisher.flush()

    assert server.stored["s"] == [b"new"]
    assert server.last_ids["s", "writer"] == 42


def test_publishers_have_a_bound_and_closed_ones_make_room(
    server: FakeSink, client: Client
) -> None:
    publishers = [client.publisher("s") for _ in range(256)]

    with pytest.raises(ClientError, match="at most 256 publishers"):
        client.publisher("s")
    publishers[7].close()
    client.publish("t", [b"x"])

    assert server.stored["t"] == [b"x"]


def test_a_confirm_for_a_publisher_that_is_not_there_is_told(
    server: FakeSink, client: Client
) -> None:
    confirm = m.PublishConfirm(9, (1,))
    server.handlers["publish"] = lambda talk, _asked: talk.push("publish_confirm", confirm)

    with pytest.raises(BadAnswer, match="a publisher that is not there"):
        client.publish("s", [b"one"])


def test_a_stream_that_was_made_again_is_published_to_anew(
    server: FakeSink, client: Client
) -> None:
    client.publish("s", [b"one"])
    gone = m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")

    def delete(talk: Talk, asked: Decoded) -> None:
        server._publishers.clear()
        talk.push("metadata_update", gone)
        talk.reply(asked, m.OK)

    server.handlers["delete_stream"] = delete

    client.delete_stream("s")
    client.publish("s", [b"two"])

    assert server.count("declare_publisher") == 2


def test_what_waits_for_a_stream_that_is_deleted_is_an_error(
    server: FakeSink, client: Client
) -> None:
    gone = m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
    server.handlers["publish"] = lambda talk, _asked: talk.push("metadata_update", gone)

    with pytest.raises(ServerGone, match="stream 's' is not available now"):
        client.publish("s", [b"one"])


# ---- reading -----------------------------------------------------------------------------------


def numbered(first: int, end: int) -> list[tuple[int, bytes]]:
    return [(offset, str(offset).encode().ljust(10)) for offset in range(first, end)]


def test_records_come_with_their_offsets_and_credit_is_given_back(
    server: FakeSink, client: Client
) -> None:
    server.streams["s"] = chunks(*[3] * 30)

    found = list(islice(client.subscribe("s", FIRST, credit=2), 90))

    assert found == numbered(0, 90)


def test_records_before_the_offset_asked_for_are_left_out(server: FakeSink, client: Client) -> None:
    server.streams["s"] = chunks(5, 5)

    assert list(islice(client.subscribe("s", at_offset(3)), 7)) == numbered(3, 10)


def test_a_quiet_stream_ends_a_wait_and_not_the_subscription(
    server: FakeSink,
) -> None:
    with Client(server.host, server.port, timeout_s=HANG_S) as client:
        subscription = client.subscribe("s", FIRST)
        begun = time.monotonic()

        with pytest.raises(TimeoutError):
            subscription.next(timeout_s=0.1)
        assert time.monotonic() - begun < 20
        server.streams["s"] = chunks(1)
        server.talks[0].feed()

        assert next(subscription) == numbered(0, 1)[0]


def test_subscriptions_and_publishers_share_a_connection(server: FakeSink, client: Client) -> None:
    server.streams["s"], server.streams["t"] = chunks(2, 2), chunks(2, 2, first=10)
    one, other = client.subscribe("s", FIRST), client.subscribe("t", FIRST)

    found = [next(other), next(one), next(one)]
    client.publish("t", [b"x"])
    found += [next(other), next(other), next(one)]

    assert found == [
        *numbered(10, 11),
        *numbered(0, 2),
        *numbered(11, 13),
        *numbered(2, 3),
    ]


def test_a_closed_subscription_has_no_more_records(server: FakeSink, client: Client) -> None:
    server.streams["s"] = chunks(1, 1, 1)
    subscription = client.subscribe("s", FIRST)
    next(subscription)

    subscription.close()

    with pytest.raises(ServerSilent):
        subscription.next(timeout_s=0.1)
    assert server.count("unsubscribe") == 1


def test_a_deleted_stream_ends_its_subscription_behind_what_had_come(
    server: FakeSink, client: Client
) -> None:
    server.streams["s"] = chunks(1)
    gone = m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
    subscribe = server.handlers["subscribe"]

    def subscribe_and_delete(talk: Talk, asked: Decoded) -> None:
        subscribe(talk, asked)  # the chunk is sent behind the answer
        talk.push("metadata_update", gone)

    server.handlers["subscribe"] = subscribe_and_delete
    subscription = client.subscribe("s", FIRST)

    assert next(subscription) == numbered(0, 1)[0]
    with pytest.raises(ServerGone, match="stream 's' is not available now"):
        next(subscription)


def test_a_subscription_that_is_refused_leaves_nothing(client: Client) -> None:
    with pytest.raises(Refused, match="stream 'none' does not exist"):
        client.subscribe("none")

    assert client.connection.subscribed == set()


def test_credit_that_is_refused_ends_the_subscription(server: FakeSink, client: Client) -> None:
    server.streams["s"] = chunks(1)
    code = ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
    server.handlers["credit"] = lambda talk, asked: talk.reply(asked, m.CreditRefused(code, 1))
    subscription = client.subscribe("s", FIRST)
    next(subscription)

    with pytest.raises(Refused, match="subscription id does not exist"):
        next(subscription)


def test_a_member_of_a_group_that_becomes_active_is_answered(
    server: FakeSink, client: Client
) -> None:
    answers: list[m.Message] = []
    server.handlers["consumer_update"] = lambda _talk, asked: answers.append(asked.message)
    subscription = client.subscribe("s", FIRST)
    server.talks[0].send(b"\0\0\0\x0a\0\x1a\0\1\0\0\0\5\1\1")

    with pytest.raises(ServerSilent):
        subscription.next(timeout_s=0.2)

    (answer,) = answers
    assert isinstance(answer, m.ConsumerUpdateReply)
    assert (answer.code, answer.offset.type) == (OK, OffsetType.NONE)


# ---- the rest ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "found"), [(m.StoredOffset(OK, 7), 7), (m.StoredOffset(19, 0), None)]
)
def test_a_stored_offset_is_a_number_or_nothing(
    server: FakeSink, client: Client, reply: m.StoredOffset, found: int | None
) -> None:
    server.handlers["query_offset"] = lambda talk, asked: talk.reply(asked, reply)

    client.store_offset("clerk", "s", 7)

    assert client.query_offset("clerk", "s") == found
    assert server.count("store_offset") == 1


def test_answers_that_are_refusals_name_the_stream(server: FakeSink, client: Client) -> None:
    missing = m.StoredOffset(ResponseCode.STREAM_DOES_NOT_EXIST, 0)
    server.handlers["query_offset"] = lambda talk, asked: talk.reply(asked, missing)

    for asked in (
        lambda: client.query_offset("clerk", "none"),
        lambda: client.statistics("none"),
    ):
        with pytest.raises(Refused, match="stream 'none' does not exist"):
            asked()


def test_metadata_and_statistics_are_what_the_server_says(server: FakeSink, client: Client) -> None:
    server.streams["s"] = chunks(4)

    found = client.metadata("s", "none")

    assert [(one.stream, one.code) for one in found.streams] == [("s", 1), ("none", 2)]
    assert found.brokers[0].port == server.port
    assert client.statistics("s")["committed_offset"] == 3


def test_a_url_says_where_and_as_whom(server: FakeSink) -> None:
    seen: list[m.Message] = []
    good = dict(server.handlers)

    def noting(talk: Talk, asked: Decoded) -> None:
        seen.append(asked.message)
        good[asked.command.name](talk, asked)

    server.handlers |= {"sasl_authenticate": noting, "open": noting}
    url = f"rabbitmq-stream://a%40b:p%3Aw@{server.host}:{server.port}/v%2fh"

    with Client.connect(url, timeout_s=1.0):
        pass

    assert seen == [m.SaslAuthenticate("PLAIN", b"\0a@b\0p:w"), m.Open("v/h")]
    assert server.count("close") == 1
