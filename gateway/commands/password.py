"""A password asked for at the terminal, or read from a pipe: never from the command line.

What is on a command line stands in the shell's history, and every user of the machine can see it.
"""

import getpass
import sys

from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.commands.grammar import WrongUse


def read_password() -> str:
    """Return a password typed twice without echo, or the first line of standard input.

    Raises:
        WrongUse: It is empty, or was typed differently the second time.
    """
    if sys.stdin.isatty():
        password = getpass.getpass("password: ")
        if getpass.getpass("again: ") != password:
            raise WrongUse("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise WrongUse("an empty password can never log in")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise WrongUse("the password is not UTF-8") from None
    return password


def read_hash(algorithm: str) -> dict[str, str]:
    """Read a password and return its hash as a request takes it. Raises WrongUse."""
    hashed = PasswordHash.of(read_password(), Algorithm[algorithm.upper()])
    return {"password_hash": str(hashed), "hashing_algorithm": hashed.algorithm.value}
