"""The settings: every one with its meaning, unit, default and range.

Nothing here is global, and nothing reads a file or the environment (`sources` does): each
part of the server is handed the section it needs.
"""

import enum
import logging
from inspect import get_annotations
from pathlib import Path
from typing import Final, Self, cast

from annotated_types import Ge, Le
from pydantic import BaseModel, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.settings.cluster import ClusterSettings
from gateway.settings.fields import (
    HOST_IN_WORDS,
    KIB,
    MIB,
    Host,
    Integer,
    SendBacklogSettings,
    SomePath,
    close_timeout,
    in_order,
)
from gateway.settings.fields import SettingsSection as _Section
from gateway.settings.fields import setting as _setting
from gateway.settings.mewbase import MewbaseSettings
from gateway.settings.tls import PortTlsSettings
from gateway.settings.wire import EarlySettings, WireSettings
from store.api import Durability

ENVIRONMENT_PREFIX: Final = "HUTCH_"


class LogFormat(enum.Enum):
    """Form of a line of the logs."""

    TEXT = "text"
    JSON = "json"


class LogLevel(enum.Enum):
    """The least important lines that are still written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """The level as the logging module counts it."""
        return logging.getLevelNamesMapping()[self.name]


class StreamSettings(SendBacklogSettings):
    """The listener for the stream protocol and the limits of its connections."""

    host: Host = _setting(
        "localhost",
        "Address that the server listens on, or a name, with all its addresses: localhost is "
        "127.0.0.1 and, if the machine has it, ::1. 0.0.0.0 is all of IPv4, :: all of both.",
        takes=HOST_IN_WORDS,
    )
    port: Integer = _setting(
        5552, "Port that the server listens on; 0 lets the system pick one.", ge=0, le=65_535
    )
    advertised_host: Host = _setting(
        "localhost",
        "Host name that clients are told to connect to; it must reach this server.",
        takes=HOST_IN_WORDS,
    )
    advertised_port: Integer | None = _setting(
        None,
        "Port that clients are told to connect to.",
        ge=1,
        le=65_535,
        unset="the port listened on",
    )
    frame_bytes_max: Integer = _setting(
        MIB,
        "Largest frame that a client may send once its connection is open; also the bound of a "
        "chunk. 0 proposes no limit to clients, but frames and chunks above 16 MiB are refused all "
        "the same.",
        unit="bytes",
        ge=0,
        le=16 * MIB,
    )
    initial_frame_bytes_max: Integer = _setting(
        8 * KIB,
        "Largest frame before the connection is open, which any client can make the server buffer.",
        unit="bytes",
        ge=KIB,
        le=MIB,
    )
    heartbeat_s: Integer = _setting(
        60,
        "Heartbeat that the server proposes; the client's answer counts. 0 proposes none.",
        unit="seconds",
        ge=0,
        le=4_294_967,
    )
    handshake_step_timeout_ms: Integer = _setting(
        10_000,
        "Longest stay in one step of the handshake.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )
    close_timeout_ms: Integer = close_timeout()
    deleted_file_timeout_ms: Integer = _setting(
        10_000,
        "A client that takes no byte for so long, and at most twice that, of a chunk whose file is "
        "deleted is cut off, since it keeps the file's space.",
        unit="milliseconds",
        ge=10,
        le=3_600_000,
    )
    refusal_delay_ms: Integer = _setting(
        3_000,
        "How long a refused login waits for its answer: slows the guessing of passwords.",
        unit="milliseconds",
        ge=0,
        le=60_000,
    )
    consumer_update_timeout_ms: Integer = _setting(
        60_000,
        "Longest wait for a client's answer that its single active consumer starts or steps down; "
        "then its connection is ended and the next consumer of the group takes over.",
        unit="milliseconds",
        ge=10,
        le=3_600_000,
    )
    connections_max: Integer = _setting(
        65_536,
        "Connections at a time; one more is refused when it opens the virtual host.",
        ge=1,
        le=1_000_000,
    )
    unconfirmed_entries_max: Integer = _setting(
        50_000,
        "Entries of one connection that may wait for their confirm before the server stops "
        "reading from it.",
        unit="entries",
        ge=1,
        le=10_000_000,
    )
    unconfirmed_entries_resume: Integer = _setting(
        40_000,
        "Reading begins again when no more than this many entries wait; not above "
        "unconfirmed_entries_max.",
        unit="entries",
        ge=0,
        le=10_000_000,
    )
    sub_batch_uncompressed_bytes_max: Integer = _setting(
        64 * MIB,
        "Largest sub-batch before compression, by what its header announces.",
        unit="bytes",
        ge=0,
        le=2**31 - 1,
    )
    busy_poll_us: Integer = _setting(
        50,
        "How long the server looks for more to do before it sleeps, after it had something to do: "
        "a client that waits for each answer gets it sooner. Without such clients it soon stops "
        "doing so.",
        unit="microseconds",
        ge=0,
        le=1_000,
    )
    rest_us: Integer = _setting(
        100,
        "How long the server rests, at the end of what it had to do, before it looks for more. It "
        "does so where many messages come by themselves, since several at once cost little more "
        "than one; where clients wait for answers it finds that out, and does not. 0 for never.",
        unit="microseconds",
        ge=0,
        le=1_000,
    )
    receive_buffer_bytes: Integer = _setting(
        MIB,
        "The one buffer that all connections are read into, in turn: larger is faster for large "
        "publishers.",
        unit="bytes",
        ge=64 * KIB,
        le=16 * MIB,
    )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        return in_order(self, ("unconfirmed_entries_resume", "unconfirmed_entries_max"))


class ManagementSettings(_Section):
    """The management HTTP API."""

    enabled: bool = _setting(
        True,  # noqa: FBT003 (it is the default of a field)
        "Whether the API is served.",
    )
    host: Host | None = _setting(
        None,
        "Address that the API listens on. Passwords cross it as they are: keep it among machines "
        "that you trust.",
        unset="localhost",
        takes=HOST_IN_WORDS,
    )
    port: Integer | None = _setting(
        None,
        "Port of the API; 0 lets the system pick one. A port that is given has to be free.",
        ge=0,
        le=65_535,
        unset="15672, and no API with a warning if that is taken",
    )


class StoreSettings(_Section):
    """The data directory, and the promise of a confirm."""

    data_directory: SomePath = _setting(
        Path("data"), "Directory of everything stored, made if missing; one server at a time."
    )
    must_exist: bool = _setting(
        False,  # noqa: FBT003 (it is the default of a field)
        "Refuse to begin a new store: the server opens the existing one or does not start. For "
        "disks that may not be mounted; set it after the first start.",
    )
    durability: Durability = _setting(
        Durability.DISK,
        "What a confirmed message has survived. disk: it has been synced, and survives a power "
        "cut. interval: it is synced at most interval_ms later. os: the operating system has it. "
        "All three survive the death of the server's process.",
    )
    interval_ms: Integer = _setting(
        100,
        "Longest time to the sync under durability interval.",
        unit="milliseconds",
        ge=1,
        le=60_000,
    )
    data_file_bytes: Integer = _setting(
        64 * MIB,
        "Size of the files that a stream's data is kept in.",
        unit="bytes",
        ge=16 * MIB,
        le=4096 * MIB,
    )


class StreamsSettings(_Section):
    """Limits on all that the server keeps for each stream."""

    publisher_references_max: Integer = _setting(
        10_000,
        "Named publishers of one stream whose last publishing id is remembered for deduplication; "
        "the least recently used beyond that are forgotten, and logged.",
        ge=1,
        # They are stored as one batch: 60,000 x (1 + 255 + 8) bytes are 15.1 of the 16 MiB that
        # TABLE_BATCH_BYTES_MAX allows.
        le=60_000,
    )
    offset_references_max: Integer = _setting(
        10_000,
        "References under which consumers may have offsets stored in one stream; beyond that the "
        "one that was stored longest ago is forgotten, and logged. A durable subscription of "
        "mewbase that a connection has is never that one.",
        ge=1,
        le=1_000_000,
    )
    retention_interval_s: Integer = _setting(
        60,
        "How often every stream is looked at for records that are too many or too old. Streams "
        "that are written to are looked at more often.",
        unit="seconds",
        ge=1,
        le=86_400,
    )
    super_stream_partitions_max: Integer = _setting(
        1_000,
        "Partitions that a super stream may have; creating it with more is refused.",
        ge=1,
        # Each is a few rows of one write, which TABLE_BATCH_BYTES_MAX bounds.
        le=10_000,
    )


class PipelineSettings(_Section):
    """Limits on the records that Spark and other pipelines stage before they commit."""

    staged_bytes_max: Integer = _setting(
        10 * 1024 * MIB,
        "Bytes that one user may have staged and not committed; staging more is refused.",
        unit="bytes",
        ge=MIB,
        le=2**50,
    )
    stage_expiry_s: Integer = _setting(
        86_400,
        "How long staged records are kept after they were last added to; those of a commit stay "
        "until they are in their streams.",
        unit="seconds",
        ge=1,
        le=31_536_000,
    )
    sink_expiry_s: Integer = _setting(
        7_776_000,
        "How long the last batch of a sink is remembered after its commit. A query that is "
        "repeated later than that writes its batch again.",
        unit="seconds",
        ge=3_600,
        le=315_360_000,
    )


class UsersSettings(_Section):
    """The first users, and rules of logging in."""

    file: SomePath | None = _setting(
        None,
        "TOML or JSON file with the users of the very first start, after which users are kept in "
        "the store and the file is not looked at; RabbitMQ's exported definitions will do, and "
        "`hutch hash-password` makes the hashes for a new one.",
        unset="the one user guest with the password guest",
    )
    guest_loopback_only: bool = _setting(
        True,  # noqa: FBT003 (it is the default of a field)
        "The user guest may log in from this machine only. Set it to false where guest must come "
        "from outside, as in a container.",
    )
    anonymous: str | None = _setting(
        None,
        "User that clients become by logging in with ANONYMOUS, without a password. If that is "
        "guest, guest_loopback_only counts too.",
        unset="ANONYMOUS is not offered",
    )
    failed_logins_a_second_max: Integer = _setting(
        100,
        "Wrong passwords of one user that are compared in a second from one address. Further ones "
        "in that second are refused unread, except one that was right from there within an hour. "
        "An address of IPv6 stands for its network of 64 bits. 0 sets no limit.",
        ge=0,
        le=1_000_000,
    )


class DefinitionsSettings(_Section):
    """Objects to create at the first start."""

    file: SomePath | None = _setting(
        None,
        "File with definitions as RabbitMQ exports them. They are imported at the first start, "
        "before clients are served. Later starts ignore the file; use `hutch import`. Its users "
        "take the place of the user guest.",
        unset="nothing is imported",
    )


class LogsSettings(_Section):
    """The logs, on standard error."""

    level: LogLevel = _setting(LogLevel.INFO, "Least important lines that are still written.")
    format: LogFormat = _setting(
        LogFormat.TEXT, "text: one line for a person; json: the same as one object a line."
    )


class Settings(BaseSettings):
    """All settings, by section."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    stream: StreamSettings = StreamSettings()
    tls: PortTlsSettings = PortTlsSettings()
    management: ManagementSettings = ManagementSettings()
    store: StoreSettings = StoreSettings()
    cluster: ClusterSettings = ClusterSettings()
    wire: WireSettings = WireSettings()
    early: EarlySettings = EarlySettings()
    mewbase: MewbaseSettings = MewbaseSettings()
    streams: StreamsSettings = StreamsSettings()
    pipeline: PipelineSettings = PipelineSettings()
    users: UsersSettings = UsersSettings()
    definitions: DefinitionsSettings = DefinitionsSettings()
    logs: LogsSettings = LogsSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 (pydantic-settings' signature)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the given values and nothing else: `sources` merges, to know whose each is."""
        return (init_settings,)


Key = tuple[str, str]
"""Section and field, as ("stream", "port")."""


def sections() -> dict[str, type[BaseModel]]:
    """Every section's name and model, in the order of the reference page."""
    return {
        name: cast("type[BaseModel]", field.annotation)
        for name, field in Settings.model_fields.items()
    }


def fields_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the settings of a section by name: its own first, then those of its bases."""
    names = dict.fromkeys(name for each in section.__mro__ for name in get_annotations(each))
    fields = section.model_fields
    return {name: fields[name] for name in names if name in fields}


def field_of(key: Key) -> FieldInfo | None:
    """Return the description of a setting, None if there is no such setting."""
    section = sections().get(key[0])
    return None if section is None else section.model_fields.get(key[1])


def variable_of(key: Key) -> str:
    """Return the environment variable of a setting."""
    return f"{ENVIRONMENT_PREFIX}{key[0]}__{key[1]}".upper()


def toml_types_of(field: FieldInfo) -> tuple[type, ...]:
    """Return the types that a setting may have in a TOML file: bool, int, str, or str and list."""
    if field.annotation is bool:
        return (bool,)
    if field.annotation == tuple[str, ...]:
        return (str, list)
    return (str,) if _bounds_of(field) is None else (int,)


def allowed_of(field: FieldInfo) -> str:
    """Say in words which values a setting takes."""
    if told := cast("dict[str, str]", field.json_schema_extra)["takes"]:
        return told
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    if kind is bool:
        return "true or false"
    bounds = _bounds_of(field)
    if bounds is not None:
        return "a whole number from {} to {}".format(*bounds)
    return "a path" if "Path" in str(kind) else "text"


def _bounds_of(field: FieldInfo) -> tuple[int, int] | None:
    low = next((item.ge for item in field.metadata if isinstance(item, Ge)), None)
    high = next((item.le for item in field.metadata if isinstance(item, Le)), None)
    return None if low is None or high is None else (cast("int", low), cast("int", high))
