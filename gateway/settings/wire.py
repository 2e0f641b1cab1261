"""The settings of the ports at which clients reach the segment store itself."""

from typing import Annotated, Final, Self

from pydantic import AfterValidator, model_validator

from gateway.settings.fields import (
    ADDRESS_IN_WORDS,
    HOST_IN_WORDS,
    MIB,
    Address,
    Host,
    Integer,
    SendBacklogSettings,
    SettingsSection,
    SomePath,
    in_order,
    send_backlog_max,
    setting,
)


class WireSettings(SendBacklogSettings):
    """The listener for Pravega's wire protocol and the limits of its connections."""

    host: Host = setting(
        "localhost",
        "Address that the ports of the wire protocol and of the controller listen on. Without "
        "users or tokens keep it among machines that you trust.",
        takes=HOST_IN_WORDS,
    )
    port: Integer | None = setting(
        None,
        "Port for clients of Pravega's wire protocol; 0 lets the system pick one.",
        ge=0,
        le=65_535,
        unset="no such port for `hutch serve`, 12345 for `hutch store serve`",
    )
    tls: bool = setting(
        False,  # noqa: FBT003 (it is the default of a field)
        "Whether clients of that port come over TLS, with the certificate of [tls]. With "
        "`hutch store serve` they do where a certificate is given, whatever this says.",
    )
    controller_port: Integer | None = setting(
        None,
        "Port at which Pravega's clients find scopes and streams, by gRPC; 0 lets the system pick "
        "one. The address is that of wire.host. It needs `pip install '.[pravega]'` in the folder "
        "of the sources.",
        ge=0,
        le=65_535,
        unset="no such port",
    )
    allow_plain_passwords: bool = setting(
        False,  # noqa: FBT003 (the same)
        "Whether the controller's port takes passwords in clear where other machines reach it, or "
        "where a certificate is given and it does not use it.",
    )
    advertise: Address | None = setting(
        None,
        "Address at which the controller tells clients to reach the wire protocol: HOST or "
        "HOST:PORT.",
        unset="wire.host, or localhost where that is every address, and the port there",
        takes=ADDRESS_IN_WORDS,
    )
    retention_interval_s: Integer = setting(
        1_800,
        "How often the controller looks at the streams that have a policy of retention. It "
        "truncates them at places where they ended at such a time.",
        unit="seconds",
        ge=1,
        le=86_400,
    )
    watermark_interval_s: Integer = setting(
        10,
        "How often the controller marks in a stream how far in time its writers are.",
        unit="seconds",
        ge=1,
        le=86_400,
    )
    scaling_minute_ms: Integer = setting(
        60_000,
        "How long a minute takes where a policy of scaling speaks of minutes: rates over 2 to 20 "
        "of them, 10 of them without a change of a new segment. Less is for trying a policy out.",
        unit="milliseconds",
        ge=50,
        le=600_000,
    )
    users_file: SomePath | None = setting(
        None,
        "File of the users of `hutch store serve`: a line NAME:HASH:RESOURCE,RIGHT for each, with "
        "a hash that `hutch hash-password` prints. They log in to the controller, which gives "
        "them tokens. `hutch serve` does not look at it: its users are those of the streams.",
        unset="no users: every client may do everything",
    )
    token_key_file: SomePath | None = setting(
        None,
        "File with the key of the tokens that clients of the wire protocol send with each request. "
        "The key is its content without the line's end, at best 64 random characters.",
        unset="`token.key` in the data directory, made at the first start; `hutch store serve` "
        "without users asks for no tokens, unless the directory holds streams",
    )
    first_frame_timeout_ms: Integer = setting(
        10_000,
        "Longest wait for the first frame of a client.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )
    unacknowledged_appends_max: Integer = setting(
        50_000,
        "Appends of one connection that may wait for the store before the server stops reading "
        "from it.",
        ge=1,
        le=10_000_000,
    )
    unacknowledged_appends_resume: Integer = setting(
        40_000,
        "Reading begins again when no more than this many appends wait; not above "
        "unacknowledged_appends_max.",
        ge=0,
        le=10_000_000,
    )
    unfinished_bytes_max: Integer = setting(
        33 * MIB,
        "Largest frame of a client, together with the block that it ends: what one connection can "
        "make the server keep of an append that is not complete. More ends the connection.",
        unit="bytes",
        ge=MIB,
        le=33 * MIB,
    )
    set_ups_max: Integer = setting(
        1_000,
        "Writers that one connection may have set up at a time; one more is refused.",
        ge=1,
        le=1_000_000,
    )
    reads_max: Integer = setting(
        1_000,
        "Reads of one connection that may wait for data or for their turn before the server stops "
        "reading from it.",
        ge=1,
        le=100_000,
    )
    send_backlog_bytes_max: Integer = send_backlog_max(64 * MIB)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        return in_order(
            self,
            ("unacknowledged_appends_resume", "unacknowledged_appends_max"),
        )


_PART_BYTES_MIN: Final = 64


def _part_bytes(value: int) -> int:
    # A part has a head of nine bytes; 0 is for none at all.
    if 0 < value < _PART_BYTES_MIN:
        raise ValueError("too small")
    return value


class EarlySettings(SettingsSection):
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
