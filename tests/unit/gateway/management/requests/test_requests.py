"""Which requests there are, who may make them, and what wrong ones are told."""

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.errors import InternalError, StreamDoesNotExist, StreamNotAvailable
from gateway.management.administration import OWNER, Actor, Role
from gateway.management.errors import (
    AdministrationError,
    Conflict,
    Failed,
    NotAllowed,
    NotFound,
    WrongRequest,
)
from gateway.management.requests.refusals import translated
from gateway.management.requests.table import ROWS
from store.errors import StoreClosed
from tests.unit.gateway.management.requests.administration_rig import Rig


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_request_is_refused_to_those_without_its_role(rig: Rig, name: str) -> None:
    nobody = Actor("app", frozenset())
    others = Actor("app", frozenset(Role) - {ROWS[name].role})

    for actor in (nobody, others):
        with pytest.raises(NotAllowed, match=ROWS[name].role.value):
            rig.ask(name, actor=actor)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_request_refuses_an_argument_that_it_does_not_know(rig: Rig, name: str) -> None:
    before = rig.ask("export_definitions")

    with pytest.raises(AdministrationError):
        rig.ask(name, {"nmae": "x"})

    assert rig.ask("export_definitions") == before


def test_requests_for_others_than_administrators_look_or_take_rights() -> None:
    for name, row in ROWS.items():
        is_judged = row.needs is not None or name.startswith(("list_", "status", "members"))
        assert row.role is Role.ADMINISTRATOR or is_judged, name


def test_what_there_is_not_cannot_be_asked(rig: Rig) -> None:
    with pytest.raises(WrongRequest, match="no request 'x'"):
        rig.ask("x")
    with pytest.raises(WrongRequest, match="takes no body"):
        rig.ask("list_users", body=b"{}")


@pytest.mark.parametrize(
    ("request_name", "name", "listing"),
    [("set_user_limits", "app", "list_users"), ("set_vhost_limits", "/", "list_vhosts")],
)
def test_limits_are_replaced_or_one_of_them_is_set_or_removed(
    rig: Rig, request_name: str, name: str, listing: str
) -> None:
    rig.ask("add_user", {"name": "app", "password_hash": ""})

    def limits_after(**change: object) -> object:
        rig.ask(request_name, {"name": name, **change})
        return next(one["limits"] for one in rig.ask(listing) if one["name"] == name)

    other = "max-channels" if name == "app" else "max-queues"
    assert limits_after(limits={"max-connections": 3}) == {"max-connections": 3}
    assert limits_after(limit=other, value=5) == {"max-connections": 3, other: 5}
    assert limits_after(limit="max-connections") == {other: 5}
    assert limits_after(limit="max-none") == {other: 5}
    for wrong in (
        {"limit": "max-none", "value": 1},
        {"limits": {other: "x"}},
        {"limits": {}, "limit": other},
    ):
        with pytest.raises(WrongRequest):
            limits_after(**wrong)
    assert limits_after(limits={}) == {}


@pytest.mark.parametrize(
    ("tags", "roles"),
    [
        ((), set()),
        (("x",), set()),
        (("management",), {Role.MANAGEMENT}),
        (("monitoring",), {Role.MONITORING, Role.MANAGEMENT}),
        (("policymaker", "x"), {Role.POLICYMAKER, Role.MANAGEMENT}),
        (("administrator",), set(Role)),
    ],
)
def test_tags_make_roles(rig: Rig, tags: tuple[str, ...], roles: set[Role]) -> None:
    access, run = rig.broker.access, rig.broker.store_rig.run
    run(access.put_user(User("app", None, tags)))
    run(
        access.put_permission(
            UserPermission(user="app", virtual_host="/", configure="", write="", read="")
        )
    )

    actor = Actor.of(access, "app")

    assert actor.roles == roles
    assert actor.virtual_hosts == {"/"}
    assert Actor.of(access, "nobody") == Actor("nobody", frozenset())
    assert OWNER.roles == frozenset(Role)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (StreamDoesNotExist("s"), NotFound, "there is no stream 's'"),
        (StreamNotAvailable("s"), Failed, "stream 's' cannot be used now"),
        (InternalError("disk"), Failed, "the store refused: disk"),
        (StoreClosed("closed"), Failed, "closed"),
    ],
)
def test_errors_of_the_broker_are_told_in_words(
    error: InternalError, kind: type[AdministrationError], words: str
) -> None:
    result = translated(error)

    assert type(result) is kind
    assert words in str(result)


def test_users_are_changed_and_looked_at(rig: Rig) -> None:
    vector = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    rig.ask("add_user", {"name": "app", "password_hash": vector, "tags": ["a"]})
    rig.ask("set_user_tags", {"name": "app", "tags": ["b", "c"]})
    rig.ask("set_user_limits", {"name": "app", "limits": {"max-connections": 5}})

    users = {user["name"]: user for user in rig.ask("list_users")}
    assert users["app"] == {
        "name": "app",
        "tags": ["b", "c"],
        "password": "sha256",
        "limits": {"max-connections": 5},
        "loopback_only": False,
    }
    with pytest.raises(Conflict):
        rig.ask("add_user", {"name": "app", "password_hash": ""})
    for wrong in ({"password_hash": "?"}, {"password_hash": vector, "hashing_algorithm": "x"}):
        with pytest.raises(WrongRequest) as error:
            rig.ask("change_password", {"name": "app", **wrong})
        assert vector not in str(error.value)
    rig.ask("change_password", {"name": "app", "password_hash": ""})
    assert rig.broker.access.user("app").password_hash is None  # type: ignore[union-attr]
    rig.ask("delete_user", {"name": "app"})
    for request in ("delete_user", "set_user_tags", "set_user_limits"):
        with pytest.raises(NotFound):
            rig.ask(request, {"name": "app"})


def test_permissions_are_changed_and_looked_at(rig: Rig) -> None:
    place = {"user": "guest", "virtual_host": "/"}
    rig.ask("set_permissions", place | {"configure": "^a", "write": "", "read": ".*"})
    with pytest.raises(WrongRequest, match="pattern to write must not exceed 1024 bytes"):
        rig.ask("set_permissions", place | {"configure": "", "write": "a" * 1_025, "read": ""})

    assert place | {"configure": "^a", "write": "", "read": ".*"} in rig.ask("list_permissions")
    assert rig.ask("list_permissions", place) == rig.ask("list_permissions", {"user": "guest"})
    rig.ask("clear_permissions", place)
    assert rig.ask("list_permissions", place) == []
    with pytest.raises(NotFound):
        rig.ask("clear_permissions", place)
    for other in ({"user": "x"}, {"virtual_host": "x"}):
        with pytest.raises(NotFound):
            rig.ask("list_permissions", other)


def test_virtual_hosts_are_changed_and_looked_at(rig: Rig) -> None:
    rig.ask("add_vhost", {"name": "v", "description": "d", "tags": ["t"]})
    rig.ask("set_vhost_limits", {"name": "v", "limits": {"max-queues": 3}})
    rig.ask("add_stream", {"virtual_host": "v", "name": "s"})

    assert rig.ask("list_vhosts")[1] == {
        "name": "v",
        "description": "d",
        "tags": ["t"],
        "default_queue_type": None,
        "limits": {"max-queues": 3},
        "streams": 1,
        "connections": 0,
    }
    with pytest.raises(Conflict):
        rig.ask("add_vhost", {"name": "v"})
    rig.ask("delete_vhost", {"name": "v"})
    with pytest.raises(NotFound):
        rig.ask("delete_vhost", {"name": "v"})


def test_stages_are_listed_with_their_state(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "s"})
    filling = rig.broker.virtual_host.commits.filling
    rig.broker.store_rig.run(filling.close("guest", filling.open("guest", "q", 3, "s").number))
    number = filling.open("guest", "q", 4, "s").number
    data = (1).to_bytes(4) + b"x"
    rig.broker.store_rig.run(filling.add("guest", number, 0, 1, 1, data))

    first, second = rig.ask("list_stages", {"virtual_host": "/"})

    assert (first["batch"], first["state"], first["records"]) == (3, "closed", 0)
    assert second == {
        "virtual_host": "/",
        "stage": number,
        "user": "guest",
        "sink": "q",
        "batch": 4,
        "stream": "s",
        "records": 1,
        "bytes": rig.administration.staged_bytes("guest"),
        "state": "open",
        "used_ms": rig.broker.now_ms,
    }
    assert rig.ask("list_stages") == [first, second]


def test_sinks_are_listed_and_forgotten(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "s"})
    run, commits = rig.broker.store_rig.run, rig.broker.virtual_host.commits
    for sink in ("q", "\udcff"):
        number = commits.filling.open("guest", sink, 3, "s").number
        run(commits.filling.close("guest", number))
        run(commits.commit("guest", sink, 3, [number], lambda _: None))

    listed = rig.ask("list_sinks", {"virtual_host": "/"})

    first = {
        "virtual_host": "/",
        "name": "q",
        "user": "guest",
        "last_batch": 3,
        "used_ms": rig.broker.now_ms,
    }
    assert listed == [first, first | {"name": "\udcff"}]
    assert rig.ask("forget_sink", {"name": "\udcff"}) is None
    assert rig.ask("list_sinks") == [first]
    with pytest.raises(NotFound, match="there is no sink 'other'"):
        rig.ask("forget_sink", {"name": "other"})
    with pytest.raises(NotFound, match="there is no virtual host 'v'"):
        rig.ask("forget_sink", {"virtual_host": "v", "name": "q"})


def test_streams_are_changed_and_looked_at(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "s", "arguments": {"max-age": "7D"}})

    [stream] = rig.ask("list_streams", {"virtual_host": "/"})
    assert (stream["name"], stream["arguments"]) == ("s", {"max-age": "7D"})
    for wrong in ({"name": "amq.x"}, {"name": "t", "arguments": {"max-age": 7}}):
        with pytest.raises(WrongRequest):
            rig.ask("add_stream", wrong)
    with pytest.raises(Conflict):
        rig.ask("add_stream", {"name": "s", "arguments": {"max-age": "7D"}})
    assert rig.ask("truncate_stream", {"name": "s", "before_offset": 5}) == {"first_offset": 0}
    both: dict[str, object] = {"before_offset": 1, "before_timestamp_ms": 1}
    offsets: list[object] = [-1, 2**64, True, "5"]
    for place in ({}, both, *({"before_offset": each} for each in offsets)):
        with pytest.raises(WrongRequest):
            rig.ask("truncate_stream", {"name": "s", **place})
    with pytest.raises(WrongRequest, match="a time is not below 0"):
        rig.ask("truncate_stream", {"name": "s", "before_timestamp_ms": -1})
    rig.ask("delete_stream", {"name": "s"})
    for request, arguments in (("delete_stream", {}), ("truncate_stream", {"before_offset": 1})):
        with pytest.raises(NotFound):
            rig.ask(request, {"name": "s", **arguments})


def added(rig: Rig, count: int = 1) -> list[str]:
    answer = rig.ask("add_partitions", {"name": "o", "partitions": count})
    names: list[str] = answer["partitions"]
    return names


def test_added_partitions_are_numbered_behind_the_last_whatever_was_deleted_or_bound(
    rig: Rig,
) -> None:
    rig.ask("add_super_stream", {"name": "o", "partitions": 3})
    rig.ask("delete_stream", {"name": "o-1"})
    assert added(rig) == ["o-3"]
    rig.ask("bind", {"source": "o", "destination": "o-0", "routing_key": "vip"})
    assert added(rig) == ["o-4"]


def test_added_partitions_pass_over_numbers_that_are_streams_or_keys_already(rig: Rig) -> None:
    rig.ask("add_super_stream", {"name": "o", "partitions": 1})
    rig.ask("add_stream", {"name": "o-1"})
    rig.ask("bind", {"source": "o", "destination": "o-0", "routing_key": "3"})

    assert added(rig, 3) == ["o-2", "o-4", "o-5"]
    keys = {each["destination"]: each["routing_key"] for each in rig.ask("list_bindings")
            if each["destination"] != "o-0"}  # fmt: skip
    assert keys == {"o-2": "2", "o-4": "4", "o-5": "5"}


def test_super_streams_exchanges_and_bindings_are_changed_and_looked_at(rig: Rig) -> None:
    made = rig.ask("add_super_stream", {"name": "o", "partitions": 2})
    more = rig.ask("add_partitions", {"name": "o", "binding_keys": ["x"]})
    rig.ask("add_exchange", {"name": "e", "type": "fanout"})
    binding = {"source": "e", "destination": "o-0"}
    rig.ask("bind", binding)

    assert (made, more) == ({"partitions": ["o-0", "o-1"]}, {"partitions": ["o-x"]})
    assert rig.ask("list_super_streams") == [
        {"virtual_host": "/", "name": "o", "partitions": ["o-0", "o-1", "o-x"]}
    ]
    assert {"e", "o", "amq.topic"} <= {each["name"] for each in rig.ask("list_exchanges")}
    assert len(rig.ask("list_bindings", {"virtual_host": "/"})) == 4
    rig.ask("add_exchange", {"name": "amq.topic", "type": "topic"})
    for other in ({"type": "direct"}, {"type": "topic", "durable": False}):
        with pytest.raises(WrongRequest):
            rig.ask("add_exchange", {"name": "amq.topic", **other})
    for wrong in ({}, {"partitions": 0}, {"partitions": 1, "binding_keys": ["a"]}):
        with pytest.raises(WrongRequest):
            rig.ask("add_super_stream", {"name": "p", **wrong})
    for name in ("e", "amq.direct"):
        with pytest.raises(WrongRequest):
            rig.ask("delete_super_stream", {"name": name})
    with pytest.raises(Conflict):
        rig.ask("add_super_stream", {"name": "o", "partitions": 1})
    for name in ("", "none"):
        with pytest.raises(NotFound):
            rig.ask("delete_super_stream", {"name": name})
    rig.ask("unbind", binding)
    rig.ask("delete_exchange", {"name": "e"})
    rig.ask("delete_super_stream", {"name": "o"})
    assert rig.ask("list_streams") == rig.ask("list_bindings") == []


def test_operators_policies_are_changed_and_looked_at(rig: Rig) -> None:
    policy = {"name": "p", "pattern": "^s", "definition": {"max-length-bytes": 5}, "priority": 2}
    rig.ask("set_operator_policy", policy)

    assert rig.ask("list_operator_policies") == [
        {"virtual_host": "/", "apply_to": "streams", **policy},
    ]
    assert rig.ask("list_policies") == []
    for definition, why in (
        ({"max-age": "7D"}, "max-age are not recognised"),
        ({}, "is empty"),
        ({"expires": 0}, "0 is not a valid queue expiry"),
    ):
        with pytest.raises(WrongRequest, match=why):
            rig.ask("set_operator_policy", policy | {"definition": definition})
    rig.ask("clear_operator_policy", {"name": "p"})
    with pytest.raises(NotFound, match="no operator policy 'p'"):
        rig.ask("clear_operator_policy", {"name": "p"})


def test_policies_are_changed_and_looked_at(rig: Rig) -> None:
    policy = {"name": "p", "pattern": "^s", "definition": {"max-age": "7D"}, "priority": 2}
    rig.ask("set_policy", policy)

    assert rig.ask("list_policies") == [
        {"virtual_host": "/", "apply_to": "streams", **policy},
    ]
    with pytest.raises(WrongRequest):
        rig.ask("set_policy", policy | {"pattern": "("})
    with pytest.raises(WrongRequest, match="pattern of policy 'p' must not exceed 1024 bytes"):
        rig.ask("set_policy", policy | {"pattern": "a" * 1_025})
    with pytest.raises(WrongRequest, match='"x" is not a valid overflow value'):
        rig.ask("set_policy", policy | {"definition": {"max-age": "7D", "overflow": "x"}})
    with pytest.raises(WrongRequest, match="priority is not a number"):
        rig.ask("set_policy", policy | {"priority": "1"})
    with pytest.raises(WrongRequest, match="max-ege are not recognised policy settings"):
        rig.ask("set_policy", policy | {"definition": {"max-ege": "7D", "expires": 1}})
    rig.ask("clear_policy", {"name": "p"})
    with pytest.raises(NotFound):
        rig.ask("clear_policy", {"name": "p"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"max-length-bytes": "20gb"},
        {"queue-leader-locator": "x"},
        {"initial-cluster-size": "0"},
        {"stream-max-segment-size-bytes": "1"},
        {"max-length-bytes": "-5"},
        {"max-age": "soon"},
        {"max-age": "0s"},
        {"stream-filter-size-bytes": "15"},
        {"stream-initial-offset": "-1"},
    ],
)
@pytest.mark.parametrize("request_", ["add_stream", "add_super_stream"])
def test_a_wrong_argument_of_a_stream_is_the_fault_of_who_asks(
    rig: Rig, request_: str, arguments: dict[str, str]
) -> None:
    (name,) = arguments
    given: dict[str, object] = {"name": "s", "arguments": arguments}
    if request_ == "add_super_stream":
        given["partitions"] = 2

    with pytest.raises(WrongRequest, match=f"^{name} is "):
        rig.ask(request_, given)
    assert rig.ask("list_streams") == rig.ask("list_super_streams") == []


def test_changes_are_logged_with_who_and_what_and_without_hashes(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    vector = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"

    rig.ask("add_user", {"name": "app\n", "password_hash": vector})
    rig.ask("list_users")

    assert "request=add_user by='owner' about={'name': 'app\\n'}" in caplog.text
    assert vector not in caplog.text
    assert "list_users" not in caplog.text


def test_attempts_to_log_in_are_listed_by_address_and_by_protocol(rig: Rig) -> None:
    attempts = rig.administration.attempts
    attempts.succeeded("10.0.0.1", "stream")
    attempts.failed("10.0.0.1", "http")
    attempts.failed("10.0.0.2", "stream", is_unread=True)

    rows = rig.ask("list_auth_attempts")
    assert [(row["remote_address"], row["protocol"]) for row in rows] == [
        ("10.0.0.1", "stream"), ("10.0.0.1", "http"), ("10.0.0.2", "stream"),
    ]  # fmt: skip
    assert rig.ask("list_auth_attempts", {"by": "protocol"})[0] == {
        "protocol": "stream",
        "auth_attempts": 2,
        "auth_attempts_succeeded": 1,
        "auth_attempts_failed": 1,
        "auth_attempts_unread": 1,
    }
    with pytest.raises(WrongRequest):
        rig.ask("list_auth_attempts", {"by": "user"})
    rig.ask("reset_auth_attempts")
    assert rig.ask("list_auth_attempts") == []
