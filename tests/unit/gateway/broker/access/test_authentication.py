import struct
from typing import Any

import pytest

from gateway.broker.access import password_check
from gateway.broker.access.access import Access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication, LoginRefused, Peer, RefusalReason
from gateway.broker.access.model import User
from gateway.broker.access.password_check import AT_ONCE, PasswordCheck
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.access.refusals import Refusals
from gateway.pending import Pending, start
from tests.unit.gateway.broker.access.access_rig import AccessRig, outcome_of

NEAR, FAR = Peer(is_loopback=True), Peer(is_loopback=False)


@pytest.fixture
def access(rig: AccessRig) -> Access:
    rig.run(
        rig.access.seed(
            [
                User("guest", PasswordHash.of("guest")),
                User("app", PasswordHash.of("secret")),
                User("here", PasswordHash.of("secret"), loopback_only=True),
                User("blank", PasswordHash.of("")),
                User("none", None),
            ],
            [],
        )
    )
    return rig.access


@pytest.fixture
def check() -> PasswordCheck:
    def run(function: object) -> Pending[bool]:
        pending: Pending[bool] = Pending()
        pending.settle(function())  # type: ignore[operator]  # a function without arguments
        return pending

    return PasswordCheck(run, lambda: 0.0)


@pytest.fixture
def authentication(access: Access, check: PasswordCheck) -> Authentication:
    return made(access, check, unlimited())


def made(
    access: Access,
    check: PasswordCheck,
    ledger: AttemptLedger,
    **options: Any,  # noqa: ANN401  # those of Authentication
) -> Authentication:
    return Authentication(access, check, ledger, Refusals(lambda: 0.0), **options)


def unlimited() -> AttemptLedger:
    return AttemptLedger(lambda: 0.0, failed_a_second_max=0)


def table(**values: str) -> bytes:
    return b"".join(field(key.encode(), "S", value.encode()) for key, value in values.items())


def field(key: bytes, kind: str, value: bytes) -> bytes:
    size = struct.pack(">I", len(value)) if kind in "SxFA" else b""
    return bytes([len(key)]) + key + kind.encode() + size + value


def log_in(
    authentication: Authentication, data: bytes, peer: Peer = NEAR, mechanism: str = "PLAIN"
) -> str | RefusalReason:
    outcome = outcome_of(authentication.log_in(mechanism, data, peer))
    if isinstance(outcome, LoginRefused):
        return outcome.reason
    assert isinstance(outcome, str)
    return outcome


def test_guest_comes_from_this_machine_only(authentication: Authentication) -> None:
    assert log_in(authentication, b"\0guest\0guest") == "guest"
    assert log_in(authentication, b"\0guest\0guest", FAR) is RefusalReason.LOOPBACK_ONLY


def test_a_setting_opens_guest_to_the_world(access: Access, check: PasswordCheck) -> None:
    authentication = made(access, check, unlimited(), guest_loopback_only=False)

    assert log_in(authentication, b"\0guest\0guest", FAR) == "guest"


def test_a_user_can_be_kept_to_this_machine(authentication: Authentication) -> None:
    assert log_in(authentication, b"\0here\0secret") == "here"
    assert log_in(authentication, b"\0here\0secret", FAR) is RefusalReason.LOOPBACK_ONLY


def test_a_wrong_password_from_afar_does_not_tell_who_is_for_this_machine(
    authentication: Authentication,
) -> None:
    assert log_in(authentication, b"\0guest\0wrong", FAR) is RefusalReason.CREDENTIALS


@pytest.mark.parametrize(
    "data",
    [
        b"\0app\0wrong",
        b"\0app\0",
        b"\0nobody\0secret",
        b"\0\0",
        b"\0APP\0secret",
        b"\0none\0",
        b"\0none\0secret",
        b"\0blank\0",
        b"\0\xff\xfe\0secret",
    ],
)
def test_wrong_passwords_blank_ones_and_unknown_names_are_refused_alike(
    authentication: Authentication, data: bytes
) -> None:
    assert log_in(authentication, data) is RefusalReason.CREDENTIALS


@pytest.mark.parametrize("data", [b"", b"app", b"\0app", b"x\0app\0secret", b"\0app\0secret\0"])
def test_other_data_than_plain_sends_is_malformed(
    authentication: Authentication, data: bytes
) -> None:
    assert log_in(authentication, data) is RefusalReason.MALFORMED


@pytest.mark.parametrize(
    "data",
    [
        table(LOGIN="app", PASSWORD="secret"),
        table(PASSWORD="secret", LOGIN="app"),
        table(LOGIN="app", PASSWORD="secret", LOCALE="en"),
        field(b"x", "t", b"\1") + field(b"y", "F", field(b"z", "V", b""))
        + field(b"d", "d", bytes(8)) + table(LOGIN="app", PASSWORD="secret"),
        table(LOGIN="app", PASSWORD="secret") + table(LOGIN="guest"),
        table(LOGIN="app") + field(b"PASSWORD", "x", b"secret"),
    ],
)  # fmt: skip
def test_amqplain_logs_in_by_a_table(authentication: Authentication, data: bytes) -> None:
    assert log_in(authentication, data, mechanism="AMQPLAIN") == "app"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\5LOGIN",
        table(LOGIN="app"),
        table(PASSWORD="secret"),
        field(b"LOGIN", "V", b"") + table(PASSWORD="secret"),
        table(LOGIN="app", PASSWORD="secret")[:-1],
        table(LOGIN="app", PASSWORD="secret") + b"\1",
        table(LOGIN="app", PASSWORD="secret") + field(b"x", "?", b""),
        len(table(LOGIN="app", PASSWORD="secret")).to_bytes(4)
        + table(LOGIN="app", PASSWORD="secret"),
    ],
)
def test_a_table_that_says_not_who_is_malformed(
    authentication: Authentication, data: bytes
) -> None:
    assert log_in(authentication, data, mechanism="AMQPLAIN") is RefusalReason.MALFORMED


def test_amqplain_is_refused_like_plain(authentication: Authentication) -> None:
    for data in (
        table(LOGIN="app", PASSWORD="no"),
        table(LOGIN="app", PASSWORD=""),
        table(LOGIN="app") + field(b"PASSWORD", "I", bytes(4)),
    ):
        assert log_in(authentication, data, mechanism="AMQPLAIN") is RefusalReason.CREDENTIALS


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "EXTERNAL", "plain", ""])
def test_what_is_not_configured_is_not_offered(
    authentication: Authentication, mechanism: str
) -> None:
    assert authentication.mechanisms(FAR) == ("PLAIN", "AMQPLAIN")
    assert log_in(authentication, b"", mechanism=mechanism) is RefusalReason.MECHANISM


def test_anonymous_is_who_the_setting_names(access: Access, check: PasswordCheck) -> None:
    authentication = made(access, check, unlimited(), anonymous="app")

    assert authentication.mechanisms(FAR) == ("PLAIN", "AMQPLAIN", "ANONYMOUS")
    assert log_in(authentication, b"whatever", FAR, "ANONYMOUS") == "app"


def test_anonymous_is_nobody_where_the_setting_names_nobody(
    access: Access, check: PasswordCheck
) -> None:
    authentication = made(access, check, unlimited(), anonymous="gone")

    assert log_in(authentication, b"", mechanism="ANONYMOUS") is RefusalReason.CREDENTIALS


def test_anonymous_as_guest_comes_from_this_machine_only(
    access: Access, check: PasswordCheck
) -> None:
    authentication = made(access, check, unlimited(), anonymous="guest")

    assert log_in(authentication, b"", NEAR, "ANONYMOUS") == "guest"
    assert log_in(authentication, b"", FAR, "ANONYMOUS") is RefusalReason.LOOPBACK_ONLY


def from_address(address: str) -> Peer:
    return Peer(is_loopback=False, address=address, protocol="stream")


def test_who_guesses_too_often_is_refused_unread_until_a_second_is_over(
    access: Access, check: PasswordCheck
) -> None:
    now_s = [0.0]
    ledger = AttemptLedger(lambda: now_s[0], failed_a_second_max=5)
    authentication = made(access, check, ledger)
    guesser, other = from_address("10.0.0.1"), from_address("10.0.0.2")

    for _ in range(5):
        assert log_in(authentication, b"\0app\0wrong", guesser) is RefusalReason.CREDENTIALS
    assert log_in(authentication, b"\0app\0secret", guesser) is RefusalReason.TOO_MANY
    assert log_in(authentication, b"\0app\0secret", other) == "app"
    assert log_in(authentication, b"\0app\0secret", guesser) is RefusalReason.TOO_MANY
    now_s[0] = 1.0

    assert log_in(authentication, b"\0app\0secret", guesser) == "app"
    assert {source: (each.succeeded, each.failed, each.unread)
            for source, _, each in ledger.by_source()} == {
        "10.0.0.1": (1, 7, 2), "10.0.0.2": (1, 0, 0),
    }  # fmt: skip


def test_guesses_at_one_user_keep_no_other_user_of_that_address_out(
    access: Access, check: PasswordCheck
) -> None:
    authentication = made(access, check, AttemptLedger(lambda: 0.0, failed_a_second_max=1))
    shared = from_address("10.0.0.1")

    assert log_in(authentication, b"\0app\0wrong", shared) is RefusalReason.CREDENTIALS
    assert log_in(authentication, b"\0app\0wrong", shared) is RefusalReason.TOO_MANY

    assert log_in(authentication, b"\0none\0secret", shared) is RefusalReason.CREDENTIALS
    assert log_in(authentication, b"\0guest\0guest", shared) is RefusalReason.LOOPBACK_ONLY


def test_what_was_right_from_an_address_passes_there_whoever_else_guesses(
    rig: AccessRig, access: Access, check: PasswordCheck
) -> None:
    authentication = made(access, check, AttemptLedger(lambda: 0.0, failed_a_second_max=1))
    shared, other = from_address("10.0.0.1"), from_address("10.0.0.2")
    assert log_in(authentication, b"\0app\0secret", shared) == "app"

    for peer in (shared, other):
        assert log_in(authentication, b"\0app\0wrong", peer) is RefusalReason.CREDENTIALS
        assert log_in(authentication, b"\0app\0wrong", peer) is RefusalReason.TOO_MANY

    assert log_in(authentication, b"\0app\0secret", shared) == "app"
    assert log_in(authentication, b"\0app\0secret", other) is RefusalReason.TOO_MANY
    rig.run(access.put_user(User("app", PasswordHash.of("new"))))
    assert log_in(authentication, b"\0app\0secret", shared) is RefusalReason.TOO_MANY


def test_a_password_that_finds_no_room_to_be_compared_is_busy_and_counts_as_a_guess(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_check, "WAITING_MAX", 1)
    waiting: list[Pending[bool]] = []

    def run(_function: object) -> Pending[bool]:
        waiting.append(Pending())
        return waiting[-1]

    check = PasswordCheck(run, lambda: 0.0)
    authentication = made(access, check, AttemptLedger(lambda: 0.0, failed_a_second_max=1))
    guesser = from_address("10.0.0.1")
    for number in range(AT_ONCE + 1):
        start(authentication.log_in("PLAIN", b"\0app\0%d" % number, guesser))

    assert log_in(authentication, b"\0app\0wrong", guesser) is RefusalReason.BUSY
    assert log_in(authentication, b"\0app\0secret", guesser) is RefusalReason.TOO_MANY
    assert log_in(authentication, b"\0here\0secret", guesser) is RefusalReason.BUSY
    assert len(waiting) == AT_ONCE


def test_only_a_password_that_was_not_compared_may_be_right() -> None:
    assert {each for each in RefusalReason if each.is_unread} == {
        RefusalReason.TOO_MANY,
        RefusalReason.BUSY,
    }


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        ("PLAIN", b"\0app\0"),
        ("PLAIN", b"app"),
        ("AMQPLAIN", b"app"),
        ("SCRAM", b"\0app\0secret"),
        ("EXTERNAL", b""),
    ],
)
def test_what_costs_nothing_uses_up_nothing_of_those_who_share_the_address(
    access: Access, check: PasswordCheck, mechanism: str, data: bytes
) -> None:
    ledger = AttemptLedger(lambda: 0.0, failed_a_second_max=1)
    authentication = made(access, check, ledger)
    peer = Peer(is_loopback=False, address="10.0.0.1", certificate_user="")

    for _ in range(1000):
        assert log_in(authentication, data, peer, mechanism) is not RefusalReason.TOO_MANY

    assert log_in(authentication, b"\0app\0secret", peer) == "app"
    assert [(each.succeeded, each.failed) for _, each in ledger.by_protocol()] == [(1, 1000)]


def test_logins_that_succeed_are_not_limited(access: Access, check: PasswordCheck) -> None:
    ledger = AttemptLedger(lambda: 0.0, failed_a_second_max=1)
    authentication = made(access, check, ledger)

    assert {log_in(authentication, b"\0app\0secret", FAR) for _ in range(1000)} == {"app"}
    assert [(name, each.succeeded, each.failed) for name, each in ledger.by_protocol()] == [
        ("stream", 1000, 0)
    ]


def test_every_kind_of_refusal_counts(access: Access, check: PasswordCheck) -> None:
    ledger = AttemptLedger(lambda: 0.0)
    authentication = made(access, check, ledger)

    for data in (b"x", b"\0app\0no", b"\0here\0secret"):
        log_in(authentication, data, FAR)
    log_in(authentication, b"", FAR, "SCRAM")

    ((_, attempts),) = ledger.by_protocol()
    assert (attempts.succeeded, attempts.failed, attempts.unread) == (0, 4, 0)


def test_each_protocol_is_counted_and_all_of_an_address_limited_together(
    access: Access, check: PasswordCheck
) -> None:
    ledger = AttemptLedger(lambda: 0.0, failed_a_second_max=1)
    authentication = made(access, check, ledger)
    web = Peer(is_loopback=False, address="10.0.0.1", protocol="http")

    assert log_in(authentication, b"\0app\0no", web) is RefusalReason.CREDENTIALS
    assert log_in(authentication, b"\0app\0no", from_address("10.0.0.1")) is RefusalReason.TOO_MANY
    assert [(name, each.failed) for name, each in ledger.by_protocol()] == [
        ("http", 1), ("stream", 1)
    ]  # fmt: skip


def with_certificate(user: str, *, is_loopback: bool = False) -> Peer:
    return Peer(is_loopback=is_loopback, certificate_user=user)


def test_external_is_offered_to_who_may_show_a_certificate(
    authentication: Authentication,
) -> None:
    assert authentication.mechanisms(with_certificate("")) == ("PLAIN", "AMQPLAIN", "EXTERNAL")
    assert log_in(authentication, b"app", FAR, "EXTERNAL") is RefusalReason.MECHANISM


@pytest.mark.parametrize("data", [b"", b"guest"])
def test_external_is_whom_the_certificate_names(
    authentication: Authentication, data: bytes
) -> None:
    assert log_in(authentication, data, with_certificate("app"), "EXTERNAL") == "app"


@pytest.mark.parametrize("user", ["", "unknown"])
def test_external_is_nobody_without_a_certificate_of_a_user(
    authentication: Authentication, user: str
) -> None:
    peer = with_certificate(user)
    assert log_in(authentication, b"app", peer, "EXTERNAL") is RefusalReason.CREDENTIALS


def test_external_as_guest_comes_from_this_machine_only(authentication: Authentication) -> None:
    for is_loopback, outcome in ((True, "guest"), (False, RefusalReason.LOOPBACK_ONLY)):
        peer = with_certificate("guest", is_loopback=is_loopback)
        assert log_in(authentication, b"", peer, "EXTERNAL") == outcome


@pytest.mark.parametrize(
    ("mechanism", "data", "peer", "helps"),
    [
        ("ANONYMOUS", b"", NEAR, "users.anonymous"),
        ("EXTERNAL", b"", NEAR, "tls.ca"),
        ("SCRAM", b"", NEAR, "PLAIN or AMQPLAIN is offered"),
        ("PLAIN", b"x", NEAR, "the client has to send what its mechanism asks for"),
        ("PLAIN", b"\0guest\0guest", FAR, "users.guest_loopback_only"),
        ("PLAIN", b"\0here\0secret", FAR, "loopback_only of this user"),
        ("PLAIN", b"\0app\0wrong", NEAR, "hutch ctl change_password app"),
        ("PLAIN", b"\0a b\0wrong", NEAR, "hutch ctl add_user 'a b'"),
        (
            "PLAIN",
            b"\0\0wrong",
            NEAR,
            "the client has to send a user's name, or show a certificate",
        ),
    ],
)
def test_the_line_of_a_refused_login_names_what_helps(
    authentication: Authentication,
    caplog: pytest.LogCaptureFixture,
    mechanism: str,
    data: bytes,
    peer: Peer,
    helps: str,
) -> None:
    assert isinstance(outcome_of(authentication.log_in(mechanism, data, peer)), LoginRefused)

    assert f" helps={helps}" in caplog.text
