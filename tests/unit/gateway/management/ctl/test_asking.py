"""A server asked through its socket: what it answers, and what is told where none answers."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.management.admin_socket import AdminSocket
from gateway.management.ctl import asking
from gateway.management.ctl.asking import ServerRefused, ServerUnreachable, ask
from gateway.management.errors import NotFound
from gateway.management.wire import SOCKET_NAME, pack_error
from tests.waiting import HANG_S

NOBODY = 65534
NAMELESS = 54_321

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextmanager
def as_user(user: int) -> Iterator[None]:
    """Let this process be another user's for a while; it has to be root's."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def serving(
    directory: Path, serve: Callable[[socket.socket], object], user: int | None = None
) -> Iterator[None]:
    """Have the first client of a directory's socket served, by a server that may be a user's."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.settimeout(HANG_S)
        listening.bind(str(directory / SOCKET_NAME))
        if user is None:
            listening.listen()
        else:
            with as_user(user):
                listening.listen()

        def take() -> None:
            connected, _ = listening.accept()
            with connected:
                serve(connected)

        thread = threading.Thread(target=take)
        thread.start()
        yield
        thread.join(HANG_S)
        assert not thread.is_alive()


def why_not(directory: Path, body: bytes = b"") -> str:
    """Return the reason for which a server cannot be asked."""
    with pytest.raises(ServerUnreachable) as unreachable:
        ask(directory, "list_users", {}, body)
    return str(unreachable.value)


async def answer(name: str, arguments: Mapping[str, object], body: bytes) -> object:
    if name == "missing":
        raise NotFound("there is no such thing")
    return [name, dict(arguments), len(body)]


async def test_a_server_gets_the_request_with_its_body_and_its_answer_is_returned(
    tmp_path: Path,
) -> None:
    admin = AdminSocket(tmp_path, answer)
    await admin.start()

    answered = await asyncio.to_thread(ask, tmp_path, "name", {"a": [1, "é"]}, bytes(1 << 20))
    with pytest.raises(ServerRefused, match=r"^there is no such thing$") as refused:
        await asyncio.to_thread(ask, tmp_path, "missing", {})
    await admin.stop()

    assert answered == ["name", {"a": [1, "é"]}, 1 << 20]
    assert refused.value.code == "not_found"


def test_the_reason_of_a_server_that_hangs_up_while_it_is_asked_is_heard(tmp_path: Path) -> None:
    def refuse(client: socket.socket) -> None:
        client.recv(10)
        client.sendall(pack_error("busy", "too many ask"))

    with (
        serving(tmp_path, refuse),
        pytest.raises(ServerRefused, match=r"^too many ask$") as refused,
    ):
        ask(tmp_path, "import_definitions", {}, bytes(1 << 24))

    assert refused.value.code == "busy"


def test_the_line_of_a_directory_without_a_server_says_what_may_help(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remedy = ": --data or --config says where the data is"

    assert why_not(tmp_path) == f"no server runs on {tmp_path}{remedy}"
    missing = tmp_path / "none"
    assert why_not(missing) == f"there is no directory {missing}{remedy}"
    file = tmp_path / "file"
    assert why_not(file) == f"{file}: Not a directory"


def test_a_server_that_was_killed_is_told_from_one_that_was_stopped(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET_NAME))

    assert why_not(tmp_path) == (
        f"no server runs on {tmp_path}; one that was killed has left its socket"
    )


@as_root
def test_a_directory_that_this_user_may_not_enter_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    with as_user(NOBODY):
        reason = why_not(tmp_path)

    assert reason == f"{tmp_path}: permission denied; only who runs the server may ask it"


@as_root
@pytest.mark.parametrize(("user", "name"), [(NOBODY, "nobody"), (NAMELESS, f"#{NAMELESS}")])
def test_the_server_of_another_user_is_told_nothing(tmp_path: Path, user: int, name: str) -> None:
    told: list[bytes] = []

    with serving(tmp_path, lambda client: told.append(client.recv(1)), user):
        reason = why_not(tmp_path)

    assert told == [b""]
    assert reason == (
        f"{tmp_path}: the socket there is of the user {name}, and not trusted; "
        f"if it is your server's, ask it as that user: sudo -u {name} hutch …"
    )


@as_root
def test_root_s_server_is_trusted_by_any_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o711)
    monkeypatch.chdir(tmp_path)  # the folders above may be root's alone
    with serving(tmp_path, lambda client: client.sendall(b'{"result": 1}\n')):
        (tmp_path / SOCKET_NAME).chmod(0o666)
        with as_user(NOBODY):
            assert ask(Path(), "list_users", {}) == 1


@pytest.mark.parametrize("sent", [b"", b'{"result": 1}'], ids=["nothing", "half a line"])
def test_a_server_that_ends_before_its_answer_is_told(tmp_path: Path, sent: bytes) -> None:
    def end(client: socket.socket) -> None:
        client.recv(1 << 16)
        client.sendall(sent)

    with serving(tmp_path, end):
        reason = why_not(tmp_path)

    assert reason == f"the server on {tmp_path} went away before it had answered"


def test_a_server_that_ends_without_having_read_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, lambda client: client.recv(1)):
        reason = why_not(tmp_path, bytes(1 << 24))

    assert reason == f"the server on {tmp_path} went away: Connection reset by peer"


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 0.05)
    is_over = threading.Event()

    with serving(tmp_path, lambda _: is_over.wait(HANG_S)):
        reason = why_not(tmp_path)
        is_over.set()

    assert reason == f"the server on {tmp_path} does not answer"
