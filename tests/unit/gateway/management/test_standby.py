"""What administrators see of a member that follows, and ask it for."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.connections import Connections
from gateway.broker.service import About, ServiceState
from gateway.management.errors import AdministrationError, Conflict, NotFound, WrongRequest
from gateway.management.standby import Standby
from tests.unit.gateway.management.two_members import TwoMembers


@pytest.fixture
def cluster() -> TwoMembers:
    return TwoMembers("b")


@pytest.fixture
def standby(cluster: TwoMembers, tmp_path: Path) -> Standby:
    service = ServiceState(Connections(), about=About("1.2.3", tmp_path))
    service.cluster = cluster
    return Standby(service)


async def answer(standby: Standby, method: str, path: str) -> tuple[int, Any]:
    """Return status and JSON of the answer to a request over HTTP."""
    sent: list[Any] = []

    async def receive() -> Any:  # noqa: ANN401  # ASGI's
        raise AssertionError("nothing of the request is read")

    async def send(message: Any) -> None:  # noqa: ANN401  # the same
        sent.append(message)

    await standby({"type": "http", "method": method, "path": path}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_it_lives_and_all_else_is_at_the_active_one(standby: Standby) -> None:
    reason = "member b follows the log; the active one is a, at a:5552"

    assert await answer(standby, "GET", "/health/live") == (200, {"status": "ok"})
    for method, path in (("GET", "/health/ready"), ("PUT", "/api/users/x"), ("POST", "/")):
        status, said = await answer(standby, method, path)
        assert (status, said) == (503, {"status": "failed", "reason": reason})
    await standby({"type": "lifespan"}, None, None)  # type: ignore[arg-type]  # neither is used


async def test_its_state_is_shown(standby: Standby, tmp_path: Path) -> None:
    status: Any = await standby.answer("status", {}, b"")

    assert status["follows"].startswith("member b follows the log")
    assert status["product_version"] == "1.2.3"
    assert status["data_directory"] == str(tmp_path)
    assert [each["name"] for each in status["members"]] == ["a", "b"]
    assert await standby.answer("members", {}, b"") == status["members"]


async def test_it_takes_over_when_it_is_asked_to(standby: Standby, cluster: TwoMembers) -> None:
    await standby.answer("takeover", {}, b"")

    assert cluster.takeovers == 1


async def test_a_member_can_be_forgotten_by_its_name(standby: Standby, cluster: TwoMembers) -> None:
    await standby.answer("forget_member", {"name": "a"}, b"")

    assert cluster.forgotten == ["a"]
    refused: tuple[tuple[object, type[AdministrationError]], ...] = (
        ("c", NotFound),
        ("b", Conflict),
        (1, WrongRequest),
        (None, WrongRequest),
    )
    for name, error in refused:
        with pytest.raises(error):
            await standby.answer("forget_member", {"name": name}, b"")


async def test_what_takes_a_store_is_refused(standby: Standby) -> None:
    with pytest.raises(Conflict, match="the active one is a"):
        await standby.answer("list_users", {}, b"")
