"""Logging in: from the data of a mechanism to the name of a user, or to a refusal.

The mechanisms are SASL's and belong to no protocol. What a later one needs to know of the peer
(its certificate, what a proxy says of it) becomes a field of `Peer`; a later judge of passwords (a
token, a directory) stands beside `PasswordCheck`.

Some refusals cost nothing: an unknown mechanism, data that are not the mechanism's, no password, a
certificate that names no user. They guess at nothing, so they count towards no limit. A password
that was compared and is wrong does, for its user and address alone; and so does one for which there
was no room to be compared, since it is none of those that are known to be right.

A password that was not compared may be right. Every protocol tells its client so, in an answer of
another meaning than that to a wrong one: the client may try again.

Source: RFC 4616 (PLAIN), RFC 4505 (ANONYMOUS), RFC 4422 (EXTERNAL);
rabbit_auth_mechanism_amqplain.erl.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.credentials import credentials_of
from gateway.broker.access.model import User
from gateway.broker.access.password_check import PasswordCheck, TooManyWait
from gateway.broker.access.refusals import Refusals, RefusedLogin, in_command
from gateway.network.addresses import source_of

GUEST: Final = "guest"
UNREAD: Final = "busy: the password was not compared, try again in some seconds"
"""Text for a client whose refusal is unread."""
RETRY_AFTER_S: Final = 5
"""Seconds, about as many as a full queue of passwords takes."""


class RefusalReason(enum.Enum):
    """Reason why a login is refused."""

    MECHANISM = "the mechanism is not offered"
    MALFORMED = "the data is not what the mechanism sends"
    CREDENTIALS = "unknown user or wrong password"
    """The client is not told which of the two."""
    LOOPBACK_ONLY = "this user must come from the server's machine"
    """Told only to a client that knows the password."""
    TOO_MANY = "too many passwords of this user from there were wrong"
    BUSY = "busy: too many passwords wait to be compared"

    @property
    def is_unread(self) -> bool:
        """Return whether the password was not compared, and so may be right."""
        return self in (RefusalReason.TOO_MANY, RefusalReason.BUSY)


class LoginRefused(Exception):
    """The login is refused."""

    def __init__(self, reason: RefusalReason, user: str = "") -> None:
        super().__init__(reason.value, user)
        self.reason = reason
        self.user = user


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side, as far as mechanisms look at it."""

    is_loopback: bool
    """True if it is on this machine."""
    address: str = ""
    """Without the port."""
    protocol: str = "stream"
    """Its protocol, by which attempts to log in are counted."""
    certificate_user: str | None = None
    """The user of its certificate, empty if none; None if certificates are not asked for."""
    shown: str = ""
    """Address and port for log lines, where they are known."""


class Credentials(NamedTuple):
    """A user name that a client gives; the password is None where none is asked for."""

    name: str
    password: bytes | None


Mechanism = Callable[[bytes, Peer], Credentials]
"""From the data that the peer sends, and the facts known of it. Raises LoginRefused."""


class Users(Protocol):
    """Users that can log in."""

    def user(self, name: str) -> User | None:
        """Return a user, None if there is none of that name."""
        ...


class Authentication:
    """Logs users in by the mechanisms that are configured.

    Attributes:
        refusals: Writes the lines about refusals.
    """

    def __init__(
        self,
        access: Users,
        passwords: PasswordCheck,
        attempts: AttemptLedger,
        refusals: Refusals,
        *,
        guest_loopback_only: bool = True,
        anonymous: str | None = None,
        users_file: str = "",
    ) -> None:
        """Take the parts that logging in needs.

        Args:
            access: Knows the users.
            passwords: Compares passwords.
            attempts: Counts logins and refusals.
            refusals: Limits the lines about that.
            guest_loopback_only: Whether guest must come from this machine.
            anonymous: The user that ANONYMOUS logs in; None does not offer it.
            users_file: The setting of the file that has the users; empty: commands change them.
        """
        self._access = access
        self._passwords = passwords
        self._attempts = attempts
        self.refusals = refusals
        self._guest_loopback_only = guest_loopback_only
        self._users_file = users_file
        self._mechanisms: dict[str, Mechanism] = {"PLAIN": _plain, "AMQPLAIN": _amqplain}
        if anonymous is not None:
            self._mechanisms["ANONYMOUS"] = lambda _data, _peer: Credentials(anonymous, None)
        self._with_certificates: dict[str, Mechanism] = {**self._mechanisms, "EXTERNAL": _external}

    def _offered(self, peer: Peer) -> dict[str, Mechanism]:
        return self._mechanisms if peer.certificate_user is None else self._with_certificates

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """Return those on offer, the usual one first."""
        return tuple(self._offered(peer))

    async def log_in(self, mechanism: str, data: bytes, peer: Peer) -> str:
        """Return the user that logs in.

        Args:
            mechanism: As the peer names it.
            data: What it sent for that.
            peer: Where it comes from.

        Raises:
            LoginRefused: Says why.
        """
        source = source_of(peer.address)
        try:
            name = await self._judge(mechanism, data, peer, source)
        except LoginRefused as refused:
            self._attempts.failed(source, peer.protocol, is_unread=refused.reason.is_unread)
            helps = self._helps(refused, mechanism)
            self.refused(peer, refused.reason.value, helps, refused.user, mechanism)
            raise
        self._attempts.succeeded(source, peer.protocol)
        return name

    def refused(
        self, peer: Peer, reason: str, helps: str, user: str = "", mechanism: str = ""
    ) -> None:
        """Log that a client is not let in; see `RefusedLogin`."""
        RefusedLogin(
            address=peer.address,
            peer=peer.shown,
            protocol=peer.protocol,
            user=user,
            mechanism=mechanism,
            reason=reason,
            helps=helps,
        ).tell(self.refusals.say)

    def _helps(self, refused: LoginRefused, mechanism: str) -> str:
        """Return the setting or the command that lets such a login pass."""
        name, reason = refused.user, refused.reason
        if reason is RefusalReason.MECHANISM:
            return _OFFERED_BY.get(mechanism, f"{' or '.join(self._mechanisms)} is offered")
        if reason is RefusalReason.LOOPBACK_ONLY and name == GUEST:
            return "users.guest_loopback_only"
        if reason is not RefusalReason.CREDENTIALS:
            return _HELPS[reason]
        if not name:
            return "the client has to send a user's name, or show a certificate that has one"
        known = "change_password" if self._access.user(name) is not None else "add_user"
        return self._users_file or f"hutch ctl {known} {in_command(name)}"

    async def _judge(self, mechanism: str, data: bytes, peer: Peer, source: str) -> str:
        read = self._offered(peer).get(mechanism)
        if read is None:
            raise LoginRefused(RefusalReason.MECHANISM)
        name, password = read(data, peer)
        if password is not None:
            await self._compare(name, password, source)
        user = self._access.user(name)
        if user is None:  # named without a password, or deleted in this very moment
            raise LoginRefused(RefusalReason.CREDENTIALS, name)
        is_local = user.loopback_only or (name == GUEST and self._guest_loopback_only)
        if is_local and not peer.is_loopback:
            raise LoginRefused(RefusalReason.LOOPBACK_ONLY, name)
        return name

    async def _compare(self, name: str, password: bytes, source: str) -> None:
        """Return if a password is right. Raises LoginRefused."""

        def find() -> User | None:
            return self._access.user(name)

        if not password:  # never, whatever hash there is
            raise LoginRefused(RefusalReason.CREDENTIALS, name)
        if self._passwords.is_known(find, name, password, source):
            return  # before any limit: others of this address may have failed at this user
        if self._attempts.is_over(source, name):
            raise LoginRefused(RefusalReason.TOO_MANY, name)
        try:
            is_right = await self._passwords.check(find, name, password, source)
        except TooManyWait:
            # A guess as well: one that is known from elsewhere would have been let in.
            self._attempts.guessed_wrong(source, name)
            raise LoginRefused(RefusalReason.BUSY, name) from None
        if not is_right:
            self._attempts.guessed_wrong(source, name)
            raise LoginRefused(RefusalReason.CREDENTIALS, name)


_OFFERED_BY: Final = {"ANONYMOUS": "users.anonymous", "EXTERNAL": "tls.ca"}
"""Settings that let clients log in by a mechanism."""
_HELPS: Final = {
    RefusalReason.MALFORMED: "the client has to send what its mechanism asks for",
    RefusalReason.LOOPBACK_ONLY: "loopback_only of this user",
    RefusalReason.TOO_MANY: "users.failed_logins_a_second_max",
    RefusalReason.BUSY: "the client has to try again",
}


def _plain(data: bytes, _peer: Peer) -> Credentials:
    match data.split(b"\x00"):
        case [b"", raw_name, password]:
            return Credentials(raw_name.decode("utf-8", "surrogateescape"), password)
    raise LoginRefused(RefusalReason.MALFORMED)


def _amqplain(data: bytes, _peer: Peer) -> Credentials:
    try:
        name, password = credentials_of(data)
    except ValueError:
        raise LoginRefused(RefusalReason.MALFORMED) from None
    return Credentials(name.decode("utf-8", "surrogateescape"), password)


def _external(_data: bytes, peer: Peer) -> Credentials:
    """Take the user of the certificate: another name that is sent counts for nothing."""
    if not peer.certificate_user:
        raise LoginRefused(RefusalReason.CREDENTIALS)
    return Credentials(peer.certificate_user, None)
