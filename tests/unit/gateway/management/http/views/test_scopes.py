"""Scopes over HTTP: pages of them, and why there are none."""

import asyncio
import json
from collections.abc import Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.responses import Response
from starlette.types import Message

from gateway.management.administration import OWNER, Actor, Role
from gateway.management.http.answers import ApiRefusal
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import RESOURCES
from gateway.pending import Pending
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.management.test_scopes import Lists, User
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")
ALL = "/api/x/pravega/scopes"
OF_ONE = f"{ALL}/{{scope}}/"
HANDLERS = {each.path: each.handlers["GET"] for each in RESOURCES if each.path.startswith(ALL)}
ONE = Actor("one", frozenset({Role.MANAGEMENT}))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    broker = Broker(tmp_path)
    made = Rig(broker)
    broker.close()
    return made


def get(rig: Rig, path: str, actor: Actor = OWNER, scope: str = "one", **query: str) -> Any:  # noqa: ANN401
    """Return the JSON of a path."""

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    facts = ServerFacts("rabbit@localhost", list)
    call = ApiCall(rig.administration, actor, facts, awaits, {"scope": scope}, query)
    return json.loads(asyncio.run(body_of(HANDLERS[path](call))))


async def body_of(asked: Coroutine[Any, Any, Response]) -> bytes:
    sent = bytearray()

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))

    async def receive() -> Message:
        return {"type": "http.request"}

    await (await asked)({"type": "http"}, receive, send)
    return bytes(sent)


def test_scopes_are_listed_whole_or_in_pages(rig: Rig) -> None:
    rig.administration.scopes.open(Lists(), User)

    assert get(rig, ALL) == [{"name": "one"}, {"name": "two"}]
    assert get(rig, ALL, ONE) == [{"name": "one"}]
    page = get(rig, ALL, page="2", page_size="1")
    assert (page["items"], page["total_count"], page["page_count"]) == ([{"name": "two"}], 2, 2)
    assert get(rig, ALL, name="tw") == [{"name": "two"}]


@pytest.mark.parametrize(
    ("kind", "name"), [("streams", "stream"), ("reader-groups", "group"), ("tables", "table")]
)
def test_a_scope_s_lists_are_those_of_the_user(rig: Rig, kind: str, name: str) -> None:
    rig.administration.scopes.open(Lists(), User)

    assert get(rig, OF_ONE + kind) == get(rig, OF_ONE + kind, ONE) == [{"name": name}]
    with pytest.raises(ApiRefusal, match="there is no scope 'two'") as refused:
        get(rig, OF_ONE + kind, ONE, scope="two")
    assert refused.value.answer.status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("path", sorted(HANDLERS))
def test_without_a_controller_the_answer_says_so(rig: Rig, path: str) -> None:
    with pytest.raises(ApiRefusal, match=r"wire\.controller_port opens it") as refused:
        get(rig, path)
    assert refused.value.answer.status_code == HTTPStatus.NOT_FOUND
