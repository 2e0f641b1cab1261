"""Rights of clients of the wire protocol: which right a request needs, and whether it has it.

Each request is asked about once, between its decoding and its handler, by the names and the token
in it. Nothing here reads a file or a clock.
"""

from collections.abc import Callable, Mapping
from posixpath import normpath
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from gateway.pravega.tokens import Claims, Path, Right, TokenExpired, TokenRefused, Tokens
from store.wire import messages as m
from store.wire import table_messages as t
from store.wire.error_messages import AuthTokenCheckFailed
from store.wire.layout import Message

REFUSED: Final = 0
EXPIRED: Final = 1
OWNED: Final = -1
"""Codes of an AuthTokenCheckFailed; the last one is for what no token allows."""


class Need(NamedTuple):
    """One row.

    Attributes:
        right: The right that a command needs on each segment that it names.
        names: The fields with the names of segments.
    """

    right: Right
    names: tuple[str, ...] = ("segment",)


_READ: Final = Need(Right.READ)
_UPDATE: Final = Need(Right.READ_UPDATE)

NEEDS: Final[Mapping[type[Message], Need]] = MappingProxyType(
    {
        m.SetupAppend: _UPDATE,
        m.ReadSegment: _READ,
        m.GetStreamSegmentInfo: _READ,
        m.LocateOffset: _READ,
        m.CreateSegment: _UPDATE,
        m.CreateTransientSegment: Need(Right.READ_UPDATE, ("parent",)),
        m.SealSegment: _UPDATE,
        m.DeleteSegment: _UPDATE,
        m.TruncateSegment: _UPDATE,
        m.UpdateSegmentPolicy: _UPDATE,
        m.MergeSegments: Need(Right.READ_UPDATE, ("target", "source")),
        m.MergeSegmentsBatch: Need(Right.READ_UPDATE, ("target", "sources")),
        m.GetSegmentAttribute: _READ,
        m.UpdateSegmentAttribute: _UPDATE,
        t.CreateTableSegment: _UPDATE,
        t.DeleteTableSegment: _UPDATE,
        t.GetTableSegmentInfo: _READ,
        t.MergeTableSegments: Need(Right.READ_UPDATE, ("target", "source")),
        t.SealTableSegment: _UPDATE,
        t.UpdateTableEntries: _UPDATE,
        t.RemoveTableKeys: _UPDATE,
        t.ReadTable: _READ,
        t.ReadTableKeys: _READ,
        t.ReadTableEntries: _READ,
        t.ReadTableEntriesDelta: _READ,
    }
)
"""Every command with a token in it. Appends are covered by the SetupAppend before them."""


class Ownership(NamedTuple):
    """Segments that the server keeps to itself.

    Attributes:
        owns: Tells whether a stream of a scope is the server's own, so that no client changes it.
        shows: Tells whether clients may read it all the same.
    """

    owns: Callable[[str, str], bool]
    shows: Callable[[str, str], bool]

    def hides(self, scope: str, stream: str) -> bool:
        """Tell whether clients may not even read a stream."""
        return self.owns(scope, stream) and not self.shows(scope, stream)


class Verdict(NamedTuple):
    """The answer about a request.

    Attributes:
        refusal: What to reply; None if the request may be done.
        is_trusted: The client is known: by this request's token, or because none are asked for.
        expires_ms: When the token that allows it expires, in milliseconds since the epoch.
    """

    refusal: AuthTokenCheckFailed | None
    is_trusted: bool = False
    expires_ms: int | None = None


class Guard:
    """Decides about the requests of all connections."""

    def __init__(self, ownership: Ownership, tokens: Tokens | None = None) -> None:
        """Without `tokens` no request needs one."""
        self._ownership = ownership
        self._tokens = tokens

    @property
    def is_open(self) -> bool:
        """True if no request needs a token: every client is known."""
        return self._tokens is None

    def verdict(self, message: Message, now_ms: int) -> Verdict:
        """Decide about a request; one that names no segment may be done.

        Args:
            message: The request.
            now_ms: Milliseconds since the epoch.
        """
        return self.verdict_of(type(message), message, now_ms)

    def verdict_of(self, kind: type[Message], fields: Any, now_ms: int) -> Verdict:  # noqa: ANN401  # those of any row
        """Decide about a request of which only the fields up to the token need be there.

        Args:
            kind: What is requested.
            fields: Has the request's fields as attributes.
            now_ms: Milliseconds since the epoch.
        """
        need = NEEDS.get(kind)
        if need is None:
            return Verdict(None, self.is_open)
        request_id: int = fields.request_id
        segments = _segments(fields, need)
        expires_ms = None
        if self._tokens is not None:
            token: str = fields.token
            try:
                claims = self._tokens.check(token, now_ms)
                _check_rights(claims, need.right, segments)
            except TokenExpired as error:
                return Verdict(AuthTokenCheckFailed(request_id, str(error), EXPIRED))
            except TokenRefused as error:
                return Verdict(AuthTokenCheckFailed(request_id, str(error), REFUSED))
            expires_ms = claims.expires_ms
        if not all(self._is_free(segment, need.right) for segment in segments):
            text = "the segment belongs to the server"
            return Verdict(AuthTokenCheckFailed(request_id, text, OWNED))
        return Verdict(None, is_trusted=True, expires_ms=expires_ms)

    def _is_free(self, segment: str, right: Right) -> bool:
        """Tell whether the server's ownership leaves a right on a segment to clients."""
        scope, stream = _resolved(segment)
        if right is Right.READ:
            return not self._ownership.hides(scope, stream)
        return not self._ownership.owns(scope, stream)


def _segments(fields: Any, need: Need) -> list[str]:  # noqa: ANN401  # those of any row
    segments: list[str] = []
    for name in need.names:
        value: str | tuple[str, ...] = getattr(fields, name)
        segments.extend((value,) if isinstance(value, str) else value)
    return segments


def _check_rights(claims: Claims, right: Right, segments: list[str]) -> None:
    """Raise TokenRefused unless the token gives a right on every segment."""
    if any(claims.right_to(path_of(segment)) < right for segment in segments):
        raise TokenRefused(f"the token does not give {right.name} on this segment")


def path_of(segment: str) -> Path:
    """Return the scope and the stream of a segment, of a transaction's and a transient one too.

    A name of another form is in none, and gives (): no slash, or a part that is empty or dots.
    """
    parts = segment.split("/")
    if len(parts) < 2 or any(part in {"", ".", ".."} for part in parts):  # noqa: PLR2004  # a pair
        return ()
    return parts[0], _parent(parts[1])


def _resolved(segment: str) -> tuple[str, str]:
    """Return scope and stream, as if the name were a path: no spelling of it goes round a rule."""
    scope, _, rest = normpath("/" + segment.lstrip("/"))[1:].partition("/")
    return _parent(scope), _parent(rest.partition("/")[0])


def _parent(name: str) -> str:
    """Return a name without what a transaction or an index puts behind it."""
    return name.partition("#")[0].partition("$")[0]
