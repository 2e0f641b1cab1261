"""Delegation tokens of Pravega's wire protocol: made, and checked. Bytes in, decisions out.

A token is a JWT with HS512. Beside `sub`, `aud`, `iat`, and perhaps `exp`, it has a claim for each
resource: `prn::/scope:S/stream:T` or `prn::/scope:S`, or `*` for everything. Its value is READ or
READ_UPDATE, as Pravega has them, or some of `configure`, `write` and `read` with commas between:
those are the rights of one of this server's users. Such a token has a claim `hutch` too, with the
user's name and a seal of its standing, and is valid while the user is what it was. The standard
library has all that this one algorithm needs.

Source: RFC 7515 and RFC 7519; `docs/pravega.md`.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from gateway.broker.access.model import Right
from gateway.broker.access.standings import NO_USERS
from gateway.pravega.names import TABLE_SUFFIX

SUBJECT: Final = "segmentstoreresource"
AUDIENCE: Final = "segmentstore"
EVERYTHING: Final = "*"
READ: Final = "READ"
READ_UPDATE: Final = "READ_UPDATE"
PRAVEGA: Final[Mapping[str, frozenset[Right]]] = MappingProxyType(
    {READ: frozenset((Right.READ,)), READ_UPDATE: frozenset(Right)}
)
"""Rights by Pravega's word for them."""

_OF_USERS: Final = "hutch"
_SEAL_BYTES: Final = 16
_OWN: Final = {right.value: frozenset((right,)) for right in Right}
_PREFIX: Final = "prn::/"
_ALL: Final = frozenset((EVERYTHING, "prn::", "prn::*"))
_HEADER: Final = {"alg": "HS512"}
_NONE: Final = frozenset[Right]()
_MS: Final = 1_000
_TIME_MAX_S: Final = 1 << 40
_KEPT: Final = 256
"""Tokens whose claims are kept: a client sends the same one with each of its requests."""

USER_CHANGED: Final = "the token's user has another password or other rights by now"

Path = tuple[str, ...]
"""Scope and stream, a scope alone, or () for everything."""


class TokenRefused(Exception):
    """No token, or one that was not made with the key."""


class TokenExpired(TokenRefused):
    """A token that was valid once."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Contents of a valid token.

    Attributes:
        rights: Rights by scope and stream.
        expires_ms: When it expires, in milliseconds since the epoch; None: never.
        begins_ms: When it begins to be valid; 0: it always was.
        user: The user that it was given to; None for a token that was made elsewhere.
        seal: That of the user's standing.
    """

    rights: Mapping[Path, frozenset[Right]]
    expires_ms: int | None
    begins_ms: int = 0
    user: str | None = None
    seal: str = ""

    def rights_to(self, path: Path) -> frozenset[Right]:
        """Return the rights to a stream; () is for names that are in no stream."""
        given = (self.rights.get(path[:size], _NONE) for size in range(len(path) + 1))
        return _NONE.union(*given)


class Tokens:
    """Makes and checks the tokens of one key."""

    def __init__(
        self, key: bytes, standing_of: Callable[[str], bytes | None] = NO_USERS.of
    ) -> None:
        """Take a key of any length; 64 bytes are as strong as the algorithm.

        Args:
            key: The key.
            standing_of: Returns a user's standing as it is now, None if there is no such user.
        """
        self._key = key
        self._standing_of = standing_of
        self._claims = lru_cache(maxsize=_KEPT)(self._verified)

    def mint(
        self,
        rights: Mapping[str, str],
        *,
        now_ms: int,
        lifetime_ms: int | None = None,
        user: str | None = None,
    ) -> str:
        """Return a token.

        Args:
            rights: READ, READ_UPDATE or `words_of` rights, by resource; see `resource_of`.
            now_ms: Milliseconds since the epoch.
            lifetime_ms: How long it is valid; None: for ever.
            user: The user that it is for, and with which it goes; None: it is for none.
        """
        claims: dict[str, object] = {"sub": SUBJECT, "aud": AUDIENCE, "iat": now_ms // _MS}
        if lifetime_ms is not None:
            claims["exp"] = (now_ms + lifetime_ms) // _MS
        if user is not None:
            claims[_OF_USERS] = {"user": user, "seal": self._seal_of(user)}
        claims.update(rights)
        signed = f"{_packed(_HEADER)}.{_packed(claims)}"
        return f"{signed}.{_encoded(self._signature(signed.encode()))}"

    def check(self, token: str, now_ms: int) -> Claims:
        """Return the claims of a token.

        Raises:
            TokenRefused: It is none of this key's, or not valid yet.
            TokenExpired: It is not valid any more.
        """
        if not token:
            raise TokenRefused("this server asks for a token")
        claims = self._claims(token)
        if claims.expires_ms is not None and now_ms >= claims.expires_ms:
            raise TokenExpired("the token has expired")
        if now_ms < claims.begins_ms:
            raise TokenRefused("the token is not valid yet")
        if claims.user is not None:
            self._check_user(claims.user, claims.seal)
        return claims

    def _check_user(self, user: str, seal: str) -> None:
        now = self._seal_of(user)
        if now is None:
            raise TokenRefused("the token's user does not exist")
        if now != seal:  # both are of this server's making
            raise TokenExpired(USER_CHANGED)

    def _seal_of(self, user: str) -> str | None:
        """Return the seal of a user's standing as it is now, which does not reveal the standing."""
        standing = self._standing_of(user)
        if standing is None:
            return None
        text = b"\0".join((b"standing", user.encode(), standing))  # no JWT, which has no NUL
        return hmac.digest(self._key, text, hashlib.sha512)[:_SEAL_BYTES].hex()

    def _signature(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, signed, hashlib.sha512)

    def _verified(self, token: str) -> Claims:
        """Read a token; nothing of it is looked at before its signature is right."""
        try:
            signed, _, signature = token.encode("ascii").rpartition(b".")
            head, _, body = signed.partition(b".")
            if not hmac.compare_digest(self._signature(signed), _decoded(signature)):
                raise TokenRefused("the token was not made with this server's key")
            header, fields = json.loads(_decoded(head)), json.loads(_decoded(body))
            if header["alg"] != _HEADER["alg"] or "crit" in header:
                raise TokenRefused("the token is not a plain JWT with HS512")
            return _claims_of(fields)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise TokenRefused("the token is no JWT") from error


def resource_of(scope: str, stream: str = "") -> str:
    """Return the resource of a stream, or of all streams of a scope."""
    return f"{_PREFIX}scope:{scope}" + (f"/stream:{stream}" if stream else "")


def words_of(rights: Iterable[Right]) -> str:
    """Return the value of a claim that gives some rights."""
    return ",".join(sorted(right.value for right in rights))


def _rights_of(words: str) -> frozenset[Right]:
    return PRAVEGA.get(words) or _NONE.union(*(_OWN.get(word, _NONE) for word in words.split(",")))


def _claims_of(fields: Mapping[str, Any]) -> Claims:
    audience = fields.get("aud", AUDIENCE)
    if audience != AUDIENCE and not (isinstance(audience, list) and AUDIENCE in audience):
        raise TokenRefused("the token is not for a segment store")
    rights: dict[Path, frozenset[Right]] = {}
    for resource, value in fields.items():
        path = path_of_resource(resource)
        if path is not None and isinstance(value, str):
            rights[path] = rights.get(path, _NONE) | _rights_of(value)
    expires_ms = _time_ms(fields["exp"]) if "exp" in fields else None
    begins_ms = _time_ms(fields.get("nbf", 0))
    if _OF_USERS not in fields:
        return Claims(rights, expires_ms, begins_ms)
    own = fields[_OF_USERS]
    return Claims(rights, expires_ms, begins_ms, str(own["user"]), str(own["seal"]))


def path_of_resource(resource: str) -> Path | None:
    """Return the scope and stream that a claim is about; None if it is about none.

    A `*` at the end, as lists of rights have it, stands for what lies beneath.
    """
    resource = resource.removesuffix("/*")
    if resource in _ALL:
        return ()
    if not resource.startswith(_PREFIX):
        return None
    scope, _, rest = resource.removeprefix(_PREFIX).partition("/")
    kind, _, scope = scope.partition(":")
    if kind != "scope" or not scope:
        return None
    if not rest:
        return (scope,)
    kind, _, name = rest.partition(":")
    if not name or "/" in name or kind not in {"stream", "key-value-table"}:
        return None
    return scope, name if kind == "stream" else name + TABLE_SUFFIX


def _time_ms(seconds: object) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError("no time")
    return int(min(max(seconds, 0), _TIME_MAX_S) * _MS)


def _packed(value: object) -> str:
    return _encoded(json.dumps(value, separators=(",", ":")).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: bytes) -> bytes:
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
