"""The settings of the port for the early dialect of Pravega's wire protocol."""

from typing import Annotated, Final

from pydantic import AfterValidator

from gateway.settings.fields import HOST_IN_WORDS, MIB, Host, Integer, Section, setting

_PART_BYTES_MIN: Final = 64


def _part_bytes(value: int) -> int:
    # A part has a head of nine bytes; 0 is for none at all.
    if 0 < value < _PART_BYTES_MIN:
        raise ValueError("too small")
    return value


class EarlySettings(Section):
    """The listener for the early dialect; limits of its connections are those of `wire`."""

    host: Host = setting(
        "localhost",
        "Address that the port of the early dialect listens on. The dialect has no login: every "
        "client that reaches the port reads and writes.",
        takes=HOST_IN_WORDS,
    )
    port: Integer | None = setting(
        None,
        "Port for clients of the early dialect of Pravega's wire protocol (docs/pravega-early.md); "
        "0 lets the system pick one.",
        ge=0,
        le=65_535,
        unset="no such port",
    )
    trusts_everyone: bool = setting(
        default=False,
        meaning="Whether the port may be opened beside one that asks for tokens. Every client that "
        "reaches it, so every process of this machine, then reads and writes the same segments "
        "without one.",
    )
    makes_segments: bool = setting(
        default=True,
        meaning="Whether a set-up of an appender makes its segment if there is none.",
    )
    part_bytes_max: Annotated[Integer, AfterValidator(_part_bytes)] = setting(
        0,
        "Largest frame that the server sends: a larger message is cut into partial ones. 0 for "
        "never.",
        unit="bytes",
        ge=0,
        le=16 * MIB,
        takes=f"a whole number from {_PART_BYTES_MIN} to {16 * MIB}, or 0",
    )
