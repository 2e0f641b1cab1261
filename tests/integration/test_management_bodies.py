"""Bodies of the management API with lists: what they cost grows with the list.

Each body may have a list, if only of names that mean nothing. The requests are those of the API:
one with a body that is missing here fails a test, and so does a section of definitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple

import pytest

from gateway.management.definitions.reading import SECTIONS
from gateway.management.http.bodies import MESSAGE_BYTES_MAX, SMALL_BYTES_MAX
from gateway.management.http.routes import RESOURCES
from gateway.management.http.views.publishing import HEADERS_MAX
from gateway.management.requests.publishing import KEYS_MAX
from tests.http_client import Api
from tests.integration.conftest import managed_server
from tests.integration.costs import Costs, amount, check_growth
from tests.integration.server import HutchServer

PERMISSION: Final = {"configure": "", "write": "", "read": ""}
PARTITIONS: Final = 1_000
DEFINED: Final = 10_000
"""Entries of a section. A body of 10 MiB has room for more, which take minutes to store."""
VIRTUAL_HOSTS: Final = 1_000
"""Each of them has tables of its own."""
NEW: Final = "(new)"
_numbers = count()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("bodies"), "--durability", "os") as server:
        prepared(server)
        yield server


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("imports"), "--durability", "os") as server:
        yield server


def prepared(server: HutchServer) -> Api:
    api = Api(*server.management)
    api.ask("PUT", "queues/%2F/stream", {"arguments": {"x-queue-type": "stream"}})
    api.ask("PUT", "exchanges/%2F/exchange", {"type": "topic"})
    api.ask("PUT", "users/user", {"password": "p", "tags": ""})
    return api


def new(name: str) -> str:
    return f"{name}{next(_numbers)}"


def texts(items: int) -> list[str]:
    """Return as many texts, which all differ and are short: many of them fit a body."""
    return [f"{number:x}" for number in range(items)]


def pairs(items: int) -> dict[str, int]:
    return dict.fromkeys(texts(items), 0)


class Case(NamedTuple):
    """A request to try.

    Attributes:
        path: As it is asked for; `{}` stands for a new name.
        most: Items of the largest body.
        body: Makes one with a number of items; `NEW` stands for a new name.
        status: Of the answer.
    """

    path: str
    most: int
    body: Callable[[int], object]
    status: int


PUBLISH: Final = "POST /api/exchanges/{virtual_host}/{exchange}/publish"
TO_PUBLISH: Final = "exchanges/%2F/exchange/publish"
SMALL: Final = SMALL_BYTES_MAX // 12
LIMIT: Final = Case(
    "vhost-limits/%2F/max-connections", SMALL, lambda n: {"value": 99, **pairs(n)}, 204
)
POLICY: Final = Case(
    "policies/%2F/{}", SMALL, lambda n: {"pattern": "x", "definition": pairs(n)}, 400
)


def copied(items: int) -> object:
    return message({"CC": texts(items)})


def message(headers: dict[str, Any]) -> object:
    sent = {"routing_key": "", "payload": "", "payload_encoding": "string"}
    return sent | {"properties": {"headers": headers}}


CASES: Final = {
    "POST /api/users/bulk-delete": Case(
        "users/bulk-delete", SMALL, lambda n: {"users": texts(n)}, 204
    ),
    "PUT /api/users/{user}": Case(
        "users/{}", SMALL, lambda n: {"password_hash": "", "tags": texts(n)}, 400
    ),
    "PUT /api/permissions/{virtual_host}/{user}": Case(
        "permissions/%2F/user", SMALL, lambda n: {**PERMISSION, **pairs(n)}, 201
    ),
    "PUT /api/vhost-limits/{virtual_host}/{limit}": LIMIT,
    "PUT /api/user-limits/{user}/{limit}": LIMIT._replace(path="user-limits/user/max-connections"),
    "PUT /api/parameters/{component}/{virtual_host}/{name}": Case(
        "parameters/vhost-limits/%2F/limits", SMALL, lambda n: {"value": pairs(n)}, 400
    ),
    "PUT /api/policies/{virtual_host}/{policy}": POLICY,
    "PUT /api/operator-policies/{virtual_host}/{policy}": POLICY._replace(
        path="operator-policies/%2F/{}"
    ),
    "PUT /api/vhosts/{virtual_host}": Case("vhosts/host", SMALL, lambda n: {"tags": texts(n)}, 201),
    "PUT /api/queues/{virtual_host}/{stream}": Case(
        "queues/%2F/{}",
        SMALL,
        lambda n: {"arguments": {"x-queue-type": "stream", **pairs(n)}},
        400,
    ),
    "PUT /api/exchanges/{virtual_host}/{exchange}": Case(
        "exchanges/%2F/{}", SMALL, lambda n: {"type": "topic", "arguments": pairs(n)}, 201
    ),
    f"{PUBLISH} copied too often": Case(TO_PUBLISH, MESSAGE_BYTES_MAX // 10, copied, 400),
    f"{PUBLISH} copied": Case(TO_PUBLISH, KEYS_MAX - 1, copied, 200),
    f"{PUBLISH} with too many headers": Case(
        TO_PUBLISH, MESSAGE_BYTES_MAX // 12, lambda n: message(pairs(n)), 400
    ),
    f"{PUBLISH} with headers": Case(TO_PUBLISH, HEADERS_MAX, lambda n: message(pairs(n)), 200),
    f"{PUBLISH} with a list": Case(
        TO_PUBLISH, 100_000, lambda n: message({"x-list": texts(n)}), 200
    ),
    "POST /api/bindings/{virtual_host}/e/{exchange}/q/{stream}": Case(
        "bindings/%2F/e/exchange/q/stream",
        SMALL,
        lambda n: {"routing_key": NEW, "arguments": pairs(n)},
        201,
    ),
    "POST /api/queues/{virtual_host}/{stream}/get": Case(
        "queues/%2F/stream/get", SMALL, lambda n: {"count": 1, **pairs(n)}, 400
    ),
    "PUT /api/stream/super-streams/{virtual_host}/{super_stream}": Case(
        "stream/super-streams/%2F/{}",
        amount(PARTITIONS, 200),
        lambda n: {"binding-keys": ",".join(texts(n))},
        204,
    ),
}
DEFINITIONS: Final = {"POST /api/definitions", "POST /api/definitions/{virtual_host}"}


def test_every_request_with_a_body_is_tried_here() -> None:
    asked = {f"{method} {each.path}" for each in RESOURCES for method in each.handlers}
    tried = {" ".join(name.split()[:2]) for name in CASES}
    assert tried | DEFINITIONS == {each for each in asked if each[:4] in {"PUT ", "POST"}}


@pytest.mark.parametrize("name", CASES)
def test_a_body_twice_as_long_costs_twice_as_much_and_no_turn_is_long(
    target: HutchServer, name: str
) -> None:
    case, api = CASES[name], Api(*target.management)
    written = cache(lambda items: json.dumps(case.body(items)))

    def cost(items: int) -> Costs:
        body = written(items).replace(NEW, new("key")).encode()
        path = case.path.format(new("x"))
        with Costs(target, is_judged=False) as costs:
            answer = api.ask(name.split(maxsplit=1)[0], path, body)
        assert answer.status in {case.status, 204}, answer
        return costs

    check_growth(cost, case.most)


def test_users_that_are_deleted_together_cost_as_much_each_however_many_they_are(
    target: HutchServer,
) -> None:
    api = Api(*target.management)

    def cost(items: int) -> Costs:
        names = [new("user") for _ in range(items)]
        made = {"users": list(map(user, names)), "permissions": list(map(may, names))}
        assert api.status("POST", "definitions", made) == 204
        with Costs(target, is_judged=False) as costs:
            assert api.status("POST", "users/bulk-delete", {"users": names}) == 204
        assert not {one["name"] for one in api.get("users")}.intersection(names)
        return costs

    check_growth(cost, amount(DEFINED, 600))


# Definitions: what each section has, in an entry that is short


def user(name: str) -> dict[str, Any]:
    return {"name": name, "password_hash": "", "tags": ""}


def may(name: str, host: str = "/") -> dict[str, Any]:
    return {"vhost": host, "user": name, **PERMISSION}


def stream(name: str, host: str) -> dict[str, Any]:
    return {
        "vhost": host,
        "name": name,
        "durable": True,
        "arguments": {"x-queue-type": "stream"},
    }


def exchange(name: str, host: str) -> dict[str, Any]:
    return {"vhost": host, "name": name, "type": "topic", "durable": True}


def policy(name: str, host: str) -> dict[str, Any]:
    said = {"pattern": name, "definition": {"max-age": "1D"}, "apply-to": "all"}
    return {"vhost": host, "name": name, **said}


class Section(NamedTuple):
    """A section of definitions to try.

    Attributes:
        entry: Makes one with a name, in a virtual host where it is in one.
        most: Entries of the largest import.
        is_skipped: Nothing here is made of it, whether the import is refused for that or not.
    """

    entry: Callable[[str, str], dict[str, Any]]
    most: int = amount(DEFINED, 600)
    is_skipped: bool = False


SECTION: Final = {
    "vhosts": Section(lambda name, _: {"name": name}, amount(VIRTUAL_HOSTS, 100)),
    "users": Section(lambda name, _: user(name)),
    "permissions": Section(may),
    "topic_permissions": Section(lambda name, host: {"vhost": host, "user": name}, is_skipped=True),
    "policies": Section(policy),
    "queues": Section(stream),
    "exchanges": Section(exchange),
    "bindings": Section(
        lambda name, host: {
            "vhost": host,
            "source": "exchange",
            "destination": "stream",
            "destination_type": "queue",
            "routing_key": name,
        }
    ),
    "parameters": Section(
        lambda name, host: {
            "vhost": host,
            "component": "operator_policy",
            "name": name,
            "value": {"pattern": name, "definition": {"max-length-bytes": 1}},
        }
    ),
    "global_parameters": Section(lambda name, _: {"name": name, "value": ""}, is_skipped=True),
}
UNKNOWN: Final = Section(
    lambda name, host: {"vhost": host, "component": "c", "name": name, "value": {}},
    is_skipped=True,
)


def test_every_section_of_definitions_is_tried_here() -> None:
    assert SECTION.keys() == set(SECTIONS)


@pytest.mark.parametrize(
    ("name", "section"),
    [*SECTION.items(), ("parameters", UNKNOWN)],
    ids=[*SECTION, "unknown parameters"],
)
def test_definitions_twice_as_long_cost_twice_as_much_and_no_turn_is_long(
    empty: HutchServer, name: str, section: Section
) -> None:
    api = Api(*empty.management)

    def cost(items: int) -> Costs:
        host, names = new("host"), [new("x") for _ in range(items)]
        prepare_host(api, host, names if name == "permissions" else [])
        before = count_of(api, name)
        body = {name: [section.entry(each, host) for each in names]}
        with Costs(empty, is_judged=False) as costs:
            answer = api.ask("POST", "definitions", body)
        assert answer.status in ({204, 400} if section.is_skipped else {204}), answer
        assert count_of(api, name) - before == (0 if section.is_skipped else items)
        forget(api, name, host, names)
        return costs

    check_growth(cost, section.most)


def count_of(api: Api, section: str) -> int:
    return len(api.get("definitions").get(section, []))


def prepare_host(api: Api, host: str, users: list[str]) -> None:
    """Make a virtual host with what the sections need."""
    made = {
        "vhosts": [{"name": host}],
        "users": list(map(user, users)),
        "queues": [stream("stream", host)],
        "exchanges": [exchange("exchange", host)],
    }
    assert api.status("POST", "definitions", made) == 204


def forget(api: Api, section: str, host: str, names: list[str]) -> None:
    """Delete what was imported: what the next import finds would count as well."""
    if section in {"users", "permissions"}:
        assert api.status("POST", "users/bulk-delete", {"users": names}) == 204
    for each in [host, *(names if section == "vhosts" else [])]:
        assert api.status("DELETE", f"vhosts/{each}") == 204
