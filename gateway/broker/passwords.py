"""Password hashes as RabbitMQ writes them, so that its users can be brought along.

    base64( salt: 4 bytes | digest of (salt, password in UTF-8) )

There is no stretching: whoever gets the users file can try many passwords a second.

Source: RabbitMQ, "Credentials and Passwords"; rabbit_password.erl.
"""

import base64
import enum
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

SALT_BYTES: Final = 4


class Algorithm(enum.Enum):
    """A way to hash, by the name that RabbitMQ's definitions give it."""

    SHA256 = "rabbit_password_hashing_sha256"
    SHA512 = "rabbit_password_hashing_sha512"
    MD5 = "rabbit_password_hashing_md5"

    def digest(self, salt: bytes, password: bytes) -> bytes:
        """Hash a salted password."""
        name = self.name.lower()
        return hashlib.new(name, salt + password, usedforsecurity=name != "md5").digest()


class UnusableHash(ValueError):
    """A password hash that cannot be what it says it is."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """One user's password, as far as it is kept."""

    algorithm: Algorithm
    salt: bytes
    digest: bytes

    @classmethod
    def parse(cls, text: str, algorithm: Algorithm | None = None) -> "PasswordHash":
        """Read a hash as RabbitMQ exports it.

        Args:
            text: Base64 of salt and digest.
            algorithm: Where it is not known, the size of the digest tells it.

        Raises:
            UnusableHash: It is not base64, or its size does not fit the algorithm.
        """
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error, and its parent for other letters than ASCII's
            raise UnusableHash("is not base64") from None
        size = len(content) - SALT_BYTES
        fitting = {len(known.digest(b"", b"")): known for known in Algorithm}.get(size)
        if fitting is None or algorithm not in (None, fitting):
            wanted = "any hash" if algorithm is None else algorithm.value
            raise UnusableHash(f"has {len(content)} bytes, which {wanted} does not have")
        return cls(fitting, content[:SALT_BYTES], content[SALT_BYTES:])

    @classmethod
    def of(cls, password: str, algorithm: Algorithm = Algorithm.SHA256) -> "PasswordHash":
        """Hash a password with a new salt."""
        salt = secrets.token_bytes(SALT_BYTES)
        return cls(algorithm, salt, algorithm.digest(salt, password.encode()))

    def matches(self, password: bytes) -> bool:
        """Tell whether this is the password, in a time that does not tell how nearly it is."""
        return hmac.compare_digest(self.algorithm.digest(self.salt, password), self.digest)

    def __str__(self) -> str:
        return base64.b64encode(self.salt + self.digest).decode("ascii")
