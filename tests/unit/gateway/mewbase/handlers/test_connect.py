"""CONNECT: which credentials log a client in, and what each refusal tells it."""

from typing import Any

import bson
import pytest

from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import UNREAD, Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.mewbase.handlers.connect import INFO_BYTES_MAX, credentials_of
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request, read
from gateway.pending import Pending
from tests.mewbase_client import frame
from tests.unit.gateway.mewbase.channel_rig import GUEST, ChannelClient, ChannelRig

ANONYMOUS = ("ANONYMOUS", b"")
MEANT = ("PLAIN", b"\0\0")
"""Credentials of a client that meant to log in, and is refused."""


def request(**fields: Any) -> Request:  # noqa: ANN401 - of any kind
    raw = bytearray(frame("CONNECT", {"version": "0.1", **fields}))
    return read(raw, 0, len(raw))


def failed(answer: dict[str, Any]) -> tuple[int, str]:
    assert answer["ok"] is False
    return answer["errCode"], answer["errMsg"]


def sized(size: int) -> dict[str, str]:
    """Return credentials of guest in a document of so many bytes."""
    given = {"username": "guest", "password": "guest", "more": ""}
    given["more"] = "x" * (size - len(bson.encode(given)))
    assert len(bson.encode(given)) == size
    return given


# Credentials


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ANONYMOUS),
        ({"authInfo": None}, ANONYMOUS),
        ({"authInfo": {}}, ANONYMOUS),
        ({"username": "u", "password": "p"}, ("PLAIN", b"\0u\0p")),
        ({"username": "u"}, ("PLAIN", b"\0u\0")),
        ({"password": "p"}, ("PLAIN", b"\0\0p")),
        ({"authInfo": {"username": "ü", "password": "p"}}, ("PLAIN", b"\0\xc3\xbc\0p")),
        ({"authInfo": {"username": 1, "password": "p"}}, ("PLAIN", b"\0\0p")),
        ({"authInfo": {"username": "a\0b", "password": "p"}}, ("PLAIN", b"\0\0p")),
        ({"authInfo": {"username": None, "password": None}}, ANONYMOUS),
        ({"authInfo": {"user": "u"}, "username": "u", "password": "p"}, MEANT),
        ({"authInfo": sized(INFO_BYTES_MAX)}, ("PLAIN", b"\0guest\0guest")),
        ({"authInfo": sized(INFO_BYTES_MAX + 1)}, MEANT),
    ],
)
def test_only_a_client_that_sends_nothing_is_anonymous(
    fields: dict[str, Any], expected: tuple[str, bytes]
) -> None:
    assert credentials_of(request(**fields)) == expected


def test_a_document_that_the_library_cannot_read_has_no_credentials() -> None:
    bad = bytearray(bson.encode({"username": "guest", "ref": bson.DBRef("a", 1)}))
    bad = bad.replace(b"$ref\0", b"$id\0\0").replace(b"\x02$id\0\0", b"\x10$id\0\0")
    given = request(authInfo={"username": "guest", "password": "guest"})
    values = {**given.values, "authInfo": bytes(bad)}
    with pytest.raises(bson.errors.BSONError):
        bson.decode(bytes(bad))

    assert credentials_of(given._replace(values=values)) == MEANT


# Logging in


def test_a_login_is_answered_and_the_connection_known(rig: ChannelRig) -> None:
    client = rig.client()

    assert client.ask("CONNECT", **GUEST, rID=7) == {"rID": 7, "ok": True}

    assert client.ports.is_admitted
    assert client.link.session.user == "guest"
    assert [each.user for each in rig.broker.connections] == ["guest"]


def test_a_client_without_credentials_is_the_anonymous_user(rig: ChannelRig) -> None:
    client = rig.client()
    assert client.ask("CONNECT", version="1.9")["ok"] is True
    assert (client.link.user, client.link.mechanism) == ("guest", "ANONYMOUS")


@pytest.mark.parametrize("version", ["-0.1", "2.0", "nan", "one", ""])
def test_a_version_that_is_not_served_ends_the_connection(rig: ChannelRig, version: str) -> None:
    client = rig.client()

    code, reason = failed(client.ask("CONNECT", **GUEST | {"version": version}))

    assert (code, reason) == (
        Code.SERVER,
        f"version {version!r} is not served: 0 or above, below 2",
    )
    assert client.ports.is_finished
    assert not client.ports.is_admitted


def test_a_wrong_password_ends_the_connection_without_saying_which_of_both_is_wrong(
    rig: ChannelRig,
) -> None:
    for username in ("guest", "stranger"):
        client = rig.client()
        wrong = {"username": username, "password": "wrong"}
        answer = client.ask("CONNECT", version="0.1", authInfo=wrong)
        assert failed(answer) == (Code.NOT_AUTHENTICATED, "Authentication failed")
        assert client.ports.is_finished


def test_a_password_that_was_not_compared_is_not_said_to_be_wrong(rig: ChannelRig) -> None:
    wrong = {"username": "guest", "password": "wrong"}
    broker, attempts = rig.broker, AttemptLedger(lambda: 0.0, failed_a_second_max=1)
    authentication = Authentication(
        broker.access, broker.passwords, attempts, Refusals(lambda: 0.0)
    )
    first, client = (rig.client(authentication=authentication) for _ in range(2))
    answer = first.ask("CONNECT", version="0.1", authInfo=wrong)
    assert failed(answer) == (Code.NOT_AUTHENTICATED, "Authentication failed")

    assert failed(client.ask("CONNECT", **GUEST)) == (Code.SERVER, UNREAD)
    assert client.ports.is_finished


def test_a_second_login_is_for_the_same_user(rig: ChannelRig, client: ChannelClient) -> None:
    rig.allow("app", write=".*")
    assert client.ask("CONNECT", **GUEST)["ok"] is True
    assert not client.ports.is_finished

    other = {"username": "app", "password": "guest"}
    answer = client.ask("CONNECT", version="0.1", authInfo=other)

    assert failed(answer) == (Code.NOT_AUTHENTICATED, "a connection keeps its user")
    assert client.link.user == "guest"
    assert client.ports.is_finished


def test_a_client_that_is_gone_when_its_password_was_compared_is_not_let_in(
    rig: ChannelRig,
) -> None:
    broker = rig.broker
    compared: list[Pending[bool]] = []

    def in_thread(_compare: object) -> Pending[bool]:
        compared.append(Pending())
        return compared[-1]

    passwords = PasswordCheck(in_thread, lambda: 0.0)
    authentication = Authentication(
        broker.access, passwords, broker.attempts, Refusals(lambda: 0.0)
    )
    client = rig.client(authentication=authentication)
    before = len(broker.connections)
    client.hand_in("CONNECT", **GUEST)
    assert client.ports.open_commands == 1

    client.front.lost()
    (is_right,) = compared
    is_right.settle(True)  # noqa: FBT003 - the outcome
    client.finish()

    assert client.taken() == []
    assert not client.ports.is_admitted
    assert len(broker.connections) == before


def test_a_user_without_rights_in_the_virtual_host_is_not_let_in(
    rig: ChannelRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.allow("app")
    rig.broker.store_rig.run(rig.broker.access.delete_permission("app", "/"))
    client = rig.client()
    login = {"username": "app", "password": "guest"}

    answer = client.ask("CONNECT", version="0.1", authInfo=login)

    assert failed(answer) == (Code.NOT_AUTHORISED, "the user may not enter it")
    assert client.ports.is_finished
    (line,) = (each for each in caplog.messages if each.startswith("virtual host refused"))
    assert line.endswith("user='app' host='/' reason=the user may not enter it")


def test_one_connection_above_the_most_is_refused(rig: ChannelRig) -> None:
    client = rig.client(has_room=False)
    code, reason = failed(client.ask("CONNECT", **GUEST))
    assert (code, reason) == (Code.NOT_AUTHORISED, "mewbase.connections_max is reached")


@pytest.mark.parametrize(("limit_s", "interval_s"), [(2, 1), (3, 2), (60, 30), (None, None)])
def test_an_idle_client_is_given_two_heartbeats_in_its_time(
    rig: ChannelRig, limit_s: int | None, interval_s: int | None
) -> None:
    client = ChannelRig(rig.broker, idle_timeout_s=limit_s).guest()
    assert client.ports.heartbeats == ([] if interval_s is None else [interval_s])
