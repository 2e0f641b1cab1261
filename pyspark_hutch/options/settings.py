"""Settings of a read and a write: frozen values that Spark pickles and sends to its workers.

They hold no live object. A password is kept out of every `repr`; where it is named by a file or an
environment variable, it is read only where a connection is opened.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from hutch.client.login import Endpoint
from pyspark_hutch.options.errors import WrongOption, shown

PASSWORD_BYTES_MAX: Final = 4_096  # what is longer is something else, as a file named by mistake
NAMES_SHOWN_MAX: Final = 5  # of streams in an error

BodyFormat = Literal["amqp", "raw"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Delivery = Literal["auto", "staged", "none", "dedup"]
Fate = Literal["fail", "skip", "raw"]
Routing = Literal["hash", "key", "column"]
Unmatched = Literal["error", "latest"]


@dataclass(frozen=True, slots=True)
class Password:
    """A password, or where it is to be read."""

    source: Literal["password", "passwordFile", "passwordEnv"]
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Settings of TLS; the files are read where a connection is opened."""

    ca: str | None = None  # None: the authorities that the machine trusts
    cert: str | None = None
    key: str | None = None
    verify_hostname: bool = True
    server_name: str | None = None  # None: the host of the endpoint


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """All that is needed to open connections to one broker."""

    endpoints: tuple[Endpoint, ...]
    username: str = "guest"
    password: Password = Password("password", "guest")
    vhost: str = "/"
    tls: TlsSettings | None = None  # None: plain TCP
    advertised: bool = True  # False: stay with `endpoints`, whatever Metadata names
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 10_000
    poll_timeout_ms: int = 120_000
    planner_retries: int = 5
    planner_retry_interval_ms: int = 1_000
    pool_idle_timeout_ms: int = 30_000
    connection_name: str | None = None
    client_properties: tuple[tuple[str, str], ...] = ()


def is_password(text: str) -> bool:
    """Return whether a text can be a password: the protocol ends one at a NUL, and wants UTF-8."""
    try:
        held = text.encode()
    except UnicodeEncodeError:
        return False
    return 0 < len(held) <= PASSWORD_BYTES_MAX and "\0" not in text


def password_of(settings: ConnectionSettings) -> str:
    """Return the password, read here and now.

    Raises:
        WrongOption: A file or a variable holds none. What they hold is not told.
    """
    password = settings.password
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


@dataclass(frozen=True, slots=True)
class Source:
    """The streams to read. Exactly one of the four is not empty."""

    streams: tuple[str, ...] = ()
    super_streams: tuple[str, ...] = ()
    assigned: tuple[tuple[str, tuple[int, ...]], ...] = ()  # super stream, indexes of partitions
    pattern: str | None = None  # all streams with a name in which it is found

    @property
    def option(self) -> str:
        """The name of the option that said it."""
        if self.pattern is not None:
            return "streamPattern"
        if self.streams:
            return "stream"
        return "superStream" if self.super_streams else "assign"


class PointKind(StrEnum):
    """The meaning of `Point.number`."""

    EARLIEST = "earliest"  # nothing: the first row that is kept
    LATEST = "latest"  # nothing: behind the last row when the query begins
    OFFSET = "offset"  # the offset of the row
    ROWS_BACK = "rows back"  # so many rows before the end
    MS_BACK = "ms back"  # milliseconds before the query begins
    TIMESTAMP = "timestamp"  # milliseconds since 1970: the first row that is not older


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a stream. As a start it is the first row read, as an end the first not read."""

    kind: PointKind
    number: int = 0
    incarnation: str | None = None  # of the stream that the offset was taken from, if it is known


@dataclass(frozen=True, slots=True)
class Where:
    """The start or end of a read: one point for all streams, or one for each by its name."""

    option: str  # the option that said it, or whose default it is
    everywhere: Point | None = None
    by_stream: tuple[tuple[str, Point], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams that are named, which must be all that are read; empty with `everywhere`."""
        return tuple(name for name, _ in self.by_stream)

    def points(self, streams: tuple[str, ...]) -> Mapping[str, Point]:
        """Return the point of each of the streams that are read.

        Raises:
            WrongOption: Points were given by name, for other streams than these.
        """
        if self.everywhere is not None:
            return dict.fromkeys(streams, self.everywhere)
        require_exact(self.option, self.names, streams)
        return dict(self.by_stream)


def require_exact(option: str, given_names: tuple[str, ...], real_names: tuple[str, ...]) -> None:
    """Check that an option names each stream that is read, and no other.

    Raises:
        WrongOption: A stream is missing, or one is named that is not read.
    """
    parts = [
        f"{word} {_listed(names)}"
        for word, names in (
            ("misses", sorted(set(real_names) - set(given_names))),
            ("names what is not read,", sorted(set(given_names) - set(real_names))),
        )
        if names
    ]
    if parts:
        raise WrongOption(
            f"option {option}: must name each stream that is read: it {' and '.join(parts)}"
        )


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN_MAX
    text = ", ".join(shown(name) for name in names[:NAMES_SHOWN_MAX])
    return f"{text} and {more} more" if more > 0 else text


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of one batch of a streaming query; None: no limit."""

    offsets_max: int | None = None
    bytes_max: int | None = None
    offsets_min: int | None = None
    delay_ms_max: int = 900_000  # then fewer than `offsets_min` will do


@dataclass(frozen=True, slots=True)
class Splitting:
    """Rules for spreading the rows of a batch over tasks; None: a task for each stream."""

    partitions_min: int | None = None
    records_max: int | None = None
    bytes_max: int | None = None


@dataclass(frozen=True, slots=True)
class Decoding:
    """Columns beside the default ones, and the way in which columns are made."""

    body_format: BodyFormat = "amqp"
    extra_columns: tuple[str, ...] = ()  # in the order of the table of columns
    variant: bool = False  # application properties, annotations and footer as variants, not maps
    app_columns: tuple[tuple[str, str], ...] = ()  # name, Spark DDL type
    bad_sub_batches: Fate = "fail"  # of those that cannot be opened


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter values: the server leaves out chunks that have none of them; without any, no chunk."""

    values: tuple[str, ...] = ()
    match_unfiltered: bool = False


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """A batch or streaming read."""

    connection: ConnectionSettings
    source: Source
    starting: Where
    ending: Where | None  # None: a streaming read
    unmatched_time: Unmatched = "error"  # what becomes of a start by time that no row has reached
    fail_on_data_loss: bool = True
    budgets: Budgets = Budgets()
    splitting: Splitting = Splitting()
    decoding: Decoding = Decoding()
    filter: Filter = Filter()
    consumer_name: str | None = None
    describes_streams: bool = False  # a row for each stream, and no records


@dataclass(frozen=True, slots=True)
class Dedup:
    """Rules for publishing ids; None as id column: rows are numbered as they come to a task."""

    producer_name: str | None  # None: a name of the streaming query's own
    id_column: str | None = None
    key_column: str | None = None
    order_by: tuple[str, ...] = ()
    unsafe_plan: bool = False


@dataclass(frozen=True, slots=True)
class Transaction:
    """The name and number under which a save counts as done; a number at or below is dropped."""

    app_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Creation:
    """Settings for a stream or super stream that has to be created."""

    partitions: int | None = None  # None: a plain stream
    arguments: tuple[tuple[str, str], ...] = ()  # of the command that makes a stream


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """A batch or streaming write. Without a target each row names its stream."""

    connection: ConnectionSettings
    stream: str | None = None
    super_stream: str | None = None
    delivery: Delivery = "auto"
    dedup: Dedup | None = None  # None: `delivery` is another one
    transaction: Transaction | None = None  # None: a streaming write, or a save that counts alone
    routing: Routing = "hash"
    routing_key_column: str = "routing_key"
    compression: Compression = "none"
    sub_batch_size: int = 1  # 1 without compression: no sub-batches
    body_format: BodyFormat = "amqp"
    ignore_unknown_columns: bool = False
    creation: Creation | None = None
    in_flight_max: int = 10_000
    confirm_timeout_ms: int = 30_000
