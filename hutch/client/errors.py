"""Errors between this client and a server, each with one line that names the cause.

ClientError             base of all
├── ServerGone          the connection ended, or could not be made
│   ├── ConnectionLost  it ended without a word
│   ├── ServerBusy      the server did not look at the password
│   └── ClosedByServer  the server closed it; `code` and `reason` tell why
├── ServerSilent        the answer did not come in time; a TimeoutError too
├── BadAnswer           the server's bytes do not follow the protocol
└── Refused             the server said no; `code` tells why
"""

from hutch.stream.codes import ResponseCode


class ClientError(Exception):
    """Base of all errors of the client; its text is one line."""


class ServerGone(ClientError):
    """The connection ended or could not be made; another try may help."""


class ConnectionLost(ServerGone):
    """The connection ended without a Close frame."""


class ServerBusy(ServerGone):
    """The server had no time to compare the password, and ended the connection."""


class ClosedByServer(ServerGone):
    """The server ended the connection with a Close frame.

    Attributes:
        code: Its code; a plain number if it is an unknown one.
        reason: Its text, as the server wrote it.
    """

    def __init__(self, text: str, code: int, reason: str) -> None:
        super().__init__(text, code, reason)
        self.text = text
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return self.text


class ServerSilent(ClientError, TimeoutError):
    """The server did not answer in time; another try may help."""


class BadAnswer(ClientError):
    """The server sent bytes that do not follow the protocol."""


class Refused(ClientError):
    """The server refused a request.

    Attributes:
        code: The answer's code; a plain number if it is an unknown one.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text, code)
        self.text = text
        self.code = code

    def __str__(self) -> str:
        return self.text


def refusal(about: str, code: int, reason: str | None = None) -> ClientError:
    """Return the error for an answer that is not OK.

    Args:
        about: The thing that was asked for.
        code: Of the answer.
        reason: The server's own words; None for an answer that has none.
    """
    text = f"{about} {in_words(code)}" + (f": {reason}" if reason else "")
    if code == ResponseCode.STREAM_NOT_AVAILABLE:  # as while a broker starts
        return ServerGone(text)
    return Refused(text, code)


def require_ok(about: str, code: int, reason: str | None = None) -> None:
    """Raise the `refusal` that an answer stands for, unless its code is OK."""
    if code != ResponseCode.OK:
        raise refusal(about, code, reason)


_WORDS = {
    ResponseCode.STREAM_DOES_NOT_EXIST: "does not exist",
    ResponseCode.STREAM_NOT_AVAILABLE: "is not available now",
    ResponseCode.ACCESS_REFUSED: "may not be used by this user (access refused)",
    ResponseCode.AUTHENTICATION_FAILURE: "user name or password is wrong",
    ResponseCode.AUTHENTICATION_FAILURE_LOOPBACK: "the user may log in from the server's own "
    "machine only",
    ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE: "does not exist, or the user has no access to it",
}


def in_words(code: int) -> str:
    """Return a response code in words: `does not exist`, `was answered with …`."""
    if code in _WORDS:
        return _WORDS[ResponseCode(code)]
    if code in ResponseCode.__members__.values():
        return f"was answered with code {int(code)} ({ResponseCode(code).phrase})"
    return f"was answered with the unknown code {int(code)}"
