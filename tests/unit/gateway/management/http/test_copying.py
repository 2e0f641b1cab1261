"""Requests for copies of the directory: who is let in, and what is answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.management.http.copying import Copying
from gateway.management.http.protocol import LOGGED_IN

BY_B = {"hutch-member": "b", "authorization": "Bearer right"}


class Copies:
    """The copies of member b; `Copies`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.begun: list[tuple[str, str]] = []
        self.ended: list[str] = []
        self.failure: OSError | None = None

    def lets_in(self, member: str, token: str) -> bool:
        return (member, token) == ("b", "right")

    def begin(self, member: str, known: str = "") -> "Copies":
        if self.failure is not None:
            raise self.failure
        self.begun.append((member, known))
        return self

    def described(self) -> dict[str, object]:
        return {"id": "x"}

    def path(self, member: str, index: int) -> Path | None:
        assert member == "b"
        return self._file if index == 0 else None

    def end(self, member: str) -> None:
        self.ended.append(member)


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    file = tmp_path / "7"
    file.write_bytes(b"0123456789")
    return Copies(file)


async def ask(
    copies: Copies,
    method: str,
    path: str = "/cluster/copy",
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes, bool]:
    """Return status and body of an answer, and whether the member was let in."""
    sent: list[Any] = []
    let_in: list[bool] = []

    async def other(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  # ASGI's
        del scope, receive
        await send({"type": "http.response.start", "status": 299})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:  # noqa: ANN401  # the same
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:  # noqa: ANN401  # the same
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.4"},
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in (headers or BY_B).items()],
        "state": {LOGGED_IN: lambda: let_in.append(True)},
    }
    await Copying(copies, other)(scope, receive, send)
    return sent[0]["status"], b"".join(each["body"] for each in sent[1:]), bool(let_in)


async def test_a_member_begins_a_copy_and_fetches_it_in_parts(copies: Copies) -> None:
    assert await ask(copies, "POST") == (200, b'{"id":"x"}', True)
    assert (await ask(copies, "POST", headers=BY_B | {"hutch-copy": "x"}))[0] == 200
    assert copies.begun == [("b", ""), ("b", "x")]

    part = BY_B | {"range": "bytes=2-4"}
    assert await ask(copies, "GET", "/cluster/copy/0", part) == (206, b"234", True)
    behind = BY_B | {"range": "bytes=10-12"}
    assert (await ask(copies, "GET", "/cluster/copy/0", behind))[0] == 416
    assert await ask(copies, "DELETE") == (204, b"", True)
    assert copies.ended == ["b"]


@pytest.mark.parametrize(
    "headers",
    [
        {"x": "y"},
        {"hutch-member": "b"},
        {"hutch-member": "b", "authorization": "Bearer wrong"},
        {"hutch-member": "b", "authorization": "Basic right"},
        {"hutch-member": "c", "authorization": "Bearer right"},
    ],
)
@pytest.mark.parametrize("path", ["/cluster/copy", "/cluster/copy/0"])
async def test_others_are_not_let_in(copies: Copies, path: str, headers: dict[str, str]) -> None:
    for method in ("POST", "GET", "DELETE"):
        status, answer, is_in = await ask(copies, method, path, headers)
        assert (status, is_in) == (401, False)
        assert json.loads(answer)["error"] == "not_authorised"
    assert not copies.begun
    assert not copies.ended


async def test_what_is_not_there_is_not_found(copies: Copies, tmp_path: Path) -> None:
    for method, path in (
        ("GET", "/cluster/copy/1"),
        ("GET", "/cluster/copy/x"),
        ("GET", "/cluster/copy/0/1"),
        ("PUT", "/cluster/copy/0"),
        ("GET", "/cluster/copy"),
    ):
        assert (await ask(copies, method, path))[0] == 404
    (tmp_path / "7").unlink()
    assert (await ask(copies, "GET", "/cluster/copy/0"))[0] == 404


async def test_a_directory_that_cannot_be_copied_is_told(copies: Copies) -> None:
    copies.failure = OSError(1, "Operation not permitted")

    status, answer, _ = await ask(copies, "POST")

    assert status == 500
    assert "cannot be copied: Operation not permitted" in json.loads(answer)["reason"]


async def test_all_else_goes_to_the_api(copies: Copies) -> None:
    for path in ("/api/overview", "/", "/cluster"):
        assert await ask(copies, "GET", path) == (299, b"", False)
