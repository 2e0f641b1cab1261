"""Passwords: kept out of every `repr`, and where one is in a file or a variable, read at its use.

Workers open connections too, so that a file or a variable is read on each of them.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pyspark_hutch.options.errors import Unfit, WrongOption, shown
from pyspark_hutch.options.kinds import ValueKind

PASSWORD_BYTES_MAX: Final = 4_096  # what is longer is something else, as a file named by mistake


@dataclass(frozen=True, slots=True)
class Password:
    """A password, or where it is to be read."""

    source: Literal["password", "passwordFile", "passwordEnv"]
    text: str = field(repr=False)


def is_password(text: str) -> bool:
    """Return whether a text can be a password: the protocol ends one at a NUL, and wants UTF-8."""
    try:
        held = text.encode()
    except UnicodeEncodeError:
        return False
    return 0 < len(held) <= PASSWORD_BYTES_MAX and "\0" not in text


def password_of(password: Password) -> str:
    """Return the password, read here and now.

    Raises:
        WrongOption: A file or a variable holds none. Their contents are not shown.
    """
    if password.source == "password":
        return password.text
    if password.source == "passwordFile":
        return _password_in_file(password.text)
    found = os.environ.get(password.text, "")
    if not is_password(found):
        raise WrongOption(
            "option passwordEnv: the environment variable that it names holds no password here; "
            "it must be set on the driver and on each worker"
        )
    return found


def _password_in_file(path: str) -> str:
    named = f"option passwordFile={shown(path)}"
    try:
        with Path(path).open("rb") as file:
            held = file.read(PASSWORD_BYTES_MAX + len("\r\n") + 1)
    except OSError as error:
        raise WrongOption(f"{named}: cannot be read here: {error.strerror}") from None
    try:
        text = held.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:  # whose own text would show what is in the file
        text = ""
    if not is_password(text):
        raise WrongOption(f"{named}: holds no password of 1 to {PASSWORD_BYTES_MAX:,} bytes")
    return text


def _password(text: str) -> str:
    if not is_password(text):
        raise Unfit("")
    return text


def _variable(text: str) -> str:
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,254}", text):
        raise Unfit("")
    return text


PASSWORD: Final = ValueKind(f"1 to {PASSWORD_BYTES_MAX:,} bytes of text", _password)
VARIABLE: Final = ValueKind("the name of an environment variable", _variable)
