"""Rights of clients of the wire protocol: which right a request needs, and whether it has it.

Each request is asked about once, between its decoding and its handler, by the names and the token
in it. Nothing here reads a file or a clock.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from gateway.broker.access.model import Right
from gateway.pravega.access.tokens import (
    Claims,
    Path,
    TokenExpired,
    TokenRefused,
    Tokens,
)
from gateway.pravega.names import GROUP, TABLE_SUFFIX, marked
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.error_messages import AuthTokenCheckFailed
from hutch.pravega.layout import WireMessage
from store.api import PART_MARKS

REFUSED: Final = 0
EXPIRED: Final = 1
OWNED: Final = -1
"""Codes of an AuthTokenCheckFailed; the last one is for what no token allows."""


class Act(enum.Enum):
    """Something that a request does to a segment, with the rights of which any will do.

    Clients keep state of their own in segments of some names, of which to write it is to own it:
    the second rights are for those.
    """

    LOOK = (frozenset(Right), frozenset(Right))
    """Learns how long it is, and what its attributes are."""
    READ = (frozenset((Right.READ,)), frozenset((Right.READ, Right.WRITE)))
    WRITE = (frozenset((Right.WRITE,)), frozenset((Right.WRITE,)))
    CUT = (frozenset((Right.CONFIGURE,)), frozenset((Right.CONFIGURE, Right.WRITE)))
    """Truncates or seals it."""
    MAKE = (frozenset((Right.CONFIGURE,)), frozenset((Right.CONFIGURE,)))
    """Makes or deletes it, or changes its policy."""

    def rights(self, path: Path) -> frozenset[Right]:
        """Return the rights on a path, a stream's or one in no stream, of which any will do."""
        anywhere, state = self.value
        return state if is_state(path) else anywhere

    @property
    def only_reads(self) -> bool:
        """True if it leaves the segment unchanged."""
        return self in (Act.LOOK, Act.READ)


class Need(NamedTuple):
    """One row.

    Attributes:
        act: What a command does to each segment of the fields that follow.
        fields: The fields with their names.
        moved: A field with names of segments that go into the first one's; '' if there is none.
    """

    act: Act
    fields: tuple[str, ...] = ("segment",)
    moved: str = ""

    def demands(self, request: Any) -> Iterator[tuple[str, Act]]:  # noqa: ANN401  # of any row
        """Yield segments that a request names, each with the act on it."""
        for field in self.fields:
            yield getattr(request, field), self.act
        if self.moved:
            target: str = getattr(request, self.fields[0])
            named: str | tuple[str, ...] = getattr(request, self.moved)
            for source in (named,) if isinstance(named, str) else named:
                for act in (Act.WRITE,) if _is_part(source, target) else (Act.READ, Act.MAKE):
                    yield source, act


_NONE: Final = Need(Act.LOOK, ())
_LOOK: Final = Need(Act.LOOK)
_READ: Final = Need(Act.READ)
_WRITE: Final = Need(Act.WRITE)
_CUT: Final = Need(Act.CUT)
_MAKE: Final = Need(Act.MAKE)

NEEDS: Final[Mapping[type[WireMessage], Need]] = MappingProxyType(
    {
        m.Hello: _NONE,
        m.KeepAlive: _NONE,
        m.Padding: _NONE,
        # Appends, which the SetupAppend before them covers.
        m.Event: _NONE,
        m.PartialEvent: _NONE,
        m.AppendBlock: _NONE,
        m.AppendBlockEnd: _NONE,
        m.ConditionalAppend: _NONE,
        m.ConditionalBlockEnd: _NONE,
        m.SetupAppend: _WRITE,
        m.ReadSegment: _READ,
        m.GetStreamSegmentInfo: _LOOK,
        m.LocateOffset: _READ,
        m.CreateSegment: _MAKE,
        m.CreateTransientSegment: Need(Act.WRITE, ("parent",)),
        m.SealSegment: _CUT,
        m.DeleteSegment: _MAKE,
        m.TruncateSegment: _CUT,
        m.UpdateSegmentPolicy: _MAKE,
        m.MergeSegments: Need(Act.WRITE, ("target",), "source"),
        m.MergeSegmentsBatch: Need(Act.WRITE, ("target",), "sources"),
        m.GetSegmentAttribute: _LOOK,
        m.UpdateSegmentAttribute: _WRITE,
        t.CreateTableSegment: _MAKE,
        t.DeleteTableSegment: _MAKE,
        t.GetTableSegmentInfo: _LOOK,
        t.MergeTableSegments: Need(Act.WRITE, ("target",), "source"),
        t.SealTableSegment: _CUT,
        t.UpdateTableEntries: _WRITE,
        t.RemoveTableKeys: _WRITE,
        t.ReadTable: _READ,
        t.ReadTableKeys: _READ,
        t.ReadTableEntries: _READ,
        t.ReadTableEntriesDelta: _READ,
    }
)
"""Every command of a client. One that names segments brings a token."""


class Ownership(NamedTuple):
    """Segments that the server keeps to itself.

    Attributes:
        owns: Returns whether a stream of a scope is the server's own, so that no client changes it.
        shows: Returns whether clients may read it all the same.
    """

    owns: Callable[[str, str], bool]
    shows: Callable[[str, str], bool]

    def hides(self, scope: str, stream: str) -> bool:
        """Return whether clients may not even read a stream."""
        return self.owns(scope, stream) and not self.shows(scope, stream)


class Verdict(NamedTuple):
    """The answer about a request.

    Attributes:
        refusal: What to reply; None if the request may be done.
        is_trusted: The client is known: by this request's token, or because none are asked for.
        expires_ms: When the token that allows it expires, in milliseconds since the epoch.
        user: The user that the token names; None if it names none.
    """

    refusal: AuthTokenCheckFailed | None
    is_trusted: bool = False
    expires_ms: int | None = None
    user: str | None = None


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

    def verdict(self, message: WireMessage, now_ms: int) -> Verdict:
        """Decide about a request; one that names no segment may be done.

        Args:
            message: The request.
            now_ms: Milliseconds since the epoch.
        """
        return self.verdict_of(type(message), message, now_ms)

    def verdict_of(self, kind: type[WireMessage], fields: Any, now_ms: int) -> Verdict:  # noqa: ANN401  # those of any row
        """Decide about a request of which only the fields up to the token need be there.

        Args:
            kind: What is requested.
            fields: Has the request's fields as attributes.
            now_ms: Milliseconds since the epoch.
        """
        need = NEEDS[kind]
        if not need.fields:
            return Verdict(None, self.is_open)
        request_id: int = fields.request_id
        demands = list(need.demands(fields))
        expires_ms, user = None, None
        if self._tokens is not None:
            token: str = fields.token
            try:
                claims = self._tokens.check(token, now_ms)
                for segment, act in demands:
                    _check_right(claims, segment, act)
            except TokenExpired as error:
                return Verdict(AuthTokenCheckFailed(request_id, str(error), EXPIRED))
            except TokenRefused as error:
                return Verdict(AuthTokenCheckFailed(request_id, str(error), REFUSED))
            expires_ms, user = claims.expires_ms, claims.user
        if not all(self._is_free(segment, act) for segment, act in demands):
            text = "the segment belongs to the server"
            return Verdict(AuthTokenCheckFailed(request_id, text, OWNED))
        return Verdict(None, is_trusted=True, expires_ms=expires_ms, user=user)

    def _is_free(self, segment: str, act: Act) -> bool:
        """Return whether the server's ownership lets clients do something to a segment."""
        scope, stream = _resolved(segment)
        if (of := marked(stream)) is not None:
            if act is Act.MAKE and self.is_open:  # clients without a controller make theirs
                return not self._ownership.owns(scope, of)
            return act.only_reads and not self._ownership.hides(scope, of)
        if act.only_reads:
            return not self._ownership.hides(scope, stream)
        return not self._ownership.owns(scope, stream)


def _check_right(claims: Claims, segment: str, act: Act) -> None:
    """Raise TokenRefused unless a token lets its bearer do something to a segment."""
    path = path_of(segment)
    rights = act.rights(path)
    if rights.isdisjoint(claims.rights_to(path)):
        words = " or ".join(right.value for right in Right if right in rights)
        raise TokenRefused(f"the token does not give {words} on this segment")


def is_state(path: Path) -> bool:
    """Return whether clients keep a state of their own in a stream, or in a table."""
    return len(path) > 1 and (path[1].startswith(GROUP) or path[1].endswith(TABLE_SUFFIX))


def _is_part(source: str, target: str) -> bool:
    """Return whether a segment is a transaction's part of another one, or a transient one of it."""
    return source.startswith(tuple(target + mark for mark in PART_MARKS))


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
    """Return a name without the suffix of a transaction or an index."""
    return name.partition("#")[0].partition("$")[0]
