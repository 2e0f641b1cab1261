"""Password hashes: RabbitMQ's, so that its users can be brought along, and one that is slow.

    RabbitMQ's   base64( salt: 4 bytes | digest of (salt, password in UTF-8) )
    argon2id     $argon2id$v=19$m=19456,t=2,p=1$salt$digest

RabbitMQ's are not stretched: with a stolen one, many millions of passwords a second can be tried.
With argon2id it is some tens, which is why it is used for new ones; checking a password takes a
thread as long, too.

Source: RabbitMQ, "Credentials and Passwords"; rabbit_password.erl. RFC 9106; OWASP's minimum.
"""

import base64
import enum
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

import argon2

SALT_BYTES: Final = 4

_ARGON2: Final = argon2.PasswordHasher(
    time_cost=2, memory_cost=19 * 1024, parallelism=1, hash_len=32, salt_len=16
)
_MEMORY_KIB_MAX: Final = 64 * 1024
_TIME_COST_MAX: Final = 3
_LANES_MAX: Final = 4
"""Limits for a hash that was made elsewhere, since each check of a password pays its cost. They are
what RFC 9106 recommends where memory is scarce. A hash that a user has already stays in use."""


OF_THE_DOCUMENTATION: Final = frozenset(
    (
        "what-hutch-hash-password-prints",
        "Ot7iiVZXYHRsswWgP7nbcSp8Dz0VXU5d6Ax+TS7gZsdAhgac",  # of "secret", until it was replaced
    )
)
"""Texts that docs/operations.md has, or had, in the place of a hash."""


class Algorithm(enum.Enum):
    """A way to hash, by the name that RabbitMQ's definitions give it; argon2id's is ours."""

    SHA256 = "rabbit_password_hashing_sha256"
    SHA512 = "rabbit_password_hashing_sha512"
    MD5 = "rabbit_password_hashing_md5"
    ARGON2ID = "hutch_password_hashing_argon2id"

    def digest(self, salt: bytes, password: bytes) -> bytes:
        """Hash a salted password in RabbitMQ's way; not for argon2id."""
        assert self is not Algorithm.ARGON2ID
        name = self.name.lower()
        return hashlib.new(name, salt + password, usedforsecurity=name != "md5").digest()


RABBITMQ_ALGORITHMS: Final = (Algorithm.SHA256, Algorithm.SHA512, Algorithm.MD5)
"""Those that RabbitMQ can read."""


class UnusableHash(ValueError):
    """A password hash that is not of the form that it names."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """One user's password, as far as it is kept: the text of a hash that was checked."""

    algorithm: Algorithm
    text: str = field(repr=False)

    @classmethod
    def parse(cls, text: str, algorithm: Algorithm | None = None) -> "PasswordHash":
        """Read a hash as RabbitMQ exports it, or one of argon2id.

        Args:
            text: Base64 of salt and digest, or what begins with `$argon2id$`.
            algorithm: Where it is not known, the beginning or the size tells it.

        Raises:
            UnusableHash: It is not base64, its size does not fit the algorithm, checking it would
                cost too much, or it is that of the documentation.
        """
        if text in OF_THE_DOCUMENTATION:
            raise UnusableHash("is that of the documentation: replace it by one of your own")
        if text.startswith("$") or algorithm is Algorithm.ARGON2ID:
            if algorithm not in (None, Algorithm.ARGON2ID):
                raise UnusableHash(f"is not what {algorithm.value} makes")
            _check_argon2(text)
            return cls(Algorithm.ARGON2ID, text)
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error, and its parent for other letters than ASCII's
            raise UnusableHash("is not base64") from None
        size = len(content) - SALT_BYTES
        fitting = {len(known.digest(b"", b"")): known for known in RABBITMQ_ALGORITHMS}.get(size)
        if fitting is None or algorithm not in (None, fitting):
            wanted = "any hash" if algorithm is None else algorithm.value
            raise UnusableHash(f"has {len(content)} bytes, which does not fit {wanted}")
        return cls(fitting, text)

    @classmethod
    def of(cls, password: str, algorithm: Algorithm = Algorithm.SHA256) -> "PasswordHash":
        """Hash a password with a new salt; argon2id takes some tens of milliseconds.

        Bytes that are no UTF-8 are those that the text stands for, as in a name.
        """
        raw = password.encode("utf-8", "surrogateescape")
        if algorithm is Algorithm.ARGON2ID:
            return cls(algorithm, _ARGON2.hash(raw))
        salt = secrets.token_bytes(SALT_BYTES)
        content = salt + algorithm.digest(salt, raw)
        return cls(algorithm, base64.b64encode(content).decode("ascii"))

    def matches(self, password: bytes) -> bool:
        """Return whether this is the password, in a time that does not tell how nearly it is."""
        if self.algorithm is Algorithm.ARGON2ID:
            try:
                return _ARGON2.verify(self.text, password)
            except argon2.exceptions.VerificationError:
                return False
        content = base64.b64decode(self.text)
        digest = self.algorithm.digest(content[:SALT_BYTES], password)
        return hmac.compare_digest(digest, content[SALT_BYTES:])

    def __str__(self) -> str:
        return self.text


def decoy() -> PasswordHash:
    """Return a hash that no password has, as costly as a new one."""
    salt, digest = (base64.b64encode(secrets.token_bytes(n)).rstrip(b"=") for n in (16, 32))
    asked = f"m={_ARGON2.memory_cost},t={_ARGON2.time_cost},p={_ARGON2.parallelism}"
    text = f"$argon2id$v=19${asked}${salt.decode()}${digest.decode()}"
    return PasswordHash(Algorithm.ARGON2ID, text)


def _check_argon2(text: str) -> None:
    try:
        asked = argon2.extract_parameters(text)
    except (argon2.exceptions.InvalidHashError, ValueError):
        raise UnusableHash("is no hash of argon2id") from None
    if asked.type is not argon2.Type.ID:
        raise UnusableHash("is no hash of argon2id")
    for value, most, what in (
        (asked.memory_cost, _MEMORY_KIB_MAX, "KiB of memory"),
        (asked.time_cost, _TIME_COST_MAX, "passes"),
        (asked.parallelism, _LANES_MAX, "lanes"),
    ):
        if not 1 <= value <= most:
            raise UnusableHash(f"asks for {value} {what}, where at most {most} are allowed")
