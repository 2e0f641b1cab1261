"""The table of paths, and what stands before and behind each handler."""

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.routing import compile_path
from starlette.types import Message

from gateway.management.administration import OWNER, Actor, Role
from gateway.management.errors import NotAllowed
from gateway.management.http.application import Application
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import RESOURCES, ApiMethod, ApiPath, reason_of
from gateway.pending import Pending
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")


@pytest.fixture
def call(tmp_path: Path) -> ApiCall:
    broker = Broker(tmp_path)

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return broker.store_rig.run(coroutine)

    administration = Rig(broker).administration
    broker.close()
    facts = ServerFacts("rabbit@localhost", list)
    return ApiCall(administration, OWNER, facts, awaits, {}, {"columns": "name"})


def test_every_path_is_there_once() -> None:
    paths = [resource.path for resource in RESOURCES]
    assert len(paths) == len(set(paths))
    assert not [path for path in paths if set("()|") & set(path)]


def test_head_is_answered_as_get() -> None:
    for resource in RESOURCES:
        assert resource.handlers.get("HEAD") is resource.handlers.get("GET")


@pytest.mark.parametrize(
    "path",
    [
        "/api/parameters",
        "/api/parameters/{component}",
        "/api/parameters/{component}/{virtual_host}",
        "/api/stream/publishers",
        "/api/stream/connections/{virtual_host}/{connection}/publishers",
        "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}",
    ],
)
def test_parts_in_parentheses_make_a_path_each(path: str) -> None:
    assert path in {resource.path for resource in RESOURCES}


def test_a_handler_does_nothing_for_users_without_its_tag(call: ApiCall) -> None:
    done: list[ApiCall] = []

    async def handler(call: ApiCall) -> None:
        done.append(call)

    stranger = ApiCall(
        call.administration, Actor("m", frozenset({Role.MANAGEMENT})), call.facts, call.awaits, {}
    )
    with pytest.raises(NotAllowed):
        asyncio.run(ApiMethod(handler, Role.MONITORING)(stranger))
    assert not done
    asyncio.run(ApiMethod(handler)(stranger))
    assert done == [stranger]


def test_a_handler_that_returns_nothing_is_answered_without_a_body(call: ApiCall) -> None:
    async def handler(_: ApiCall) -> None:
        return None

    answer = asyncio.run(ApiMethod(handler)(call))
    assert answer.status_code == HTTPStatus.NO_CONTENT
    assert answer.body == b""


def test_an_object_is_answered_with_the_fields_that_are_asked_for(call: ApiCall) -> None:
    async def handler(_: ApiCall) -> dict[str, object]:
        return {"name": "x", "other": 1}

    answer = asyncio.run(ApiMethod(handler)(call))
    assert answer.status_code == HTTPStatus.OK
    assert answer.body == b'{"name":"x"}'


class _Broken(dict[str, ApiMethod]):
    """Methods of a path that fail as a fault of the server does."""

    def __missing__(self, _: str) -> ApiMethod:
        raise RuntimeError("a fault")

    def get(self, method: str, default: object = None) -> Any:  # noqa: ANN401
        del default
        return self[method]


def test_the_line_of_a_failed_request_is_without_the_password_of_its_path(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backing: Any = None  # nothing of it is reached
    resource = ApiPath("/api/auth/hash_password/{password}", _Broken())
    raw = b"/api/auth/hash_password/hidden%20word"
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/auth/hash_password/hidden word",
        "raw_path": raw,
        "query_string": b"",
        "headers": [],
    }
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(Application(backing, [resource])(scope, receive, send))
    assert sent[0]["status"] == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "http request failed" in caplog.text
    assert "hidden" not in caplog.text


OF_RABBITMQ = Path(__file__).with_name("rabbitmq-4.3-paths.txt").read_text("ascii").split()
"""Behind `/api`, with an x in the place of each name."""
HERE = [compile_path(resource.path)[0] for resource in RESOURCES]


def is_here(path: str) -> bool:
    return any(pattern.match(path) for pattern in HERE)


def test_every_path_of_rabbitmq_is_there_or_has_a_reason() -> None:
    paths = [f"/api{path}" for path in OF_RABBITMQ]
    assert len(paths) > 100
    assert not [path for path in paths if not is_here(path) and reason_of(path) is None]


@pytest.mark.parametrize(
    "path",
    ["/api/shovels", "/api/shovels/%2F/x", "/api/federation-links/%2F", "/metrics/per-object",
     "/api/traces/node/x", "/api/top/node/x"],
)  # fmt: skip
def test_what_plugins_add_has_a_reason(path: str) -> None:
    assert reason_of(path)


@pytest.mark.parametrize("path", ["/api/nowhere", "/nowhere", "/api/shovelsx", "/api", "/api/auth"])
def test_what_rabbitmq_has_not_either_has_none(path: str) -> None:
    assert reason_of(path) is None
