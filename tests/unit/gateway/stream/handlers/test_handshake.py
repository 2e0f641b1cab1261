"""From a fresh connection to an open one, and what ends it on the way."""

import logging
import time

import pytest

from gateway.network.addresses import source_of
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import CLIENT, COMMANDS, Command, State
from hutch.stream.errors import UnexpectedCommand, UnknownCommand
from hutch.stream.pipeline import PIPELINE
from tests.client import plain
from tests.unit.gateway.stream.link_rig import PEER_PROPERTIES, Broker, LinkRig

OK = ResponseCode.OK
FAILURE = ResponseCode.AUTHENTICATION_FAILURE
GUEST = plain("guest", "guest")
DELAY_MS = 3_000
MIB = 1 << 20


@pytest.fixture
def fresh(broker: Broker) -> LinkRig:
    """A link to which nothing has been said."""
    return broker.link(is_open=False)


def greet(client: LinkRig) -> None:
    client.ask(m.PeerPropertiesReply, "peer_properties", m.PeerProperties({"product": "test"}))
    client.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())


def log_in(client: LinkRig, request: m.SaslAuthenticate = GUEST) -> int:
    """Log in; a delay is over at once."""
    done = client.start("sasl_authenticate", request)
    for _, pending in client.ports.delays:
        if not pending.is_settled:
            assert done == []
            pending.settle(None)
    client.finish(done)
    answer = client.answer_to("sasl_authenticate")
    assert isinstance(answer, m.SaslAuthenticateReply)
    return answer.code


def open_host(client: LinkRig, name: str = "/") -> m.OpenReply:
    done = client.start("open", m.Open(name))
    for _, pending in client.ports.delays:
        if not pending.is_settled:
            pending.settle(None)
    client.finish(done)
    answer = client.answer_to("open")
    assert isinstance(answer, m.OpenReply)
    return answer


# The whole way


def test_the_way_from_a_fresh_connection_to_an_open_one(fresh: LinkRig) -> None:
    states = [fresh.session.state]
    answer = fresh.ask(m.PeerPropertiesReply, "peer_properties", m.PeerProperties({"a": "b"}))
    assert (answer.code, dict(answer.properties)) == (OK, PEER_PROPERTIES)
    states.append(fresh.session.state)
    mechanisms = fresh.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
    assert (mechanisms.code, mechanisms.mechanisms) == (OK, ("PLAIN", "AMQPLAIN"))
    states.append(fresh.session.state)
    assert log_in(fresh) == OK
    assert fresh.take("tune") == [m.Tune(MIB, 60)]
    states.append(fresh.session.state)
    fresh.tell("tune", m.Tune(MIB // 2, 10))
    states.append(fresh.session.state)
    opened = open_host(fresh)
    assert opened.code == OK
    assert dict(opened.properties) == {"advertised_host": "localhost", "advertised_port": "5552"}
    states.append(fresh.session.state)

    assert states == [
        State.CONNECTED,
        State.IDENTIFIED,
        State.AUTHENTICATING,
        State.TUNING,
        State.TUNED,
        State.OPEN,
    ]
    assert (fresh.session.frame_limit, fresh.session.heartbeat_s) == (MIB // 2, 10)
    assert dict(fresh.session.client_properties) == {"a": "b"}
    assert fresh.ports.tuned_count == 1
    assert not fresh.session.is_done
    fresh.create("s")


def test_the_answer_to_tune_may_carry_the_response_bit(fresh: LinkRig) -> None:
    greet(fresh)
    log_in(fresh)

    fresh.answer("tune", m.Tune(1000, 7))

    assert (fresh.session.state, fresh.session.heartbeat_s) == (State.TUNED, 7)


def test_open_without_an_answer_to_tune_takes_the_words_of_the_server(fresh: LinkRig) -> None:
    greet(fresh)
    log_in(fresh)

    assert open_host(fresh).code == OK

    assert (fresh.session.frame_limit, fresh.session.heartbeat_s) == (MIB, 60)
    assert fresh.ports.tuned_count == 1


def test_steps_may_be_repeated_while_they_are_the_step(fresh: LinkRig) -> None:
    for product in ("one", "two"):
        properties = m.PeerProperties({"product": product})
        fresh.ask(m.PeerPropertiesReply, "peer_properties", properties)
    for _ in range(2):
        fresh.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
    log_in(fresh)
    for heartbeat_s in (5, 7):
        fresh.tell("tune", m.Tune(0, heartbeat_s))

    assert dict(fresh.session.client_properties) == {"product": "two"}
    assert fresh.session.heartbeat_s == 7
    assert open_host(fresh).code == OK


def test_a_heartbeat_is_welcome_at_every_step(fresh: LinkRig) -> None:
    for state in State.ANY:
        fresh.session.state = state
        fresh.tell("heartbeat", m.Heartbeat())

    assert fresh.received() == []


# Out of order


@pytest.mark.parametrize(
    ("name", "message"),
    [("sasl_handshake", m.SaslHandshake()), ("sasl_authenticate", GUEST)],
)
def test_a_step_that_comes_too_early_is_answered_and_ends_the_connection(
    fresh: LinkRig, name: str, message: m.Message
) -> None:
    answer = fresh.request(name, message)

    assert getattr(answer, "code", None) == OK
    assert fresh.session.is_done
    assert fresh.take("tune") == []


@pytest.mark.parametrize(
    ("name", "message"), [("open", m.Open("/")), ("tune", m.Tune(0, 0)), ("close", m.Close(1, ""))]
)
def test_what_does_not_belong_to_the_handshake_gets_no_answer(
    fresh: LinkRig, name: str, message: m.Message
) -> None:
    greet(fresh)

    with pytest.raises(UnexpectedCommand):
        fresh.start(name, message)

    assert fresh.received() == []


# Refused


@pytest.mark.parametrize(
    ("request_", "code", "is_delayed"),
    [
        (plain("guest", "wrong"), FAILURE, True),
        (plain("guest", ""), FAILURE, True),
        (plain("nobody", "guest"), FAILURE, True),
        (plain("", "guest"), FAILURE, True),
        (m.SaslAuthenticate("EXTERNAL", b""), ResponseCode.SASL_MECHANISM_NOT_SUPPORTED, True),
        (m.SaslAuthenticate("plain", b"\0guest\0guest"), ResponseCode(7), True),
        (m.SaslAuthenticate("PLAIN", None), ResponseCode.SASL_ERROR, False),
        (m.SaslAuthenticate("PLAIN", b""), ResponseCode.SASL_ERROR, False),
        (m.SaslAuthenticate("PLAIN", b"guest\0guest"), ResponseCode.SASL_ERROR, False),
        (m.SaslAuthenticate("PLAIN", b"\0guest\0guest\0"), ResponseCode.SASL_ERROR, False),
    ],
)
def test_a_refused_login_ends_the_connection_with_its_code(
    fresh: LinkRig,
    request_: m.SaslAuthenticate,
    code: ResponseCode,
    *,
    is_delayed: bool,
) -> None:
    greet(fresh)

    assert log_in(fresh, request_) == code

    assert [delay_ms for delay_ms, _ in fresh.ports.delays] == ([DELAY_MS] if is_delayed else [])
    assert fresh.session.is_done
    assert fresh.take("tune") == []


def test_a_password_that_was_not_compared_is_not_told_to_be_wrong(broker: Broker) -> None:
    client = broker.link(is_open=False)
    source = source_of(client.link.address)
    while not broker.attempts.is_over(source, "guest"):
        broker.attempts.guessed_wrong(source, "guest")
    greet(client)

    assert log_in(client) == ResponseCode.STREAM_NOT_AVAILABLE

    assert [delay_ms for delay_ms, _ in client.ports.delays] == [DELAY_MS]
    assert client.session.is_done


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\5LOGINS\0\0\0\5guest\x08PASSWORDS\0\0\0\5guest", OK),
        (b"\5LOGINS\0\0\0\5guest\x08PASSWORDS\0\0\0\2no", FAILURE),
        (b"\5LOGINS\0\0\0\5guest", ResponseCode.SASL_ERROR),
        (b"", ResponseCode.SASL_ERROR),
        (None, ResponseCode.SASL_ERROR),
        (b"\xff", ResponseCode.SASL_ERROR),
    ],
)
def test_amqplain_logs_in_by_a_table(fresh: LinkRig, data: bytes | None, code: int) -> None:
    greet(fresh)

    assert log_in(fresh, m.SaslAuthenticate("AMQPLAIN", data)) == code

    assert fresh.session.is_done is (code != OK)
    assert len(fresh.take("tune")) == (code == OK)


@pytest.mark.parametrize("broker", [{"anonymous": "guest"}], indirect=True)
def test_anonymous_is_on_offer_where_a_setting_names_its_user(fresh: LinkRig) -> None:
    greet(fresh)
    mechanisms = fresh.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
    assert mechanisms.mechanisms == ("PLAIN", "AMQPLAIN", "ANONYMOUS")

    assert log_in(fresh, m.SaslAuthenticate("ANONYMOUS", b"")) == OK
    assert open_host(fresh).code == OK
    assert fresh.session.user == "guest"


def test_guest_comes_from_this_machine_only(broker: Broker) -> None:
    far = broker.link(is_open=False, peer_is_loopback=False)
    greet(far)

    assert log_in(far) == ResponseCode.AUTHENTICATION_FAILURE_LOOPBACK
    assert far.ports.delays == []


def test_a_refusal_is_logged_without_the_password(
    fresh: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    greet(fresh)
    with caplog.at_level(logging.DEBUG):
        log_in(fresh, plain("guest", "hunter2"))

    assert "login refused" in caplog.text
    assert "hunter2" not in caplog.text


def test_the_user_that_a_certificate_names_is_logged_as_it_is_to_be_typed(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (r"CN=Zo\C3\AB\, of acme", "CN=plain"):
        link = broker.link(is_open=False)
        link.ports.certificate_user = name
        greet(link)
        assert log_in(link, m.SaslAuthenticate("EXTERNAL", b"")) != OK

    said = [record.getMessage() for record in caplog.records if "certificate" in record.msg]
    assert said == [r"name of the user that the certificate names user=CN=Zo\C3\AB\, of acme"]


@pytest.mark.parametrize("name", ["", "//", "other"])
def test_a_virtual_host_that_is_not_there_is_refused_after_a_delay(
    fresh: LinkRig, name: str
) -> None:
    greet(fresh)
    log_in(fresh)

    answer = open_host(fresh, name)

    assert answer == m.OpenReply(ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE, {})
    assert [delay_ms for delay_ms, _ in fresh.ports.delays] == [DELAY_MS]
    assert fresh.session.is_done
    assert fresh.session.state is not State.OPEN


def test_a_server_that_is_full_refuses_to_open(fresh: LinkRig) -> None:
    greet(fresh)
    log_in(fresh)
    fresh.broker.has_room = False

    assert open_host(fresh).code == ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE
    assert fresh.session.is_done


def test_who_has_no_permissions_in_a_virtual_host_does_not_get_in(fresh: LinkRig) -> None:
    run = fresh.broker.store_rig.run
    run(fresh.broker.virtual_hosts.create("v"))
    greet(fresh)
    log_in(fresh)

    assert open_host(fresh, "v").code == ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE
    assert [delay_ms for delay_ms, _ in fresh.ports.delays] == [DELAY_MS]


def test_who_was_deleted_after_logging_in_does_not_get_in(fresh: LinkRig) -> None:
    greet(fresh)
    log_in(fresh)
    fresh.broker.store_rig.run(fresh.broker.access.delete_user("guest"))

    assert open_host(fresh).code == ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE


@pytest.mark.parametrize("is_of_user", [True, False])
def test_one_connection_above_a_limit_does_not_get_in(fresh: LinkRig, *, is_of_user: bool) -> None:
    access, run = fresh.broker.access, fresh.broker.store_rig.run
    limits = {"max-connections": 1}
    if is_of_user:
        run(access.change_user_limits("guest", lambda _: limits))
    else:
        run(access.set_virtual_host_limits("/", limits))
    first = fresh.broker.link()
    greet(fresh)
    log_in(fresh)
    assert open_host(fresh).code == ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE
    first.link.close()

    other = fresh.broker.link(is_open=False)
    greet(other)
    log_in(other)
    assert open_host(other).code == OK


@pytest.mark.parametrize(("heartbeat_s", "is_kept"), [(4_294_967, True), (4_294_968, False)])
def test_a_heartbeat_that_nobody_could_wait_for_ends_the_connection(
    fresh: LinkRig, heartbeat_s: int, *, is_kept: bool
) -> None:
    greet(fresh)
    log_in(fresh)

    fresh.tell("tune", m.Tune(0, heartbeat_s))

    assert fresh.session.is_done is not is_kept
    assert fresh.ports.tuned_count == int(is_kept)


# Once open


def test_a_secret_can_be_renewed_and_no_tune_follows(client: LinkRig) -> None:
    assert log_in(client) == OK

    assert client.take("tune") == []
    assert client.session.is_open
    assert not client.session.is_done


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (plain("guest", "wrong"), FAILURE),
        (
            m.SaslAuthenticate("EXTERNAL", b""),
            ResponseCode.SASL_CANNOT_CHANGE_MECHANISM,
        ),
    ],
)
def test_a_renewal_that_fails_ends_the_connection_after_a_delay(
    client: LinkRig, request_: m.SaslAuthenticate, code: ResponseCode
) -> None:
    assert log_in(client, request_) == code

    assert [delay_ms for delay_ms, _ in client.ports.delays] == [DELAY_MS]
    assert client.session.is_done


def test_another_user_cannot_take_over_a_connection(client: LinkRig) -> None:
    client.session.user = "somebody"

    assert log_in(client) == ResponseCode.SASL_CANNOT_CHANGE_USERNAME
    assert client.session.user == "somebody"
    assert client.session.is_done


@pytest.mark.parametrize("code", [0, 1, 13, 0xFFFF])
def test_close_is_answered_whatever_its_code_and_ends_the_connection(
    client: LinkRig, code: int
) -> None:
    assert client.code("close", m.Close(code, "bye")) == OK

    assert client.session.is_done


@pytest.mark.parametrize(
    ("maxima", "version"),
    [([], 1), ([1], 1), ([2], 2), ([3], 1), ([2, 1], 2)],
)
def test_chunks_are_delivered_in_version_2_to_who_says_exactly_that(
    client: LinkRig, maxima: list[int], version: int
) -> None:
    commands = tuple(m.CommandVersions(0x08, 1, maximum) for maximum in maxima)
    commands += (m.CommandVersions(0x7FFF, 1, 2), m.CommandVersions(0x02, 1, 2))

    request = m.ExchangeCommandVersions(commands)
    answer = client.ask(m.CommandVersionsReply, "exchange_command_versions", request)

    assert (answer.code, len(answer.commands)) == (OK, 20)
    assert client.session.deliver_version == version


def test_the_versions_listed_are_those_of_the_table(client: LinkRig) -> None:
    request = m.ExchangeCommandVersions(())
    answer = client.ask(m.CommandVersionsReply, "exchange_command_versions", request)

    listed = {each.key: (each.version_min, each.version_max) for each in answer.commands}
    expected = {
        row.key: (1, row.version_max)
        for row in COMMANDS
        if CLIENT in row.sender and State.OPEN in row.steps and row.key not in (0x13, 0x1B)
    }
    assert listed == expected


# Commands for pipelines


def test_a_client_that_asks_for_the_commands_of_pipelines_is_told_their_version(
    fresh: LinkRig,
) -> None:
    asked = m.PeerProperties({"hutch.pipeline": "1"})
    answer = fresh.ask(m.PeerPropertiesReply, "peer_properties", asked)
    said = dict(answer.properties)
    assert int(said.pop("hutch.started")) <= time.time_ns() // 1_000_000
    assert said == {**PEER_PROPERTIES, "hutch.pipeline": "1"}

    again = fresh.ask(m.PeerPropertiesReply, "peer_properties", m.PeerProperties({}))
    assert dict(again.properties) == PEER_PROPERTIES


def test_a_client_that_asks_has_them_listed_behind_the_others(broker: Broker) -> None:
    request = m.ExchangeCommandVersions(())
    name = "exchange_command_versions"

    plain_answer = broker.link().ask(m.CommandVersionsReply, name, request)
    answer = broker.link(has_pipeline=True).ask(m.CommandVersionsReply, name, request)

    ours = tuple(m.CommandVersions(key, 1, 1) for key in range(0x4800, 0x4808))
    assert answer.commands == plain_answer.commands + ours


@pytest.mark.parametrize("row", PIPELINE, ids=lambda row: row.name)
def test_to_any_other_client_their_keys_are_unknown(client: LinkRig, row: Command) -> None:
    frame = row.key.to_bytes(2) + b"\0\1" + bytes(60)

    with pytest.raises(UnknownCommand):
        client.start_frame(frame)
    assert client.received() == []
