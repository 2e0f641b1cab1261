"""The running server, asked through its admin socket; and how a command fails."""

from __future__ import annotations

import json
import os
import socket

TYPE_CHECKING = False  # typing's own takes longer to import than all the rest
if TYPE_CHECKING:
    from typing import Any

OK = 0
USAGE = 64
NO_SUCH_THING = 65
NO_SUCH_USER = 67
UNREACHABLE = REFUSED = 69
FAILED = 70
"""Exit codes of RabbitMQ's tools: EX_USAGE, EX_DATAERR, EX_NOUSER, EX_UNAVAILABLE, EX_SOFTWARE."""

NODE = "rabbit@localhost"
SOCKET_VARIABLE = "HUTCH_ADMIN_SOCKET"
ANSWER_S = 60.0


class Failure(Exception):
    """The command did not do it.

    Attributes:
        code: What the process exits with.
        kind: What kind of refusal it was of the server's, empty if it did not refuse.
    """

    def __init__(self, message: str, code: int = FAILED, kind: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.kind = kind


def ask(request: str, refused: int = FAILED, /, **arguments: Any) -> Any:  # noqa: ANN401  # what JSON holds
    """Ask the server for something and return its answer.

    Args:
        request: What for.
        refused: What the process exits with if the server refuses.
        arguments: Of the request.

    Raises:
        Failure: There is no server, or it refused.
    """
    path = os.environ.get(SOCKET_VARIABLE, "data/admin.sock")
    line = json.dumps({"request": request, "arguments": arguments}).encode() + b"\n"
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(path)
            connection.sendall(line)
            while not answer.endswith(b"\n") and (part := connection.recv(65_536)):
                answer += part
    except OSError as error:
        raise Failure(f"unable to reach the server at {path}: {error}", UNREACHABLE) from None
    if not answer.endswith(b"\n"):
        raise Failure(f"the server at {path} went away", UNREACHABLE)
    content = json.loads(answer)
    if "error" in content:
        raise Failure(content["error"], refused, content.get("code", "refused"))
    return content["result"]


def ask_unless_gone(request: str, **arguments: Any) -> None:  # noqa: ANN401  # as above
    """Ask for something, and be content if what it is about does not exist. Raises Failure."""
    try:
        ask(request, **arguments)
    except Failure as failure:
        if failure.kind != "not_found":
            raise
