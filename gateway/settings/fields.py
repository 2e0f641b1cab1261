"""Types and words to describe settings with: meanings, units and ranges."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from pydantic_settings import NoDecode

KIB: Final = 1024
MIB: Final = 1024 * KIB


def _plain_number(value: object) -> object:
    # A bool is an int to Python, `port = true` would be port 1; and so are " 5" and "1_0".
    if isinstance(value, bool) or (isinstance(value, str) and not _DIGITS.fullmatch(value)):
        raise ValueError("no number")
    return value


_DIGITS: Final = re.compile(r"[+-]?[0-9]+")
Integer = Annotated[int, BeforeValidator(_plain_number)]

HOST_CHARACTERS_MAX: Final = 255
HOST_IN_WORDS: Final = f"a host of 1 to {HOST_CHARACTERS_MAX} printable characters without spaces"


def _host(value: str) -> str:
    if value.startswith("[") and value.endswith("]") and ":" in value:  # IPv6, as in a URL
        value = value[1:-1]
    # It is sent to clients, and printed in lines of words.
    is_host = value.isprintable() and " " not in value and 1 <= len(value) <= HOST_CHARACTERS_MAX
    if not is_host:
        raise ValueError("no host")
    return value


Host = Annotated[str, AfterValidator(_host)]


ADDRESS_IN_WORDS: Final = "HOST or HOST:PORT, an IPv6 address with a port in brackets"
_PORT_MAX: Final = 65_535


def host_and_port(text: str) -> tuple[str, int | None]:
    """Split HOST or HOST:PORT; the port is None if there is none. Raises ValueError."""
    match = _WITH_PORT.fullmatch(text)
    if match is None:
        return _host(text.strip("[]")), None
    port = int(match[2])
    if not 1 <= port <= _PORT_MAX:
        raise ValueError("no port")
    return _host(match[1].strip("[]")), port


_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:]*):([0-9]{1,5})")


def _address(value: str) -> str:
    host_and_port(value)
    return value


Address = Annotated[str, AfterValidator(_address)]


def _path(value: object) -> object:
    # To Python the empty path is the current directory.
    if value == "" or "\0" in str(value):
        raise ValueError("no path")
    return value


SomePath = Annotated[Path, BeforeValidator(_path)]


NAMES_IN_WORDS: Final = 'names with commas between them, or a list of them, as `["a", "b"]`'


def _names(value: object) -> object:
    # A flag and a variable have text alone. A list of TOML or JSON may hold any name.
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [name for name in map(str.strip, value.split(",")) if name]
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("no list of names") from None


def _none_is_empty(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(value):
        raise ValueError("an empty name")
    return value


Names = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(_names), AfterValidator(_none_is_empty)
]


def setting(
    default: object,
    meaning: str,
    *,
    unit: str = "",
    ge: int | None = None,
    le: int | None = None,
    unset: str = "",
    takes: str = "",
) -> Any:  # noqa: ANN401 (as pydantic's Field: it stands for a value of the field's type)
    """Describe a setting.

    Args:
        default: Its value if it is not set.
        meaning: A sentence for the user.
        unit: The unit of its value.
        ge: The least it can be.
        le: The most.
        unset: What the default None means.
        takes: Its valid values, if its type and bounds do not say them.
    """
    words: JsonDict = {"unit": unit, "unset": unset, "takes": takes}
    return Field(default, description=meaning, ge=ge, le=le, json_schema_extra=words)


class SettingsSection(BaseModel):
    """Settings that belong together: a table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)


S = TypeVar("S", bound=SettingsSection)


class OutOfOrder(ValueError):
    """Two settings of a section contradict: the first is above the second."""


def in_order(section: S, *pairs: tuple[str, str]) -> S:
    """Return the section. Raises OutOfOrder for a pair whose first setting is above the second."""
    for low, high in pairs:
        if getattr(section, low) > getattr(section, high):
            raise OutOfOrder(low, high)
    return section


class Needs(ValueError):
    """A setting was given without another one of its section that it needs."""


def close_timeout() -> Any:  # noqa: ANN401 - as `setting`
    """Describe the setting `close_timeout_ms`."""
    return setting(
        2_000,
        "Longest time that a client may take to read what is queued for it at the end, also when "
        "the server stops; then it is cut off.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )


def send_backlog_max(default: int) -> Any:  # noqa: ANN401 - as `setting`
    """Describe the setting `send_backlog_bytes_max`."""
    return setting(
        default,
        "Bytes waiting to be sent to one connection above which it is cut off; not below "
        "send_backlog_pause_bytes.",
        unit="bytes",
        ge=KIB,
        le=1024 * MIB,
    )


class SendBacklogSettings(SettingsSection):
    """Limits of the frames that wait to be sent."""

    close_timeout_ms: Integer = close_timeout()
    send_backlog_pause_bytes: Integer = setting(
        256 * KIB,
        "Bytes waiting to be sent to one connection above which it is neither read nor served.",
        unit="bytes",
        ge=KIB,
        le=64 * MIB,
    )
    send_backlog_bytes_max: Integer = send_backlog_max(16 * MIB)

    @model_validator(mode="after")
    def _check_backlog(self) -> Self:
        return in_order(self, ("send_backlog_pause_bytes", "send_backlog_bytes_max"))
