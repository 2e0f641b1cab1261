"""One call: the headers that begin it, and its message, put together from its pieces.

    1 byte   1 if the message is compressed, which is refused: no such encoding was offered
    4 bytes  size of the message
    …        the message

Source: the gRPC project, "gRPC over HTTP2".
"""

import string
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from gateway.grpc.status import CallRefused, CallStatus

_CONTENT_TYPE: Final = b"application/grpc"
HEAD: Final = [(b":status", b"200"), (b"content-type", _CONTENT_TYPE)]
"""Headers of every answer to a call."""
_HEAD_BYTES: Final = 5
_PLAIN: Final = " " + string.punctuation.replace("%", "")
"""Characters of a reason that are sent as they are, beside letters and digits."""


class NoCall(Exception):
    """A request of HTTP that is no call of gRPC: the status to answer."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


class IncomingCall:
    """A call as far as it has come.

    Attributes:
        path: Service and method, as `/package.Service/method`.
        authorization: As the caller sent it; empty if it did not.
        unacknowledged_bytes: Bytes of the request that the client may not replace by others yet.
        caller: The one that the service has let in; None before.
        is_whole: True once the client has sent all of it.
    """

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin with its headers. Raises NoCall."""
        found = dict(headers)
        if found.get(b":method") != b"POST":
            raise NoCall(405)
        if not found.get(b"content-type", b"").startswith(_CONTENT_TYPE):
            raise NoCall(415)
        self.path = found.get(b":path", b"").decode("latin-1")
        self.authorization = found.get(b"authorization", b"").decode("latin-1")
        self.unacknowledged_bytes = 0
        self.caller: object = None
        self.is_whole = False
        self._data = bytearray()

    @property
    def is_let_in(self) -> bool:
        """True once the caller is known."""
        return self.caller is not None

    def add(self, data: bytes, bytes_max: int) -> None:
        """Take a part of the request. Raises CallRefused: it is larger than the call's may be."""
        if len(self._data) + len(data) > bytes_max + _HEAD_BYTES:
            reason = f"a request of this call has {bytes_max} bytes at most"
            raise CallRefused(CallStatus.RESOURCE_EXHAUSTED, reason)
        self._data += data

    def message(self) -> bytes:
        """Return the request, which is whole. Raises CallRefused: it is not one message."""
        data, self._data = self._data, bytearray()
        if len(data) < _HEAD_BYTES or len(data) - _HEAD_BYTES != int.from_bytes(data[1:5], "big"):
            raise CallRefused(CallStatus.INTERNAL, "the request is not one whole message")
        if data[0]:
            raise CallRefused(CallStatus.UNIMPLEMENTED, "compressed messages are not taken")
        return bytes(data[_HEAD_BYTES:])


def framed(message: bytes) -> bytes:
    """Return a message as it is sent."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def trailers(status: CallStatus, reason: str = "") -> list[tuple[bytes, bytes]]:
    """Return the trailers of a call."""
    found = [(b"grpc-status", b"%d" % status)]
    if reason:
        found.append((b"grpc-message", quote(reason, _PLAIN, errors="replace").encode()))
    return found
