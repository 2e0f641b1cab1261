"""A password asked for at the terminal, or read from a pipe; from the command line with a warning.

What is on a command line stands in the shell's history, and every user of the machine can see it.
"""

import getpass
import sys

from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.ctl.grammar import WrongUse

SEEN = (
    "everybody on this machine can see a password that is an argument, and it stays in the shell's"
    " history; without it the password is asked for, or read from standard input"
)


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
    return _usable(password)


def _usable(password: str) -> str:
    if not password:
        raise WrongUse("an empty password can never log in")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise WrongUse("the password is not UTF-8") from None
    return password


def read_hash(algorithm: str, given: str | None = None) -> dict[str, str]:
    """Return a password's hash as a request takes it.

    Args:
        algorithm: By which it is hashed, as argon2id.
        given: The password, if it was an argument; else it is read.

    Raises:
        WrongUse: It cannot be a password.
    """
    if given is None:
        password = read_password()
    else:
        password = _usable(given)
        sys.stderr.write(f"hutch: warning: {SEEN}\n")
    hashed = PasswordHash.of(password, Algorithm[algorithm.upper()])
    return {"password_hash": str(hashed), "hashing_algorithm": hashed.algorithm.value}
