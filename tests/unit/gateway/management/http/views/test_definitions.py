"""Definitions over HTTP: whole or of one virtual host, and what is logged of them."""

import json
import logging
from collections.abc import Coroutine, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.responses import Response
from starlette.types import Message

from gateway.management.administration import OWNER
from gateway.management.errors import UnusableDefinitions, WrongRequest
from gateway.management.http.answers import ApiRefusal
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.views import definitions
from gateway.management.http.views.definitions import LOGGED_MAX
from gateway.pending import Pending
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    broker = Broker(tmp_path)
    yield Rig(broker)
    broker.close()


def call(rig: Rig, content: object = None, **path: str) -> ApiCall:
    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    raw_body = b"" if content is None else json.dumps(content).encode()
    facts = ServerFacts("rabbit@localhost", list)
    return ApiCall(rig.administration, OWNER, facts, awaits, path, raw_body=raw_body)


async def exported(rig: Rig, **path: str) -> dict[str, Any]:
    answer, sent = await definitions.get(call(rig, **path)), bytearray()
    assert isinstance(answer, Response)

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))

    async def receive() -> Message:
        raise AssertionError("no body is read")

    await answer({"type": "http", "method": "GET"}, receive, send)
    result: dict[str, Any] = json.loads(sent)
    return result


def queues(count: int, **arguments: str) -> dict[str, object]:
    """Return definitions of so many streams."""
    arguments = {"x-queue-type": "stream", **arguments}
    each = {"vhost": "/", "type": "stream", "durable": True, "arguments": arguments}
    return {"queues": [{"name": f"q-{number}", **each} for number in range(count)]}


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the view itself."""
    return [each.getMessage() for each in caplog.records if each.name == definitions.log.name]


async def test_what_is_exported_is_imported_again(rig: Rig) -> None:
    rig.ask("add_vhost", {"name": "v"})
    rig.ask("add_stream", {"name": "in v", "virtual_host": "v"})
    rig.ask("add_stream", {"name": "s"})
    everything = await exported(rig)
    rig.ask("delete_stream", {"name": "s"})

    await definitions.post(call(rig, everything))

    assert await exported(rig) == everything
    assert [queue["name"] for queue in everything["queues"]] == ["s", "in v"]


async def test_one_virtual_host_goes_out_and_into_another(rig: Rig) -> None:
    rig.ask("add_vhost", {"name": "v"})
    rig.ask("add_stream", {"name": "s"})

    await definitions.post(call(rig, await exported(rig, virtual_host="/"), virtual_host="v"))

    names = [queue["name"] for queue in (await exported(rig, virtual_host="v"))["queues"]]
    assert names == ["s"]


async def test_a_virtual_host_that_is_not_there_is_refused_as_by_rabbitmq(rig: Rig) -> None:
    with pytest.raises(WrongRequest, match=r"^vhost_not_found$"):
        await exported(rig, virtual_host="none")
    with pytest.raises(ApiRefusal, match=r"^vhost_not_found$") as refused:
        await definitions.post(call(rig, queues(1), virtual_host="none"))

    assert refused.value.answer.status_code == HTTPStatus.NOT_FOUND


async def test_a_body_that_is_missing_changes_nothing(rig: Rig) -> None:
    before = await exported(rig)

    await definitions.post(call(rig))

    assert await exported(rig) == before


async def test_definitions_with_a_fault_change_nothing(rig: Rig) -> None:
    wrong = queues(2)
    wrong["permissions"] = [
        {"user": "none", "vhost": "/", "configure": "", "write": "", "read": ""}
    ]

    with pytest.raises(UnusableDefinitions, match="there is no user 'none'"):
        await definitions.post(call(rig, wrong))

    assert rig.ask("list_streams") == []


@pytest.mark.parametrize(
    ("count", "lines"), [(LOGGED_MAX, LOGGED_MAX), (LOGGED_MAX + 1, LOGGED_MAX + 1)]
)
async def test_of_many_warnings_of_an_export_the_first_are_logged_and_then_their_count(
    rig: Rig, caplog: pytest.LogCaptureFixture, count: int, lines: int
) -> None:
    client = rig.broker.link()
    for number in range(count):
        client.create(f"s-{number}\udcff")

    assert (await exported(rig))["queues"] == []

    found = logged(caplog)
    assert len(found) == lines
    assert all(line.startswith("exported not as it is ") for line in found)
    assert (f"exported not as it is count={count}" in found) == (count > LOGGED_MAX)


@pytest.mark.parametrize(
    ("count", "lines"), [(LOGGED_MAX, LOGGED_MAX), (LOGGED_MAX + 1, LOGGED_MAX + 1)]
)
async def test_of_many_objects_that_are_adapted_the_first_are_logged_and_then_their_count(
    rig: Rig, caplog: pytest.LogCaptureFixture, count: int, lines: int
) -> None:
    with caplog.at_level(logging.INFO):
        await definitions.post(call(rig, queues(count, **{"x-overflow": "y"})))

    found = logged(caplog)
    assert len(found) == lines
    assert found[0].startswith("definition adapted kind=")
    assert "virtual_host='/' name='q-0' reason=" in found[0]
    assert (f"definitions not all as written count={count}" in found) == (count > LOGGED_MAX)


async def test_an_object_that_is_imported_as_written_has_no_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, definitions.log.name):
        await definitions.post(call(rig, queues(3)))

    assert len(rig.ask("list_streams")) == 3
    assert logged(caplog) == []
